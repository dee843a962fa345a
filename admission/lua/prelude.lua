-- Shared by every script: Redis's clock, numbers, and the cached state hashes.
-- ARGV[1] is always the key prefix; every key has it, so all are in one slot.
local P = ARGV[1]
local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local now = math.floor(now_us / 1000)
local floor, max, min, ceil = math.floor, math.max, math.min, math.ceil

-- Lua prints 14 digits of a number; microseconds have 16.
local function int(x) return string.format('%.0f', x) end

-- A state hash is read once per script and its changed fields are written once
-- at the end, however many decisions touched it.
local states = {}

local function state(name)
  local st = states[name]
  if st then return st end
  local flat = redis.call('HGETALL', P .. name)
  local v = {}
  for i = 1, #flat, 2 do v[flat[i]] = flat[i + 1] end
  st = { name = name, v = v, d = {}, dirty = false }
  states[name] = st
  return st
end

local function num(st, field) return tonumber(st.v[field]) or 0 end

local function put(st, field, value)
  st.v[field] = value
  st.d[field] = true
  st.dirty = true
end

local function add(st, field, n) put(st, field, num(st, field) + n) end

local function text(value)
  if type(value) == 'number' then return int(value) end
  return value
end

local function flush()
  for name, st in pairs(states) do
    if st.dirty then
      local args = { 'HSET', P .. name }
      for field in pairs(st.d) do
        args[#args + 1] = field
        args[#args + 1] = text(st.v[field])
      end
      redis.call(unpack(args))
    end
  end
end
