package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
)

// The limits of tracing.
const (
	decisionsTraced = 1024   // whose contexts are still sent with repeated signals
	linksOfDecision = 128    // what SDKs keep of a span by default
	membersTraced   = 16_384 // whose batches are known
)

// DecisionSpans traces the decisions of one synchronizer. A nil *DecisionSpans traces nothing.
// It belongs to one goroutine.
type DecisionSpans struct {
	tracer  trace.Tracer
	decided [decisionsTraced]decided
	open    []trace.Span    // of this step
	reports map[string]told // by member
}

// decided is the context of a decision's span.
type decided struct {
	number  uint64
	context control.Trace
}

// told is the newest traced batch of a member.
type told struct {
	first, last uint64 // reports
	context     control.Trace
}

// NewDecisionSpans returns nil where there is no provider.
func NewDecisionSpans(provider trace.TracerProvider, scope string) *DecisionSpans {
	if provider == nil {
		return nil
	}
	return &DecisionSpans{tracer: provider.Tracer(scope), reports: map[string]told{}}
}

// Batch notes where the reports of a member come from, of a bounded number of them.
func (d *DecisionSpans) Batch(b *wire.Batch) {
	if d == nil || !b.Trace.Valid() || len(b.Reports) == 0 {
		return
	}
	if _, known := d.reports[b.Member]; !known && len(d.reports) >= membersTraced {
		return
	}
	d.reports[b.Member] = told{b.Reports[0].Seq, b.Reports[len(b.Reports)-1].Seq, b.Trace}
}

// Begin opens a span for each decision of a step, before its signals go out.
func (d *DecisionSpans) Begin(epochs []monitor.Epoch, verdicts []monitor.Verdict) {
	if d == nil {
		return
	}
	for i := range epochs {
		for _, m := range epochs[i].Dropped {
			delete(d.reports, m.Name)
		}
	}
	for i := range verdicts {
		if v := &verdicts[i]; v.Fired {
			d.begin(v)
		}
	}
}

func (d *DecisionSpans) begin(v *monitor.Verdict) {
	members, links := d.links(v.Witness)
	_, span := d.tracer.Start(context.Background(), "pegasus.decision",
		trace.WithSpanKind(trace.SpanKindProducer), trace.WithLinks(links...),
		trace.WithAttributes(
			attribute.String("pegasus.synchronizer", v.Decision.Synchronizer),
			attribute.String("pegasus.predicate", v.Predicate),
			attribute.String("pegasus.decision", v.Decision.String()),
			attribute.Int64("pegasus.epoch", int64(v.Epoch)),        //nolint:gosec // It counts from 1.
			attribute.Int64("pegasus.global_state", int64(v.Index)), //nolint:gosec // So does this.
			attribute.Int("pegasus.members", members),
			attribute.Bool("pegasus.same_clock", v.Span.SameClock),
			attribute.Float64("pegasus.bound_seconds", v.Bound.Seconds()),
		))
	d.decided[v.Decision.Number%decisionsTraced] = decided{v.Decision.Number, Pack(span.SpanContext())}
	d.open = append(d.open, span)
}

// links counts the members whose state in a witness is known, and leads to their
// reports. One whose sending was not traced is named by its member and number alone.
func (d *DecisionSpans) links(witness []monitor.Part) (members int, links []trace.Link) {
	for i := range witness {
		p := &witness[i]
		if p.State.Unknown {
			continue
		}
		if members++; members > linksOfDecision {
			continue
		}
		var from control.Trace
		if t := d.reports[p.Name]; t.first <= p.State.Seq && p.State.Seq <= t.last {
			from = t.context
		}
		links = append(links, trace.Link{SpanContext: Unpack(from), Attributes: []attribute.KeyValue{
			attribute.String("pegasus.member", p.Name), attribute.Int64("pegasus.seq", int64(p.State.Seq)), //nolint:gosec // It counts from 1.
		}})
	}
	return members, links
}

// Mark writes into signals which span they come from, also when they are repeated;
// nothing into those of a decision that is not known any more.
func (d *DecisionSpans) Mark(signals []control.Signal) {
	if d == nil {
		return
	}
	for i := range signals {
		number := signals[i].Decision.Number
		if one := &d.decided[number%decisionsTraced]; one.number == number {
			signals[i].Trace = one.context
		}
	}
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
