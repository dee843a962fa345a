-- exchange: settles and acquires of one worker in one round trip.
-- KEYS 1 <prefix>g (routes the script to its slot; all other keys are derived from the prefix)
-- ARGV 1 prefix · 2 permit TTL ms · 3 number of sources, then per source: name, token fingerprint
--      then number of settles, then per settle: key, attempt, outcome, channel, halt, probeable, shut ms, counted, possibly billed,
--           units used, latency ms, backoff ms, clear, request id
--      then number of acquires, then per acquire: key, attempt, path, group, generation, units, bounded, excluded (a,b), pinned,
--           random 1, random 2 (0 … 2^31)
-- reply: one entry per settle: 0 settled, 1 repeated, 2 unknown permit
--        one entry per acquire: {1 granted …} | {0 refused gate source retry_ms no_source never} | {2 in flight until_ms now_ms}
local ttl = tonumber(ARGV[2])
local sources = {}
local at = 3
local function arg() at = at + 1; return ARGV[at - 1] end
local function narg() return tonumber(arg()) end
for i = 1, narg() do sources[i] = { name = arg(), fp = arg() } end
