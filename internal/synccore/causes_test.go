package synccore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/scgs"
)

const causing = `
synchronizers:
  gsync:
    members: {group: g, count: 2, max: 9}
    silence: {after: 1h, then: drop}
    state: {n: int}
    predicates:
      high:
        when: sum(members, .n) >= 4
        signal: {kind: activate, region: r, expires: 1h}
      each:
        when: max(map(members, .n)) > 8
        every: true
        signal: {kind: activate, region: r, expires: 1h}
      two:
        when: count(members, .n < 0) >= 2
        modality: atleast
        signal: {kind: activate, region: r, expires: 1h}
`

// causer is a machine whose members are in entry 5 of a region.
type causer struct {
	t    *testing.T
	core *synccore.Core
	out  synccore.Output
	now  clocksync.Instant
	seqs map[string]uint64
	life map[string]uint64 // the incarnation, if it is not the first

	cause control.Cause // of the last signal
}

func newCauser(t *testing.T, term uint64) *causer {
	t.Helper()
	c := &causer{t: t, core: synccore.New(compile(t, causing), synccore.Options{Term: term}), seqs: map[string]uint64{}, life: map[string]uint64{}}
	return c
}

func compile(t *testing.T, text string) *plan.Level {
	t.Helper()
	levels, err := configfile.Parse("s.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return levels[0]
}

// hello introduces a member, with its reports of earlier terms.
func (c *causer) hello(h wire.Hello) {
	h.Incarnation, h.Domain = max(h.Incarnation, 1), "host"
	c.life[h.Member] = h.Incarnation
	c.step(synccore.Input{Kind: synccore.InHello, From: h.Member, Hello: &h})
}

func (c *causer) step(in synccore.Input) {
	c.now++
	c.core.Step(c.now, &in, &c.out)
	if len(c.out.Rejected) > 0 {
		c.t.Fatalf("%+v", c.out.Rejected)
	}
}

// tell reports a state and returns the signals sent for it: predicate, target, firing, and ?
// where an earlier term may have made it.
func (c *causer) tell(member string, n int64) string {
	c.seqs[member]++
	return c.report(member, n)
}

// report is tell of the state that is the newest already.
func (c *causer) report(member string, n int64) string {
	seq := c.seqs[member]
	c.now += 10
	at := func(mono clocksync.Instant) clocksync.Stamp {
		return clocksync.Stamp{Domain: "host", Mono: mono, Within: clocksync.Unbounded}
	}
	c.step(synccore.Input{Kind: synccore.InBatch, From: member, Batch: &wire.Batch{
		Member: member, Incarnation: max(c.life[member], 1), Reports: []wire.Report{{Seq: seq, At: at(c.now), Row: []scgs.Value{scgs.IntValue(n)}}},
		Regions: []wire.Region{{Name: "r", Entry: 5}}, Evidence: wire.Evidence{Seq: seq, At: at(c.now + 5)},
	}})
	var sent strings.Builder
	sent.WriteString(c.sent())
	for _, other := range []string{"a", "b"} {
		if seq := c.seqs[other]; other != member && seq > 0 {
			c.step(synccore.Input{Kind: synccore.InBatch, From: other, Batch: &wire.Batch{
				Member: other, Incarnation: max(c.life[other], 1), Regions: []wire.Region{{Name: "r", Entry: 5}}, Evidence: wire.Evidence{Seq: seq, At: at(c.now + 5)},
			}})
			sent.WriteString(c.sent())
		}
	}
	return sent.String()
}

func (c *causer) sent() string {
	var b strings.Builder
	for _, a := range c.out.Signals {
		for i := range a.Msg.Signals {
			s := &a.Msg.Signals[i]
			c.cause = s.Cause
			mark := ""
			if s.Cause.Firing&control.PerhapsMade != 0 {
				mark = "?"
			}
			fmt.Fprintf(&b, "%s %s %d%s;", s.Predicate, s.Target, s.Cause.Number(), mark)
		}
	}
	for _, f := range c.out.Fates {
		fmt.Fprintf(&b, "%s %s %d %v: %s;", f.Signal.Predicate, f.Signal.Target, f.Signal.Cause.Number(), f.Fate, f.Detail)
	}
	return b.String()
}

func (c *causer) reload(old, other string) string {
	c.step(synccore.Input{Kind: synccore.InLevel, Level: compile(c.t, strings.Replace(causing, old, other, 1))})
	return c.sent()
}

func (c *causer) want(what, got, want string) {
	c.t.Helper()
	if got != want {
		c.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func share(member string, seq uint64) uint64 { return seq * wire.Weight(member, 1) }

// TestCauses: the witness is the sum over the states of the members, or over the first ones of
// the runs that a threshold has found; a source's firings on one witness count.
func TestCauses(t *testing.T) {
	c := newCauser(t, 1)
	c.hello(wire.Hello{Member: "a", Causes: true})
	c.hello(wire.Hello{Member: "b", Causes: true})
	c.want("first", c.tell("a", 1), "")
	c.want("second", c.tell("b", 1), "")
	c.want("third", c.tell("b", 3), "high a 1;high b 1;")
	high := c.cause
	if high.Witness != share("a", 1)+share("b", 2) {
		t.Errorf("%+v", high)
	}
	c.want("paused", c.reload("count: 2", "count: 3, min: 3"), "")
	c.want("a new epoch of the same states", c.reload("", ""), "high a 2;high b 2;")
	if again := c.cause; again.Source != high.Source || again.Witness != high.Witness {
		t.Errorf("%+v and %+v", again, high)
	}
	c.want("another text", c.reload(">= 4", ">= 3"), "high a 3;high b 3;")
	if again := c.cause; again.Source == high.Source || again.Witness != high.Witness {
		t.Errorf("%+v and %+v", again, high)
	}
	c.want("the first text, whose firings have other numbers than before", c.reload("", ""), "high a 4;high b 4;")
	c.want("every time", c.tell("a", 9), "each a 1;each b 1;")
	each := c.cause
	c.want("every time, again", c.tell("a", 10), "each a 2;each b 2;")
	if next := c.cause; next.Source != each.Source || next.Witness != share("a", 3)+share("b", 2) || each.Witness != share("a", 2)+share("b", 2) {
		t.Errorf("%+v and %+v", each, next)
	}
	c.want("one below", c.tell("a", -1), "")
	c.want("it stays below", c.tell("a", -2), "")
	c.want("both below", c.tell("b", -1), "two a 1?;two b 1?;")
	if two := c.cause; two.Witness != ofRuns(4, 3) || two.Source == high.Source {
		t.Errorf("%+v", two)
	}
}

// TestSameStatesBegunAgain: what an earlier term has fired on is found again where members had to begin
// their states again, as the clock is another one, whether the term knows of that firing from the
// machine before, from the members, or both.
func TestSameStatesBegunAgain(t *testing.T) {
	before := newCauser(t, 1)
	before.hello(wire.Hello{Member: "a", Causes: true})
	before.hello(wire.Hello{Member: "b", Causes: true})
	before.tell("a", 1)
	before.want("the first term", before.tell("b", 3), "high a 1;high b 1;")
	made, kept := before.cause, before.core.Kept()
	fates := []control.Fated{{Cause: made, Name: "high", Entry: 5, Fate: control.Applied}}
	known := "high a 1 applied: the same firing was made in an earlier term;high b 1 applied: the same firing was made in an earlier term;"
	for _, one := range []struct {
		what  string
		hello wire.Hello
		kept  *synccore.Kept
		want  string
	}{
		{"a bound came, and nothing of it is said", wire.Hello{}, kept, "high a 2;high b 2;"},
		{"a bound came", wire.Hello{Same: wire.Same{Seq: 2, Incarnation: 1, Of: 1}}, kept, "high a 1;high b 1;"},
		{"a bound came, and the members tell alone", wire.Hello{Same: wire.Same{Seq: 2, Incarnation: 1, Of: 1}, Fates: fates}, nil, known},
		{"another timeline", wire.Hello{Incarnation: 7, Same: wire.Same{Seq: 2, Incarnation: 1, Of: 1}}, kept, "high a 1;high b 1;"},
		{"another timeline, and the members tell alone", wire.Hello{Incarnation: 7, Same: wire.Same{Seq: 2, Incarnation: 1, Of: 1}, Fates: fates}, nil, known},
		{"another life", wire.Hello{Incarnation: 7}, kept, "high a 2;high b 2;"},
	} {
		t.Run(one.what, func(t *testing.T) {
			c := newCauser(t, 2)
			if one.kept != nil {
				c.step(synccore.Input{Kind: synccore.InKept, Kept: one.kept})
			}
			h := one.hello
			h.Causes, h.Leader, h.Term = true, "gsync", 1
			h.Member = "a"
			c.hello(h)
			h.Member = "b"
			c.hello(h)
			c.seqs["a"], c.seqs["b"] = 2, 2
			c.report("a", 1)
			c.want("the same states", c.report("b", 3), one.want)
			if again := c.cause == made; again != strings.HasPrefix(one.want, "high a 1;") && one.want != known {
				t.Errorf("%+v, and it was %+v", c.cause, made)
			}
			c.hello(h) // In the middle of the state.
			h.Same = wire.Same{Seq: 3, Incarnation: 1, Of: 3}
			c.hello(h)
			c.tell("b", 2)
			if kept, want := c.core.Heads(); kept != want {
				t.Errorf("the sum is %d, want %d", kept, want)
			}
			f := &follower{t: t, of: func() *synccore.Core { return c.core }}
			f.attach(c.now)
			if _, same := f.core.Follows(); !same || f.core.Sum() != c.core.Sum() {
				t.Error("who follows has not come to the same")
			}
		})
	}
}

// TestMadeTwoTermsAgo: a term that ends before it finds again what one before it has fired on hands that on,
// and who follows it knows of it as well.
func TestMadeTwoTermsAgo(t *testing.T) {
	hellos := func(c *causer, term uint64) {
		for _, name := range []string{"a", "b"} {
			h := wire.Hello{Member: name, Causes: true}
			if term > 0 {
				h.Leader, h.Term = "gsync", term
			}
			c.hello(h)
		}
	}
	first := newCauser(t, 1)
	hellos(first, 0)
	first.tell("a", 1)
	first.want("the first term", first.tell("b", 3), "high a 1;high b 1;")
	c := newCauser(t, 2)
	c.step(synccore.Input{Kind: synccore.InKept, Kept: first.core.Kept()})
	hellos(c, 1)
	f := &follower{t: t, of: func() *synccore.Core { return c.core }}
	f.attach(c.now)
	for what, kept := range map[string]*synccore.Kept{"itself": c.core.Kept(), "who follows it": f.core.KeptUpTo(f.core.Decisions())} {
		third := newCauser(t, 3)
		third.step(synccore.Input{Kind: synccore.InKept, Kept: kept})
		hellos(third, 1)
		third.seqs["a"], third.seqs["b"] = 1, 1
		third.report("a", 1)
		third.want(what, third.report("b", 3), "high a 1;high b 1;")
		if third.cause != first.cause {
			t.Errorf("%s: %+v, and it was %+v", what, third.cause, first.cause)
		}
		if made := third.core.Kept().Rules[0].Made; made.Firing > 0 {
			t.Errorf("%s: it is found again, and still %+v", what, made)
		}
	}
}

// ofRuns is the witness of runs of a and b that began with these reports.
func ofRuns(a, b uint64) uint64 {
	return control.OfRuns(wire.Weight("a", 1)+wire.Weight("b", 1), share("a", a)+share("b", b))
}

// TestRunsOfAnEarlierTerm: a machine without memory that knows of runs only a state that they
// came to asks the targets whether they have had it; on a run that began in its term, and for the
// second time, it fires as ever.
func TestRunsOfAnEarlierTerm(t *testing.T) {
	before := newCauser(t, 1)
	both := func(c *causer) {
		c.hello(wire.Hello{Member: "a", Causes: true})
		c.hello(wire.Hello{Member: "b", Causes: true})
	}
	both(before)
	before.tell("a", 0)
	before.tell("b", 0)
	before.tell("a", -1)
	before.want("it is known where they began", before.tell("b", -1), "two a 1?;two b 1?;")
	made := before.cause.Plain()
	perhaps := func(what string, c *causer, want bool) {
		t.Helper()
		if c.cause.Perhaps(made) != want {
			t.Errorf("%s: %x, perhaps %x: %v", what, c.cause, made, !want)
		}
	}
	begin := func(a, b uint64) *causer {
		c := newCauser(t, 2)
		both(c)
		c.seqs["a"], c.seqs["b"] = a, b
		return c
	}
	c := begin(9, 7)
	c.report("a", -1)
	c.want("later states", c.report("b", -1), "two a 1?;two b 1?;")
	perhaps("later states", c, true)
	c.reload("count: 2", "count: 3, min: 3")
	c.want("the same runs in another epoch", c.reload("", ""), "two a 2;two b 2;")
	c.tell("a", 0)
	c.want("a run that may have begun before that", c.tell("a", -1), "two a 3?;two b 3?;")

	c = begin(1, 1)
	c.report("a", 0)
	c.report("b", 0)
	c.tell("a", -1)
	c.want("their first states were told late", c.tell("b", -1), "two a 1?;two b 1?;")
	perhaps("the same first states", c, true)
	c.tell("a", 0)
	c.want("another run", c.tell("a", -1), "two a 2?;two b 2?;")
	perhaps("other first states", c, false)
	c.now = c.now.Add(3 * time.Second)
	c.tell("b", 0)
	c.want("a run that began in the term", c.tell("b", -1), "two a 3;two b 3;")
}

// TestRunsAtATakeover: a machine that continues in place of another one begins the detectors of
// runs again. What that one has sent and nobody has answered is sent again, and not made again.
func TestRunsAtATakeover(t *testing.T) {
	for name, answered := range map[string]bool{"under way": false, "answered": true} {
		t.Run(name, func(t *testing.T) {
			c := newCauser(t, 1)
			c.hello(wire.Hello{Member: "a", Causes: true})
			c.hello(wire.Hello{Member: "b", Causes: true})
			c.tell("a", 0)
			c.tell("b", 0)
			c.tell("a", -1)
			c.want("before", c.tell("b", -1), "two a 1?;two b 1?;")
			made := c.cause.Plain()
			c.tell("a", -2)
			for _, member := range []string{"a", "b"} {
				if answered {
					a := wire.Answer{Decision: control.Decision{Synchronizer: "gsync", Term: 1, Epoch: 1, Number: 1}, Name: "two", Target: member, Fate: control.Applied}
					c.step(synccore.Input{Kind: synccore.InAck, From: member, Ack: &wire.Ack{Member: member, Incarnation: 1, Answers: []wire.Answer{a}}})
				}
			}
			next := newCauser(t, 0)
			next.core, next.now, next.seqs = synccore.New(c.core.Level(), synccore.Options{Follows: true}), c.now, c.seqs
			c.core.Retell(func(in *synccore.Input) { next.step(*in) })
			next.step(synccore.Input{Kind: synccore.InTerm, Term: 2})
			if answered {
				next.want("after", next.sent(), "two a 2?;two b 2?;")
				if !next.cause.Perhaps(made) {
					t.Errorf("%x, and %x was made", next.cause, made)
				}
				return
			}
			const why = "unconfirmed: what an earlier term has made on runs of the same members is under way;"
			next.want("after", next.sent(), "two a 1?;two b 1?;two a 2 "+why+"two b 2 "+why)
		})
	}
}

// TestAWitnessThatComesBack: a witness of before, in an epoch of the members of before, makes
// another firing; in the next term the last one is made.
func TestAWitnessThatComesBack(t *testing.T) {
	first := control.Cause{Source: 1, Witness: 6}
	e := synccore.NextCauses(first, []uint64{first.Witness, 7, first.Witness, first.Witness, 7}, nil)
	if want := []uint32{1, 2, 3, 4, 5}; !slices.Equal(e, want) {
		t.Errorf("%v, want %v", e, want)
	}
	e = synccore.NextCauses(first, []uint64{8, first.Witness, first.Witness, 8, 7}, map[uint64]uint32{first.Witness: 3, 7: 9})
	if want := []uint32{1, 3, 4, 5, 9}; !slices.Equal(e, want) {
		t.Errorf("%v, want %v", e, want)
	}
}

// TestMembersThatKnowNoCauses are sent signals as before.
func TestMembersThatKnowNoCauses(t *testing.T) {
	c := newCauser(t, 1)
	c.hello(wire.Hello{Member: "a"})
	c.hello(wire.Hello{Member: "b", Causes: true})
	c.tell("a", 1)
	c.want("both", c.tell("b", 3), "high a 0;high b 1;")
}

// TestWhatWasMadeInAnEarlierTerm: a machine without memory takes the fates that its members
// tell for those of its own firings, and sends what they have not had.
func TestWhatWasMadeInAnEarlierTerm(t *testing.T) {
	before := newCauser(t, 1)
	before.hello(wire.Hello{Member: "a", Causes: true})
	before.hello(wire.Hello{Member: "b", Causes: true})
	before.tell("a", 1)
	before.tell("b", 3)
	cause := before.cause
	fated := func(firing uint32, fate control.Fate) []control.Fated {
		c := cause
		c.Firing = firing
		return []control.Fated{{Cause: c, Name: "high", Entry: 5, Fate: fate}}
	}
	for name, one := range map[string]struct {
		leader string
		term   uint64
		a, b   []control.Fated
		want   string
	}{
		"nothing":              {"gsync", 1, nil, nil, "high a 1;high b 1;"},
		"one has had it":       {"gsync", 1, fated(1, control.Applied), nil, "high b 1;high a 1 applied: the same firing was made in an earlier term;"},
		"it waits":             {"gsync", 1, fated(1, control.Waiting), nil, "high a 1;high b 1;"},
		"the third time":       {"gsync", 1, fated(3, control.Applied), fated(2, control.Applied), "high b 3;high a 3 applied: the same firing was made in an earlier term;"},
		"another's":            {"other", 1, fated(1, control.Applied), nil, "high a 1;high b 1;"},
		"of the term in force": {"gsync", 2, fated(1, control.Applied), nil, "high a 1;high b 1;"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCauser(t, 2)
			c.hello(wire.Hello{Member: "a", Causes: true, Leader: one.leader, Term: one.term, Fates: one.a})
			c.hello(wire.Hello{Member: "b", Causes: true, Leader: one.leader, Term: one.term, Fates: one.b})
			c.seqs["a"], c.seqs["b"] = 1, 1
			c.report("a", 1)
			c.want("the same states", c.report("b", 3), one.want)
			c.tell("a", 0)
			later := "high a 2;high b 2;"
			if name == "the third time" {
				later = "high a 4;high b 4;"
			}
			c.want("later states", c.tell("a", 2), later)
		})
	}
}

// TestGapBetweenIncarnations: the numbers of a process continue through its incarnations, so what
// was lost on the way just before it was dropped is missing. Another process begins with 1.
func TestGapBetweenIncarnations(t *testing.T) {
	c := newCauser(t, 7)
	for _, one := range []struct {
		what              string
		incarnation, term uint64
		leader            string
		seqs              []uint64
		gaps              uint64
	}{
		{"the first one", 1, 0, "", []uint64{5, 6}, 0},
		{"the open state has its number again", 2, 7, "gsync", []uint64{6, 7}, 0},
		{"nothing is missing", 3, 7, "gsync", []uint64{8}, 0},
		{"one is", 4, 7, "gsync", []uint64{10, 11}, 1},
		{"another process", 5, 0, "", []uint64{15}, 1},
		{"of which nothing comes", 6, 7, "gsync", nil, 1},
		{"and in its next one", 7, 7, "gsync", []uint64{17, 16, 18}, 2},
		{"of an earlier term", 8, 6, "gsync", []uint64{1 << 63, 19}, 3},
		{"of a garbled number before", 9, 7, "gsync", []uint64{20}, 3},
		{"taken in by another one", 10, 7, "other", []uint64{30}, 3},
		{"a release in which numbers begin again", 11, 7, "gsync", []uint64{1}, 3},
	} {
		h := wire.Hello{Member: "a", Incarnation: one.incarnation, Domain: "host", Leader: one.leader, Term: one.term}
		for range 2 {
			c.step(synccore.Input{Kind: synccore.InHello, From: "a", Hello: &h})
		}
		for _, seq := range one.seqs {
			c.now++
			c.step(synccore.Input{Kind: synccore.InBatch, From: "a", Batch: &wire.Batch{Member: "a", Incarnation: one.incarnation, Reports: []wire.Report{
				{Seq: seq, At: clocksync.Stamp{Domain: "host", Mono: c.now, Within: clocksync.Exactly(c.now)}, Row: []scgs.Value{scgs.IntValue(0)}},
			}}})
		}
		if gaps := c.core.Counts().Gaps; gaps != one.gaps {
			t.Errorf("%s: %d gaps, want %d", one.what, gaps, one.gaps)
		}
	}
}

// ack has a member tell fates of signals named high, and returns the recorded ones.
func (c *causer) ack(member string, answers ...wire.Answer) string {
	for i := range answers {
		a := &answers[i]
		a.Decision.Synchronizer, a.Decision.Epoch, a.Name, a.Target = "gsync", 1, "high", member
	}
	c.step(synccore.Input{Kind: synccore.InAck, From: member, Ack: &wire.Ack{Member: member, Incarnation: 1, Answers: answers}})
	return c.fates()
}

// fates are those that the last step has recorded.
func (c *causer) fates() string {
	var b strings.Builder
	for _, f := range c.out.Fates {
		s := f.Signal
		fmt.Fprintf(&b, "%d/%d %s %s %s %s %d %v %t;", s.Decision.Term, s.Decision.Number, s.Predicate, s.Kind, s.Target, s.Region, s.Entry, f.Fate, f.Earlier)
	}
	return b.String()
}

// receipts are the fates that members learn to be recorded, once due.
func (c *causer) receipts() string {
	c.now = c.now.Add(time.Second)
	c.step(synccore.Input{Kind: synccore.InTick})
	var b strings.Builder
	for _, a := range c.out.Signals {
		for _, r := range a.Msg.Recorded {
			fmt.Fprintf(&b, "%s %d/%d %s;", a.To, r.Term, r.Number, r.Name)
		}
	}
	return b.String()
}

// TestFatesOfEarlierTerms: what a member remembers of the signals of earlier terms is recorded
// once, as of these, and the member learns of it each time that it tells.
func TestFatesOfEarlierTerms(t *testing.T) {
	answer := func(term, number uint64, fate control.Fate) wire.Answer {
		a := wire.Answer{Decision: control.Decision{Term: term, Number: number}, Fate: fate}
		if fate.Final() && term < 9 {
			a.Kind, a.Predicate, a.Region, a.Entry = control.Activate, "p", "r", 5
		}
		return a
	}
	c := newCauser(t, 9)
	c.hello(wire.Hello{Member: "a", Causes: true})
	c.hello(wire.Hello{Member: "b", Causes: true})
	c.tell("a", 1)
	c.tell("b", 3) // Decision 1.
	for range 2 {
		c.want("under way", c.ack("a", answer(9, 1, control.Waiting), answer(8, 3, control.Waiting)), "")
	}
	c.want("nothing is recorded yet", c.receipts(), "")
	c.want("two terms", c.ack("a", answer(7, 3, control.Applied), answer(8, 3, control.Duplicate)), "7/3 p activate a r 5 applied true;8/3 p activate a r 5 applied true;")
	c.want("another target", c.ack("b", answer(8, 3, control.Expired)), "8/3 p activate b r 5 expired true;")
	c.want("again", c.ack("a", answer(8, 3, control.Applied)), "")
	c.want("its own", c.ack("a", answer(9, 1, control.Applied)), "9/1 high activate a r 5 applied false;")
	c.want("its own again", c.ack("a", answer(9, 1, control.Applied)), "")
	c.want("never made", c.ack("a", answer(9, 2, control.Applied), answer(10, 1, control.Applied)), "")
	c.want("of the release before", c.ack("a", wire.Answer{Decision: control.Decision{Term: 8, Number: 9}, Fate: control.Applied}), "")
	c.want("receipts", c.receipts(), "a 7/3 high;a 8/3 high;a 8/3 high;a 9/1 high;a 9/1 high;b 8/3 high;")
	c.step(synccore.Input{Kind: synccore.InTerm, Term: 12})
	c.want("a term that it has led itself", c.ack("a", answer(9, 1, control.Applied)), "")
	c.want("that term", c.ack("b", answer(9, 1, control.Applied)), "12/1 high activate b r 5 applied false;")
}

// TestACopyThatWasNotAppliedIsNotTheLast: what a target says of a copy of an earlier term is not
// recorded while another copy may be applied, and the target does not learn that it is: the
// machine may be killed before that, and then the target alone knows.
func TestACopyThatWasNotAppliedIsNotTheLast(t *testing.T) {
	answer := func(term uint64) wire.Answer {
		return wire.Answer{Decision: control.Decision{Term: term, Number: 1}, Kind: control.Activate, Predicate: "high", Region: "r", Entry: 5, Fate: control.NoSuchEntry}
	}
	c := newCauser(t, 1)
	c.hello(wire.Hello{Member: "a", Causes: true})
	c.hello(wire.Hello{Member: "b", Causes: true})
	c.tell("a", 1)
	c.tell("b", 3)
	c.step(synccore.Input{Kind: synccore.InTerm, Term: 2})
	c.want("the first copy", c.ack("a", answer(1)), "")
	c.want("nothing is recorded", c.receipts(), "")
	c.want("the last copy", c.ack("a", answer(2)), "2/1 high activate a r 5 no-such-entry false;")
	c.want("the first copy again", c.ack("a", answer(1)), "")
	c.want("both", c.receipts(), "a 2/1 high;a 1/1 high;")
}

// TestARestartKnowsWhatIsRecorded: a machine that continues from its journal records the fates
// that it lacks, and no others; of who does not come back they are unconfirmed.
func TestARestartKnowsWhatIsRecorded(t *testing.T) {
	c := newCauser(t, 1)
	for _, name := range []string{"a", "b"} {
		c.hello(wire.Hello{Member: name, Causes: true})
	}
	c.tell("a", 1)
	c.tell("b", 3)
	applied := wire.Answer{Decision: control.Decision{Term: 1, Number: 1}, Fate: control.Applied}
	c.want("before", c.ack("a", applied), "1/1 high activate a r 5 applied false;")
	c.step(synccore.Input{Kind: synccore.InRestart, Restart: &synccore.Options{Term: 2}})
	c.hello(wire.Hello{Member: "a", Causes: true})
	c.hello(wire.Hello{Member: "b", Causes: true})
	c.want("recorded before", c.ack("a", applied), "")
	c.want("not recorded", c.ack("b", applied), "1/1 high activate b r 5 applied false;")
	c.want("now it is", c.ack("b", applied), "")
	c = newCauser(t, 1)
	c.hello(wire.Hello{Member: "a", Causes: true})
	c.hello(wire.Hello{Member: "b", Causes: true})
	c.tell("a", 1)
	c.tell("b", 3)
	c.step(synccore.Input{Kind: synccore.InRestart, Restart: &synccore.Options{Term: 2}})
	c.now = c.now.Add(2 * time.Hour)
	c.step(synccore.Input{Kind: synccore.InTick})
	c.want("nobody came back", c.sent(), "high a 1 unconfirmed: the synchronizer was ended before an answer came;high b 1 unconfirmed: the synchronizer was ended before an answer came;")
}

// TestACancellationForWantOfControlIsRecordedOnce: however often its member tells of it, which it does
// until it has the receipt, also as a later incarnation. A cancellation of another process is another
// one.
func TestACancellationForWantOfControlIsRecordedOnce(t *testing.T) {
	lapse := func(incarnation uint64) wire.Answer {
		return wire.Answer{Decision: control.Decision{Term: incarnation}, Fate: control.Applied}
	}
	c := newCauser(t, 9)
	c.hello(wire.Hello{Member: "a", Causes: true})
	c.want("of the release before", c.ack("a", lapse(0)), "0/0 control-loss cancel a high 1 applied false;")
	c.want("the same", c.ack("a", lapse(1)), "")
	c.step(synccore.Input{Kind: synccore.InHello, From: "a", Hello: &wire.Hello{Member: "a", Incarnation: 7, Domain: "host", Causes: true}})
	for i, want := range []string{"", "0/0 control-loss cancel a high 1 applied false;", ""} {
		a := lapse([]uint64{1, 7, 7}[i])
		a.Decision.Synchronizer, a.Decision.Epoch, a.Name, a.Target = "gsync", 1, "high", "a"
		c.step(synccore.Input{Kind: synccore.InAck, From: "a", Ack: &wire.Ack{Member: "a", Incarnation: 7, Answers: []wire.Answer{a}}})
		c.want(fmt.Sprint("in the next incarnation ", i), c.fates(), want)
	}
	c.want("receipts", c.receipts(), "a 1/0 high;a 1/0 high;a 1/0 high;a 1/0 high;a 1/0 high;")
}

// TestNobodyUsesUpTheRoomForFates: of one member there is room for as many fates of earlier
// terms as it can remember. Further fates are refused; another one has room, and so has this
// one again later.
func TestNobodyUsesUpTheRoomForFates(t *testing.T) {
	c := newCauser(t, 9)
	c.hello(wire.Hello{Member: "a", Causes: true})
	c.hello(wire.Hello{Member: "b", Causes: true})
	number, refused := uint64(0), 0
	tell := func(member string, fates int) (recorded int) {
		ack := wire.Ack{Member: member, Incarnation: 1}
		for range fates {
			number++
			ack.Answers = append(ack.Answers, wire.Answer{
				Decision: control.Decision{Synchronizer: "gsync", Term: 5, Epoch: 1, Number: number}, Name: "s", Target: member,
				Fate: control.Applied, Kind: control.Activate, Predicate: "p", Region: "r", Entry: 1,
			})
		}
		c.now++
		c.core.Step(c.now, &synccore.Input{Kind: synccore.InAck, From: member, Ack: &ack}, &c.out)
		refused = len(c.out.Rejected)
		if refused > 0 && (refused > 1 || c.out.Rejected[0].Reason != monitor.RejectFull || c.out.Rejected[0].From != member) {
			t.Fatalf("%+v", c.out.Rejected)
		}
		return len(c.out.Fates)
	}
	all := 0
	for range control.MaxFates / 256 {
		all += tell("a", 256)
	}
	if all != control.MaxFates || refused != 0 {
		t.Errorf("%d are recorded", all)
	}
	if n := tell("a", 3); n != 0 || refused != 1 {
		t.Errorf("%d more are recorded, %d refusals", n, refused)
	}
	if strings.Contains(c.receipts(), fmt.Sprintf("a 5/%d ", number)) {
		t.Error("what is not recorded has a receipt")
	}
	if n := tell("b", 1); n != 1 || refused != 0 {
		t.Errorf("of another member %d are recorded", n)
	}
	c.now = c.now.Add(61 * time.Minute)
	c.step(synccore.Input{Kind: synccore.InTick})
	c.step(synccore.Input{Kind: synccore.InTick})
	c.hello(wire.Hello{Member: "a", Causes: true})
	if n := tell("a", 3); n != 3 || refused != 0 {
		t.Errorf("an hour later %d are recorded", n)
	}
}
