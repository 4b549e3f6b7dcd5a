package synchronizer

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/telemetry"
	"github.com/gopegasus/pegasus/internal/wire"
)

// The limits of tracing.
const (
	decisionsTraced = 1024 // whose contexts still ride with repeated signals
	linksOfDecision = 128  // what SDKs keep of a span by default
)

// spans traces the decisions of a loop. A nil *spans traces nothing.
type spans struct {
	tracer  trace.Tracer
	reports map[string]told // by member
	decided [decisionsTraced]decided
	open    []trace.Span // of this step
}

// told is the newest traced batch of a member.
type told struct {
	first, last uint64 // reports
	context     control.Trace
}

// decided is the context of a decision's span.
type decided struct {
	number  uint64
	context control.Trace
}

func newSpans(provider trace.TracerProvider) *spans {
	if provider == nil {
		return nil
	}
	return &spans{tracer: provider.Tracer(scope), reports: map[string]told{}}
}

// batch notes where the reports of a known member come from.
func (s *spans) batch(core *synccore.Core, b *wire.Batch) {
	if s == nil || !b.Trace.Valid() || len(b.Reports) == 0 || core.Domain(b.Member) == "" {
		return
	}
	s.reports[b.Member] = told{b.Reports[0].Seq, b.Reports[len(b.Reports)-1].Seq, b.Trace}
}

// begin opens a span for each decision of the step, before its signals go out.
func (s *spans) begin(out *synccore.Output) {
	if s == nil {
		return
	}
	for i := range out.Epochs {
		for _, d := range out.Epochs[i].Dropped {
			delete(s.reports, d.Name)
		}
	}
	for i := range out.Verdicts {
		if v := &out.Verdicts[i]; v.Fired {
			s.decide(v)
		}
	}
}

func (s *spans) decide(v *synccore.Verdict) {
	_, span := s.tracer.Start(context.Background(), "pegasus.decision",
		trace.WithSpanKind(trace.SpanKindProducer), trace.WithLinks(s.witness(v)...),
		trace.WithAttributes(
			attribute.String("pegasus.synchronizer", v.Decision.Synchronizer),
			attribute.String("pegasus.predicate", v.Predicate),
			attribute.String("pegasus.decision", v.Decision.String()),
			attribute.Int64("pegasus.epoch", int64(v.Epoch)),        //nolint:gosec // It counts from 1.
			attribute.Int64("pegasus.global_state", int64(v.Index)), //nolint:gosec // So does this.
			attribute.Int("pegasus.members", len(v.Witness)),
			attribute.Bool("pegasus.same_clock", v.Span.SameClock),
			attribute.Float64("pegasus.bound_seconds", v.Bound.Seconds()),
		))
	n := v.Decision.Number
	s.decided[n%decisionsTraced] = decided{n, telemetry.Pack(span.SpanContext())}
	s.open = append(s.open, span)
}

// witness links a decision to the reports it rests on. A report whose sending was
// not traced is named by its member and number alone.
func (s *spans) witness(v *synccore.Verdict) []trace.Link {
	links := make([]trace.Link, 0, min(len(v.Witness), linksOfDecision))
	for i := range v.Witness {
		p := &v.Witness[i]
		if p.State.Unknown || len(links) == linksOfDecision {
			continue
		}
		link := trace.Link{Attributes: []attribute.KeyValue{
			attribute.String("pegasus.member", p.Name), attribute.Int64("pegasus.seq", int64(p.State.Seq)), //nolint:gosec // It counts from 1.
		}}
		if t, ok := s.reports[p.Name]; ok && t.first <= p.State.Seq && p.State.Seq <= t.last {
			link.SpanContext = telemetry.Unpack(t.context)
		}
		links = append(links, link)
	}
	return links
}

// mark writes into signals which span they come from, also when they are
// repeated.
func (s *spans) mark(signals []control.Signal) {
	if s == nil {
		return
	}
	for i := range signals {
		if d := &s.decided[signals[i].Decision.Number%decisionsTraced]; d.number == signals[i].Decision.Number {
			signals[i].Trace = d.context
		}
	}
}

// end closes the spans of the step.
func (s *spans) end() {
	if s == nil {
		return
	}
	for _, span := range s.open {
		span.End()
	}
	clear(s.open)
	s.open = s.open[:0]
}
