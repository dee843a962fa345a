-- read: returns state hashes, budgets and one task, all read at the same moment. It changes nothing.
--
-- KEYS, ARGV as in prelude.lua. Request: task (key, or ''), hashes [name without the prefix]
-- Reply: now, hashes {name: {field: value}}, and the task's record, permit_wait_ms (0 = no permit). Values that do
--   not exist are omitted.
local reply, hashes = { now = now, permit_wait_ms = 0 }, {}
if request.task ~= '' then
  local record = M.record(request.task)
  reply.record = next(record) and record or nil
  reply.permit_wait_ms = max(0, ceil((M.permit_end(request.task) or 0) - now))
end
for _, name in ipairs(request.hashes) do
  local values = M.read_hash(name)
  hashes[name] = next(values) and values or nil
end
reply.hashes = next(hashes) and hashes or nil
return cjson.encode(reply)
