-- check: returns what the gates would reply to a call now. It charges nothing and writes nothing.
--
-- KEYS, ARGV as in prelude.lua. Request: as exchange without settles and acquires, and
--   call {path, group, units, units_bounded, random_a, random_b}
-- Reply: failure (limits_missing, clock_skew), or sources, in configuration order: [{source, gate (of the
--   refusal), wait_ms (until it may admit), blocked (not only busy), probe (the call would be the half-open probe)}]
-- A call that no wait admits is reported as admitted, because its task is archived at its next delivery.
local reply = {}
for i, source in ipairs(M.allowed_sources(request.call)) do
  local trial = { call = request.call }
  local refusal = M.try(trial, source)
  if trial.failure then return cjson.encode({ failure = trial.failure }) end
  reply[i] = { source = source.name }
  if refusal and refusal.gate ~= 'missing' and not refusal.permanent then
    reply[i].gate, reply[i].wait_ms, reply[i].blocked = refusal.gate, max(1, ceil(refusal.wait)), refusal.blocked
  else
    reply[i].probe = trial.probe
  end
end
return cjson.encode({ sources = #reply > 0 and reply or nil })
