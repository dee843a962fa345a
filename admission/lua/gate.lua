-- gate: a person (or the worker, for evidence of its own) halts or resumes.
-- Resume sets the gate half-open: the next call is the probe. It ends neither
-- a throttle nor anything else that runs by itself.
--
-- KEYS 1 <prefix>g
-- ARGV 1 prefix · 2 source or * · 3 path or * · 4 shut or open · 5 ms until a probe may go (0: only a person resumes) · 6 reason · 7 by
--      8 token fingerprint or ''
-- reply: number of gates changed
local g = M.state('g')
local changed = 0
M.each(M.str(M.state('tuning'), 'scopes'), function(name)
  local source, path = string.match(name, '^s:([^:]+):([^:]+)$')
  if not source or ARGV[2] ~= '*' and ARGV[2] ~= source or ARGV[3] ~= '*' and ARGV[3] ~= path then return end
  local s = M.state(name)
  if ARGV[4] == 'shut' then
    local wait = tonumber(ARGV[5])
    M.halt(s, ARGV[6], ARGV[7], ARGV[8], wait > 0 and now + wait or 0)
    changed = changed + 1
  elseif M.forget(name, s) or M.str(s, 'halt') ~= '' or num(s, 'brk') == 1 then
    M.renew_epoch(s)
    put(s, 'auth', 0)
    put(s, 'nf', 0)
    if M.str(s, 'halt') ~= '' then put(s, 'halt_probe', now) end
    if num(s, 'brk') == 1 then put(s, 'brk_until', now) end
    put(s, 'resumed_by', ARGV[7])
    changed = changed + 1
  end
end)
M.flush()
return changed
