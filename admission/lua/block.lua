-- Part of exchange, check and halt: what blocks a whole source+path. Throttle, halt and
-- breaker each have their own end. After a breaker or a halt one call is the
-- half-open probe; its permit lives by renewal like any other.

local UNTIL_RESUMED = DAY -- wait of a block that only an operator ends: admission.UntilResumed

-- refuse: gate, ms to wait, whether the source is blocked (not merely busy),
-- whether waiting never helps.
function M.refuse(gate, wait, blocked, permanent) return { gate = gate, wait = wait, blocked = blocked, permanent = permanent } end

-- is_probing reports whether the attempt that probes still holds its permit. An attempt
-- of the same task on another source does not count.
function M.is_probing(st)
  local key, attempt = string.match(text(st, 'probe'), '^(%S+) (%S+)$')
  if not key then return false end
  local expires_at = M.permit_end(key)
  return expires_at and expires_at > now and M.record(key).attempt == attempt
end

-- half_open lets exactly one call through as the probe.
function M.half_open(trial, st, gate)
  if M.is_probing(st) then
    return M.refuse(gate, min(5000, max(250, num(st, 'latency_ms'))) + trial.call.random_b % 250, true, false)
  end
  trial.probe = true
end

function M.raise_epoch(st)
  M.add(st, 'epoch', 1)
  put(st, 'probe', '')
end

-- reopen ends breaker and halt after a probe succeeded.
function M.reopen(st)
  M.raise_epoch(st)
  put(st, 'breaker_open', 0)
  put(st, 'breaker_trips', 0)
  put(st, 'halt_reason', '')
  put(st, 'failures_in_row', 0)
  put(st, 'auth_failures_in_row', 0)
  put(st, 'not_found_in_row', 0)
end

-- halt blocks until an operator resumes or, if probe_at > 0, until a probe may go.
function M.halt(st, reason, by, fingerprint, probe_at)
  M.raise_epoch(st)
  if text(st, 'halt_reason') == '' then put(st, 'halt_at', now) end
  put(st, 'halt_reason', reason)
  put(st, 'halt_by', by)
  put(st, 'halt_fingerprint', fingerprint)
  put(st, 'halt_probe_at', probe_at)
  put(st, 'auth_failures_in_row', 0)
  if reason == 'authentication' and fingerprint ~= '' then put(st, 'refused_token:' .. fingerprint, now) end
end

-- halted: the refusal of a halt, or nil if this call is its probe.
function M.halted(trial, source, st, reason)
  local due = num(st, 'halt_probe_at')
  local fingerprint = source.fingerprint
  if reason == 'authentication' and fingerprint and fingerprint ~= text(st, 'halt_fingerprint') then due = now end -- a token AudD has not refused
  if due == 0 then return M.refuse('halt', UNTIL_RESUMED, true, false) end
  if due > now and due <= now + 7 * DAY then return M.refuse('halt', due - now, true, false) end
  return M.half_open(trial, st, 'halt')
end

-- blocked: a refusal if the source+path is blocked for this caller.
function M.blocked(trial, source)
  local st = trial.lane.st
  local throttled = num(st, 'throttled_until')
  if throttled > now and throttled <= now + DAY then return M.refuse('throttle', throttled - now, true, false) end
  local reason, refusal = text(st, 'halt_reason'), nil
  if source.fingerprint and st.values['refused_token:' .. source.fingerprint] then
    reason, refusal = 'authentication', M.refuse('halt', UNTIL_RESUMED, true, false)
  elseif reason ~= '' then
    refusal = M.halted(trial, source, st, reason)
  elseif num(st, 'breaker_open') == 1 then
    local probe_at = num(st, 'breaker_probe_at')
    if probe_at > now and probe_at <= now + num(M.state('tuning'), 'breaker_cooldown_max') then
      return M.refuse('breaker', probe_at - now, true, false)
    end
    return M.half_open(trial, st, 'breaker')
  end
  if refusal then refusal.reason = reason end
  return refusal
end
