-- Part of every script: Redis's clock, the request, and the cached hashes.
-- All scripts have the same form:
--
-- KEYS 1 <prefix>state:global (routes the script to the slot that all its keys are in)
-- ARGV 1 key prefix · 2 request, a JSON object
-- reply: a JSON object or list; its numbers are integers
--
-- Functions live in M: a closure that captures many locals costs more to make
-- than most decisions take, and all are made anew at every call.
local M = {}
local prefix = ARGV[1]
local request = cjson.decode(ARGV[2])
local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local now = math.floor(now_us / 1000)
local floor, max, min, ceil = math.floor, math.max, math.min, math.ceil
local DAY = 86400000

-- Lua prints 14 digits of a number, microseconds have 16; and some versions of
-- Redis write 100000000 as 1e+8 (redis/redis#13113). So Redis gets numbers as text.
local function int(x) return string.format('%.0f', x) end

-- A hash is read once per script and its changed fields are written once at the
-- end, however many decisions touched it.
local hashes = {}

function M.hash(name)
  local hash = hashes[name]
  if hash then return hash end
  local flat, values = redis.call('HGETALL', prefix .. name), {}
  for i = 1, #flat, 2 do values[flat[i]] = flat[i + 1] end
  hash = { name = name, values = values, changed = {}, dirty = false }
  hashes[name] = hash
  return hash
end

function M.state(scope) return M.hash('state:' .. scope) end

local global = M.state('global')

local function num(st, field)
  local value = st.values[field]
  if type(value) == 'number' then return value end
  if not value then return 0 end
  value = tonumber(value) or 0
  st.values[field] = value
  return value
end

local function text(st, field) return st.values[field] or '' end

local function put(st, field, value)
  st.values[field] = value
  st.changed[field] = true
  st.dirty = true
end

function M.add(st, field, n) put(st, field, num(st, field) + n) end

-- recovery_hold: ms for which missing unit budgets stay missing after Redis lost
-- everything. A hold longer than a day comes from a clock that was set back.
function M.recovery_hold()
  local left = num(global, 'recovery_hold_until') - now
  return left > 0 and left <= DAY and left or 0
end

-- each_scope calls fn with every scope that has limits: <source>:<path> with both
-- of its parts, group/<name> without.
function M.each_scope(fn)
  for scope in string.gmatch(text(M.state('tuning'), 'scopes'), '[^,]+') do fn(scope, string.match(scope, '^([^:]+):([^:]+)$')) end
end

-- flush writes what the script changed. Permits and records (record.lua) come first:
-- a Redis without memory refuses a script at its first write if that needs memory, and
-- a permit must be given back even then.
function M.flush()
  if M.flush_records then M.flush_records() end
  for name, hash in pairs(hashes) do
    if hash.dirty then
      local args, n = { 'HSET', prefix .. name }, 2
      for field in pairs(hash.changed) do
        local value = hash.values[field]
        if type(value) == 'number' then value = int(value) end
        args[n + 1], args[n + 2] = field, value
        n = n + 2
      end
      redis.call(unpack(args))
    end
  end
end
