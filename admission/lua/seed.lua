-- seed: writes unit budgets that are missing; one that is there stays.
--
-- KEYS 1 <prefix>g
-- ARGV 1 prefix · then per budget: name (<scope>:<period>), units spent by settled calls, ms to live
-- reply: number of budgets written
local written = 0
for i = 2, #ARGV, 3 do
  local key = P .. 'b:' .. ARGV[i]
  if redis.call('HEXISTS', key, 'spent') == 0 then
    local reserved = 0
    local held = redis.call('ZRANGEBYSCORE', P .. 'p', '(' .. int(now), '+inf')
    for k = 1, #held do -- admitted and not settled: no call row has them
      local j = redis.call('HMGET', P .. 'j:' .. held[k], 'bk', 'units', 'kept')
      if j[1] and string.find(',' .. j[1] .. ',', ',' .. ARGV[i] .. ',', 1, true) and j[3] ~= '1' then
        reserved = reserved + (tonumber(j[2]) or 0)
      end
    end
    redis.call('HSET', key, 'reserved', int(reserved), 'spent', ARGV[i + 1])
    redis.call('PEXPIRE', key, ARGV[i + 2])
    written = written + 1
  end
end
return written
