-- Deletes a verdict whose settlement is missing.
-- KEYS[1] entries (hash)   KEYS[2] ended (hash)
-- ARGV[1] "<key>@<generation>"   ARGV[2] settlement id
-- Reply: 1 = deleted, 0 = the verdict's id has changed or its settlement exists
if redis.call('HGET', KEYS[2], ARGV[1]) == ARGV[2] and redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then
  return redis.call('HDEL', KEYS[2], ARGV[1])
end
return 0
