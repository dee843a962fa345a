-- Stores the id and latest mark of a store in Redis.
--
-- KEYS[1]  hash: id, seq, token and name of the stored store
-- ARGV     id, seq, token, name; the previously read id and token ('' = none)
-- Reply    1 = stored, 0 = another process has changed the hash
local found = redis.call('HMGET', KEYS[1], 'id', 'token')
if (found[1] or '') ~= ARGV[5] or (found[2] or '') ~= ARGV[6] then return 0 end
redis.call('HSET', KEYS[1], 'id', ARGV[1], 'seq', ARGV[2], 'token', ARGV[3], 'name', ARGV[4])
return 1
