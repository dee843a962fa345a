package settings_test

import (
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"reprise/internal/settings"
)

func TestHelpShowsSwitchesPlainly(t *testing.T) {
	t.Parallel()
	fs := pflag.NewFlagSet("x", pflag.ContinueOnError)
	fs.BoolP("yes", "y", false, "do it")
	fs.String("rate", "10/s", "how fast")
	require.Equal(t, `Flags:
      --rate string   how fast (default "10/s")
  -y, --yes           do it

Other flags:
      --verbose   say more
`, settings.PlainFlags("Flags:\n"+fs.FlagUsages()+"\nOther flags:\n      --verbose[=true|false]   say more\n"))
}
