-- Part of exchange: ends one attempt. It reports the answer, refunds unused units
-- and gives the permit back.

local function count(flag) return flag and 1 or 0 end
local function ms(ns) return floor(ns / 1000000) end

-- charge_used turns the reservation of an attempt into the units it used.
function M.charge_used(report, record)
  local units = record.units or 0
  local used = min(max(0, report.units_used), units)
  if record.forfeited then
    M.move_units(record.budgets or '', 0, used - units)
  else
    M.move_units(record.budgets or '', -units, used)
  end
  if used == units or not record.start_us then return end
  local st, start = M.source_state(record.source, record.path), record.admitted_at * 1000 + record.start_us
  M.give_back(st, 'units', num(st, 'limit_units_per_minute'), units - used, start)
  M.give_back(global, 'units', num(global, 'limit_units_per_minute'), units - used, start)
end

-- add_to_record writes the attempt into the record. counted and possibly_billed
-- are what changes in those counts.
function M.add_to_record(report, record, counted, possibly_billed)
  record.generation = max(record.generation or 0, report.generation)
  record.counted, record.possibly_billed = max(0, (record.counted or 0) + counted), max(0, (record.possibly_billed or 0) + possibly_billed)
  record.same_outcome = record.last_outcome == report.outcome and (record.same_outcome or 0) + 1 or 1
  record.last_outcome = report.outcome
  if report.counted then
    record.failures_in_row = (record.failures_in_row or 0) + 1
    record.source_failures = record.failed_source == record.source and (record.source_failures or 0) + 1 or 1
    record.failed_source = record.source
  elseif report.channel == 'success' then
    record.failures_in_row, record.source_failures = 0, 0
  end
  record.throttles = report.outcome == 'throttled' and (record.throttles or 0) + 1 or 0
  record.first_failure_at = record.first_failure_at or now
  record.spent_ms = (record.spent_ms or 0) + report.latency + report.backoff
end

-- finish writes the record after an attempt. Of a finished task it keeps only which
-- attempts were settled.
function M.finish(report, record, counted, possibly_billed)
  M.remember_settled(record, report.attempt)
  if report.clear_record then return M.clear(report.key) end
  M.add_to_record(report, record, counted, possibly_billed)
  if record.lost_attempt and report.channel ~= 'none' then record.lost_reported = true end -- an unused permit may not have reported the lost attempt
  M.save(report.key)
end

-- reported: what a settle itself says about its attempt, where the record has nothing.
function M.reported(report) return { source = report.source, path = report.path, admitted_at = report.admitted_at, epoch = report.epoch } end

-- settle_lost settles an attempt that was already counted as lost; another one may
-- be running. It corrects units and counts only.
function M.settle_lost(report, record)
  local units = record.lost_units or 0
  M.move_units(record.lost_budgets or '', 0, min(max(0, report.units_used), units) - units)
  M.forget_lost(record)
  record.counted = max(0, (record.counted or 0) + count(report.counted) - 1)
  record.possibly_billed = max(0, (record.possibly_billed or 0) + count(report.possibly_billed) - 1)
  M.remember_settled(record, report.attempt)
  M.save(report.key)
  M.report(report, M.reported(report))
end

-- settle_unknown settles an attempt that Redis does not know, because its data was
-- lost. It charges the units used and, if no other attempt runs, writes the record.
function M.settle_unknown(report, record)
  M.move_units(report.budgets, 0, max(0, report.units_used))
  M.report(report, M.reported(report))
  if record.attempt or record.settled_attempts or report.channel == 'none' and not report.possibly_billed then
    M.remember_settled(record, report.attempt) -- a repeat must charge nothing
    return M.save(report.key)
  end
  record.source, record.path = report.source, report.path
  M.finish(report, record, count(report.counted), count(report.possibly_billed))
end

function M.settle(report)
  local record = M.record(report.key)
  report.retry_after, report.latency, report.backoff = ms(report.retry_after_ns), ms(report.latency_ns), ms(report.backoff_ns)
  if M.is_settled(record, report.attempt) then return end
  if record.lost_attempt == report.attempt and record.attempt ~= report.attempt then return M.settle_lost(report, record) end
  if record.attempt ~= report.attempt then return M.settle_unknown(report, record) end
  M.charge_used(report, record)
  M.report(report, record)
  M.release(report.key, record)
  record.attempt = nil
  M.finish(report, record, count(report.counted), count(report.possibly_billed) - 1)
end
