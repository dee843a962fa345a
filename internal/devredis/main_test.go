package devredis_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"reprise/internal/devredis"
	"reprise/internal/redistest"
)

// holdEnv makes this binary start an instance on the folder that it names, print
// the URL and wait to be killed.
const holdEnv = "DEVREDIS_TEST_HOLD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdEnv); dir != "" {
		if err := hold(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m, redistest.IgnoreRedial())
}

func hold(dir string) error {
	inst, err := devredis.Start(context.Background(), dir)
	if err != nil {
		return err
	}
	fmt.Println(inst.URL)
	<-inst.Done()
	return errors.New("redis ended first")
}
