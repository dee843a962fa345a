-- Part of exchange, check, renew, seed and read: permits and the records of tasks.
-- The ones a script is about are read at once; the flush writes what it changed. A
-- field that a record does not have is 0, '' or false; keys.go lists the fields.
local RECORD_MS, FINISHED_MS = int(14 * DAY), int(600000)
local records, expiries = {}, {}           -- by task key: the record; when its permit ends, ms, false without one
local record_ttl, changed_permits = {}, {} -- by task key: ms a changed record has to live; true

local TYPES = { probe = 'boolean', forfeited = 'boolean', lost_reported = 'boolean' }
for field in string.gmatch('units admitted_at epoch start_us generation counted possibly_billed failures_in_row same_outcome throttles ' ..
  'spent_ms first_failure_at source_failures lost_units lost_admitted_at', '%S+') do TYPES[field] = 'number' end
for field in string.gmatch('attempt source path group budgets settled_attempts last_outcome failed_source lost_attempt lost_source ' ..
  'lost_budgets', '%S+') do TYPES[field] = 'string' end

-- is_record reports whether a value is a record that this program wrote. Any other
-- value is ignored, so that it does not fail the decisions about other tasks.
-- Fields that a later version added are kept.
function M.is_record(value)
  if type(value) ~= 'table' then return false end
  for field, v in pairs(value) do
    if type(field) ~= 'string' or type(v) ~= (TYPES[field] or type(v)) then return false end
    if TYPES[field] == 'number' and not (v > -1e15 and v < 1e15 and v == floor(v)) then return false end
  end
  return not value.source or value.path ~= nil
end

-- load reads the given tasks that are not known yet.
function M.load(keys)
  for first = 1, #keys, 1000 do -- unpack takes a few thousand
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

-- clear keeps of a finished task only which attempts were settled.
function M.clear(key)
  records[key] = { settled_attempts = records[key].settled_attempts }
  record_ttl[key] = FINISHED_MS
end

-- permit_end: when the permit of a key ends, ms; false without one.
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

-- is_settled reports whether the attempt was settled before. A settle may be repeated
-- after later attempts have ended.
function M.is_settled(record, attempt)
  return record.settled_attempts ~= nil and string.find(' ' .. record.settled_attempts .. ' ', ' ' .. attempt .. ' ', 1, true) ~= nil
end

-- remember_settled keeps the last four attempts, newest first.
function M.remember_settled(record, attempt)
  local old = record.settled_attempts and ' ' .. record.settled_attempts or ''
  record.settled_attempts = attempt .. (string.match(old, '^ %S+ %S+ %S+') or old)
end

-- lane: where a call of a path and a group at one source counts: the state of the
-- source+path and, with a group, the group's state, in which the source+path is the
-- prefix of the fields. Acquire adds the gates.
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

-- release gives a permit back, if there is one.
function M.release(key, record)
  if not M.permit_end(key) then return end
  expiries[key], changed_permits[key] = false, true
  if record.source then M.count_in_flight(M.lane(record.source, record.path, record.group), -1) end
end

-- forfeit counts the reserved units of an attempt as spent: it may have been billed.
function M.forfeit(record)
  if record.forfeited then return end
  local units = record.units or 0
  M.move_units(record.budgets or '', -units, units)
  record.forfeited = true
end

-- sweep releases expired permits.
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
