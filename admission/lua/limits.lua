-- limits: seeds or changes the limits. It copies them into the state hashes, so a decision reads state and limits
-- together.
--
-- KEYS, ARGV as in prelude.lua. Request: action (seed = only missing limits | set), by, scopes [scope of a
--   source+path or a group], limits [{scope, name, value}], recovery_hold_ms (how long missing unit budgets are
--   not seeded if Redis had no limits at all)
-- Reply: revision
local key = prefix .. 'limits'
local tuning = M.state('tuning')
local changed = false
for _, limit in ipairs(request.limits) do
  local name = limit.scope .. '/' .. limit.name
  local old = redis.call('HGET', key, name)
  if old ~= limit.value and (request.action == 'set' or not old) then
    redis.call('HSET', key, name, limit.value)
    changed = true
  end
end
local revision = tonumber(redis.call('HGET', key, 'revision') or '0')
if revision == 0 and request.recovery_hold_ms > 0 then put(global, 'recovery_hold_until', now + request.recovery_hold_ms) end
if changed or revision == 0 then
  revision = revision + 1
  redis.call('HSET', key, 'revision', int(revision), 'by', request.by, 'at', int(now))
end

local known, scopes = {}, {}
local function add_scope(scope)
  if known[scope] then return end
  known[scope] = true
  scopes[#scopes + 1] = scope
end
M.each_scope(add_scope)
for _, scope in ipairs(request.scopes) do add_scope(scope) end
put(tuning, 'scopes', table.concat(scopes, ','))

for limit, value in pairs(M.read_hash('limits')) do
  local scope, name = string.match(limit, '^(.+)/([%w_]+)$')
  if scope then
    local st, field = M.state(scope), scope == 'tuning' and name or 'limit_' .. name
    if value ~= '0' or st.values[field] then put(st, field, value) end -- an absent field is 0
  end
end
put(global, 'revision', revision)
M.each_scope(function(scope, source)
  local st = M.state(scope)
  put(st, 'revision', revision)
  if not source then return end
  put(st, 'aimd_cap', num(tuning, 'aimd') * num(tuning, 'aimd_max'))
  if st.values.learned_concurrency_milli == nil then
    put(st, 'learned_concurrency_milli', num(tuning, 'aimd_start') * 1000)
    put(st, 'slow_start', 1)
  end
end)
M.flush()
return cjson.encode({ revision = revision })
