-- Part of exchange: smooth rates (GCRA). A theoretical arrival time (tat, µs)
-- per gate; burst cells may come at once, then one per interval.

local WAIT_US = 15000000 -- waiters are spread over at most this much time

-- tat_of: the tat of a state's field, read once a script; what changed is put
-- back by the flush.
local rates = {}
function M.tat_of(st, field)
  st.tats = st.tats or {}
  local rate = st.tats[field]
  if not rate then
    rate = { st = st, field = field, tat = num(st, field) }
    st.tats[field] = rate
    rates[#rates + 1] = rate
  end
  return rate
end

flushers[#flushers + 1] = function()
  for i = 1, #rates do
    local rate = rates[i]
    if rate.changed then put(rate.st, rate.field, rate.tat) end
    if rate.idle then put(rate.st, rate.field .. '_idle', rate.idle) end
  end
end

-- arrival: the tat of a rate gate. One farther away than the gate can have put
-- it comes from a clock that stepped back or from a slower rate that was changed.
function M.arrival(gate)
  local tat = gate.rate.tat
  if tat > now_us + gate.most then return now_us end
  return tat
end

-- gcra: the moment n cells may start (µs, ≥ now). It may lie up to `lookahead`
-- in the future: the caller waits for it, so that late callers cost no rate.
function M.gcra(gate, n)
  return ceil(max(now_us, max(M.arrival(gate), now_us) + (min(n, gate.burst) - gate.burst) * gate.interval))
end

-- charge takes n cells for a start at `start`. <field>_idle remembers when the
-- gate last stood idle: what was taken before that cannot be given back.
function M.charge(gate, n, start)
  local rate, tat = gate.rate, M.arrival(gate)
  if tat < start then
    tat = start
    rate.idle = start
  end
  rate.tat, rate.changed = tat + ceil(n * gate.interval), true
end

-- credit gives n cells back that were taken at `taken` (µs).
function M.credit(st, field, per_minute, n, taken)
  if per_minute <= 0 or n <= 0 then return end
  local rate = M.tat_of(st, field)
  if (rate.idle or num(st, field .. '_idle')) > taken then return end
  rate.tat, rate.changed = rate.tat - floor(n * 60000000 / per_minute), true
end

-- place: when a refused caller should come back, ms. Waiters get places one
-- interval apart from the first opening on, so that they do not come in herds.
function M.place(st, field, opening, interval, r)
  field = field .. '_wait'
  local last = num(st, field)
  local spot = max(opening, now_us + 1000)
  if last >= spot and last < spot + WAIT_US then
    spot = last + interval
  elseif last >= spot + WAIT_US and last < spot + 4 * WAIT_US then
    spot = spot + r.r1 % WAIT_US
    return ceil((spot - now_us) / 1000)
  end
  put(st, field, spot)
  return ceil((spot - now_us) / 1000)
end
