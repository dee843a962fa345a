-- The record of a task, j:<key>: what its attempts did so far, and the attempt
-- that is charged and not settled yet (field a).
local RECORD_MS = 14 * 86400000

local RECORD = { 'gen', 'counted', 'pb', 'streak', 'same', 'thr', 'last', 'spent', 'ff',
  'a', 'src', 'path', 'grp', 'units', 'at', 'epoch', 'day', 'month', 't', 'delay', 'probe', 'fs', 'fn' }

local function record(key)
  local got = redis.call('HMGET', P .. 'j:' .. key, unpack(RECORD))
  local j = {}
  for i = 1, #RECORD do j[RECORD[i]] = got[i] or '' end
  return j
end

local function rnum(j, field) return tonumber(j[field]) or 0 end

local function save(key, fields, ttl)
  redis.call('HSET', P .. 'j:' .. key, unpack(fields))
  redis.call('PEXPIRE', P .. 'j:' .. key, int(ttl or RECORD_MS))
end

-- release gives a permit back; true if it was held.
local function release(key, j)
  if redis.call('ZREM', P .. 'p', key) == 0 then return false end
  local s = state('s:' .. j.src .. ':' .. j.path)
  put(s, 'inflight', max(0, num(s, 'inflight') - 1))
  local g = state('g')
  put(g, 'inflight', max(0, num(g, 'inflight') - 1))
  return true
end

-- sweep releases permits whose time is over. Their charges stay until their
-- key is admitted again: the attempt may have been billed.
local function sweep()
  local dead = redis.call('ZRANGEBYSCORE', P .. 'p', '-inf', int(now), 'LIMIT', 0, 200)
  for i = 1, #dead do release(dead[i], record(dead[i])) end
end
