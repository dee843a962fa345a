-- renew: extends permits. Each worker calls it every few seconds. Every recount_every_ms it also recounts the calls in
-- flight and shortens permits that a clock step made too long.
--
-- KEYS, ARGV as in prelude.lua. Request: permit_ttl_ms, recount_every_ms, permits [{key, attempt, source, path, group,
--   sent (the call may have been sent), units, admitted_at, epoch, generation, budgets}]
-- Reply: renewed, one number per permit: 1 = extended, 0 = missing (also if the call was registered again)
local permits, reply, keys = request.permits or {}, {}, {}

-- Registers a call that may have been sent but whose permit or record is missing. If both are missing, the call's
-- units are reserved again. A budget that exists was seeded without them; a missing budget gets them from its seed.
local function register_again(permit, record, held)
  if not record.attempt then
    record.units, record.admitted_at, record.epoch, record.budgets = permit.units, permit.admitted_at, permit.epoch, permit.budgets
    record.forfeited, record.start_us, record.probe = nil, nil, nil
    if not held then M.move_units(permit.budgets, permit.units, 0) end
    record.possibly_billed = max(1, record.possibly_billed or 0)
  end
  record.attempt, record.source, record.path, record.group = permit.attempt, permit.source, permit.path, permit.group
  if not held then M.count_in_flight(M.lane(permit.source, permit.path, permit.group), 1) end
  M.extend(permit.key, now + request.permit_ttl_ms)
  M.save(permit.key)
end

for i = 1, #permits do keys[i] = permits[i].key end
M.load(keys)
for i = 1, #permits do
  local permit = permits[i]
  local record, held = M.record(permit.key), M.permit_end(permit.key)
  local own = record.attempt == permit.attempt
  reply[i] = held and own and 1 or 0
  if held and own then
    M.extend(permit.key, now + request.permit_ttl_ms)
  elseif permit.sent and not M.is_settled(record, permit.attempt) and (not record.attempt or not held and own) then
    register_again(permit, record, held)
  end
end

-- Recomputes the in-flight counters from the permits.
local function recount()
  local counts, grouped = {}, {}
  local all = redis.call('ZRANGE', prefix .. 'permits', 0, -1)
  M.load(all)
  for i = 1, #all do
    local record = M.record(all[i])
    if record.source then
      local scope = record.source .. ':' .. record.path
      counts[scope] = (counts[scope] or 0) + 1
      local field = 'group/' .. (record.group or '') .. ' ' .. scope .. ':in_flight'
      grouped[field] = (grouped[field] or 0) + 1
    end
  end
  M.each_scope(function(scope, source)
    local st = M.state(scope)
    if source then return put(st, 'in_flight', counts[scope] or 0) end
    for field in pairs(st.values) do
      if string.sub(field, -10) == ':in_flight' then put(st, field, grouped[scope .. ' ' .. field] or 0) end
    end
  end)
  put(global, 'in_flight', #all)
end

local last = num(global, 'recounted_at')
if now - last >= request.recount_every_ms or last > now then
  local ahead = redis.call('ZRANGEBYSCORE', prefix .. 'permits', '(' .. int(now + 10 * request.permit_ttl_ms), '+inf')
  M.load(ahead)
  for i = 1, #ahead do M.extend(ahead[i], now + request.permit_ttl_ms) end
  M.flush_records() -- sweep and recount read the permits from Redis
  M.sweep()
  M.flush_records()
  recount()
  put(global, 'recounted_at', now)
end
M.flush()
return cjson.encode({ renewed = #reply > 0 and reply or nil })
