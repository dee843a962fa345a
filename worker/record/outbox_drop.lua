-- Deletes settlements that were written to SQL. An entry that has changed since
-- it was read is kept.
-- KEYS[1] entries (hash)   KEYS[2] ended (hash)
-- ARGV    triples: settlement id, settlement as JSON, "<key>@<generation>"
-- Reply: number of deleted entries
local dropped = 0
for i = 1, #ARGV, 3 do
  if redis.call('HGET', KEYS[1], ARGV[i]) == ARGV[i + 1] then
    redis.call('HDEL', KEYS[1], ARGV[i])
    if redis.call('HGET', KEYS[2], ARGV[i + 2]) == ARGV[i] then
      redis.call('HDEL', KEYS[2], ARGV[i + 2])
    end
    dropped = dropped + 1
  end
end
return dropped
