-- pause: changes the set of reasons why a queue is paused.
--
-- KEYS 1 <prefix>g
-- ARGV 1 prefix · 2 queue · 3 add | remove | read | apply · then
--        add: reason, ms until it ends by itself (0: never), by, evidence
--        remove: reason or auto:* or *
--        apply: expected version, new flag state, then what happens to the set: keep | manual (adopt) | drop, ms an automatic reason is
--          kept out after drop, by
-- reply: {now ms, flag state, version, override ms, changed, {reason, until, at, by, evidence …}}
--
-- pause:<queue>: a field per reason holds "until at by evidence"; #flag is what the worker made of asynq's flag (0 1 pausing unpausing),
-- #ver rises with every change, #override is until when automatic reasons are kept out because a person opened the queue.
local key = P .. 'pause:' .. ARGV[2]
local st = M.state('pause:' .. ARGV[2])
local changed, gone = 0, {}

function M.drop(field)
  st.v[field], st.d[field] = nil, nil
  gone[#gone + 1] = field
  changed = 1
end

function M.reasons(fn)
  local names = {}
  for field in pairs(st.v) do
    if string.sub(field, 1, 1) ~= '#' then names[#names + 1] = field end
  end
  table.sort(names)
  for i = 1, #names do fn(names[i]) end
end

function M.is_auto(name) return string.sub(name, 1, 5) == 'auto:' end

M.reasons(function(name)
  local untill = tonumber(string.match(st.v[name], '^(%d+)')) or 0
  if untill > 0 and untill <= now then M.drop(name) end
end)

local what = ARGV[3]
if what == 'add' then
  local name, wait = ARGV[4], tonumber(ARGV[5])
  local untill = wait > 0 and now + wait or 0
  if not (M.is_auto(name) and num(st, '#override') > now) then
    local old = tonumber(string.match(M.str(st, name), '^(%d+)'))
    -- A later end than known wins; an automatic one may also become shorter,
    -- because the worker that sees the gates says when they open.
    if old ~= untill or old == nil then
      put(st, name, int(untill) .. ' ' .. int(now) .. ' ' .. ARGV[6] .. ' ' .. ARGV[7])
      changed = 1
    end
  end
elseif what == 'remove' then
  M.reasons(function(name)
    if ARGV[4] == '*' or ARGV[4] == name or ARGV[4] == 'auto:*' and M.is_auto(name) then M.drop(name) end
  end)
elseif what == 'apply' and ARGV[4] == int(num(st, '#ver')) then
  put(st, '#flag', ARGV[5])
  if ARGV[6] == 'manual' then
    put(st, 'manual', '0 ' .. int(now) .. ' ' .. ARGV[8] .. ' flag set elsewhere')
  elseif ARGV[6] == 'drop' then
    M.reasons(M.drop)
    put(st, '#override', now + tonumber(ARGV[7]))
  end
  changed = 1
end

if changed == 1 then M.add(st, '#ver', 1) end
for i = 1, #gone do redis.call('HDEL', key, gone[i]) end
M.flush()

local list = {}
M.reasons(function(name)
  local untill, at, by, evidence = string.match(st.v[name], '^(%d+) (%d+) (%S*) ?(.*)$')
  list[#list + 1] = name
  list[#list + 1] = tonumber(untill) or 0
  list[#list + 1] = tonumber(at) or 0
  list[#list + 1] = by or ''
  list[#list + 1] = evidence or ''
end)
local flag = M.str(st, '#flag')
return { now, flag == '' and '0' or flag, num(st, '#ver'), num(st, '#override'), changed, list }
