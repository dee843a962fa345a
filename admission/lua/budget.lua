-- Part of exchange, check and renew: unit budgets, budget:<scope>:<period>. A call
-- reserves its units and its settle spends them; a hash without `spent` was lost
-- or never seeded.

-- budget_of reads a budget once a script; the flush writes the changed ones.
local budgets = {}
function M.budget_of(name)
  local budget = budgets[name]
  if not budget then
    local key = prefix .. 'budget:' .. name
    local kept = redis.call('HMGET', key, 'reserved', 'spent')
    local reserved, spent = tonumber(kept[1] or 0), tonumber(kept[2] or '')
    budget = { key = key, name = name, seeded = reserved and spent, reserved = reserved or 0, spent = spent or 0 }
    budgets[name] = budget
  end
  return budget
end

-- budgets_of: the budgets of a comma-separated list of names.
local lists = {}
function M.budgets_of(names)
  local found = lists[names]
  if not found then
    found = {}
    for name in string.gmatch(names, '[^,]+') do found[#found + 1] = M.budget_of(name) end
    lists[names] = found
  end
  return found
end

-- move_units adds to what a list of budgets has reserved and spent. For a budget
-- that is gone it notes when the units were spent: its seed sums the call rows, but
-- it may have read them just before the row of this call was written.
function M.move_units(names, reserved, spent)
  local found = M.budgets_of(names)
  for i = 1, #found do
    local budget = found[i]
    if budget.seeded then
      budget.reserved, budget.spent, budget.changed = max(0, budget.reserved + reserved), max(0, budget.spent + spent), true
    elseif spent > 0 then
      redis.call('HINCRBY', budget.key, 'spent_at:' .. int(now), int(spent))
      redis.call('PEXPIRE', budget.key, int(40 * DAY))
    end
  end
end

flushers[#flushers + 1] = function()
  for _, budget in pairs(budgets) do
    if budget.changed then redis.call('HSET', budget.key, 'reserved', int(budget.reserved), 'spent', int(budget.spent)) end
  end
end
