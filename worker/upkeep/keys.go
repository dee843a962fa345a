package upkeep

// The Redis keys of the maintenance jobs. None but the leader's has a TTL.
const (
	// leaderKey is a string with the leader's id.
	leaderKey = "reprise:{upkeep}:leader"
	// pauseUnits is a hash: queue → units of the task for which the queue was paused last. No worker resumes
	// the queue before a budget has that many units left.
	pauseUnits = "reprise:{upkeep}:pause_units"
	// replayQueues is a hash: queue → Unix ms. Tasks archived before that time are replayed.
	replayQueues = "reprise:{replay}:queues"
	// replayStarted is a hash: "<queue>/<key>" → 1 for each task that is reopened and not back in its queue.
	replayStarted = "reprise:{replay}:started"
	// replayHalts is a hash: "<source>/<path>" → Unix ms at which the last halt began whose end was followed by
	// a replay.
	replayHalts = "reprise:{replay}:halts"
)
