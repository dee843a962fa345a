-- Part of exchange and renew: unit budgets, b:<scope>:<period>. A budget is
-- reserved before the call and spent by its settle; a hash without `spent` was
-- lost or never seeded.

-- move changes what a list of budgets has reserved and spent. For a budget that
-- is gone it notes when what was spent: its seed counts the call rows, but they
-- may have been read just before this one was written.
function M.move(list, reserved, spent)
  M.each(list, function(name)
    local b = M.state('b:' .. name)
    if b.v.spent == nil then
      if spent > 0 then
        redis.call('HINCRBY', P .. 'b:' .. name, 'late:' .. int(now), int(spent))
        redis.call('PEXPIRE', P .. 'b:' .. name, int(40 * DAY))
      end
      return
    end
    if reserved ~= 0 then put(b, 'reserved', max(0, num(b, 'reserved') + reserved)) end
    if spent ~= 0 then put(b, 'spent', max(0, num(b, 'spent') + spent)) end
  end)
end
