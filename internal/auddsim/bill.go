package auddsim

import (
	"cmp"
	"maps"
	"slices"
	"sync"
)

// Bill is what was charged and received since the start or the last reset. It shows tokens in plain text: use invented ones.
type Bill struct {
	Counts
	ByToken             map[string]int64 `json:"units_by_token"`
	ByPath              map[string]int64 `json:"units_by_path"`
	Active              int64            `json:"active"`         // unfinished requests; Charges and UploadBill.Started count them too
	HTTP429             int64            `json:"http_429"`       // HTTP 429 responses, from limits and from rules
	Code611             int64            `json:"code_611"`       // responses with code 611
	Refused             int64            `json:"refused"`        // requests refused by Limits, with any response
	MaxConcurrent       int64            `json:"max_concurrent"` // admitted metered requests at the same moment
	MaxConcurrentByPath map[string]int64 `json:"max_concurrent_by_path"`
	Contents            []ContentBill    `json:"contents,omitempty"`
	Uploads             []UploadBill     `json:"uploads,omitempty"`
}

// Counts are the sums of a bill, or of a part of it. All but Units and Charges count finished requests.
type Counts struct {
	Units    int64            `json:"units"`    // charged
	Charges  int64            `json:"charges"`  // charged requests
	Requests int64            `json:"requests"` // complete and partial, refused ones included
	Complete int64            `json:"complete"` // the whole body was received
	Partial  int64            `json:"partial"`
	Outcomes map[string]int64 `json:"requests_by_outcome,omitempty"`
}

// ContentBill is the part of a bill for one token, path and content. A request whose body was not received completely has
// no hash; it is listed by its file name.
type ContentBill struct {
	Token string `json:"token"`
	Path  string `json:"path"`
	Hash  string `json:"hash,omitempty"`
	Name  string `json:"name,omitempty"`
	Counts
}

// UploadBill is the part of a bill for one upload slot.
type UploadBill struct {
	Token   string `json:"token"`
	AudioID int64  `json:"audio_id"`
	// Started counts the requests, running ones included, whose audio_id and first bytes of the file were received.
	Started int64 `json:"started"`
	Counts
}

// Content sums the lines of a path and a content hash over all tokens.
func (b Bill) Content(path, hash string) ContentBill {
	sum := ContentBill{Path: path, Hash: hash, Counts: newCounts()}
	for _, c := range b.Contents {
		if c.Path == path && c.Hash == hash {
			sum.Name = c.Name
			sum.add(c.Counts)
		}
	}
	return sum
}

// Upload sums the lines of an upload slot over all tokens.
func (b Bill) Upload(audioID int64) UploadBill {
	sum := UploadBill{AudioID: audioID, Counts: newCounts()}
	for _, u := range b.Uploads {
		if u.AudioID == audioID {
			sum.Started += u.Started
			sum.add(u.Counts)
		}
	}
	return sum
}

func newCounts() Counts { return Counts{Outcomes: map[string]int64{}} }

func (c *Counts) add(o Counts) {
	c.Units += o.Units
	c.Charges += o.Charges
	c.Requests += o.Requests
	c.Complete += o.Complete
	c.Partial += o.Partial
	for outcome, n := range o.Outcomes {
		c.Outcomes[outcome] += n
	}
}

type contentKey struct{ token, path, hash, name string }

type uploadKey struct {
	token   string
	audioID int64
}

// ledger adds up the bill. Every method holds its mutex for a few map operations only.
type ledger struct {
	mu       sync.Mutex
	bill     Bill             // sums; Contents and Uploads stay empty here
	inFlight map[string]int64 // admitted requests by metered path
	contents map[contentKey]*ContentBill
	uploads  map[uploadKey]*UploadBill
}

func newLedger() *ledger {
	l := &ledger{inFlight: map[string]int64{PathRecognize: 0, PathEnterprise: 0, PathUpload: 0}}
	l.reset()
	return l
}

func (l *ledger) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bill = Bill{Counts: newCounts(), ByToken: map[string]int64{}, ByPath: map[string]int64{}, MaxConcurrentByPath: map[string]int64{}}
	l.contents, l.uploads = map[contentKey]*ContentBill{}, map[uploadKey]*UploadBill{}
	l.raiseMaximaLocked()
}

// admitted counts a request in flight until finished.
func (l *ledger) admitted(path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight[path]++
	l.raiseMaximaLocked()
}

// raiseMaximaLocked raises the maxima to the numbers of requests in flight.
func (l *ledger) raiseMaximaLocked() {
	var all int64
	for path, n := range l.inFlight {
		all += n
		l.bill.MaxConcurrentByPath[path] = max(l.bill.MaxConcurrentByPath[path], n)
	}
	l.bill.MaxConcurrent = max(l.bill.MaxConcurrent, all)
}

// countsLocked returns the counts that a request adds to: the sums, its content's and its upload slot's.
func (l *ledger) countsLocked(e *Request) []*Counts {
	key := contentKey{e.token, e.Path, e.Hash, ""}
	if e.Hash == "" {
		key.name = e.Name
	}
	c := l.contents[key]
	if c == nil {
		c = &ContentBill{Token: e.token, Path: e.Path, Hash: e.Hash, Name: e.Name, Counts: newCounts()}
		l.contents[key] = c
	}
	if u := l.uploadLocked(e); u != nil {
		return []*Counts{&l.bill.Counts, &c.Counts, &u.Counts}
	}
	return []*Counts{&l.bill.Counts, &c.Counts}
}

// uploadLocked returns the line of an upload's slot; nil for other requests, and while the slot is unknown.
func (l *ledger) uploadLocked(e *Request) *UploadBill {
	if e.Path != PathUpload || e.AudioID == nil {
		return nil
	}
	key := uploadKey{e.token, *e.AudioID}
	u := l.uploads[key]
	if u == nil {
		u = &UploadBill{Token: e.token, AudioID: *e.AudioID, Counts: newCounts()}
		l.uploads[key] = u
	}
	return u
}

// charge bills units, unless the token would then exceed its quota (0 = no limit).
func (l *ledger) charge(e *Request, units, quota int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if quota > 0 && l.bill.ByToken[e.token]+units > quota {
		return false
	}
	l.bill.ByToken[e.token] += units
	l.bill.ByPath[e.Path] += units
	for _, c := range l.countsLocked(e) {
		c.Units += units
		c.Charges++
	}
	return true
}

// started counts an upload whose body has begun to arrive. false = the request is no upload, or its slot is unknown.
func (l *ledger) started(e *Request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.uploadLocked(e)
	if u != nil {
		u.Started++
	}
	return u != nil
}

// finished counts a request at its end. admitted says whether it was in flight.
func (l *ledger) finished(e *Request, admitted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if admitted {
		l.inFlight[e.Path]--
	}
	for _, c := range l.countsLocked(e) {
		c.Requests++
		if e.Complete {
			c.Complete++
		} else {
			c.Partial++
		}
		c.Outcomes[e.Outcome]++
	}
	if e.Status == 429 {
		l.bill.HTTP429++
	}
	if e.Code == 611 {
		l.bill.Code611++
	}
	if e.Outcome == OutcomeRefused {
		l.bill.Refused++
	}
}

// snapshot copies the bill, with its lines if lines is set.
func (l *ledger) snapshot(lines bool) Bill {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bill
	b.Outcomes, b.ByToken, b.ByPath = maps.Clone(b.Outcomes), maps.Clone(b.ByToken), maps.Clone(b.ByPath)
	b.MaxConcurrentByPath = maps.Clone(b.MaxConcurrentByPath)
	if !lines {
		return b
	}
	for _, c := range l.contents {
		line := *c
		line.Outcomes = maps.Clone(c.Outcomes)
		b.Contents = append(b.Contents, line)
	}
	for _, u := range l.uploads {
		line := *u
		line.Outcomes = maps.Clone(u.Outcomes)
		b.Uploads = append(b.Uploads, line)
	}
	slices.SortFunc(b.Contents, func(x, y ContentBill) int {
		return cmp.Or(cmp.Compare(x.Path, y.Path), cmp.Compare(x.Hash, y.Hash), cmp.Compare(x.Name, y.Name), cmp.Compare(x.Token, y.Token))
	})
	slices.SortFunc(b.Uploads, func(x, y UploadBill) int {
		return cmp.Or(cmp.Compare(x.AudioID, y.AudioID), cmp.Compare(x.Token, y.Token))
	})
	return b
}
