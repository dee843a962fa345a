package store

import (
	"strconv"
	"strings"
)

// dialect is the difference between databases. All SQL of this package is
// written with ? placeholders and passes through rebind once.
type dialect struct {
	numbered bool // $1, $2 … instead of ?
}

var sqliteDialect = dialect{}

// rebind rewrites the placeholders of a query. The queries of this package
// contain no other question mark.
func (d dialect) rebind(query string) string {
	if !d.numbered {
		return query
	}
	var b strings.Builder
	n := 0
	for _, r := range query {
		if r != '?' {
			b.WriteRune(r)
			continue
		}
		n++
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(n))
	}
	return b.String()
}
