-- Makes Redis remember a store's mark.
--
-- KEYS[1]  hash: id, seq, token and name of the store that Redis remembers
-- ARGV     id, seq, token, name; the id and token that were read before ('' = none)
-- Reply    1 = remembered, 0 = another process was faster
local found = redis.call('HMGET', KEYS[1], 'id', 'token')
if (found[1] or '') ~= ARGV[5] or (found[2] or '') ~= ARGV[6] then return 0 end
redis.call('HSET', KEYS[1], 'id', ARGV[1], 'seq', ARGV[2], 'token', ARGV[3], 'name', ARGV[4])
return 1
