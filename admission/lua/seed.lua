-- seed: writes unit budgets that are missing; one that is there stays. Nothing is
-- written if Redis has lost everything since the rows were read.
--
-- KEYS 1 <prefix>g
-- ARGV 1 prefix · then per budget: name (<scope>:<period>), units spent by settled calls, ms of the clock before their reading began (0: unknown), ms to live
-- reply: number of budgets written
if num(M.state('g'), 'rev') == 0 or M.blind() > 0 then return 0 end
local written = 0
for i = 2, #ARGV, 4 do
  local key = P .. 'b:' .. ARGV[i]
  local kept = redis.call('HMGET', key, 'reserved', 'spent')
  if not (tonumber(kept[1] or 0) and tonumber(kept[2] or '')) then -- missing, or nothing of ours
    local reserved = 0
    local held = redis.call('ZRANGEBYSCORE', P .. 'p', '(' .. int(now), '+inf')
    M.load(held)
    for k = 1, #held do -- admitted and not settled: no call row has them
      local j = M.record(held[k])
      if not j.kept and string.find(',' .. rstr(j, 'bk') .. ',', ',' .. ARGV[i] .. ',', 1, true) then
        reserved = reserved + rnum(j, 'units')
      end
    end
    local spent, from = tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
    local noted = redis.call('HGETALL', key)
    for k = 1, #noted, 2 do -- settled since: whether the reading saw its row nobody knows, so it counts
      local at = tonumber(string.match(noted[k], '^late:(%d+)$') or '')
      if at then
        if at >= from then spent = spent + tonumber(noted[k + 1]) end
        redis.call('HDEL', key, noted[k])
      end
    end
    redis.call('HSET', key, 'reserved', int(reserved), 'spent', int(spent))
    redis.call('PEXPIRE', key, ARGV[i + 3])
    written = written + 1
  end
end
return written
