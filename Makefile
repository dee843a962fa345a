# Everything a developer or CI runs. `make help` prints this file's targets from the comments behind them.

GO ?= go
LINT = $(GO) tool -modfile=tools/go.mod golangci-lint

.PHONY: help build test lint fmt verify image-root clean
.DEFAULT_GOAL := help

help: ## Print this list
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build every command into bin/
	$(GO) build -o bin/ ./cmd/...

# -p 2: each test binary starts a redis-server of its own, and two at a time keep two cores busy. test/fleet runs whole fleets of workers
# against a clock and comes last, alone. The time limit is per package.
test: ## Install redis-server if it is missing, build, vet and run all tests with -race
	@.ci/need redis-server redis-server
	@.ci/need gcc gcc libc6-dev
	$(GO) build ./...
	$(GO) vet ./...
	CGO_ENABLED=1 $(GO) test -race -p 2 -timeout 8m $$($(GO) list ./... | grep -v /test/fleet$$)
	CGO_ENABLED=1 $(GO) test -race -timeout 8m ./test/fleet

# The linter is built from source the first time (about 3 minutes on 2 cores), then cached.
lint: ## gofmt, go vet and golangci-lint (house rules in .golangci.yml)
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "gofmt would change (make fmt does it):"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(LINT) run --allow-parallel-runners

fmt: ## Format every Go file
	gofmt -w .

verify: ## What a reviewer runs: module checksums, lint, test
	$(GO) mod verify
	$(MAKE) lint
	$(MAKE) test

# The file tree of the container image; the Dockerfile's build stage and people without a Go image both use it.
image-root: ## Static binaries and certificates for the image, into bin/image (DEST=…)
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w' -o $(or $(DEST),bin/image)/usr/local/bin/ ./cmd/...
	mkdir -p $(or $(DEST),bin/image)/etc/ssl/certs $(or $(DEST),bin/image)/data
	cp /etc/ssl/certs/ca-certificates.crt $(or $(DEST),bin/image)/etc/ssl/certs/
	install -d -m 1777 $(or $(DEST),bin/image)/tmp

clean: ## Remove bin/
	rm -rf bin
