package telemetry_test

import (
	"fmt"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/telemetry"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/scgs"
)

// TestDecisionSpans looks at the limits: how many decisions are remembered, and
// how many reports one is linked to.
func TestDecisionSpans(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	d := telemetry.NewDecisionSpans(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)), "test")
	witness := make([]monitor.Part, 1000)
	for i := range witness {
		witness[i] = monitor.Part{Name: fmt.Sprint("w", i), State: scgs.Part{Seq: 7}}
	}
	decision := func(number uint64) []monitor.Verdict {
		return []monitor.Verdict{{Fired: true, Decision: control.Decision{Number: number}, Witness: witness}, {}}
	}
	const decisions = 1030
	for n := uint64(1); n <= decisions; n++ {
		d.Begin(nil, decision(n))
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
		signals := []control.Signal{{Decision: control.Decision{Number: n}}}
		d.Mark(signals)
		context := telemetry.Unpack(signals[0].Trace)
		if got := context.IsValid(); got != known {
			t.Errorf("the context of decision %d is known: %v", n, got)
		}
		if known && context.SpanID() != ended[n-1].SpanContext().SpanID() {
			t.Errorf("decision %d has the context of another one", n)
		}
	}

	none, signals := telemetry.NewDecisionSpans(nil, "test"), make([]control.Signal, 1)
	none.Begin(nil, decision(1))
	if none.Mark(signals); signals[0].Trace.Valid() {
		t.Errorf("without a provider: %v", signals[0].Trace)
	}
	none.End()
}
