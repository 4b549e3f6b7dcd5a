package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/gopegasus/pegasus/clocksync/source/otelclock"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/telemetry"
	"github.com/gopegasus/pegasus/internal/wire"
)

// scope names what the metrics and spans come from.
const scope = "github.com/gopegasus/pegasus/agent"

// observe shows the counters of the member from now on, which are only read when
// somebody collects.
func (m *Member) observe() error {
	if m.cfg.MeterProvider == nil {
		return nil
	}
	source := []attribute.KeyValue{attribute.String("group", m.cfg.Group), attribute.String("tenant", m.cfg.Tenant)}
	var err error
	m.counters, err = telemetry.Observe(m.cfg.MeterProvider.Meter(scope), telemetry.Agent, source, func(o *telemetry.Observation) {
		s, held, open := m.figures()
		o.Count(telemetry.AgentStates, s.States)
		o.Count(telemetry.AgentDropped, s.Dropped)
		o.Count(telemetry.AgentResent, s.Resent)
		o.Count(telemetry.AgentBatches, s.Batches)
		o.Count(telemetry.AgentSendErrors, s.PublishErrors)
		o.Count(telemetry.AgentRejected, s.BadFrames, attribute.String("reason", "frame"))
		o.Count(telemetry.AgentRejected, s.Strange, attribute.String("reason", "strange"))
		o.Count(telemetry.AgentRejoins, s.Rejoins)
		o.Count(telemetry.AgentRing, held)
		o.Count(telemetry.AgentRegions, open)
		signals := s.Signals.add(s.Threads)
		for fate, n := range map[control.Fate]uint64{
			control.Applied: signals.Applied, control.OldEpoch: signals.OldEpoch, control.NoSuchEntry: signals.NoSuchEntry,
			control.Expired: signals.Expired, control.Refused: signals.Refused,
		} {
			o.Count(telemetry.AgentSignals, n, attribute.String("fate", fate.String()))
		}
	})
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}

// unobserve ends what observe and observeClock have begun. No message is handled any
// more, and the lock of the process is not held, which the meter's callbacks take.
func (m *Member) unobserve() error {
	var faults []error
	for _, one := range []metric.Registration{m.counters, m.clockShown} {
		if one != nil {
			faults = append(faults, one.Unregister())
		}
	}
	return errors.Join(faults...)
}

// figures are the counters, how many states the ring holds, and how many regions
// of the process and its threads are open.
func (m *Member) figures() (s Stats, held, open uint64) {
	s = m.Stats()
	m.mu.Lock()
	defer m.mu.Unlock()
	held, open = m.core.Held(), uint64(len(m.regions))
	if m.level != nil {
		for _, t := range m.level.threads {
			open += uint64(len(t.regions))
		}
	}
	return s, held, open
}

// observeClock shows the clock that the member has begun to measure. Who brings a
// clock of his own shows it himself.
func (m *Member) observeClock() {
	if m.cfg.MeterProvider == nil {
		return
	}
	var err error
	if m.clockShown, err = otelclock.Register(m.cfg.MeterProvider.Meter(scope), m.cfg.auto.measured.Load()); err != nil {
		m.log.Error("the clock has no metrics", "member", m.cfg.Name, "error", err)
	}
}

// spans traces what a member sends and applies. A nil *spans traces nothing.
type spans struct {
	tracer trace.Tracer
	base   []attribute.KeyValue
}

func newSpans(cfg *Config) *spans {
	if cfg.TracerProvider == nil {
		return nil
	}
	return &spans{cfg.TracerProvider.Tracer(scope), []attribute.KeyValue{
		attribute.String("pegasus.group", cfg.Group), attribute.String("pegasus.member", cfg.Name),
	}}
}

func (s *spans) with(more ...attribute.KeyValue) trace.SpanStartOption {
	return trace.WithAttributes(append(slices.Clip(s.base), more...)...)
}

// report opens the span of a batch with new reports and has the batch carry its
// context, if it is sampled. It returns what ends the span.
func (s *spans) report(b *wire.Batch) (end func()) {
	if s == nil || b.Again || len(b.Reports) == 0 {
		return func() {}
	}
	_, span := s.tracer.Start(context.Background(), "pegasus.report", trace.WithSpanKind(trace.SpanKindProducer), s.with(
		attribute.Int64("pegasus.first_seq", int64(b.Reports[0].Seq)),               //nolint:gosec // It counts from 1.
		attribute.Int64("pegasus.last_seq", int64(b.Reports[len(b.Reports)-1].Seq)), //nolint:gosec // So does this.
	))
	b.Trace = telemetry.Pack(span.SpanContext())
	return func() { span.End() }
}

// apply runs a handler inside a span that is linked to the decision's.
func (s *spans) apply(ctx context.Context, sig *control.Signal, handle Handler) error {
	if s == nil {
		return handle(ctx, signalOf(sig))
	}
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer), s.with(
		attribute.String("pegasus.decision", sig.Decision.String()),
		attribute.String("pegasus.predicate", sig.Predicate),
		attribute.String("pegasus.signal", sig.Name),
		attribute.String("pegasus.kind", sig.Kind.String()),
		attribute.String("pegasus.region", sig.Region),
		attribute.String("pegasus.target", sig.Target),
	)}
	if from := telemetry.Unpack(sig.Trace); from.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: from}))
	}
	ctx, span := s.tracer.Start(ctx, "pegasus.apply", options...)
	defer span.End()
	err := handle(ctx, signalOf(sig))
	if err != nil {
		span.SetStatus(codes.Error, "") // The text may be anything.
	}
	return err
}
