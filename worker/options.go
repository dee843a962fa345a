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

// Slots is how many deliveries a worker runs at once, per path. 0 = the path
// is not worked on here.
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

// Admin is the listener for people and monitors.
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
	// as the longest call timeout of the paths worked on. A call cut off by a
	// shorter drain may still be billed.
	Drain time.Duration
	// Policy is retrypolicy's: budgets and backoff.
	Policy retrypolicy.Policy
	// Admission is the gates' configuration; its sources follow from Sources.
	Admission admission.Config
	// Ledger is the upload ledger; without one the worker takes no uploads.
	Ledger *idempotency.Ledger
	// Verify says what becomes of an upload that may have arrived: hold
	// (default, a person decides) or recognize (one unit may settle it).
	Verify idempotency.Verify
	// VerifyDelay is the time AudD gets to index an upload before it is looked
	// for. AudD names none; default 1 min.
	VerifyDelay time.Duration
	// LimitCountsChunks says that AudD's `limit` bounds scanned chunks
	// (audd-api facts disagree); it lowers enterprise estimates. Default false.
	LimitCountsChunks bool
	// PricePer1000 is the price of 1,000 units in the account's currency;
	// 0 = unknown, and costs are then unknown, never 0.
	PricePer1000 float64
	// TaskCheckInterval is how often an idle path looks for work. Default 20 ms.
	TaskCheckInterval time.Duration
	// Admin is the listener for people and monitors.
	Admin Admin
	// SkipAuthCheck leaves out the token check at start.
	SkipAuthCheck bool
	// Version is shown in build info and the User-Agent.
	Version string
	// HTTPClient replaces the client's transport (tests, benchmarks); nil = its own.
	HTTPClient *http.Client
	// Log receives everything; nil = slog.Default().
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

// Validate reports every setting that cannot be right, by name, and checks the
// deadline ladder: call timeout + slot wait < asynq timeout − 30 s.
func (o Options) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.RedisURL == "" {
		bad("redis.url: empty")
	}
	if len(o.Sources) == 0 {
		bad("sources: none; give an AudD token")
	}
	o.badSources(bad)
	for _, p := range tasks.Paths {
		if n := o.Slots.of(p); n < 0 || n > 10_000 {
			bad("slots.%s %d: want 0 to 10000", p, n)
		}
		need := o.timeoutOf(p) + o.SlotWait
		if have := p.Timeout() - settleMargin; need >= have {
			bad("timeouts.%s %s + slot_wait %s: together they must stay under %s, the task's asynq timeout less 30 s",
				p, o.timeoutOf(p), o.SlotWait, have)
		}
		if o.timeoutOf(p) <= 0 {
			bad("timeouts.%s: want more than 0", p)
		}
	}
	if o.Slots.Upload > 0 && o.Ledger == nil {
		bad("slots.upload %d: uploads need the upload ledger", o.Slots.Upload)
	}
	if o.Verify != idempotency.VerifyHold && o.Verify != idempotency.VerifyRecognize {
		bad("uploads.verify %q: want hold or recognize", o.Verify)
	}
	if o.VerifyDelay < 0 || o.VerifyDelay > 24*time.Hour {
		bad("uploads.verify_delay %s: want 0 to 24h", o.VerifyDelay)
	}
	if o.Slots.total() <= 0 {
		bad("slots: all are 0; the worker would do nothing")
	}
	if o.SlotWait < 0 || o.SlotWait > tasks.SlotWait {
		bad("slot_wait %s: want 0 to %s", o.SlotWait, tasks.SlotWait)
	}
	if o.Drain < 0 {
		bad("drain %s: want 0 or more", o.Drain)
	}
	if o.TaskCheckInterval < time.Millisecond || o.TaskCheckInterval > 10*time.Second {
		bad("task_check_interval %s: want 1ms to 10s", o.TaskCheckInterval)
	}
	if o.PricePer1000 < 0 {
		bad("price_per_1000 %g: want 0 or more", o.PricePer1000)
	}
	errs = append(errs, o.Policy.Validate(), o.Admission.Validate(), o.Admin.validate())
	return errors.Join(errs...)
}

// badSources names what is wrong with the sources there are.
func (o Options) badSources(bad func(format string, args ...any)) {
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
		return fmt.Errorf("admin.addr: want host:port: %w", err)
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
