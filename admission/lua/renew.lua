-- renew: keeps permits alive, one call per worker every few seconds.
-- KEYS 1 <prefix>g
-- ARGV 1 prefix · 2 permit TTL ms · then per permit: key, attempt, source, path, group, sent (1: the call may be on its way)
-- reply: per permit 0 renewed, 1 was gone and is registered again, 2 lost
local ttl = tonumber(ARGV[2])
local reply = {}
for i = 3, #ARGV, 6 do
  local key, attempt, source, path, group, sent = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4], ARGV[i + 5]
  local a = redis.call('HGET', P .. 'j:' .. key, 'a')
  local score = redis.call('ZSCORE', P .. 'p', key)
  if score and a == attempt then
    redis.call('ZADD', P .. 'p', int(now + ttl), key)
    reply[#reply + 1] = 0
  elseif sent == '1' and not score and (not a or a == '' or a == attempt) then
    redis.call('ZADD', P .. 'p', int(now + ttl), key)
    save(key, { 'a', attempt, 'src', source, 'path', path, 'grp', group })
    add(state('s:' .. source .. ':' .. path), 'inflight', 1)
    add(state('g'), 'inflight', 1)
    reply[#reply + 1] = 1
  else
    reply[#reply + 1] = 2
  end
end
flush()
return reply
