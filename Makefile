# make help lists the targets. Tools are pinned in tools/go.mod.
# Fuzzing is limited by counts: go1.26 at times reports a limit in time as a failure (golang/go#75804).

GO       ?= go
MODULE   := github.com/gopegasus/pegasus
TOOL     := $(GO) tool -modfile=tools/go.mod
FUZZTIME ?= 3000x
BENCH    ?= .
COUNT    ?= 1
TAGS     ?=
SYSTEMS  ?= 10000
TRIALS   ?= 1000
COUNTS   ?= change
TIMES    ?=
TARGETS  := linux/arm64 darwin/arm64 windows/amd64
RELEASES := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
VERSION  := $(shell sed -nE 's/^const Next = "(v[0-9.]+)"$$/\1/p' internal/version/version.go)
DIST     ?= dist

# PURE are the packages without goroutines, which "make race" leaves out. A test holds them equal
# to the tables of internal/archtest.
PURE := balance balance/local balance/span clocksync clocksync/clocktest configs control control/program \
	examples/tsp/bnb examples/tsp/solve examples/tsp/tsplib internal/agentcore internal/archtest \
	internal/balancesim internal/config internal/configfile internal/draw internal/executor internal/journal internal/lookahead internal/loopcore internal/nearest \
	internal/outbox internal/plan internal/callcore internal/callsplit internal/datacore internal/pieces internal/planner internal/reading internal/rearm internal/regions internal/roles internal/ruletest internal/sim internal/synccore internal/tracedetect \
	internal/tracefile internal/wire internal/workcore internal/workplan internal/workreport internal/worksim internal/yamlconf monitor predicates scgs

# Test binaries are the same in every clone, so that a clone finds the results of another one in
# Go's test cache. Counts of random cases are read from the environment, which that cache knows.
export GOFLAGS := -trimpath $(GOFLAGS)

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.NOTPARALLEL:

# having prints the packages of the Go files that contain a line matching $(1).
having = { grep -rlE --include='*.go' --exclude-dir=.git --exclude-dir=tools '$(1)' . || test $$? = 1; } | xargs -r -n1 dirname | sort -u

# "make ci" takes at most 12 minutes on two cores, and .ci/run, which adds MORE, at most 15. The
# race run is last: its closing lines tell how many tests ran.
PARTS := lint cross configs fuzz systems system
MORE  := simulate broken types browser

# BUDGET is how many seconds all parts may take together. A part that is added takes another out.
BUDGET ?= 1200

# timed makes the targets $(1). It prints the seconds of each part, of all parts in the end, also
# after a failure, and fails above BUDGET. TESTED are the seconds of "go test ./...", if it has run.
define timed
	@table=$${TESTED:+$$(printf '%-10s%6d s' test $$TESTED)$$'\n'}; \
	trap 'printf "== seconds of each part\n%s%-10s%6d s\n" "$$table" total $$((SECONDS + $${TESTED:-0}))' EXIT; \
	for part in $(1); do \
		from=$$SECONDS; \
		$(MAKE) --no-print-directory $$part; \
		line=$$(printf '%-10s%6d s' $$part $$((SECONDS - from))); \
		echo "== took $$line"; \
		table+=$$line$$'\n'; \
	done; \
	if ((SECONDS + $${TESTED:-0} > $(BUDGET))); then \
		echo "gate: it took $$((SECONDS + $${TESTED:-0})) s, and its budget is $(BUDGET) s: make a part faster, or move it to make nightly" >&2; \
		exit 1; \
	fi
endef

.PHONY: help test ci ci-rest release reproduce nightly vet lint fmt cross race race-all system fuzz configs man types browser compare shots bench deep systems simulate broken figures hunt

help: ## print this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

test: ## the tests that need nothing but Go
	@echo "== test"
	$(GO) test ./...

ci: ## the whole gate, with the seconds of each part
	$(call timed,test $(PARTS) race)

ci-rest: ## the gate after "go test ./...", and MORE
	$(call timed,$(PARTS) $(MORE) race)

nightly: BUDGET = 1000000
nightly: CROSS = $(TARGETS)
nightly: ci deep ## the gate, then the large counts
	@$(MAKE) --no-print-directory race-all
	@$(MAKE) --no-print-directory compare
	@$(MAKE) --no-print-directory fuzz FUZZTIME=30000x
	@echo "== fuzz the lines of a trace, some 10 minutes"
	$(GO) test -run '^$$' -fuzz '^FuzzTrace$$' -fuzztime 10000000x -fuzzminimizetime 1000x ./internal/tracefile
	@$(MAKE) --no-print-directory systems SYSTEMS=1000000
	@$(MAKE) --no-print-directory simulate TRIALS=1000000
	@$(MAKE) --no-print-directory broken COUNTS=nightly

vet: ## go vet
	@echo "== vet"
	$(GO) vet ./...

lint: ## every linter of .golangci.yml, with go vet, and the formatting
	@echo "== lint"
	$(TOOL) golangci-lint run

fmt: ## format the tree
	$(TOOL) golangci-lint fmt

# "go list -export" compiles as "go build" does, and links nothing: one program is linked for each.
# What compiles for darwin/arm64 and linux/amd64 compiles for linux/arm64; a night compiles that too.
CROSS ?= $(filter-out linux/arm64,$(TARGETS))
cross: ## compile everything for the platforms CROSS
	@for target in $(CROSS); do \
		echo "== build $$target"; \
		export CGO_ENABLED=0 GOOS=$${target%/*} GOARCH=$${target#*/}; \
		$(GO) list -export ./... >/dev/null; \
		$(GO) build -o /dev/null ./cmd/pegasus; \
	done

# What it skips runs in "make test": it has one goroutine, and takes minutes with the race detector. The servers of
# TestDurableCluster are processes of the test binary: with the detector, beside other tests, they find no leader in a minute.
# The examples that it leaves out run for long, and take their concurrency from package work; internal/peers is a measurement, and
# internal/testnats has no code of its own. A night has all of them.
race: ## the tests of packages with goroutines, with the race detector
	@echo "== race"
	CGO_ENABLED=1 $(GO) test -race -timeout 20m -skip '^Test(Hostile.*|DetectIsOfConstantSize|SimRecipes|TourGiven|Trees|DurableCluster|Beside)$$' $$($(GO) list ./... | grep -vxF "$$(printf '$(MODULE)/%s\n' $(PURE) examples/assembly examples/blockmatch examples/farm examples/mandelbrot examples/queens examples/uts internal/peers internal/testnats)")

race-all: ## all tests with the race detector, in random order
	@echo "== race, all packages"
	CGO_ENABLED=1 $(GO) test -race -shuffle=on -timeout 2h ./...

# tagged prints the test files with the build tag $(1).
tagged = { grep -rlE --include='*_test.go' --exclude-dir=.git '^//go:build .*\b$(1)\b' . || test $$? = 1; }

system: ## the tests that need root, a daemon, gcc or another binary
	@files=$$($(call tagged,system)); \
	echo "== system:" $$files; \
	$(GO) test -tags system -timeout 20m -run "^($$(sed -nE 's/^func (Test[A-Z][A-Za-z0-9_]*)\(.*/\1/p' $$files | paste -sd '|'))$$" $$(dirname $$files | sort -u)

deep: ## the large counts: tests with the tag nightly, and 20,000 cases a property
	@echo "== nightly"
	PEGASUS_WORLDS=20000 $(GO) test -timeout 5h ./internal/synccore
	PEGASUS_STEPS=100000 $(GO) test -timeout 1h -run '^TestThresholdForgetsTheOldestSets$$' ./scgs
	PEGASUS_PAIRS=10000 $(GO) test -run '^TestPairsAgain$$' ./web
	PEGASUS_WORK=20000 $(GO) test -timeout 1h -run '^Test(Worlds|LogSpaces)$$' ./internal/workcore
	PEGASUS_THREADS=1000 PEGASUS_HOLDS=20 $(GO) test -timeout 1h -run '^Test(Threads|TryHoldTimes)$$' ./internal/sim
	PEGASUS_FACTS=20 $(GO) test -timeout 1h -run '^TestFacts$$' ./internal/testnats
	PEGASUS_BLOCKMATCH_KILLS=20 $(GO) test -tags system -run '^TestHoldersKilled$$' ./examples/blockmatch
	PEGASUS_WRITER_KILLS=40 $(GO) test -run '^TestWritersKilled$$' ./work
	PEGASUS_TSP_BEST_KILLS=50 $(GO) test -tags system -run '^TestKilledAfterNewBest$$' ./examples/tsp
	PEGASUS_FIGURES=5 $(GO) test -timeout 1h -run '^TestFigures$$' ./internal/balancesim
	$(GO) test -tags 'system nightly' -timeout 5h $$(dirname $$($(call tagged,nightly)) | sort -u)
	$(GO) test -timeout 2h $$($(call having,^[[:space:]]*"pgregory.net/rapid"$$)) -rapid.checks=20000

# Levels have 16 kinds of systems, so a tenth of each is more in all.
systems: ## the detectors against references on SYSTEMS (10000) random systems; levels and laws on a tenth
	@echo "== systems $(SYSTEMS)"
	GOGC=800 PEGASUS_SYSTEMS=$(SYSTEMS) $(GO) test -timeout 5h ./scgs -run 'Agree|Exact' -skip '^TestLevels'
	GOGC=800 PEGASUS_SYSTEMS=$$(($(SYSTEMS) / 10)) $(GO) test -timeout 5h ./scgs -skip '^Test([^L].*)?(Agree|Exact)'

simulate: ## TRIALS (1000) of a group under every kind of fault, judged from outside (docs/testing.md)
	@echo "== simulate $(TRIALS)"
	PEGASUS_TRIALS=$(TRIALS) $(GO) test -timeout 5h ./internal/sim -run '^TestFaults$$' -v

# A change runs the tests side by side. The figures of a night are taken one after the other.
broken: ## kill, stop and cut off real processes: COUNTS (change, or nightly), or TIMES each; the figures go to bin/broken.json
	@echo "== broken $(COUNTS)"
	@mkdir -p bin
	PEGASUS_COUNTS=$(COUNTS) PEGASUS_TIMES=$(TIMES) PEGASUS_REPORT=$(CURDIR)/bin/broken.json \
		$(GO) test -tags broken -timeout 5h ./internal/broken -v -parallel $(if $(filter nightly,$(COUNTS)),1,4)

fuzz: ## each fuzz target, FUZZTIME inputs (3000x)
	@for package in $$($(call having,^func Fuzz[A-Z])); do \
		for name in $$(sed -nE 's/^func (Fuzz[A-Z][A-Za-z0-9_]*)\(.*/\1/p' $$package/*_test.go | sort); do \
			echo "== fuzz $$package $$name $(FUZZTIME)"; \
			$(GO) test -run '^$$' -fuzz "^$$name$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1000x $$package; \
		done; \
	done

# Rule tests are the files that end in _test.yaml.
configs: ## check every config, and run every rule test
	@if [ -d cmd/pegasus ]; then \
		files=$$(find configs examples -name '*.yaml' -not -path '*/testdata/*' 2>/dev/null | sort); \
		programs=$$(grep -e '^configs/programs/' -e '/program\.yaml$$' <<<"$$files"); \
		tests=$$(grep '_test\.yaml$$' <<<"$$files"); \
		others=$$(grep -v -e '^configs/programs/' -e '/program\.yaml$$' -e '_test\.yaml$$' <<<"$$files"); \
		echo "== check" $$others; \
		$(GO) run ./cmd/pegasus check --strict $$others; \
		echo "== program check" $$programs; \
		$(GO) run ./cmd/pegasus program check $$programs; \
		echo "== test" $$tests; \
		$(GO) run ./cmd/pegasus test $$tests; \
	fi

man: ## write the man pages to bin/man
	$(GO) run ./cmd/pegasus man bin/man

# npm is asked only if the pinned tools are not there already.
bin/page/node_modules/.package-lock.json: tools/page/package-lock.json
	@mkdir -p bin/page && cp tools/page/package.json tools/page/package-lock.json bin/page
	cd bin/page && npm ci --no-audit --no-fund --silent
	@touch $@

types: bin/page/node_modules/.package-lock.json ## check the types of the page's scripts
	@echo "== types"
	bin/page/node_modules/.bin/tsc -p tools/page

browser: bin/page/node_modules/.package-lock.json ## drive each page in Chromium, against a live run and its journal
	@echo "== browser"
	cd tools/shots && $(GO) test -timeout 4m -count 1 ./...

compare: ## vet and test the comparison with etcd and Redis, a module of its own; Redis needs a redis-server
	@echo "== compare"
	cd examples/compare && $(GO) vet . && $(GO) test .

shots: ## the pictures of docs/ui.md; needs chromium
	@d=$$(mktemp -d) && cd tools/shots && $(GO) build -o "$$d/shots" . && cd ../.. && "$$d/shots" docs/ui; status=$$?; rm -rf "$$d"; exit $$status

bench: ## benchmarks matching BENCH, COUNT times; compare two outputs with benchstat
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) ./...

# The same commit and Go release give the same bytes: no path, time or number of the build is in them, and
# settings of the caller do not count. The commit is in them.
release: ## the static programs of RELEASES in DIST (dist), each with a list of its parts (CycloneDX), and SHA256SUMS
	@echo "== release $(VERSION)"
	@rm -rf '$(DIST)'; mkdir -p '$(DIST)'
	@for target in $(RELEASES); do \
		file='$(DIST)'/pegasus_$(VERSION)_$${target%/*}_$${target#*/}; \
		GOFLAGS='-trimpath -buildvcs=true' GOAMD64=v1 GOARM64=v8.0 GOEXPERIMENT= CGO_ENABLED=0 GOOS=$${target%/*} GOARCH=$${target#*/} \
			$(GO) build -ldflags '-s -w -X $(MODULE)/internal/version.tag=$(VERSION)' -o "$$file" ./cmd/pegasus; \
		$(GO) tool -modfile=tools/sbom/go.mod cyclonedx-gomod bin -json -noserial -notimestamp -version $(VERSION) -output "$$file.cdx.json" "$$file" 2>'$(DIST)'/log || { cat '$(DIST)'/log >&2; exit 1; }; \
		rm '$(DIST)'/log; \
		ls -l "$$file"; \
	done
	@cd '$(DIST)' && { command -v sha256sum >/dev/null && sha256sum pegasus_* || shasum -a 256 pegasus_*; } > SHA256SUMS

reproduce: ## build the release in two other clones, and compare their bytes
	@dir=$$(mktemp -d); trap 'rm -rf $$dir' EXIT; \
	for one in a b/deeper; do \
		git clone -q . $$dir/$$one; \
		$(MAKE) --no-print-directory -C $$dir/$$one release DIST=dist; \
	done; \
	diff $$dir/a/dist/SHA256SUMS $$dir/b/deeper/dist/SHA256SUMS; \
	echo "the same bytes in both clones"

figures: ## sizes of the tree, and their limits
	$(GO) test -run '^TestFigures$$' -count 1 -v ./internal/archtest

hunt: COUNT = 50
hunt: ## a flaky test: TEST of PKG COUNT (50) times, shuffled, race, one processor, under load
	@[ -n '$(TEST)' ] && [ -n '$(PKG)' ] || { echo "make hunt TEST=regexp PKG=./agent [COUNT=50] [TAGS=system]" >&2; exit 2; }; \
	dir=$$(mktemp -d); \
	trap 'kill $$(jobs -p) || true; rm -r $$dir' EXIT; \
	CGO_ENABLED=1 $(GO) test -race -tags '$(TAGS)' -c -o $$dir/hunt.test $(PKG); \
	for _ in $$(seq $$((2 * $$(getconf _NPROCESSORS_ONLN)))); do while :; do :; done & done; \
	cd $$($(GO) list -f '{{.Dir}}' $(PKG)); \
	GOMAXPROCS=1 $$dir/hunt.test -test.shuffle on -test.failfast -test.timeout 5h -test.count $(COUNT) -test.run '$(TEST)'
