-- Part of exchange: acquire decides one call. Nothing is taken unless every
-- gate agrees.

function M.granted(j)
  return { 1, j.src, rnum(j, 'epoch'), rnum(j, 'at'), max(0, rnum(j, 'start') - now_us), rnum(j, 'probe'), j.bk,
    rnum(j, 'gen'), rnum(j, 'counted'), rnum(j, 'pb') - 1, rnum(j, 'streak'), rnum(j, 'same'), rnum(j, 'thr'),
    j.last, rnum(j, 'spent'), rnum(j, 'ff'), j.la, j.lsrc, rnum(j, 'lunits'), rnum(j, 'lat') }
end

-- budget checks one period of one scope. Its name is kept for the charge.
function M.budget(t, gate, scope, period, left, cap)
  if cap <= 0 then return end
  local r = t.r
  if not r.bounded then return M.no('unbounded', FOREVER, true, true) end
  if r.units > cap then return M.no('units_too_many', FOREVER, true, true) end
  local name = scope .. ':' .. period
  local b = M.state('b:' .. name)
  if b.v.spent == nil then
    t.missing[#t.missing + 1] = name
    return
  end
  if num(b, 'reserved') + num(b, 'spent') + r.units > cap then return M.no(gate, left, true, false) end
  t.budgets[#t.budgets + 1] = name
end

-- budgets checks day and month of a scope whose limits are in st.
function M.budgets(t, prefix, scope, st)
  local day, month = num(st, 'ld'), num(st, 'lm')
  if day <= 0 and month <= 0 then return end
  local p = M.periods()
  return M.budget(t, prefix .. 'units_day', scope, p.day, p.day_left, day)
      or M.budget(t, prefix .. 'units_month', scope, p.month, p.month_left, month)
end

-- rate checks one GCRA gate and moves the start of the call behind it.
function M.rate(t, gate, st, field, per_minute, burst, n)
  if per_minute <= 0 or n <= 0 then return end
  local start, interval = M.gcra(st, field, per_minute, burst, n)
  local ahead = min(lookahead, 15000 + 1.5 * interval)
  if start > now_us + ahead then
    return M.no(gate, M.place(st, field .. '_wait', start - ahead, interval, t.r), false, false)
  end
  t.start = max(t.start, start)
  t.rates[#t.rates + 1] = { st, field, per_minute, burst, n }
end

-- permits checks a number of calls in flight. When one ends is not known: a
-- waiter comes back after about the time between two ends.
function M.permits(t, gate, st, field, limit, s)
  local held = num(st, field)
  if limit <= 0 or held < limit then return end
  local gap = min(5000000, max(5000, max(num(s, 'lat'), 50) * 1000 / limit))
  return M.no(gate, min(5000, M.place(st, field .. '_wait', now_us + gap, gap, t.r)), false, false)
end

-- ceiling: a group's share of the permits and of the rate of a source+path.
function M.ceiling(t, q, s, scope)
  local share = num(q, 'share') / 1000
  if share <= 0 then return end
  local limit = M.permits_of(s)
  local refusal = limit > 0 and M.permits(t, 'group_concurrency', q, 'in:' .. scope, max(1, floor(limit * share)), s)
  if refusal then return refusal end
  local per_minute, burst = M.rate_of(s)
  return M.rate(t, 'group_requests', q, 'tat:' .. scope, per_minute * share, burst, 1)
end

-- try asks every gate of one source; nil, or the first refusal.
function M.try(t, source)
  local r = t.r
  local s = M.state('s:' .. source.name .. ':' .. r.path)
  if s.v.rev == nil then
    t.unseeded = true
    return M.no('halt', FOREVER, true, false)
  end
  t.s, t.start, t.rates, t.budgets, t.missing, t.probe = s, now_us, {}, {}, {}, 0
  local q = r.group ~= '' and M.state('grp:' .. r.group) or nil
  local scope = source.name .. ':' .. r.path
  local refusal = M.shutter(t, source)
      or M.permits(t, 'concurrency', s, 'inflight', M.permits_of(s), s)
      or M.permits(t, 'global_concurrency', g, 'inflight', num(g, 'lc'), s)
      or (q and M.ceiling(t, q, s, scope))
      or M.rate(t, 'requests', s, 'tat', M.rate_of(s))
      or M.rate(t, 'units', s, 'utat', num(s, 'lu'), max(1, num(s, 'lub')), r.units)
      or M.rate(t, 'global_requests', g, 'tat', num(g, 'lr'), max(1, num(g, 'lrb')), 1)
      or M.rate(t, 'global_units', g, 'utat', num(g, 'lu'), max(1, num(g, 'lub')), r.units)
      or M.budgets(t, '', scope, s)
      or M.budgets(t, 'global_', 'g', g)
      or (q and M.budgets(t, 'group_', 'group/' .. r.group, q))
  if refusal then return refusal end
  if #t.missing > 0 then return M.no('missing', 0, true, false) end
end

-- take charges all gates of the source that was tried last.
function M.take(t, j, source)
  local r, s = t.r, t.s
  for i = 1, #t.rates do
    local c = t.rates[i]
    M.charge(c[1], c[2], c[3], c[4], c[5], t.start)
  end
  local names = table.concat(t.budgets, ',')
  M.move(names, r.units, 0)
  redis.call('ZADD', P .. 'p', int(now + ttl), r.key)
  M.count(source.name, r.path, r.group, 1)
  if num(s, 'inflight') >= M.permits_of(s) then put(s, 'full', now) end
  if t.probe == 1 then put(s, 'probe', r.key .. ' ' .. r.attempt) end
  j.a, j.src, j.path, j.grp, j.units, j.at, j.epoch = r.attempt, source.name, r.path, r.group, r.units, now, num(s, 'epoch')
  j.bk, j.start, j.probe, j.kept, j.pb = names, t.start, t.probe, 0, rnum(j, 'pb') + 1
  M.save(r.key, j)
end

-- inherit deals with the attempt of the key that was never settled.
function M.inherit(j, r)
  M.release(r.key, j)
  M.forfeit(j)
  if j.a == r.attempt then -- our own, its answer was lost for longer than a permit lives: it was never sent
    M.move(j.bk, 0, -rnum(j, 'units'))
    j.pb = max(0, rnum(j, 'pb') - 1)
    return
  end
  j.la, j.lsrc, j.lunits, j.lat, j.lbk, j.told = j.a, j.src, rnum(j, 'units'), rnum(j, 'at'), j.bk, ''
  j.counted, j.streak = rnum(j, 'counted') + 1, rnum(j, 'streak') + 1
  j.same = j.last == 'crash' and rnum(j, 'same') + 1 or 1
  j.last = 'crash'
  if rnum(j, 'ff') == 0 then j.ff = rnum(j, 'at') end
end

function M.renumber(j, gen)
  j.gen, j.counted, j.pb, j.streak, j.same, j.thr, j.last, j.spent, j.ff, j.fs, j.fn = gen, 0, 0, 0, 0, 0, '', 0, 0, '', 0
end

function M.acquire(r)
  local j = M.record(r.key)
  if M.settled(j, r.attempt) then return { 5 } end
  if j.a ~= '' then
    local score = tonumber(redis.call('ZSCORE', P .. 'p', r.key) or '')
    if score and score > now then
      if j.a == r.attempt then return M.granted(j) end
      return { 2, score, now }
    end
  end
  local t = { r = r }
  local best, missing
  local all_shut = true
  local list = M.candidates(r, j)
  for i = 1, #list do
    local refusal = M.try(t, list[i])
    if not refusal then
      if j.told == '1' then j.la, j.lsrc, j.lunits, j.lat, j.lbk, j.told = '', '', 0, 0, '', '' end
      if j.a ~= '' then M.inherit(j, r) end
      if r.gen > rnum(j, 'gen') then M.renumber(j, r.gen) end
      M.take(t, j, list[i])
      return M.granted(j)
    end
    if refusal.gate == 'missing' then missing = t.missing end
    refusal.source = list[i].name
    all_shut = all_shut and refusal.shut
    if best == nil or refusal.wait < best.wait then best = refusal end
  end
  if t.unseeded then return { 4 } end
  if missing then return { 3, now, unpack(missing) } end
  if not best then return { 0, 'no_candidate', '', FOREVER, 1, 0, '' } end
  return { 0, best.gate, best.source, max(1, ceil(best.wait)), all_shut and 1 or 0, best.never and 1 or 0, best.reason or '' }
end
