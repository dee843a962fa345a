-- Part of exchange and check: selects the sources that a call may use and their order.

-- Returns the sources that are not excluded. If a source is pinned, only it is returned.
function M.allowed_sources(call)
  local pinned = call.pinned
  if not pinned and call.group then
    pinned = text(M.state('group/' .. call.group), 'limit_source')
    if pinned == '' then pinned = nil end
  end
  local excluded = {}
  for _, name in ipairs(call.exclude or {}) do excluded[name] = true end
  local out = {}
  for i = 1, #request.sources do
    local source = request.sources[i]
    if (not pinned or pinned == source.name) and not excluded[source.name] then out[#out + 1] = source end
  end
  return out
end

function M.source_state(source, path) return M.state(source .. ':' .. path) end

-- Returns the share of recent calls that succeeded, ×1000.
function M.health(st) return tonumber(st.values.health_milli or 1000) or 1000 end

-- Returns the used share of the concurrency limit.
function M.load_of(st) return num(st, 'in_flight') / max(1, M.concurrency_of(st)) end

-- Returns the sources with two random ones first. The healthier and less busy of the two is first, except one time in
-- twenty. The exception keeps a few calls on a bad source, so its recovery is noticed.
function M.two_choices(list, call)
  local a = call.random_a % #list + 1
  local b = call.random_b % (#list - 1) + 1
  if b >= a then b = b + 1 end
  local function score(i)
    local st = M.source_state(list[i].name, call.path)
    return M.health(st) * (1 - 0.5 * min(1, M.load_of(st)))
  end
  local score_a, score_b = score(a), score(b)
  if score_b > score_a or score_b == score_a and floor(call.random_b / 1024) % 2 == 0 then a, b = b, a end
  if floor(call.random_a / 64) % 20 == 0 then a, b = b, a end
  local out = { list[a], list[b] }
  for i = 1, #list do
    if i ~= a and i ~= b then out[#out + 1] = list[i] end
  end
  return out
end

-- Moves a source to the end if the task failed on it twice in a row and another source has at least half its health.
function M.demote(list, record, path)
  if (record.source_failures or 0) < 2 then return end
  for i = 1, #list do
    if list[i].name == record.failed_source then
      local health = M.health(M.source_state(list[i].name, path))
      for k = 1, #list do
        if k ~= i and M.health(M.source_state(list[k].name, path)) * 2 >= health then
          list[#list + 1] = table.remove(list, i)
          return
        end
      end
    end
  end
end

-- Returns a call's sources in the order in which they are tried.
function M.candidates(call, record)
  local list = M.allowed_sources(call)
  if #list < 2 then return list end
  if request.source_policy == 'round_robin' then
    M.add(global, 'round_robin_turn', 1)
    for _ = 1, num(global, 'round_robin_turn') % #list do list[#list + 1] = table.remove(list, 1) end
  elseif request.source_policy == 'least_inflight' then
    local least, fewest = 1, math.huge
    for i = 1, #list do
      local in_flight = num(M.source_state(list[i].name, call.path), 'in_flight')
      if in_flight < fewest then least, fewest = i, in_flight end
    end
    table.insert(list, 1, table.remove(list, least))
  else
    list = M.two_choices(list, call)
  end
  M.demote(list, record, call.path)
  return list
end
