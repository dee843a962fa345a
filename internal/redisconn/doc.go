// Package redisconn builds the go-redis clients of this service from a URL.
//
// asynq's own client options are not used: asynq retries a lost
// acknowledgement with a context that is cancelled already, so after any Redis
// outage finished tasks run again. The client built by Queue retries inside
// go-redis instead, with the caller's cancellation taken away and its deadline
// kept, until Redis answers or the task's lease ends. Under load the
// acknowledgements of many tasks share a round trip.
//
// No error of these clients shows any part of the URL: not the password, not
// the user, not the host.
package redisconn
