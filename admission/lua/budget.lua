-- Part of exchange, check, renew and seed: unit budgets, stored in budget:<scope>:<period>. An acquire reserves
-- units. The settle turns them into spent units.

function M.budget(name) return M.hash('budget:' .. name) end

-- Reports whether a budget was seeded. A budget without the field spent was lost or never seeded.
function M.is_seeded(budget) return tonumber(budget.values.reserved or 0) and tonumber(budget.values.spent or '') end

-- Adds to the reserved and spent units of a comma-separated list of budgets. If a budget is missing, the spent units
-- are stored with their time, and the seed adds them. The call rows that the seed is based on may lack this call.
function M.move_units(names, reserved, spent)
  for name in string.gmatch(names, '[^,]+') do
    local budget = M.budget(name)
    if M.is_seeded(budget) then
      put(budget, 'reserved', max(0, num(budget, 'reserved') + reserved))
      put(budget, 'spent', max(0, num(budget, 'spent') + spent))
    elseif spent > 0 then
      local key = prefix .. budget.name
      redis.call('HINCRBY', key, 'spent_at:' .. int(now), int(spent))
      redis.call('PEXPIRE', key, int(40 * DAY))
    end
  end
end
