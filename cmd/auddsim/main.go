// Command auddsim runs the AudD simulator as a process. Package reprise/internal/auddsim documents what it
// can do.
package main

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/auddsim"
	"reprise/internal/cli"
)

func main() { program.Main() }

var program = cli.Program{
	New:    func(*cli.Process) *cobra.Command { return newRoot() },
	Failed: cli.Failed, Interrupted: 130,
	ExitCodes: []cli.ExitCode{
		{Code: cli.OK, Meaning: "stopped cleanly"}, {Code: cli.Failed, Meaning: "could not start"}, {Code: cli.Usage, Meaning: "wrong usage"},
	},
}

const example = `  auddsim --addr 127.0.0.1:8700 --samples
  auddsim --addr 127.0.0.1:8700 --tokens tok1,tok2 --rate 50 --burst 5 --rules rules.json
  curl http://127.0.0.1:8700/_sim/bill?lines=0      # what AudD would have billed so far`

const long = `The response depends on the content: the same audio always gets the same response. /_sim/bill returns what
AudD would have billed, /_sim/requests the requests received.

--rules names a JSON file with a list of rules. The first rule that matches a request, and has not been applied
as often as it may, changes the response:
` + rulesExample + `
A rule matches by path, method, name, hash, url, token, headers, fields and audio_id (patterns may use * and ?), and
is limited by skip, times and probability. It sets code, message, result (match, null, absent), songs, status,
body, answer_headers or a fault (reset_before_body, reset_after_body, slow_answer, truncated, body_text …), after a
latency. For the complete list: go doc reprise/internal/auddsim.Rule and .Fault; for changing rules at run time:
go doc reprise/internal/auddsim`

const rulesExample = `  [{"path": "recognize", "name": "*flaky*", "status": 503, "times": 2},
   {"path": "recognize", "name": "*broken*", "code": 300},
   {"token": "tok2", "code": 902},
   {"path": "enterprise", "result": "match", "duration": "1h", "latency": "2s"}]`

type options struct {
	addr, rules string
	samples     bool
	cfg         auddsim.Config
}

func newRoot() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "auddsim",
		Short:   "Simulate the AudD API: recognition, enterprise, catalog uploads, limits, faults and a bill",
		Long:    long,
		Example: example,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := o.serve(cmd)
			if errors.Is(err, syscall.EADDRINUSE) {
				return fmt.Errorf("%w: choose another address with --addr or --enterprise-addr", err)
			}
			return err
		},
	}
	o.bind(cmd)
	return cmd
}

func (o *options) bind(cmd *cobra.Command) {
	f, c := cmd.Flags(), &o.cfg
	f.StringVar(&o.addr, "addr", "127.0.0.1:0", "address to listen on; port 0 takes a free one")
	f.StringVar(&c.EnterpriseAddr, "enterprise-addr", "", "second address that serves the enterprise API at its root (default only /enterprise/)")
	f.StringSliceVar(&c.Tokens, "tokens", nil, "valid tokens (default any)")
	f.Int64Var(&c.Quota, "quota", 0, "units charged to a token before code 902; 0 = unlimited")
	f.Float64Var(&c.MatchShare, "match-share", 0.5, "share of contents that match, chosen by their hash")
	f.DurationVar(&c.Limits.Latency, "latency", 0, "time from the end of a request to its response")
	f.Float64Var(&c.Limits.Jitter, "latency-jitter", 0, "latency varies between latency × (1 - this) and latency × (1 + this)")
	f.Float64Var(&c.Limits.Rate, "rate", 0, "requests per second over all metered paths; 0 = unlimited")
	f.IntVar(&c.Limits.Burst, "burst", 1, "size of the rate limit's token bucket")
	f.IntVar(&c.Limits.Concurrency, "concurrency", 0, "maximum requests in flight; 0 = unlimited")
	f.DurationVar(&c.Limits.RetryAfter, "retry-after", 0, "Retry-After of requests over the limits, in whole seconds; 0 = none")
	f.IntVar(&c.Limits.Code, "limit-code", 0, "refuse requests over the limits with this AudD code (611) instead of HTTP 429")
	f.Uint64Var(&c.Seed, "seed", 1, "seed for latency and the probabilities of rules")
	f.StringVar(&o.rules, "rules", "", "JSON file with a list of rules")
	f.BoolVar(&o.samples, "samples", false, "add the rules for the sample clips, by file name")
	f.DurationVar(&c.IndexDelay, "index-delay", 0, "time after an upload until it is recognised")
	f.DurationVar(&c.URLDuration, "url-duration", 3*time.Minute, "assumed duration of audio given by URL")
	f.IntVar(&c.LogSize, "log-size", 200_000, "number of finished requests kept for /_sim/requests")
	f.StringSliceVar(&c.LogHeaders, "log-headers", nil, "request headers kept in the log")
}

func (o *options) serve(cmd *cobra.Command) error {
	cfg := o.cfg
	if cfg.MatchShare == 0 {
		cfg.MatchShare = -1 // in Config 0 means the default
	}
	if o.rules != "" {
		rules, err := auddsim.LoadRules(o.rules)
		if err != nil {
			return err
		}
		cfg.Rules = rules
	}
	if o.samples {
		cfg.Rules = append(cfg.Rules, auddsim.Samples()...)
	}
	s, err := auddsim.Listen(cmd.Context(), o.addr, cfg)
	if err != nil {
		return err
	}
	line := "auddsim listening on " + s.URL
	if cfg.EnterpriseAddr != "" {
		line += " enterprise " + s.EnterpriseURL
	}
	if _, err := fmt.Fprintln(cmd.OutOrStdout(), line); err != nil {
		return fmt.Errorf("print the address: %w", err)
	}
	if err := s.Wait(); err != nil {
		return err
	}
	return s.Close()
}
