package worker

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"reprise/admission"
	"reprise/audd"
	"reprise/idempotency"
	"reprise/retrypolicy"
	"reprise/store/identity"
	"reprise/tasks"
)

// Source is one upstream account: a token and the hosts it is used at.
type Source struct {
	// Name identifies the source in limits, logs and call rows; lower-case.
	Name string
	// Token returns the account's API token; it may change while running.
	Token func() string
	// BaseURL and EnterpriseURL replace AudD's hosts (a simulator, a proxy).
	BaseURL, EnterpriseURL string
}

// Slots is how many deliveries a worker runs at once, per path. 0 = it takes
// no tasks of the path.
type Slots struct{ Recognize, Enterprise, Upload int }

func (s Slots) of(p tasks.Path) int {
	switch p {
	case tasks.Recognize:
		return s.Recognize
	case tasks.Enterprise:
		return s.Enterprise
	default:
		return s.Upload
	}
}

func (s Slots) total() int { return s.Recognize + s.Enterprise + s.Upload }

// Admin is the listener for operators and monitoring.
type Admin struct {
	// Addr is where it listens. Default 127.0.0.1:8080; "" = no listener.
	Addr string
	// Password protects it (user "reprise"). Beyond loopback it is required.
	Password string
	// AllowChanges lets the web UI change tasks and queues. Default false.
	AllowChanges bool
}

// Options is everything a worker needs. The zero value is not usable; start
// from DefaultOptions.
type Options struct {
	// RedisURL is redis://, rediss:// or unix://; see internal/redisconn.
	RedisURL string
	// Sources are the accounts; at least one.
	Sources []Source
	// Slots per path. Defaults 64, 4, 2.
	Slots Slots
	// SlotWait is the longest a delivery waits in its slot for a gate. Default 60 s.
	SlotWait time.Duration
	// Timeouts bound the calls. Defaults 60 s, 1 h, 10 min.
	Timeouts audd.Timeouts
	// Drain bounds how long a stop waits for running calls. Default 0 = as long
	// as the longest call timeout of the paths with slots. A call cut off by a
	// shorter drain may still be billed.
	Drain time.Duration
	// Policy is retrypolicy's: budgets and backoff.
	Policy retrypolicy.Policy
	// Admission is the gates' configuration; its sources follow from Sources.
	Admission admission.Config
	// Ledger is the upload ledger; without one the worker takes no uploads.
	Ledger *idempotency.Ledger
	// Marks tell the worker's store from others, so that one which does not belong
	// to the queue in Redis is refused. nil: not checked.
	Marks identity.Marks
	// Verify says what happens to an upload that may have arrived: hold (default,
	// an operator decides) or recognize (a recognition, which costs a unit, may
	// settle it; it needs a worker with recognize slots).
	Verify idempotency.Verify
	// VerifyDelay is the time AudD gets to index an upload before it is verified,
	// and the time between two tries. AudD documents none; default 1 min.
	VerifyDelay time.Duration
	// LimitCountsChunks says that AudD's `limit` bounds scanned chunks, on which
	// AudD's sources disagree; it lowers enterprise estimates. Default false.
	LimitCountsChunks bool
	// PricePer1000 is the price of 1,000 units in the account's currency;
	// 0 = unknown, and costs are then unknown, never 0.
	PricePer1000 float64
	// TaskCheckInterval is how often an idle path polls its queues. Default 20 ms.
	TaskCheckInterval time.Duration
	// Admin is the listener for operators and monitoring.
	Admin Admin
	// SkipAuthCheck leaves out the token check at start.
	SkipAuthCheck bool
	// Version is shown in build info and the User-Agent.
	Version string
	// Transport sends the requests to AudD (tests); nil = the client's own.
	Transport http.RoundTripper
	// Log receives all log lines; nil = slog.Default().
	Log *slog.Logger
}

// DefaultOptions are the documented defaults, without Redis, store and sources.
func DefaultOptions() Options {
	return Options{
		Slots:             Slots{Recognize: 64, Enterprise: 4, Upload: 2},
		SlotWait:          tasks.SlotWait,
		Timeouts:          audd.DefaultConfig().Timeouts,
		Policy:            retrypolicy.Default(),
		Admission:         admission.DefaultConfig(),
		TaskCheckInterval: 20 * time.Millisecond,
		Verify:            idempotency.VerifyHold,
		VerifyDelay:       time.Minute,
		Admin:             Admin{Addr: "127.0.0.1:8080"},
		Version:           "dev",
	}
}

// settleMargin is what the deadline ladder keeps for settling after a call.
const settleMargin = 30 * time.Second

func (o Options) validateSources(bad func(format string, args ...any)) {
	seen := map[string]bool{}
	for _, s := range o.Sources {
		if s.Name == "" || seen[s.Name] {
			bad("sources: the name %q is empty or used twice", s.Name)
		}
		seen[s.Name] = true
		if s.Token == nil {
			bad("sources.%s.token: none", s.Name)
		}
	}
}

// Validate reports every wrong setting by name, and checks the deadline ladder: call timeout + slot wait < asynq timeout − 30 s.
func (o Options) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	between := func(name string, v, least, most time.Duration) {
		if v < least || v > most {
			bad("%s %s: must be %s to %s", name, v, least, most)
		}
	}
	if o.RedisURL == "" {
		bad("redis.url: empty")
	}
	if len(o.Sources) == 0 {
		bad("sources: none; give an AudD token")
	}
	o.validateSources(bad)
	for _, p := range tasks.Paths {
		if n := o.Slots.of(p); n < 0 || n > 10_000 {
			bad("slots.%s %d: must be 0 to 10000", p, n)
		}
		call := o.timeoutOf(p)
		if call <= 0 {
			bad("timeouts.%s: must be more than 0", p)
		}
		if limit := p.Timeout() - settleMargin; call+o.SlotWait >= limit {
			bad("timeouts.%s %s + slot_wait %s: together they must be under %s, the task's asynq timeout less %s", p, call, o.SlotWait, limit, settleMargin)
		}
	}
	if o.Slots.total() <= 0 {
		bad("slots: all are 0, so the worker would run nothing")
	}
	if o.Slots.Upload > 0 && o.Ledger == nil {
		bad("slots.upload %d: uploads need the upload ledger", o.Slots.Upload)
	}
	if o.Verify != idempotency.VerifyHold && o.Verify != idempotency.VerifyRecognize {
		bad("uploads.verify %q: must be hold or recognize", o.Verify)
	}
	between("uploads.verify_delay", o.VerifyDelay, 0, 24*time.Hour)
	between("slot_wait", o.SlotWait, 0, tasks.SlotWait)
	between("task_check_interval", o.TaskCheckInterval, time.Millisecond, 10*time.Second)
	if o.Drain < 0 {
		bad("drain %s: must be 0 or more", o.Drain)
	}
	if o.PricePer1000 < 0 {
		bad("price_per_1000 %g: must be 0 or more", o.PricePer1000)
	}
	errs = append(errs, o.Policy.Validate(), o.Admission.Validate(), o.Admin.validate())
	return errors.Join(errs...)
}

func (o Options) timeoutOf(p tasks.Path) time.Duration {
	switch p {
	case tasks.Enterprise:
		return o.Timeouts.Enterprise
	case tasks.Upload:
		return o.Timeouts.Upload
	default:
		return o.Timeouts.Recognize
	}
}

// deliveryTime is the longest that a delivery of a path takes: a wait in the
// slot, a call, and settling it.
func (o Options) deliveryTime(p tasks.Path) time.Duration {
	return o.timeoutOf(p) + o.SlotWait + settleMargin
}

// drain is how long running calls get after a stop.
func (o Options) drain() time.Duration {
	if o.Drain > 0 {
		return o.Drain
	}
	var longest time.Duration
	for _, p := range tasks.Paths {
		if o.Slots.of(p) > 0 {
			longest = max(longest, o.timeoutOf(p))
		}
	}
	return longest
}

func (a Admin) validate() error {
	if a.Addr == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(a.Addr)
	if err != nil {
		return fmt.Errorf("admin.addr must be host:port: %w", err)
	}
	if a.Password == "" && !isLoopback(host) {
		return fmt.Errorf("admin.addr %s is beyond loopback: set admin.password too", a.Addr)
	}
	return nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
