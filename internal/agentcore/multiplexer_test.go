package agentcore_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// newListed is a member that can be on a roster: it is welcome and has told the state that began at 10.
func newListed(t *testing.T, multiplexer string) (*machine, *agentcore.Output) {
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
func pass(x *agentcore.Multiplexer, at clocksync.Instant, members ...*machine) (b wire.Bundle, wait time.Duration) {
	for _, m := range members {
		m.step(at, agentcore.Input{Kind: agentcore.InTick, At: stamp(at), All: true})
		x.Told(m.Core)
	}
	wait = x.Evidence(at, stamp(at), &b)
	return b, wait
}

// sum is the sum of so many reports of members which all have one name.
func sum(reports uint64) uint64 { return reports * wire.Weight("n-0", 1) }

// said is what a multiplexer gives evidence of, in words.
func said(b wire.Bundle, wait time.Duration) string {
	text := ""
	if b.Version > 0 {
		text += fmt.Sprintf("roster %d of %d, ", b.Version, b.Total)
	}
	if b.Of > 0 {
		reports := uint64(0)
		for reports < 100 && sum(reports) != b.Sum {
			reports++
		}
		text += fmt.Sprintf("%d held with %d reports at %d, ", b.Of, reports, b.At.Mono)
	}
	return text + fmt.Sprintf("wait %d", wait)
}

// TestMultiplexer: a member is on the roster once it was welcomed and all its states are
// reported, and has no heartbeat of its own then; a change of the roster goes out before the
// next evidence, and where the one who asks has another one.
func TestMultiplexer(t *testing.T) {
	c, _ := newListed(t, "n")
	x := agentcore.NewMultiplexer(100)
	check := func(step, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", step, got, want)
		}
	}
	due := func(at clocksync.Instant) string { return fmt.Sprintf("due %v, wakes at %d", x.Due(at), x.Wake()) }
	ask := func(version uint64, after clocksync.Instant) {
		x.Ask(&wire.Probe{Incarnation: version, AfterMono: after, AfterTime: clocksync.MinInstant})
	}
	never := fmt.Sprintf("due false, wakes at %d", clocksync.MaxInstant)

	check("nobody is on the roster", said(pass(x, 12)), "wait -1")
	check("nobody is on the roster", due(1<<40), never)
	b, wait := pass(x, 13, c)
	check("a member was told of", said(b, wait), "roster 101 of 1, 101 held with 1 reports at 13, wait -1")
	if want := (wire.Listed{Member: "n-0", Incarnation: 1, Seq: 1}); !reflect.DeepEqual(b.Listed, []wire.Listed{want}) {
		t.Errorf("on the roster is %+v, want %+v", b.Listed, want)
	}
	if wake := c.Core.Wake(); wake != clocksync.MaxInstant {
		t.Errorf("a member on the roster is due at %v itself, want never", wake)
	}
	heartbeat := clocksync.Instant(13).Add(time.Second)
	check("right after evidence", due(14), fmt.Sprintf("due false, wakes at %d", heartbeat))
	check("at the heartbeat", due(heartbeat), fmt.Sprintf("due true, wakes at %d", heartbeat))
	begin(t, c, 20)
	check("it has begun a state", said(pass(x, 21, c)), "101 held with 2 reports at 21, wait -1")

	ask(101, 25)
	check("before the time that is asked for", said(pass(x, 24)), "wait 1")
	check("before the time that is asked for", due(24), fmt.Sprintf("due true, wakes at %d", heartbeat))
	check("at the time that is asked for", said(pass(x, 26)), "101 held with 2 reports at 26, wait -1")
	check("when it was answered", due(26), fmt.Sprintf("due false, wakes at %d", heartbeat))
	ask(7, 0)
	check("one with another roster asks", said(pass(x, 27)), "roster 101 of 1, 101 held with 2 reports at 27, wait -1")
	ask(0, 0)
	d, _ := newListed(t, "n")
	check("another member, while one asks for the roster", said(pass(x, 28, d)), "roster 102 of 2, 102 held with 3 reports at 28, wait -1")
	x.Drop(d.Core)
	check("the heartbeat, when that one is off it", said(pass(x, x.Wake())), "roster 103 of 1, 103 held with 2 reports at 1000000028, wait -1")

	ask(103, 1<<50)
	ask(103, 1<<39+5)
	check("before the nearer of two, with a heartbeat", said(pass(x, 1<<39+2)), "roster 103 of 1, 103 held with 2 reports at 549755813890, wait 3")
	check("at the nearer of two", said(pass(x, 1<<39+6)), fmt.Sprintf("103 held with 2 reports at 549755813894, wait %d", 1<<50-(1<<39+6)))
	if _, err := c.Enter(clocksync.Instant(1<<40), "r", nil); err != nil {
		t.Fatal(err)
	}
	b, wait = pass(x, 1<<41, c)
	check("it is in a region", said(b, wait), fmt.Sprintf("roster 103 of 1, 103 held with 2 reports at 2199023255552, wait %d", 1<<50-1<<41))
	if len(b.Listed) != 1 || len(b.Listed[0].Regions) != 1 {
		t.Errorf("on the roster is %+v, want one member with one region", b.Listed)
	}
	c.Recall(1 << 41)
	check("it is not welcome now", said(pass(x, 1<<42, c)), "roster 104 of 0, wait -1")
	check("it still is not", said(pass(x, 1<<42+1, c)), "wait -1")
}

// TestNotSpokenFor: a member with another source of evidence, or an unreported state, or about
// to leave, is not on the roster, and speaks for itself.
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
		c, _ := newListed(t, "n")
		x := agentcore.NewMultiplexer(100)
		if b, _ := pass(x, 13, c); b.Total != 1 {
			t.Fatalf("%s, before: %+v, want a roster of 1", name, b)
		}
		if change(c); name == "leaving" {
			x.Told(c.Core)
		}
		if b, _ := pass(x, 20, c); b.Total != 0 || b.Of != 0 {
			t.Errorf("%s: %+v, want an empty roster", name, b)
		}
	}
}

// TestRosterOfMany: a dropped member leaves the places and the sum of the others as they are.
func TestRosterOfMany(t *testing.T) {
	x := agentcore.NewMultiplexer(0)
	members := make([]*machine, 5)
	for i := range members {
		members[i], _ = newListed(t, "n")
		for k := range i {
			begin(t, members[i], clocksync.Instant(20+k))
		}
	}
	if b, _ := pass(x, 40, members...); b.Total != 5 || b.Sum != sum(1+2+3+4+5) {
		t.Fatalf("%+v, want a roster of 5 with the sum of 15 reports", b)
	}
	x.Drop(members[1].Core)
	x.Drop(members[1].Core)
	begin(t, members[4], 50)
	if b, _ := pass(x, 51, members[4]); b.Version != 2 || b.Total != 4 || b.Sum != sum(1+3+4+6) {
		t.Fatalf("after one was dropped: %+v, want roster 2 of 4 with the sum of 14 reports", b)
	}
}

// TestAnotherMultiplexer: a welcome that was under way when another multiplexer began to speak
// for the member does not keep it from saying so.
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
		c, out := newListed(t, multiplexer)
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
