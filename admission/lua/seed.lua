-- seed: writes missing unit budgets. Existing budgets stay unchanged. It writes nothing if Redis has lost its data
-- since the call rows were read.
--
-- KEYS, ARGV as in prelude.lua. Request: budgets [{name, spent (units of settled calls), found_missing_at (ms, before the
--   call rows were read; 0 = unknown), ttl_ms}]
-- Reply: written, the number of budgets
local written = 0

-- Returns the units of admitted calls that are not settled. These calls have no call rows yet.
local function reserved_by_permits(name)
  local held = redis.call('ZRANGEBYSCORE', prefix .. 'permits', '(' .. int(now), '+inf')
  M.load(held)
  local units = 0
  for i = 1, #held do
    local record = M.record(held[i])
    if not record.forfeited and string.find(',' .. (record.budgets or '') .. ',', ',' .. name .. ',', 1, true) then
      units = units + (record.units or 0)
    end
  end
  return units
end

-- Returns the units of calls that were settled while the budget was missing, and deletes their fields. The call rows
-- may already include these units. They are counted anyway, so that a budget is never exceeded.
local function spent_since(budget, from)
  local units = 0
  for field, value in pairs(budget.values) do
    local at = tonumber(string.match(field, '^spent_at:(%d+)$') or '')
    if at then
      if at >= from then units = units + tonumber(value) end
      redis.call('HDEL', prefix .. budget.name, field)
    end
  end
  return units
end

if num(global, 'revision') > 0 and M.recovery_hold() == 0 then
  for _, asked in ipairs(request.budgets) do
    local budget = M.budget(asked.name)
    if not M.is_seeded(budget) then
      put(budget, 'spent', asked.spent + spent_since(budget, asked.found_missing_at))
      put(budget, 'reserved', reserved_by_permits(asked.name))
      M.flush()
      redis.call('PEXPIRE', prefix .. budget.name, int(asked.ttl_ms))
      written = written + 1
    end
  end
end
return cjson.encode({ written = written })
