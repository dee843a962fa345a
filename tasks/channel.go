package tasks

// Channel is how an attempt counts for the circuit breaker.
type Channel string

// The closed set of channels.
const (
	ChannelSuccess  Channel = "success"  // AudD answered and the account is fine
	ChannelFailure  Channel = "failure"  // AudD or the way to it is broken
	ChannelAccount  Channel = "account"  // AudD refused the account
	ChannelExcluded Channel = "excluded" // the call says nothing about health
	ChannelNone     Channel = "none"     // no call was made
)
