-- exchange: the settles and acquires of one worker in one round trip.
--
-- KEYS 1 <prefix>g (routes the script to its slot; all other keys are derived from the prefix)
-- ARGV 1 prefix
--      2 permit TTL ms · 3 lookahead µs · 4 zone offset ms · 5 until ms · 6 zone offset after that ms · 7 month anchor day
--      8 source policy · 9 number of sources, then per source: name, token fingerprint
--      then the number of settles, per settle:
--        key, attempt, source, path, group, generation, epoch, admitted ms, budgets (as in the reply of acquire),
--        outcome, channel, halt ('' path source), probeable, shut ms, counted, possibly billed, units used, latency ms, backoff ms, clear
--      then the number of acquires, per acquire:
--        key, attempt, path, group, generation, units, bounded, excluded sources (a,b), pinned source, random 1, random 2 (0 … 2^31)
-- reply: first the revision of the limits, then per settle
--          0 settled · 1 was settled before · 2 unknown attempt, charged · 3 was given up as lost, corrected
--        and per acquire
--          {1, source, epoch, admitted ms, start in µs, probe, budgets} and for a task with a history: {…, generation, counted,
--              possibly billed, streak, same outcome, throttles, last outcome, spent ms, first failure ms, lost attempt, its source,
--              its units, its admission ms}
--          {0, gate, source, retry ms, no source, never, reason of a halt} · {2, until ms, now ms} · {3, now ms, missing budget …} · {4} limits not loaded · {5} attempt was settled before ·
--          {6} the task has its verdict, in a settlement SQL has not got yet
local settles, acquires, keys, ended_fields = {}, {}, {}, {}
local a, k = ARGV, at -- a text plus 0 is its number
for i = 1, a[k] + 0 do
  settles[i] = { key = a[k + 1], attempt = a[k + 2], source = a[k + 3], path = a[k + 4], group = a[k + 5], gen = a[k + 6] + 0,
    epoch = a[k + 7] + 0, at = a[k + 8] + 0, bk = a[k + 9], outcome = a[k + 10], channel = a[k + 11], halt = a[k + 12],
    probeable = a[k + 13] == '1', shut = a[k + 14] + 0, counted = a[k + 15] + 0, pb = a[k + 16] + 0, used = a[k + 17] + 0,
    latency = a[k + 18] + 0, backoff = a[k + 19] + 0, clear = a[k + 20] == '1' }
  keys[#keys + 1] = a[k + 1]
  k = k + 20
end
k = k + 1
for i = 1, a[k] + 0 do
  acquires[i] = { key = a[k + 1], attempt = a[k + 2], path = a[k + 3], group = a[k + 4], gen = a[k + 5] + 0, units = a[k + 6] + 0,
    bounded = a[k + 7] == '1', exclude = a[k + 8], pinned = a[k + 9], r1 = a[k + 10] + 0, r2 = a[k + 11] + 0 }
  keys[#keys + 1] = a[k + 1]
  ended_fields[i] = a[k + 1] .. '@' .. a[k + 5]
  k = k + 11
end
M.load(keys)
local ended = #acquires > 0 and redis.call('HMGET', P .. 'ended', unpack(ended_fields))
for i = 1, #acquires do acquires[i].ended = ended[i] end
M.sweep()
local reply = { num(g, 'rev') }
for i = 1, #settles do reply[#reply + 1] = M.settle(settles[i]) end
for i = 1, #acquires do reply[#reply + 1] = M.acquire(acquires[i]) end
M.flush()
return reply
