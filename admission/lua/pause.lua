-- pause: reads or changes the reasons why a queue is paused.
--
-- KEYS, ARGV as in prelude.lua. Request: queue, action (read | add | remove | flag), and for
--   add: reason, ends_in_ms (0 = no end), by, evidence
--   remove: reason, auto:* or *
--   flag: version (as last read; if it differs, nothing changes), flag (the flag to store), reasons (keep | adopt = add manual
--     | drop = remove all), override_ms (after drop: no automatic reason is added for this long), by
-- Reply: flag, version, override_until, changed, reasons [{name, expires_at (0 = never), since, by, evidence}]
--
-- keys.go describes pause:<queue>.
local key = prefix .. 'pause:' .. request.queue
local values, reasons, changed = M.read_hash('pause:' .. request.queue), {}, false -- reasons: key is the name
for field, value in pairs(values) do
  local name = string.match(field, '^reason:(.*)$')
  if name then reasons[name] = cjson.decode(value) end
end

local function set(name, expires_at, evidence)
  reasons[name] = { name = name, expires_at = expires_at, since = now, by = request.by, evidence = evidence }
  redis.call('HSET', key, 'reason:' .. name, cjson.encode(reasons[name]))
  changed = true
end

-- Removes the reasons for which matches(name, reason) is true.
local function drop(matches)
  for name, reason in pairs(reasons) do
    if matches(name, reason) then
      reasons[name] = nil
      redis.call('HDEL', key, 'reason:' .. name)
      changed = true
    end
  end
end

local function is_auto(name) return string.sub(name, 1, 5) == 'auto:' end

drop(function(_, reason) return reason.expires_at > 0 and reason.expires_at <= now end)

local version = tonumber(values.version or '0')
local override_until = tonumber(values.override_until or '0')
local reason = request.reason
if request.action == 'add' and not (is_auto(reason) and override_until > now) then
  local expires_at = request.ends_in_ms > 0 and now + request.ends_in_ms or 0
  -- The end may move earlier, because the gates may admit calls earlier than expected.
  if not reasons[reason] or reasons[reason].expires_at ~= expires_at then set(reason, expires_at, request.evidence) end
elseif request.action == 'remove' then
  drop(function(name) return reason == '*' or reason == name or reason == 'auto:*' and is_auto(name) end)
elseif request.action == 'flag' and request.version == version then
  values.flag, changed = request.flag, true
  redis.call('HSET', key, 'flag', request.flag)
  if request.reasons == 'adopt' then
    set('manual', 0, 'paused outside Reprise')
  elseif request.reasons == 'drop' then
    drop(function() return true end)
    override_until = now + request.override_ms
    redis.call('HSET', key, 'override_until', int(override_until))
  end
end
if changed then
  version = version + 1
  redis.call('HSET', key, 'version', int(version))
end

local list = {}
for _, r in pairs(reasons) do list[#list + 1] = r end
table.sort(list, function(a, b) return a.name < b.name end)
return cjson.encode({ flag = values.flag or 'off', version = version, override_until = override_until, changed = changed,
  reasons = #list > 0 and list or nil })
