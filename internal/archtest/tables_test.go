package archtest

import (
	"strings"
	"testing"
)

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		pkg, imports, want string
	}{
		{"clocksync", "fmt time", ""},
		{"clocksync", Module + "/scgs", "clocksync imports scgs, but the row of clocksync allows only []"},
		{"scgs", Module + "/clocksync", ""},
		{"scgs", "sync", "scgs is pure and imports sync"},
		{"scgs", "github.com/nats-io/nats.go", "scgs is pure and imports github.com/nats-io/nats.go"},
		{"predicates", "github.com/expr-lang/expr/vm", ""},
		{"control", "github.com/expr-lang/expr", "control is pure and imports github.com/expr-lang/expr"},
		{"agent", "github.com/expr-lang/expr", "agent imports github.com/expr-lang/expr, which only [predicates] may"},
		{"embedded", "github.com/nats-io/nats.go", "embedded imports github.com/nats-io/nats.go, which only [connect internal/bus internal/bus/bustest internal/bench internal/peers agent synchronizer cmd/pegasus internal/testnats internal/worklog examples/*] may"},
		{"agent", Module + "/synchronizer", "agent imports synchronizer, but the row of agent allows only [clocksync scgs predicates control balance monitor connect internal/reading clocksync/source clocksync/source/otelclock internal/agentcore internal/config internal/gostate internal/link internal/nearest internal/plan internal/synccore internal/bus internal/wire internal/yamlconf internal/telemetry]"},
		{"cmd/pegasus", Module + "/internal/sim github.com/spf13/cobra", ""},
		{"cmd/other", "fmt", "cmd/other has no row in archtest.Imports; add the package with its row there and in the docs"},
		{"clocksync/other", "fmt", "clocksync/other has no row in archtest.Imports; add the package with its row there and in the docs"},
		{"examples/quickstart", Module + "/agent " + Module + "/embedded github.com/nats-io/nats.go", ""},
		{"examples/tsp", Module + "/examples/tsp/bnb " + Module + "/examples/tsp/tsplib " + Module + "/configs", ""},
		{"examples/tsp", Module + "/examples/quickstart", "examples/tsp imports examples/quickstart, but the row of examples/* allows only [public below examples/nodes examples/crew]"},
		{"examples/tsp", Module + "/internal/bus", "examples/tsp imports internal/bus, but the row of examples/* allows only [public below examples/nodes examples/crew]"},
		{"examples/tsp/bnb", Module + "/scgs", "examples/tsp/bnb imports scgs, but the row of examples/tsp/bnb allows only [examples/tsp/tsplib]"},
		{"examples/tsp/tsplib", Module + "/scgs", "examples/tsp/tsplib imports scgs, but the row of examples/tsp/tsplib allows only []"},
		{"examples/tsp/run", Module + "/agent", ""},
		{"agent", "go.opentelemetry.io/otel/metric", ""},
		{"agent", "go.opentelemetry.io/otel/sdk/metric", "agent imports go.opentelemetry.io/otel/sdk/metric, which only [cmd/pegasus] may"},
		{"embedded", "github.com/nats-io/nats-server/v2/server", ""},
		{"cmd/pegasus", "github.com/nats-io/nats-server/v2/server", "cmd/pegasus imports github.com/nats-io/nats-server/v2/server, which only [embedded internal/peers internal/testnats] may"},
	} {
		if got := strings.Join(faults(c.pkg, strings.Fields(c.imports)), "\n"); got != c.want {
			t.Errorf("%s importing %s:\n got %s\nwant %s", c.pkg, c.imports, got, c.want)
		}
	}
}

// TestTables checks the tables against each other: they name only packages that
// have a row, no cycle, and no pure package that may import one that is not.
func TestTables(t *testing.T) {
	for pkg, allowed := range Imports {
		for _, a := range allowed {
			if _, ok := Imports[a]; !ok && a != "anything" && a != "public" && a != "below" {
				t.Errorf("the row of %s names %s, which has none", pkg, a)
			}
			if reaches(a, pkg) {
				t.Errorf("%s and %s may import each other", pkg, a)
			}
			_, pure := Pure[pkg]
			if _, ok := Pure[a]; pure && !ok {
				t.Errorf("%s is pure, but its row names %s", pkg, a)
			}
		}
	}
	for pkg := range Pure {
		if _, ok := Imports[pkg]; !ok {
			t.Errorf("%s is listed as pure and has no row in Imports", pkg)
		}
	}
	for module, users := range Modules {
		for _, pkg := range users {
			if _, ok := Imports[pkg]; !ok {
				t.Errorf("%s may be used by %s, which has no row in Imports", module, pkg)
			}
		}
	}
}

func reaches(from, to string) bool {
	for _, next := range Imports[from] {
		if next == to || reaches(next, to) {
			return true
		}
	}
	return false
}
