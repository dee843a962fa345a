package auddsim

import (
	"cmp"
	"maps"
	"slices"
	"sync"
)

// Bill is what was charged and what was asked, since start or the last reset. Tokens stand in it in plain: use invented ones.
type Bill struct {
	Units               int64            `json:"units"`   // charged units
	Charges             int64            `json:"charges"` // charged requests
	ByToken             map[string]int64 `json:"units_by_token"`
	ByPath              map[string]int64 `json:"units_by_path"`
	Requests            int64            `json:"requests"` // finished requests, complete and partial, refused ones included
	Complete            int64            `json:"complete"` // of them with the whole body received
	Partial             int64            `json:"partial"`
	Active              int64            `json:"active"` // not finished yet; nowhere else in the bill but in charges and Send.Started
	Outcomes            map[string]int64 `json:"requests_by_outcome"`
	HTTP429             int64            `json:"http_429"`       // answers with HTTP 429, by limits and by rules
	Code611             int64            `json:"code_611"`       // answers with code 611
	Refused             int64            `json:"refused"`        // requests refused by Limits, whatever the answer
	MaxConcurrent       int64            `json:"max_concurrent"` // admitted metered requests at the same moment
	MaxConcurrentByPath map[string]int64 `json:"max_concurrent_by_path"`
	Contents            []ContentBill    `json:"contents,omitempty"`
	Uploads             []UploadBill     `json:"uploads,omitempty"`
}

// ContentBill is the part of the bill of one token, path and content hash. A request whose body did not arrive whole has no
// hash: it is listed by its file name.
type ContentBill struct {
	Token    string           `json:"token"`
	Path     string           `json:"path"`
	Hash     string           `json:"hash,omitempty"`
	Name     string           `json:"name,omitempty"`
	Units    int64            `json:"units"`
	Charges  int64            `json:"charges"`
	Requests int64            `json:"requests"`
	Complete int64            `json:"complete"`
	Partial  int64            `json:"partial"`
	Outcomes map[string]int64 `json:"outcomes,omitempty"`
}

// UploadBill is the part of the bill of one upload slot. Started counts requests
// whose body arrived as far as the audio_id and the beginning of the file, or as far as it got; running ones are in it. The others count at
// the end of a request.
type UploadBill struct {
	Token    string           `json:"token"`
	AudioID  int64            `json:"audio_id"`
	Started  int64            `json:"started"`
	Complete int64            `json:"complete"`
	Partial  int64            `json:"partial"`
	Units    int64            `json:"units"`
	Outcomes map[string]int64 `json:"outcomes,omitempty"`
}

// Content sums the lines of a path and a content hash over all tokens.
func (b Bill) Content(path, hash string) ContentBill {
	sum := ContentBill{Path: path, Hash: hash, Outcomes: map[string]int64{}}
	for _, c := range b.Contents {
		if c.Path != path || c.Hash != hash {
			continue
		}
		sum.Name = c.Name
		sum.Units += c.Units
		sum.Charges += c.Charges
		sum.Requests += c.Requests
		sum.Complete += c.Complete
		sum.Partial += c.Partial
		for o, n := range c.Outcomes {
			sum.Outcomes[o] += n
		}
	}
	return sum
}

// Upload sums the lines of an upload slot over all tokens.
func (b Bill) Upload(audioID int64) UploadBill {
	sum := UploadBill{AudioID: audioID, Outcomes: map[string]int64{}}
	for _, s := range b.Uploads {
		if s.AudioID != audioID {
			continue
		}
		sum.Started += s.Started
		sum.Complete += s.Complete
		sum.Partial += s.Partial
		sum.Units += s.Units
		for o, n := range s.Outcomes {
			sum.Outcomes[o] += n
		}
	}
	return sum
}

type contentKey struct{ token, path, hash, name string }

type sendKey struct {
	token   string
	audioID int64
}

// ledger adds up the bill. Every method holds its mutex for a few map operations only.
type ledger struct {
	mu       sync.Mutex
	bill     Bill // sums; Contents and Sends stay empty here
	contents map[contentKey]*ContentBill
	sends    map[sendKey]*UploadBill
}

func newLedger() *ledger {
	l := &ledger{}
	l.reset()
	return l
}

func (l *ledger) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bill = Bill{ByToken: map[string]int64{}, ByPath: map[string]int64{}, Outcomes: map[string]int64{}}
	l.contents, l.sends = map[contentKey]*ContentBill{}, map[sendKey]*UploadBill{}
}

func (l *ledger) contentLocked(e *Request) *ContentBill {
	key := contentKey{e.token, e.Path, e.Hash, ""}
	if e.Hash == "" {
		key.name = e.Name
	}
	c := l.contents[key]
	if c == nil {
		c = &ContentBill{Token: e.token, Path: e.Path, Hash: e.Hash, Name: e.Name, Outcomes: map[string]int64{}}
		l.contents[key] = c
	}
	return c
}

func (l *ledger) sendLocked(e *Request) *UploadBill {
	key := sendKey{e.token, *e.AudioID}
	s := l.sends[key]
	if s == nil {
		s = &UploadBill{Token: e.token, AudioID: *e.AudioID, Outcomes: map[string]int64{}}
		l.sends[key] = s
	}
	return s
}

// charge bills units unless the token would have more than quota (0: no bound) then.
func (l *ledger) charge(e *Request, units, quota int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if quota > 0 && l.bill.ByToken[e.token]+units > quota {
		return false
	}
	l.bill.Units += units
	l.bill.Charges++
	l.bill.ByToken[e.token] += units
	l.bill.ByPath[e.Path] += units
	c := l.contentLocked(e)
	c.Units += units
	c.Charges++
	if e.AudioID != nil && e.Path == PathUpload {
		l.sendLocked(e).Units += units
	}
	return true
}

// started counts an upload that begins to arrive; false: it is none, or its slot is not known yet.
func (l *ledger) started(e *Request) bool {
	if e.Path != PathUpload || e.AudioID == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sendLocked(e).Started++
	return true
}

// finished counts a request at its end.
func (l *ledger) finished(e *Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bill.Requests++
	c := l.contentLocked(e)
	c.Requests++
	if e.Complete {
		l.bill.Complete++
		c.Complete++
	} else {
		l.bill.Partial++
		c.Partial++
	}
	l.bill.Outcomes[e.Outcome]++
	c.Outcomes[e.Outcome]++
	if e.Status == 429 {
		l.bill.HTTP429++
	}
	if e.Code == 611 {
		l.bill.Code611++
	}
	if e.Outcome == OutcomeRefused {
		l.bill.Refused++
	}
	if e.Path == PathUpload && e.AudioID != nil {
		s := l.sendLocked(e)
		s.Outcomes[e.Outcome]++
		if e.Complete {
			s.Complete++
		} else {
			s.Partial++
		}
	}
}

// snapshot copies the bill; lines come in the order of path, hash, name and token, sorted outside the mutex.
func (l *ledger) snapshot(lines bool) Bill {
	b := l.copy(lines)
	slices.SortFunc(b.Contents, func(x, y ContentBill) int {
		return cmp.Or(cmp.Compare(x.Path, y.Path), cmp.Compare(x.Hash, y.Hash), cmp.Compare(x.Name, y.Name), cmp.Compare(x.Token, y.Token))
	})
	slices.SortFunc(b.Uploads, func(x, y UploadBill) int {
		return cmp.Or(cmp.Compare(x.AudioID, y.AudioID), cmp.Compare(x.Token, y.Token))
	})
	return b
}

func (l *ledger) copy(lines bool) Bill {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bill
	b.ByToken, b.ByPath, b.Outcomes = copyCounts(b.ByToken), copyCounts(b.ByPath), copyCounts(b.Outcomes)
	if !lines {
		return b
	}
	b.Contents, b.Uploads = make([]ContentBill, 0, len(l.contents)), make([]UploadBill, 0, len(l.sends))
	for _, c := range l.contents {
		line := *c
		line.Outcomes = copyCounts(c.Outcomes)
		b.Contents = append(b.Contents, line)
	}
	for _, s := range l.sends {
		line := *s
		line.Outcomes = copyCounts(s.Outcomes)
		b.Uploads = append(b.Uploads, line)
	}
	return b
}

func copyCounts(in map[string]int64) map[string]int64 {
	out := make(map[string]int64, len(in))
	maps.Copy(out, in)
	return out
}
