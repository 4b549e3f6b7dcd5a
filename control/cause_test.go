package control_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
)

// led is a gate whose participant a synchronizer has taken in, in term 1, and is in an entry.
func led(t *testing.T) (*control.Gate, uint64) {
	t.Helper()
	g := control.NewGate()
	entry, err := g.Enter("r", []control.Handler{{Name: "a"}, {Name: "b"}})
	if err == nil {
		err = g.Lead("s", 1, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g, entry
}

// TestTheSameFiringOfALaterTermIsACopy: a synchronizer that lost its memory makes the same
// firing again, under another decision.
func TestTheSameFiringOfALaterTermIsACopy(t *testing.T) {
	g, entry := led(t)
	first := control.Signal{
		Decision: control.Decision{Synchronizer: "s", Term: 1, Epoch: 4, Number: 9}, Cause: control.Cause{Source: 7, Witness: 100, Firing: 1},
		Name: "a", Kind: control.Activate, Target: "w", Region: "r", Entry: entry,
	}
	number := uint64(0)
	offer := func(change func(s *control.Signal)) control.Outcome {
		s := first
		number++
		s.Decision = control.Decision{Synchronizer: "s", Term: 2, Epoch: 1, Number: number}
		change(&s)
		return g.Offer(0, &s)
	}
	same := func(*control.Signal) {}
	if o := g.Offer(0, &first); o.Fate != control.Waiting || o.Again {
		t.Fatalf("%+v", o)
	}
	if err := g.Lead("s", 2, 0); err != nil {
		t.Fatal(err)
	}
	if o := offer(same); o.Fate != control.Waiting || !o.Again {
		t.Errorf("while the first waits: %+v", o)
	}
	g.Finish(g.Next(0, entry, control.AtCheck), control.Applied, "")
	settled := g.Settled()
	if len(settled) != 1 || settled[0].Signal != &first || settled[0].Copy != (control.Decision{Synchronizer: "s", Term: 2, Epoch: 1, Number: 1}) {
		t.Errorf("the copy does not learn of its fate: %+v", settled)
	}
	if o := offer(same); o.Fate != control.Applied || !o.Again {
		t.Errorf("once it was applied: %+v", o)
	}
	for name, change := range map[string]func(s *control.Signal){
		"the second firing": func(s *control.Signal) { s.Cause.Firing = 2 },
		"another witness":   func(s *control.Signal) { s.Cause.Witness++ },
		"another text":      func(s *control.Signal) { s.Cause.Source++ },
		"another name":      func(s *control.Signal) { s.Name = "b" },
		"without a cause":   func(s *control.Signal) { s.Cause = control.Cause{} },
		"another sender":    func(s *control.Signal) { s.Decision.Synchronizer = "far" },
	} {
		if o := offer(change); o.Fate != control.Waiting || o.Again {
			t.Errorf("%s: %+v", name, o)
		}
	}
	// In one term the number is the key.
	if o := offer(func(s *control.Signal) { s.Decision.Term, s.Decision.Number = 2, 500 }); !o.Again {
		t.Errorf("the same firing under a third number: %+v", o)
	}
	g.Leave(entry)
	again, _ := g.Enter("r", []control.Handler{{Name: "a"}})
	if o := offer(func(s *control.Signal) { s.Entry = again }); o.Fate != control.Waiting || o.Again {
		t.Errorf("in the next entry: %+v", o)
	}
	if o := offer(func(s *control.Signal) { s.Entry = again }); o.Fate != control.Waiting || o.Again {
		t.Errorf("twice in a term: %+v", o)
	}
}

// TestWhatAnEarlierTermMayHaveMade: where a later term does not know whether it is the first one
// to fire on runs, what took effect on them, or waits, keeps its signal from it.
func TestWhatAnEarlierTermMayHaveMade(t *testing.T) {
	const perhaps, vague = control.PerhapsMade, control.Vague
	runs := control.OfRuns(5<<32, 6)
	for name, c := range map[string]struct {
		first, later control.Cause
		fate         control.Fate // of the first; 0: it waits
		want         control.Fate
	}{
		"the same runs, under another number": {control.Cause{Source: 7, Witness: runs, Firing: 3}, control.Cause{Source: 7, Witness: runs, Firing: 1 | perhaps}, control.Applied, control.Unconfirmed},
		"it waits":                            {control.Cause{Source: 7, Witness: runs, Firing: 3}, control.Cause{Source: 7, Witness: runs, Firing: 1 | perhaps}, 0, control.Unconfirmed},
		"it had no effect":                    {control.Cause{Source: 7, Witness: runs, Firing: 3}, control.Cause{Source: 7, Witness: runs, Firing: 1 | perhaps}, control.Refused, control.Waiting},
		"other runs of the same members":      {control.Cause{Source: 7, Witness: runs, Firing: 3}, control.Cause{Source: 7, Witness: runs + 1, Firing: 1 | perhaps}, control.Applied, control.Waiting},
		"it is not known which":               {control.Cause{Source: 7, Witness: runs, Firing: 3}, control.Cause{Source: 7, Witness: runs + 1, Firing: 1 | perhaps | vague}, control.Applied, control.Unconfirmed},
		"it was not known which":              {control.Cause{Source: 7, Witness: runs, Firing: 3 | vague}, control.Cause{Source: 7, Witness: runs + 1, Firing: 1 | perhaps}, control.Applied, control.Unconfirmed},
		"other members":                       {control.Cause{Source: 7, Witness: runs, Firing: 3}, control.Cause{Source: 7, Witness: runs + 1<<32, Firing: 1 | perhaps | vague}, control.Applied, control.Waiting},
		"another source":                      {control.Cause{Source: 8, Witness: runs, Firing: 3}, control.Cause{Source: 7, Witness: runs, Firing: 1 | perhaps}, control.Applied, control.Waiting},
		"not the first of its term":           {control.Cause{Source: 7, Witness: runs, Firing: 3}, control.Cause{Source: 7, Witness: runs, Firing: 1 | vague}, control.Applied, control.Waiting},
		"the same, marked by both":            {control.Cause{Source: 7, Witness: runs, Firing: 3 | perhaps}, control.Cause{Source: 7, Witness: runs, Firing: 3 | perhaps}, control.Applied, control.Applied},
	} {
		g, entry := led(t)
		signal := func(term uint64, cause control.Cause) *control.Signal {
			return &control.Signal{
				Decision: control.Decision{Synchronizer: "s", Term: term, Number: 1}, Cause: cause,
				Name: "a", Kind: control.Activate, Target: "w", Region: "r", Entry: entry,
			}
		}
		g.Offer(0, signal(1, c.first))
		if c.fate != 0 {
			g.Finish(g.Next(0, entry, control.AtCheck), c.fate, "")
		}
		if err := g.Lead("s", 2, 0); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if o := g.Offer(0, signal(2, c.later)); o.Fate != c.want {
				t.Errorf("%s: %+v, want %v", name, o, c.want)
			}
		}
	}
}

// TestRenewed: what a term has renewed was made by an earlier one. It keeps from a target what the
// term makes itself and cannot tell from it, and nothing else that was renewed.
func TestRenewed(t *testing.T) {
	runs := control.OfRuns(5<<32, 6)
	for name, c := range map[string]struct {
		later control.Cause
		want  control.Fate
	}{
		"perhaps made":          {control.Cause{Source: 7, Witness: runs, Firing: 1 | control.PerhapsMade}, control.Unconfirmed},
		"not the first":         {control.Cause{Source: 7, Witness: runs, Firing: 4}, control.Waiting},
		"other runs":            {control.Cause{Source: 7, Witness: runs + 1, Firing: 1 | control.PerhapsMade}, control.Waiting},
		"another renewed one":   {control.Cause{Source: 7, Witness: runs, Firing: 1 | control.PerhapsMade | control.Renewed}, control.Waiting},
		"the same in its term":  {control.Cause{Source: 7, Witness: runs, Firing: 3}, control.Waiting},
		"of a source of others": {control.Cause{Source: 8, Witness: runs, Firing: 1 | control.PerhapsMade}, control.Waiting},
	} {
		g, entry := led(t)
		if err := g.Lead("s", 2, 0); err != nil {
			t.Fatal(err)
		}
		signal := func(number uint64, cause control.Cause) *control.Signal {
			return &control.Signal{
				Decision: control.Decision{Synchronizer: "s", Term: 2, Number: number}, Cause: cause,
				Name: "a", Kind: control.Activate, Target: "w", Region: "r", Entry: entry,
			}
		}
		g.Offer(0, signal(1, control.Cause{Source: 7, Witness: runs, Firing: 3 | control.Renewed}))
		g.Finish(g.Next(0, entry, control.AtCheck), control.Applied, "")
		if o := g.Offer(0, signal(2, c.later)); o.Fate != c.want {
			t.Errorf("%s: %+v, want %v", name, o, c.want)
		}
		// The next term knows it by its number all the same.
		if fated := g.Fated("s", 9); fated[len(fated)-1].Cause != (control.Cause{Source: 7, Witness: runs, Firing: 3}) {
			t.Errorf("%s: it is told as %+v", name, fated)
		}
	}
}

// TestWhatWasFencedOffIsNoFirstCopy: the older term's signal came too late, so that the
// newer one's takes effect.
func TestWhatWasFencedOffIsNoFirstCopy(t *testing.T) {
	g, entry := led(t)
	if err := g.Lead("s", 2, 0); err != nil {
		t.Fatal(err)
	}
	for i, want := range []control.Fate{control.OldEpoch, control.Waiting} {
		s := control.Signal{
			Decision: control.Decision{Synchronizer: "s", Term: uint64(1 + i), Number: 1}, Cause: control.Cause{Source: 7, Firing: 1},
			Name: "a", Kind: control.Activate, Target: "w", Region: "r", Entry: entry,
		}
		if o := g.Offer(0, &s); o.Fate != want || o.Again {
			t.Errorf("term %d: %+v", s.Decision.Term, o)
		}
	}
}

// TestFated: the newest first, of open entries and one synchronizer only, and no more than wanted.
func TestFated(t *testing.T) {
	g, entry := led(t)
	offer := func(n uint32, from, name string) {
		g.Offer(0, &control.Signal{
			Decision: control.Decision{Synchronizer: from, Term: 1, Number: uint64(n)}, Cause: control.Cause{Source: 7, Witness: 5, Firing: n},
			Name: name, Kind: control.Activate, Target: "w", Region: "r", Entry: entry,
		})
	}
	for n := range uint32(3) {
		offer(1+n, "s", "a")
		g.Finish(g.Next(0, entry, control.AtCheck), control.Applied, "")
	}
	offer(4, "far", "a")
	g.Finish(g.Next(0, entry, control.AtCheck), control.Applied, "")
	offer(5, "s", "none")
	offer(6, "s", "b")
	show := func(most int) string {
		var text strings.Builder
		for _, f := range g.Fated("s", most) {
			fmt.Fprintf(&text, "%d %s %v in %d; ", f.Cause.Firing, f.Name, f.Fate, f.Entry)
		}
		return text.String()
	}
	const all = "6 b waiting in 1; 5 none refused in 1; 3 a applied in 1; 2 a applied in 1; 1 a applied in 1; "
	if got := show(99); got != all {
		t.Errorf("all: %s", got)
	}
	if got := show(2); got != "6 b waiting in 1; 5 none refused in 1; " {
		t.Errorf("two: %s", got)
	}
	if g.Leave(entry); show(99) != "" {
		t.Errorf("of an entry that is over: %s", show(99))
	}
}

// TestFiringsAreToldApart offers firings of few sources, witnesses and entries in terms that
// only rise, beside a model that keeps what was applied of each, and more of them than a
// gate remembers, so that what is forgotten leaves no trace.
func TestFiringsAreToldApart(t *testing.T) {
	type firing struct {
		control.Cause

		name  string
		entry uint64
	}
	rapid.Check(t, func(t *rapid.T) {
		g := control.NewGate()
		entry := uint64(0)
		applied := map[firing]uint64{} // in which term
		term, number := uint64(1), uint64(0)
		t.Repeat(map[string]func(*rapid.T){
			"enter": func(t *rapid.T) {
				g.Leave(entry)
				entry, _ = g.Enter("r", []control.Handler{{Name: "a"}, {Name: "b"}})
			},
			"lead": func(t *rapid.T) {
				term++
				number = 0
				if err := g.Lead("s", term, 0); err != nil {
					t.Fatal(err)
				}
			},
			"others": func(t *rapid.T) {
				for range control.MaxFates {
					number++
					g.Offer(0, &control.Signal{Decision: control.Decision{Synchronizer: "s", Term: term, Number: number}, Cause: control.Cause{Source: number, Witness: 9, Firing: 1}, Name: "a"})
				}
				clear(applied)
				g.Leave(entry)
				entry, _ = g.Enter("r", []control.Handler{{Name: "a"}, {Name: "b"}})
			},
			"fire": func(t *rapid.T) {
				number++
				f := firing{
					control.Cause{Source: rapid.Uint64Range(0, 2).Draw(t, "source"), Witness: rapid.Uint64Range(1, 2).Draw(t, "witness"), Firing: rapid.Uint32Range(1, 2).Draw(t, "firing")},
					rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name"), entry,
				}
				o := g.Offer(0, &control.Signal{
					Decision: control.Decision{Synchronizer: "s", Term: term, Number: number}, Cause: f.Cause,
					Name: f.name, Kind: control.Activate, Region: "r", Entry: entry,
				})
				in, before := applied[f]
				switch copied := before && in < term && f.Source > 0; {
				case entry == 0:
				case o.Again != copied, !copied && o.Fate != control.Waiting, copied && o.Fate != control.Applied:
					t.Fatalf("%+v in term %d, before in term %d: %+v", f, term, in, o)
				case !copied:
					g.Finish(g.Next(0, entry, control.AtCheck), control.Applied, "")
					if !before {
						applied[f] = term
					}
				}
				g.Settled()
			},
		})
	})
}

// TestALaterCopyCounts: what was fenced off is kept no more once a later copy of the same signal
// came, whose fate may be another one; that of another signal is.
func TestALaterCopyCounts(t *testing.T) {
	g, entry := led(t)
	offer := func(term, witness uint64, marks uint32) {
		g.Offer(0, &control.Signal{
			Decision: control.Decision{Synchronizer: "s", Term: term, Epoch: 1, Number: 1 + witness}, Name: "a", Predicate: "p",
			Kind: control.Activate, Target: "w", Region: "r", Entry: entry, Cause: control.Cause{Source: 1, Witness: witness, Firing: 1 | marks},
		})
	}
	if err := g.Lead("s", 2, 1); err != nil {
		t.Fatal(err)
	}
	offer(1, 1, 0)
	offer(1, 2, 0)
	if got := g.Kept(); len(got) != 2 || got[0].Fate != control.OldEpoch || got[1].Fate != control.OldEpoch {
		t.Fatalf("of an older term: %+v", got)
	}
	offer(2, 2, 0)
	if got := g.Kept(); len(got) != 2 {
		t.Errorf("once the second was made again: %+v", got)
	}
	offer(2, 1, control.Renewed)
	if got := g.Kept(); len(got) != 1 || got[0].Decision.Number != 3 {
		t.Errorf("once the first came again: %+v", got)
	}
	g.Finish(g.Next(0, entry, control.AtCheck), control.Applied, "")
	if got := g.Kept(); len(got) != 2 || got[1].Fate != control.Applied || got[1].Decision.Term != 2 {
		t.Errorf("once that was applied: %+v", got)
	}
}

// TestFatesAreKeptUntilTheyAreRecorded: a final fate is kept until its synchronizer has recorded
// it, and of too many the oldest are lost, which is counted.
func TestFatesAreKeptUntilTheyAreRecorded(t *testing.T) {
	g, entry := led(t)
	offer := func(number uint64) {
		g.Offer(0, &control.Signal{
			Decision: control.Decision{Synchronizer: "s", Term: 1, Number: number}, Name: "a", Predicate: "p",
			Kind: control.Activate, Target: "w", Region: "r", Entry: entry,
		})
	}
	apply := func() { g.Finish(g.Next(0, entry, control.AtCheck), control.Applied, "") }
	offer(1)
	if len(g.Kept()) != 0 {
		t.Errorf("it waits: %+v", g.Kept())
	}
	apply()
	want := control.Kept{
		Decision: control.Decision{Synchronizer: "s", Term: 1, Number: 1}, Name: "a", Target: "w", Predicate: "p", Region: "r", Kind: control.Activate,
		Entry: entry, Fate: control.Applied,
	}
	if got := g.Kept(); len(got) != 1 || got[0] != want {
		t.Fatalf("%+v, want %+v", got, want)
	}
	for _, other := range []func(){
		func() { g.Recorded("s", 2, 1, "a") }, func() { g.Recorded("s", 1, 2, "a") }, func() { g.Recorded("s", 1, 1, "b") }, func() { g.Recorded("x", 1, 1, "a") },
	} {
		if other(); len(g.Kept()) != 1 {
			t.Fatalf("a receipt for another one counts: %+v", g.Kept())
		}
	}
	if g.Recorded("s", 1, 1, "a"); len(g.Kept()) != 0 {
		t.Errorf("%+v", g.Kept())
	}
	offer(2)
	g.Recorded("s", 1, 2, "a") // It was given up.
	if apply(); len(g.Kept()) != 0 {
		t.Errorf("recorded before it was applied: %+v", g.Kept())
	}
	for n := range uint64(control.MaxKept + 1) {
		offer(3 + n)
		apply()
	}
	if got := g.Kept(); len(got) > control.MaxKept || uint64(len(got))+g.Lost() != control.MaxKept+1 || got[len(got)-1].Decision.Number != control.MaxKept+3 {
		t.Errorf("%d are kept, %d are lost", len(got), g.Lost())
	}
	kept := len(g.Kept())
	g.Cancel(&control.Signal{Decision: control.Decision{Number: entry}, Kind: control.Cancel, Target: "w", Region: "r", Entry: entry})
	if g.Finish(g.Leave(entry), control.Applied, ""); len(g.Kept()) != kept {
		t.Errorf("what nobody has decided is kept: %+v", g.Kept()[kept])
	}
}

// TestWhatWaitsExpiresByItself: nobody has to ask for it.
func TestWhatWaitsExpiresByItself(t *testing.T) {
	g, entry := led(t)
	for n, ttl := range []time.Duration{3, 0, 5} {
		g.Offer(10, &control.Signal{
			Decision: control.Decision{Synchronizer: "s", Term: 1, Number: uint64(n) + 1}, Name: "a", Kind: control.Activate, Target: "w", Region: "r", Entry: entry, TTL: ttl,
		})
	}
	for _, want := range []struct{ now, next clocksync.Instant }{{12, 13}, {13, 15}, {14, 15}, {15, clocksync.MaxInstant}} {
		g.Expire(want.now)
		settled := g.Settled()
		if gone := want.now == 13 || want.now == 15; g.Expires() != want.next || (len(settled) == 1) != gone || gone && settled[0].Fate != control.Expired {
			t.Errorf("at %v: %+v, then at %v", want.now, settled, g.Expires())
		}
	}
}
