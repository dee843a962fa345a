-- acquire decides one call. Nothing is taken unless every gate agrees.
local function granted(j, lost)
  return { 1, j.src, rnum(j, 'epoch'), rnum(j, 'at'), rnum(j, 'delay'), rnum(j, 'probe'), j.day, j.month,
    rnum(j, 'gen'), rnum(j, 'counted'), rnum(j, 'pb') - 1, rnum(j, 'streak'), rnum(j, 'same'), rnum(j, 'thr'),
    j.last, rnum(j, 'spent'), rnum(j, 'ff'), lost[1], lost[2], lost[3], lost[4] }
end

local function acquire(r)
  local j = record(r.key)
  local lost = { '', '', 0, 0 }
  if j.a ~= '' then
    local score = tonumber(redis.call('ZSCORE', P .. 'p', r.key) or '')
    if score and score > now then
      if j.a == r.attempt then return granted(j, lost) end
      return { 2, score, now }
    end
    if j.a ~= r.attempt then
      lost = { j.a, j.src, rnum(j, 'units'), rnum(j, 'at') }
      j.counted, j.streak = rnum(j, 'counted') + 1, rnum(j, 'streak') + 1
    end
  end
  local source = r.pinned ~= '' and r.pinned or sources[1].name
  local s, g = state('s:' .. source .. ':' .. r.path), state('g')
  j.src, j.path, j.grp, j.a, j.units = source, r.path, r.group, r.attempt, r.units
  j.at, j.epoch, j.day, j.month, j.delay, j.probe = now, num(s, 'epoch'), '', '', 0, 0
  if r.gen > rnum(j, 'gen') then
    j.gen, j.counted, j.pb, j.streak, j.same, j.thr, j.last, j.spent, j.ff = r.gen, 0, 0, 0, 0, 0, '', 0, 0
  end
  j.pb = rnum(j, 'pb') + 1
  redis.call('ZADD', P .. 'p', int(now + ttl), r.key)
  add(s, 'inflight', 1)
  add(g, 'inflight', 1)
  local fields = {}
  for i = 1, #RECORD do
    fields[#fields + 1] = RECORD[i]
    fields[#fields + 1] = text(j[RECORD[i]])
  end
  save(r.key, fields)
  return granted(j, lost)
end
