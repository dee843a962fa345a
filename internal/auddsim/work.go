package auddsim

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"
)

var errStopped = errors.New("call is over")

// work decides what the request is answered, charges it and stores an upload. The body is complete by now.
func (c *call) work() answer {
	code, quota := c.sim.tokens.check(c.sub.token, c.sub.path)
	good := code == 0
	if c.rule == nil {
		c.rule = c.sim.rules.pick(&c.sub, func(r *Rule) bool { return !r.early() && (good || r.edge()) })
	}
	if !good && c.rule == nil {
		return c.codeAnswer(code)
	}
	natural, units := c.natural()
	a := natural
	if c.rule != nil {
		a = c.ruledAnswer(&natural)
	}
	if !good || !metered(c.sub.path) {
		return a
	}
	billed := c.billed(a)
	if billed && !c.sim.bill.charge(c.entry, units, quota) {
		if c.rule == nil || !c.rule.edge() {
			return c.codeAnswer(902)
		}
		billed = false
	}
	if billed {
		c.sim.log.note(func() { c.entry.Units = units })
	}
	if c.stored(a, billed) {
		c.sim.catalog.put(c.entry, time.Now())
	}
	return a
}

// billed is the decision of doc.go: a rule's own word, else whether the work was begun.
func (c *call) billed(a answer) bool {
	if c.rule != nil && c.rule.Billed != nil {
		return *c.rule.Billed
	}
	switch {
	case c.fault() == FaultResetAfterBody || c.fault() == FaultResetBeforeAnswer:
		return true
	case a.code != 0:
		return codeBilled(a.code)
	}
	return statusBilled(a.status)
}

// stored reports whether an upload takes effect: it was well formed, and either worked on or answered with success.
func (c *call) stored(a answer, billed bool) bool {
	success := a.code == 0 && a.status < 300
	return c.sub.path == PathUpload && c.content != nil && c.sub.audioID != nil && c.audioCode() == 0 &&
		(billed || success) && (a.code == 0 || a.code == 51)
}

// audioCode is the code for audio that cannot be worked on, 0 for good audio.
func (c *call) audioCode() int {
	switch {
	case c.content == nil:
		return 700
	case c.sub.url == "" && c.content.size == 0:
		return 300
	case c.sub.path == PathRecognize && c.sim.cfg.MaxRecognizeBytes > 0 && c.content.size > c.sim.cfg.MaxRecognizeBytes:
		return 400
	}
	return 0
}

// natural is the answer without a rule, and the units the work costs.
func (c *call) natural() (answer, int64) {
	switch c.sub.path {
	case PathStreams:
		return c.success(json.RawMessage(`[]`), "streams"), 0
	case PathOther:
		if strings.Contains(c.r.URL.Path, "getCallbackUrl") {
			return c.codeAnswer(19), 0
		}
		return c.codeAnswer(1000), 0
	case PathUpload:
		if c.sub.audioID == nil {
			return c.codeAnswer(701), 0
		}
	}
	if code := c.audioCode(); code != 0 {
		return c.codeAnswer(code), 1
	}
	switch c.sub.path {
	case PathEnterprise:
		return c.enterprise()
	case PathUpload:
		return c.success(json.RawMessage(`null`), "uploaded"), 1
	}
	result, outcome := c.recognise()
	return c.success(result, outcome), 1
}

// contentNumber is the seed of everything that depends on the content alone.
func (c *call) contentNumber() uint64 {
	if c.content == nil || len(c.content.hash) < 16 {
		return 0
	}
	n, err := strconv.ParseUint(c.content.hash[:16], 16, 64)
	if err != nil {
		return 0
	}
	return n
}

// contentMatches tosses the content's own coin.
func (c *call) contentMatches() bool {
	return coin(c.contentNumber(), 1) < c.sim.cfg.MatchShare
}

// recognise finds the catalog's audio_id, a song, or null.
func (c *call) recognise() (json.RawMessage, string) {
	if want := c.wanted(); want == ResultNull {
		return json.RawMessage(`null`), "no_match"
	} else if want != ResultMatch {
		if id, ok := c.sim.catalog.find(c.sub.token, c.content.hash, time.Now()); ok {
			song := madeSong(c.contentNumber(), 0)
			return raw(Song{Timecode: song.Timecode, AudioID: &id}), "match"
		}
		if !c.contentMatches() {
			return json.RawMessage(`null`), "no_match"
		}
	}
	song := c.song(0)
	song.Score = 0
	song.ISRC, song.UPC = "", ""
	song.addProviders(strings.Split(c.sub.fields["return"], ","))
	return raw(song), "match"
}

// wanted is what the call's rule makes of the result: match, null, absent or nothing.
func (c *call) wanted() string {
	switch {
	case c.rule == nil:
		return ""
	case c.rule.Result == "" && c.rule.Code == 0 && len(c.rule.Songs) > 0:
		return ResultMatch
	}
	return c.rule.Result
}

// song is the n-th song of the content: the rule's, else one made from the hash.
func (c *call) song(n int) Song {
	if c.rule != nil && len(c.rule.Songs) > 0 {
		return c.rule.Songs[n%len(c.rule.Songs)]
	}
	return madeSong(c.contentNumber(), n)
}

// raw writes a value whose type is always writable.
func raw(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage(`null`)
	}
	return data
}
