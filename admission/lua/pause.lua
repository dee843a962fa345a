-- pause: reads or changes the set of reasons why a queue is paused.
--
-- KEYS, ARGV as in prelude.lua. Request: queue, action (read | add | remove | apply), and for
--   add: reason, ends_in_ms (0 = never by itself), by, evidence
--   remove: reason, auto:* or *
--   apply: version that was read, flag (the new flag state), reasons (keep | adopt = add manual | drop), override_ms for which
--     automatic reasons are kept out after a drop, by
-- Reply: flag, version, override_until, changed, reasons [{name, expires_at (0 = never), since, by, evidence}]
--
-- keys.go describes pause:<queue>.
local key = prefix .. 'pause:' .. request.queue
local values, reasons = {}, {} -- fields of the hash; by name: the reason
local changed = false
local flat = redis.call('HGETALL', key)
for i = 1, #flat, 2 do
  values[flat[i]] = flat[i + 1]
  local name = string.match(flat[i], '^reason:(.*)$')
  if name then reasons[name] = cjson.decode(flat[i + 1]) end
end

local function set(name, expires_at, by, evidence)
  reasons[name] = { name = name, expires_at = expires_at, since = now, by = by, evidence = evidence }
  redis.call('HSET', key, 'reason:' .. name, cjson.encode(reasons[name]))
  changed = true
end

local function drop(name)
  reasons[name] = nil
  redis.call('HDEL', key, 'reason:' .. name)
  changed = true
end

local function is_auto(name) return string.sub(name, 1, 5) == 'auto:' end

local names = {}
for name, reason in pairs(reasons) do
  if reason.expires_at > 0 and reason.expires_at <= now then drop(name) else names[#names + 1] = name end
end

local version = tonumber(values.version or '0')
local override_until = tonumber(values.override_until or '0')
local reason = request.reason
if request.action == 'add' and not (is_auto(reason) and override_until > now) then
  local expires_at = request.ends_in_ms > 0 and now + request.ends_in_ms or 0
  -- The end may also become earlier: the worker that checks the gates knows when they admit calls again.
  if not reasons[reason] or reasons[reason].expires_at ~= expires_at then set(reason, expires_at, request.by, request.evidence) end
elseif request.action == 'remove' then
  for _, name in ipairs(names) do
    if reason == '*' or reason == name or reason == 'auto:*' and is_auto(name) then drop(name) end
  end
elseif request.action == 'apply' and request.version == version then
  values.flag = request.flag
  redis.call('HSET', key, 'flag', request.flag)
  if request.reasons == 'adopt' then
    set('manual', 0, request.by, 'flag set elsewhere')
  elseif request.reasons == 'drop' then
    for _, name in ipairs(names) do drop(name) end
    override_until = now + request.override_ms
    redis.call('HSET', key, 'override_until', int(override_until))
  end
  changed = true
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
