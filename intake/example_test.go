package intake_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"reprise/intake"
	"reprise/internal/testaudio"
	"reprise/store"
	"reprise/tasks"
)

// A manifest keeps its bad rows, so that the plan names each with its row and line.
func ExampleReadManifest() {
	ctx := context.Background()
	text := "file,external_id\nsong.wav,a-1\n,a-2\nhttps://example.com/b.mp3,a-3\n"
	m, err := intake.ReadManifest(ctx, strings.NewReader(text), "songs.csv", "")
	must(err)
	plan(ctx, func(in *intake.Intake) (*intake.Plan, error) {
		return in.PlanManifest(ctx, intake.Request{Path: tasks.Recognize}, m, nil)
	})
	// Output:
	// to_queue: song.wav
	// refused: songs.csv row 2 (line 3) names neither a file nor a url
	// refused: songs.csv row 3 (line 4) has a URL in the file column: move it to the url column
}

// A file that is too large for recognize, or whose cost has no bound, is refused with the next step.
func ExampleIntake_Plan() {
	ctx := context.Background()
	plan(ctx, func(in *intake.Intake) (*intake.Plan, error) {
		if err := os.WriteFile("large.wav", testaudio.WAV(22*time.Minute, "large"), 0o600); err != nil {
			return nil, err
		}
		return in.Plan(ctx, intake.Request{Path: tasks.Recognize}, []string{"large.wav", "no.wav"}, nil)
	})
	plan(ctx, func(in *intake.Intake) (*intake.Plan, error) {
		return in.Plan(ctx, intake.Request{Path: tasks.Enterprise}, []string{"https://example.com/show.mp3"}, nil)
	})
	// Output:
	// refused: large.wav is 10.1 MiB, but the limit of recognize is 10 MiB: use `enqueue enterprise large.wav`
	// refused: no.wav does not exist
	// refused: https://example.com/show.mp3 has no measurable length, so its cost is not bounded: set a bound with --max-units
}

// Enterprise bills one unit for each 12 s scanned. A minute has five, or one if four of five are skipped.
func ExamplePlan_Counts() {
	ctx := context.Background()
	for _, skip := range []int{0, 4} {
		p := plan(ctx, func(in *intake.Intake) (*intake.Plan, error) {
			if err := os.WriteFile("show.wav", testaudio.WAV(time.Minute, "show"), 0o600); err != nil {
				return nil, err
			}
			every := 1
			return in.Plan(ctx, intake.Request{Path: tasks.Enterprise, Params: tasks.Params{Skip: &skip, Every: &every}}, []string{"show.wav"}, nil)
		})
		fmt.Println(p.Counts().Units, "units at most")
	}
	// Output:
	// to_queue: show.wav
	// 5 units at most
	// to_queue: show.wav
	// 1 units at most
}

// plan makes and prints a plan with a new store, in a folder with song.wav.
func plan(ctx context.Context, with func(*intake.Intake) (*intake.Plan, error)) *intake.Plan {
	dir, err := os.MkdirTemp("", "intake")
	must(err)
	defer func() { must(os.RemoveAll(dir)) }()
	back, err := os.Getwd()
	must(err)
	must(os.Chdir(dir))
	defer func() { must(os.Chdir(back)) }()
	must(os.WriteFile("song.wav", testaudio.WAV(time.Second, "song"), 0o600))
	cfg := store.DefaultConfig()
	cfg.URL = "sqlite:" + filepath.Join(dir, "store.db")
	st, err := store.Open(ctx, cfg)
	must(err)
	defer func() { must(st.Close()) }()
	in, err := intake.New(intake.Options{Store: st}) // no Redis: plans only
	must(err)
	p, err := with(in)
	must(err)
	for _, it := range p.Items {
		fmt.Println(strings.TrimSpace(fmt.Sprintf("%s: %s %s", it.Status, cmp.Or(it.Name, it.At.String()), it.Reason)))
	}
	return p
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
