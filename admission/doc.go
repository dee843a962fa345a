// Package admission decides which AudD call may go now, for any number of
// workers at once. Every decision is one Lua script in Redis.
package admission
