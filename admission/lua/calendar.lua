-- Part of exchange: the days and months of unit budgets, in the zone of the
-- configuration. Redis has no time zones; the caller sends the offset in force,
-- the moment it changes and the offset after that.
function M.civil(days) -- days since 1970-01-01 → year, month, day
  local z = days + 719468
  local era = floor(z / 146097)
  local doe = z - era * 146097
  local yoe = floor((doe - floor(doe / 1460) + floor(doe / 36524) - floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + floor(yoe / 4) - floor(yoe / 100))
  local mp = floor((5 * doy + 2) / 153)
  local month = mp < 10 and mp + 3 or mp - 9
  local year = yoe + era * 400
  if month <= 2 then year = year + 1 end
  return year, month, doy - floor((153 * mp + 2) / 5) + 1
end

function M.days_of(year, month, day)
  if month <= 2 then year = year - 1 end
  local era = floor(year / 400)
  local yoe = year - era * 400
  local doy = floor((153 * (month > 2 and month - 3 or month + 9) + 2) / 5) + day - 1
  return era * 146097 + yoe * 365 + floor(yoe / 4) - floor(yoe / 100) + doy - 719468
end

-- periods: the current day and budget month with the time left of each, ms.
local current
function M.periods()
  if current then return current end
  local offset = now < zone.untill and zone.offset or zone.after
  local here = now + offset
  local days = floor(here / DAY)
  local y, m, d = M.civil(days)
  local p = { day = string.format('%04d-%02d-%02d', y, m, d), day_left = (days + 1) * DAY - here }
  if d < anchor then
    m = m - 1
    if m == 0 then y, m = y - 1, 12 end
  end
  p.month = string.format('%04d-%02d', y, m)
  local ny, nm = y, m + 1
  if nm == 13 then ny, nm = y + 1, 1 end
  p.month_left = M.days_of(ny, nm, anchor) * DAY - here
  current = p
  return p
end
