-- Stores one settlement in the outbox. Storing the same id again replaces its entry.
-- KEYS[1] entries (hash)   KEYS[2] ended (hash)
-- ARGV[1] settlement id   ARGV[2] settlement as JSON   ARGV[3] "<key>@<generation>"
-- ARGV[4] 1 if it ends the task   ARGV[5] maximum number of entries
-- Reply: 1 = stored, 0 = the outbox is full
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[5]) then
  return 0
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
if ARGV[4] == '1' then
  redis.call('HSETNX', KEYS[2], ARGV[3], ARGV[1]) -- the first verdict of a generation wins
end
return 1
