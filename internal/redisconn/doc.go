// Package redisconn builds the go-redis clients of this module from a URL.
//
// asynq's own client options are not used. asynq repeats a lost acknowledgement with a context that is already cancelled, so
// finished tasks would run again after a Redis outage. The client of Queue retries inside go-redis instead. It ignores
// cancellation and obeys the deadline, so it retries until Redis replies or the task's lease ends.
//
// No error of these clients contains the password, the user or the address of the URL.
package redisconn
