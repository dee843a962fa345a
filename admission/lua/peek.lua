-- peek: several hashes as they are at one moment. It changes nothing.
--
-- KEYS 1 <prefix>g
-- ARGV 1 prefix · 2 task key or '' · then names of hashes without the prefix
-- reply: {now ms, expiry of the key's permit or 0, {field, value …} per hash}
local reply = { now, tonumber(ARGV[2] ~= '' and redis.call('ZSCORE', P .. 'p', ARGV[2]) or 0) or 0 }
for i = 3, #ARGV do reply[i] = redis.call('HGETALL', P .. ARGV[i]) end
return reply
