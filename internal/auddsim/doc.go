// Package auddsim simulates AudD's HTTP API.
package auddsim
