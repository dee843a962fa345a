-- exchange: runs a worker's settles and acquires in one round trip.
--
-- KEYS, ARGV as in prelude.lua. Request:
--   permit_ttl_ms, lookahead_us, source_policy, sources [{name, fingerprint}],
--   days, months [{name, starts_at, ends_at}]: the unit budgets' periods around now, ms
--   settles [{key, attempt, source, path, group, units, generation, epoch, admitted_at, budgets (as in the record),
--     outcome, channel, halt (path | source), probeable, retry_after_ns, counted, possibly_billed, units_used, latency_ns,
--     backoff_ns, clear_record}]
--   acquires [{key, attempt, path, group, generation, units, units_bounded, exclude [source], pinned,
--     random_a, random_b (0 … 2^31)}]
-- Reply: revision of the limits, and replies, one per acquire, by result:
--   granted: start_in_us, record (keys.go lists its fields; possibly_billed includes this attempt)
--   refused: gate, source, wait_ms, all_blocked, permanent, reason (of a halt)
--   in_flight: wait_ms until the other attempt's permit expires
--   missing: now, budgets [name] to seed first
--   limits_missing · attempt_settled · task_ended: no other field
--   clock_skew: Redis's clock is outside the caller's periods
-- Empty fields are omitted.
local settles, acquires, keys, ended_fields = request.settles or {}, request.acquires or {}, {}, {}
for i = 1, #settles do keys[#keys + 1] = settles[i].key end
for i = 1, #acquires do
  keys[#keys + 1] = acquires[i].key
  ended_fields[i] = acquires[i].key .. '@' .. int(acquires[i].generation)
end
M.load(keys)
M.sweep()
local reply = { revision = num(global, 'revision') }
for i = 1, #settles do M.settle(settles[i]) end
if #acquires > 0 then
  local ended = redis.call('HMGET', prefix .. 'ended', unpack(ended_fields))
  reply.replies = {}
  for i = 1, #acquires do reply.replies[i] = M.acquire(acquires[i], ended[i]) end
end
M.flush()
return cjson.encode(reply)
