package scgs_test

import (
	"slices"
	"testing"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// told is a group of two members on hosts x and y, and a plain member on x, both
// at a detector above.
type told struct {
	t            *testing.T
	group, above *scgs.Detector
	event        scgs.Event
	sum          scgs.Summary
	ref          scgs.Ref
}

func newTold(t *testing.T, o scgs.Options) *told {
	t.Helper()
	w := &told{t: t, group: scgs.NewDetector(scgs.Options{}), above: scgs.NewDetector(o)}
	w.group.Share("x")
	w.group.Epoch(1, nil, []scgs.Spec{{Domain: "x"}, {Domain: "y"}})
	w.above.Epoch(1, nil, []scgs.Spec{{Group: true}, {Domain: "x"}})
	return w
}

func exactly(domain clocksync.Domain, t clocksync.Instant) clocksync.Stamp {
	return clocksync.Stamp{Domain: domain, Mono: t, Within: clocksync.Exactly(t)}
}

// tell tells what the group has found, and gives the reasons but for Accepted.
func (w *told) tell() []scgs.Reason {
	w.t.Helper()
	var refused []scgs.Reason
	for more := true; more; {
		more = w.group.Next(&w.event)
		if w.group.Summarize(&w.sum) {
			if w.sum.Index != 0 {
				w.ref++
			}
			if why := w.above.Summary(0, &w.sum, w.ref); why != scgs.Accepted {
				refused = append(refused, why)
			}
		}
	}
	return refused
}

// change starts the next state of both members of the group.
func (w *told) change(seq uint64, at clocksync.Instant) {
	w.t.Helper()
	for m, domain := range []clocksync.Domain{"x", "y"} {
		if why := w.group.Start(scgs.Member(m), seq, exactly(domain, at), 0); why != scgs.Accepted {
			w.t.Fatal(why)
		}
	}
	if refused := w.tell(); len(refused) > 0 {
		w.t.Fatal(refused)
	}
}

// opened drains the detector above and gives the group's tuples in what opened.
func (w *told) opened() []uint64 {
	w.t.Helper()
	var found []uint64
	for w.above.Next(&w.event) {
		if w.event.Kind == scgs.Opened {
			found = append(found, w.above.Witness(nil)[0].Seq)
		}
	}
	return found
}

func TestMisplacedReportsOfGroups(t *testing.T) {
	w := newTold(t, scgs.Options{})
	w.change(1, 10)
	for name, why := range map[string]scgs.Reason{
		"start":    w.above.Start(0, 1, exactly("x", 1), 0),
		"end":      w.above.End(0, 1, exactly("x", 1)),
		"evidence": w.above.Evidence(0, 1, exactly("x", 1)),
		"summary":  w.above.Summary(1, &w.sum, 0),
	} {
		if why != scgs.Unfit {
			t.Errorf("%s: %v", name, why)
		}
	}
	if why := w.above.Summary(7, &w.sum, 0); why != scgs.NoMember {
		t.Error(why)
	}
}

func TestPossiblyHasNoGroups(t *testing.T) {
	o := scgs.Options{Modality: scgs.Possibly}
	group := scgs.NewDetector(o)
	group.Share("x")
	group.Epoch(1, nil, []scgs.Spec{{Domain: "x"}})
	group.Start(0, 1, exactly("x", 1), 0)
	group.Evidence(0, 1, exactly("x", 2))
	var ev scgs.Event
	var sum scgs.Summary
	if !group.Next(&ev) || group.Summarize(&sum) {
		t.Error("a summary of what is possible")
	}
	w := newTold(t, o)
	w.group.Start(0, 1, exactly("x", 1), 0)
	if refused := w.tell(); !slices.Equal(refused, []scgs.Reason{scgs.Unfit}) {
		t.Errorf("summary under Possibly: %v", refused)
	}
}

func TestSummariesAreChecked(t *testing.T) {
	w := newTold(t, scgs.Options{})
	w.change(1, 10)
	w.change(2, 20)
	good := w.sum
	good.Number++
	for _, c := range []struct {
		name string
		edit func(s *scgs.Summary)
		want scgs.Reason
	}{
		{"the same again", func(s *scgs.Summary) { s.Number-- }, scgs.Duplicate},
		{"an earlier run", func(s *scgs.Summary) { s.Run-- }, scgs.Stale},
		{"run 0", func(s *scgs.Summary) { s.Run = 0 }, scgs.Malformed},
		{"number 0", func(s *scgs.Summary) { s.Number = 0 }, scgs.Malformed},
		{"no rows", func(s *scgs.Summary) { s.Rows = nil }, scgs.Malformed},
		{"a row less", func(s *scgs.Summary) { s.Rows = s.Rows[:1] }, scgs.Malformed},
		{"an index again", func(s *scgs.Summary) { s.Index = 1 }, scgs.Malformed},
		{"another clock", func(s *scgs.Summary) { s.Rows[0].Domain = "z" }, scgs.Foreign},
		{"one clock twice in a new run", func(s *scgs.Summary) { s.Run++; s.Rows[1].Domain = "x" }, scgs.Malformed},
		{"a start at no time", func(s *scgs.Summary) { s.Rows[0].StartMono = clocksync.MaxInstant }, scgs.Malformed},
		{"an earlier reading", func(s *scgs.Summary) { s.Rows[0].StartMono-- }, scgs.Regress},
		{"an earlier start", func(s *scgs.Summary) { s.Rows[1].StartLatest-- }, scgs.Regress},
		{"an earlier envelope", func(s *scgs.Summary) { s.From-- }, scgs.Regress},
		{"less evidence", func(s *scgs.Summary) { s.Rows[1].Held.Earliest = 5 }, scgs.Regress},
		{"an end before the evidence", func(s *scgs.Summary) { s.Rows[0].Ended.Mono = 5 }, scgs.Regress},
		{"nothing wrong", func(*scgs.Summary) {}, scgs.Accepted},
	} {
		s := good
		s.Rows = slices.Clone(good.Rows)
		s.Index = 0
		c.edit(&s)
		if why := w.above.Summary(0, &s, 0); why != c.want {
			t.Errorf("%s: %v, want %v", c.name, why, c.want)
		}
	}
}

// TestLostSummaryEndsWhatWasTold has a group whose second tuple's summary is lost.
// The first one, which would have been said to end in it, holds no longer than was
// known before.
func TestLostSummaryEndsWhatWasTold(t *testing.T) {
	w := newTold(t, scgs.Options{})
	w.change(1, 10)
	w.group.Evidence(0, 1, exactly("x", 15))
	w.group.Evidence(1, 1, exactly("y", 15))
	w.tell()

	w.above.Start(1, 1, exactly("x", 16), 0) // while tuple 1 may have ended
	w.group.Start(0, 2, exactly("x", 18), 0)
	w.group.Start(1, 2, exactly("y", 18), 0)
	for w.group.Next(&w.event) {
		w.group.Summarize(&w.sum) // lost
	}
	w.group.Summarize(&w.sum)
	w.group.Evidence(0, 2, exactly("x", 20))
	w.group.Evidence(1, 2, exactly("y", 20))
	if refused := w.tell(); len(refused) > 0 {
		t.Fatal(refused)
	}
	w.above.Evidence(1, 1, exactly("x", 21))
	if found := w.opened(); !slices.Equal(found, []uint64{2}) {
		t.Errorf("found tuples %v of the group, want only 2", found)
	}
	if st := w.above.Stats(); st.Gaps != 1 {
		t.Errorf("%d gaps", st.Gaps)
	}
}

// TestGroupBeginsAnewWithItsEpoch lets a member leave the group while a tuple is
// open above.
func TestGroupBeginsAnewWithItsEpoch(t *testing.T) {
	w := newTold(t, scgs.Options{})
	w.change(1, 10)
	w.change(2, 20)
	w.group.Evidence(0, 2, exactly("x", 22))
	w.group.Evidence(1, 2, exactly("y", 22))
	w.tell()
	w.above.Start(1, 1, exactly("x", 12), 0)
	w.above.Evidence(1, 1, exactly("x", 30))
	if found := w.opened(); !slices.Equal(found, []uint64{1, 2}) {
		t.Fatalf("found %v", found)
	}
	w.above.Released(nil)

	w.group.Epoch(2, []scgs.Member{0}, nil) // x leaves it
	if refused := w.tell(); len(refused) > 0 || len(w.sum.Rows) != 1 || w.sum.Run < 2 {
		t.Fatalf("refused %v, told %+v", refused, w.sum)
	}
	if !w.above.Next(&w.event) || w.event.Kind != scgs.Closed || w.event.Index != 2 {
		t.Fatalf("%+v, want the end of what was open", w.event)
	}
	if refs := w.above.Released(nil); !slices.Equal(refs, []scgs.Ref{2}) {
		t.Errorf("released %v, want that of the tuple told last", refs)
	}
	w.group.Evidence(1, 2, exactly("y", 25))
	w.tell()
	if found := w.opened(); !slices.Equal(found, []uint64{1}) { // of epoch 2: member y alone
		t.Errorf("found %v after the group's epoch", found)
	}
	if got := w.above.Stats().Collapsed; got != 1 {
		t.Errorf("%d tuples dropped, want 1", got)
	}
}

// TestGroupLeavesAndReturns removes a group by an epoch, and gives one up that
// then restarts with other numbers.
func TestGroupLeavesAndReturns(t *testing.T) {
	w := newTold(t, scgs.Options{})
	w.change(1, 10)
	w.above.Start(1, 1, exactly("x", 5), 0)
	if w.above.Lost(0) != scgs.Accepted || w.above.Restart(0, "", clocksync.MaxInstant) != scgs.Accepted {
		t.Fatal("a group cannot be given up")
	}
	w.group = scgs.NewDetector(scgs.Options{})
	w.group.Share("x")
	w.group.Epoch(1, nil, []scgs.Spec{{Domain: "x"}, {Domain: "y"}})
	w.change(1, 20)
	w.group.Evidence(0, 1, exactly("x", 25))
	w.group.Evidence(1, 1, exactly("y", 25))
	w.tell()
	w.above.Evidence(1, 1, exactly("x", 25))
	if found := w.opened(); !slices.Equal(found, []uint64{1}) {
		t.Errorf("found %v", found)
	}
	added := w.above.Epoch(2, []scgs.Member{0}, []scgs.Spec{{Domain: "z"}})
	if added[0] != 0 || w.above.Start(0, 1, exactly("z", 3), 0) != scgs.Accepted {
		t.Error("the number of a group is not given to a plain member")
	}
}

// TestNoStepAcrossWhatIsLost has tuples that are steps in the group, and the one
// before them is not known above, or from another run.
func TestNoStepAcrossWhatIsLost(t *testing.T) {
	for _, c := range []struct {
		name string
		lose func(w *told)
		want bool
	}{
		{"nothing", func(*told) {}, true},
		{"a summary", func(w *told) {
			for more := true; more; {
				more = w.group.Next(&w.event)
				w.group.Summarize(&w.sum)
			}
		}, false},
		{"a run, and the other member's step", func(w *told) {
			for w.group.Next(&w.event) { // continue to state 2
			}
			w.group.Share("x")
			w.above.Start(1, 2, exactly("x", 15), 0)
			w.above.Evidence(1, 2, exactly("x", 50))
		}, false},
	} {
		w := newTold(t, scgs.Options{})
		w.change(1, 10)
		w.group.Evidence(0, 1, exactly("x", 40))
		w.group.Evidence(1, 1, exactly("y", 15))
		w.tell()
		w.above.Start(1, 1, exactly("x", 5), 0)
		w.above.Evidence(1, 1, exactly("x", 12))
		w.opened()
		w.group.Start(1, 2, exactly("y", 20), 0)
		w.group.Evidence(1, 2, exactly("y", 25))
		c.lose(w)
		w.tell()
		w.above.Evidence(1, 1, exactly("x", 50)) // unless it has ended
		w.group.Start(1, 3, exactly("y", 30), 0)
		w.group.Evidence(1, 3, exactly("y", 35))
		w.tell()
		step, n := false, 0
		for w.above.Next(&w.event) {
			if w.event.Kind == scgs.Opened {
				if n++; n == 1 {
					step = w.event.Step
					if w.event.Changed[0].Member != 0 {
						t.Errorf("%s lost: changed %+v", c.name, w.event.Changed)
					}
				}
			}
		}
		if n == 0 || step != c.want {
			t.Errorf("%s lost: %d opened, the first a step: %v", c.name, n, step)
		}
	}
}

// TestGroupMayHoldForEver has all members promise that their states last.
func TestGroupMayHoldForEver(t *testing.T) {
	w := newTold(t, scgs.Options{})
	w.change(1, 10)
	forever := func(domain clocksync.Domain) clocksync.Stamp {
		return clocksync.Stamp{Domain: domain, Mono: clocksync.MaxInstant, Within: clocksync.Exactly(clocksync.MaxInstant)}
	}
	w.group.Evidence(0, 1, forever("x"))
	w.group.Evidence(1, 1, forever("y"))
	w.tell()
	w.above.Start(1, 1, exactly("x", 5), 0)
	w.above.Evidence(1, 1, forever("x"))
	if found := w.opened(); !slices.Equal(found, []uint64{1}) || w.event.Kind != scgs.Opened {
		t.Errorf("found %v, at last %+v", found, w.event)
	}
}

// TestStartsOfGroupsDropWhatTheyMiss has a group whose members' states never
// overlap, so that it has no tuple. The states of the plain member are dropped
// all the same, when the group's tuples to come begin later.
func TestStartsOfGroupsDropWhatTheyMiss(t *testing.T) {
	const rounds = 1000
	w := newTold(t, scgs.Options{})
	released, most := 0, 0
	for i := range rounds {
		at, seq := clocksync.Instant(10*i), uint64(2*i+1)
		w.group.Start(0, seq, exactly("x", at), 0)
		w.group.End(0, seq+1, exactly("x", at+3))
		w.group.Start(1, seq, exactly("y", at+5), 0)
		w.group.End(1, seq+1, exactly("y", at+8))
		w.above.Start(1, uint64(i+1), exactly("x", at), 1)
		w.tell()
		w.opened()
		released += len(w.above.Released(nil))
		most = max(most, i+1-released)
	}
	if most > 100 {
		t.Errorf("up to %d states were held for a group without a tuple", most)
	}
}

// TestPendingTuplesOfGroupsAreBounded lets a group find tuples without end while
// the other member is silent.
func TestPendingTuplesOfGroupsAreBounded(t *testing.T) {
	const limit, rounds = 8, 1000
	w := newTold(t, scgs.Options{MaxPending: limit})
	held := map[scgs.Ref]bool{}
	w.change(1, 1)
	w.group.Evidence(0, 1, exactly("x", 10*rounds))
	for i := range rounds {
		before := w.ref
		w.group.Start(1, uint64(i+2), exactly("y", clocksync.Instant(10*i+10)), 0)
		w.tell()
		for r := before + 1; r <= w.ref; r++ {
			held[r] = true
		}
		for w.above.Next(&w.event) {
			t.Fatalf("%+v without the other member", w.event)
		}
		for _, r := range w.above.Released(nil) {
			if !held[r] {
				t.Fatalf("%d released twice", r)
			}
			delete(held, r)
		}
		if len(held) > limit+2 {
			t.Fatalf("%d tuples held, limit %d", len(held), limit)
		}
	}
	if got := w.above.Stats().Collapsed; got != uint64(w.ref)-uint64(len(held)) || got < rounds-limit-3 {
		t.Errorf("%d dropped of %d, %d held", got, w.ref, len(held))
	}
	// The first and the newest ones are still found, and nothing says that only one
	// step is between them.
	w.above.Start(1, 1, exactly("x", 5), 0)
	w.above.Evidence(1, 1, exactly("x", 10*rounds))
	var found []uint64
	for w.above.Next(&w.event) {
		if w.event.Kind == scgs.Closed {
			continue
		}
		found = append(found, w.above.Witness(nil)[0].Seq)
		if w.event.Step != (len(found) > 2) {
			t.Errorf("tuple %d: step %v", found[len(found)-1], w.event.Step)
		}
	}
	if len(found) < 3 || found[0] != 1 || found[1] < rounds-limit || found[len(found)-1] != uint64(w.ref) {
		t.Errorf("found %v", found)
	}
}
