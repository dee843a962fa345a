package main

import (
	"context"
	"fmt"
)

func (a *app) resumeSources(ctx context.Context, args []string, dryRun bool) error { return fmt.Errorf("x") }
