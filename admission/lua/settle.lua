-- Part of exchange: settle ends one attempt: report, refund, release in one.

-- correct turns the reservation of an attempt into what it used.
local function correct(r, j)
  local units = rnum(j, 'units')
  local used = min(max(0, r.used), units)
  if rnum(j, 'kept') == 1 then
    move(j.bk, 0, used - units)
  else
    move(j.bk, -units, used)
  end
  local s = state('s:' .. j.src .. ':' .. j.path)
  credit(s, 'utat', num(s, 'lu'), units - used, rnum(j, 'start'))
  credit(g, 'utat', num(g, 'lu'), units - used, rnum(j, 'start'))
end

-- advance writes what the attempt was into the record.
local function advance(r, j, counted, pb)
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
  if rnum(j, 'ff') == 0 then j.ff = now end
  j.spent = rnum(j, 'spent') + r.latency + r.backoff
  j.t = r.attempt
end

local ADVANCED = { 'gen', 'counted', 'pb', 'streak', 'same', 'thr', 'last', 'spent', 'ff', 'fs', 'fn', 'a', 't', 'la' }

local function finish(r, j)
  if r.clear then
    redis.call('DEL', P .. 'j:' .. r.key)
    redis.call('HSET', P .. 'j:' .. r.key, 't', r.attempt, 'gen', int(max(r.gen, rnum(j, 'gen'))))
    redis.call('PEXPIRE', P .. 'j:' .. r.key, int(TOMBSTONE_MS))
  else
    save(r.key, j, ADVANCED)
  end
end

-- late is the settle of an attempt that was already given up as lost; another
-- one may be running. Only the money and the counts are put right.
local function late(r, j)
  move(j.lbk, 0, min(max(0, r.used), rnum(j, 'lunits')) - rnum(j, 'lunits'))
  j.la = ''
  j.counted, j.pb = max(0, rnum(j, 'counted') + r.counted - 1), max(0, rnum(j, 'pb') + r.pb - 1)
  save(r.key, j, { 'la', 'counted', 'pb' })
  report(r, { src = r.source, path = r.path, at = r.at, epoch = r.epoch, probe = 0 })
  return 3
end

-- orphan is the settle of an attempt Redis knows nothing of: its data was lost.
-- It charges what was used; if no other attempt runs, it writes the record.
local function orphan(r, j)
  move(r.bk, 0, max(0, r.used))
  report(r, { src = r.source, path = r.path, at = r.at, epoch = r.epoch, probe = 0 })
  if j.a ~= '' then return 2 end
  if r.channel == 'none' and r.pb == 0 then -- given back unused: only the tombstone matters
    j.t = r.attempt
    save(r.key, j, { 't' })
  elseif j.t == '' then
    j.src, j.path = r.source, r.path
    advance(r, j, r.counted, r.pb)
    finish(r, j)
  end
  return 2
end

local function settle(r)
  local j = record(r.key)
  if j.t == r.attempt then return 1 end
  if j.a ~= r.attempt then
    if j.la == r.attempt then return late(r, j) end
    return orphan(r, j)
  end
  correct(r, j)
  report(r, j)
  release(r.key, j)
  j.a = ''
  advance(r, j, r.counted, r.pb - 1)
  finish(r, j)
  return 0
end
