# settle: what can be done with the tree. `make` alone lists it.
#
# The modules come from go.work and from nowhere else: `work` is Go's own
# pattern for every package of every module in the workspace.

SHELL     := /bin/bash
BIN       := bin
BENCH     ?=
MICRO     ?= .
BENCHTIME ?= 1s
FUZZTIME  ?= 1m

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z\/]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: test
test: prepare lint ## Everything: install what is missing, lint, all tests of all modules under the race detector
	go test -race -p 2 -count=1 -shuffle=on -timeout 15m work
	GOWORK=off go test ./internal/schema # with the versions that the root requires, not those that the workspace selects

.PHONY: test/quick
test/quick: ## The root module's tests, without the race detector
	go test -p 2 -timeout 15m ./...

.PHONY: lint
lint: $(BIN)/staticcheck ## gofmt, go vet and staticcheck over all modules
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then \
		printf 'not formatted, run "make fmt":\n%s\n' "$$unformatted" >&2; exit 1; fi
	go vet work
	$(BIN)/staticcheck work

.PHONY: fmt
fmt: ## Format all Go files
	gofmt -w .

.PHONY: bench
bench: prepare ## Measure settle beside its peers, fail where it falls short (BENCH='-parts sqlite')
	go run ./bench $(BENCH)

.PHONY: bench/micro
bench/micro: prepare ## The packages' own benchmarks (MICRO=pattern BENCHTIME=1s)
	go test -run '^$$' -bench '$(MICRO)' -benchmem -benchtime $(BENCHTIME) -p 1 -timeout 60m work

.PHONY: duplicates
duplicates: ## Show what agent frameworks run twice, without and with settle
	go run ./tools/duplicates

.PHONY: examples
examples: prepare ## Run each example to its end
	.ci/examples

.PHONY: fuzz
fuzz: ## Fuzz each target for a while (FUZZTIME=1m)
	.ci/fuzz $(FUZZTIME)

.PHONY: prepare
prepare: ## Install what the tests need and the machine lacks: a PostgreSQL server, a C compiler
	.ci/prepare

# staticcheck has a module of its own, so that no user of settle inherits what
# it needs. The build cache makes this cheap when nothing changed.
.PHONY: $(BIN)/staticcheck
$(BIN)/staticcheck:
	@cd .ci/tools && GOWORK=off go build -o ../../$@ honnef.co/go/tools/cmd/staticcheck
