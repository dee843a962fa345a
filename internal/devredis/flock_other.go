//go:build !unix

package devredis

import (
	"errors"
	"os"
)

// flock is not supported: a child cannot inherit the lock here.
func flock(*os.File) (held bool, err error) { return false, errors.ErrUnsupported }

// alive is never called: without flock no folder is locked.
func alive(int) bool { return true }
