-- Part of exchange, ask and renew: unit budgets, b:<scope>:<period>. A budget is
-- reserved before the call and spent by its settle; a hash without `spent` was
-- lost or never seeded.

-- budget_of reads a budget once a script; what changed is written by the flush.
local budgets = {}
function M.budget_of(name)
  local b = budgets[name]
  if not b then
    local key = P .. 'b:' .. name
    local kept = redis.call('HMGET', key, 'reserved', 'spent')
    local reserved, spent = tonumber(kept[1] or 0), tonumber(kept[2] or '')
    b = { key = key, name = name, there = reserved and spent, reserved = reserved or 0, spent = spent or 0 }
    budgets[name] = b
  end
  return b
end

-- named: the budgets of a list of names; tasks admitted alike have the same.
local named = {}
function M.named(list)
  local found = named[list]
  if not found then
    found = {}
    M.each(list, function(name) found[#found + 1] = M.budget_of(name) end)
    named[list] = found
  end
  return found
end

-- move changes what a list of budgets has reserved and spent. For a budget that
-- is gone it notes when what was spent: its seed counts the call rows, but they
-- may have been read just before this one was written.
function M.move(list, reserved, spent)
  local found = M.named(list)
  for i = 1, #found do
    local b = found[i]
    if b.there then
      b.reserved, b.spent, b.changed = max(0, b.reserved + reserved), max(0, b.spent + spent), true
    elseif spent > 0 then
      redis.call('HINCRBY', b.key, 'late:' .. int(now), int(spent))
      redis.call('PEXPIRE', b.key, int(40 * DAY))
    end
  end
end

flushers[#flushers + 1] = function()
  for _, b in pairs(budgets) do
    if b.changed then redis.call('HSET', b.key, 'reserved', int(b.reserved), 'spent', int(b.spent)) end
  end
end
