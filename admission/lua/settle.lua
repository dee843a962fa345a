-- Part of exchange: ends one attempt. It reports the outcome, refunds unused units and releases the permit.

local function count(flag) return flag and 1 or 0 end
local function ms(ns) return floor(ns / 1000000) end

-- Replaces the attempt's reserved units by the units it used.
function M.charge_used(report, record)
  local units = record.units or 0
  local used = min(max(0, report.units_used), units)
  M.move_units(record.budgets or '', record.forfeited and 0 or -units, record.forfeited and used - units or used)
  if used == units or not record.start_us then return end
  local st, start = M.source_state(record.source, record.path), record.admitted_at * 1000 + record.start_us
  M.give_back(st, 'units', num(st, 'limit_units_per_minute'), units - used, start)
  M.give_back(global, 'units', num(global, 'limit_units_per_minute'), units - used, start)
end

-- Writes the attempt's outcome into the task's record and saves it. charged is 1 if possibly_billed already includes
-- the attempt, else 0. The record of a finished task is cleared.
function M.finish(report, record, charged)
  M.save_settled(report.key, record, report.attempt)
  if report.clear_record then return M.clear(report.key) end
  record.generation = max(record.generation or 0, report.generation)
  M.add_to(record, 'counted', count(report.counted))
  M.add_to(record, 'possibly_billed', count(report.possibly_billed) - charged)
  if report.counted then
    M.add_to(record, 'failures_in_row', 1)
    record.source_failures = record.failed_source == record.source and (record.source_failures or 0) + 1 or 1
    record.failed_source = record.source
  elseif report.channel == 'success' then
    record.failures_in_row, record.source_failures = 0, 0
  end
  M.count_outcome(record, report.outcome, now)
  record.throttles = report.outcome == 'throttled' and (record.throttles or 0) + 1 or 0
  record.spent_ms = (record.spent_ms or 0) + report.latency + report.backoff
  -- A settle without a call (channel none) may not have reported the lost attempt.
  if record.lost and report.channel ~= 'none' then record.lost.reported = true end
end

-- Reports an attempt that is not in the record. All facts come from the settle.
function M.report_alone(report)
  M.report(report, { source = report.source, path = report.path, admitted_at = report.admitted_at, epoch = report.epoch })
end

-- Settles an attempt that was counted as lost. Only units and counts are corrected, because another attempt may be
-- running.
function M.settle_lost(report, record)
  local units = record.lost.units or 0
  M.move_units(record.lost.budgets or '', 0, min(max(0, report.units_used), units) - units)
  record.lost = nil
  M.add_to(record, 'counted', count(report.counted) - 1)
  M.add_to(record, 'possibly_billed', count(report.possibly_billed) - 1)
  M.save_settled(report.key, record, report.attempt)
  M.report_alone(report)
end

-- Settles an attempt that Redis has lost. The used units are charged. If the task has no other attempt, the record is
-- written.
function M.settle_unknown(report, record)
  M.move_units(report.budgets, 0, max(0, report.units_used))
  M.report_alone(report)
  if record.attempt or record.settled_attempts or report.channel == 'none' and not report.possibly_billed then
    return M.save_settled(report.key, record, report.attempt) -- so that a repeated settle charges nothing
  end
  record.source, record.path = report.source, report.path
  M.finish(report, record, 0)
end

function M.settle(report)
  local record = M.record(report.key)
  report.retry_after, report.latency, report.backoff = ms(report.retry_after_ns), ms(report.latency_ns), ms(report.backoff_ns)
  if M.is_settled(record, report.attempt) then return end
  if record.attempt ~= report.attempt then
    if record.lost and record.lost.attempt == report.attempt then return M.settle_lost(report, record) end
    return M.settle_unknown(report, record)
  end
  M.charge_used(report, record)
  M.report(report, record)
  M.release(report.key, record)
  record.attempt = nil
  M.finish(report, record, 1)
end
