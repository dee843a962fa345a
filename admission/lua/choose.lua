-- Part of exchange: in which order sources are tried, and what a group may use.

function M.sources_of(r)
  local pinned = r.pinned
  if pinned == '' and r.group ~= '' then pinned = M.str(M.state('grp:' .. r.group), 'pin') end
  local out = {}
  for i = 1, #sources do
    local name = sources[i].name
    if (pinned == '' or pinned == name) and not string.find(',' .. r.exclude .. ',', ',' .. name .. ',', 1, true) then
      out[#out + 1] = sources[i]
    end
  end
  return out
end

function M.health(name, path)
  local h = M.state('s:' .. name .. ':' .. path).v.h
  return h and tonumber(h) or 1000
end

function M.load_of(name, path)
  local s = M.state('s:' .. name .. ':' .. path)
  return num(s, 'inflight') / max(1, M.permits_of(s))
end

-- front puts the i-th in front and keeps the others in order.
function M.front(list, i) table.insert(list, 1, table.remove(list, i)) end

-- two_choices: of two random candidates the healthier and less busy is first,
-- the other second. One time in twenty the other goes first, so that a bad
-- source keeps a small share and its recovery is seen.
function M.two_choices(list, r)
  local a = r.r1 % #list + 1
  local b = r.r2 % (#list - 1) + 1
  if b >= a then b = b + 1 end
  local function score(i) return M.health(list[i].name, r.path) * (1 - 0.5 * min(1, M.load_of(list[i].name, r.path))) end
  local sa, sb = score(a), score(b)
  if sb > sa or sb == sa and floor(r.r2 / 1024) % 2 == 0 then a, b = b, a end
  if floor(r.r1 / 64) % 20 == 0 then a, b = b, a end
  local first, second = list[a], list[b]
  local out = { first, second }
  for i = 1, #list do
    if i ~= a and i ~= b then out[#out + 1] = list[i] end
  end
  return out
end

-- demote: after two failures in a row of this task on one source it goes last
-- if another has at least half its health.
function M.demote(list, j, path)
  if rnum(j, 'fn') < 2 then return end
  for i = 1, #list do
    if list[i].name == j.fs then
      for k = 1, #list do
        if k ~= i and M.health(list[k].name, path) * 2 >= M.health(j.fs, path) then
          list[#list + 1] = table.remove(list, i)
          return
        end
      end
    end
  end
end

function M.candidates(r, j)
  local list = M.sources_of(r)
  if #list < 2 then return list end
  if policy == 'round_robin' then
    M.add(g, 'rr', 1)
    for _ = 1, num(g, 'rr') % #list do list[#list + 1] = table.remove(list, 1) end
  elseif policy == 'least_inflight' then
    local least = 1
    for i = 2, #list do
      if num(M.state('s:' .. list[i].name .. ':' .. r.path), 'inflight') < num(M.state('s:' .. list[least].name .. ':' .. r.path), 'inflight') then
        least = i
      end
    end
    M.front(list, least)
  else
    list = M.two_choices(list, r)
  end
  M.demote(list, j, r.path)
  return list
end
