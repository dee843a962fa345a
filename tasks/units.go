package tasks

import "math"

// ChunkSeconds is the length of audio that AudD bills as one enterprise request (AudD's enterprise documentation and
// OpenAPI description).
const ChunkSeconds = 12

// Units returns an upper bound on the units that AudD bills for one call, and whether there is a bound. recognize and
// upload cost 1. enterprise costs 1 per 12 s scanned: n = ceil((duration − skip_first_seconds)/12), at least 1; with
// skip s and every e, ⌊n/(s+e)⌋·e + min(n mod (s+e), e). limit lowers the bound only if limitCountsChunks is set,
// because AudD's sources disagree on its unit. If the duration is unknown, MaxUnits is the bound.
func (p Payload) Units(limitCountsChunks bool) (units int64, bounded bool) {
	if p.Path != Enterprise {
		return 1, true
	}
	limit := int64(0)
	if limitCountsChunks && p.Params.Limit != nil {
		limit = int64(*p.Params.Limit)
	}
	if p.Input.Seconds <= 0 {
		if p.MaxUnits > 0 && limit > 0 {
			return min(p.MaxUnits, limit), true
		}
		units = max(p.MaxUnits, limit)
		return units, units > 0
	}
	n := int64(math.Ceil((p.Input.Seconds - float64(p.Params.SkipFirstSeconds)) / ChunkSeconds))
	n = max(n, 1)
	skip, every := int64(0), int64(1)
	if p.Params.Skip != nil {
		skip = int64(*p.Params.Skip)
	}
	if p.Params.Every != nil {
		every = int64(*p.Params.Every)
	}
	if period := skip + every; period > 0 && skip > 0 {
		n = n/period*every + min(n%period, every)
	}
	if limit > 0 {
		n = min(n, limit)
	}
	return max(n, 1), true
}
