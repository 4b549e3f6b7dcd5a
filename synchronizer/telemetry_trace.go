package synchronizer

import (
	"go.opentelemetry.io/otel/trace"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/telemetry"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
)

// spans traces the decisions of a loop. A nil *spans traces nothing.
type spans struct {
	*telemetry.DecisionSpans

	reports map[string]told // by member
}

// told is the newest traced batch of a member.
type told struct {
	first, last uint64 // reports
	context     control.Trace
}

func newSpans(provider trace.TracerProvider) *spans {
	if provider == nil {
		return nil
	}
	return &spans{telemetry.NewDecisionSpans(provider, scope), map[string]told{}}
}

// batch notes where the reports of a member come from, of a bounded number of them.
func (s *spans) batch(b *wire.Batch) {
	if s == nil || !b.Trace.Valid() || len(b.Reports) == 0 {
		return
	}
	if _, known := s.reports[b.Member]; !known && len(s.reports) >= maxAddresses {
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
			s.Begin(s.decision(v))
		}
	}
}

func (s *spans) decision(v *monitor.Verdict) *telemetry.Decision {
	d := &telemetry.Decision{
		Number: v.Decision.Number, Name: v.Decision.String(), Synchronizer: v.Decision.Synchronizer, Predicate: v.Predicate,
		Epoch: v.Epoch, State: v.Index, SameClock: v.Span.SameClock, Bound: v.Bound,
	}
	for i := range v.Witness {
		p := &v.Witness[i]
		if p.State.Unknown {
			continue
		}
		r := telemetry.ReportLink{Member: p.Name, Seq: p.State.Seq}
		if t, ok := s.reports[p.Name]; ok && t.first <= r.Seq && r.Seq <= t.last {
			r.Context = telemetry.Context(t.context)
		}
		d.Witness = append(d.Witness, r)
	}
	return d
}

// mark writes into signals which span they come from, also when they are
// repeated.
func (s *spans) mark(signals []control.Signal) {
	if s == nil {
		return
	}
	for i := range signals {
		signals[i].Trace = control.Trace(s.Context(signals[i].Decision.Number))
	}
}

// end closes the spans of the step.
func (s *spans) end() {
	if s != nil {
		s.End()
	}
}
