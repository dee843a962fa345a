-- peek: several hashes, and records as if they were hashes, as they are at one moment. It changes nothing.
--
-- KEYS 1 <prefix>g
-- ARGV 1 prefix · 2 task key or '' · then names of hashes without the prefix
-- reply: {now ms, expiry of the key's permit or 0, {field, value …} per hash}
local reply = { now, ARGV[2] ~= '' and M.permit_end(ARGV[2]) or 0 }
for i = 3, #ARGV do
  local key = string.match(ARGV[i], '^j:(.+)$')
  if key then
    local fields = {}
    for field, value in pairs(M.record(key)) do
      fields[#fields + 1] = field
      fields[#fields + 1] = type(value) == 'number' and int(value) or value
    end
    reply[i] = fields
  else
    reply[i] = redis.call('HGETALL', P .. ARGV[i])
  end
end
return reply
