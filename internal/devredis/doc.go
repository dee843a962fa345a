// Package devredis runs the Redis of `worker dev`.
//
// With a redis-server on PATH it runs that as a child process on a data folder:
// unix socket only, AOF synced every second, noeviction, one instance per folder
// (flock on DIR/lock, which the child inherits). The child ends with this
// process, even if that is killed, and its data is kept. Without a redis-server
// it runs miniredis in this process, which keeps its data in memory only.
//
// Files in the data folder: appendonlydir/ (the data), redis.sock (the socket,
// unless its path is too long), redis.log (the child's output), lock.
package devredis
