-- limits: seeds or changes the limits and copies them into the state hashes,
-- where every decision reads them together with its state.
--
-- KEYS 1 <prefix>g
-- ARGV 1 prefix · 2 seed (only what is missing) or set · 3 who · 4 state names of the configuration (a,b): s:<source>:<path>, grp:<group>
--      5 ms for which unit budgets stay missing if Redis has no limits at all
--      then per limit: name (<scope>/<limit>), value
-- reply: {revision, number of changes}
local g = M.state('g')
local key = P .. 'limits'
local changed = 0
for i = 6, #ARGV, 2 do
  local old = redis.call('HGET', key, ARGV[i])
  if old ~= ARGV[i + 1] and (ARGV[2] == 'set' or not old) then
    redis.call('HSET', key, ARGV[i], ARGV[i + 1])
    changed = changed + 1
    if ARGV[2] == 'set' then
      redis.call('LPUSH', P .. 'limits:log', int(now) .. ' ' .. ARGV[3] .. ' ' .. ARGV[i] .. ' ' .. (old or '-') .. ' ' .. ARGV[i + 1])
      redis.call('LTRIM', P .. 'limits:log', 0, 199)
    end
  end
end
local rev = tonumber(redis.call('HGET', key, 'rev') or '0')
if rev == 0 and tonumber(ARGV[5]) > 0 then put(g, 'blind', now + tonumber(ARGV[5])) end
if changed > 0 or rev == 0 then
  rev = rev + 1
  redis.call('HSET', key, 'rev', int(rev), 'by', ARGV[3], 'at', int(now))
end

local known, scopes = {}, {}
M.each(M.str(M.state('tuning'), 'scopes') .. ',' .. ARGV[4], function(name)
  if not known[name] then
    known[name] = true
    scopes[#scopes + 1] = name
  end
end)
put(M.state('tuning'), 'scopes', table.concat(scopes, ','))

local short = { concurrency = 'lc', requests_per_minute = 'lr', request_burst = 'lrb', units_per_minute = 'lu', unit_burst = 'lub',
  units_per_day = 'ld', units_per_month = 'lm', ceiling = 'share', source = 'pin' }
local all = redis.call('HGETALL', key)
for i = 1, #all, 2 do
  local scope, limit = string.match(all[i], '^(.+)/([%w_]+)$')
  if scope == 'tuning' then
    put(M.state('tuning'), limit, all[i + 1])
  elseif scope and short[limit] then
    local name = scope
    if string.sub(scope, 1, 6) == 'group/' then
      name = 'grp:' .. string.sub(scope, 7)
    else
      name = scope == 'global' and 'g' or 's:' .. scope
    end
    local st = M.state(name)
    if all[i + 1] ~= '0' or st.v[short[limit]] then put(st, short[limit], all[i + 1]) end -- absent is 0
  end
end
put(g, 'rev', rev)
for i = 1, #scopes do
  local st = M.state(scopes[i])
  put(st, 'rev', rev)
  if string.sub(scopes[i], 1, 2) == 's:' then
    local tune = M.state('tuning')
    put(st, 'am', num(tune, 'aimd') * num(tune, 'aimd_max'))
    if st.v.lim == nil then
      put(st, 'lim', num(tune, 'aimd_start') * 1000)
      put(st, 'ss', 1)
    end
  end
end
M.flush()
return { rev, changed }
