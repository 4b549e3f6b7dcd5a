package telemetry_test

import (
	"fmt"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/gopegasus/pegasus/internal/telemetry"
)

// TestDecisionSpans looks at the limits: how many decisions are remembered, and
// how many reports one is linked to.
func TestDecisionSpans(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	d := telemetry.NewDecisionSpans(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)), "test")
	witness := make([]telemetry.ReportLink, 1000)
	for i := range witness {
		witness[i] = telemetry.ReportLink{Member: fmt.Sprint("w", i), Seq: 7}
	}
	const decisions = 1030
	for n := uint64(1); n <= decisions; n++ {
		d.Begin(&telemetry.Decision{Number: n, Witness: witness})
		if n == 2 {
			d.End()
		}
	}
	if n := len(spans.Ended()); n != 2 {
		t.Errorf("%d spans have ended, want those of the first step", n)
	}
	d.End()
	ended := spans.Ended()
	if len(ended) != decisions {
		t.Fatalf("%d of %d spans have ended", len(ended), decisions)
	}
	if n := len(ended[0].Links()); n != 128 || ended[0].DroppedLinks() != 0 {
		t.Errorf("a decision on 1000 reports has %d links and dropped %d", n, ended[0].DroppedLinks())
	}
	for n, known := range map[uint64]bool{0: false, 1: false, 6: false, 7: true, decisions: true, decisions + 1: false} {
		context := d.Context(n)
		if got := telemetry.Unpack(context).IsValid(); got != known {
			t.Errorf("the context of decision %d is known: %v", n, got)
		}
		if known && telemetry.Unpack(context).SpanID() != ended[n-1].SpanContext().SpanID() {
			t.Errorf("decision %d has the context of another one", n)
		}
	}

	none := telemetry.NewDecisionSpans(nil, "test")
	none.Begin(&telemetry.Decision{Number: 1})
	if c := none.Context(1); c != (telemetry.Context{}) {
		t.Errorf("without a provider: %v", c)
	}
	none.End()
}
