-- Part of exchange and check: smooth rates (GCRA). A rate is the fields
-- <name>_arrival_us and <name>_idle_us of a state: the theoretical arrival time of
-- its next call, and when it last stood idle. A burst of calls may start at once,
-- then one per interval.

local PLACES_US = 15000000 -- refused callers are spread over at most this much time

-- arrival: when the next call of a rate gate may arrive, µs. A moment farther
-- ahead than the gate can have put it comes from a clock that was set back or from
-- a slower rate in force before: it counts as now.
function M.arrival(gate)
  local arrival = num(gate.st, gate.name .. '_arrival_us')
  if arrival > now_us + gate.farthest then return now_us end
  return arrival
end

-- earliest_start: the moment n units or requests may start, µs, now or later. It
-- may be up to lookahead_us ahead: the caller waits for it, so that late callers
-- leave no part of the rate unused.
function M.earliest_start(gate, n)
  return ceil(max(now_us, max(M.arrival(gate), now_us) + (min(n, gate.burst) - gate.burst) * gate.interval))
end

-- charge takes n units or requests for a call that starts at start (µs).
function M.charge(gate, n, start)
  local arrival = M.arrival(gate)
  if arrival < start then
    arrival = start
    put(gate.st, gate.name .. '_idle_us', start)
  end
  put(gate.st, gate.name .. '_arrival_us', arrival + ceil(n * gate.interval))
end

-- give_back returns n units that were taken for a call at start (µs). What was
-- taken before the rate last stood idle cannot be given back.
function M.give_back(st, name, per_minute, n, start)
  if per_minute <= 0 or n <= 0 or num(st, name .. '_idle_us') > start then return end
  M.add(st, name .. '_arrival_us', -floor(n * 60000000 / per_minute))
end

-- place: ms after which a refused caller asks again. The places are one interval
-- (µs) apart from the first opening (µs) on, so that the callers do not all ask at once.
function M.place(st, name, opening, interval, random)
  local field = name .. '_place_us'
  local last = num(st, field)
  local place = max(opening, now_us + 1000)
  if last >= place and last < place + PLACES_US then
    place = last + interval
  elseif last >= place + PLACES_US and last < place + 4 * PLACES_US then
    return ceil((place + random % PLACES_US - now_us) / 1000)
  end
  put(st, field, place)
  return ceil((place - now_us) / 1000)
end
