-- Part of exchange, ask, renew, seed and peek: permits (p) and the records of
-- tasks, j:<key>. Those a script is about are read at once; what it changed is
-- written once, by the flush. A field that a record does not have is 0 or '';
-- keys.go lists them.
local RECORD_MS, TOMBSTONE_MS = int(14 * DAY), int(600000)
local records, ends = {}, {}             -- by task key: the record; when its permit ends, false without one
local record_ttl, changed_permits = {}, {} -- by task key: ms a changed record has to live; true

-- The in-memory Redis of `worker dev` has no cmsgpack.
local packing = rawget(_G, 'cmsgpack') or { pack = cjson.encode, unpack = cjson.decode }

local types = {}
for field in string.gmatch('units at epoch start probe kept gen counted pb streak same thr spent ff fn lunits lat told', '%a+') do types[field] = 'number' end
for field in string.gmatch('a t src path grp bk last fs la lsrc lbk', '%a+') do types[field] = 'string' end

-- sound: a value nobody of ours wrote must not end the decisions about others.
-- Fields that a later version added are kept as they are.
function M.sound(j)
  if type(j) ~= 'table' then return false end
  for field, value in pairs(j) do
    if type(value) ~= (types[field] or type(value)) then return false end
  end
  return not j.src or j.path ~= nil
end

local function rnum(j, field) return j[field] or 0 end
local function rstr(j, field) return j[field] or '' end

-- load reads what is not known yet of the given tasks.
function M.load(keys)
  for first = 1, #keys, 1000 do -- unpack takes a few thousand
    local wanted, names = {}, {}
    for i = first, min(#keys, first + 999) do
      if not records[keys[i]] then
        wanted[#wanted + 1] = keys[i]
        names[#names + 1] = P .. 'j:' .. keys[i]
      end
    end
    if #wanted > 0 then
      local packed = redis.call('MGET', unpack(names))
      local scores = redis.call('ZMSCORE', P .. 'p', unpack(wanted))
      for i = 1, #wanted do
        local ok, j = pcall(packing.unpack, packed[i] or '')
        records[wanted[i]] = ok and M.sound(j) and j or {}
        ends[wanted[i]] = tonumber(scores[i] or '') or false
      end
    end
  end
end

function M.record(key)
  if not records[key] then M.load({ key }) end
  return records[key]
end

function M.save(key) record_ttl[key] = RECORD_MS end

-- bury keeps of a finished task only which attempts were settled.
function M.bury(key)
  records[key] = { t = records[key].t }
  record_ttl[key] = TOMBSTONE_MS
end

-- permit_end: when the permit of a key ends, ms; false without one.
function M.permit_end(key)
  M.record(key)
  return ends[key]
end

function M.extend(key, untill)
  ends[key], changed_permits[key] = untill, true
end

function M.flush_records()
  local held, gone = {}, {}
  for key in pairs(changed_permits) do
    if ends[key] then
      held[#held + 1], held[#held + 2] = int(ends[key]), key
    else
      gone[#gone + 1] = key
    end
  end
  for first = 1, #gone, 2000 do redis.call('ZREM', P .. 'p', unpack(gone, first, min(#gone, first + 1999))) end
  for first = 1, #held, 2000 do redis.call('ZADD', P .. 'p', unpack(held, first, min(#held, first + 1999))) end
  for key, ms in pairs(record_ttl) do redis.call('SET', P .. 'j:' .. key, packing.pack(records[key]), 'PX', ms) end
  changed_permits, record_ttl = {}, {}
end
-- First of all: a Redis without memory refuses a script at its first write, if
-- that one takes some, and a permit must go back all the same.
table.insert(flushers, 1, M.flush_records)

-- settled: a repeat of a settle may come after the next attempts have ended.
function M.settled(j, attempt)
  return j.t ~= nil and string.find(' ' .. j.t .. ' ', ' ' .. attempt .. ' ', 1, true) ~= nil
end

-- remember keeps the last four, newest first.
function M.remember(j, attempt)
  if not j.t then
    j.t = attempt
  else
    j.t = attempt .. (string.match(' ' .. j.t, '^ %S+ %S+ %S+') or ' ' .. j.t)
  end
end

-- lane: where a call of a path and a group at one source counts: the state s of
-- source+path and, with a group, its state q and field there. Acquire adds the
-- gates.
local lanes = {}
function M.lane(source, path, group)
  local id = source .. ':' .. path .. ':' .. group
  local c = lanes[id]
  if not c then
    local name = source .. ':' .. path
    c = { name = name, s = M.state('s:' .. name), group = group, inside = 'in:' .. name }
    if group ~= '' then c.q = M.state('grp:' .. group) end
    lanes[id] = c
  end
  return c
end

function M.count(c, n)
  local all = M.state('g')
  put(c.s, 'inflight', max(0, num(c.s, 'inflight') + n))
  put(all, 'inflight', max(0, num(all, 'inflight') + n))
  if c.q then put(c.q, c.inside, max(0, num(c.q, c.inside) + n)) end
end

-- release gives a permit back, if there is one.
function M.release(key, j)
  if not M.permit_end(key) then return end
  ends[key], changed_permits[key] = false, true
  if j.src then M.count(M.lane(j.src, j.path, rstr(j, 'grp')), -1) end
end

-- forfeit turns what an attempt reserved into spent: it may have been billed.
function M.forfeit(j)
  if j.kept then return end
  M.move(rstr(j, 'bk'), -rnum(j, 'units'), rnum(j, 'units'))
  j.kept = 1
end

-- sweep releases permits whose time is over.
function M.sweep()
  local dead = redis.call('ZRANGEBYSCORE', P .. 'p', '-inf', int(now), 'LIMIT', 0, 200)
  M.load(dead)
  for i = 1, #dead do
    local key, j = dead[i], records[dead[i]]
    M.release(key, j)
    if j.a and not j.kept then
      M.forfeit(j)
      M.save(key)
    end
  end
end
