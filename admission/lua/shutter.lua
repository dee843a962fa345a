-- Part of exchange and gate: what shuts a whole source+path. Throttle, breaker
-- and halt each have their own end; an end only grows. After breaker and halt
-- one permit is the probe, and it lives by renewal like any other.

local FOREVER = DAY -- "until a person acts", as a time to come back: admission.Forever

-- no is a refusal: gate, ms to wait, whether the source is shut (not merely
-- busy), whether waiting is of no use.
function M.no(gate, wait, shut, never) return { gate = gate, wait = wait, shut = shut, never = never } end

-- probing: the very attempt that probes holds its permit; another one of its
-- task, on another source, proves nothing.
function M.probing(s)
  local key, attempt = string.match(M.str(s, 'probe'), '^(%S+) (%S+)$')
  if not key then return false end
  local untill = M.permit_end(key)
  return untill and untill > now and M.record(key).a == attempt
end

-- halfopen lets exactly one call through as the probe.
function M.halfopen(t, s, gate)
  if M.probing(s) then
    return M.no(gate, min(5000, max(250, num(s, 'lat'))) + t.r.r2 % 250, true, false)
  end
  t.probe = 1
end

function M.renew_epoch(s)
  M.add(s, 'epoch', 1)
  put(s, 'probe', '')
end

-- reopen ends breaker and halt: a probe or a person's resume proved it.
function M.reopen(s)
  M.renew_epoch(s)
  put(s, 'brk', 0)
  put(s, 'brk_n', 0)
  put(s, 'halt', '')
  put(s, 'fails', 0)
  put(s, 'auth', 0)
  put(s, 'nf', 0)
end

-- forget lets every refused token try again; true if there was one.
function M.forget(name, s)
  local any = false
  for field in pairs(s.v) do
    if string.sub(field, 1, 4) == 'bad:' then
      redis.call('HDEL', P .. name, field)
      s.v[field], any = nil, true
    end
  end
  return any
end

-- halt shuts until a person or, if probe_at > 0, until one probe may go.
function M.halt(s, reason, by, fp, probe_at)
  M.renew_epoch(s)
  if M.str(s, 'halt') == '' then put(s, 'halt_at', now) end
  put(s, 'halt', reason)
  put(s, 'halt_by', by)
  put(s, 'halt_fp', fp)
  put(s, 'halt_probe', probe_at)
  put(s, 'auth', 0)
  if reason == 'authentication' and fp ~= '' then put(s, 'bad:' .. fp, now) end
end

-- shutter: a refusal if the source+path is shut for this caller.
function M.shutter(t, source)
  local s = t.c.s
  local throttled = num(s, 'thr')
  if throttled > now and throttled <= now + DAY then return M.no('throttle', throttled - now, true, false) end
  if source.fp ~= '' and s.v['bad:' .. source.fp] then
    local refusal = M.no('halt', FOREVER, true, false)
    refusal.reason = 'authentication'
    return refusal
  end
  local reason = M.str(s, 'halt')
  if reason ~= '' then
    local due = num(s, 'halt_probe')
    if reason == 'authentication' and source.fp ~= '' and source.fp ~= M.str(s, 'halt_fp') then
      due = now -- another token than those that were refused
    end
    local refusal
    if due == 0 then
      refusal = M.no('halt', FOREVER, true, false)
    elseif due > now and due <= now + 7 * DAY then
      refusal = M.no('halt', due - now, true, false)
    else
      refusal = M.halfopen(t, s, 'halt')
    end
    if refusal then refusal.reason = reason end
    return refusal
  end
  if num(s, 'brk') == 1 then
    local untill = num(s, 'brk_until')
    if untill > now and untill <= now + num(M.state('tuning'), 'breaker_cooldown_max') then return M.no('breaker', untill - now, true, false) end
    return M.halfopen(t, s, 'breaker')
  end
end
