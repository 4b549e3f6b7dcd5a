package agentcore_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// newCarried is a member that is welcome and has told the state that began at 10.
func newCarried(t *testing.T, multiplexer string) (*machine, *agentcore.Output) {
	t.Helper()
	c := newMachine(agentcore.Options{Hello: wire.Hello{Member: "n-0", Incarnation: 1, Domain: "d", Multiplexer: multiplexer}})
	c.OnWelcome(0, &wire.Welcome{Synchronizer: "s", Member: "n-0", Incarnation: 1, Accepted: true, Schema: scgs.Schema{{Name: "n", Type: scgs.Int}}})
	var out agentcore.Output
	begin(t, c, 10)
	c.Flush(11, stamp(11), &out)
	return c, &out
}

func begin(t *testing.T, c *machine, at clocksync.Instant) {
	t.Helper()
	if err := c.Set(at, stamp(at), []scgs.Value{scgs.IntValue(int64(at))}); err != nil {
		t.Fatal(err)
	}
}

// pass has a multiplexer give evidence of members at the stamp, each of which is ticked
// before.
func pass(s *agentcore.Multiplexer, at clocksync.Instant, members ...*machine) (b wire.Bundle, wait time.Duration) {
	for _, m := range members {
		m.step(at, agentcore.Input{Kind: agentcore.InTick, At: stamp(at), All: true})
		s.Told(m.Core)
	}
	wait = s.Evidence(at, stamp(at), &b)
	return b, wait
}

// sum is that of so many reports of members which all have one name.
func sum(reports uint64) uint64 { return reports * wire.Weight("n-0", 1) }

// TestMultiplexer: a member is on the roster once it was welcomed and all it has said is told,
// and has no heartbeat of its own then; what changes of the roster is told before the
// next evidence, and where the one who asks has another one.
func TestMultiplexer(t *testing.T) {
	c, _ := newCarried(t, "n")
	s := agentcore.NewMultiplexer(100)
	if b, wait := pass(s, 12); !b.Empty() || wait >= 0 || s.Due(1<<40) || s.Wake() != clocksync.MaxInstant {
		t.Fatalf("evidence of an empty roster: %+v, %v", b, wait)
	}
	b, _ := pass(s, 13, c)
	want := wire.Roster{Version: 101, Total: 1, Listed: []wire.Listed{{Member: "n-0", Incarnation: 1, Seq: 1}}}
	if !reflect.DeepEqual(b.Roster, want) || b.Held != (wire.Held{Of: 101, Sum: sum(1), At: stamp(13)}) {
		t.Fatalf("%+v", b)
	}
	if c.Core.Wake() != clocksync.MaxInstant || s.Wake() != clocksync.Instant(13).Add(time.Second) || s.Due(14) || !s.Due(s.Wake()) {
		t.Errorf("it is due at %v itself, and the evidence at %v", c.Core.Wake(), s.Wake())
	}
	begin(t, c, 20)
	if b, _ := pass(s, 21, c); b.Version != 0 || b.Held != (wire.Held{Of: 101, Sum: sum(2), At: stamp(21)}) {
		t.Errorf("%+v", b)
	}

	s.Ask(&wire.Probe{Incarnation: 101, AfterMono: 25, AfterTime: clocksync.MinInstant})
	if b, wait := pass(s, 24); !b.Empty() || wait != 1 || !s.Due(24) {
		t.Errorf("before its time: %+v, %v", b, wait)
	}
	if b, wait := pass(s, 26); b.Version != 0 || b.At != stamp(26) || wait >= 0 || s.Due(26) {
		t.Errorf("at its time: %+v, %v", b, wait)
	}
	s.Ask(&wire.Probe{Incarnation: 7, AfterMono: 0, AfterTime: clocksync.MinInstant})
	if b, _ := pass(s, 27); b.Version != 101 || b.Of != 101 || b.Sum != sum(2) {
		t.Errorf("to one with another roster: %+v", b)
	}
	s.Ask(&wire.Probe{Incarnation: 0, AfterTime: clocksync.MinInstant})
	d, _ := newCarried(t, "n")
	if b, _ := pass(s, 28, d); b.Version != 102 || b.Of != 102 || b.Total != 2 {
		t.Errorf("of another member, while one asks for the roster: %+v", b)
	}
	s.Drop(d.Core)
	if b, _ := pass(s, s.Wake()); b.Version != 103 || b.Of != 103 {
		t.Errorf("with the heartbeat: %+v", b)
	}

	for _, after := range []clocksync.Instant{1 << 50, 1<<39 + 5} {
		s.Ask(&wire.Probe{Incarnation: 103, AfterMono: after, AfterTime: clocksync.MinInstant})
	}
	if b, wait := pass(s, 1<<39+2); b.Of != 103 || wait != 3 { // A heartbeat, beside what is asked for.
		t.Errorf("before the nearer of two: %+v, %v", b, wait)
	}
	if b, wait := pass(s, 1<<39+6); b.Of != 103 || wait != 1<<50-(1<<39+6) {
		t.Errorf("at the nearer of two: %+v, %v", b, wait)
	}
	if _, err := c.Enter(clocksync.Instant(1<<40), "r", nil); err != nil {
		t.Fatal(err)
	}
	if b, _ := pass(s, 1<<41, c); b.Version != 103 || len(b.Listed) != 1 || len(b.Listed[0].Regions) != 1 || b.Sum != sum(2) {
		t.Errorf("with a region: %+v", b)
	}
	c.Recall(1 << 41)
	if b, _ := pass(s, 1<<42, c); b.Version != 104 || b.Total != 0 || b.Of != 0 {
		t.Errorf("of one that is not welcome now: %+v", b)
	}
	if b, _ := pass(s, 1<<42+1, c); !b.Empty() {
		t.Errorf("once more: %+v", b)
	}
}

// TestNotSpokenFor: who has another source of evidence, or something untold, or is about to
// leave, is not on the roster, and speaks for itself.
func TestNotSpokenFor(t *testing.T) {
	for name, change := range map[string]func(c *machine){
		"virtual": func(c *machine) {
			_ = c.End(15, stamp(15))
			c.Virtual(15)
		},
		"leaving": func(c *machine) { c.step(15, agentcore.Input{Kind: agentcore.InLeave}) },
		"new incarnation": func(c *machine) {
			c.OnWelcome(15, &wire.Welcome{Synchronizer: "s", Member: "n-0", Incarnation: 1, Reason: "silent"})
		},
		"another schema": func(c *machine) {
			c.Recall(15)
			c.OnWelcome(15, &wire.Welcome{Synchronizer: "s", Term: 1, Member: "n-0", Incarnation: 1, Accepted: true, Schema: scgs.Schema{{Name: "m", Type: scgs.Int}}})
		},
	} {
		c, _ := newCarried(t, "n")
		s := agentcore.NewMultiplexer(100)
		if b, _ := pass(s, 13, c); b.Total != 1 {
			t.Fatalf("%+v", b)
		}
		if change(c); name == "leaving" {
			s.Told(c.Core)
		}
		if b, _ := pass(s, 20, c); b.Total != 0 || b.Of != 0 {
			t.Errorf("%s: %+v", name, b)
		}
	}
}

// TestRosterOfMany: who is dropped leaves the places and the sum of the others as they are.
func TestRosterOfMany(t *testing.T) {
	s := agentcore.NewMultiplexer(0)
	members := make([]*machine, 5)
	for i := range members {
		members[i], _ = newCarried(t, "n")
		for k := range i {
			begin(t, members[i], clocksync.Instant(20+k))
		}
	}
	if b, _ := pass(s, 40, members...); b.Total != 5 || b.Sum != sum(1+2+3+4+5) {
		t.Fatalf("%+v", b)
	}
	s.Drop(members[1].Core)
	s.Drop(members[1].Core)
	begin(t, members[4], 50)
	if b, _ := pass(s, 51, members[4]); b.Version != 2 || b.Total != 4 || b.Sum != sum(1+3+4+6) {
		t.Fatalf("%+v", b)
	}
}

// TestAnotherMultiplexer: a welcome that was under way when somebody else began to speak for the
// member does not keep it from saying so.
func TestAnotherMultiplexer(t *testing.T) {
	c := newMachine(agentcore.Options{Hello: wire.Hello{Member: "n-0", Incarnation: 1, Domain: "d"}})
	var out agentcore.Output
	c.Flush(0, stamp(1), &out)
	c.step(1, agentcore.Input{Kind: agentcore.InMultiplexer, Multiplexer: "p"})
	welcome := wire.Welcome{Synchronizer: "s", Member: "n-0", Incarnation: 1, Accepted: true, Schema: scgs.Schema{{Name: "n", Type: scgs.Int}}}
	if got := c.OnWelcome(2, &welcome); got != agentcore.Ignored {
		t.Errorf("the welcome to a hello that named nobody is %v", got)
	}
	c.Flush(3, stamp(3), &out)
	if len(out.Hellos) != 1 || out.Hellos[0].Multiplexer != "p" {
		t.Fatalf("hellos %+v", out.Hellos)
	}
	if got := c.OnWelcome(4, &welcome); got != agentcore.Accepted {
		t.Errorf("the welcome to the next hello is %v", got)
	}
}

// TestFatesBesideABatch: fates that are final go in one message with a batch; a member
// that speaks for itself would need one message more, and waits.
func TestFatesBesideABatch(t *testing.T) {
	for multiplexer, want := range map[string]int{"n": 1, "": 0} {
		c, out := newCarried(t, multiplexer)
		if _, err := c.Enter(11, "r", []control.Handler{{Name: "go"}}); err != nil {
			t.Fatal(err)
		}
		c.Flush(11, stamp(11), out)
		sig := control.Signal{
			Decision: control.Decision{Synchronizer: "s", Number: 1}, Name: "go", Predicate: "p", Kind: control.Activate,
			Target: "n-0", Region: "r", Entry: 1, TTL: time.Minute,
		}
		c.OnSignals(12, &wire.Signals{Synchronizer: "s", Incarnation: 1, Signals: []control.Signal{sig}})
		begin(t, c, 13)
		c.Flush(14, stamp(14), out)
		if len(out.Batches) != 1 || len(out.Acks) != 0 {
			t.Errorf("multiplexer %q: %d batches, and %d answers though the signal waits", multiplexer, len(out.Batches), len(out.Acks))
		}
		c.Finish(15, c.Next(15, 1, control.AtCheck), control.Applied)
		begin(t, c, 16)
		c.Flush(17, stamp(17), out)
		if len(out.Batches) != 1 || len(out.Acks) != want {
			t.Errorf("multiplexer %q: %d batches and %d answers, want %d with the batch", multiplexer, len(out.Batches), len(out.Acks), want)
		}
	}
}
