package retrypolicy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"reprise/audd"
	"reprise/tasks"
)

// code is an AudD error with HTTP 200, as AudD sends it.
func code(n int, message string) *audd.Error {
	return &audd.Error{Kind: audd.KindCode, Phase: audd.PhaseAnswered, Code: n, HTTPStatus: 200, JSON: true, Message: message}
}

// status is an answer without an AudD code.
func status(n int, json bool) *audd.Error {
	kind := audd.KindHTTP
	if n >= 200 && n < 300 {
		kind = audd.KindBody
	}
	return &audd.Error{Kind: kind, Phase: audd.PhaseAnswered, HTTPStatus: n, JSON: json}
}

func network(phase audd.Phase, err error) *audd.Error {
	return &audd.Error{Kind: audd.KindTransport, Phase: phase, Err: err}
}

func local(phase audd.Phase, err error) *audd.Error {
	return &audd.Error{Kind: audd.KindLocal, Phase: phase, Err: err}
}

func hook(err error) *audd.Error {
	return &audd.Error{Kind: audd.KindHook, Phase: audd.PhaseUnsent, Err: err}
}

func TestClassifyResults(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		a    CallResult
		want tasks.Outcome
	}{
		"a song is a match":               {CallResult{Path: tasks.Recognize, Match: true}, tasks.Match},
		"no song is no_match":             {CallResult{Path: tasks.Recognize}, tasks.NoMatch},
		"chunks with songs are a match":   {CallResult{Path: tasks.Enterprise, Match: true}, tasks.Match},
		"no chunk with songs is no_match": {CallResult{Path: tasks.Enterprise}, tasks.NoMatch},
		"an accepted upload is uploaded":  {CallResult{Path: tasks.Upload}, tasks.Uploaded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := Classify(tc.a)
			assert.Equal(t, tc.want, c.Outcome)
			assert.Equal(t, string(tc.want), c.Reason)
			assert.Equal(t, audd.PhaseAnswered, c.Phase)
		})
	}
}

func TestClassifyCodesAndStatuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err  *audd.Error
		want tasks.Outcome
	}{
		"907 is not_released":                                    {code(907, ""), tasks.NotReleased},
		"429 as a page is throttled":                             {status(429, false), tasks.Throttled},
		"429 in JSON is throttled":                               {status(429, true), tasks.Throttled},
		"611 is throttled":                                       {code(611, ""), tasks.Throttled},
		"500 as a page is unavailable":                           {status(500, false), tasks.Unavailable},
		"503 in JSON without code is unavailable":                {status(503, true), tasks.Unavailable},
		"524 of a proxy is unavailable":                          {status(524, false), tasks.Unavailable},
		"599 is unavailable":                                     {status(599, false), tasks.Unavailable},
		"408 is unavailable":                                     {status(408, false), tasks.Unavailable},
		"100 is unavailable":                                     {code(100, ""), tasks.Unavailable},
		"200 without JSON is ambiguous":                          {status(200, false), tasks.Ambiguous},
		"200 without a status field is ambiguous":                {status(200, true), tasks.Ambiguous},
		"204 is ambiguous":                                       {status(204, false), tasks.Ambiguous},
		"101 is ambiguous":                                       {status(101, false), tasks.Ambiguous},
		"999 is ambiguous":                                       {status(999, false), tasks.Ambiguous},
		"AudD 300 is invalid audio":                              {code(300, ""), tasks.InvalidAudio},
		"AudD 400 is invalid audio, not a bad request":           {code(400, ""), tasks.InvalidAudio},
		"AudD 500 is invalid audio, not unavailable":             {code(500, ""), tasks.InvalidAudio},
		"501 about a file is invalid audio":                      {code(501, ""), tasks.InvalidAudio},
		"50 is an invalid request":                               {code(50, ""), tasks.InvalidRequest},
		"51 without a result is an invalid request":              {code(51, ""), tasks.InvalidRequest},
		"600 is an unreachable input":                            {code(600, "we could not download it"), tasks.InputUnreachable},
		"601 is an invalid request":                              {code(601, ""), tasks.InvalidRequest},
		"602 is an invalid request":                              {code(602, ""), tasks.InvalidRequest},
		"700 is an invalid request":                              {code(700, ""), tasks.InvalidRequest},
		"701 is an invalid request":                              {code(701, ""), tasks.InvalidRequest},
		"702 is an invalid request":                              {code(702, ""), tasks.InvalidRequest},
		"906 is an invalid request":                              {code(906, ""), tasks.InvalidRequest},
		"1000 is an invalid request":                             {code(1000, ""), tasks.InvalidRequest},
		"HTTP 400 is an invalid request":                         {status(400, false), tasks.InvalidRequest},
		"HTTP 413 is an invalid request":                         {status(413, false), tasks.InvalidRequest},
		"HTTP 414 is an invalid request":                         {status(414, false), tasks.InvalidRequest},
		"HTTP 415 is an invalid request":                         {status(415, true), tasks.InvalidRequest},
		"404 is not found":                                       {status(404, false), tasks.NotFound},
		"301 is not found":                                       {status(301, false), tasks.NotFound},
		"308 is not found":                                       {status(308, false), tasks.NotFound},
		"900 is authentication":                                  {code(900, ""), tasks.Authentication},
		"901 is authentication":                                  {code(901, ""), tasks.Authentication},
		"903 is authentication":                                  {code(903, ""), tasks.Authentication},
		"401 is authentication":                                  {status(401, false), tasks.Authentication},
		"403 in JSON is authentication":                          {status(403, true), tasks.Authentication},
		"403 as a page is blocked":                               {status(403, false), tasks.Blocked},
		"902 is quota":                                           {code(902, ""), tasks.Quota},
		"904 is subscription":                                    {code(904, ""), tasks.Subscription},
		"905 is subscription":                                    {code(905, ""), tasks.Subscription},
		"19 is blocked":                                          {code(19, ""), tasks.Blocked},
		"20 is blocked":                                          {code(20, ""), tasks.Blocked},
		"31337 is blocked":                                       {code(31337, ""), tasks.Blocked},
		"40 is unknown":                                          {code(40, ""), tasks.Unknown},
		"610, a stream code, is unknown":                         {code(610, ""), tasks.Unknown},
		"a code missing in the table is unknown":                 {code(4242, ""), tasks.Unknown},
		"a negative code is unknown":                             {code(-1, ""), tasks.Unknown},
		"402 is unknown":                                         {status(402, true), tasks.Unknown},
		"418 is unknown":                                         {status(418, false), tasks.Unknown},
		"19 with a branded song is blocked":                      {&audd.Error{Kind: audd.KindCode, Code: 19, HTTPStatus: 200, Branded: true}, tasks.Blocked},
		"the code takes precedence: 900 with HTTP 503":           {&audd.Error{Kind: audd.KindCode, Code: 900, HTTPStatus: 503}, tasks.Authentication},
		"the code takes precedence: 300 with HTTP 429":           {&audd.Error{Kind: audd.KindCode, Code: 300, HTTPStatus: 429}, tasks.InvalidAudio},
		"the code takes precedence: 4242 with HTTP 503":          {&audd.Error{Kind: audd.KindCode, Code: 4242, HTTPStatus: 503}, tasks.Unknown},
		"the code takes precedence: 611 with HTTP 403":           {&audd.Error{Kind: audd.KindCode, Code: 611, HTTPStatus: 403}, tasks.Throttled},
		"an incomplete answer with 429 is throttled":             {&audd.Error{Kind: audd.KindTransport, Phase: audd.PhaseSent, HTTPStatus: 429, Err: io.ErrUnexpectedEOF}, tasks.Throttled},
		"an incomplete answer with 200 is ambiguous":             {&audd.Error{Kind: audd.KindBody, Phase: audd.PhaseSent, HTTPStatus: 200, Err: io.ErrUnexpectedEOF}, tasks.Ambiguous},
		"a missing token found before sending is authentication": {&audd.Error{Kind: audd.KindCode, Phase: audd.PhaseUnsent, Code: 901}, tasks.Authentication},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := Classify(CallResult{Path: tasks.Recognize, InputKind: tasks.FileInput, Err: tc.err})
			assert.Equal(t, tc.want, c.Outcome)
			assert.Equal(t, tc.err.Code, c.Code)
			assert.Equal(t, tc.err.HTTPStatus, c.HTTPStatus)
			assertReason(t, c.Outcome, c.Reason)
		})
	}
}

func TestClassifyErrorsWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	reset := errors.New("connection reset by peer")
	for name, tc := range map[string]struct {
		err  error
		want tasks.Outcome
	}{
		"DNS or dial failure is unavailable, unsent":              {network(audd.PhaseUnsent, reset), tasks.UnavailableUnsent},
		"a dial that exceeds the deadline is unavailable, unsent": {network(audd.PhaseUnsent, context.DeadlineExceeded), tasks.UnavailableUnsent},
		"cancelled before anything was sent is interrupted":       {network(audd.PhaseUnsent, fmt.Errorf("dial: %w", context.Canceled)), tasks.Interrupted},
		"cancelled after bytes were sent is ambiguous":            {network(audd.PhaseSent, context.Canceled), tasks.Ambiguous},
		"timeout after bytes were sent is ambiguous":              {network(audd.PhaseSent, context.DeadlineExceeded), tasks.Ambiguous},
		"reset after bytes were sent is ambiguous":                {network(audd.PhaseSent, reset), tasks.Ambiguous},
		"EOF without an answer is ambiguous":                      {network(audd.PhaseSent, io.EOF), tasks.Ambiguous},
		"an unknown phase counts as sent":                         {network("", reset), tasks.Ambiguous},
		"an empty call error is ambiguous":                        {&audd.Error{}, tasks.Ambiguous},
		"a nil call error is ambiguous":                           {(*audd.Error)(nil), tasks.Ambiguous},
		"a wrapped call error is found":                           {fmt.Errorf("call: %w", status(503, false)), tasks.Unavailable},
		"a missing file is input_missing":                         {local(audd.PhaseUnsent, &fs.PathError{Op: "open", Path: "/a", Err: fs.ErrNotExist}), tasks.InputMissing},
		"an unreadable file is input_missing":                     {local(audd.PhaseUnsent, fs.ErrPermission), tasks.InputMissing},
		"a timeout while opening the file is input_missing":       {local(audd.PhaseUnsent, context.DeadlineExceeded), tasks.InputMissing},
		"a shutdown while opening the file is interrupted":        {local(audd.PhaseUnsent, context.Canceled), tasks.Interrupted},
		"changed content is input_changed":                        {local(audd.PhaseUnsent, fmt.Errorf("open: %w", ErrInputChanged)), tasks.InputChanged},
		"a read error after bytes were sent is ambiguous":         {local(audd.PhaseSent, ErrInputChanged), tasks.Ambiguous},
		"a hook that lost its lease is interrupted":               {hook(fmt.Errorf("permit: %w", ErrLeaseLost)), tasks.Interrupted},
		"a hook that could not reach the ledger is store_down":    {hook(ErrStoreDown), tasks.StoreDown},
		"a hook stopped by shutdown is interrupted":               {hook(context.Canceled), tasks.Interrupted},
		"a hook that ran out of time is store_down":               {hook(context.DeadlineExceeded), tasks.StoreDown},
		"an unknown hook error is store_down":                     {hook(reset), tasks.StoreDown},
		"a nil hook error is store_down":                          {hook(nil), tasks.StoreDown},
		"a newer payload is newer_payload":                        {fmt.Errorf("decode: %w", tasks.ErrNewerPayload), tasks.NewerPayload},
		"a malformed payload is an invalid request":               {fmt.Errorf("decode: %w", tasks.ErrMalformed), tasks.InvalidRequest},
		"a shutdown outside the call is interrupted":              {context.Canceled, tasks.Interrupted},
		"a deadline outside the call is interrupted":              {context.DeadlineExceeded, tasks.Interrupted},
		"missing audio found outside the call is input_missing":   {fs.ErrNotExist, tasks.InputMissing},
		"changed audio found outside the call is input_changed":   {ErrInputChanged, tasks.InputChanged},
		"an arbitrary error is ambiguous":                         {errors.New("what?"), tasks.Ambiguous},
		"an error whose text panics is ambiguous":                 {explosive{}, tasks.Ambiguous},
		"of joined errors the first sentinel counts":              {errors.Join(errors.New("x"), ErrStoreDown), tasks.StoreDown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, path := range tasks.Paths {
				c := Classify(CallResult{Path: path, InputKind: tasks.FileInput, Err: tc.err})
				assert.Equal(t, tc.want, c.Outcome)
				assertReason(t, c.Outcome, c.Reason)
			}
		})
	}
}

type explosive struct{}

func (explosive) Error() string { panic("boom") }

func TestClassifyReadsTheMessageOf501And600(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		code    int
		message string
		kind    tasks.InputKind
		signed  bool
		want    tasks.Outcome
	}{
		"600 with another message is unreachable":                    {600, "could not download", tasks.URLInput, false, tasks.InputUnreachable},
		"600 deleted is gone":                                        {600, "The video was DELETED by its owner", tasks.URLInput, false, tasks.InputGone},
		"600 expired is gone":                                        {600, "The recording has expired", tasks.URLInput, false, tasks.InputGone},
		"600 expired or deleted is gone even when signed":            {600, "it has expired or was deleted", tasks.URLInput, true, tasks.InputGone},
		"600 expired about a signed URL is link_expired":             {600, "Request has expired", tasks.URLInput, true, tasks.LinkExpired},
		"600 no longer available is gone":                            {600, "no longer available", tasks.URLInput, false, tasks.InputGone},
		"600 taken down is gone":                                     {600, "taken down", tasks.URLInput, true, tasks.InputGone},
		"600 with another message about a signed URL is unreachable": {600, "403", tasks.URLInput, true, tasks.InputUnreachable},
		"501 about a URL is gone":                                    {501, "", tasks.URLInput, false, tasks.InputGone},
		"501 about a file is invalid audio":                          {501, "", tasks.FileInput, false, tasks.InvalidAudio},
		"501 about a spool object is invalid audio":                  {501, "", tasks.SpoolInput, false, tasks.InvalidAudio},
		"501 expired about a signed URL is link_expired":             {501, "link expired", tasks.URLInput, true, tasks.LinkExpired},
		"300 ignores deleted":                                        {300, "deleted", tasks.URLInput, false, tasks.InvalidAudio},
		"900 ignores expired":                                        {900, "token expired", tasks.URLInput, true, tasks.Authentication},
		"an unknown code ignores deleted":                            {4242, "deleted", tasks.URLInput, false, tasks.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := Classify(CallResult{Path: tasks.Enterprise, InputKind: tc.kind, URLSigned: tc.signed, Err: code(tc.code, tc.message)})
			assert.Equal(t, tc.want, c.Outcome)
		})
	}
}

func TestClassify907OfAnUploadIsUnknown(t *testing.T) {
	t.Parallel()
	assert.Equal(t, tasks.Unknown, Classify(CallResult{Path: tasks.Upload, Err: code(907, "")}).Outcome)
	assert.Equal(t, tasks.NotReleased, Classify(CallResult{Path: tasks.Enterprise, Err: code(907, "")}).Outcome)
}

func TestClassifyMarksBlocksThatMayEndByThemselves(t *testing.T) {
	t.Parallel()
	probeable := func(err error) bool { return Classify(CallResult{Path: tasks.Recognize, Err: err}).Probeable }
	assert.True(t, probeable(code(19, "")), "19 may be maintenance")
	assert.True(t, probeable(status(403, false)), "a 403 page may be about one address")
	assert.False(t, probeable(code(20, "")))
	assert.False(t, probeable(code(31337, "")))
	assert.False(t, probeable(status(403, true)))
}

func TestClassifyKeepsRetryAfterLatencyAndPhase(t *testing.T) {
	t.Parallel()
	e := status(503, false)
	e.RetryAfter, e.Latency = 7*time.Second, 3*time.Second
	c := Classify(CallResult{Path: tasks.Recognize, Err: e})
	assert.Equal(t, 7*time.Second, c.RetryAfter)
	assert.Equal(t, 3*time.Second, c.Latency)
	assert.Equal(t, audd.PhaseAnswered, c.Phase)

	e.RetryAfter, e.Latency = -1, -1
	c = Classify(CallResult{Path: tasks.Recognize, Err: e})
	assert.Zero(t, c.RetryAfter)
	assert.Zero(t, c.Latency)
}

// assertReason checks the form of a reason.
func assertReason(t assert.TestingT, o tasks.Outcome, reason string) {
	assert.True(t, reason == string(o) || strings.HasPrefix(reason, string(o)+":") || strings.HasPrefix(reason, string(o)+";"),
		"%q begins with %s", reason, o)
	assert.True(t, utf8.ValidString(reason), "valid UTF-8")
	assert.LessOrEqual(t, len(reason), maxReason)
	assert.NotContains(t, reason, "\n")
}
