-- Part of exchange: the arguments every decision shares (contract in exchange.lua).
local at = 2
local function arg() at = at + 1; return ARGV[at - 1] end
local function narg() return tonumber(arg()) end

local ttl, lookahead = narg(), narg() -- ms, µs
local zone = { offset = narg(), untill = narg(), after = narg() } -- ms, ms, ms
local anchor = narg()
local policy = arg()
local sources = {}
for i = 1, narg() do sources[i] = { name = arg(), fp = arg() } end
local g = M.state('g') -- global gates
