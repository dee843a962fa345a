-- Give a task enqueued with low limits the limits of our own producers, and
-- take it out of the archive asynq put it in against its verdict.
-- KEYS[1] asynq:{q}:t:<id>   KEYS[2] asynq:{q}:archived   KEYS[3] asynq:{q}:retry
-- ARGV[1] task id   ARGV[2] due, Unix seconds   ARGV[3] protobuf bytes to append to the message
-- reply: 1 mended or nothing to mend, 0 still pending or active (look again)
local state = redis.call('HGET', KEYS[1], 'state')
if state == 'archived' then
  if redis.call('ZREM', KEYS[2], ARGV[1]) == 0 then
    return 1
  end
  redis.call('HSET', KEYS[1], 'msg', redis.call('HGET', KEYS[1], 'msg') .. ARGV[3], 'state', 'retry')
  redis.call('ZADD', KEYS[3], ARGV[2], ARGV[1])
  return 1
end
if state == 'retry' then
  redis.call('HSET', KEYS[1], 'msg', redis.call('HGET', KEYS[1], 'msg') .. ARGV[3])
  return 1
end
if state == 'pending' or state == 'active' or state == 'scheduled' then
  return 0
end
return 1
