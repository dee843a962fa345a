-- Part of exchange and check: smooth rates (GCRA). A rate is two fields of a state: <name>_arrival_us, the theoretical
-- arrival time of its next call, and <name>_idle_us, when it last stood idle. A burst of calls may start at once, then
-- one per interval.

local PLACES_US = 15000000 -- refused callers are spread over at most this much time

-- Returns when the next call of a rate gate may arrive, µs. It returns now for a moment farther ahead than the gate can
-- have set: a clock was set back, or the rate was lower before.
function M.arrival(gate)
  local arrival = num(gate.st, gate.name .. '_arrival_us')
  if arrival > now_us + gate.farthest then return now_us end
  return arrival
end

-- Returns when n units or requests may start, µs, not before now.
function M.earliest_start(gate, n)
  return ceil(max(now_us, max(M.arrival(gate), now_us) + (min(n, gate.burst) - gate.burst) * gate.interval))
end

-- Takes n units or requests for a call that starts at start (µs).
function M.charge(gate, n, start)
  local arrival = M.arrival(gate)
  if arrival < start then
    arrival = start
    put(gate.st, gate.name .. '_idle_us', start)
  end
  put(gate.st, gate.name .. '_arrival_us', arrival + ceil(n * gate.interval))
end

-- Gives back n units that a call took for start (µs). It gives back nothing if the rate has stood idle since, because
-- the units would have been lost by now.
function M.give_back(st, name, per_minute, n, start)
  if per_minute <= 0 or n <= 0 or num(st, name .. '_idle_us') > start then return end
  M.add(st, name .. '_arrival_us', -floor(n * 60000000 / per_minute))
end

-- Returns after how many ms a refused caller acquires again. The first place is at opening (µs). The places are one
-- interval (µs) apart, so that the callers do not come all at once.
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
