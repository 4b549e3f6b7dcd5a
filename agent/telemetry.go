package agent

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/gopegasus/pegasus/clocksync/source/otelclock"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/telemetry"
)

// scope names what the metrics and spans come from.
const scope = "github.com/gopegasus/pegasus/agent"

// observeCounters shows the counters of the member from now on, which are only read when a
// reader collects.
func (m *Member) observeCounters() error {
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
		o.Count(telemetry.AgentRejected, s.Ignored, attribute.String("reason", "strange"))
		o.Count(telemetry.AgentRejoins, s.Rejoins)
		o.Count(telemetry.AgentRing, held)
		o.Count(telemetry.AgentRegions, open)
		o.Count(telemetry.AgentHeld, s.HeldRegions)
		o.Count(telemetry.AgentLapsed, s.CanceledRegions)
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

// endObserving ends what observe and observeClock have begun. No message is handled any
// more, and the lock of the process is not held, which the meter's callbacks take.
func (m *Member) endObserving() error {
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
