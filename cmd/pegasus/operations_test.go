package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/telemetry"
)

// metricRow is the line of a metric in docs/operations.md.
func metricRow(m *telemetry.Metric) string {
	attributes := "-"
	if len(m.Attributes) > 0 {
		attributes = "`" + strings.Join(m.Attributes, "`, `") + "`"
	}
	return fmt.Sprintf("| `%s` | `%s` | %v | %s | %s | %s |\n", m.Name, m.Prometheus(), m.Kind, m.Unit, attributes, m.About)
}

// TestOperationsPage wants every metric, every final fate and every class of
// refusals on the page, and no metric that is not there any more.
func TestOperationsPage(t *testing.T) {
	raw, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	known := map[string]bool{}
	for _, list := range [][]*telemetry.Metric{telemetry.Synchronizer, telemetry.Agent} {
		var rows strings.Builder
		for _, m := range list {
			rows.WriteString(metricRow(m))
			known[m.Name] = true
		}
		if !strings.Contains(page, rows.String()) {
			t.Errorf("docs/operations.md lacks this table:\n%s", rows.String())
		}
	}
	for line := range strings.Lines(page) {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "| `"), "`")
		if strings.HasPrefix(line, "| `pegasus.") && !known[name] && !strings.HasPrefix(name, "pegasus.clock.") {
			if strings.Count(line, "|") == 7 {
				t.Errorf("docs/operations.md has the metric %s, which nobody makes", name)
			}
		}
	}
	for _, f := range control.Fates {
		if f.Final() && !strings.Contains(page, "| `"+f.String()+"` |") {
			t.Errorf("docs/operations.md lacks the fate %v", f)
		}
	}
	for _, c := range synccore.Classes {
		if !strings.Contains(page, "| `"+c.String()+"` |") {
			t.Errorf("docs/operations.md lacks the class %v", c)
		}
	}
}
