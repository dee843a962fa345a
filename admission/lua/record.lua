-- Part of exchange, check, renew, seed and read: permits and the records of tasks. A script loads all its tasks with
-- one read and writes their changes at the end. An absent record field is 0, '' or false. keys.go lists the fields.
local RECORD_MS, FINISHED_MS = int(14 * DAY), int(600000)
local records, expiries = {}, {}           -- by task key: the record; the permit's end in ms, false = no permit
local record_ttl, changed_permits = {}, {} -- by task key: a changed record's TTL in ms; true if the permit changed

local TYPES = { probe = 'boolean', forfeited = 'boolean', reported = 'boolean', lost = 'table' }
for field in string.gmatch('units admitted_at epoch start_us generation counted possibly_billed failures_in_row same_outcome throttles ' ..
  'spent_ms first_failure_at source_failures', '%S+') do TYPES[field] = 'number' end
for field in string.gmatch('attempt source path group budgets settled_attempts last_outcome failed_source', '%S+') do TYPES[field] = 'string' end

-- Reports whether a value is a record that Reprise wrote. Any other value is ignored, so it cannot fail decisions
-- about other tasks. Fields of a later version are kept.
function M.is_record(value)
  if type(value) ~= 'table' then return false end
  for field, v in pairs(value) do
    if type(field) ~= 'string' or type(v) ~= (TYPES[field] or type(v)) then return false end
    if TYPES[field] == 'number' and not (v > -1e15 and v < 1e15 and v == floor(v)) then return false end
    if field == 'lost' and not M.is_record(v) then return false end
  end
  return not value.source or value.path ~= nil
end

-- Reads the tasks that this script has not read yet.
function M.load(keys)
  for first = 1, #keys, 1000 do -- unpack accepts at most a few thousand values
    local unknown, names = {}, {}
    for i = first, min(#keys, first + 999) do
      if not records[keys[i]] then
        unknown[#unknown + 1] = keys[i]
        names[#names + 1] = prefix .. 'task:' .. keys[i]
      end
    end
    if #unknown > 0 then
      local values = redis.call('MGET', unpack(names))
      local scores = redis.call('ZMSCORE', prefix .. 'permits', unpack(unknown))
      for i = 1, #unknown do
        local ok, record = pcall(cjson.decode, values[i] or '{}')
        records[unknown[i]] = ok and M.is_record(record) and record or {}
        expiries[unknown[i]] = tonumber(scores[i] or '') or false
      end
    end
  end
end

function M.record(key)
  if not records[key] then M.load({ key }) end
  return records[key]
end

function M.save(key) record_ttl[key] = RECORD_MS end

-- Replaces a finished task's record by the list of settled attempts.
function M.clear(key)
  records[key] = { settled_attempts = records[key].settled_attempts }
  record_ttl[key] = FINISHED_MS
end

-- Adds n to a record's field. The result is at least 0.
function M.add_to(record, field, n) record[field] = max(0, (record[field] or 0) + n) end

-- Counts the outcome of a task's attempt.
function M.count_outcome(record, outcome, first_failure_at)
  record.same_outcome = record.last_outcome == outcome and (record.same_outcome or 0) + 1 or 1
  record.last_outcome = outcome
  record.first_failure_at = record.first_failure_at or first_failure_at
end

-- Returns the end of the task's permit in ms, or false if it has none.
function M.permit_end(key)
  M.record(key)
  return expiries[key]
end

function M.extend(key, expires_at)
  expiries[key], changed_permits[key] = expires_at, true
end

function M.flush_records()
  local held, gone = {}, {}
  for key in pairs(changed_permits) do
    if expiries[key] then
      held[#held + 1], held[#held + 2] = int(expiries[key]), key
    else
      gone[#gone + 1] = key
    end
  end
  for first = 1, #gone, 2000 do redis.call('ZREM', prefix .. 'permits', unpack(gone, first, min(#gone, first + 1999))) end
  for first = 1, #held, 2000 do redis.call('ZADD', prefix .. 'permits', unpack(held, first, min(#held, first + 1999))) end
  for key, ms in pairs(record_ttl) do redis.call('SET', prefix .. 'task:' .. key, cjson.encode(records[key]), 'PX', ms) end
  changed_permits, record_ttl = {}, {}
end

-- Reports whether the attempt is already settled. A settle may be repeated after later attempts have ended.
function M.is_settled(record, attempt)
  return record.settled_attempts ~= nil and string.find(' ' .. record.settled_attempts .. ' ', ' ' .. attempt .. ' ', 1, true) ~= nil
end

-- Adds an attempt to the list of the last four settled attempts, newest first, and saves the record.
function M.save_settled(key, record, attempt)
  local old = record.settled_attempts and ' ' .. record.settled_attempts or ''
  record.settled_attempts = attempt .. (string.match(old, '^ %S+ %S+ %S+') or old)
  M.save(key)
end

-- Returns a lane, which has the states that count a source's calls for one path and group. st is the source+path's
-- state. group_st is the group's state, whose fields start with the source+path; nil without a group. acquire.lua
-- adds the gates.
local lanes = {}
function M.lane(source, path, group)
  local id = source .. ':' .. path .. ':' .. (group or '')
  local lane = lanes[id]
  if not lane then
    local scope = source .. ':' .. path
    lane = { scope = scope, st = M.state(scope), group = group, group_st = group and M.state('group/' .. group), group_in_flight = scope .. ':in_flight' }
    lanes[id] = lane
  end
  return lane
end

function M.count_in_flight(lane, n)
  put(lane.st, 'in_flight', max(0, num(lane.st, 'in_flight') + n))
  put(global, 'in_flight', max(0, num(global, 'in_flight') + n))
  if lane.group then put(lane.group_st, lane.group_in_flight, max(0, num(lane.group_st, lane.group_in_flight) + n)) end
end

-- Releases the task's permit, if it has one.
function M.release(key, record)
  if not M.permit_end(key) then return end
  M.extend(key, false)
  if record.source then M.count_in_flight(M.lane(record.source, record.path, record.group), -1) end
end

-- Counts the attempt's reserved units as spent, because AudD may have billed them.
function M.forfeit(record)
  if record.forfeited then return end
  local units = record.units or 0
  M.move_units(record.budgets or '', -units, units)
  record.forfeited = true
end

-- Releases expired permits.
function M.sweep()
  local expired = redis.call('ZRANGEBYSCORE', prefix .. 'permits', '-inf', int(now), 'LIMIT', 0, 200)
  M.load(expired)
  for i = 1, #expired do
    local key, record = expired[i], records[expired[i]]
    M.release(key, record)
    if record.attempt and not record.forfeited then
      M.forfeit(record)
      M.save(key)
    end
  end
end
