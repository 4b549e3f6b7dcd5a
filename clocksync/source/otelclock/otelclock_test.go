package otelclock_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/clocksync/source"
	"github.com/gopegasus/pegasus/clocksync/source/otelclock"
)

// reported is a clock that has a report.
type reported struct{ report source.Diagnostics }

func (r *reported) Diagnostics() source.Diagnostics { return r.report }

// collected are the series as lines "name unit {attributes} value", sorted.
func collected(t *testing.T, reader *sdk.ManualReader) []string {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Gauge[int64]:
				lines = append(lines, series(m, data.DataPoints)...)
			case metricdata.Gauge[float64]:
				lines = append(lines, series(m, data.DataPoints)...)
			case metricdata.Sum[int64]:
				if !data.IsMonotonic {
					t.Errorf("%s is no counter", m.Name)
				}
				lines = append(lines, series(m, data.DataPoints)...)
			default:
				t.Errorf("%s has data %T", m.Name, m.Data)
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func series[N int64 | float64](m metricdata.Metrics, points []metricdata.DataPoint[N]) (lines []string) {
	for _, p := range points {
		lines = append(lines, fmt.Sprintf("%s %s {%s} %v", m.Name, m.Unit, p.Attributes.Encoded(attribute.DefaultEncoder()), p.Value))
	}
	return lines
}

func registered(t *testing.T, clock otelclock.Clock) (*sdk.ManualReader, metric.Registration) {
	t.Helper()
	reader := sdk.NewManualReader()
	r, err := otelclock.Register(sdk.NewMeterProvider(sdk.WithReader(reader)).Meter("test"), clock)
	if err != nil {
		t.Fatal(err)
	}
	return reader, r
}

// report of three servers, one of which never answered.
func report(t *testing.T) source.Diagnostics {
	t.Helper()
	e, err := clocksync.NewEstimator(clocksync.Config{Timeline: clocksync.UTC, Faults: 1})
	if err != nil {
		t.Fatal(err)
	}
	second := clocksync.Instant(time.Second)
	for _, server := range []string{"a", "b"} {
		e.Add(clocksync.Sample{
			Source: "ntp", Server: server, Timeline: clocksync.UTC, From: second, At: second,
			Offset: clocksync.Around(0, time.Millisecond), Assumed: server == "b",
		})
	}
	e.Add(clocksync.Sample{})
	e.Bound(second)
	r := source.Diagnostics{Diagnostics: e.Diagnostics(3 * second)}
	r.Contradictions, r.Steps, r.Suspends = 4, 5, 6
	r.Sources = []source.SourceDiagnostics{
		{Name: "ntp", Servers: 2, Samples: 1, Refused: map[source.Reason]uint64{source.Unanswered: 2}},
		{Name: "ntp", Servers: 1, Samples: 1, Refused: map[source.Reason]uint64{source.Unanswered: 3, source.Denied: 1}},
	}
	return r
}

func TestInstruments(t *testing.T) {
	reader, registration := registered(t, &reported{report(t)})
	want := []string{
		"pegasus.clock.age s {} 2",
		"pegasus.clock.bound s {} 0.001100007",
		"pegasus.clock.contradictions {contradiction} {} 4",
		"pegasus.clock.refusals {refusal} {reason=denied,source=ntp} 1",
		"pegasus.clock.refusals {refusal} {reason=malformed,source=estimator} 1",
		"pegasus.clock.refusals {refusal} {reason=unanswered,source=ntp} 5",
		"pegasus.clock.samples {sample} {source=ntp} 2",
		"pegasus.clock.servers {server} {standing=agreeing} 2",
		"pegasus.clock.servers {server} {standing=outvoted} 0",
		"pegasus.clock.servers {server} {standing=silent} 1",
		"pegasus.clock.servers {server} {standing=waiting} 0",
		"pegasus.clock.source 1 {assumed=true,source=ntp,timeline=utc,unverified=false} 1",
		"pegasus.clock.status 1 {status=degraded} 0",
		"pegasus.clock.status 1 {status=synchronized} 1",
		"pegasus.clock.status 1 {status=unknown} 0",
		"pegasus.clock.status 1 {status=untrusted} 0",
		"pegasus.clock.steps {step} {} 5",
		"pegasus.clock.suspends {suspend} {} 6",
	}
	if got := collected(t, reader); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if err := registration.Unregister(); err != nil {
		t.Error(err)
	}
	if got := collected(t, reader); len(got) != 0 {
		t.Errorf("after the end: %v", got)
	}
}

// TestNoBoundIsNoSeries shows neither a bound nor an age that is not there.
func TestNoBoundIsNoSeries(t *testing.T) {
	clock := &reported{report(t)}
	reader, _ := registered(t, clock)
	collected(t, reader)
	clock.report.Diagnostics = clocksync.Diagnostics{Offset: clocksync.Unbounded}
	got := strings.Join(collected(t, reader), "\n")
	if strings.Contains(got, "clock.bound") || strings.Contains(got, "clock.age") || !strings.Contains(got, "{status=unknown} 1") || !strings.Contains(got, "{standing=silent} 3") {
		t.Error(got)
	}
}

// TestSeriesStayFew asks for every attribute there is.
func TestSeriesStayFew(t *testing.T) {
	clock := &reported{report(t)}
	clock.report.Sources = nil
	for _, name := range []string{"ntp", "peer", "chrony", "clockbound", "kernel", "fixed"} {
		s := source.SourceDiagnostics{Name: name, Servers: 64, Refused: map[source.Reason]uint64{}}
		for _, reason := range []source.Reason{
			source.Unavailable, source.Unanswered, source.Malformed, source.Mismatch, source.Denied, source.Unsynchronized,
			source.Implausible, source.Disturbed, source.Stale, source.Busy, source.Failed,
		} {
			s.Refused[reason] = 1
		}
		clock.report.Sources = append(clock.report.Sources, s)
	}
	for i := range clock.report.Refused {
		clock.report.Refused[i] = 1
	}
	reader, _ := registered(t, clock)
	if n := len(collected(t, reader)); n > 100 {
		t.Errorf("%d series", n)
	}
}

func TestMeasuredClockIsAClock(t *testing.T) {
	word, err := source.Operator(time.Millisecond, clocksync.UTC)
	if err != nil {
		t.Fatal(err)
	}
	clock, err := source.Measured(source.MeasuredOptions{}, word)
	if err != nil {
		t.Fatal(err)
	}
	defer clock.Close()
	if err := clock.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	reader, _ := registered(t, clock)
	got := strings.Join(collected(t, reader), "\n")
	if !strings.Contains(got, "{assumed=true,source=fixed,timeline=utc,unverified=true} 1") {
		t.Error(got)
	}
}

// faultyMeter makes no gauge.
type faultyMeter struct{ noop.Meter }

var errMeter = errors.New("no such instrument")

func (faultyMeter) Int64ObservableGauge(string, ...metric.Int64ObservableGaugeOption) (metric.Int64ObservableGauge, error) {
	return noop.Int64ObservableGauge{}, errMeter
}

func TestFaultsOfTheMeter(t *testing.T) {
	_, err := otelclock.Register(faultyMeter{}, &reported{})
	if !errors.Is(err, errMeter) || !strings.HasPrefix(err.Error(), "otelclock: making the instruments: ") {
		t.Errorf("got %v", err)
	}
}

// TestInstrumentsAreDocumented looks for each name in the list that is promised.
func TestInstrumentsAreDocumented(t *testing.T) {
	reader, _ := registered(t, &reported{report(t)})
	for _, file := range []string{"doc.go", filepath.Join("..", "..", "..", "docs", "clocks.md")} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range collected(t, reader) {
			if name, _, _ := strings.Cut(line, " "); !bytes.Contains(text, []byte(name)) {
				t.Errorf("%s does not have %s", file, name)
			}
		}
	}
}
