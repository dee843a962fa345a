// Command auddsim runs the AudD simulator as a process. See package reprise/internal/auddsim for what it can do.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/auddsim"
	"reprise/internal/settings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is main without the process: exit code 0 clean, 1 could not start or failed, 2 wrong usage.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cmd := command()
	understood := false
	cmd.PreRun = func(*cobra.Command, []string) { understood = true } // runs when the command line was right
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	settings.PlainHelp(cmd)
	if err := cmd.ExecuteContext(ctx); err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			err = fmt.Errorf("%w: choose another with --addr or --enterprise-addr", err)
		}
		_, _ = fmt.Fprintln(stderr, "auddsim:", err) // there is nowhere else to say it
		if !understood {
			_, _ = fmt.Fprintln(stderr, "Run 'auddsim --help' for usage.")
			return 2
		}
		return 1
	}
	return 0
}

const example = `  auddsim --addr 127.0.0.1:8700 --samples
  auddsim --addr 127.0.0.1:8700 --tokens tok1,tok2 --rate 50 --burst 5 --rules rules.json
  curl http://127.0.0.1:8700/_sim/bill?lines=0      what AudD would have billed so far`

const long = `Simulate AudD's API: recognition, enterprise, catalog uploads, limits, faults and a bill (costs nothing).

It answers by the content: the same audio always gets the same answer. /_sim/bill says what AudD would have
billed, /_sim/requests what it was asked.

--rules names a JSON file with a list of rules. The first one that matches a request, and has not acted often
enough, changes its answer:
` + rulesExample + `
A rule matches by path, method, name, hash, url, token, headers, fields, audio_id (patterns know * and ?) and
acts skip, times, probability. It answers with code, message, result (match, null, absent), songs, status, body,
answer_headers or a fault (reset_before_body, reset_after_body, slow_answer, truncated, body_text …), after a
latency. The whole list, and how to change rules while it runs: go doc reprise/internal/auddsim

Exit codes: 0 stopped cleanly, 1 could not start, 2 wrong usage.`

// rulesExample is a --rules file.
const rulesExample = `  [{"path": "recognize", "name": "*flaky*", "status": 503, "times": 2},
   {"path": "recognize", "name": "*broken*", "code": 300},
   {"token": "tok2", "code": 902},
   {"path": "enterprise", "result": "match", "duration": "1h", "latency": "2s"}]`

type options struct {
	addr, rules         string
	samples             bool
	indexDelay, urlTime time.Duration
	cfg                 auddsim.Config
}

func command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:           "auddsim",
		Short:         "Simulate AudD's API: recognition, enterprise, catalog uploads, limits, faults and a bill",
		Long:          long,
		Example:       example,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return o.serve(cmd) },
	}
	o.bind(cmd)
	return cmd
}

func (o *options) bind(cmd *cobra.Command) {
	f, c := cmd.Flags(), &o.cfg
	f.StringVar(&o.addr, "addr", "127.0.0.1:0", "address to listen on; port 0 takes a free one")
	f.StringVar(&c.EnterpriseAddr, "enterprise-addr", "", "second address with enterprise at its root; empty: only /enterprise/")
	f.StringSliceVar(&c.Tokens, "tokens", nil, "tokens that are good; empty: any")
	f.Int64Var(&c.Quota, "quota", 0, "units a token may be charged before code 902; 0: no bound")
	f.Float64Var(&c.MatchShare, "match-share", 0.5, "share of contents that match, by their hash")
	f.DurationVar(&c.Limits.Latency, "latency", 0, "time from the whole request to its answer")
	f.Float64Var(&c.Limits.Jitter, "latency-jitter", 0, "latency is drawn from latency × (1 ± this)")
	f.Float64Var(&c.Limits.Rate, "rate", 0, "requests a second over all metered paths; 0: no limit")
	f.IntVar(&c.Limits.Burst, "burst", 1, "size of the rate limit's token bucket")
	f.IntVar(&c.Limits.Concurrency, "concurrency", 0, "requests in flight; 0: no limit")
	f.DurationVar(&c.Limits.RetryAfter, "retry-after", 0, "Retry-After of refusals, in whole seconds; 0: none")
	f.IntVar(&c.Limits.Code, "limit-code", 0, "answer refusals with this AudD code (611) instead of HTTP 429")
	f.Uint64Var(&c.Seed, "seed", 1, "seed of latency and of rules' probabilities")
	f.StringVar(&o.rules, "rules", "", "JSON file with a list of rules")
	f.BoolVar(&o.samples, "samples", false, "add the rules for the sample clips, by file name")
	f.DurationVar(&o.indexDelay, "index-delay", 0, "time after an upload before it is recognised")
	f.DurationVar(&o.urlTime, "url-duration", 3*time.Minute, "length assumed of audio given by URL")
	f.IntVar(&c.LogSize, "log-size", 200_000, "finished requests kept for /_sim/requests")
	f.StringSliceVar(&c.LogHeaders, "log-headers", nil, "request headers kept in the log")
}

func (o *options) serve(cmd *cobra.Command) error {
	cfg := o.cfg
	cfg.IndexDelay, cfg.URLDuration = o.indexDelay, o.urlTime
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
		return fmt.Errorf("print address: %w", err)
	}
	if err := s.Wait(); err != nil {
		return err
	}
	return s.Close()
}
