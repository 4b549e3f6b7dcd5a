package synccore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/scgs"
)

// TestWorldOfMultiplexers is TestWorld where the members of a host share a connection:
// they are asked together, and whatever one of them says comes with evidence of all.
// The journal of every fourth run is replayed.
func TestWorldOfMultiplexers(t *testing.T) {
	asked, held := 0, 0
	for s := range uint64(*worlds) {
		w := newWorld(t, s+1)
		w.carry()
		w.record.on = s%4 == 0
		w.run()
		for _, c := range w.multiplexers {
			asked, held = asked+c.asked, held+c.held
		}
		if w.record.on {
			replay(t, w.record.text)
		}
		if t.Failed() {
			t.Fatalf("that was world %d", s+1)
		}
	}
	if asked == 0 || held == 0 {
		t.Errorf("multiplexers were asked %d times and gave evidence %d times", asked, held)
	}
}

// multiplexer speaks for the members of one host.
type multiplexer struct {
	*world
	name        string
	core        *agentcore.Multiplexer
	actors      []*actor
	asked, held int
	due         clocksync.Instant
}

// carry gives each host a multiplexer, before the world begins.
func (w *world) carry() {
	clear(w.byName)
	for i, a := range w.members {
		name := "n" + string(a.domain)
		var c *multiplexer
		for _, other := range w.multiplexers {
			if other.name == name {
				c = other
			}
		}
		if c == nil {
			c = &multiplexer{world: w, name: name, core: agentcore.NewMultiplexer(0)}
			w.multiplexers = append(w.multiplexers, c)
		}
		a.name, a.multiplexer = fmt.Sprintf("m%d", i), c
		a.core = agentcore.New(agentcore.Options{Hello: wire.Hello{Member: a.name, Incarnation: 1, Host: "h", Domain: a.domain, Multiplexer: name}})
		c.actors = append(c.actors, a)
		w.byName[a.name] = a
	}
}

// pass sends what is due, with evidence of all. Another member may begin a state while it
// is at it, which is told later, although the evidence was read before.
func (c *multiplexer) pass() {
	c.now++
	at := c.actors[0].stampAt(c.now)
	var list []*actor
	for _, a := range c.actors {
		switch {
		case a.reply.News || a.core.Wake() <= c.now:
			list = append(list, a)
		case a.core.Codec() != nil && c.rng.IntN(40) == 0:
			a.begin()
			a.after(a.between(1, time.Millisecond), a.flush)
		}
	}
	c.now++
	var b wire.Bundle
	for _, a := range list {
		out := a.input(agentcore.Input{Kind: agentcore.InTick, At: a.stampAt(c.now), All: true})
		for _, frame := range a.frames(out) {
			if kind, _ := wire.KindOf(frame); kind == wire.KindHello {
				a.send(frame, func(frame []byte) { a.arrive(frame, "") })
				continue
			}
			b.Parts = append(b.Parts, wire.Part{Member: a.name, Frame: frame})
		}
		c.core.Told(a.core)
		a.again()
	}
	c.now++
	wait := c.core.Evidence(c.now, at, &b)
	if b.Of > 0 {
		c.held++
	}
	wake := c.core.Wake()
	if wait >= 0 {
		wake = min(wake, c.now.Add(max(wait, time.Millisecond)))
	}
	if wake != clocksync.MaxInstant && (c.due <= c.now || wake < c.due) {
		c.due = wake
		c.after(wake.Sub(c.now), c.pass)
	}
	for !b.Empty() {
		frame, rest, err := wire.AppendBundle(nil, &b)
		if err != nil {
			c.t.Fatal(err)
		}
		b = rest
		c.send(frame, c.arrive)
	}
}

// arrive is the synchronizer's shell.
func (c *multiplexer) arrive(frame []byte) {
	var b wire.Bundle
	if err := wire.DecodeBundle(frame, &b); err != nil {
		c.t.Fatal(err)
	}
	for _, p := range b.Parts {
		c.byName[p.Member].arrive(p.Frame, c.name)
	}
	if b.Version > 0 || b.Of > 0 {
		c.step(synccore.Input{Kind: synccore.InShared, From: c.name, Shared: &b})
	}
}

// receive takes a question for all of the multiplexer's members.
func (c *multiplexer) receive(frame []byte) {
	p, err := wire.DecodeProbe(frame)
	if err != nil || p.Seq != 0 {
		c.t.Fatalf("the multiplexer is sent %+v, %v", p, err)
	}
	c.asked++
	c.core.Ask(&p)
	c.pass()
}

const carriedConfig = `
synchronizers:
  gsync:
    members: {group: g, count: 4}
    state: {n: int}
    predicates:
      all-one: {when: "all(members, .n == 1)", signal: {kind: activate, region: r}}
`

// crew are four members on two multiplexers, whose states begin one after the other.
type crew struct {
	t    *testing.T
	core *synccore.Core
	out  synccore.Output
}

func newCrew(t *testing.T) *crew {
	t.Helper()
	plans, err := configfile.Parse("crew.yaml", []byte(carriedConfig))
	if err != nil {
		t.Fatal(err)
	}
	c := &crew{t: t, core: synccore.New(plans[0], synccore.Options{Term: 1})}
	for _, name := range []string{"a-0", "a-1", "b-0", "b-1"} {
		c.step(1, synccore.Input{Kind: synccore.InHello, From: name, Hello: &wire.Hello{Member: name, Incarnation: 7, Domain: "d", Multiplexer: name[:1]}})
		c.begins(2, name, 1, 0)
	}
	return c
}

func (c *crew) step(now clocksync.Instant, in synccore.Input) {
	c.core.Step(now, &in, &c.out)
}

func plain(mono clocksync.Instant) clocksync.Stamp {
	return clocksync.Stamp{Domain: "d", Mono: mono, Within: clocksync.Unbounded}
}

// begins reports a state with no more evidence than its start.
func (c *crew) begins(now clocksync.Instant, name string, seq uint64, n int64) {
	c.step(now, synccore.Input{Kind: synccore.InBatch, From: name, Batch: &wire.Batch{
		Member: name, Incarnation: 7, Reports: []wire.Report{{Seq: seq, At: plain(now), Row: []scgs.Value{scgs.IntValue(n)}}},
	}})
}

func (c *crew) alive(now clocksync.Instant, multiplexer string, seq, incarnation uint64, members ...string) {
	in := synccore.Input{Kind: synccore.InAlive, From: multiplexer}
	for _, name := range members {
		stamp := plain(now)
		stamp.Domain = "" // as it comes off the wire
		in.Alive = append(in.Alive, wire.Alive{Member: name, Incarnation: incarnation, Evidence: wire.Evidence{Seq: seq, At: stamp}})
	}
	c.step(now, in)
}

func (c *crew) fired() bool {
	for _, v := range c.out.Verdicts {
		if v.Fired {
			return true
		}
	}
	return false
}

// TestMultiplexersAreAskedOnce: whatever number of members lack evidence, each multiplexer is
// sent one probe. With the evidence of all that is
// above the last change, and not before, the predicate fires.
func TestMultiplexersAreAskedOnce(t *testing.T) {
	c := newCrew(t)
	for i, name := range []string{"a-0", "a-1", "b-0", "b-1"} {
		c.begins(clocksync.Instant(10+i), name, 2, 1)
	}
	c.alive(14, "a", 2, 7, "a-0", "a-1")
	if c.fired() {
		t.Fatal("it fired without evidence of b-0 and b-1")
	}
	c.alive(12, "b", 2, 7, "b-0", "b-1") // from before the last change
	if c.fired() {
		t.Fatal("it fired on evidence that is no later than the last change")
	}
	c.alive(15, "b", 1, 7, "b-0", "b-1") // of the states before
	if c.fired() {
		t.Fatal("it fired on evidence of states that had ended")
	}
	for _, bad := range []struct {
		multiplexer string
		incarnation uint64
	}{{"a", 7}, {"b", 6}, {"b", 8}} {
		c.alive(16, bad.multiplexer, 2, bad.incarnation, "b-0", "b-1")
		if c.fired() || len(c.out.Rejected) != 2 || c.out.Rejected[0].Reason != monitor.RejectSender ||
			c.out.Rejected[0].Detail != fmt.Sprintf(`evidence of incarnation %d of "b-0", for which it does not speak`, bad.incarnation) {
			t.Fatalf("evidence by %s of incarnation %d: fired %v, refused %v", bad.multiplexer, bad.incarnation, c.fired(), c.out.Rejected)
		}
	}
	// The probes so far were lost. The global state that lacks evidence is the one
	// before the state of b-1 has begun.
	c.step(600_000_000, synccore.Input{Kind: synccore.InTick})
	want := []wire.Addressed[wire.Probe]{{To: "b", Msg: wire.Probe{AfterMono: 12, AfterTime: clocksync.MinInstant}}}
	if len(c.out.Probes) != 1 || c.out.Probes[0] != want[0] {
		t.Errorf("probes %+v, want %+v", c.out.Probes, want)
	}
	c.alive(600_000_001, "b", 2, 7, "b-0", "b-1")
	if !c.fired() {
		t.Errorf("it has not fired on evidence of all: %+v", c.out)
	}
}

// TestNotSpokenForYet: a member whose hello with the name of its multiplexer was lost is
// asked for it, by way of that multiplexer, and so is one that is gone, with the reason; what
// the multiplexer brings of it does not count.
func TestNotSpokenForYet(t *testing.T) {
	c := newCrew(t)
	bring := func(now clocksync.Instant, incarnation uint64) {
		c.step(now, synccore.Input{Kind: synccore.InBatch, From: "a-0", By: "z", Batch: &wire.Batch{Member: "a-0", Incarnation: incarnation, Leaving: true}})
	}
	bring(2000, 7)
	w := c.out.Welcomes
	if len(w) != 1 || w[0].To != "a-0" || w[0].Via != "z" || w[0].Msg.Accepted || w[0].Msg.Refused || w[0].Msg.Reason != "" || w[0].Msg.Incarnation != 7 {
		t.Errorf("it is told %+v", w)
	}
	if r := c.out.Rejected; len(r) != 1 || r[0].Detail != `it does not speak for "a-0", which has not said so yet` {
		t.Errorf("refused: %+v", r)
	}
	if len(c.out.Epochs) > 0 {
		t.Errorf("what it brought counts: %+v", c.out.Epochs)
	}
	bring(2001, 7)
	if len(c.out.Welcomes)+len(c.out.Rejected) > 0 {
		t.Errorf("it is told again at once: %+v, %+v", c.out.Welcomes, c.out.Rejected)
	}
	later := clocksync.Instant(2001).Add(time.Second)
	bring(later, 6)
	if w := c.out.Welcomes; len(w) != 1 || w[0].Via != "z" || !w[0].Msg.Refused {
		t.Errorf("an older process of that name is told %+v", w)
	}
	later = later.Add(time.Second)
	c.step(later, synccore.Input{Kind: synccore.InBatch, From: "a-0", By: "a", Batch: &wire.Batch{Member: "a-0", Incarnation: 7, Leaving: true}})
	bring(later.Add(time.Second), 7)
	if w := c.out.Welcomes; len(w) != 1 || w[0].Via != "z" || w[0].Msg.Reason != "left" {
		t.Errorf("one that is gone is told %+v", w)
	}
}

// TestRefusedReportIsNotCovered: evidence of all does not count for the state before a report
// that the detector has refused, whatever evidence it has refused since.
func TestRefusedReportIsNotCovered(t *testing.T) {
	c := newCrew(t)
	for i, name := range []string{"a-0", "a-1", "b-0", "b-1"} {
		c.begins(clocksync.Instant(10+i), name, 2, 1)
	}
	c.step(14, synccore.Input{Kind: synccore.InBatch, From: "a-0", Batch: &wire.Batch{
		Member: "a-0", Incarnation: 7, Reports: []wire.Report{{Seq: 3, At: plain(5), Row: []scgs.Value{scgs.IntValue(0)}}}, // The clock ran backwards.
	}})
	if len(c.out.Rejected) != 1 || c.out.Rejected[0].Reason != monitor.RejectOrder {
		t.Fatalf("refused: %+v", c.out.Rejected)
	}
	c.alive(20, "b", 2, 7, "b-0", "b-1")
	listed := []wire.Listed{{Member: "a-0", Incarnation: 7, Seq: 3}, {Member: "a-1", Incarnation: 7, Seq: 2}}
	sum := listed[0].Share() + listed[1].Share()
	for _, at := range []clocksync.Instant{9, 22} {
		c.step(22, synccore.Input{Kind: synccore.InShared, From: "a", Shared: &wire.Bundle{
			Roster: wire.Roster{Version: 1, Total: 2, Listed: listed}, Held: wire.Held{Of: 1, Sum: sum, At: plain(at)},
		}})
	}
	if c.fired() {
		t.Error("it fired on a state that had ended")
	}
}
