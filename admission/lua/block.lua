-- Part of exchange, check and halt: what blocks a whole source+path. Throttle, halt and breaker end independently of
-- each other. After a breaker or a halt, one call is the half-open probe. Its permit is renewed like any other.

local UNTIL_RESUMED = DAY -- wait for a block that only an operator ends; equals admission.UntilResumed

-- Returns a refusal. wait is in ms. blocked means that the source is blocked, not only busy. permanent means that no
-- wait helps.
function M.refuse(gate, wait, blocked, permanent) return { gate = gate, wait = wait, blocked = blocked, permanent = permanent } end

-- Reports whether the probe still holds its permit. An attempt of the same task on another source does not count.
function M.is_probing(st)
  local key, attempt = string.match(text(st, 'probe'), '^(%S+) (%S+)$')
  if not key then return false end
  local expires_at = M.permit_end(key)
  return expires_at and expires_at > now and M.record(key).attempt == attempt
end

-- Makes this call the probe and returns nil, or returns a refusal if another call is the probe.
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

-- Ends breaker and halt after a successful probe.
function M.reopen(st)
  M.raise_epoch(st)
  put(st, 'breaker_open', 0)
  put(st, 'breaker_trips', 0)
  put(st, 'halt_reason', '')
  put(st, 'failures_in_row', 0)
  put(st, 'auth_failures_in_row', 0)
  put(st, 'not_found_in_row', 0)
end

-- Blocks the source+path until probe_at, when a probe may start. If probe_at is 0, only an operator ends the block.
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

-- Returns a refusal if the source+path is halted, or nil if this call is the probe. If AudD has not refused the
-- caller's token, the probe may start at once.
function M.halted(trial, source, st, reason)
  local probe_at, fingerprint = num(st, 'halt_probe_at'), source.fingerprint
  if reason ~= 'authentication' or not fingerprint or fingerprint == text(st, 'halt_fingerprint') then
    local wait = probe_at == 0 and UNTIL_RESUMED or M.wait_until(probe_at, 7 * DAY)
    if wait > 0 then return M.refuse('halt', wait, true, false) end
  end
  return M.half_open(trial, st, 'halt')
end

-- Returns a refusal if the breaker is open, or nil if it is closed or this call is the probe.
function M.tripped(trial, st)
  if num(st, 'breaker_open') ~= 1 then return end
  local wait = M.wait_until(num(st, 'breaker_probe_at'), num(M.state('tuning'), 'breaker_cooldown_max'))
  if wait > 0 then return M.refuse('breaker', wait, true, false) end
  return M.half_open(trial, st, 'breaker')
end

-- Returns a refusal if the source+path is blocked for this caller, else nil.
function M.blocked(trial, source)
  local st = trial.lane.st
  local wait = M.wait_until(num(st, 'throttled_until'), DAY)
  if wait > 0 then return M.refuse('throttle', wait, true, false) end
  local reason, refusal = text(st, 'halt_reason'), nil
  if source.fingerprint and st.values['refused_token:' .. source.fingerprint] then
    reason, refusal = 'authentication', M.refuse('halt', UNTIL_RESUMED, true, false)
  elseif reason ~= '' then
    refusal = M.halted(trial, source, st, reason)
  else
    return M.tripped(trial, st)
  end
  if refusal then refusal.reason = reason end
  return refusal
end
