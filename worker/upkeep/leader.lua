-- Take the leader's lease, or renew it.
-- KEYS[1] lease (string: id of the leader)
-- ARGV[1] id of this worker   ARGV[2] duration of the lease in ms
-- reply: 1 this worker leads, 0 another one does
local leader = redis.call('GET', KEYS[1])
if leader and leader ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
