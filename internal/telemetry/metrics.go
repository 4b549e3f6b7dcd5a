package telemetry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Kind says how the values of a metric are to be read.
type Kind uint8

// The kinds.
const (
	Counter   Kind = iota // counted since the start; adds up over sources
	Sum                   // may go down; adds up over sources
	Gauge                 // a value of its own, which does not add up
	Histogram             // how many values were how large
)

// String gives the word that the documentation uses.
func (k Kind) String() string { return [...]string{"counter", "sum", "gauge", "histogram"}[k] }

// Metric is one instrument. Names, units and attributes are stable.
type Metric struct {
	Name  string
	Kind  Kind
	Unit  string // of UCUM; "s" has fractions, all others are whole numbers
	About string
	// Attributes are those beside the ones that all metrics of a source have.
	Attributes []string
	Bounds     []float64 // of the buckets of a histogram
}

// Prometheus is the metric's name in the Prometheus exposition.
func (m *Metric) Prometheus() string {
	name := strings.ReplaceAll(m.Name, ".", "_")
	if m.Unit == "s" {
		name += "_seconds"
	}
	if m.Kind == Counter {
		name += "_total"
	}
	return name
}

// Observation takes the values of one collection.
type Observation struct {
	observer    metric.Observer
	instruments map[*Metric]metric.Observable
	source      []attribute.KeyValue
}

// Observe makes the instruments of the metrics that are no histograms, and has
// collect called when they are read. All values have the attributes of the source,
// which unregisters when it is not there any more.
func Observe(meter metric.Meter, metrics []*Metric, source []attribute.KeyValue, collect func(*Observation)) (metric.Registration, error) {
	instruments := map[*Metric]metric.Observable{}
	var all []metric.Observable
	for _, m := range metrics {
		if m.Kind == Histogram {
			continue
		}
		one, err := m.observable(meter)
		if err != nil {
			return nil, fmt.Errorf("metric %s: %w", m.Name, err)
		}
		instruments[m] = one
		all = append(all, one)
	}
	return meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		collect(&Observation{o, instruments, source})
		return nil
	}, all...)
}

func (m *Metric) observable(meter metric.Meter) (metric.Observable, error) {
	unit, about := metric.WithUnit(m.Unit), metric.WithDescription(m.About)
	switch {
	case m.Kind == Gauge && m.Unit == "s":
		return meter.Float64ObservableGauge(m.Name, unit, about)
	case m.Unit == "s":
		return nil, errors.New("only gauges and histograms are in seconds")
	case m.Kind == Gauge:
		return meter.Int64ObservableGauge(m.Name, unit, about)
	case m.Kind == Sum:
		return meter.Int64ObservableUpDownCounter(m.Name, unit, about)
	}
	return meter.Int64ObservableCounter(m.Name, unit, about)
}

// Count tells a whole number of a metric.
func (o *Observation) Count(m *Metric, n uint64, more ...attribute.KeyValue) {
	o.observer.ObserveInt64(o.instruments[m].(metric.Int64Observable), int64(n), o.with(more)) //nolint:gosec // No count comes near.
}

// Seconds tells a length of time.
func (o *Observation) Seconds(m *Metric, d time.Duration, more ...attribute.KeyValue) {
	o.observer.ObserveFloat64(o.instruments[m].(metric.Float64Observable), d.Seconds(), o.with(more))
}

func (o *Observation) with(more []attribute.KeyValue) metric.ObserveOption {
	return metric.WithAttributeSet(attribute.NewSet(slices.Concat(o.source, more)...))
}

// Distribution makes a histogram of lengths of time with the attributes of a source, and
// returns what adds one value. Adding allocates nothing.
func Distribution(meter metric.Meter, m *Metric, source []attribute.KeyValue) (record func(time.Duration), err error) {
	h, err := meter.Float64Histogram(m.Name, metric.WithUnit(m.Unit), metric.WithDescription(m.About),
		metric.WithExplicitBucketBoundaries(m.Bounds...))
	if err != nil {
		return nil, fmt.Errorf("metric %s: %w", m.Name, err)
	}
	ctx := context.Background() // It belongs to no request.
	constant := []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(source...))}
	return func(v time.Duration) { h.Record(ctx, v.Seconds(), constant...) }, nil
}
