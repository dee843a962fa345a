-- Part of exchange and check: decides whether a call may start. A call is charged to every gate of one source, or to
-- none.

-- Stores in a lane the gates that its calls must pass, in order. It runs once per lane and script, and after the
-- settles, because a settle may change the AIMD limits.
function M.gates(lane)
  lane.permits, lane.rates, lane.budgets = {}, {}, {}
  local st, group = lane.st, lane.group_st
  local limit, per_minute, burst = M.concurrency_of(st), M.request_rate_of(st)
  local ceiling = group and num(group, 'limit_ceiling') / 1000 or 0
  M.permit_gate(lane, 'concurrency', st, 'in_flight', limit)
  M.permit_gate(lane, 'global_concurrency', global, 'in_flight', num(global, 'limit_concurrency'))
  if ceiling > 0 then
    if limit > 0 then M.permit_gate(lane, 'group_concurrency', group, lane.group_in_flight, max(1, floor(limit * ceiling))) end
    M.rate_gate(lane, { gate = 'group_requests', st = group, name = lane.scope .. ':requests' }, per_minute * ceiling, burst)
  end
  M.rate_gate(lane, { gate = 'requests', st = st, name = 'requests' }, per_minute, burst)
  M.unit_rate_gate(lane, 'units', st)
  M.rate_gate(lane, { gate = 'global_requests', st = global, name = 'requests' }, num(global, 'limit_requests_per_minute'), num(global, 'limit_request_burst'))
  M.unit_rate_gate(lane, 'global_units', global)
  M.budget_gates(lane, '', lane.scope, st)
  M.budget_gates(lane, 'global_', 'global', global)
  if group then M.budget_gates(lane, 'group_', 'group/' .. lane.group, group) end
  local names = {}
  for i = 1, #lane.budgets do names[i] = lane.budgets[i].name end
  lane.budget_names = table.concat(names, ',')
end

function M.permit_gate(lane, gate, st, field, limit)
  if limit > 0 then lane.permits[#lane.permits + 1] = { gate = gate, st = st, field = field, limit = limit } end
end

function M.unit_rate_gate(lane, gate, st)
  M.rate_gate(lane, { gate = gate, st = st, name = 'units', of_units = true }, num(st, 'limit_units_per_minute'), num(st, 'limit_unit_burst'))
end

function M.rate_gate(lane, gate, per_minute, burst)
  if per_minute <= 0 then return end
  local interval = 60000000 / per_minute
  gate.interval, gate.burst = interval, max(1, burst)
  gate.ahead = min(request.lookahead_us, 15000 + 1.5 * interval) -- µs; latest start that is granted, counted from now
  gate.farthest = gate.of_units and DAY * 1000 or (gate.burst + 2) * interval + 2000000 -- µs; a day for units, because one call may need many
  lane.rates[#lane.rates + 1] = gate
end

-- Adds a scope's daily and monthly unit budgets. st has the scope's limits.
function M.budget_gates(lane, gate_prefix, scope, st)
  for _, unit in ipairs({ 'day', 'month' }) do
    local cap = num(st, 'limit_units_per_' .. unit)
    if cap > 0 then
      local period = M.current_period(request[unit .. 's'])
      if period then
        lane.budgets[#lane.budgets + 1] = { gate = gate_prefix .. 'units_' .. unit, name = scope .. ':' .. period.name, cap = cap, left = period.ends_at - now }
      else
        lane.failure = 'clock_skew'
      end
    end
  end
end

-- Returns the caller's period that contains now. Returns nil if no period does, because the clocks differ too much.
-- now comes from Redis, so all workers charge the same period.
function M.current_period(periods)
  for i = 1, #periods do
    if now >= periods[i].starts_at and now < periods[i].ends_at then return periods[i] end
  end
end

-- Returns a refusal if too many calls are in flight, else nil. The next call's end is unknown, so the wait is an
-- estimate: latency divided by the limit.
function M.check_permit(gate, lane, call)
  if num(gate.st, gate.field) < gate.limit then return end
  local gap = min(5000000, max(5000, max(num(lane.st, 'latency_ms'), 50) * 1000 / gate.limit))
  return M.refuse(gate.gate, min(5000, M.place(gate.st, gate.field, now_us + gap, gap, call.random_a)), false, false)
end

-- Moves trial.start to the time at which the rate allows the call. Returns a refusal if that time is too far ahead.
function M.check_rate(gate, trial)
  local n = gate.of_units and trial.call.units or 1
  if n <= 0 then return end
  local start = M.earliest_start(gate, n)
  if start > now_us + gate.ahead then
    return M.refuse(gate.gate, M.place(gate.st, gate.name, start - gate.ahead, gate.interval, trial.call.random_a), false, false)
  end
  trial.start = max(trial.start, start)
end

-- Returns a refusal if the budget has fewer units left than the call needs, else nil. An unseeded budget is added to
-- trial.missing.
function M.check_budget(gate, trial)
  local call, budget = trial.call, M.budget(gate.name)
  if not call.units_bounded then return M.refuse('unbounded', UNTIL_RESUMED, true, true) end
  if call.units > gate.cap then return M.refuse('units_too_many', UNTIL_RESUMED, true, true) end
  if not M.is_seeded(budget) then
    local hold = M.recovery_hold()
    if hold > 0 then return M.refuse('units', hold, false, false) end -- the units of calls in flight are still unknown
    trial.missing = trial.missing or {}
    trial.missing[#trial.missing + 1] = gate.name
  elseif num(budget, 'reserved') + num(budget, 'spent') + call.units > gate.cap then
    return M.refuse(gate.gate, gate.left, true, false)
  end
end

-- Returns nil if all gates of one source admit the call, else the first refusal. Sets trial.failure if no decision is
-- possible.
function M.try(trial, source)
  local call = trial.call
  local lane = M.lane(source.name, call.path, call.group)
  if lane.st.values.revision == nil then
    trial.failure = 'limits_missing'
    return M.refuse('halt', UNTIL_RESUMED, true, false)
  end
  if not lane.permits then M.gates(lane) end
  trial.lane, trial.start, trial.missing, trial.probe = lane, now_us, nil, nil
  local refusal = M.blocked(trial, source)
  for i = 1, #lane.permits do refusal = refusal or M.check_permit(lane.permits[i], lane, call) end
  for i = 1, #lane.rates do refusal = refusal or M.check_rate(lane.rates[i], trial) end
  for i = 1, #lane.budgets do refusal = refusal or M.check_budget(lane.budgets[i], trial) end
  if not refusal and lane.failure then
    trial.failure = lane.failure
    return M.refuse('units', 1000, false, false)
  end
  return refusal or trial.missing and M.refuse('missing', 0, true, false)
end

-- Charges the call to all gates of the source that M.try checked last.
function M.take(trial, record, source)
  local call, lane = trial.call, trial.lane
  for i = 1, #lane.rates do
    local n = lane.rates[i].of_units and call.units or 1
    if n > 0 then M.charge(lane.rates[i], n, trial.start) end
  end
  for i = 1, #lane.budgets do
    M.add(M.budget(lane.budgets[i].name), 'reserved', call.units)
  end
  M.extend(call.key, now + request.permit_ttl_ms)
  M.count_in_flight(lane, 1)
  if num(lane.st, 'in_flight') >= M.concurrency_of(lane.st) then put(lane.st, 'limit_reached_at', now) end
  if trial.probe then put(lane.st, 'probe', call.key .. ' ' .. call.attempt) end
  record.attempt, record.source, record.path, record.group, record.units = call.attempt, source, call.path, call.group, call.units
  record.admitted_at, record.epoch, record.start_us = now, num(lane.st, 'epoch'), trial.start - now * 1000
  record.budgets, record.probe, record.forfeited = lane.budget_names, trial.probe, nil
  M.add_to(record, 'possibly_billed', 1)
  M.save(call.key)
end

-- Counts the task's unsettled attempt as a crash, unless the same attempt acquires again. Then its call was never
-- sent, because the worker did not get the reply before the permit expired.
function M.record_lost(record, call)
  M.release(call.key, record)
  M.forfeit(record)
  if record.attempt == call.attempt then
    M.move_units(record.budgets or '', 0, -(record.units or 0))
    return M.add_to(record, 'possibly_billed', -1)
  end
  record.lost = { attempt = record.attempt, source = record.source, path = record.path, units = record.units,
    admitted_at = record.admitted_at, budgets = record.budgets }
  M.add_to(record, 'counted', 1)
  M.add_to(record, 'failures_in_row', 1)
  M.count_outcome(record, 'crash', record.admitted_at)
end

local HISTORY = { 'counted', 'possibly_billed', 'failures_in_row', 'same_outcome', 'throttles', 'last_outcome', 'spent_ms', 'first_failure_at',
  'failed_source', 'source_failures' }

-- Clears the record's history for a higher generation of the task.
function M.start_generation(record, generation)
  for i = 1, #HISTORY do record[HISTORY[i]] = nil end
  record.generation = generation
end

function M.granted(record)
  local start = (record.admitted_at or now) * 1000 + (record.start_us or 0)
  return { result = 'granted', start_in_us = max(0, start - now_us), record = record }
end

-- Returns the reply to one acquire (see exchange.lua). is_ended means that the task already has its final verdict.
function M.acquire(call, is_ended)
  local record = M.record(call.key)
  if M.is_settled(record, call.attempt) then return { result = 'attempt_settled' } end
  local expires_at = M.permit_end(call.key)
  local running = expires_at and expires_at > now -- even if its record was lost
  if running and record.attempt == call.attempt then return M.granted(record) end
  if is_ended then return { result = 'task_ended' } end
  if running then return { result = 'in_flight', wait_ms = ceil(expires_at - now) } end
  local trial, best, missing, all_blocked = { call = call }, nil, nil, true
  local list = M.candidates(call, record)
  for i = 1, #list do
    local refusal = M.try(trial, list[i])
    if not refusal then
      if record.lost and record.lost.reported then record.lost = nil end
      if record.attempt then M.record_lost(record, call) end
      if call.generation > (record.generation or 0) then M.start_generation(record, call.generation) end
      M.take(trial, record, list[i].name)
      return M.granted(record)
    end
    if refusal.gate == 'missing' then missing = trial.missing end
    refusal.source = list[i].name
    all_blocked = all_blocked and refusal.blocked
    if best == nil or refusal.wait < best.wait then best = refusal end
  end
  if trial.failure then return { result = trial.failure } end
  if missing then return { result = 'missing', now = now, budgets = missing } end
  best = best or M.refuse('no_candidate', UNTIL_RESUMED, true, false)
  return { result = 'refused', gate = best.gate, source = best.source, wait_ms = max(1, ceil(best.wait)), all_blocked = all_blocked,
    permanent = best.permanent, reason = best.reason }
end
