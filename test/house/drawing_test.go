package house

// room has the packages of this module that a package may import, and the reason
// why no others. .golangci.yml has the same rules for editors;
// TestLinterHasTheSameImportRules compares the two.
type room struct {
	may []string
	why string
}

// drawing has the rules of "Imports" in CONTRIBUTING.md. Every other
// import is forbidden; bench, test and _test.go files may import everything.
var drawing = map[string]room{
	"tasks":       {nil, "tasks is the contract: it imports no other package of this module"},
	"audd":        {nil, "the AudD client must be usable without a queue"},
	"retrypolicy": {[]string{"tasks", "audd"}, "the policy is pure: outcomes and AudD's errors, no queue and no store"},
	"admission":   {[]string{"tasks"}, "the gates depend on tasks only: not on the causes of outcomes, not on SQL"},
	"store":       {[]string{"tasks"}, "the store depends on tasks only"},
	"idempotency": {[]string{"tasks"}, "the ledger works on the *sql.DB that it is given"},
	"intake": {
		[]string{"tasks", "admission", "idempotency", "store", "internal/queue", "internal/redisconn", "internal/settings", "internal/text"},
		"enqueuing needs no AudD client, no policy and no worker",
	},
	"worker": {
		[]string{"tasks", "audd", "retrypolicy", "admission", "idempotency", "store", "intake", "ops", "internal"},
		"the worker imports every leaf package, but no command and no package for tests",
	},
	"ops": {
		[]string{"tasks", "admission", "idempotency", "store", "intake", "internal/queue", "internal/redisconn", "internal/text"},
		"an operator's reports and actions never call AudD: no client, no policy, no flags",
	},
	"dashboards": {nil, "dashboards are data and the names of metrics"},
	"examples":   {nil, "the samples are data"},
	"cmd/worker": {
		[]string{
			"tasks", "audd", "retrypolicy", "worker", "admission", "idempotency", "store", "intake",
			"ops", "internal", "examples",
		},
		"a command does not import another command",
	},
	"cmd/enqueue": {
		[]string{"tasks", "intake", "admission", "idempotency", "store", "internal/cli", "internal/redisconn", "internal/settings", "internal/text"},
		"the producer enqueues through intake and needs no API token",
	},
	"cmd/inspect": {
		[]string{"tasks", "admission", "idempotency", "store", "intake", "ops", "internal/cli", "internal/redisconn", "internal/settings", "internal/text"},
		"the operator's tool never calls AudD",
	},
	"cmd/auddsim": {
		[]string{"tasks", "internal/auddsim", "internal/cli", "internal/settings"},
		"the simulator is AudD's side of the wire and shares no code with the client",
	},
	"internal/auddsim": {[]string{"tasks"}, "the simulator is AudD's side of the wire and shares no code with the client"},
	"internal/child":   {nil, "a child process does not depend on its parent"},
	"internal/cli": {
		[]string{"internal/redisconn", "internal/settings", "internal/text"},
		"exit codes, help, tables and error sentences are the same for every command",
	},
	"internal/devredis": {[]string{"internal/child", "internal/timer"}, "the embedded Redis does not depend on tasks"},
	"internal/proctest": {[]string{"internal/child"}, "processes for tests do not depend on what they run"},
	"internal/queue": {
		[]string{"tasks", "admission", "internal/redisconn", "internal/timer"},
		"asynq's keys and inspector: tasks and pause reasons, no SQL and no flags",
	},
	"internal/redisconn": {[]string{"internal/queue/asynqkey"}, "the connection depends on the keys of asynq's dequeue only"},
	"internal/redistest": {
		[]string{"internal/devredis", "internal/redisconn", "internal/queue/asynqkey"},
		"a redis-server for tests needs no more than the names of asynq's keys",
	},
	"internal/text":      {nil, "formats of numbers and times need no other package of this module"},
	"internal/settings":  {[]string{"internal/text"}, "reading settings does not depend on their owners"},
	"internal/testaudio": {nil, "test audio is bytes"},
	"internal/timer":     {nil, "waiting needs no other package of this module"},
}

// library is a third-party module or package that only some rooms may import.
type library struct {
	prefixes []string
	only     []string
	why      string
}

var libraries = map[string]library{
	"asynq": {
		[]string{"github.com/hibiken/asynq"},
		[]string{"tasks", "worker", "internal/queue"},
		"only tasks, worker and internal/queue know asynq; leaf packages return values, commands use ops",
	},
	"prometheus": {
		[]string{"github.com/prometheus"},
		[]string{"worker"},
		"metrics belong to worker: leaf packages return facts",
	},
	"cobra": {
		[]string{"github.com/spf13/cobra", "github.com/spf13/pflag"},
		[]string{"cmd", "internal/cli", "internal/settings"},
		"flags belong to the commands",
	},
}

// linkBans are about every package of a binary, also those imported indirectly.
var linkBans = []struct{ binary, banned, why string }{
	{"cmd/enqueue", "reprise/audd", "a producer needs no API token, so it must not link the client that uses one"},
	{"cmd/enqueue", "reprise/worker", "a producer does not run tasks"},
	{"cmd/enqueue", "reprise/internal/auddsim", "a producer ships without the simulator"},
	{"cmd/enqueue", "github.com/prometheus/client_golang", "a producer exports no metrics"},
	{"cmd/inspect", "reprise/audd", "inspect cannot call AudD, so that no command of it is billed"},
	{"ops", "reprise/audd", "reports and actions must not be able to call AudD"},
	{"ops", "reprise/retrypolicy", "what reports and the policy both need is in tasks"},
	{"ops", "github.com/spf13/cobra", "an API and a console use ops without a command line"},
	{"cmd/auddsim", "reprise/audd", "the simulator must not share the client's errors"},
}

// callBans are identifiers of the standard library that some rooms must not use.
var callBans = []struct {
	rooms  []string // empty means everywhere outside tests
	except []string // rooms, or file name prefixes within them
	calls  []string
	why    string
}{
	{
		calls: []string{"time.Sleep"},
		why:   "a sleep cannot be interrupted: use a timer in a select with ctx.Done()",
	},
	{
		rooms: []string{"retrypolicy", "tasks"},
		calls: []string{"time.Now", "time.Since", "time.Until", "time.After", "time.NewTimer", "time.NewTicker"},
		why:   "pure packages take time as an argument",
	},
	{
		rooms: []string{"retrypolicy", "tasks"},
		calls: []string{"rand.Float64", "rand.IntN", "rand.Int64N", "rand.N", "rand.Read"},
		why:   "pure packages take randomness as an argument",
	},
	{
		except: []string{"audd", "internal", "bench"},
		calls: []string{
			"http.DefaultClient", "http.Transport", "http.DefaultTransport",
			"http.Get", "http.Post", "http.PostForm", "http.Head", "http.NewRequest", "http.NewRequestWithContext",
		},
		why: "outgoing HTTP lives in audd, which has timeouts and hides secrets",
	},
}
