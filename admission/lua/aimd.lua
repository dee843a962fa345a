-- Part of exchange and check: AIMD learns the concurrency and the request rate of a source+path from its throttles.
-- Fields that end in _milli are ×1000. Rates are per minute. aimd_cap is 0 if AIMD is off.

-- Returns the configured limit, or the AIMD cap if no limit is configured.
function M.concurrency_cap(st)
  local configured = num(st, 'limit_concurrency')
  return configured > 0 and configured or num(st, 'aimd_cap')
end

-- Returns how many calls may be in flight: the smaller of the configured and the learned limit; 0 = no limit.
function M.concurrency_of(st)
  if num(st, 'aimd_cap') == 0 then return num(st, 'limit_concurrency') end
  return min(M.concurrency_cap(st), max(1, floor(num(st, 'learned_concurrency_milli') / 1000)))
end

-- Returns requests per minute and burst: the smaller of the configured and the learned rate; 0 = no limit.
function M.request_rate_of(st)
  local per_minute = num(st, 'limit_requests_per_minute')
  local learned = num(st, 'learned_rate_milli') / 1000
  if learned > 0 and num(st, 'aimd_cap') > 0 and (per_minute <= 0 or learned < per_minute) then return learned, 1 end
  return per_minute, num(st, 'limit_request_burst')
end

-- Counts a success. Measures the success rate over windows of about one second.
function M.measure(st)
  local from = num(st, 'success_window_at')
  M.add(st, 'success_count', 1)
  if from == 0 or now < from or now - from > 5000 then
    put(st, 'success_window_at', now)
    put(st, 'success_count', 1)
  elseif now - from >= 1000 then
    local rate, old = num(st, 'success_count') * 60000000 / (now - from), num(st, 'success_rate_milli')
    put(st, 'success_rate_milli', old == 0 and rate or (old + rate) / 2)
    put(st, 'best_success_rate_milli', max(rate, num(st, 'best_success_rate_milli') * 0.97)) -- decays by 3 % per window
    put(st, 'success_window_at', now)
    put(st, 'success_count', 0)
  end
end

-- Grows the learned rate. A coarse guess grows by 12 % a second. Below the rate of the last cut the growth is 2 % a
-- second. Above it, growth starts slowly and doubles every 5 s without a throttle. A rate that is not used up does
-- not grow.
function M.grow_rate(st)
  local rate, last = num(st, 'learned_rate_milli'), num(st, 'rate_grown_at')
  if rate == 0 then return end
  put(st, 'rate_grown_at', now)
  local seconds = min(1, max(0, (now - last) / 1000))
  if num(st, 'success_rate_milli') < 0.7 * rate then return end
  local since_cut = max(0, now - num(st, 'cut_at')) / 1000
  local growth = min(0.12, 0.003 * 2 ^ (since_cut / 5)) -- per second
  if num(st, 'rate_is_coarse') == 1 then
    growth = 0.12
  elseif rate < num(st, 'rate_at_cut_milli') * 0.99 then
    growth = 0.02
  end
  put(st, 'learned_rate_milli', rate * (1 + growth * seconds))
end

-- Grows the learned concurrency after a success. A limit that is not reached does not grow.
function M.grow(st)
  if num(st, 'aimd_cap') == 0 then return end
  if num(st, 'throttle_share_milli') > 10 then put(st, 'throttle_share_milli', num(st, 'throttle_share_milli') * 0.95) end
  M.grow_rate(st)
  local learned, cap = num(st, 'learned_concurrency_milli'), M.concurrency_cap(st) * 1000
  if now - num(st, 'limit_reached_at') > 2 * num(st, 'latency_ms') + 100 then return end
  if learned >= cap then return end
  if num(st, 'slow_start') == 1 then
    learned = learned + 1000
  else
    local gap, since_cut = num(st, 'concurrency_at_cut_milli') - learned, max(0, now - num(st, 'cut_at')) / 1000
    local coarse = num(st, 'rate_is_coarse') == 1 or num(st, 'learned_rate_milli') == 0
    local step = coarse and 400 or min(1000, 20 + 8 * since_cut)
    if gap > 0.05 * learned then step = max(1000, gap * 0.3) end
    learned = learned + step * 1000 / learned
  end
  put(st, 'learned_concurrency_milli', min(learned, cap))
end

-- Lowers the learned rate. The first guess is the calls in flight divided by the latency.
function M.cut_rate(st, in_flight)
  local rate, recent = num(st, 'learned_rate_milli'), now - num(st, 'cut_at') < 1500
  if rate == 0 then
    if num(st, 'latency_ms') == 0 then return end
    rate = in_flight * 60000 / num(st, 'latency_ms')
    put(st, 'rate_is_coarse', 1)
  end
  local best, coarse = num(st, 'best_success_rate_milli'), num(st, 'rate_is_coarse') == 1
  if best > 0 and rate > best * 1.1 and not coarse then rate = best * 1.05 end -- concurrency, not this rate, limited the calls
  put(st, 'rate_at_cut_milli', rate)
  put(st, 'rate_grown_at', now)
  put(st, 'learned_rate_milli', max(1000, rate * ((recent or coarse) and 0.95 or 0.98)))
  if not recent then put(st, 'rate_is_coarse', 0) end
end

-- Lowers the learned concurrency and rate, once per congestion event. Returns false and changes nothing if the
-- throttled call was admitted before the last cut.
function M.cut(st, admitted_at)
  local last = num(st, 'cut_at')
  if admitted_at <= last and last <= now then return false end
  if num(st, 'aimd_cap') > 0 then
    local throttled = num(st, 'throttle_share_milli') + 50 -- share of recent responses, ×1000
    put(st, 'throttle_share_milli', min(1000, throttled))
    local used = min(num(st, 'learned_concurrency_milli'), max(1, num(st, 'in_flight')) * 1000)
    put(st, 'concurrency_at_cut_milli', used)
    put(st, 'learned_concurrency_milli', max(num(M.state('tuning'), 'aimd_floor') * 1000, used * (throttled > 150 and 0.5 or 0.85)))
    put(st, 'slow_start', 0)
    M.cut_rate(st, used)
  end
  put(st, 'cut_at', now)
  return true
end

-- Resets the learned concurrency to the floor and enters slow start. It runs after the source was blocked.
function M.restart_from_floor(st)
  put(st, 'learned_concurrency_milli', num(M.state('tuning'), 'aimd_floor') * 1000)
  put(st, 'slow_start', 1)
end
