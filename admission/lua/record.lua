-- Part of exchange, renew and seed: the record of a task, j:<key>. Its lines,
-- in this order, are of words:
--   a  the attempt that is charged and not settled yet   t  the attempts settled last
--   r  what the attempts did so far   u  what the unsettled attempt holds   l  the attempt before, if it was lost
local RECORD_MS, TOMBSTONE_MS = 14 * DAY, 600000
local R = { 'gen', 'counted', 'pb', 'streak', 'same', 'thr', 'spent', 'ff', 'fn', 'last', 'fs' }
local U = { 'src', 'path', 'grp', 'units', 'at', 'epoch', 'start', 'probe', 'kept', 'bk' }
local L = { 'la', 'lsrc', 'lunits', 'lat', 'lbk', 'told' }

function M.words(j, names, line)
  local i = 0
  if line then
    for word in string.gmatch(line, '%S+') do
      i = i + 1
      j[names[i]] = word ~= '-' and word or ''
    end
  end
  for k = i + 1, #names do j[names[k]] = '' end
end

function M.record(key)
  local a, t, r, u, l = M.lines(key)
  local j = { a = a or '', t = t or '' }
  M.words(j, R, r)
  M.words(j, U, u)
  M.words(j, L, l)
  return j
end

-- settled: a repeat of a settle may come after the next attempts have ended.
function M.settled(j, attempt)
  return j.t ~= '' and string.find(' ' .. j.t .. ' ', ' ' .. attempt .. ' ', 1, true) ~= nil
end

-- remember keeps the last four, newest first.
function M.remember(j, attempt)
  j.t = attempt .. (string.match(' ' .. j.t, '^ %S+ %S+ %S+') or j.t ~= '' and ' ' .. j.t or '')
end

local function rnum(j, field) return tonumber(j[field]) or 0 end

function M.join(j, names)
  local out = {}
  for i = 1, #names do
    local value = j[names[i]]
    if type(value) == 'number' and value >= 1e14 then value = int(value) end -- concat keeps 14 digits
    out[i] = value ~= '' and value or '-'
  end
  return table.concat(out, ' ')
end

function M.save(key, j)
  local lines = j.a .. '\n' .. j.t .. '\n' .. M.join(j, R) .. '\n' .. M.join(j, U) .. '\n' .. M.join(j, L)
  redis.call('SET', P .. 'j:' .. key, lines, 'PX', int(RECORD_MS))
end

function M.count(source, path, group, n)
  local s, all = M.state('s:' .. source .. ':' .. path), M.state('g')
  put(s, 'inflight', max(0, num(s, 'inflight') + n))
  put(all, 'inflight', max(0, num(all, 'inflight') + n))
  if group ~= '' then
    local q, field = M.state('grp:' .. group), 'in:' .. source .. ':' .. path
    put(q, field, max(0, num(q, field) + n))
  end
end

-- release gives a permit back; true if it was held.
function M.release(key, j)
  if redis.call('ZREM', P .. 'p', key) == 0 then return false end
  if j.src ~= '' then M.count(j.src, j.path, j.grp, -1) end
  return true
end

-- forfeit turns what an attempt reserved into spent: it may have been billed.
function M.forfeit(j)
  if rnum(j, 'kept') == 1 then return end
  M.move(j.bk, -rnum(j, 'units'), rnum(j, 'units'))
  j.kept = 1
end

-- sweep releases permits whose time is over.
function M.sweep()
  local dead = redis.call('ZRANGEBYSCORE', P .. 'p', '-inf', int(now), 'LIMIT', 0, 200)
  for i = 1, #dead do
    local j = M.record(dead[i])
    M.release(dead[i], j)
    if j.a ~= '' and rnum(j, 'kept') == 0 then
      M.forfeit(j)
      M.save(dead[i], j)
    end
  end
end
