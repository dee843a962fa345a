package store

import (
	"strconv"
	"strings"
)

// dialect adapts the SQL of this package, which uses ? placeholders, to a database.
type dialect struct {
	numbered bool // the database takes $1, $2 … instead of ?
}

var sqliteDialect = dialect{}

// rebind returns the query with the database's placeholders. It replaces every question mark, even in a string
// literal.
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
