package store

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRebindNumbersPlaceholdersForPostgreSQL(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a = ? AND b = ?", dialect{}.rebind("a = ? AND b = ?"))
	require.Equal(t, "a = $1 AND b = $2", dialect{numbered: true}.rebind("a = ? AND b = ?"))
}

// PostgreSQL lacks these words or gives them a different meaning.
func TestFirstMigrationUsesNoSQLiteOnlyKeywords(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("migrations/00001_init.sql")
	require.NoError(t, err)
	for _, word := range []string{"AUTOINCREMENT", "BLOB", "DATETIME", "INTEGER", "WITHOUT ROWID", "STRICT", "REAL"} {
		require.NotRegexp(t, `(?i)\b`+word+`\b`, string(raw))
	}
}
