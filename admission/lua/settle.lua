-- Part of exchange: settle ends one attempt: report, refund, release in one.

-- correct turns the reservation of an attempt into what it used.
function M.correct(r, j)
  local units = rnum(j, 'units')
  local used = min(max(0, r.used), units)
  if j.kept then
    M.move(rstr(j, 'bk'), 0, used - units)
  else
    M.move(rstr(j, 'bk'), -units, used)
  end
  if used == units then return end
  local s = M.state('s:' .. j.src .. ':' .. j.path)
  M.credit(s, 'utat', num(s, 'lu'), units - used, rnum(j, 'start'))
  M.credit(g, 'utat', num(g, 'lu'), units - used, rnum(j, 'start'))
end

-- advance writes what the attempt was into the record.
function M.advance(r, j, counted, pb)
  if rnum(j, 'gen') < r.gen then j.gen = r.gen end
  j.counted, j.pb = max(0, rnum(j, 'counted') + counted), max(0, rnum(j, 'pb') + pb)
  j.same = j.last == r.outcome and rnum(j, 'same') + 1 or 1
  j.last = r.outcome
  if r.counted > 0 then
    j.streak = rnum(j, 'streak') + 1
    j.fn = j.fs == j.src and rnum(j, 'fn') + 1 or 1
    j.fs = j.src
  elseif r.channel == 'success' then
    j.streak, j.fn = 0, 0
  end
  j.thr = r.outcome == 'throttled' and rnum(j, 'thr') + 1 or 0
  j.ff = j.ff or now
  j.spent = rnum(j, 'spent') + r.latency + r.backoff
end

-- finish writes the record after an attempt; of a task that is over nothing is
-- kept but that it was settled.
function M.finish(r, j, counted, pb)
  M.remember(j, r.attempt)
  if r.clear then return M.bury(r.key) end
  M.advance(r, j, counted, pb)
  if j.la and r.channel ~= 'none' then j.told = 1 end -- given back unused, its worker may never have said what was lost
  M.save(r.key)
end

-- late is the settle of an attempt that was already given up as lost; another
-- one may be running. Only the money and the counts are put right.
function M.late(r, j)
  M.move(rstr(j, 'lbk'), 0, min(max(0, r.used), rnum(j, 'lunits')) - rnum(j, 'lunits'))
  M.forget_lost(j)
  j.counted, j.pb = max(0, rnum(j, 'counted') + r.counted - 1), max(0, rnum(j, 'pb') + r.pb - 1)
  M.remember(j, r.attempt)
  M.save(r.key)
  M.report(r, { src = r.source, path = r.path, at = r.at, epoch = r.epoch })
  return 3
end

-- orphan is the settle of an attempt Redis knows nothing of: its data was lost.
-- It charges what was used; if no other attempt runs, it writes the record.
function M.orphan(r, j)
  M.move(r.bk, 0, max(0, r.used))
  M.report(r, { src = r.source, path = r.path, at = r.at, epoch = r.epoch })
  if j.a or j.t or r.channel == 'none' and r.pb == 0 then -- only the tombstone matters: a repeat must charge nothing
    M.remember(j, r.attempt)
    M.save(r.key)
    return 2
  end
  j.src, j.path = r.source, r.path
  M.finish(r, j, r.counted, r.pb)
  return 2
end

function M.settle(r)
  local j = M.record(r.key)
  if M.settled(j, r.attempt) then return 1 end
  if j.a ~= r.attempt then
    if j.la == r.attempt then return M.late(r, j) end
    return M.orphan(r, j)
  end
  M.correct(r, j)
  M.report(r, j)
  M.release(r.key, j)
  j.a = nil
  M.finish(r, j, r.counted, r.pb - 1)
  return 0
end
