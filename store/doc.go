// Package store is the truth about money and outcomes, in SQL.
package store
