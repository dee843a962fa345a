-- halt: halts or resumes source+paths. An operator calls it, or a worker that has found a reason. A resume makes them
-- half-open, so the next call is the probe. It does not end a throttle.
--
-- KEYS, ARGV as in prelude.lua. Request: action (halt | resume), source, path ('' = all), by, and for halt:
--   probe_after_ms (0 = only a resume ends the halt), reason, fingerprint (of the refused token, or '')
-- Reply: changed, the number of source+paths
local changed = 0

-- Deletes the fingerprints of refused tokens, so their workers may call again. Returns true if there was one.
local function forget_refused_tokens(scope, st)
  local any = false
  for field in pairs(st.values) do
    if string.sub(field, 1, 14) == 'refused_token:' then
      redis.call('HDEL', prefix .. 'state:' .. scope, field)
      st.values[field], any = nil, true
    end
  end
  return any
end

M.each_scope(function(scope, source, path)
  if not source or request.source ~= '' and request.source ~= source or request.path ~= '' and request.path ~= path then return end
  local st = M.state(scope)
  if request.action == 'halt' then
    local wait = request.probe_after_ms
    M.halt(st, request.reason, request.by, request.fingerprint, wait > 0 and now + wait or 0)
    changed = changed + 1
  elseif forget_refused_tokens(scope, st) or text(st, 'halt_reason') ~= '' or num(st, 'breaker_open') == 1 then
    M.raise_epoch(st)
    put(st, 'auth_failures_in_row', 0)
    put(st, 'not_found_in_row', 0)
    if text(st, 'halt_reason') ~= '' then put(st, 'halt_probe_at', now) end
    if num(st, 'breaker_open') == 1 then put(st, 'breaker_probe_at', now) end
    put(st, 'resumed_by', request.by)
    changed = changed + 1
  end
end)
M.flush()
return cjson.encode({ changed = changed })
