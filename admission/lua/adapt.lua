-- Part of exchange: what a source+path allows when nobody has said (R16). The
-- permits (lim, ×1000) and the requests per minute (rl, ×1000) are learned from
-- throttles, by the whole fleet together.

-- permits_of: how many calls may be in flight, configured and learned.
function M.permits_of(s)
  local cap, most = num(s, 'lc'), num(s, 'am')
  if most == 0 then return cap end
  if cap <= 0 then cap = most end
  return min(cap, max(1, floor(num(s, 'lim') / 1000)))
end

-- rate_of: requests per minute and burst.
function M.rate_of(s)
  local per_minute = num(s, 'lr')
  local learned = num(s, 'rl') / 1000
  if learned > 0 and num(s, 'am') > 0 and (per_minute <= 0 or learned < per_minute) then return learned, 1 end
  return per_minute, num(s, 'lrb')
end

-- measure keeps the rate of successes (rq, per minute ×1000) over about a second.
function M.measure(s)
  local from = num(s, 'rw')
  M.add(s, 'rn', 1)
  if from == 0 or now < from or now - from > 5000 then
    put(s, 'rw', now)
    put(s, 'rn', 1)
  elseif now - from >= 1000 then
    local rate, old = num(s, 'rn') * 60000000 / (now - from), num(s, 'rq')
    put(s, 'rq', old == 0 and rate or (old + rate) / 2)
    put(s, 'rp', max(rate, num(s, 'rp') * 0.97)) -- the best second of late
    put(s, 'rw', now)
    put(s, 'rn', 0)
  end
end

-- grow_rate: quickly while the rate is a coarse guess, then back to the last
-- cut, and slowly beyond it, faster the longer no throttle comes. Only a rate
-- that is used can be known to be too low.
function M.grow_rate(s)
  local rl, last = num(s, 'rl'), num(s, 'rg')
  if rl == 0 then return end
  put(s, 'rg', now)
  local dt = min(1, max(0, (now - last) / 1000))
  if num(s, 'rq') < 0.7 * rl then return end
  local calm = max(0, now - num(s, 'cut')) / 1000
  local growth = min(0.12, 0.003 * 2 ^ (calm / 5)) -- a second; doubles every 5 s without a throttle
  if num(s, 'rss') == 1 then
    growth = 0.12
  elseif rl < num(s, 'rmax') * 0.99 then
    growth = 0.02
  end
  put(s, 'rl', rl * (1 + growth * dt))
end

function M.grow(s)
  if num(s, 'am') == 0 then return end
  if num(s, 'tq') > 10 then put(s, 'tq', num(s, 'tq') * 0.95) end
  M.grow_rate(s)
  local lim = num(s, 'lim')
  if now - num(s, 'full') > 2 * num(s, 'lat') + 100 then return end -- a limit nobody reached teaches nothing
  local cap = num(s, 'lc')
  if cap <= 0 then cap = num(s, 'am') end
  if lim >= cap * 1000 then return end
  if num(s, 'ss') == 1 then
    lim = lim + 1000
  else
    local gap, calm = num(s, 'wmax') - lim, max(0, now - num(s, 'cut')) / 1000
    local coarse = num(s, 'rss') == 1 or num(s, 'rl') == 0
    local step = coarse and 400 or min(1000, 20 + 8 * calm)
    if gap > 0.05 * lim then step = max(1000, gap * 0.3) end
    lim = lim + step * 1000 / lim
  end
  put(s, 'lim', min(lim, cap * 1000))
end

-- cut_rate: the first guess is what was under way over a call's latency.
function M.cut_rate(s, lim)
  local rl, recent = num(s, 'rl'), now - num(s, 'cut') < 1500
  if rl == 0 then
    if num(s, 'lat') == 0 then return end
    rl = lim * 60000 / num(s, 'lat')
    put(s, 'rss', 1)
  end
  local best = num(s, 'rp')
  if best > 0 and rl > best * 1.1 and num(s, 'rss') == 0 then rl = best * 1.05 end -- not the rate was what bound
  put(s, 'rmax', rl)
  put(s, 'rg', now)
  put(s, 'rl', max(1000, rl * ((recent or num(s, 'rss') == 1) and 0.95 or 0.98)))
  if num(s, 'rl') > 0 and not recent then put(s, 'rss', 0) end
end

-- cut: once per congestion event. Only a call admitted after the last cut can
-- tell that the last cut was not enough. True if this throttle was such news.
function M.cut(s, admitted)
  local last = num(s, 'cut')
  if admitted <= last and last <= now then return false end
  if num(s, 'am') == 0 then
    put(s, 'cut', now)
    return true
  end
  local persist = num(s, 'tq') + 50 -- ×1000: the share of throttles among late answers
  put(s, 'tq', min(1000, persist))
  local factor = persist > 150 and 0.5 or 0.85
  local lim = min(num(s, 'lim'), max(1, num(s, 'inflight')) * 1000)
  put(s, 'wmax', lim)
  put(s, 'lim', max(num(M.state('tuning'), 'aimd_floor') * 1000, lim * factor))
  put(s, 'ss', 0)
  M.cut_rate(s, lim)
  put(s, 'cut', now)
  return true
end

-- ramp: after a shut source reopens, concurrency starts from the floor.
function M.ramp(s)
  put(s, 'lim', num(M.state('tuning'), 'aimd_floor') * 1000)
  put(s, 'ss', 1)
end
