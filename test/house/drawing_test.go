package house

// room says which of our rooms one room may import, and why no others.
// .golangci.yml holds the same drawing for editors; TestDepguardAgrees compares
// the two.
type room struct {
	may []string
	why string
}

// drawing is CONTRIBUTING.md's "Who may import whom". What is not drawn is
// forbidden; bench, test and _test.go files are free.
var drawing = map[string]room{
	"tasks":       {nil, "tasks is the contract: it imports nothing of ours"},
	"audd":        {nil, "the AudD client must be usable without a queue: it imports nothing of ours"},
	"retrypolicy": {[]string{"tasks", "audd"}, "the policy is pure: it knows outcomes and AudD's errors, no queue and no store"},
	"admission":   {[]string{"tasks"}, "the gates know tasks only: they must not learn about outcomes' causes or SQL"},
	"store":       {[]string{"tasks"}, "the truth stands alone: it knows tasks only"},
	"idempotency": {[]string{"tasks"}, "the ledger works on a *sql.DB it is given"},
	"spool":       {[]string{"tasks"}, "the spool stores bytes: it knows tasks only"},
	"intake": {
		[]string{"tasks", "admission", "idempotency", "store", "spool", "internal/queue", "internal/redisconn", "internal/settings", "internal/text"},
		"enqueuing needs no AudD client, no policy and no engine",
	},
	"worker": {
		[]string{"tasks", "audd", "retrypolicy", "admission", "idempotency", "store", "spool", "intake", "ops", "internal"},
		"the worker imports every leaf package, but no command, and no package for tests",
	},
	"ops": {
		[]string{"tasks", "admission", "idempotency", "store", "spool", "intake", "internal/queue", "internal/redisconn", "internal/text"},
		"an operator's reports and actions read state and call AudD never: no client, no policy, no flags",
	},
	"dashboards": {nil, "dashboards are data and the names they use"},
	"examples":   {nil, "the samples are data"},
	"cmd/worker": {
		[]string{
			"tasks", "audd", "retrypolicy", "worker", "admission", "idempotency", "store", "spool", "intake",
			"ops", "internal", "examples",
		},
		"a command does not import another command",
	},
	"cmd/enqueue": {
		[]string{"tasks", "intake", "admission", "idempotency", "store", "spool", "internal/cli", "internal/redisconn", "internal/settings", "internal/text"},
		"the producer goes through intake and needs no API token",
	},
	"cmd/inspect": {
		[]string{"tasks", "admission", "idempotency", "store", "intake", "ops", "internal/cli", "internal/redisconn", "internal/settings", "internal/text"},
		"the operator's tool reads state, it never calls AudD",
	},
	"cmd/auddsim": {
		[]string{"tasks", "internal/auddsim", "internal/cli", "internal/settings"},
		"the simulator is AudD's side of the wire and shares no code with the client",
	},
	"internal/auddsim": {[]string{"tasks"}, "the simulator is AudD's side of the wire and shares no code with the client"},
	"internal/child":   {nil, "a child process knows nothing of who starts it"},
	"internal/cli": {
		[]string{"internal/redisconn", "internal/settings", "internal/text"},
		"exit codes, help, tables and error sentences are the same for every command, whatever it does",
	},
	"internal/devredis": {[]string{"internal/child"}, "the embedded Redis knows nothing of jobs"},
	"internal/proctest": {[]string{"internal/child"}, "processes for tests know nothing of what they do"},
	"internal/queue": {
		[]string{"tasks", "admission", "internal/redisconn"},
		"asynq's keys and inspector: it knows tasks and pause reasons, no SQL and no flags",
	},
	"internal/redisconn": {[]string{"internal/queue/asynqkey"}, "the connection knows nothing of jobs except the keys of asynq's dequeue"},
	"internal/redistest": {
		[]string{"internal/devredis", "internal/redisconn", "internal/queue/asynqkey"},
		"a redis-server for tests knows nothing of jobs but where asynq keeps them",
	},
	"internal/text":      {nil, "writing numbers and moments needs nothing of ours"},
	"internal/settings":  {[]string{"internal/text"}, "reading settings knows nothing of who has them"},
	"internal/testaudio": {nil, "test audio is bytes"},
}

// library is a module or package of others that only some rooms may import.
type library struct {
	prefixes []string
	only     []string
	why      string
}

var libraries = map[string]library{
	"asynq": {
		[]string{"github.com/hibiken/asynq"},
		[]string{"tasks", "worker", "intake", "internal/queue"},
		"only tasks, worker, intake and internal/queue know asynq; leaf packages return values, commands use ops",
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

// linkBans are about everything that ends up in a binary, however indirectly.
var linkBans = []struct{ binary, banned, why string }{
	{"cmd/enqueue", "reprise/audd", "a producer needs no API token, so it must not carry the client that uses one"},
	{"cmd/enqueue", "reprise/worker", "a producer does not run tasks"},
	{"cmd/enqueue", "reprise/internal/auddsim", "a producer ships without the simulator"},
	{"cmd/enqueue", "github.com/prometheus/client_golang", "a producer exports no metrics"},
	{"cmd/inspect", "reprise/audd", "looking in costs nothing: it cannot call AudD"},
	{"ops", "reprise/audd", "reports and actions must not be able to call AudD"},
	{"ops", "reprise/retrypolicy", "what reports and the policy both need is in tasks"},
	{"cmd/auddsim", "reprise/audd", "the simulator must not share the client's misunderstandings"},
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
		why:   "a sleep cannot be stopped: use a timer in a select with ctx.Done()",
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
		except: []string{"audd", "spool", "worker/webhook", "worker/trac", "internal", "bench", "test"},
		calls: []string{
			"http.DefaultClient", "http.Transport", "http.DefaultTransport",
			"http.Get", "http.Post", "http.PostForm", "http.Head", "http.NewRequest", "http.NewRequestWithContext",
		},
		why: "outgoing HTTP lives in audd, spool, webhook delivery and tracing, where timeouts and secrets are looked after",
	},
}
