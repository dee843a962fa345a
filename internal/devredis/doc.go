// Package devredis runs the Redis of `worker dev`.
//
// A redis-server on PATH runs as a child process on a data folder: unix socket only, AOF synced every second,
// noeviction, one instance per folder (flock on DIR/lock, which the child inherits). On Linux the child ends
// when this process ends or is killed. Its data is kept. Without a redis-server, miniredis runs in this
// process and keeps its data in memory only.
//
// Files in the data folder: appendonlydir/ (the data), redis.sock (the socket, unless its path is too long),
// redis.log (the child's output), lock.
package devredis
