package synchronizer

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/bus/bustest"
	"github.com/gopegasus/pegasus/internal/telemetry"
	"github.com/gopegasus/pegasus/internal/testwait"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// crowd is a synchronizer that many members talk to by frames made in advance.
type crowd struct {
	tb       testing.TB
	s        *Synchronizer
	local    *bustest.Server
	members  *bus.Bus
	subjects wire.Subjects
	codec    *wire.BatchCodec
}

func configText(members, rules int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "synchronizers:\n  gsync:\n    members: {group: g, count: %d}\n    silence: {after: 1h, then: drop}\n    state: {n: int}\n    predicates:\n", members)
	for i := range rules {
		fmt.Fprintf(&b, "      p%d: {when: \"count(members, .n == %d) > 0\"}\n", i, i)
	}
	return b.String()
}

func newCrowd(tb testing.TB, cfg string, opt Options) *crowd {
	tb.Helper()
	parsed, err := ParseConfig("test.yaml", []byte(cfg))
	if err != nil {
		tb.Fatal(err)
	}
	c := &crowd{tb: tb, local: bustest.NewServer(tb), subjects: wire.Subjects{Tenant: "default", Group: "g"}}
	c.members, opt.bus = c.local.Connect(bus.Options{}), c.local.Connect(bus.Options{})
	if c.s, err = Start(tb.Context(), "", parsed, opt); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := c.members.Close(); err != nil {
			tb.Error(err)
		}
		if err := c.s.Close(); err != nil {
			tb.Error(err)
		}
	})
	c.codec = wire.NewBatchCodec(c.s.level.State)
	return c
}

func (c *crowd) stamp(mono clocksync.Instant) clocksync.Stamp {
	return clocksync.Stamp{Domain: c.s.clock.Domain(), Mono: mono, Within: clocksync.Unbounded}
}

func (c *crowd) hello(member string) []byte {
	frame, err := wire.AppendHello(nil, &wire.Hello{Member: member, Incarnation: 1, Domain: c.s.clock.Domain()})
	if err != nil {
		c.tb.Fatal(err)
	}
	return frame
}

// batch is the report of a state that held for a millisecond at least.
func (c *crowd) batch(member string, seq uint64, at clocksync.Instant, n int64) []byte {
	frame, _, err := c.codec.Append(nil, &wire.Batch{
		Member: member, Incarnation: 1,
		Reports:  []wire.Report{{Seq: seq, At: c.stamp(at), Row: []scgs.Value{scgs.IntValue(n)}}},
		Evidence: wire.Evidence{Seq: seq, At: c.stamp(at.Add(time.Millisecond))},
	})
	if err != nil {
		c.tb.Fatal(err)
	}
	return frame
}

func (c *crowd) send(subject string, frame []byte) {
	if err := c.members.Publish(subject, frame); err != nil {
		c.tb.Fatal(err)
	}
}

func (c *crowd) ready(part string) Readiness {
	for _, r := range c.s.Readiness() {
		if r.Part == part {
			return r
		}
	}
	c.tb.Fatalf("no part %q", part)
	return Readiness{}
}

func gather(tb testing.TB, reader *metric.ManualReader) map[string]metricdata.Metrics {
	tb.Helper()
	var got metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &got); err != nil {
		tb.Fatal(err)
	}
	all := map[string]metricdata.Metrics{}
	for _, s := range got.ScopeMetrics {
		for _, m := range s.Metrics {
			all[m.Name] = m
		}
	}
	return all
}

// series counts the series of a metric as Prometheus does, where each bucket of a
// histogram is one, and hands each attribute's value to see.
func series(tb testing.TB, m metricdata.Metrics, see func(key, value string)) int {
	tb.Helper()
	n := 0
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			for _, kv := range p.Attributes.ToSlice() {
				see(string(kv.Key), kv.Value.String())
			}
			n++
		}
	case metricdata.Gauge[int64]:
		for _, p := range data.DataPoints {
			for _, kv := range p.Attributes.ToSlice() {
				see(string(kv.Key), kv.Value.String())
			}
			n++
		}
	case metricdata.Gauge[float64]:
		n += len(data.DataPoints)
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			n += len(p.Bounds) + 3 // one more bucket, the sum and the count
		}
	default:
		tb.Fatalf("%s is a %T", m.Name, data)
	}
	return n
}

// TestSeries counts the series of a synchronizer with 1,000 members and more
// predicates than have series of their own.
func TestSeries(t *testing.T) {
	const members = 1000
	reader := metric.NewManualReader()
	c := newCrowd(t, configText(members, predicatesNamed+7), Options{MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))})
	now := c.s.opt.now()
	for i := range members {
		name := fmt.Sprintf("w%d", i)
		c.send(c.subjects.State(name), c.hello(name))
		c.send(c.subjects.State(name), c.batch(name, 1, now.Add(-time.Second), int64(i)))
		c.send(c.subjects.State(name), []byte("nonsense"))
	}
	testwait.Until(c.tb, "an epoch of all", func() bool { return c.ready("epoch").Ready && c.s.Stats().Malformed == members })
	// The first global state needs evidence of all above the newest start.
	for i := range members {
		name := fmt.Sprintf("w%d", i)
		c.send(c.subjects.State(name), c.batch(name, 2, now, int64(i)))
	}
	testwait.Until(c.tb, "decisions", func() bool { return c.s.Stats().Decisions >= predicatesNamed+7 })

	total, values := 0, map[string]map[string]bool{}
	all := gather(t, reader)
	for _, m := range telemetry.Synchronizer {
		got, ok := all[m.Name]
		if !ok {
			t.Errorf("%s is not there", m.Name)
			continue
		}
		total += series(t, got, func(key, value string) {
			if values[key] == nil {
				values[key] = map[string]bool{}
			}
			values[key][value] = true
		})
	}
	t.Logf("%d series", total)
	if total >= 200 {
		t.Errorf("%d series, want fewer than 200", total)
	}
	if n := len(values["predicate"]); n != predicatesNamed+1 || !values["predicate"][otherPredicates] {
		t.Errorf("%d predicates have series: %v", n, values["predicate"])
	}
	for key, of := range values {
		for value := range of {
			if strings.HasPrefix(value, "w") {
				t.Errorf("attribute %s has the value %q of a member", key, value)
			}
		}
	}
	other := int64(0)
	for _, p := range all["pegasus.decisions"].Data.(metricdata.Sum[int64]).DataPoints {
		if name, _ := p.Attributes.Value("predicate"); name.AsString() == otherPredicates {
			other = p.Value
		}
	}
	if other == 0 {
		t.Error("the decisions of further predicates are not counted")
	}
}

// drive ends the loop of a synchronizer and gives another one, for steps on the
// test's goroutine.
func (c *crowd) drive() *loop {
	c.s.cancel()
	<-c.s.done
	return newLoop(c.s)
}

// steps returns a function that takes one more report of w0, whose frames are
// made in advance. The states are first and the one after it in turns.
func (c *crowd) steps(n int, first int64) func() {
	l, now := c.drive(), c.s.opt.now()
	frames := make([][]byte, n)
	for i := range frames {
		frames[i] = c.batch("w0", uint64(i)+1, now.Add(time.Duration(i)*2*time.Millisecond), first+int64(i%2)) //nolint:gosec // Small.
	}
	take := func(frame []byte) { l.receiveFrame(&item{ack: false, member: "w0", frame: frame, at: c.s.opt.now()}) }
	take(c.hello("w0"))
	next := 0
	return func() {
		take(frames[next])
		next++
	}
}

// TestMetersAllocateNothing repeats what a step with a verdict does for metrics.
func TestMetersAllocateNothing(t *testing.T) {
	c := newCrowd(t, configText(1, 1), Options{MeterProvider: metric.NewMeterProvider(metric.WithReader(metric.NewManualReader()))})
	l := c.drive()
	l.output.Verdicts = []monitor.Verdict{{Predicate: "p0", Truth: predicates.True, Fired: true, Heard: l.opt.now()}}
	l.output.Rejected = []monitor.Rejection{{Reason: monitor.RejectOrder}}
	n := testing.AllocsPerRun(1000, func() {
		l.arrived, l.now = c.s.opt.now(), l.opt.now()
		l.countStep()
		l.measureStep(l.now)
	})
	if n > 0 {
		t.Errorf("%v allocations a step", n)
	}
	if got := l.tally.decisions[0]; got != 1001 {
		t.Errorf("%d decisions counted", got)
	}
}

// BenchmarkReceive is the cost of a report for a synchronizer with a single member and a
// predicate whose truth changes with every other report, or never.
func BenchmarkReceive(b *testing.B) {
	for name, provider := range map[string]*metric.MeterProvider{
		"metrics=no": nil, "metrics=yes": metric.NewMeterProvider(metric.WithReader(metric.NewManualReader())),
	} {
		for verdicts, first := range map[string]int64{"verdicts=yes": 0, "verdicts=no": 5} {
			b.Run(name+"/"+verdicts, func(b *testing.B) {
				opt := Options{}
				if provider != nil {
					opt.MeterProvider = provider
				}
				c := newCrowd(b, configText(1, 1), opt)
				step := c.steps(b.N, first)
				b.ReportAllocs()
				b.ResetTimer()
				for range b.N {
					step()
				}
				if n := c.s.Stats().Rejected; n > 0 {
					b.Errorf("%d refused", n)
				}
			})
		}
	}
}

func TestReadiness(t *testing.T) {
	c := newCrowd(t, configText(2, 1), Options{})
	state := func() string {
		var b strings.Builder
		for _, r := range c.s.Readiness() {
			fmt.Fprintf(&b, "%s %t: %s\n", r.Part, r.Ready, r.Detail)
		}
		return b.String()
	}
	check := func(when, want string) {
		t.Helper()
		if got := state(); got != want {
			t.Errorf("%s:\n%swant\n%s", when, got, want)
		}
	}
	const start = `loop true: running
nats true: connected
members false: 0 online, 2 needed
epoch false: none, nothing is decided
predicates false: 0 true, 0 false, 1 unknown; 1 without a global state to judge
clocks true: 0 usable
`
	check("at the start", start)
	now := c.s.opt.now()
	for _, name := range []string{"w0", "w1"} {
		c.send(c.subjects.State(name), c.hello(name))
		c.send(c.subjects.State(name), c.batch(name, 1, now.Add(-time.Second), 0))
		c.send(c.subjects.State(name), c.batch(name, 2, now, 0))
	}
	testwait.Until(c.tb, "a verdict", func() bool { return c.ready("predicates").Ready })
	check("when all are there", `loop true: running
nats true: connected
members true: 2 online, 1 needed
epoch true: 1 active
predicates true: 1 true, 0 false, 0 unknown
clocks true: 2 usable, widest bound ±0s
`)
	c.local.Stop()
	if r := c.ready("nats"); r.Ready || r.Detail != "reconnecting" {
		t.Errorf("without a server: %+v", r)
	}
	c.local.Start()
	l := c.drive()
	if r := c.ready("loop"); r.Ready || r.Detail != "ended" {
		t.Errorf("after the end: %+v", r)
	}
	l.output.Failed = `member "w0" was silent`
	l.failed()
	if r := c.ready("loop"); r.Ready || r.Detail != `ended: synchronizer gsync: member "w0" was silent` {
		t.Errorf("after a failure: %+v", r)
	}
}

// TestAStuckLoop has the observer hang.
func TestAStuckLoop(t *testing.T) {
	now := make(chan clocksync.Instant, 1)
	now <- 0
	clock := func() clocksync.Instant {
		at := <-now
		now <- at
		return at
	}
	hang, hangs := make(chan struct{}), make(chan struct{}, 100)
	c := newCrowd(t, configText(1, 1), Options{now: clock, Observe: func(monitor.Event) {
		hangs <- struct{}{}
		<-hang
	}})
	defer close(hang)
	c.send(c.subjects.State("w0"), []byte("nonsense"))
	<-hangs
	c.send(c.subjects.State("w0"), []byte("nonsense"))
	testwait.Until(c.tb, "a message waits", func() bool { return c.s.in.depth() > 0 })
	if r := c.ready("loop"); !r.Ready {
		t.Errorf("at once: %+v", r)
	}
	<-now
	now <- clocksync.Instant(0).Add(time.Minute)
	if r := c.ready("loop"); r.Ready || r.Detail != "stuck for 1m0s, messages that wait: 1; start it again" {
		t.Errorf("after a minute: %+v", r)
	}
}

// TestAFloodOfRefusals looks at what a log and the metrics have of it.
func TestAFloodOfRefusals(t *testing.T) {
	const flood = 5000
	var out bytes.Buffer
	reader := metric.NewManualReader()
	c := newCrowd(t, configText(1, 1), Options{
		Logger:        slog.New(slog.NewTextHandler(&out, nil)),
		MeterProvider: metric.NewMeterProvider(metric.WithReader(reader)),
	})
	l := c.drive()
	began := time.Now()
	for range flood {
		l.receiveFrame(&item{member: "w0", frame: []byte{wire.Version, 0}})
	}
	l.receiveFrame(&item{member: "w0", frame: []byte{99, 1}})
	seconds := int(time.Since(began)/time.Second) + 2
	if lines := strings.Count(out.String(), "class=frame"); lines > seconds*telemetry.SampledLines || lines < telemetry.SampledLines {
		t.Errorf("%d lines of %d refusals in %d seconds", lines, flood, seconds)
	}
	if !strings.Contains(out.String(), `msg=refused class=version from=w0 reason="wire: frame: version: 99, `) {
		t.Errorf("the flood has drowned another class:\n%s", out.String())
	}
	for _, p := range gather(t, reader)["pegasus.rejected"].Data.(metricdata.Sum[int64]).DataPoints {
		reason, _ := p.Attributes.Value("reason")
		want := map[string]int64{"frame": flood, "version": 1}[reason.AsString()]
		if p.Value != want {
			t.Errorf("%d refused as %s, want %d", p.Value, reason.AsString(), want)
		}
	}
}
