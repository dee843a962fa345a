# Everything a developer or CI runs. `make help` prints the targets from the comments behind them.

GO ?= go
LINT = $(GO) tool -modfile=tools/go.mod golangci-lint
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS = -s -w -X reprise/internal/cli.version=$(VERSION)

.PHONY: help build test fuzz crash-matrix lint vuln fmt verify release image-root clean
.DEFAULT_GOAL := help

help: ## Print this list
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build every command into bin/
	$(GO) build -o bin/ ./cmd/...

test: ## Install redis-server if it is missing, build, vet and run all tests with -race
	@.ci/need redis-server redis-server
	@.ci/need gcc gcc libc6-dev
	$(GO) build ./...
	$(GO) vet ./...
	@.ci/test

fuzz: ## Run every fuzz target for 3 s (FUZZTIME=…)
	@.ci/fuzz

crash-matrix: ## Run every cell of the upload crash matrix; make test runs a third
	@.ci/need redis-server redis-server
	@.ci/need gcc gcc libc6-dev
	UPLOADCRASH_MATRIX=full CGO_ENABLED=1 $(GO) test -race -count=1 -timeout 40m -v -run '^TestUploadCrashMatrix$$' ./test/uploadcrash

# The linter is built from source the first time (about 3 minutes on 2 cores), then cached.
lint: ## Check with gofmt, go vet and golangci-lint (rules in .golangci.yml)
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "gofmt would change these files (make fmt formats them):"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(LINT) run --allow-parallel-runners

vuln: ## Check for known vulnerabilities with govulncheck (offline: VULNDB=file:///…)
	@.ci/vuln

fmt: ## Format every Go file
	gofmt -w .

verify: ## Run the module checksums, lint and test
	$(GO) mod verify
	$(MAKE) lint
	$(MAKE) test

release: ## Build archives and checksums for Linux and macOS into bin/release (VERSION=…)
	@VERSION='$(VERSION)' LDFLAGS='$(LDFLAGS)' .ci/release

# The Dockerfile uses this file tree, built in its build stage or outside.
image-root: ## Build the file tree of the container image into bin/image (DEST=…)
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags='$(LDFLAGS)' -o $(or $(DEST),bin/image)/usr/local/bin/ ./cmd/...
	mkdir -p $(or $(DEST),bin/image)/etc/ssl/certs $(or $(DEST),bin/image)/data
	cp /etc/ssl/certs/ca-certificates.crt $(or $(DEST),bin/image)/etc/ssl/certs/
	install -d -m 1777 $(or $(DEST),bin/image)/tmp

clean: ## Remove bin/
	rm -rf bin
