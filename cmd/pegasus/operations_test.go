package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/telemetry"
	"github.com/gopegasus/pegasus/monitor"
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
	for _, list := range [][]*telemetry.Metric{telemetry.Synchronizer, telemetry.Program, telemetry.Agent} {
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
	for _, c := range monitor.RejectReasons {
		if !strings.Contains(page, "| `"+c.String()+"` |") {
			t.Errorf("docs/operations.md lacks the reject reason %v", c)
		}
	}
}

// logged finds the message of a log line in source code.
var logged = regexp.MustCompile(`(?:Logger|log)\.(?:Debug|Info|Warn|Error)\("([^"]+)"`)

// TestOperationsPageHasTheLogs wants every message that the libraries log on the page.
func TestOperationsPageHasTheLogs(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, dir := range []string{"../../synchronizer", "../../agent"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range logged.FindAllSubmatch(source, -1) {
				found++
				if !strings.HasSuffix(file, "_test.go") && !strings.Contains(string(page), "`"+string(m[1])+"`") {
					t.Errorf("%s logs %q, which docs/operations.md does not have", file, m[1])
				}
			}
		}
	}
	if found < 15 {
		t.Errorf("only %d log lines were found", found)
	}
}
