-- Remember the latest mark of the upload ledger. An older mark of the same
-- ledger never replaces a newer one; another ledger's always does, because it
-- was adopted by an operator, or it could not have latched.
-- KEYS[1] reprise:{ledger}:mark (hash)   ARGV ledger, seq, token
-- reply: 1 remembered, 0 a newer one is known
local ledger = redis.call('HGET', KEYS[1], 'ledger')
local seq = tonumber(redis.call('HGET', KEYS[1], 'seq') or '0')
if ledger == ARGV[1] and seq >= tonumber(ARGV[2]) then
  return 0
end
redis.call('HSET', KEYS[1], 'ledger', ARGV[1], 'seq', ARGV[2], 'token', ARGV[3])
return 1
