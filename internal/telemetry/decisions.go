package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// The limits of tracing.
const (
	decisionsTraced = 1024 // whose contexts are still sent with repeated signals
	linksOfDecision = 128  // what SDKs keep of a span by default
)

// Decision is what the span of a decision says.
type Decision struct {
	Number       uint64 // of the decision
	Name         string // with synchronizer and epoch
	Synchronizer string
	Predicate    string
	Epoch, State uint64
	SameClock    bool
	Bound        time.Duration
	Witness      []ReportLink // what it rests on
}

// ReportLink names the report of one state in a witness. Its context is zero if the
// sending of the report was not traced.
type ReportLink struct {
	Member  string
	Seq     uint64
	Context Context
}

// DecisionSpans traces the decisions of one synchronizer. A nil *DecisionSpans traces
// nothing. It belongs to one goroutine.
type DecisionSpans struct {
	tracer  trace.Tracer
	decided [decisionsTraced]decided
	open    []trace.Span // of this step
}

// decided is the context of a decision's span.
type decided struct {
	number  uint64
	context Context
}

// NewDecisionSpans returns nil where there is no provider.
func NewDecisionSpans(provider trace.TracerProvider, scope string) *DecisionSpans {
	if provider == nil {
		return nil
	}
	return &DecisionSpans{tracer: provider.Tracer(scope)}
}

// Begin opens the span of a decision, before its signals go out.
func (d *DecisionSpans) Begin(of *Decision) {
	if d == nil {
		return
	}
	_, span := d.tracer.Start(context.Background(), "pegasus.decision",
		trace.WithSpanKind(trace.SpanKindProducer), trace.WithLinks(links(of.Witness)...),
		trace.WithAttributes(
			attribute.String("pegasus.synchronizer", of.Synchronizer),
			attribute.String("pegasus.predicate", of.Predicate),
			attribute.String("pegasus.decision", of.Name),
			attribute.Int64("pegasus.epoch", int64(of.Epoch)),        //nolint:gosec // It counts from 1.
			attribute.Int64("pegasus.global_state", int64(of.State)), //nolint:gosec // So does this.
			attribute.Int("pegasus.members", len(of.Witness)),
			attribute.Bool("pegasus.same_clock", of.SameClock),
			attribute.Float64("pegasus.bound_seconds", of.Bound.Seconds()),
		))
	d.decided[of.Number%decisionsTraced] = decided{of.Number, Pack(span.SpanContext())}
	d.open = append(d.open, span)
}

// links leads to the reports of a witness. One whose sending was not traced is
// named by its member and number alone.
func links(witness []ReportLink) []trace.Link {
	list := make([]trace.Link, min(len(witness), linksOfDecision))
	for i := range list {
		w := &witness[i]
		list[i] = trace.Link{SpanContext: Unpack(w.Context), Attributes: []attribute.KeyValue{
			attribute.String("pegasus.member", w.Member), attribute.Int64("pegasus.seq", int64(w.Seq)), //nolint:gosec // It counts from 1.
		}}
	}
	return list
}

// Context is the context of a decision's span, also when a signal of it is
// repeated; zero if it is not known any more.
func (d *DecisionSpans) Context(number uint64) Context {
	if d == nil {
		return Context{}
	}
	if one := &d.decided[number%decisionsTraced]; one.number == number {
		return one.context
	}
	return Context{}
}

// End closes the spans of the step.
func (d *DecisionSpans) End() {
	if d == nil {
		return
	}
	for _, span := range d.open {
		span.End()
	}
	clear(d.open)
	d.open = d.open[:0]
}
