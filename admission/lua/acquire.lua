-- Part of exchange: acquire decides one call. Nothing is taken unless every
-- gate agrees.

-- granted is what the caller hears: the permit and, if the task has a history,
-- that.
function M.granted(j)
  local out = { 1, j.src, rnum(j, 'epoch'), rnum(j, 'at'), max(0, rnum(j, 'start') - now_us), rnum(j, 'probe'), rstr(j, 'bk') }
  if j.ff or j.gen or j.last or j.la or rnum(j, 'pb') > 1 then
    local past = { rnum(j, 'gen'), rnum(j, 'counted'), rnum(j, 'pb') - 1, rnum(j, 'streak'), rnum(j, 'same'), rnum(j, 'thr'), rstr(j, 'last'),
      rnum(j, 'spent'), rnum(j, 'ff'), rstr(j, 'la'), rstr(j, 'lsrc'), rnum(j, 'lunits'), rnum(j, 'lat') }
    for i = 1, #past do out[#out + 1] = past[i] end
  end
  return out
end

-- gates: all that a call in this lane has to pass, in the order it is asked.
-- They are put together once a script, after its settles, which change what AIMD
-- allows.
function M.gates(c)
  c.permits, c.rates, c.budgets = {}, {}, {}
  local s, q = c.s, c.q
  local limit, per_minute, burst = M.permits_of(s), M.rate_of(s)
  local share = q and num(q, 'share') / 1000 or 0
  M.permit_gate(c, 'concurrency', s, 'inflight', limit)
  M.permit_gate(c, 'global_concurrency', g, 'inflight', num(g, 'lc'))
  if share > 0 then -- a group's share of the permits and of the rate of a source+path
    if limit > 0 then M.permit_gate(c, 'group_concurrency', q, c.inside, max(1, floor(limit * share))) end
    M.rate_gate(c, { gate = 'group_requests', st = q, field = 'tat:' .. c.name }, per_minute * share, burst)
  end
  M.rate_gate(c, { gate = 'requests', st = s, field = 'tat' }, per_minute, burst)
  M.rate_gate(c, { gate = 'units', st = s, field = 'utat', units = true }, num(s, 'lu'), num(s, 'lub'))
  M.rate_gate(c, { gate = 'global_requests', st = g, field = 'tat' }, num(g, 'lr'), num(g, 'lrb'))
  M.rate_gate(c, { gate = 'global_units', st = g, field = 'utat', units = true }, num(g, 'lu'), num(g, 'lub'))
  M.budget_gates(c, '', c.name, s)
  M.budget_gates(c, 'global_', 'g', g)
  if q then M.budget_gates(c, 'group_', 'group/' .. c.group, q) end
  local names = {}
  for i = 1, #c.budgets do names[i] = c.budgets[i].budget.name end
  c.names = table.concat(names, ',')
end

function M.permit_gate(c, gate, st, field, limit)
  if limit > 0 then c.permits[#c.permits + 1] = { gate = gate, st = st, field = field, limit = limit } end
end

function M.rate_gate(c, gate, per_minute, burst)
  if per_minute <= 0 then return end
  local interval = 60000000 / per_minute
  gate.rate, gate.interval, gate.burst = M.tat_of(gate.st, gate.field), interval, max(1, burst)
  gate.ahead = min(lookahead, 15000 + 1.5 * interval) -- how late a call may start, µs
  gate.most = gate.units and DAY * 1000 or (gate.burst + 2) * interval + 2000000 -- how far its tat may be; one call may take very many units
  c.rates[#c.rates + 1] = gate
end

-- budget_gates: day and month of the scope whose limits are in st.
function M.budget_gates(c, prefix, scope, st)
  local day, month = num(st, 'ld'), num(st, 'lm')
  if day <= 0 and month <= 0 then return end
  local p = M.periods()
  if day > 0 then M.budget_gate(c, prefix .. 'units_day', scope .. ':' .. p.day, day, p.day_left) end
  if month > 0 then M.budget_gate(c, prefix .. 'units_month', scope .. ':' .. p.month, month, p.month_left) end
end

function M.budget_gate(c, gate, name, cap, left)
  c.budgets[#c.budgets + 1] = { gate = gate, budget = M.budget_of(name), cap = cap, left = left }
end

-- permit checks a number of calls in flight. When one ends is not known: a
-- waiter comes back after about the time between two ends.
function M.permit(gate, c, r)
  if num(gate.st, gate.field) < gate.limit then return end
  local gap = min(5000000, max(5000, max(num(c.s, 'lat'), 50) * 1000 / gate.limit))
  return M.no(gate.gate, min(5000, M.place(gate.st, gate.field, now_us + gap, gap, r)), false, false)
end

-- rate checks one GCRA gate and moves the start of the call behind it.
function M.rate(gate, t, r)
  local n = gate.units and r.units or 1
  if n <= 0 then return end
  local start = M.gcra(gate, n)
  if start > now_us + gate.ahead then
    return M.no(gate.gate, M.place(gate.st, gate.field, start - gate.ahead, gate.interval, r), false, false)
  end
  if start > t.start then t.start = start end
end

-- budget checks one period of one scope; one that is missing is noted.
function M.budget(gate, t, r)
  if not r.bounded then return M.no('unbounded', FOREVER, true, true) end
  if r.units > gate.cap then return M.no('units_too_many', FOREVER, true, true) end
  local b = gate.budget
  local blind = b.there and 0 or M.blind()
  if blind > 0 then
    return M.no('units', blind, false, false) -- what calls under way reserve is not known yet
  elseif not b.there then
    t.missing = t.missing or {}
    t.missing[#t.missing + 1] = b.name
  elseif b.reserved + b.spent + r.units > gate.cap then
    return M.no(gate.gate, gate.left, true, false)
  end
end

-- try asks every gate of one source; nil, or the first refusal.
function M.try(t, source)
  local r = t.r
  local c = M.lane(source.name, r.path, r.group)
  if c.s.v.rev == nil then
    t.unseeded = true
    return M.no('halt', FOREVER, true, false)
  end
  if not c.permits then M.gates(c) end
  t.c, t.start, t.missing, t.probe = c, now_us, nil, nil
  local refusal = M.shutter(t, source)
  local permits, rates, budgets = c.permits, c.rates, c.budgets
  for i = 1, #permits do refusal = refusal or M.permit(permits[i], c, r) end
  for i = 1, #rates do refusal = refusal or M.rate(rates[i], t, r) end
  for i = 1, #budgets do refusal = refusal or M.budget(budgets[i], t, r) end
  if refusal then return refusal end
  if t.missing then return M.no('missing', 0, true, false) end
end

-- take charges all gates of the source that was tried last.
function M.take(t, j)
  local r, c = t.r, t.c
  for i = 1, #c.rates do
    local n = c.rates[i].units and r.units or 1
    if n > 0 then M.charge(c.rates[i], n, t.start) end
  end
  for i = 1, #c.budgets do
    local b = c.budgets[i].budget
    b.reserved, b.changed = b.reserved + r.units, true
  end
  M.extend(r.key, now + ttl)
  M.count(c, 1)
  if num(c.s, 'inflight') >= M.permits_of(c.s) then put(c.s, 'full', now) end
  if t.probe then put(c.s, 'probe', r.key .. ' ' .. r.attempt) end
  j.a, j.src, j.path, j.grp, j.units, j.at, j.epoch = r.attempt, t.source, r.path, r.group, r.units, now, num(c.s, 'epoch')
  j.bk, j.start, j.probe, j.kept, j.pb = c.names, t.start, t.probe, nil, rnum(j, 'pb') + 1
  M.save(r.key)
end

-- inherit deals with the attempt of the key that was never settled.
function M.inherit(j, r)
  M.release(r.key, j)
  M.forfeit(j)
  if j.a == r.attempt then -- our own, its answer was lost for longer than a permit lives: it was never sent
    M.move(rstr(j, 'bk'), 0, -rnum(j, 'units'))
    j.pb = max(0, rnum(j, 'pb') - 1)
    return
  end
  j.la, j.lsrc, j.lunits, j.lat, j.lbk, j.told = j.a, j.src, j.units, j.at, j.bk, nil
  j.counted, j.streak = rnum(j, 'counted') + 1, rnum(j, 'streak') + 1
  j.same = j.last == 'crash' and rnum(j, 'same') + 1 or 1
  j.last = 'crash'
  j.ff = j.ff or j.at
end

-- renumber: a new generation of the task begins, with nothing behind it.
function M.renumber(j, gen)
  for _, field in ipairs({ 'counted', 'pb', 'streak', 'same', 'thr', 'last', 'spent', 'ff', 'fs', 'fn' }) do j[field] = nil end
  j.gen = gen
end

function M.forget_lost(j) j.la, j.lsrc, j.lunits, j.lat, j.lbk, j.told = nil, nil, nil, nil, nil, nil end

function M.acquire(r)
  local j = M.record(r.key)
  if M.settled(j, r.attempt) then return { 5 } end
  local untill = M.permit_end(r.key)
  local running = untill and untill > now -- also if its record was lost
  if running and j.a == r.attempt then return M.granted(j) end
  if r.ended then return { 6 } end
  if running then return { 2, untill, now } end
  local t = { r = r }
  local best, missing
  local all_shut = true
  local list = M.candidates(r, j)
  for i = 1, #list do
    local refusal = M.try(t, list[i])
    if not refusal then
      t.source = list[i].name
      if j.told then M.forget_lost(j) end
      if j.a then M.inherit(j, r) end
      if r.gen > rnum(j, 'gen') then M.renumber(j, r.gen) end
      M.take(t, j)
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
