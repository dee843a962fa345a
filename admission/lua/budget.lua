-- Part of exchange and renew: unit budgets, b:<scope>:<period>. A budget is
-- reserved before the call and spent by its settle; a hash without `spent` was
-- lost or never seeded.

-- move changes what a list of budgets has reserved and spent. Budgets that are
-- gone are left alone: their seed counts the call rows.
function M.move(list, reserved, spent)
  M.each(list, function(name)
    local b = M.state('b:' .. name)
    if b.v.spent == nil then return end
    if reserved ~= 0 then put(b, 'reserved', max(0, num(b, 'reserved') + reserved)) end
    if spent ~= 0 then put(b, 'spent', max(0, num(b, 'spent') + spent)) end
  end)
end
