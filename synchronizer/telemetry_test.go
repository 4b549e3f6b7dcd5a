package synchronizer_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/internal/telemetry"
	"github.com/gopegasus/pegasus/internal/testwait"
	"github.com/gopegasus/pegasus/synchronizer"
)

// point is one series of a collection.
type point struct {
	attributes map[string]string
	value      float64 // of a histogram: how many values it has
}

// collected are all series by the metric's name, and the metrics themselves.
func collected(t *testing.T, reader *metric.ManualReader) (map[string][]point, map[string]metricdata.Metrics) {
	t.Helper()
	var got metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &got); err != nil {
		t.Fatal(err)
	}
	points, metrics := map[string][]point{}, map[string]metricdata.Metrics{}
	for _, scope := range got.ScopeMetrics {
		for _, m := range scope.Metrics {
			metrics[m.Name] = m
			add := func(set attribute.Set, v float64) {
				p := point{map[string]string{}, v}
				for _, kv := range set.ToSlice() {
					p.attributes[string(kv.Key)] = kv.Value.String()
				}
				points[m.Name] = append(points[m.Name], p)
			}
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					add(p.Attributes, float64(p.Value))
				}
			case metricdata.Gauge[int64]:
				for _, p := range data.DataPoints {
					add(p.Attributes, float64(p.Value))
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					add(p.Attributes, p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					add(p.Attributes, float64(p.Count))
				}
			default:
				t.Fatalf("%s is a %T", m.Name, data)
			}
		}
	}
	return points, metrics
}

// kindOf is the kind of the collected data.
func kindOf(m metricdata.Metrics) telemetry.Kind {
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		if data.IsMonotonic {
			return telemetry.Counter
		}
		return telemetry.Sum
	case metricdata.Histogram[float64]:
		return telemetry.Histogram
	}
	return telemetry.Gauge
}

// valueOf is the value of the only series of a metric that has these attributes.
func valueOf(t *testing.T, points map[string][]point, name string, with ...string) float64 {
	t.Helper()
	var found []float64
	for _, p := range points[name] {
		match := true
		for i := 0; i < len(with); i += 2 {
			match = match && p.attributes[with[i]] == with[i+1]
		}
		if match {
			found = append(found, p.value)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s has %d series with %v, want one: %v", name, len(found), with, points[name])
	}
	return found[0]
}

// traced is a provider whose spans a test reads.
func traced(sampler sdktrace.Sampler) (*sdktrace.TracerProvider, *tracetest.SpanRecorder) {
	spans := tracetest.NewSpanRecorder()
	return sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans), sdktrace.WithSampler(sampler)), spans
}

// play has two members whose idleness fires a predicate, and waits until its
// signals were applied. Both members and the synchronizer are observed.
func play(t *testing.T, opt synchronizer.Options, cfg agent.Config) {
	t.Helper()
	server, events := serve(t, 0), newWatch()
	opt.Observe = events.observe
	start(t, server.URL(), pair, opt)
	entered := make(chan struct{}, 2)
	var members []*agent.Member
	for _, name := range []string{"w1", "w2"} {
		cfg.Group, cfg.Name, cfg.State = "g", name, state{}
		m, err := agent.Join(t.Context(), server.URL(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		members = append(members, m)
		set(t, m, state{N: 3})
		go func() {
			_ = m.Region(context.Background(), "work", func(ctx context.Context, r *agent.Region) error {
				entered <- struct{}{}
				return r.Wait(ctx)
			}, agent.OnActivate("all-idle", func(ctx context.Context, _ agent.Signal) error {
				return errors.New("some text of the program")
			}))
		}()
	}
	<-entered
	<-entered
	for _, m := range members {
		set(t, m, state{Idle: true, N: 3})
	}
	_, next := events.await(t, 0, "fate", applied)
	events.await(t, next, "second fate", applied)
}

func TestMetrics(t *testing.T) {
	reader := metric.NewManualReader()
	provider := metric.NewMeterProvider(metric.WithReader(reader))
	play(t, synchronizer.Options{MeterProvider: provider}, agent.Config{MeterProvider: provider})
	points, metrics := collected(t, reader)

	check := func(want *telemetry.Metric, common ...string) {
		got, ok := metrics[want.Name]
		if !ok {
			t.Errorf("%s is not there", want.Name)
			return
		}
		if got.Unit != want.Unit || got.Description != want.About || kindOf(got) != want.Kind {
			t.Errorf("%s: unit %q, kind %v, description %q", want.Name, got.Unit, kindOf(got), got.Description)
		}
		keys := append(slices.Clone(want.Attributes), common...)
		slices.Sort(keys)
		for _, p := range points[want.Name] {
			var has []string
			for key, value := range p.attributes {
				has = append(has, key)
				if value == "w1" || value == "w2" {
					t.Errorf("%s has the attribute %s of a member", want.Name, key)
				}
			}
			if slices.Sort(has); !slices.Equal(has, keys) {
				t.Errorf("%s has the attributes %v, want %v", want.Name, has, keys)
			}
		}
	}
	for _, m := range telemetry.Synchronizer {
		check(m, "synchronizer", "tenant")
	}
	for _, m := range telemetry.Agent {
		check(m, "group", "tenant")
	}

	for _, c := range []struct {
		name string
		with []string
		want float64
	}{
		{"pegasus.reports", nil, 4},
		{"pegasus.gaps", nil, 0},
		{"pegasus.decisions", []string{"predicate", "all-idle"}, 1},
		{"pegasus.verdicts", []string{"truth", "true"}, 1},
		{"pegasus.signals", []string{"kind", "activate", "fate", "applied"}, 2},
		{"pegasus.balance.plans", []string{"strategy", "pegasus"}, 0},
		{"pegasus.signals", []string{"kind", "cancel", "fate", "applied"}, 0},
		{"pegasus.rejected", []string{"reason", "frame"}, 0},
		{"pegasus.connected", nil, 1},
		{"pegasus.leads", nil, 1},
		{"pegasus.members.online", nil, 2},
		{"pegasus.members.awaited", nil, 1},
		{"pegasus.members.clock", []string{"status", "exact"}, 2},
		{"pegasus.members.clock.bound", nil, 0},
		{"pegasus.epoch", nil, 1},
		{"pegasus.agent.states", nil, 4}, // of both members
		{"pegasus.agent.ring", nil, 4},
		{"pegasus.agent.signals", []string{"fate", "applied"}, 2},
		{"pegasus.agent.signals", []string{"fate", "refused"}, 0},
	} {
		if got := valueOf(t, points, c.name, c.with...); got != c.want {
			t.Errorf("%s %v is %v, want %v", c.name, c.with, got, c.want)
		}
	}
	for _, c := range []struct {
		name  string
		with  []string
		least float64
	}{
		{"pegasus.frames", []string{"kind", "hello"}, 2},
		{"pegasus.frames", []string{"kind", "batch"}, 2},
		{"pegasus.frames", []string{"kind", "ack"}, 1},
		{"pegasus.global_states", []string{"partial", "false"}, 1},
		{"pegasus.step.duration", nil, 5},
		{"pegasus.verdict.latency", nil, 1},
		{"pegasus.agent.batches", nil, 2},
	} {
		if got := valueOf(t, points, c.name, c.with...); got < c.least {
			t.Errorf("%s %v is %v, want at least %v", c.name, c.with, got, c.least)
		}
	}
}

// TestMetricsOfAMeasuredClock wants the series of the clock that an agent measures.
func TestMetricsOfAMeasuredClock(t *testing.T) {
	reader := metric.NewManualReader()
	play(t, synchronizer.Options{}, agent.Config{MeterProvider: metric.NewMeterProvider(metric.WithReader(reader)), SeparateClock: true})
	points, _ := collected(t, reader)
	if bound := points["pegasus.clock.bound"]; len(bound) != 1 || bound[0].value <= 0 {
		t.Errorf("pegasus.clock.bound is %v", bound)
	}
}

// TestNoMetricsAfterTheEnd wants nothing to be left with the meter.
func TestNoMetricsAfterTheEnd(t *testing.T) {
	reader := metric.NewManualReader()
	provider := metric.NewMeterProvider(metric.WithReader(reader))
	t.Run("run", func(t *testing.T) {
		play(t, synchronizer.Options{MeterProvider: provider}, agent.Config{MeterProvider: provider})
		if points, _ := collected(t, reader); len(points["pegasus.reports"]) != 1 || len(points["pegasus.agent.states"]) != 1 {
			t.Errorf("there are not all metrics: %v", points)
		}
	})
	points, _ := collected(t, reader)
	for _, m := range slices.Concat(telemetry.Synchronizer, telemetry.Agent) {
		if m.Kind != telemetry.Histogram && len(points[m.Name]) > 0 {
			t.Errorf("%s is still there: %v", m.Name, points[m.Name])
		}
	}
}

// ended waits for n spans that are wanted.
func ended(t *testing.T, spans *tracetest.SpanRecorder, n int, wanted func(sdktrace.ReadOnlySpan) bool) []sdktrace.ReadOnlySpan {
	t.Helper()
	var found []sdktrace.ReadOnlySpan
	testwait.Until(t, strconv.Itoa(n)+" spans", func() bool {
		found = slices.DeleteFunc(spans.Ended(), func(s sdktrace.ReadOnlySpan) bool { return !wanted(s) })
		return len(found) >= n
	})
	return found
}

func named(name string) func(sdktrace.ReadOnlySpan) bool {
	return func(s sdktrace.ReadOnlySpan) bool { return s.Name() == name }
}

func attributesOf(kvs []attribute.KeyValue) map[string]string {
	all := map[string]string{}
	for _, kv := range kvs {
		all[string(kv.Key)] = kv.Value.String()
	}
	return all
}

// TestSpans follows a decision from the reports it rests on to its application.
func TestSpans(t *testing.T) {
	deciding, decisions := traced(sdktrace.AlwaysSample())
	acting, actions := traced(sdktrace.AlwaysSample())
	var journal bytes.Buffer
	t.Cleanup(func() { // When the synchronizer has ended: the journal has the signals without the spans.
		if r, err := synchronizer.Replay(&journal, synchronizer.ReplayOptions{}); err != nil || r.FirstDifference != 0 || !r.Complete || r.Decisions == 0 {
			t.Errorf("the journal of a run with spans: %+v, %v", r, err)
		}
	})
	play(t, synchronizer.Options{TracerProvider: deciding, Journal: &journal}, agent.Config{TracerProvider: acting})

	decision := ended(t, decisions, 1, named("pegasus.decision"))[0]
	if len(decision.Links()) != 2 {
		t.Fatalf("the decision has %d links, want one a member", len(decision.Links()))
	}
	for i, link := range decision.Links() {
		to := attributesOf(link.Attributes)
		from := attributesOf(ended(t, actions, 1, func(s sdktrace.ReadOnlySpan) bool {
			return s.Name() == "pegasus.report" && s.SpanContext().SpanID() == link.SpanContext.SpanID()
		})[0].Attributes())
		if to["pegasus.member"] != []string{"w1", "w2"}[i] || from["pegasus.member"] != to["pegasus.member"] ||
			to["pegasus.seq"] < from["pegasus.first_seq"] || to["pegasus.seq"] > from["pegasus.last_seq"] {
			t.Errorf("link %d with %v leads to %v", i, to, from)
		}
	}
	want := map[string]string{
		"pegasus.synchronizer": "gsync", "pegasus.predicate": "all-idle", "pegasus.decision": "gsync/1/1", "pegasus.epoch": "1",
		"pegasus.global_state": attributesOf(decision.Attributes())["pegasus.global_state"],
		"pegasus.members":      "2", "pegasus.same_clock": "true", "pegasus.bound_seconds": "0",
	}
	if d := cmp.Diff(want, attributesOf(decision.Attributes())); d != "" {
		t.Errorf("the decision (-want +got):\n%s", d)
	}
	for _, s := range ended(t, actions, 2, named("pegasus.apply")) {
		got := attributesOf(s.Attributes())
		member := got["pegasus.member"]
		want := map[string]string{
			"pegasus.group": "g", "pegasus.member": member, "pegasus.target": member, "pegasus.decision": "gsync/1/1",
			"pegasus.predicate": "all-idle", "pegasus.signal": "all-idle", "pegasus.kind": "activate", "pegasus.region": "work",
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("the application (-want +got):\n%s", d)
		}
		if links := s.Links(); len(links) != 1 || links[0].SpanContext.SpanID() != decision.SpanContext().SpanID() || links[0].SpanContext.TraceID() != decision.SpanContext().TraceID() {
			t.Errorf("the application is linked to %v, want %v", links, decision.SpanContext())
		}
		if s.Status().Code.String() != "Error" || s.Status().Description != "" {
			t.Errorf("the status of a handler that failed is %v", s.Status())
		}
	}
}

// TestSpansOfOneSide traces one side only: a span that is not sampled is named and not
// linked.
func TestSpansOfOneSide(t *testing.T) {
	t.Run("synchronizer", func(t *testing.T) {
		deciding, decisions := traced(sdktrace.AlwaysSample())
		never, _ := traced(sdktrace.NeverSample())
		play(t, synchronizer.Options{TracerProvider: deciding}, agent.Config{TracerProvider: never})
		for i, link := range ended(t, decisions, 1, named("pegasus.decision"))[0].Links() {
			if to := attributesOf(link.Attributes); link.SpanContext.IsValid() || to["pegasus.member"] != []string{"w1", "w2"}[i] {
				t.Errorf("link %d is %v", i, link)
			}
		}
	})
	t.Run("agents", func(t *testing.T) {
		acting, actions := traced(sdktrace.AlwaysSample())
		play(t, synchronizer.Options{}, agent.Config{TracerProvider: acting})
		for _, s := range ended(t, actions, 2, named("pegasus.apply")) {
			if len(s.Links()) != 0 {
				t.Errorf("the application of a decision nobody traced is linked to %v", s.Links())
			}
		}
	})
}

// TestStandbyDoesNotLead: the metrics distinguish a standby from the leader.
func TestStandbyDoesNotLead(t *testing.T) {
	server := serve(t, 0)
	for standby, want := range []float64{1, 0} {
		reader := metric.NewManualReader()
		start(t, server.URL(), pair, synchronizer.Options{Standby: standby > 0, MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))})
		points, _ := collected(t, reader)
		if got := valueOf(t, points, "pegasus.leads"); got != want {
			t.Errorf("process %d: %v, want %v", standby, got, want)
		}
	}
}
