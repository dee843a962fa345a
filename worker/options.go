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

// Source is one AudD account: a token and the hosts to use it at.
type Source struct {
	// Name identifies the source in limits, logs and call rows. It is in lower case.
	Name string
	// Token returns the API token. It is called for every request, so the token may change.
	Token func() string
	// BaseURL and EnterpriseURL replace AudD's hosts, for a simulator or a proxy; "" = AudD.
	BaseURL, EnterpriseURL string
}

// Slots is how many deliveries a worker runs at once, per path. With 0 it takes no tasks of the path.
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
	// Addr is its host:port. Default 127.0.0.1:8080; "" = no listener.
	Addr string
	// Password is that of user "reprise". It is required unless Addr is on loopback.
	Password string
	// AllowChanges lets the web UI change tasks and queues. Default false.
	AllowChanges bool
}

// Options configures a worker. Start from DefaultOptions: the zero value is invalid.
type Options struct {
	// RedisURL is a redis://, rediss:// or unix:// URL.
	RedisURL string
	// Sources are the accounts; at least one.
	Sources []Source
	// Slots are the deliveries at once. Defaults 64, 4, 2.
	Slots Slots
	// SlotWait is the longest wait of a delivery in its slot. Default 60 s.
	SlotWait time.Duration
	// Timeouts bound the calls. Defaults 60 s, 1 h, 10 min.
	Timeouts audd.Timeouts
	// Drain is how long a stop waits for running calls. Default 0 = the longest call timeout of the paths with
	// slots. A call that a shorter drain cuts off may still be billed.
	Drain time.Duration
	// Policy has the budgets and the backoff.
	Policy retrypolicy.Policy
	// Admission configures the gates. New sets its sources from Sources.
	Admission admission.Config
	// Ledger is the upload ledger. A worker without one takes no uploads.
	Ledger *idempotency.Ledger
	// Marks identify the store. A store that does not belong to the queue in Redis is refused. nil = not checked.
	Marks identity.Marks
	// Verify is what follows when an upload may have arrived: hold (default), where an operator decides, or
	// recognize, where a recognition for one unit may settle it. recognize needs a worker with recognize slots.
	Verify idempotency.Verify
	// VerifyDelay is the wait before a verification and between two tries, because AudD needs time to index an
	// upload; how much is not documented. Default 1 min.
	VerifyDelay time.Duration
	// LimitCountsChunks says that AudD's parameter `limit` bounds the scanned chunks, which lowers the estimated
	// units of enterprise calls. AudD's documents contradict each other here. Default false.
	LimitCountsChunks bool
	// PricePer1000 is the price of 1,000 units in the account's currency. With 0 the price is unknown, and so are
	// all costs.
	PricePer1000 float64
	// TaskCheckInterval is how often an idle path reads its queues. Default 20 ms.
	TaskCheckInterval time.Duration
	// Admin is the listener for operators and monitoring.
	Admin Admin
	// SkipAuthCheck skips the check of the tokens at start.
	SkipAuthCheck bool
	// Version is for build info and the User-Agent.
	Version string
	// Transport sends the requests to AudD in tests and benchmarks; nil = the client's own.
	Transport http.RoundTripper
	// Log receives all log lines; nil = slog.Default().
	Log *slog.Logger
}

// DefaultOptions returns the documented defaults, without Redis, store and sources.
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

// settleMargin is the time that a delivery keeps for settling after its call.
const settleMargin = 30 * time.Second

func (o Options) validateSources(bad func(format string, args ...any)) {
	seen := map[string]bool{}
	for _, s := range o.Sources {
		if s.Name == "" || seen[s.Name] {
			bad("sources: the name %q is empty or used twice", s.Name)
		}
		seen[s.Name] = true
		if s.Token == nil {
			bad("sources.%s.token: empty", s.Name)
		}
	}
}

// Validate reports every invalid setting by name. For each path it also requires that call timeout + slot wait <
// asynq timeout − 30 s.
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
		bad("sources: empty; give an AudD token")
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
		bad("slots: all are 0, so the worker would run no tasks")
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

// deliveryTime returns the longest time of a delivery of a path: a wait in the slot, a call, and settling.
func (o Options) deliveryTime(p tasks.Path) time.Duration {
	return o.timeoutOf(p) + o.SlotWait + settleMargin
}

// drain returns how long running calls have after a stop.
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
		return fmt.Errorf("admin.addr %s is not on loopback: set admin.password too", a.Addr)
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
