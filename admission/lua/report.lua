-- Part of exchange: what an answer says about its source+path.

local function fingerprint(name)
  for i = 1, #sources do
    if sources[i].name == name then return sources[i].fp end
  end
  return ''
end

-- halt_all halts one path or, with scope source, every path of the source.
local function halt_all(r, j, reason, probe_at)
  local fp = fingerprint(j.src)
  if r.halt ~= 'source' then return halt(state('s:' .. j.src .. ':' .. j.path), reason, 'auto', fp, probe_at) end
  each(str(g, 'scopes'), function(name)
    if string.sub(name, 1, #j.src + 3) == 's:' .. j.src .. ':' then halt(state(name), reason, 'auto', fp, probe_at) end
  end)
end

-- account: authentication needs a streak, everything else halts at once.
local function account(r, j, s)
  put(s, 'fails', 0)
  if r.outcome == 'authentication' then
    add(s, 'auth', 1)
    if num(s, 'auth') < num(g, 'brk_auth') and str(s, 'halt') == '' then return end
    return halt_all(r, j, 'authentication', 0)
  end
  local probe_at = 0
  if r.outcome == 'quota' or r.outcome == 'subscription' then
    probe_at = now + num(g, 'halt_hour')
  elseif r.probeable then
    probe_at = now + num(g, 'halt_blocked')
  end
  halt_all(r, j, r.outcome, probe_at)
end

-- trip opens the breaker; the cooldown doubles while probes fail.
local function trip(s)
  local n = num(s, 'brk_n')
  renew_epoch(s)
  put(s, 'brk', 1)
  put(s, 'brk_n', min(n + 1, 20))
  put(s, 'brk_until', now + min(num(g, 'brk_cool') * 2 ^ n, num(g, 'brk_cool_max')))
end

-- failure: enough in a row open the breaker, unless the source shows health: a
-- success within the window and less than half of the answers failing.
local function failure(s)
  add(s, 'fails', 1)
  if num(s, 'brk') == 1 then return end
  if num(s, 'fails') < num(g, 'brk_fails') then return end
  local healthy = num(s, 'ok') > now - num(g, 'brk_window') and num(s, 'h') > 500
  if not healthy then trip(s) end
end

local function success(s)
  put(s, 'fails', 0)
  put(s, 'auth', 0)
  put(s, 'ok', now)
end

-- verdict of a probe: reopen, shut again, or let the next call probe.
local function judge(r, j, s)
  put(s, 'probe', '')
  if r.channel == 'success' then
    reopen(s)
    if str(s, 'bad_fp') == fingerprint(j.src) then put(s, 'bad_fp', '') end
    success(s)
    ramp(s)
  elseif r.channel == 'failure' then
    if str(s, 'halt') ~= '' then
      put(s, 'halt_probe', now + num(g, 'brk_cool'))
    else
      trip(s)
    end
  elseif r.channel == 'account' then
    account(r, j, s)
  end
end

-- missing: the same 404 over and over is a wrong base URL.
local function missing_path(r, j, s)
  if r.outcome ~= 'not_found' then
    if r.channel == 'success' then put(s, 'nf', 0) end
    return
  end
  add(s, 'nf', 1)
  if num(s, 'nf') >= num(g, 'brk_404') then halt(s, 'not_found', 'auto', '', 0) end
end

-- throttle shuts until Retry-After; without one for about a call's latency,
-- once per congestion event. A shorter one never shortens.
local function throttle(r, s, admitted)
  local news = cut(s, admitted)
  local shut = r.shut
  if shut <= 0 and news then shut = num(s, 'lat') == 0 and 250 or min(2000, max(20, num(s, 'lat') * 0.75)) end
  local untill = now + min(shut, DAY)
  if shut > 0 and (untill > num(s, 'thr') or num(s, 'thr') > now + DAY) then put(s, 'thr', untill) end
end

-- report runs before the permit is given back: the load counts this call.
local function report(r, j)
  local s = state('s:' .. j.src .. ':' .. j.path)
  if s.v.rev == nil or r.channel == 'none' then return end
  local h = s.v.h and tonumber(s.v.h) or 1000
  if r.channel == 'success' then
    put(s, 'h', h + (1000 - h) * 0.1)
    if r.latency > 0 then
      local lat = num(s, 'lat')
      put(s, 'lat', lat == 0 and r.latency or lat + (r.latency - lat) * 0.1)
    end
    measure(s)
    grow(s)
  elseif r.channel == 'failure' or r.channel == 'account' then
    put(s, 'h', h * 0.9)
  end
  if r.outcome == 'throttled' then throttle(r, s, rnum(j, 'at')) end
  if rnum(j, 'epoch') ~= num(s, 'epoch') then return end
  if str(s, 'probe') == r.key and rnum(j, 'probe') == 1 then return judge(r, j, s) end
  if str(s, 'halt') ~= '' or num(s, 'brk') == 1 then return end
  missing_path(r, j, s)
  if r.channel == 'account' then
    account(r, j, s)
  elseif r.channel == 'failure' then
    failure(s)
  elseif r.channel == 'success' then
    success(s)
  elseif r.outcome == 'throttled' then
    put(s, 'auth', 0)
  end
end
