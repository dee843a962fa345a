package auddsim

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"
)

// Outcomes of requests besides match, no_match, uploaded, streams, code_N, http_N and the names of faults.
const (
	OutcomeRefused    = "refused"     // by a rate or concurrency limit
	OutcomeClientGone = "client_gone" // the client left before the response
	OutcomeStopped    = "stopped"     // the simulator was closed
)

// Request is one received request, finished or running.
type Request struct {
	Seq       int64             `json:"seq"` // 1 for the first
	RequestID string            `json:"request_id"`
	At        time.Time         `json:"at"` // when its header was read
	Path      string            `json:"path"`
	Method    string            `json:"method"`
	Hash      string            `json:"hash,omitempty"`  // of the content; empty until all of it was received
	Name      string            `json:"name,omitempty"`  // file name sent
	URL       string            `json:"url,omitempty"`   // without its query
	Token     string            `json:"token,omitempty"` // masked
	AudioID   *int64            `json:"audio_id,omitempty"`
	Status    int               `json:"status,omitempty"` // HTTP status sent; 0: no response
	Code      int               `json:"code,omitempty"`   // AudD code sent; 0: none
	Outcome   string            `json:"outcome,omitempty"`
	Rule      string            `json:"rule,omitempty"`
	BodyBytes int64             `json:"body_bytes"`
	Complete  bool              `json:"complete"` // the whole body was received
	Units     int64             `json:"units"`    // charged
	Took      time.Duration     `json:"took_ns"`  // until the response was sent
	Active    bool              `json:"active,omitempty"`
	Headers   map[string]string `json:"headers,omitempty"` // those of Config.LogHeaders

	token string
}

// Filter selects requests. Zero fields select all.
type Filter struct {
	Path, Hash, Name, Outcome string // Name is a pattern
	AudioID                   *int64
	AfterSeq                  int64
	Limit                     int // only the latest so many
}

func (f Filter) matches(r *Request) bool {
	return (f.Path == "" || f.Path == r.Path) && (f.Hash == "" || f.Hash == r.Hash) &&
		(f.Name == "" || globMatch(f.Name, r.Name)) && (f.Outcome == "" || f.Outcome == r.Outcome) &&
		(f.AudioID == nil || r.AudioID != nil && *f.AudioID == *r.AudioID) && r.Seq > f.AfterSeq
}

// requestLog keeps the last finished requests and the running ones. Entries change only through call.note.
type requestLog struct {
	mu     sync.Mutex
	size   int // of done, at most
	done   []*Request
	active map[int64]*Request
}

func (l *requestLog) begin(e *Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.active[e.Seq] = e
}

func (l *requestLog) finish(e *Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Active = false
	delete(l.active, e.Seq)
	l.done = append(l.done, e)
	l.done = l.done[max(len(l.done)-l.size, 0):]
}

func (l *requestLog) running() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(len(l.active))
}

func (l *requestLog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done = nil
}

// Requests lists the matching requests in order of arrival: the last Config.LogSize finished ones and the running ones.
func (l *requestLog) Requests(f Filter) []Request {
	l.mu.Lock()
	out := []Request{}
	for _, e := range slices.AppendSeq(slices.Clone(l.done), maps.Values(l.active)) {
		if f.matches(e) {
			out = append(out, *e)
		}
	}
	l.mu.Unlock()
	slices.SortFunc(out, func(a, b Request) int { return cmp.Compare(a.Seq, b.Seq) })
	if f.Limit > 0 && len(out) > f.Limit {
		out = out[len(out)-f.Limit:]
	}
	return out
}
