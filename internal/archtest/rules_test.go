package archtest

import (
	"slices"
	"strings"
)

// Module is the path that Imports is relative to.
const Module = "github.com/gopegasus/pegasus"

// first are the six packages that most others stand on.
var first = []string{"clocksync", "scgs", "predicates", "control", "balance", "monitor"}

// Imports lists which packages of ours each package may import; the rest is
// forbidden. It binds files that are not tests. "anything" allows all,
// "public" the packages outside of internal, "below" those in a directory
// below the package.
var Imports = map[string][]string{
	"clocksync":                  {},
	"clocksync/clocktest":        {"clocksync"},
	"clocksync/source":           {"clocksync"},
	"clocksync/source/ntp":       {"clocksync"},
	"clocksync/source/otelclock": {"clocksync", "clocksync/source"},
	"scgs":                       {"clocksync"},
	"predicates":                 {"internal/nearest", "scgs", "clocksync"},
	"control":                    {"internal/nearest", "predicates", "scgs", "clocksync"},
	"control/program":            {"control", "predicates", "scgs", "clocksync"},
	"balance":                    {"scgs", "clocksync"},
	"balance/local":              {"balance", "internal/nearest", "clocksync"},
	"balance/span":               {},
	"internal/wire":              {"control", "scgs", "clocksync"},
	"internal/agentcore":         {"internal/wire", "control", "scgs", "clocksync"},
	"monitor":                    {"balance", "control", "predicates", "scgs", "clocksync"},
	"internal/config":            {"internal/yamlconf", "balance", "balance/local", "control", "predicates", "scgs"},
	"internal/link":              {"internal/config", "scgs", "clocksync"},
	"internal/plan":              with(first, "balance/local", "internal/config", "internal/wire", "internal/yamlconf"),
	"internal/rearm":             {"scgs", "clocksync"},
	"internal/regions":           {"internal/nearest", "internal/wire"},
	"internal/outbox":            {"internal/wire", "control", "clocksync"},
	"internal/executor":          with(first, "control/program", "internal/config", "internal/plan", "internal/wire"),
	"internal/planner":           with(first, "internal/config", "internal/plan"),
	"internal/synccore":          with(first, "internal/config", "internal/lookahead", "internal/outbox", "internal/plan", "internal/planner", "internal/rearm", "internal/regions", "internal/wire"),
	"internal/configfile":        with(first, "balance/local", "control/program", "internal/config", "internal/executor", "internal/plan", "internal/wire", "internal/yamlconf"),
	"internal/journal":           {"internal/configfile", "internal/plan", "internal/synccore", "internal/wire", "control", "scgs", "clocksync"},
	"internal/sim": with(first, "clocksync/clocktest",
		"internal/agentcore", "internal/plan", "internal/synccore", "internal/wire"),
	"internal/draw": {},
	"internal/ruletest": {
		"internal/draw", "internal/sim", "internal/synccore", "internal/config", "internal/configfile", "internal/nearest", "internal/plan", "internal/wire", "internal/yamlconf",
		"monitor", "control", "predicates", "scgs", "clocksync",
	},
	"internal/balancesim":  {"internal/draw", "internal/sim", "internal/yamlconf", "balance", "clocksync"},
	"internal/workplan":    {"internal/workreport", "internal/configfile", "internal/config", "internal/journal", "internal/plan", "internal/synccore", "internal/wire", "internal/yamlconf", "balance/local", "scgs", "clocksync"},
	"internal/workcmd":     {"internal/workplan", "internal/worksim", "internal/show", "internal/yamlconf"},
	"internal/worksim":     {"internal/draw", "internal/workreport", "internal/sim", "internal/datacore", "internal/loopcore", "internal/workcore", "internal/plan", "internal/config", "internal/yamlconf", "balance/local", "balance/span", "predicates", "clocksync"},
	"internal/bus":         {},
	"internal/bus/bustest": {"internal/bus", "embedded"},
	"internal/nearest":     {},
	"internal/workcore":    {"internal/workreport", "balance/local", "balance/span", "clocksync"},
	"internal/lookahead":   {"internal/plan", "predicates", "scgs", "clocksync"},
	"internal/loopcore":    {"internal/workcore", "balance/span", "clocksync"},
	"internal/workreport":  {},
	"internal/worklog":     {},
	"internal/callcore":    {"internal/workreport", "clocksync"},
	"internal/datacore":    {"clocksync"},
	"internal/pieces":      {"clocksync"},
	"internal/roles":       {"internal/wire"},
	"internal/keys":        {"internal/roles"},
	"internal/keyscmd":     {"internal/keys", "internal/roles"},
	"internal/detectcmd":   {"internal/draw", "internal/show", "internal/tracedetect", "internal/tracefile", "scgs", "clocksync"},
	"internal/yamlconf":    {"internal/nearest"},
	"internal/tracefile":   {"scgs", "clocksync"},
	"internal/tracedetect": {"internal/tracefile", "predicates", "scgs", "clocksync"},
	"internal/telemetry":   {"internal/wire", "monitor", "control"},
	"internal/archtest":    {},
	"internal/callsplit":   {},
	"internal/broken":      {},
	"internal/testwait":    {},
	"internal/testcount":   {},
	"internal/testnats":    {"connect", "internal/loopkey"},
	"internal/loopkey":     {},
	"internal/testprogram": {"internal/testcount"},
	"internal/procnode":    {"agent"},
	"connect":              {"internal/loopkey"},
	"embedded":             {"internal/loopkey"},
	"internal/reading":     {},
	"observe":              {"internal/reading", "clocksync", "clocksync/source"},
	"internal/gostate":     {"internal/reading", "internal/agentcore", "scgs"},
	"agent": with(first, "connect", "internal/reading", "clocksync/source", "clocksync/source/otelclock", "internal/agentcore", "internal/config", "internal/gostate", "internal/link", "internal/nearest", "internal/plan", "internal/synccore",
		"internal/bus", "internal/wire", "internal/yamlconf", "internal/telemetry"),
	"synchronizer": with(first, "connect", "control/program", "clocksync/source", "internal/config", "internal/configfile", "internal/executor", "internal/journal", "internal/nearest", "internal/plan", "internal/roles", "internal/synccore",
		"internal/bus", "internal/wire", "internal/yamlconf", "internal/telemetry"),
	"work": {"agent", "balance", "balance/local", "internal/callcore", "internal/config", "internal/datacore", "internal/link", "internal/loopcore", "internal/nearest", "internal/pieces", "internal/workcore", "internal/worklog", "internal/workreport", "predicates", "scgs", "clocksync"},
	"internal/bench": {
		"agent", "connect", "synchronizer", "monitor", "embedded", "clocksync/source",
		"internal/agentcore", "internal/configfile", "internal/synccore", "internal/wire", "scgs", "clocksync",
	},
	"internal/peers":      {"internal/bench", "agent", "synchronizer", "monitor", "control", "clocksync/source", "clocksync"},
	"internal/show":       {"internal/bench", "internal/draw", "internal/peers", "internal/nearest", "internal/sim", "internal/workreport", "synchronizer", "monitor", "control/program", "control", "clocksync/source", "scgs", "clocksync"},
	"internal/version":    {},
	"internal/ask":        {"internal/bus", "internal/wire", "internal/workreport", "synchronizer", "monitor"},
	"configs":             {},
	"web":                 {"monitor", "clocksync"},
	"cmd/pegasus":         {"anything"},
	"cmd/pegasus-vet":     {"internal/callsplit"},
	"examples/tsp/bnb":    {"examples/tsp/tsplib"},
	"examples/tsp/tsplib": {},
	"examples/tsp/solve":  {"examples/tsp/bnb", "examples/tsp/tsplib"},
	"examples/nodes":      {"public"},
	"examples/crew":       {"public"},
	"examples/*":          {"public", "below", "examples/nodes", "examples/crew"},
}

// Pure lists the packages that import only the standard library, pure packages
// of ours and the modules named here.
var Pure = map[string][]string{
	"clocksync":            {},
	"clocksync/clocktest":  {},
	"scgs":                 {},
	"predicates":           {"github.com/expr-lang/expr"},
	"control":              {},
	"control/program":      {},
	"balance":              {},
	"balance/local":        {},
	"balance/span":         {},
	"configs":              {},
	"internal/archtest":    {},
	"internal/callsplit":   {"golang.org/x/tools"},
	"internal/wire":        {"github.com/tinylib/msgp"},
	"internal/agentcore":   {},
	"monitor":              {},
	"internal/config":      {},
	"internal/plan":        {},
	"internal/outbox":      {},
	"internal/reading":     {},
	"internal/rearm":       {},
	"internal/draw":        {},
	"internal/roles":       {},
	"internal/regions":     {},
	"internal/callcore":    {},
	"internal/datacore":    {},
	"internal/pieces":      {},
	"internal/executor":    {},
	"internal/planner":     {},
	"internal/journal":     {},
	"internal/configfile":  {"github.com/go-json-experiment/json"},
	"internal/synccore":    {},
	"internal/sim":         {},
	"internal/ruletest":    {},
	"internal/balancesim":  {},
	"internal/tracefile":   {"github.com/go-json-experiment/json"},
	"internal/tracedetect": {},
	"internal/nearest":     {},
	"internal/workcore":    {},
	"internal/lookahead":   {},
	"internal/loopcore":    {},
	"internal/workreport":  {},
	"internal/worksim":     {},
	"internal/workplan":    {},
	"internal/yamlconf":    {"github.com/goccy/go-yaml"},
}

// Impure are packages of the standard library that reach goroutines' locks,
// the outside or the process, and so have no place in a pure package.
var Impure = []string{
	"crypto/rand", "log", "log/slog", "net", "os", "os/exec", "os/signal", "sync", "sync/atomic", "syscall", "unsafe",
}

// Modules lists the packages that may import a third-party module. Modules that
// are not here may be imported by every package that is not in Pure.
var Modules = map[string][]string{
	"github.com/nats-io/nats.go": {
		"connect", "internal/bus", "internal/bus/bustest", "internal/bench", "internal/peers", "agent", "synchronizer", "cmd/pegasus", "internal/testnats", "internal/worklog", "examples/*",
	},
	"github.com/nats-io/nats-server/v2":  {"embedded", "internal/peers", "internal/testnats"},
	"github.com/nats-io/jwt/v2":          {"embedded", "internal/keys", "internal/testnats"},
	"github.com/nats-io/nkeys":           {"connect", "embedded", "internal/keys", "internal/testnats"},
	"github.com/expr-lang/expr":          {"predicates"},
	"github.com/goccy/go-yaml":           {"internal/yamlconf"},
	"github.com/tinylib/msgp":            {"internal/wire"},
	"github.com/go-json-experiment/json": {"internal/tracefile", "internal/configfile"},
	"github.com/spf13/cobra":             {"cmd/pegasus", "internal/detectcmd", "internal/keyscmd", "internal/workcmd"},
	"charm.land/bubbletea/v2":            {"cmd/pegasus"},
	"github.com/beevik/ntp":              {"clocksync/source/ntp"},
	// The API for all that shows something; what to do with it is for programs.
	"go.opentelemetry.io": {
		"internal/telemetry", "clocksync/source/otelclock", "agent", "synchronizer", "cmd/pegasus",
	},
	"go.opentelemetry.io/otel/sdk":       {"cmd/pegasus"},
	"go.opentelemetry.io/otel/exporters": {"cmd/pegasus"},
	"github.com/prometheus":              {"cmd/pegasus"},
	"golang.org/x/tools":                 {"internal/callsplit", "cmd/pegasus-vet"},
}

func with(list []string, more ...string) []string { return append(slices.Clone(list), more...) }

// match reports whether a package is covered by a pattern: a package, or one
// with "*" for a directory, which also covers everything below.
func match(pattern, pkg string) bool {
	p, q := strings.Split(pattern, "/"), strings.Split(pkg, "/")
	if len(q) < len(p) || len(q) > len(p) && p[len(p)-1] != "*" {
		return false
	}
	for i := range p {
		if p[i] != "*" && p[i] != q[i] {
			return false
		}
	}
	return true
}

// row returns the value of the most exact pattern in a table that covers a
// package, and that pattern.
func row(table map[string][]string, pkg string) (pattern string, list []string, ok bool) {
	for p, l := range table {
		if match(p, pkg) && (!ok || exactness(p) > exactness(pattern)) {
			pattern, list, ok = p, l, true
		}
	}
	return pattern, list, ok
}

// exactness orders patterns: fewer stars first, then longer ones; no two that
// cover the same package are alike.
func exactness(pattern string) int {
	return len(pattern) - 1000*strings.Count(pattern, "*")
}

// inside reports whether an import path is a module or in it.
func inside(path, module string) bool {
	return path == module || strings.HasPrefix(path, module+"/")
}

// faults returns what is wrong with the imports of one package; both are
// without Module in front where they are ours.
func faults(pkg string, imports []string) []string {
	pattern, allowed, ok := row(Imports, pkg)
	if !ok {
		return []string{pkg + " has no row in archtest.Imports; add the package with its row there and in the docs"}
	}
	_, modules, pure := row(Pure, pkg)
	var out []string
	for _, path := range imports {
		ours, isOurs := strings.CutPrefix(path, Module+"/")
		switch {
		case isOurs && !allows(allowed, pkg, ours):
			out = append(out, pkg+" imports "+ours+", but the row of "+pattern+" allows only ["+strings.Join(allowed, " ")+"]")
		case isOurs:
			if _, _, ok := row(Pure, ours); pure && !ok {
				out = append(out, pkg+" is pure and imports "+ours+", which is not")
			}
		default:
			out = append(out, foreign(pkg, path, pure, modules)...)
		}
	}
	return out
}

func allows(allowed []string, pkg, path string) bool {
	for _, a := range allowed {
		switch {
		case a == "anything", a == path,
			a == "public" && isPublic(path),
			a == "below" && strings.HasPrefix(path, pkg+"/"):
			return true
		}
	}
	return false
}

// isPublic reports whether users may import a package.
func isPublic(pkg string) bool {
	for _, dir := range []string{"internal", "cmd", "examples"} {
		if inside(pkg, dir) {
			return false
		}
	}
	return true
}

// foreign returns what is wrong with one import that is not ours.
func foreign(pkg, path string, pure bool, modules []string) []string {
	if domain, _, _ := strings.Cut(path, "/"); !strings.Contains(domain, ".") {
		if pure && slices.Contains(Impure, path) {
			return []string{pkg + " is pure and imports " + path}
		}
		return nil
	}
	if pure && !slices.ContainsFunc(modules, func(m string) bool { return inside(path, m) }) {
		return []string{pkg + " is pure and imports " + path}
	}
	for module, users := range Modules {
		if inside(path, module) && !slices.ContainsFunc(users, func(u string) bool { return match(u, pkg) }) {
			return []string{pkg + " imports " + path + ", which only [" + strings.Join(users, " ") + "] may"}
		}
	}
	return nil
}
