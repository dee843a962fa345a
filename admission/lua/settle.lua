-- settle ends one attempt: report, refund and release in one.
local function settle(r)
  local j = record(r.key)
  if j.t == r.attempt then return 1 end
  if j.a ~= r.attempt then return 2 end
  release(r.key, j)
  if r.clear then
    redis.call('DEL', P .. 'j:' .. r.key)
    save(r.key, { 't', r.attempt }, 600000)
    return 0
  end
  local same = 1
  if j.last == r.outcome then same = rnum(j, 'same') + 1 end
  local streak, thr, ff = rnum(j, 'streak'), 0, rnum(j, 'ff')
  if r.counted > 0 then streak = streak + 1 end
  if r.outcome == 'throttled' then thr = rnum(j, 'thr') + 1 end
  if ff == 0 then ff = now end
  save(r.key, { 'a', '', 't', r.attempt, 'counted', int(rnum(j, 'counted') + r.counted),
    'pb', int(max(0, rnum(j, 'pb') - 1 + r.pb)), 'streak', int(streak), 'same', int(same), 'thr', int(thr),
    'last', r.outcome, 'ff', int(ff), 'spent', int(rnum(j, 'spent') + r.latency + r.backoff) })
  return 0
end
