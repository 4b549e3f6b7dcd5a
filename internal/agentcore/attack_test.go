package agentcore_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// attacked is a member that synchronizer s has taken in, in term 1000, epoch 3. It is in an
// entry of a region, and another group's synchronizer, far, has sent signals into it.
type attacked struct {
	*machine

	t      *testing.T
	now    clocksync.Instant
	number uint64
	entry  uint64
}

const term, farTerm = 1000, 77

func newAttacked(t *testing.T) *attacked {
	t.Helper()
	a := &attacked{t: t, now: 1, machine: newMachine(agentcore.Options{Hello: wire.Hello{Member: "w", Incarnation: 5, Domain: "d"}})}
	a.tick()
	a.welcome(term)
	a.number = 1 << 20
	if err := a.Set(a.now, stamp(a.now), row(1)); err != nil {
		t.Fatal(err)
	}
	a.enterAgain()
	a.hears("s", term)
	a.hears("far", farTerm)
	return a
}

func row(n int64) []scgs.Value { return []scgs.Value{scgs.IntValue(n)} }

// tick flushes the member, and returns its hello if there is one.
func (a *attacked) tick() *wire.Hello {
	a.now++
	var out agentcore.Output
	a.Flush(a.now, stamp(a.now), &out)
	if len(out.Hellos) == 0 {
		return nil
	}
	return &out.Hellos[0]
}

func (a *attacked) welcomeOf(term uint64) *wire.Welcome {
	return &wire.Welcome{Synchronizer: "s", Term: term, Epoch: 3, Member: "w", Incarnation: a.Incarnation(), Accepted: true, Schema: fields, NextSeq: 1}
}

func (a *attacked) welcome(term uint64) {
	a.t.Helper()
	if r := a.OnWelcome(a.now, a.welcomeOf(term)); r != agentcore.Accepted {
		a.t.Fatalf("the welcome of term %d: %v", term, r)
	}
}

// signals is a frame with the next signal of a synchronizer.
func (a *attacked) signals(from string, term uint64) *wire.Signals {
	a.number++
	return &wire.Signals{Synchronizer: from, Term: term, Epoch: 3, Incarnation: a.Incarnation(), Signals: []control.Signal{{
		Decision: control.Decision{Synchronizer: from, Term: term, Epoch: 3, Number: a.number},
		Name:     "go", Predicate: "p", Kind: control.Activate, Target: "w", Region: "r", Entry: a.entry,
	}}}
}

// hears fails unless a signal of a synchronizer is accepted at once.
func (a *attacked) hears(from string, term uint64) {
	a.t.Helper()
	a.now++
	fresh := a.OnSignals(a.now, a.signals(from, term))
	if len(fresh) != 1 {
		a.t.Fatalf("a signal of %s is not heard: %+v", from, a.Stats())
	}
	if o := fresh[0]; o.Fate != control.Waiting {
		a.t.Fatalf("a signal of %s: %v (%s)", from, o.Fate, o.Detail)
	}
	a.apply()
}

// apply ends what waits.
func (a *attacked) apply() {
	for {
		s := a.Next(a.now, a.entry, control.AtCheck)
		if s == nil {
			return
		}
		a.Finish(a.now, s, control.Applied)
	}
}

func (a *attacked) enterAgain() {
	a.t.Helper()
	a.LeaveRegion(a.now, a.entry)
	var err error
	if a.entry, err = a.Enter(a.now, "r", []control.Handler{{Name: "go"}}); err != nil {
		a.t.Fatal(err)
	}
}

// TestOneFrameMakesNobodyDeaf: one welcome, or one frame of signals, with the greatest term
// and epoch there are.
func TestOneFrameMakesNobodyDeaf(t *testing.T) {
	const most = math.MaxUint64
	for name, attack := range map[string]func(a *attacked){
		"called": func(a *attacked) {
			a.OnWelcome(a.now, &wire.Welcome{Synchronizer: "s", Term: most, Epoch: most})
		},
		"called by name": func(a *attacked) {
			a.OnWelcome(a.now, &wire.Welcome{Synchronizer: "s", Term: most, Epoch: most, Member: "w", Incarnation: 5})
		},
		"called by another": func(a *attacked) {
			a.OnWelcome(a.now, &wire.Welcome{Synchronizer: "z", Term: most, Epoch: most})
		},
		"accepted": func(a *attacked) {
			w := a.welcomeOf(most)
			w.Epoch = most
			a.OnWelcome(a.now, w)
			a.tick()
			a.OnWelcome(a.now, w)
		},
		"accepted, another incarnation": func(a *attacked) {
			w := a.welcomeOf(1 << 61)
			w.Incarnation++
			a.OnWelcome(a.now, w)
		},
		"empty": func(a *attacked) {
			for _, from := range []string{"s", "far"} {
				a.OnSignals(a.now, &wire.Signals{Synchronizer: from, Term: most, Epoch: most, Incarnation: 5})
				a.OnSignals(a.now, &wire.Signals{Synchronizer: from, Term: 1<<62 - 1, Epoch: 1<<62 - 1, Incarnation: 5})
				a.OnSignals(a.now, &wire.Signals{Synchronizer: from, Term: term, Epoch: 1 << 19, Incarnation: 5})
				a.OnSignals(a.now, &wire.Signals{Synchronizer: from, Term: farTerm, Epoch: 1 << 19, Incarnation: 5})
			}
		},
		"signals of the greatest term": func(a *attacked) {
			a.OnSignals(a.now, a.signals("s", most))
			a.OnSignals(a.now, a.signals("far", most))
		},
		"signals of a newer term": func(a *attacked) { a.OnSignals(a.now, a.signals("s", term+1)) },
		"an epoch far away": func(a *attacked) {
			for _, s := range []*wire.Signals{a.signals("s", term), a.signals("far", farTerm)} {
				s.Epoch, s.Signals[0].Decision.Epoch = 1<<40, 1<<40
				a.OnSignals(a.now, s)
			}
		},
		"decided later than sent": func(a *attacked) {
			for _, s := range []*wire.Signals{a.signals("s", term), a.signals("far", farTerm)} {
				s.Signals[0].Decision.Epoch = 9
				a.OnSignals(a.now, s)
			}
		},
		"for another member": func(a *attacked) {
			s := a.signals("far", farTerm+1)
			s.Signals[0].Target = "x"
			a.OnSignals(a.now, s)
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAttacked(t)
			attack(a)
			a.hears("s", term)
			a.hears("far", farTerm)
			if h := a.hello(); h != nil && (h.Leader != "s" || h.Term != term) {
				t.Errorf("the hello tells of %s in term %d", h.Leader, h.Term)
			}
			if a.Synchronizer() != "s" {
				t.Errorf("it takes %q for its synchronizer", a.Synchronizer())
			}
		})
	}
}

// hello is what the member says, if anything, within 100 ms.
func (a *attacked) hello() *wire.Hello {
	a.now += 1e8
	return a.tick()
}

// TestGarbageMakesNobodyDeaf: 100,000 honest frames with one bit flipped each. With hellos
// between them one may be taken for the answer; the next hello tells, and the synchronizer
// leads in a later term.
func TestGarbageMakesNobodyDeaf(t *testing.T) {
	for seed := range uint64(4) {
		for _, hellos := range []bool{false, true} {
			t.Run(fmt.Sprintf("seed %d, hellos %t", seed, hellos), func(t *testing.T) {
				g := garbage{attacked: newAttacked(t), random: rand.New(rand.NewPCG(seed, 1)), term: term}
				for i := range 25_000 {
					g.flip()
					if g.apply(); i%1000 == 0 { // In one entry a flipped number outlives its signal: lower ones may be forgotten copies.
						g.enterAgain()
					}
					if hellos && i%100 == 0 {
						g.now += 1e8
						g.meet()
					}
				}
				if g.taken < 25_000 {
					t.Errorf("only %d frames could be read", g.taken)
				}
				g.enterAgain()
				if hellos { // A signal, a hello and its answer.
					g.OnSignals(g.now, g.signals("s", g.term))
					g.now += 1e8
					g.meet()
				}
				g.hears("s", g.term)
				g.hears("far", farTerm)
			})
		}
	}
}

type garbage struct {
	*attacked

	random *rand.Rand
	term   uint64 // of the synchronizer
	taken  int    // frames that could be read
}

// meet has the synchronizer answer a hello.
func (g *garbage) meet() {
	h := g.tick()
	if h == nil {
		return
	}
	if h.Leader == "s" && h.Term > g.term {
		g.term = h.Term + 1
	}
	g.welcome(g.term)
}

// flip offers one frame of each kind with a flipped bit.
func (g *garbage) flip() {
	frames := make([][]byte, 4)
	var faults [4]error
	frames[0], faults[0] = wire.AppendWelcome(nil, g.welcomeOf(g.term))
	frames[1], faults[1] = wire.AppendWelcome(nil, &wire.Welcome{Synchronizer: "s", Term: g.term, Epoch: 3})
	frames[2], _, faults[2] = wire.AppendSignals(nil, g.signals("s", g.term))
	frames[3], _, faults[3] = wire.AppendSignals(nil, g.signals("far", farTerm))
	if err := errors.Join(faults[:]...); err != nil {
		g.t.Fatal(err)
	}
	for i, b := range frames {
		b[g.random.IntN(len(b))] ^= 1 << g.random.IntN(8)
		g.now++
		if w, err := wire.DecodeWelcome(b); i < 2 && err == nil {
			g.taken++
			if g.OnWelcome(g.now, &w) == agentcore.Dropped {
				g.meet()
			}
		}
		if s, err := wire.DecodeSignals(b); i >= 2 && err == nil {
			g.taken++
			g.OnSignals(g.now, &s)
		}
	}
}

// TestManyNamesLockNobodyOut: 10,000 invented synchronizers send signals, as many as a member
// can tell apart and more.
func TestManyNamesLockNobodyOut(t *testing.T) {
	for name, spoil := range map[string]func(s *wire.Signals){
		"empty":       func(s *wire.Signals) { s.Signals = nil },
		"elsewhere":   func(s *wire.Signals) { s.Signals[0].Entry = 99 },
		"no handler":  func(s *wire.Signals) { s.Signals[0].Name = "none" },
		"to be heard": func(*wire.Signals) {},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAttacked(t)
			for i := range 10_000 {
				s := a.signals(fmt.Sprintf("x%d", i), 5)
				spoil(s)
				a.OnSignals(a.now, s)
				if i%3 == 0 {
					a.apply()
				}
			}
			a.apply()
			a.hears("s", term)
			if name == "no handler" || name == "to be heard" { // It knew the entry: forgotten signals of that cannot be told from new ones.
				a.enterAgain()
			}
			a.hears("far", farTerm)
			a.hears("new", 1)
			for range 2 { // Nothing is heard of s any more.
				a.now = a.now.Add(agentcore.DefaultSilence)
				a.OnWelcome(a.now, &wire.Welcome{Synchronizer: "t", Term: 2})
			}
			a.hello()
			w := a.welcomeOf(2)
			w.Synchronizer = "t"
			if r := a.OnWelcome(a.now, w); r != agentcore.Accepted {
				t.Fatalf("another synchronizer's welcome: %v", r)
			}
			a.hears("t", 2)
		})
	}
}

// TestANewerTermIsNotLost: what a newer leader sends before it has taken the member in is
// neither obeyed nor answered, calls for one hello in 100 ms, and counts when it comes again.
func TestANewerTermIsNotLost(t *testing.T) {
	a := newAttacked(t)
	a.hello()
	s := a.signals("s", term+1)
	for range 10 {
		if fresh := a.OnSignals(a.now, s); len(fresh) > 0 {
			t.Fatalf("%+v", fresh)
		}
	}
	hellos := 0
	for range 100 {
		a.now += 1e6
		a.OnSignals(a.now, s)
		if a.tick() != nil {
			hellos++
		}
	}
	if hellos != 1 {
		t.Errorf("%d hellos within 100 ms", hellos)
	}
	a.welcome(term + 1)
	if fresh := a.OnSignals(a.now, s); len(fresh) != 1 || fresh[0].Fate != control.Waiting {
		t.Errorf("after the welcome: %+v", fresh)
	}
	if fresh := a.OnSignals(a.now, a.signals("s", term)); len(fresh) != 1 || fresh[0].Fate != control.OldEpoch {
		t.Errorf("of the older term: %+v", fresh)
	}
}

// TestTheSameFiringIsToldAndApplied: a hello tells the fates of firings, and the same one of a
// later term is answered with the fate of the first, also once this has it.
func TestTheSameFiringIsToldAndApplied(t *testing.T) {
	a := newAttacked(t)
	fired := func(term uint64, witness uint64) *wire.Signals {
		s := a.signals("s", term)
		s.Signals[0].Cause = control.Cause{Source: 1, Witness: witness, Firing: 1}
		return s
	}
	answers := func() string {
		var text strings.Builder
		a.now += 1e8
		var out agentcore.Output
		a.Flush(a.now, stamp(a.now), &out)
		for _, k := range out.Acks {
			for _, b := range k.Answers {
				fmt.Fprintf(&text, "%d %v;", b.Decision.Term, b.Fate)
			}
		}
		return text.String()
	}
	answers()
	if fresh := a.OnSignals(a.now, fired(term, 1)); len(fresh) != 1 {
		t.Fatalf("%+v", fresh)
	}
	a.apply()
	if fresh := a.OnSignals(a.now, fired(term, 2)); len(fresh) != 1 {
		t.Fatalf("%+v", fresh)
	}
	if got := answers(); got != "1000 applied;1000 waiting;" {
		t.Errorf("answers %q", got)
	}
	a.OnWelcome(a.now, &wire.Welcome{Synchronizer: "s", Term: term + 1})
	h := a.tick()
	if h == nil || !h.Causes || fmt.Sprint(h.Fates) != "[{{1 2 1} go 1 waiting} {{1 1 1} go 1 applied}]" {
		t.Fatalf("the hello: %+v", h)
	}
	a.welcome(term + 1)
	for witness := range uint64(2) {
		if fresh := a.OnSignals(a.now, fired(term+1, witness+1)); len(fresh) != 0 {
			t.Fatalf("%+v", fresh)
		}
	}
	// That of the term before, and that of newAttacked, are told to the next term.
	if got := answers(); got != "1001 applied;1001 waiting;1000 applied;1000 applied;" {
		t.Errorf("answers in the next term %q", got)
	}
	a.apply()
	if got := answers(); got != "1000 applied;1001 applied;" {
		t.Errorf("answers once it was applied %q", got)
	}
	if s := a.Stats(); s.Fates[control.Applied] != 4 { // Two came from newAttacked.
		t.Errorf("%d were applied", s.Fates[control.Applied])
	}
}

// TestWhatNobodyWasToldIsMissed: a member comes back as a new incarnation with states in its
// ring that were never handed out. The numbers of those are missing, the open state has its
// number again, and nothing that was before is looked for.
func TestWhatNobodyWasToldIsMissed(t *testing.T) {
	for name, states := range map[string]uint64{"none": 0, "in the ring": 971, "and beyond it": 3000} {
		t.Run(name, func(t *testing.T) {
			a := newAttacked(t)
			a.tick()
			a.Recall(a.now)
			before := a.Stats()
			for n := range states {
				a.set(int64(n)) //nolint:gosec // Few.
			}
			a.tick()
			dropped := &wire.Welcome{Synchronizer: "s", Term: term, Member: "w", Incarnation: 5, Reason: "silent"}
			for range 2 { // In the second one it was never taken in.
				if r := a.OnWelcome(a.now, dropped); r != agentcore.Dropped {
					t.Fatal(r)
				}
				dropped.Incarnation++
				if h := a.hello(); h == nil || h.Incarnation != dropped.Incarnation || h.Term != term {
					t.Fatalf("%+v", h)
				}
			}
			if n := a.Stats().Dropped - before.Dropped; n != states {
				t.Errorf("%d are counted", n)
			}
			a.welcome(term)
			a.wantReports(1 + states)
			a.set(7)
			a.wantReports(2 + states)
			if n := a.Stats().Gone - before.Gone; n > 0 {
				t.Errorf("%d times it says that something is gone", n)
			}
			a.OnResend(a.now, &wire.Resend{Incarnation: a.Incarnation(), From: 1, To: 2 + states})
			a.wantReports(1+states, 2+states)
			if n := a.Stats().Gone - before.Gone; n != min(1, states) {
				t.Errorf("%d times it says that something is gone", n)
			}
		})
	}
}

// TestAStateThatDoesNotBeginAgainIsMissed: a member that was dropped has a state, and the program
// begins another one before that could begin again.
func TestAStateThatDoesNotBeginAgainIsMissed(t *testing.T) {
	for name, said := range map[string]bool{"before the hello": false, "once the hello was answered": true} {
		t.Run(name, func(t *testing.T) {
			a := newAttacked(t)
			a.tick()
			a.set(1) // Its number is 2.
			if r := a.OnWelcome(a.now, &wire.Welcome{Synchronizer: "s", Term: term, Member: "w", Incarnation: 5, Reason: "silent"}); r != agentcore.Dropped {
				t.Fatal(r)
			}
			if said {
				a.tick()
			}
			a.set(2)
			if !said {
				a.tick()
			}
			a.welcome(term)
			a.wantReports(3)
		})
	}
}

func (a *attacked) set(n int64) {
	a.t.Helper()
	a.now++
	if err := a.Set(a.now, stamp(a.now), row(n)); err != nil {
		a.t.Fatal(err)
	}
}

// wantReports compares the numbers of the reports that a tick hands out.
func (a *attacked) wantReports(want ...uint64) {
	a.t.Helper()
	a.now++
	var out agentcore.Output
	a.Flush(a.now, stamp(a.now), &out)
	var got []uint64
	for i := range out.Batches {
		for _, r := range out.Batches[i].Reports {
			got = append(got, r.Seq)
		}
	}
	if !slices.Equal(got, want) {
		a.t.Errorf("reports %v, want %v", got, want)
	}
}

// TestFatesAreToldUntilTheyAreRecorded: a later term of the synchronizer is told what became of
// the signals of those before, with all that names them, again and again until it has recorded that.
func TestFatesAreToldUntilTheyAreRecorded(t *testing.T) {
	a := newAttacked(t)
	told := func(after time.Duration) (answers []wire.Answer) {
		a.now = a.now.Add(after)
		var out agentcore.Output
		for range 2 { // Repeated reports go out a moment later.
			a.now = a.now.Add(5 * time.Millisecond)
			a.Flush(a.now, stamp(a.now), &out)
			for _, k := range out.Acks {
				if k.To == "s" {
					answers = append(answers, k.Answers...)
				}
			}
		}
		return answers
	}
	told(0)
	a.OnSignals(a.now, a.signals("s", term)) // The fate of this one comes in the next term.
	if got := told(time.Minute); len(got) != 1 || got[0].Fate != control.Waiting || got[0].Kind != 0 {
		t.Fatalf("of the term in force: %+v", got)
	}
	a.OnWelcome(a.now, &wire.Welcome{Synchronizer: "s", Term: term + 1})
	told(0)
	a.welcome(term + 1)
	first := told(0)
	if len(first) != 1 || first[0].Fate != control.Applied || first[0].Decision.Term != term || first[0].Kind != control.Activate ||
		first[0].Predicate != "p" || first[0].Region != "r" || first[0].Entry != a.entry {
		t.Fatalf("in the next term: %+v", first)
	}
	if got := told(time.Second); !slices.Equal(got, first) {
		t.Errorf("it is not told again: %+v", got)
	}
	a.apply()
	both := told(time.Second)
	if len(both) != 2 {
		t.Fatalf("with the one that has waited: %+v", both)
	}
	for range 10 { // The synchronizer is not to be reached, and nobody misses the member.
		if got := told(time.Minute); len(got) != 2 {
			t.Fatalf("they are told no more: %+v", got)
		}
	}
	receipts := wire.Signals{Synchronizer: "s", Term: term + 1, Incarnation: a.Incarnation()}
	for i := range both {
		receipts.Recorded = append(receipts.Recorded, wire.Receipt{Term: term, Number: both[i].Decision.Number, Name: both[i].Name})
	}
	a.OnSignals(a.now, &receipts)
	if got := told(time.Minute); len(got) != 0 {
		t.Errorf("they are told again, though they are recorded: %+v", got)
	}
}
