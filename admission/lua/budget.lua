-- Part of exchange and renew: unit budgets, b:<scope>:<period>. A budget is
-- reserved before the call and spent by its settle; a hash without `spent` was
-- lost or never seeded.

-- named: the budgets of a list of names; tasks admitted alike have the same.
local named = {}
function M.named(list)
  local found = named[list]
  if not found then
    found = {}
    M.each(list, function(name) found[#found + 1] = { name = name, st = M.state('b:' .. name) } end)
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
    local st, key = found[i].st, P .. 'b:' .. found[i].name
    if st.v.spent ~= nil then
      if reserved ~= 0 then put(st, 'reserved', max(0, num(st, 'reserved') + reserved)) end
      if spent ~= 0 then put(st, 'spent', max(0, num(st, 'spent') + spent)) end
    elseif spent > 0 then
      redis.call('HINCRBY', key, 'late:' .. int(now), spent)
      redis.call('PEXPIRE', key, 40 * DAY)
    end
  end
end
