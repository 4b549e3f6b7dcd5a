package telemetry_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/telemetry"
)

// TestMetricsAreWellFormed checks what the names promise.
func TestMetricsAreWellFormed(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range slices.Concat(telemetry.Synchronizer, telemetry.Program, telemetry.Agent) {
		switch {
		case !strings.HasPrefix(m.Name, "pegasus."), strings.ToLower(m.Name) != m.Name:
			t.Errorf("%s does not begin with pegasus. or has capitals", m.Name)
		case m.Unit != "s" && (!strings.HasPrefix(m.Unit, "{") || !strings.HasSuffix(m.Unit, "}")):
			t.Errorf("%s has the unit %q", m.Name, m.Unit)
		case !strings.HasSuffix(m.About, "."):
			t.Errorf("%s: %q is no sentence", m.Name, m.About)
		case (m.Kind == telemetry.Histogram) != (len(m.Bounds) > 0), !slices.IsSorted(m.Bounds):
			t.Errorf("%s has the bounds %v", m.Name, m.Bounds)
		case m.Unit == "s" && m.Kind != telemetry.Gauge && m.Kind != telemetry.Histogram:
			t.Errorf("%s: a %v cannot be in seconds", m.Name, m.Kind)
		case seen[m.Prometheus()]:
			t.Errorf("%s: %s is taken", m.Name, m.Prometheus())
		}
		seen[m.Prometheus()] = true
	}
}
