-- read: state hashes, budgets and one task as they are at one moment. It changes nothing.
--
-- KEYS, ARGV as in prelude.lua. Request: task (key, or ''), hashes [name without the prefix]
-- Reply: now, record and permit_wait_ms (0 = no permit) of the task, hashes {name: {field: value}}; what does not exist is left out
local reply, hashes = { now = now, permit_wait_ms = 0 }, {}
if request.task ~= '' then
  local record = M.record(request.task)
  reply.record = next(record) and record or nil
  reply.permit_wait_ms = max(0, ceil((M.permit_end(request.task) or 0) - now))
end
for _, name in ipairs(request.hashes) do
  local flat, values = redis.call('HGETALL', prefix .. name), {}
  for i = 1, #flat, 2 do values[flat[i]] = flat[i + 1] end
  hashes[name] = #flat > 0 and values or nil
end
reply.hashes = next(hashes) and hashes or nil
return cjson.encode(reply)
