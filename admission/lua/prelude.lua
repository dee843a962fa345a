-- Part of every script: Redis's clock, the request, and cached hashes.
-- All scripts have the same form:
--
-- KEYS 1 <prefix>state:global (routes the script to the slot that has all its keys)
-- ARGV 1 key prefix · 2 request, a JSON object
-- reply: a JSON object or list; its numbers are integers
--
-- Functions are fields of M. Every script call creates all functions anew. With closures over many locals, this would
-- take longer than most decisions.
local M = {}
local prefix = ARGV[1]
local request = cjson.decode(ARGV[2])
local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local now = math.floor(now_us / 1000)
local floor, max, min, ceil = math.floor, math.max, math.min, math.ceil
local DAY = 86400000

-- Returns a number as text for Redis. tostring keeps only 14 digits, but microseconds have 16, and some versions of
-- Redis write 100000000 as 1e+8 (redis/redis#13113).
local function int(x) return string.format('%.0f', x) end

-- Returns the fields of a hash in Redis.
function M.read_hash(name)
  local flat, values = redis.call('HGETALL', prefix .. name), {}
  for i = 1, #flat, 2 do values[flat[i]] = flat[i + 1] end
  return values
end

-- Returns a hash from the script's cache. A script reads each hash once and writes its changed fields once, at the
-- end.
local hashes = {}
function M.hash(name)
  local hash = hashes[name]
  if not hash then
    hash = { name = name, values = M.read_hash(name), changed = {}, dirty = false }
    hashes[name] = hash
  end
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

-- Returns the ms until a moment, or 0 if it has passed. A moment more than most ms ahead also returns 0, because it
-- dates from before the clock was set back.
function M.wait_until(moment, most)
  local left = moment - now
  return left > 0 and left <= most and left or 0
end

-- Returns for how many more ms missing unit budgets are not seeded. The hold starts when Redis has lost its data.
function M.recovery_hold() return M.wait_until(num(global, 'recovery_hold_until'), DAY) end

-- Calls fn(scope, source, path) for every scope that has limits. For group/<name>, source and path are nil.
function M.each_scope(fn)
  for scope in string.gmatch(text(M.state('tuning'), 'scopes'), '[^,]+') do fn(scope, string.match(scope, '^([^:]+):([^:]+)$')) end
end

-- Writes what the script changed, permits and records (record.lua) first. A Redis without free memory refuses a script
-- at its first write that needs memory. Permits must be released even then.
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
