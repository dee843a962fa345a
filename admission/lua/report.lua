-- Part of exchange: what an answer says about its source+path.

function M.fingerprint(name)
  for i = 1, #sources do
    if sources[i].name == name then return sources[i].fp end
  end
  return ''
end

-- halt_all halts one path or, with scope source, every path of the source.
function M.halt_all(r, j, reason, probe_at)
  local fp = M.fingerprint(j.src)
  if r.halt ~= 'source' then return M.halt(M.state('s:' .. j.src .. ':' .. j.path), reason, 'auto', fp, probe_at) end
  M.each(M.str(M.state('tuning'), 'scopes'), function(name)
    if string.sub(name, 1, #j.src + 3) == 's:' .. j.src .. ':' then M.halt(M.state(name), reason, 'auto', fp, probe_at) end
  end)
end

-- account: authentication needs a streak, everything else halts at once.
function M.account(r, j, s)
  put(s, 'fails', 0)
  if r.outcome == 'authentication' then
    M.add(s, 'auth', 1)
    if num(s, 'auth') < num(M.state('tuning'), 'breaker_auth_failures') and M.str(s, 'halt') == '' then return end
    return M.halt_all(r, j, 'authentication', 0)
  end
  local probe_at = 0
  if r.outcome == 'quota' or r.outcome == 'subscription' then
    probe_at = now + num(M.state('tuning'), 'breaker_probe_quota')
  elseif r.probeable then
    probe_at = now + num(M.state('tuning'), 'breaker_probe_blocked')
  end
  M.halt_all(r, j, r.outcome, probe_at)
end

-- trip opens the breaker; the cooldown doubles while probes fail.
function M.trip(s)
  local n = num(s, 'brk_n')
  M.renew_epoch(s)
  put(s, 'brk', 1)
  put(s, 'brk_n', min(n + 1, 20))
  put(s, 'brk_until', now + min(num(M.state('tuning'), 'breaker_cooldown') * 2 ^ n, num(M.state('tuning'), 'breaker_cooldown_max')))
end

-- failure: enough in a row open the breaker, unless the source shows health: a
-- success within the window and less than half of the answers failing.
function M.failure(s)
  M.add(s, 'fails', 1)
  if num(s, 'brk') == 1 then return end
  if num(s, 'fails') < num(M.state('tuning'), 'breaker_failures') then return end
  local healthy = num(s, 'ok') > now - num(M.state('tuning'), 'breaker_window') and num(s, 'h') > 500
  if not healthy then M.trip(s) end
end

function M.success(s)
  if num(s, 'fails') ~= 0 then put(s, 'fails', 0) end
  if num(s, 'auth') ~= 0 then put(s, 'auth', 0) end
  put(s, 'ok', now)
end

-- verdict of a probe: reopen, shut again, or let the next call probe.
function M.judge(r, j, s)
  put(s, 'probe', '')
  if r.channel == 'success' then
    M.reopen(s)
    M.success(s)
    M.ramp(s)
  elseif r.channel == 'failure' then
    if M.str(s, 'halt') ~= '' then
      put(s, 'halt_probe', now + num(M.state('tuning'), 'breaker_cooldown'))
    else
      M.trip(s)
    end
  elseif r.channel == 'account' then
    M.account(r, j, s)
  end
end

-- missing_path: the same 404 over and over is a wrong base URL.
function M.missing_path(r, j, s)
  if r.outcome ~= 'not_found' then
    if r.channel == 'success' and num(s, 'nf') ~= 0 then put(s, 'nf', 0) end
    return
  end
  M.add(s, 'nf', 1)
  if num(s, 'nf') >= num(M.state('tuning'), 'breaker_not_found') then M.halt(s, 'not_found', 'auto', '', 0) end
end

-- throttle shuts until Retry-After; without one for about a call's latency,
-- once per congestion event. A shorter one never shortens.
function M.throttle(r, s, admitted)
  local news = M.cut(s, admitted)
  local shut = r.shut
  if shut <= 0 and news then shut = num(s, 'lat') == 0 and 250 or min(2000, max(20, num(s, 'lat') * 0.75)) end
  local untill = now + min(shut, DAY)
  if shut > 0 and (untill > num(s, 'thr') or num(s, 'thr') > now + DAY) then put(s, 'thr', untill) end
end

-- report runs before the permit is given back: the load counts this call.
function M.report(r, j)
  local s = M.state('s:' .. j.src .. ':' .. j.path)
  if s.v.rev == nil or r.channel == 'none' then return end
  local h = s.v.h and tonumber(s.v.h) or 1000
  if r.channel == 'success' then
    if h < 1000 then put(s, 'h', h + max(1, (1000 - h) * 0.1)) end
    if r.latency > 0 then
      local lat = num(s, 'lat')
      put(s, 'lat', lat == 0 and r.latency or lat + (r.latency - lat) * 0.1)
    end
    M.measure(s)
    M.grow(s)
  elseif r.channel == 'failure' or r.channel == 'account' then
    put(s, 'h', h * 0.9)
  end
  if r.outcome == 'throttled' then M.throttle(r, s, rnum(j, 'at')) end
  if rnum(j, 'epoch') ~= num(s, 'epoch') then return end
  if j.probe and M.str(s, 'probe') == r.key .. ' ' .. r.attempt then return M.judge(r, j, s) end
  if M.str(s, 'halt') ~= '' or num(s, 'brk') == 1 then return end
  M.missing_path(r, j, s)
  if r.channel == 'account' then
    M.account(r, j, s)
  elseif r.channel == 'failure' then
    M.failure(s)
  elseif r.channel == 'success' then
    M.success(s)
  elseif r.outcome == 'throttled' then
    put(s, 'auth', 0)
  end
end
