-- Stores the upload ledger's latest mark. An older mark of the same ledger does not replace a newer one. A mark of
-- another ledger always replaces the stored mark, because an operator has adopted that ledger.
--
-- KEYS 1 reprise:{ledger}:mark (hash) · ARGV ledger, seq, token
-- Reply: 1 = stored, 0 = a newer mark is stored
local ledger = redis.call('HGET', KEYS[1], 'ledger')
local seq = tonumber(redis.call('HGET', KEYS[1], 'seq') or '0')
if ledger == ARGV[1] and seq >= tonumber(ARGV[2]) then return 0 end
redis.call('HSET', KEYS[1], 'ledger', ARGV[1], 'seq', ARGV[2], 'token', ARGV[3])
return 1
