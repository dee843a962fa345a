-- Part of exchange and check: smooth rates (GCRA). A rate has two fields in a state hash: <name>_arrival_us, the
-- theoretical arrival time of the next call, and <name>_idle_us, when the rate was last idle. A burst of calls may
-- start at once. Later calls start one interval apart.

local PLACES_US = 15000000 -- µs; refused callers are spread over at most this time

-- Returns the rate gate's next theoretical arrival time, µs. It returns now if the stored time is too far ahead,
-- because a clock was set back or the rate was lower before.
function M.arrival(gate)
  local arrival = num(gate.st, gate.name .. '_arrival_us')
  if arrival > now_us + gate.farthest then return now_us end
  return arrival
end

-- Returns the earliest start of n units or requests, µs, not before now.
function M.earliest_start(gate, n)
  return ceil(max(now_us, max(M.arrival(gate), now_us) + (min(n, gate.burst) - gate.burst) * gate.interval))
end

-- Charges n units or requests for a call that starts at start (µs).
function M.charge(gate, n, start)
  local arrival = M.arrival(gate)
  if arrival < start then
    arrival = start
    put(gate.st, gate.name .. '_idle_us', start)
  end
  put(gate.st, gate.name .. '_arrival_us', arrival + ceil(n * gate.interval))
end

-- Refunds n units that a call at start (µs) was charged. It refunds nothing if the rate was idle after start, because
-- an idle rate has already recovered all units.
function M.give_back(st, name, per_minute, n, start)
  if per_minute <= 0 or n <= 0 or num(st, name .. '_idle_us') > start then return end
  M.add(st, name .. '_arrival_us', -floor(n * 60000000 / per_minute))
end

-- Returns the ms after which a refused caller acquires again. The first caller gets opening (µs). Later callers
-- follow one interval (µs) apart, so they do not return all at once.
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
