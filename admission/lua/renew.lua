-- renew: keeps permits alive, one call per worker every few seconds. Now and
-- then it also recounts what is in flight and repairs a stepped clock.
--
-- KEYS 1 <prefix>g
-- ARGV 1 prefix · 2 permit TTL ms · 3 recount every ms · then per permit: key, attempt, source, path, group, sent (1: the call may be on
--      its way), units, admitted ms, epoch, budgets
-- reply: per permit 0 renewed, 1 was gone in part and is registered again, 2 lost
local ttl = tonumber(ARGV[2])
local g = M.state('g')
local reply = {}

-- again registers a call that is on its way: its permit or its record is gone, or
-- both. Of a budget that is there, only one that lost both was seeded without it;
-- one that is not there will be seeded with it.
local function again(i, j, held)
  local key = ARGV[i]
  if not j.a then
    j.kept, j.units, j.at, j.epoch, j.bk = nil, tonumber(ARGV[i + 6]), tonumber(ARGV[i + 7]), tonumber(ARGV[i + 8]), ARGV[i + 9]
    if not held then M.move(j.bk, j.units, 0) end
    j.pb = max(1, rnum(j, 'pb'))
  end
  j.a, j.src, j.path, j.grp = ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4]
  if not held then M.count(M.lane(j.src, j.path, j.grp), 1) end
  M.extend(key, now + ttl)
  M.save(key)
end

local keys = {}
for i = 4, #ARGV, 10 do keys[#keys + 1] = ARGV[i] end
M.load(keys)
for i = 4, #ARGV, 10 do
  local key, attempt = ARGV[i], ARGV[i + 1]
  local j, held = M.record(key), M.permit_end(key)
  if held and j.a == attempt then
    M.extend(key, now + ttl)
    reply[#reply + 1] = 0
  elseif ARGV[i + 5] == '1' and not M.settled(j, attempt) and (not j.a or not held and j.a == attempt) then
    again(i, j, held)
    reply[#reply + 1] = 1
  else
    reply[#reply + 1] = 2
  end
end

-- recount: the counters follow from the permits.
local function recount()
  local seen = {}
  local all = redis.call('ZRANGE', P .. 'p', 0, -1)
  M.load(all)
  for i = 1, #all do
    local j = M.record(all[i])
    if j.src then
      local scope = j.src .. ':' .. j.path
      seen['s:' .. scope] = (seen['s:' .. scope] or 0) + 1
      if rstr(j, 'grp') ~= '' then
        local name = 'grp:' .. j.grp
        seen[name] = seen[name] or {}
        seen[name]['in:' .. scope] = (seen[name]['in:' .. scope] or 0) + 1
      end
    end
  end
  M.each(M.str(M.state('tuning'), 'scopes'), function(name)
    local st = M.state(name)
    if string.sub(name, 1, 2) == 's:' then
      put(st, 'inflight', seen[name] or 0)
    else
      for field in pairs(st.v) do
        if string.sub(field, 1, 3) == 'in:' and string.sub(field, -5) ~= '_wait' then put(st, field, seen[name] and seen[name][field] or 0) end
      end
    end
  end)
  put(g, 'inflight', #all)
end

local last = num(g, 'recount')
if now - last >= tonumber(ARGV[3]) or last > now then
  local ahead = redis.call('ZRANGEBYSCORE', P .. 'p', '(' .. int(now + 10 * ttl), '+inf')
  M.load(ahead)
  for i = 1, #ahead do M.extend(ahead[i], now + ttl) end
  M.flush_records() -- what follows reads the permits themselves
  M.sweep()
  M.flush_records()
  recount()
  put(g, 'recount', now)
end
M.flush()
return reply
