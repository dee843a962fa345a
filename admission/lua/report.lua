-- Part of exchange: applies a call's outcome to the state of its source+path.

-- Returns the fingerprint of the worker's token for a source, or '' if it is unknown.
function M.fingerprint_of(name)
  for i = 1, #request.sources do
    if request.sources[i].name == name then return request.sources[i].fingerprint or '' end
  end
  return ''
end

-- Halts the call's path, or every path of the source if report.halt is 'source'.
function M.halt_reported(report, record, reason, probe_at)
  local fingerprint = M.fingerprint_of(record.source)
  if report.halt ~= 'source' then
    return M.halt(M.source_state(record.source, record.path), reason, 'auto', fingerprint, probe_at)
  end
  M.each_scope(function(scope, source)
    if source == record.source then M.halt(M.state(scope), reason, 'auto', fingerprint, probe_at) end
  end)
end

-- Halts after an account failure. Authentication failures halt only after breaker_auth_failures in a row.
function M.account_failure(report, record, st)
  put(st, 'failures_in_row', 0)
  local tuning, probe_at = M.state('tuning'), 0
  if report.outcome == 'authentication' then
    M.add(st, 'auth_failures_in_row', 1)
    if num(st, 'auth_failures_in_row') < num(tuning, 'breaker_auth_failures') and text(st, 'halt_reason') == '' then return end
  elseif report.outcome == 'quota' or report.outcome == 'subscription' then
    probe_at = now + num(tuning, 'breaker_probe_quota')
  elseif report.probeable then
    probe_at = now + num(tuning, 'breaker_probe_blocked')
  end
  M.halt_reported(report, record, report.outcome, probe_at)
end

-- Opens the breaker. The cooldown doubles with every failed probe.
function M.trip(st)
  local trips, tuning = num(st, 'breaker_trips'), M.state('tuning')
  M.raise_epoch(st)
  put(st, 'breaker_open', 1)
  put(st, 'breaker_trips', min(trips + 1, 20))
  put(st, 'breaker_probe_at', now + min(num(tuning, 'breaker_cooldown') * 2 ^ trips, num(tuning, 'breaker_cooldown_max')))
end

-- Opens the breaker after breaker_failures failures in a row, unless the source is healthy. A healthy source had a
-- success within the window and fewer than half of its recent calls failed.
function M.failure(st)
  M.add(st, 'failures_in_row', 1)
  local tuning = M.state('tuning')
  if num(st, 'failures_in_row') < num(tuning, 'breaker_failures') then return end
  local healthy = num(st, 'last_success_at') > now - num(tuning, 'breaker_window') and num(st, 'health_milli') > 500
  if not healthy then M.trip(st) end
end

function M.success(st)
  if num(st, 'failures_in_row') ~= 0 then put(st, 'failures_in_row', 0) end
  if num(st, 'auth_failures_in_row') ~= 0 then put(st, 'auth_failures_in_row', 0) end
  put(st, 'last_success_at', now)
end

-- Ends a probe. A success reopens the source+path, and a failure blocks it again. After any other channel the next
-- call becomes the probe.
function M.finish_probe(report, record, st)
  put(st, 'probe', '')
  if report.channel == 'success' then
    M.reopen(st)
    M.success(st)
    M.restart_from_floor(st)
  elseif report.channel == 'failure' then
    if text(st, 'halt_reason') ~= '' then
      put(st, 'halt_probe_at', now + num(M.state('tuning'), 'breaker_cooldown'))
    else
      M.trip(st)
    end
  elseif report.channel == 'account' then
    M.account_failure(report, record, st)
  end
end

-- Halts after breaker_not_found 404s in a row, because the base URL is probably wrong.
function M.count_not_found(report, st)
  if report.outcome ~= 'not_found' then
    if report.channel == 'success' and num(st, 'not_found_in_row') ~= 0 then put(st, 'not_found_in_row', 0) end
    return
  end
  M.add(st, 'not_found_in_row', 1)
  if num(st, 'not_found_in_row') >= num(M.state('tuning'), 'breaker_not_found') then M.halt(st, 'not_found', 'auto', '', 0) end
end

-- Blocks until Retry-After has passed. Without Retry-After it blocks for about a call's latency, once per congestion
-- event. It never shortens a throttle.
function M.throttle(report, st, admitted_at)
  local is_cut, wait = M.cut(st, admitted_at), report.retry_after
  if wait <= 0 and is_cut then wait = num(st, 'latency_ms') == 0 and 250 or min(2000, max(20, num(st, 'latency_ms') * 0.75)) end
  local until_ms = now + min(wait, DAY)
  if wait > 0 and (until_ms > num(st, 'throttled_until') or num(st, 'throttled_until') > now + DAY) then put(st, 'throttled_until', until_ms) end
end

-- Applies a report. It runs before the permit is released, so the load still includes this call.
function M.report(report, record)
  local st = M.source_state(record.source, record.path)
  if st.values.revision == nil or report.channel == 'none' then return end
  local health = M.health(st)
  if report.channel == 'success' then
    if health < 1000 then put(st, 'health_milli', health + max(1, (1000 - health) * 0.1)) end
    if report.latency > 0 then
      local latency = num(st, 'latency_ms')
      put(st, 'latency_ms', latency == 0 and report.latency or latency + (report.latency - latency) * 0.1)
    end
    M.measure(st)
    M.grow(st)
  elseif report.channel == 'failure' or report.channel == 'account' then
    put(st, 'health_milli', health * 0.9)
  end
  if report.outcome == 'throttled' then M.throttle(report, st, record.admitted_at or 0) end
  if (record.epoch or 0) ~= num(st, 'epoch') then return end
  if record.probe and text(st, 'probe') == report.key .. ' ' .. report.attempt then return M.finish_probe(report, record, st) end
  if text(st, 'halt_reason') ~= '' or num(st, 'breaker_open') == 1 then return end
  M.count_not_found(report, st)
  if report.channel == 'account' then
    M.account_failure(report, record, st)
  elseif report.channel == 'failure' then
    M.failure(st)
  elseif report.channel == 'success' then
    M.success(st)
  elseif report.outcome == 'throttled' then
    put(st, 'auth_failures_in_row', 0)
  end
end
