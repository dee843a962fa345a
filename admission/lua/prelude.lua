-- Part of every script: Redis's clock, numbers, and the cached state hashes.
-- ARGV[1] is always the key prefix; every key has it, so all are in one slot.
-- Functions live in M: a closure that captures many locals costs more to make
-- than most decisions take, and all are made anew at every call.
local M = {}
local P = ARGV[1]
local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local now = math.floor(now_us / 1000)
local floor, max, min, ceil = math.floor, math.max, math.min, math.ceil
local DAY = 86400000

-- Lua prints 14 digits of a number, microseconds have 16; and some versions of
-- Redis write 100000000 as 1e+8 (redis/redis#13113). So numbers go out as text.
local function int(x) return string.format('%.0f', x) end

-- A state hash is read once per script and its changed fields are written once
-- at the end, however many decisions touched it.
local states = {}

function M.state(name)
  local st = states[name]
  if st then return st end
  local flat = redis.call('HGETALL', P .. name)
  local v = {}
  for i = 1, #flat, 2 do v[flat[i]] = flat[i + 1] end
  st = { v = v, d = {}, dirty = false }
  states[name] = st
  return st
end

local function num(st, field)
  local value = st.v[field]
  if type(value) == 'number' then return value end
  if not value then return 0 end
  value = tonumber(value) or 0
  st.v[field] = value
  return value
end

function M.str(st, field) return st.v[field] or '' end

local function put(st, field, value)
  st.v[field] = value
  st.d[field] = true
  st.dirty = true
end

function M.add(st, field, n) put(st, field, num(st, field) + n) end

-- blind: ms for which unit budgets that are missing stay so, because Redis lost
-- everything. What is further ahead than any is a clock that was set back.
function M.blind()
  local left = num(M.state('g'), 'blind') - now
  return left > 0 and left <= DAY and left or 0
end

-- flush writes what the script changed; parts that keep something else add to
-- flushers, which run before the state hashes are written.
local flushers = {}

function M.flush()
  for i = 1, #flushers do flushers[i]() end
  for name, st in pairs(states) do
    if st.dirty then
      local args, n = { 'HSET', P .. name }, 2
      for field in pairs(st.d) do
        local value = st.v[field]
        if type(value) == 'number' then value = int(value) end
        args[n + 1], args[n + 2] = field, value
        n = n + 2
      end
      redis.call(unpack(args))
    end
  end
end

-- each calls fn for every item of a comma-separated list.
function M.each(list, fn)
  for item in string.gmatch(list, '[^,]+') do fn(item) end
end
