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
--          {0, gate, source, retry ms, no source, never, reason of a halt} · {2, until ms, now ms} · {3, now ms, missing budget …} · {4} limits not loaded · {5} attempt was settled before
local settles, acquires, keys = {}, {}, {}
for i = 1, narg() do
  settles[i] = { key = arg(), attempt = arg(), source = arg(), path = arg(), group = arg(), gen = narg(), epoch = narg(),
    at = narg(), bk = arg(), outcome = arg(), channel = arg(), halt = arg(), probeable = arg() == '1', shut = narg(), counted = narg(),
    pb = narg(), used = narg(), latency = narg(), backoff = narg(), clear = arg() == '1' }
  keys[#keys + 1] = settles[i].key
end
for i = 1, narg() do
  acquires[i] = { key = arg(), attempt = arg(), path = arg(), group = arg(), gen = narg(), units = narg(),
    bounded = arg() == '1', exclude = arg(), pinned = arg(), r1 = narg(), r2 = narg() }
  keys[#keys + 1] = acquires[i].key
end
M.load(keys)
M.sweep()
local reply = { num(g, 'rev') }
for i = 1, #settles do reply[#reply + 1] = M.settle(settles[i]) end
for i = 1, #acquires do reply[#reply + 1] = M.acquire(acquires[i]) end
M.store()
M.flush()
return reply
