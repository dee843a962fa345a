// Package devredis is the Redis of `worker dev` for people who have none.
//
// With a redis-server on PATH it runs that one as a child on a data folder:
// unix socket only, AOF synced every second, noeviction, one instance per
// folder (flock on DIR/lock, held by the child too). The child ends with this
// process, however it ends, and what was enqueued is there the next time.
// Without one it runs miniredis in this process: tasks live in memory only.
//
// Files in the data folder: appendonlydir/ (the data), redis.sock (the socket,
// unless its path is too long), redis.log (the child's output), lock.
package devredis
