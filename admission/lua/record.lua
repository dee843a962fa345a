-- Part of exchange and renew: the record of a task, j:<key>: what its attempts
-- did so far, and the attempt that is charged and not settled yet (field a).
local RECORD_MS, TOMBSTONE_MS = 14 * DAY, 600000
local RECORD = { 'gen', 'counted', 'pb', 'streak', 'same', 'thr', 'last', 'spent', 'ff', 'fs', 'fn',
  'a', 'src', 'path', 'grp', 'units', 'at', 'epoch', 'bk', 'start', 'probe', 'kept', 't', 'la', 'lsrc', 'lunits', 'lat', 'lbk' }

local function record(key)
  local got = redis.call('HMGET', P .. 'j:' .. key, unpack(RECORD))
  local j = {}
  for i = 1, #RECORD do j[RECORD[i]] = got[i] or '' end
  return j
end

local function rnum(j, field) return tonumber(j[field]) or 0 end

-- save writes the fields that are set, 0 and '' only over something else.
local function save(key, j, fields)
  local args, n = { 'HSET', P .. 'j:' .. key }, 2
  for i = 1, #fields do
    args[n + 1], args[n + 2] = fields[i], text(j[fields[i]])
    n = n + 2
  end
  redis.call(unpack(args))
  redis.call('PEXPIRE', P .. 'j:' .. key, int(RECORD_MS))
end

local function count(source, path, group, n)
  local s, all = state('s:' .. source .. ':' .. path), state('g')
  put(s, 'inflight', max(0, num(s, 'inflight') + n))
  put(all, 'inflight', max(0, num(all, 'inflight') + n))
  if group ~= '' then
    local q, field = state('grp:' .. group), 'in:' .. source .. ':' .. path
    put(q, field, max(0, num(q, field) + n))
  end
end

-- release gives a permit back; true if it was held.
local function release(key, j)
  if redis.call('ZREM', P .. 'p', key) == 0 then return false end
  if j.src ~= '' then count(j.src, j.path, j.grp, -1) end
  return true
end

-- forfeit turns what an attempt reserved into spent: it may have been billed.
local function forfeit(j)
  if rnum(j, 'kept') == 1 then return end
  move(j.bk, -rnum(j, 'units'), rnum(j, 'units'))
  j.kept = 1
end

-- sweep releases permits whose time is over.
local function sweep()
  local dead = redis.call('ZRANGEBYSCORE', P .. 'p', '-inf', int(now), 'LIMIT', 0, 200)
  for i = 1, #dead do
    local j = record(dead[i])
    release(dead[i], j)
    if j.a ~= '' and rnum(j, 'kept') == 0 then
      forfeit(j)
      save(dead[i], j, { 'kept' })
    end
  end
end
