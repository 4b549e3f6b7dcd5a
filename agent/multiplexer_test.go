package agent_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/testnats"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// station is a synchronizer played by a test, for one node "n" of two processors.
type station struct {
	t        *testing.T
	bus      *bus.Bus
	subjects wire.Subjects
	codec    *wire.BatchCodec
	bundles  chan []byte
	bodies   chan wire.Body
}

func newStation(t *testing.T) (s *station, url string) {
	t.Helper()
	server, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	b, err := bus.Dial(t.Context(), server.URL(), bus.Options{Extra: testnats.Options(t, server.URL())})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	s = &station{
		t: t, bus: b, subjects: wire.Subjects{Tenant: "default", Group: "g"}, codec: wire.NewBatchCodec(wire.ProcessorSchema()),
		bundles: make(chan []byte, 1000), bodies: make(chan wire.Body, 10),
	}
	for subject, handle := range map[string]bus.Handler{
		s.subjects.State("n-0"): s.hello, s.subjects.State("n-1"): s.hello, s.subjects.State("n"): s.hear, s.subjects.Data("n-1"): s.body,
	} {
		if err := b.Subscribe(subject, bus.Limits{}, handle); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s, server.URL()
}

// hello welcomes a processor, which says itself who speaks for it.
func (s *station) hello(m bus.Message) {
	if kind, _ := wire.KindOf(m.Data); kind == wire.KindBatch {
		return // It takes leave.
	}
	h, err := wire.DecodeHello(m.Data)
	if err != nil || h.Multiplexer != "n" || m.Subject != s.subjects.State(h.Member) {
		s.t.Errorf("hello %+v, %v", h, err)
	}
	frame, err := wire.AppendWelcome(nil, &wire.Welcome{
		Synchronizer: "s", Term: 1, Member: h.Member, Incarnation: h.Incarnation, Accepted: true,
		Schema: wire.ProcessorSchema(), Heartbeat: int64(time.Minute), Timeline: h.Quality.Timeline,
	})
	if err == nil {
		frame, _, err = wire.AppendBundle(nil, &wire.Bundle{Parts: []wire.Part{{Member: h.Member, Frame: frame}}})
	}
	s.send(s.subjects.Probe("n"), frame, err)
}

func (s *station) hear(m bus.Message) { s.bundles <- slices.Clone(m.Data) }

func (s *station) body(m bus.Message) {
	b, err := wire.DecodeBody(m.Data)
	if err != nil {
		s.t.Error(err)
	}
	s.bodies <- b
	b.Offset, b.Piece = b.Size, nil
	frame, err := wire.AppendBody(nil, &b)
	if err == nil {
		err = s.bus.Reply(m, frame)
	}
	if err != nil {
		s.t.Error(err)
	}
}

func (s *station) send(subject string, frame []byte, err error) {
	if err == nil {
		err = s.bus.Publish(subject, frame)
	}
	if err != nil {
		s.t.Error(err)
	}
}

// next is the next bundle, decoded.
func (s *station) next() (b wire.Bundle) {
	s.t.Helper()
	select {
	case frame := <-s.bundles:
		if err := wire.DecodeBundle(frame, &b); err != nil {
			s.t.Fatal(err)
		}
	case <-time.After(20 * time.Second):
		s.t.Fatal("the node says nothing for 20s")
	}
	return b
}

// phases reads the phases that a bundle tells of a processor.
func (s *station) phases(b *wire.Bundle, member string) (phases []string, last wire.Batch) {
	s.t.Helper()
	for _, p := range b.Parts {
		if kind, _ := wire.KindOf(p.Frame); kind != wire.KindBatch || p.Member != member {
			continue
		}
		last = wire.Batch{}
		if err := s.codec.Decode(p.Frame, "d", &last); err != nil {
			s.t.Fatal(err)
		}
		for _, r := range last.Reports {
			phases = append(phases, r.Row[0].Text())
		}
	}
	return phases, last
}

// TestNodeSpeaksForItsProcessors: over one subject, in one message all due frames; one
// probe is answered for all, with evidence late enough; the end of the last block comes
// with its result before it and evidence of all behind it; and a result that may have
// been lost comes again.
func TestNodeSpeaksForItsProcessors(t *testing.T) {
	s, url := newStation(t)
	release := make(chan struct{})
	n, err := agent.JoinNode(t.Context(), url, agent.NodeConfig{Group: "g", Name: "n", Processors: 2},
		agent.Block("work", func(_ context.Context, _ *agent.Run, in int) (int, error) {
			<-release
			return 2 * in, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()

	regions, incarnations := map[string]wire.Region{}, map[string]uint64{}
	for len(regions) < 2 { // Both are idle, in the region where starts go.
		b := s.next()
		for _, name := range n.Processors() {
			if _, last := s.phases(&b, name); len(last.Regions) == 1 && last.Regions[0].Name == wire.ProcessorRegion && last.Evidence.Seq > 0 {
				regions[name], incarnations[name] = last.Regions[0], last.Incarnation
			}
		}
	}

	for len(s.bundles) > 0 {
		s.next()
	}
	var newest clocksync.Instant
	for range 3 {
		frame, err := wire.AppendProbe(nil, &wire.Probe{AfterMono: newest.Add(time.Millisecond), AfterTime: clocksync.MinInstant})
		s.send(s.subjects.Probe("n"), frame, err)
		b := s.next()
		for b.Of == 0 || b.Version == 0 {
			b = s.next() // The message that was under way.
		}
		if len(b.Listed) != 2 || b.Of != b.Version {
			t.Fatalf("evidence of %d processors answers a probe of both: %+v", len(b.Listed), b)
		}
		after := newest.Add(time.Millisecond)
		for _, a := range b.Listed {
			if a.Incarnation != incarnations[a.Member] {
				t.Errorf("evidence of %+v, asked was for incarnation %d", a, incarnations[a.Member])
			}
		}
		if b.At.Mono <= after {
			t.Errorf("evidence %+v, after %v was asked for", b.Held, after)
		}
		newest = b.At.Mono
	}

	d := control.Decision{Synchronizer: "s", Term: 1, Epoch: 1, Number: 1}
	signals, _, err := wire.AppendSignals(nil, &wire.Signals{
		Synchronizer: "s", Term: 1, Epoch: 1, Incarnation: incarnations["n-1"],
		Signals: []control.Signal{{
			Decision: d, Name: wire.StartSignal, Predicate: wire.ProgramSignals, Kind: control.Activate, Target: "n-1",
			Region: wire.ProcessorRegion, Entry: regions["n-1"].Entry, TTL: time.Minute,
			Data: []control.Datum{
				{Name: wire.DatumProgram, Value: scgs.IntValue(1)},
				{Name: wire.DatumRun, Value: scgs.IntValue(1)},
				{Name: wire.DatumBlock, Value: scgs.StringValue("work")},
				{Name: wire.DatumSize, Value: scgs.IntValue(2)},
				{Name: wire.DatumInput, Value: scgs.StringValue("21")},
			},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	bundle, _, err := wire.AppendBundle(nil, &wire.Bundle{Parts: []wire.Part{{Member: "n-1", Frame: signals}, {Member: "n-9", Frame: signals}}})
	s.send(s.subjects.Signal("n"), bundle, err)
	for phase := ""; phase != wire.PhaseRunning; {
		b := s.next()
		if phases, _ := s.phases(&b, "n-1"); len(phases) > 0 {
			phase = phases[len(phases)-1]
		}
	}
	close(release)
	for body := false; ; {
		b := s.next()
		for _, p := range b.Parts {
			if kind, _ := wire.KindOf(p.Frame); kind == wire.KindBody {
				result, err := wire.DecodeBody(p.Frame)
				if err != nil || p.Member != "n-1" || string(result.Piece) != "42" {
					t.Errorf("result %+v of %s, %v", result, p.Member, err)
				}
				body = true
			}
		}
		phases, last := s.phases(&b, "n-1")
		if !slices.Contains(phases, wire.PhaseDone) {
			continue
		}
		if !body {
			t.Error("the end is told before the result")
		}
		end := last.Reports[len(last.Reports)-1].At.Mono
		if b.Of == 0 || b.At.Mono <= end {
			t.Errorf("the end of the last block comes without later evidence of all: %+v", b.Held)
		}
		break
	}
	select {
	case again := <-s.bodies:
		if string(again.Piece) != "42" || again.Run != 1 || again.Kind != wire.BodyResult {
			t.Errorf("what comes again is %+v", again)
		}
	case <-time.After(20 * time.Second):
		t.Error("nobody has taken the result, and it does not come again")
	}
}

// TestNodeRefuses: what cannot stand in a subject, and what contradicts itself, is refused
// before anything is dialled.
func TestNodeRefuses(t *testing.T) {
	work := agent.Block("work", func(context.Context, *agent.Run, any) (any, error) { return nil, nil })
	for want, cfg := range map[string]agent.NodeConfig{
		`agent: node "a b": name "a b": use letters, digits, - and _, at most 64`: {Group: "g", Name: "a b"},
		`agent: node "": name "": use letters, digits, - and _, at most 64`:       {Group: "g"},
		`agent: node "n": group "g.h": use letters, digits, - and _, at most 64`:  {Group: "g.h", Name: "n"},
		`agent: node "n": its Pin and Unbound exclude each other: leave out one`:  {Group: "g", Name: "n", Pin: true, Unbound: true},
	} {
		if _, err := agent.JoinNode(t.Context(), "nats://127.0.0.1:1", cfg, work); err == nil || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}
