package otelclock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/clocksync/source"
)

// Clock is a clock whose diagnostics can be exported; [source.MeasuredClock] is
// one. Its Diagnostics must be safe to call from any goroutine.
type Clock interface {
	Diagnostics() source.Diagnostics
}

// Register shows the clock through the instruments of a meter until the registration is undone,
// which must happen before another clock is registered with the same meter: their series would
// be the same. Collecting from a closed clock is safe. An error is the meter's.
func Register(meter metric.Meter, clock Clock) (metric.Registration, error) {
	in, err := newInstruments(meter)
	if err != nil {
		return nil, fmt.Errorf("otelclock: making the instruments: %w", err)
	}
	registration, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		in.observe(o, clock.Diagnostics())
		return nil
	}, in.all...)
	if err != nil {
		return nil, fmt.Errorf("otelclock: registering the clock: %w", err)
	}
	return registration, nil
}

type instruments struct {
	bound, age                      metric.Float64ObservableGauge
	status, source, servers         metric.Int64ObservableGauge
	contradictions, steps, suspends metric.Int64ObservableCounter
	samples, refusals               metric.Int64ObservableCounter

	all []metric.Observable
}

func newInstruments(m metric.Meter) (*instruments, error) {
	var in instruments
	var faults []error
	seconds := func(name, about string) metric.Float64ObservableGauge {
		one, err := m.Float64ObservableGauge("pegasus.clock."+name, metric.WithUnit("s"), metric.WithDescription(about))
		in.all, faults = append(in.all, one), append(faults, err)
		return one
	}
	gauge := func(name, unit, about string) metric.Int64ObservableGauge {
		one, err := m.Int64ObservableGauge("pegasus.clock."+name, metric.WithUnit(unit), metric.WithDescription(about))
		in.all, faults = append(in.all, one), append(faults, err)
		return one
	}
	counter := func(name, unit, about string) metric.Int64ObservableCounter {
		one, err := m.Int64ObservableCounter("pegasus.clock."+name, metric.WithUnit(unit), metric.WithDescription(about))
		in.all, faults = append(in.all, one), append(faults, err)
		return one
	}
	in.bound = seconds("bound", "Half the width of the clock's bound.")
	in.age = seconds("age", "Time since the newest sample of any server.")
	in.status = gauge("status", "1", "1 for the current status of the bound.")
	in.source = gauge("source", "1", "What the bound rests on; always 1.")
	in.servers = gauge("servers", "{server}", "Servers by how they stand in the vote.")
	in.contradictions = counter("contradictions", "{contradiction}", "How often trust in the clock was lost.")
	in.steps = counter("steps", "{step}", "How often the wall clock was set.")
	in.suspends = counter("suspends", "{suspend}", "How often the machine slept.")
	in.samples = counter("samples", "{sample}", "Samples of the sources.")
	in.refusals = counter("refusals", "{refusal}", "Polls without a sample and samples refused, by reason.")
	return &in, errors.Join(faults...)
}

// Those that an attribute can have are all shown, so that a series does not end
// when another one begins.
var (
	statuses  = []clocksync.Status{clocksync.Unknown, clocksync.Synchronized, clocksync.Degraded, clocksync.Untrusted}
	standings = []clocksync.Standing{clocksync.Silent, clocksync.Agreeing, clocksync.Outvoted, clocksync.Waiting}
)

func (in *instruments) observe(o metric.Observer, r source.Diagnostics) {
	in.observeBound(o, r)
	in.observeServers(o, r)
	o.ObserveInt64(in.contradictions, int64(r.Contradictions))
	o.ObserveInt64(in.steps, int64(r.Steps))
	o.ObserveInt64(in.suspends, int64(r.Suspends))
	in.observeSamples(o, r)
}

func (in *instruments) observeBound(o metric.Observer, r source.Diagnostics) {
	q := r.Bound.Quality
	if r.Offset.Bounded() {
		o.ObserveFloat64(in.bound, ((r.Offset.Width() + 1) / 2).Seconds())
	}
	if age, ok := r.Age(); ok {
		o.ObserveFloat64(in.age, age.Seconds())
	}
	for _, s := range statuses {
		o.ObserveInt64(in.status, one(s == q.Status), with(attribute.String("status", s.String())))
	}
	o.ObserveInt64(in.source, 1, with(
		attribute.String("source", q.Source), attribute.String("timeline", string(q.Timeline)),
		attribute.Bool("assumed", q.Assumed), attribute.Bool("unverified", q.Unverified),
	))
}

func (in *instruments) observeServers(o metric.Observer, r source.Diagnostics) {
	var counts [4]int64
	unheard := int64(0)
	for _, s := range r.Sources {
		unheard += int64(s.Servers)
	}
	for _, s := range r.Servers {
		counts[s.Standing]++
	}
	counts[clocksync.Silent] += max(0, unheard-int64(len(r.Servers)))
	for _, s := range standings {
		o.ObserveInt64(in.servers, counts[s], with(attribute.String("standing", s.String())))
	}
}

// observeSamples adds up sources of one kind, which have one series.
func (in *instruments) observeSamples(o metric.Observer, r source.Diagnostics) {
	samples := map[string]uint64{}
	refused := map[[2]string]uint64{}
	for _, s := range r.Sources {
		samples[s.Name] += s.Samples
		for reason, n := range s.Refused {
			refused[[2]string{s.Name, string(reason)}] += n
		}
	}
	for reason, n := range r.Refused {
		if reason := clocksync.Reason(reason); n > 0 && reason != clocksync.Taken {
			refused[[2]string{"estimator", reason.String()}] += n
		}
	}
	for _, name := range slices.Sorted(maps.Keys(samples)) {
		o.ObserveInt64(in.samples, int64(samples[name]), with(attribute.String("source", name)))
	}
	for key, n := range refused {
		o.ObserveInt64(in.refusals, int64(n), with(attribute.String("source", key[0]), attribute.String("reason", key[1])))
	}
}

func with(attributes ...attribute.KeyValue) metric.ObserveOption {
	return metric.WithAttributeSet(attribute.NewSet(attributes...))
}

func one(is bool) int64 {
	if is {
		return 1
	}
	return 0
}
