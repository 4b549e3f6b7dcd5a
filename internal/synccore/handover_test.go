package synccore_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/journal"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// follower is a machine that is stepped on the lines of another one's inputs.
type follower struct {
	t     *testing.T
	of    func() *synccore.Core
	core  *synccore.Core
	lines *journal.Reader
	out   synccore.Output
	bytes int
}

func (f *follower) attach(now clocksync.Instant) {
	of := f.of()
	f.core, f.lines = synccore.New(of.Level(), synccore.Options{Follows: true}), journal.Follow(of.Level())
	f.bytes = 0
	of.Retell(func(in *synccore.Input) { f.step(now, in) })
}

// follow steps on an input of the other machine, and on what that has made of it.
func (f *follower) follow(now clocksync.Instant, in *synccore.Input, made *synccore.Kept) {
	f.t.Helper()
	f.step(now, in)
	if made != nil {
		f.step(now, &synccore.Input{Kind: synccore.InKept, Kept: made})
	}
}

func (f *follower) step(now clocksync.Instant, in *synccore.Input) {
	f.t.Helper()
	line, err := journal.AppendInput(nil, f.core.Level().State, now, in)
	if err != nil {
		f.t.Fatal(err)
	}
	line = bytes.TrimSuffix(journal.AppendBroken(line), []byte("\n"))
	f.bytes += len(line)
	var rec journal.Record
	if err := f.lines.Take(line, &rec); err != nil {
		f.t.Fatalf("%v: %s", err, line)
	}
	f.core.Step(rec.Now, &rec.Input, &f.out)
}

// TestSucceeds: a machine that follows continues in a later term a second after the other one
// was heard last. All that it decides is true, no firing is applied twice, each signal has a
// fate, and memory and edges equal the other one's.
func TestSucceeds(t *testing.T) {
	taken, warm := 0, 0
	for s := range uint64(1 + worlds(t)/5) {
		w := newWorld(t, 500+s)
		if s%3 == 0 {
			w.share()
		}
		f := &follower{t: t, of: func() *synccore.Core { return w.core }}
		n := 0
		w.stepped = func(in *synccore.Input) {
			n++
			if f.core == nil || n%50 == 0 && f.core.Sum() != w.core.Sum() {
				f.attach(w.now)
				return
			}
			f.follow(w.now, in, w.core.MadeAlone(&w.out))
		}
		for _, at := range []time.Duration{2 * time.Second, 6 * time.Second} {
			w.after(at, func() { w.nobody = true })
			w.after(at+1200*time.Millisecond, func() {
				if ready, _ := f.core.Follows(); !ready {
					t.Fatal("it does not follow")
				}
				before, next := w.core, f.core
				w.nobody, w.core, f.core = false, next, nil
				options := before.Made()
				if options.Term++; next.Sum() == before.Sum() {
					w.step(synccore.Input{Kind: synccore.InTerm, Term: options.Term})
					warm++
				} else {
					kept := next.Kept()
					w.step(synccore.Input{Kind: synccore.InRestart, Restart: &options})
					w.step(synccore.Input{Kind: synccore.InKept, Kept: kept})
				}
				for _, a := range w.members {
					frame, err := wire.AppendWelcome(nil, &wire.Welcome{Synchronizer: "gsync", Term: options.Term})
					w.down(a.name, frame, err)
				}
				taken++
			})
		}
		w.run()
		if t.Failed() {
			t.Fatalf("seed %d", 500+s)
		}
	}
	t.Logf("%d times, %d times with all that the other one had in mind", taken, warm)
}

// TestFollows: a machine that is retold what another one has come to, at any time, over a
// bad network, comes to the same and stays the same, from then on.
func TestFollows(t *testing.T) {
	attached, same, steps, apart := 0, 0, 0, 0
	for s := range uint64(1 + worlds(t)/5) {
		w := newWorld(t, s+1)
		if s%3 == 0 {
			w.share()
		}
		f := &follower{t: t, of: func() *synccore.Core { return w.core }}
		n, agrees := 0, false
		w.stepped = func(in *synccore.Input) {
			if n++; n%500 == 1 {
				f.attach(w.now)
				attached++
				_, ok := f.core.Follows()
				agrees = f.core.Sum() == w.core.Sum()
				if ok {
					same++
				}
				if ok && !agrees {
					t.Errorf("seed %d, step %d: it says that it has come to the same, and has not", s+1, n)
				}
				return
			}
			f.follow(w.now, in, w.core.MadeAlone(&w.out))
			if agrees {
				steps++
				if f.core.Sum() != w.core.Sum() {
					agrees = false
					apart++
				}
			}
		}
		w.run()
		if t.Failed() {
			t.Fatalf("seed %d", s+1)
		}
	}
	t.Logf("%d times attached, %d times to the same, %d times apart in %d steps", attached, same, apart, steps)
}

// TestRetellsWhoIsDistrusted: a member whose clock contradicts itself does not cost those of its host
// their place in a machine that is retold all, and silence is counted from when each was heard.
func TestRetellsWhoIsDistrusted(t *testing.T) {
	c := newCauser(t, 1)
	for _, name := range []string{"a", "b"} {
		c.hello(wire.Hello{Member: name, Quality: clocksync.Quality{Source: "s", Timeline: "t", Status: clocksync.Synchronized, Expires: clocksync.MaxInstant}})
		c.tell(name, 1)
	}
	c.step(synccore.Input{Kind: synccore.InBatch, From: "b", Batch: &wire.Batch{
		Member: "b", Incarnation: 1, Tagged: true, Quality: clocksync.Quality{Source: "s", Status: clocksync.Untrusted}, Regions: []wire.Region{{Name: "r", Entry: 5}},
	}})
	before := c.core.Kept()
	f := &follower{t: t, of: func() *synccore.Core { return c.core }}
	f.attach(c.now)
	if _, same := f.core.Follows(); !same || f.core.Sum() != c.core.Sum() {
		t.Errorf("it has not come to the same: %+v, want %+v", f.core.Kept(), before)
	}
	if got := f.core.Kept(); !slices.Equal(got.Members, before.Members) || got.Looked != before.Looked {
		t.Errorf("members %+v, want %+v", got.Members, before.Members)
	}
}

// TestGoesOnTwice: a signal without a fate has one in the end, though the machine that continues knows
// it from a machine that continued it; and a signal that this machine has decided on alone, without
// the leader, was never sent.
func TestGoesOnTwice(t *testing.T) {
	c := newCauser(t, 1)
	for _, name := range []string{"a", "b"} {
		c.hello(wire.Hello{Member: name, Causes: true})
	}
	c.tell("a", 2)
	c.tell("b", 2)
	sent := c.core.Kept().Letters
	if len(sent) != 2 {
		t.Fatalf("%d signals are under way: %+v", len(sent), sent)
	}
	core, now := c.core, c.now
	for term := uint64(2); term < 4; term++ {
		f := &follower{t: t, of: func() *synccore.Core { return core }}
		f.attach(now)
		sure := f.core.Decisions()
		if k := f.core.KeptUpTo(0); len(k.Letters) != 0 || len(k.Led) == 0 || k.Led[len(k.Led)-1].Number != 0 {
			t.Errorf("it is sure of nothing, and keeps %+v, and leads on %+v", k.Letters, k.Led)
		}
		kept := f.core.KeptUpTo(sure)
		f.step(now, &synccore.Input{Kind: synccore.InRestart, Restart: &synccore.Options{Term: term}})
		f.step(now, &synccore.Input{Kind: synccore.InKept, Kept: kept})
		core = f.core
	}
	var out synccore.Output
	core.Step(now.Add(2*time.Hour), &synccore.Input{Kind: synccore.InTick}, &out)
	if len(out.Fates) != len(sent) || out.Fates[0].Fate != control.Unconfirmed || out.Fates[0].Signal.Decision != sent[0].Signal.Decision {
		t.Errorf("fates %+v, want those of %+v", out.Fates, sent)
	}
}

// TestRetellsWhoIsGone: a machine that is retold all knows the members that are gone, as which
// incarnation, why, and how far their reports had come: so a report lost before it comes back shows as
// a gap there as well.
func TestRetellsWhoIsGone(t *testing.T) {
	c := newCauser(t, 1)
	for _, name := range []string{"a", "b"} {
		c.hello(wire.Hello{Member: name})
		c.tell(name, 1)
		c.tell(name, 2)
	}
	c.step(synccore.Input{Kind: synccore.InBatch, From: "b", Batch: &wire.Batch{Member: "b", Incarnation: 1, Leaving: true}})
	f := &follower{t: t, of: func() *synccore.Core { return c.core }}
	f.attach(c.now)
	if before, got := c.core.Kept(), f.core.Kept(); !slices.Equal(got.Members, before.Members) || got.Members[1].Gone != 1 || got.Members[1].Before != 2 {
		t.Errorf("members %+v, want %+v", got.Members, before.Members)
	}
	now := c.now.Add(time.Millisecond)
	f.step(now, &synccore.Input{Kind: synccore.InTerm, Term: 2})
	f.step(now, &synccore.Input{Kind: synccore.InHello, From: "b", Hello: &wire.Hello{Member: "b", Incarnation: 2, Host: "h", Domain: "host", Leader: "gsync", Term: 1}})
	for seq, gaps := range map[uint64]uint64{3: 0, 5: 1} {
		f := &follower{t: t, of: func() *synccore.Core { return f.core }}
		f.attach(now) // Once more, before its first report.
		f.step(now, &synccore.Input{Kind: synccore.InTerm, Term: 3})
		f.step(now, &synccore.Input{Kind: synccore.InBatch, From: "b", Batch: &wire.Batch{
			Member: "b", Incarnation: 2, Reports: []wire.Report{{Seq: seq, At: at("host", now, clocksync.Unbounded), Row: []scgs.Value{scgs.IntValue(1)}}},
		}})
		f.core.Step(now, &synccore.Input{Kind: synccore.InAsk, Ask: &synccore.Question{Counts: true}}, &f.out)
		if got := f.out.Answer.Counts.Gaps; got != gaps {
			t.Errorf("report %d after 2: %d gaps, want %d", seq, got, gaps)
		}
	}
}

// TestCallsWhoHasNotHeardOfTheTerm: a member that says nothing in a term which continues with another
// one is asked for a hello, at most every half a second, until it has said it.
func TestCallsWhoHasNotHeardOfTheTerm(t *testing.T) {
	c := newCauser(t, 1)
	for _, name := range []string{"a", "b", "c"} {
		c.hello(wire.Hello{Member: name})
		c.tell(name, 1)
	}
	c.step(synccore.Input{Kind: synccore.InBatch, From: "c", Batch: &wire.Batch{Member: "c", Incarnation: 1, Leaving: true}})
	calls := func() (to []string) {
		c.step(synccore.Input{Kind: synccore.InTick})
		for i := range c.out.Welcomes {
			if w := &c.out.Welcomes[i]; w.Msg.Accepted || w.Msg.Refused || w.Msg.Term != c.core.Term() {
				t.Errorf("%+v", w)
			}
			to = append(to, c.out.Welcomes[i].To)
		}
		return to
	}
	c.now = c.now.Add(10 * time.Second)
	if to := calls(); len(to) > 0 {
		t.Errorf("in the first term %v", to)
	}
	c.step(synccore.Input{Kind: synccore.InTerm, Term: 2})
	if to := calls(); len(to) > 0 {
		t.Errorf("at once %v", to)
	}
	c.hello(wire.Hello{Member: "a", Leader: "gsync", Term: 1})
	for round := range 4 {
		c.now = c.now.Add(300 * time.Millisecond)
		want := []string{"b"}
		if round%2 == 0 {
			want = nil
		}
		if to := calls(); !slices.Equal(to, want) {
			t.Errorf("%v after that: %v, want %v", time.Duration(round+1)*300*time.Millisecond, to, want)
		}
	}
	c.hello(wire.Hello{Member: "b", Leader: "gsync", Term: 1})
	c.now = c.now.Add(time.Second)
	if to := calls(); len(to) > 0 {
		t.Errorf("all have said it, and called are %v", to)
	}
}
