-- remember: stores the latest mark of the upload ledger. An older mark of the same ledger does not replace a newer one. A
-- mark of another ledger always does, because that ledger latched, so an operator has adopted it.
--
-- KEYS 1 reprise:{ledger}:mark (hash) · ARGV ledger, seq, token
-- reply: 1 = stored, 0 = a newer mark is stored
local ledger = redis.call('HGET', KEYS[1], 'ledger')
local seq = tonumber(redis.call('HGET', KEYS[1], 'seq') or '0')
if ledger == ARGV[1] and seq >= tonumber(ARGV[2]) then return 0 end
redis.call('HSET', KEYS[1], 'ledger', ARGV[1], 'seq', ARGV[2], 'token', ARGV[3])
return 1
