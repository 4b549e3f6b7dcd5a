package synccore_test

import (
	"fmt"
	"strings"
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
	for s := range uint64(worlds(t)) {
		w := newWorld(t, s+1)
		w.share()
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

// multiplexer speaks for the members of a host.
type multiplexer struct {
	*world
	name        string
	core        *agentcore.Multiplexer
	actors      []*actor
	asked, held int
	due         clocksync.Instant
}

// share gives each host a multiplexer, before the world begins.
func (w *world) share() {
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

// pass sends the due messages, with evidence of all. Another member may begin a state
// meanwhile, which is reported later, although the evidence was read before.
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

const crewConfig = `
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

func crewOf(t *testing.T, config string) *crew {
	t.Helper()
	plans, err := configfile.Parse("crew.yaml", []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	return &crew{t: t, core: synccore.New(plans[0], synccore.Options{Term: 1})}
}

func newCrew(t *testing.T) *crew {
	t.Helper()
	c := crewOf(t, crewConfig)
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
	for _, at := range []clocksync.Instant{9, 22} {
		if c.held(22, "a", plain(at), 3, 2); c.fired() {
			t.Error("it fired on a state that had ended")
		}
	}
}

// held has a multiplexer tell its roster, of the members name-0 and so on with the numbers
// of their newest reports, and that all of them held at the stamp.
func (c *crew) held(now clocksync.Instant, name string, at clocksync.Stamp, newest ...uint64) {
	var listed []wire.Listed
	sum := uint64(0)
	for i, seq := range newest {
		l := wire.Listed{Member: fmt.Sprintf("%s-%d", name, i), Incarnation: 7, Seq: seq}
		listed, sum = append(listed, l), sum+l.Share()
	}
	c.step(now, synccore.Input{Kind: synccore.InShared, From: name, Shared: &wire.Bundle{
		Roster: wire.Roster{Version: uint64(now), Total: uint64(len(listed)), Listed: listed},
		Held:   wire.Held{Of: uint64(now), Sum: sum, At: at},
	}})
}

// TestHeldCounts: with evidence of all members on a roster, above the last change and of their
// newest reports, the predicate fires.
func TestHeldCounts(t *testing.T) {
	c := newCrew(t)
	for i, name := range []string{"a-0", "a-1", "b-0", "b-1"} {
		c.begins(clocksync.Instant(10+i), name, 2, 1)
	}
	if c.held(20, "a", plain(20), 2, 2); c.fired() {
		t.Fatal("it fired without evidence of b-0 and b-1")
	}
	if c.held(21, "b", plain(12), 2, 2); c.fired() {
		t.Fatal("it fired on evidence that is no later than the last change")
	}
	if c.held(22, "b", plain(22), 2, 1); c.fired() {
		t.Fatal("it fired on evidence of other reports")
	}
	if c.held(23, "b", plain(23), 2, 2); !c.fired() {
		t.Errorf("it has not fired on evidence of all: %+v", c.out)
	}
}

// TestRosterTellsOfALoss: the last report of a member on a roster was lost, so no later one
// shows it. It is asked for once, and the evidence of all counts when it is here.
func TestRosterTellsOfALoss(t *testing.T) {
	c := newCrew(t)
	for i, name := range []string{"a-0", "a-1", "b-0"} {
		c.begins(clocksync.Instant(10+i), name, 2, 1)
	}
	c.held(20, "a", plain(20), 2, 2)
	c.held(21, "b", plain(21), 2, 2)
	if r := c.out.Resends; len(r) != 1 || r[0].To != "b-1" || r[0].Msg.From != 2 || r[0].Msg.To != 2 {
		t.Fatalf("resends %+v, want that of report 2 of b-1", r)
	}
	c.held(22, "b", plain(22), 2, 2)
	if len(c.out.Resends) > 0 || c.fired() {
		t.Fatalf("with the roster again: resends %+v, fired %v, want nothing", c.out.Resends, c.fired())
	}
	c.begins(13, "b-1", 2, 1)
	if c.held(23, "b", plain(23), 2, 2); !c.fired() {
		t.Errorf("it has not fired on evidence of all: %+v", c.out)
	}
}

const refusedConfig = `
synchronizers:
  gsync:
    members: {group: g, count: 3}
    state: {n: int}
    predicates:
      all-one: {when: "all(members, .n == 1)", every: true, signal: {kind: activate, region: r}}
      seven: {when: "any(members, .n == 7)", every: true, signal: {kind: activate, region: r}}
`

// refused is a world of three members whose bounds are put in order, in which the newest
// report of a-0, that is on a roster, is refused before the detectors see it.
type refused struct {
	*crew
	seq uint64 // of that one
}

func bounded(mono clocksync.Instant) clocksync.Stamp {
	return clocksync.Stamp{Domain: "d", Mono: mono, Within: clocksync.Around(mono, 10)}
}

func (c *refused) report(now clocksync.Instant, name string, seq uint64, at clocksync.Stamp, v scgs.Value) {
	r := wire.Report{Seq: seq, At: at, Row: []scgs.Value{v}}
	c.step(now, synccore.Input{Kind: synccore.InBatch, From: name, By: name[:1], Batch: &wire.Batch{Member: name, Incarnation: 7, Reports: []wire.Report{r}}})
}

// whole has both multiplexers give evidence of all, and returns what has fired.
func (c *refused) whole(now clocksync.Instant, a, b uint64) string {
	var fired []string
	for i, newest := range [][]uint64{{a, 1}, {b}} {
		c.held(now+clocksync.Instant(i), "ab"[i:i+1], bounded(now), newest...)
		if len(c.out.Resends)+len(c.out.Rejected) > 0 {
			c.t.Errorf("resends %+v, refused %+v, want none", c.out.Resends, c.out.Rejected)
		}
		for _, v := range c.out.Verdicts {
			if v.Fired {
				fired = append(fired, v.Predicate)
			}
		}
	}
	return strings.Join(fired, " ")
}

// TestRefusedReportIsTakenForLost: it is not asked for, as it would be refused again. The
// evidence of all counts for the others, and nothing is known of that member, not even that
// its state before continues, until it reports again.
func TestRefusedReportIsTakenForLost(t *testing.T) {
	one, zero := scgs.IntValue(1), scgs.IntValue(0)
	for name, bad := range map[string]wire.Report{
		"too old":      {At: bounded(1000), Row: []scgs.Value{zero}},
		"other domain": {At: clocksync.Stamp{Domain: "e", Mono: 9000, Within: clocksync.Around(9000, 10)}, Row: []scgs.Value{zero}},
		"no interval":  {At: clocksync.Stamp{Domain: "d", Mono: 9000, Within: clocksync.Interval{Earliest: 5, Latest: 4}}, Row: []scgs.Value{zero}},
		"other type":   {At: bounded(9000), Row: []scgs.Value{scgs.BoolValue(true)}},
	} {
		for _, general := range []bool{false, true} {
			c := refused{crewOf(t, refusedConfig), 2}
			if general {
				c.core.General()
			}
			for _, name := range []string{"a-0", "a-1", "b-0"} {
				c.step(1, synccore.Input{Kind: synccore.InHello, From: name, Hello: &wire.Hello{
					Member: name, Incarnation: 7, Domain: "d", Multiplexer: name[:1],
					Quality: clocksync.Quality{Source: "m", Timeline: "utc", Status: clocksync.Synchronized},
				}})
				c.report(2, name, 1, bounded(2), one)
			}
			last := uint64(5000) // More stamps than are kept of a clock domain.
			for seq := uint64(2); seq <= last; seq++ {
				c.report(clocksync.Instant(3000+seq), "b-0", seq, bounded(clocksync.Instant(3000+seq)), zero)
			}
			if c.report(9000, "a-0", c.seq, bad.At, bad.Row[0]); len(c.out.Rejected) != 1 || len(c.out.Resends) > 0 {
				t.Fatalf("%s: refused %+v, want report %d of a-0; resends %+v, want none", name, c.out.Rejected, c.seq, c.out.Resends)
			}
			now := clocksync.Instant(20_000)
			for range 3 {
				if now = now.Add(time.Second); c.whole(now, c.seq, last) != "" {
					t.Errorf("%s: it fired though b-0 is 0", name)
				}
			}
			for _, step := range []struct {
				name string
				v    scgs.Value
				want string
			}{{"b-0", one, ""}, {"b-0", scgs.IntValue(7), "seven"}, {"b-0", one, ""}, {"a-0", one, "all-one"}} {
				now = now.Add(time.Second)
				n := &last
				if step.name == "a-0" {
					n = &c.seq
				}
				*n++
				c.report(now, step.name, *n, bounded(now), step.v)
				if got := c.whole(now+50, c.seq, last); got != step.want {
					t.Errorf("%s: when %s is %v %q fired, want %q", name, step.name, step.v, got, step.want)
				}
			}
		}
	}
}

// TestRefusedBeforeTheEpoch: a member whose newest report is refused before it enters an epoch
// does not enter with its state before.
func TestRefusedBeforeTheEpoch(t *testing.T) {
	c := crewOf(t, crewConfig)
	for i, name := range []string{"b-0", "a-0", "a-1", "b-1"} {
		c.step(1, synccore.Input{Kind: synccore.InHello, From: name, Hello: &wire.Hello{Member: name, Incarnation: 7, Domain: "d", Multiplexer: name[:1]}})
		c.begins(2, name, 1, 1)
		if i == 0 {
			c.step(3, synccore.Input{Kind: synccore.InBatch, From: name, Batch: &wire.Batch{
				Member: name, Incarnation: 7, Reports: []wire.Report{{Seq: 2, At: plain(3), Row: []scgs.Value{scgs.BoolValue(true)}}},
			}})
		}
	}
	if c.held(9, "b", plain(9), 2, 1); c.core.Epoch() != 0 {
		t.Fatal("an epoch has begun with a state of b-0 that had ended")
	}
	if c.begins(10, "b-0", 3, 1); c.core.Epoch() != 1 {
		t.Error("no epoch has begun with the next state of b-0")
	}
}

// TestStashOfFarNumbers: reports ahead of their turn are kept by number, however far those lie
// apart.
func TestStashOfFarNumbers(t *testing.T) {
	c := newCrew(t)
	for i, seq := range []uint64{3, 1<<63 + 9} {
		c.begins(clocksync.Instant(10+i), "a-0", seq, 0)
	}
	if r := c.out.Resends; len(r) != 1 || r[0].Msg.From != 4 || r[0].Msg.To != 1<<63+8 {
		t.Errorf("resends %+v, want that from 4 on, as 2 was asked for before", r)
	}
	c.begins(12, "a-0", 2, 0)
	if r := c.out.Resends; len(r) != 0 {
		t.Errorf("resends %+v, want none, as 2 and 3 are here", r)
	}
}
