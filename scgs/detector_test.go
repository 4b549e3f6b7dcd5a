package scgs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// run is a detector under test and what it has delivered.
type run struct {
	t        rapid.TB
	modality scgs.Modality
	members  int
	d        *scgs.Detector
	first    map[scgs.Ref]scgs.Ref // of runs, by any of a run's refs
	found    []string              // tuples opened, members in order
	parts    [][]scgs.Part         // of the tuples
	ended    []scgs.Part
	heard    map[int]bool // members of whose incarnation something was heard
	late     []scgs.Ref
	taken    []message // but what was late or doubled
	last     []scgs.Part
	event    scgs.Event
	opened   bool
	brief    bool // what is needed is checked elsewhere
}

func newRun(t rapid.TB, o scgs.Options, specs []scgs.Spec) *run {
	r := &run{t: t, modality: o.Modality, members: len(specs), d: scgs.NewDetector(o), heard: map[int]bool{}}
	r.d.Epoch(1, nil, specs)
	return r
}

// detect puts a system's messages into a new detector and calls step after each
// with what was taken so far. What was refused for being late counts as lost.
func detect(t rapid.TB, s *system, m scgs.Modality, step func(r *run, taken []message)) *run {
	return detectWith(t, s, scgs.Options{Modality: m, Ends: true}, step)
}

func detectWith(t rapid.TB, s *system, o scgs.Options, step func(r *run, taken []message)) *run {
	r := newRun(t, o, s.specs())
	r.first, r.brief = s.firsts(), step == nil
	var taken []message
	for _, msg := range s.arrived {
		switch why := r.put(msg); {
		case why == scgs.Late:
			r.late = append(r.late, msg.ref)
		case slices.Contains(r.late, msg.ref) && msg.ref != 0: // doubled
		default:
			taken = append(taken, msg)
		}
		r.drain()
		if step != nil {
			step(r, taken)
		}
	}
	r.d.Finish()
	r.drain()
	r.ended = r.d.Ended(nil)
	r.taken = once(taken)
	return r
}

func (r *run) put(msg message) scgs.Reason {
	switch msg.action {
	case restart:
		r.heard[msg.member] = false
	case start, end, evidence:
		r.heard[msg.member] = true
	case lost:
	}
	if r.modality != scgs.Inst {
		msg = msg.ofRuns()
	}
	return put(r.d, scgs.Member(msg.member), msg)
}

// name gives a state's ref, of a run its first state's.
func (r *run) name(p scgs.Part) string {
	if r.modality != scgs.Inst {
		return fmt.Sprint(r.first[p.Ref])
	}
	return word(p.Ref, p.Unknown)
}

// drain takes all events and checks each against the witness.
func (r *run) drain() {
	for r.d.Next(&r.event) {
		parts := r.d.Witness(nil)
		if want := span(parts); r.event.Span != want {
			r.t.Fatalf("span %+v, want %+v of %v", r.event.Span, want, parts)
		}
		if got, want := r.d.Bound(), bound(parts); got != want {
			r.t.Fatalf("bound %v, want %v of %v", got, want, parts)
		}
		if opened := r.event.Kind == scgs.Opened; opened == r.opened {
			r.t.Fatalf("%v follows itself", r.event.Kind)
		}
		r.opened = !r.opened
		if r.opened {
			r.take(parts)
		}
	}
	if !r.brief {
		r.checkNeeds()
	}
}

// take checks an Opened against the one before it.
func (r *run) take(parts []scgs.Part) {
	var words []string
	var changed []scgs.Change
	partial := false
	for i, p := range parts {
		words = append(words, r.name(p))
		partial = partial || p.Unknown
		if len(r.last) == 0 || p.Start != r.last[i].Start || r.name(p) != r.name(r.last[i]) {
			changed = append(changed, scgs.Change{Member: p.Member, Seq: p.Seq, Ref: p.Ref, Unknown: p.Unknown})
		}
	}
	if r.event.Partial != partial || !slices.Equal(r.event.Changed, changed) {
		r.t.Fatalf("event %+v, want changes %+v", r.event, changed)
	}
	r.found = append(r.found, strings.Join(words, " "))
	if r.event.Index != uint64(len(r.found)) {
		r.t.Fatalf("tuple %d has index %d", len(r.found), r.event.Index)
	}
	r.last = parts
	r.parts = append(r.parts, parts)
}

// checkNeeds compares what the detector lacks with the definition, read off the
// heads.
func (r *run) checkNeeds() {
	parts := r.d.Witness(nil)
	got := r.d.Needs(nil)
	var silent []scgs.Need
	for m := range r.members {
		has := slices.ContainsFunc(parts, func(p scgs.Part) bool { return p.Member == scgs.Member(m) })
		if !has && (r.modality == scgs.Inst || !r.heard[m]) {
			silent = append(silent, scgs.Need{Member: scgs.Member(m), AfterMono: clocksync.MinInstant, AfterTime: clocksync.MinInstant})
		}
	}
	switch {
	case len(parts) < r.members:
		if !slices.Equal(got, silent) {
			r.t.Fatalf("needs %v, want first states %v", got, silent)
		}
		return
	case r.modality == scgs.Possibly: // TestAnsweredNeedsDecide
		return
	}
	if _, open := r.d.Current(); !open {
		if want := needs(parts, parts); !slices.EqualFunc(got, want, sameNeed) {
			r.t.Fatalf("needs %v, want %v of %v", got, want, parts)
		}
		return
	}
	// Also the start of what follows the state that ended first; any of those
	// that ended at once will do.
	first := endedFirst(parts)
	want := func(p scgs.Part) bool {
		next := scgs.Part{Start: p.End}
		if next.Start.Within.Latest == clocksync.MaxInstant {
			next.Start.Within.Latest = next.Start.Within.Earliest
		}
		return slices.EqualFunc(got, needs(parts, append(slices.Clone(parts), next)), sameNeed)
	}
	if len(first) == 0 && len(got) > 0 || len(first) > 0 && !slices.ContainsFunc(first, want) {
		r.t.Fatalf("needs %v while %v is open", got, parts)
	}
}

// sameNeed leaves out the number: a run's part has its first, UNKNOWN has none.
func sameNeed(got, want scgs.Need) bool {
	want.Seq = got.Seq
	return got == want
}

func several(parts []scgs.Part) bool {
	return slices.ContainsFunc(parts, func(p scgs.Part) bool { return p.Start.Domain != parts[0].Start.Domain })
}

// endedFirst gives the closed states with the least end.
func endedFirst(parts []scgs.Part) []scgs.Part {
	closed := slices.DeleteFunc(slices.Clone(parts), func(p scgs.Part) bool { return p.Open })
	end := func(p scgs.Part) clocksync.Instant {
		if several(parts) {
			return p.End.Within.Earliest
		}
		return p.End.Mono
	}
	least := clocksync.MaxInstant
	for _, p := range closed {
		least = min(least, end(p))
	}
	return slices.DeleteFunc(closed, func(p scgs.Part) bool { return end(p) > least })
}

// needs gives the open parts whose evidence is not past all starts.
func needs(parts, starts []scgs.Part) []scgs.Need {
	several := several(parts)
	unbounded := func(p scgs.Part) bool { return p.Start.Within.Latest == clocksync.MaxInstant }
	if several && slices.ContainsFunc(starts, unbounded) {
		return nil
	}
	var found []scgs.Need
	for _, j := range parts {
		n := scgs.Need{Member: j.Member, Seq: j.Seq, AfterMono: clocksync.MinInstant, AfterTime: clocksync.MinInstant, Newest: j.End}
		for _, i := range starts {
			if i.Start.Domain == j.Start.Domain {
				n.AfterMono = max(n.AfterMono, i.Start.Mono)
			} else {
				n.AfterTime = max(n.AfterTime, i.Start.Within.Latest)
			}
		}
		if j.Open && (j.End.Mono <= n.AfterMono || several && j.End.Within.Earliest <= n.AfterTime) {
			found = append(found, n)
		}
	}
	return found
}

func same(t rapid.TB, what string, s *system, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%s: found\n  %s\nwant\n  %s\n%v", what, strings.Join(got, "\n  "), strings.Join(want, "\n  "), s)
	}
}

// TestFindsEveryGlobalStateOnceInOrder compares with enumeration, for up to three
// members after every message: what is delivered early is what is certain then.
func TestFindsEveryGlobalStateOnceInOrder(t *testing.T) {
	forSystems(t, func(t rapid.TB, d draw) {
		s := newSystem(d, hazards{ends: 25, infinite: 30})
		r := newRun(t, scgs.Options{}, s.specs())
		for i, msg := range s.arrived {
			if why := r.put(msg); why != scgs.Accepted {
				t.Fatalf("%v: %v", msg, why)
			}
			r.drain()
			if len(s.domains) <= 3 { // necessary and sufficient at every prefix
				same(t, fmt.Sprintf("after %d messages", i+1), s, r.found, expect(len(s.domains), s.arrived[:i+1]))
			}
		}
		same(t, "at the end", s, r.found, expect(len(s.domains), s.arrived))
	})
}

// TestLossIsUnknown checks that the intervals around what is missing are UNKNOWN,
// and that what is refused is counted.
func TestLossIsUnknown(t *testing.T) {
	gaps := uint64(0)
	forSystems(t, func(t rapid.TB, d draw) {
		s := newSystem(d, hazards{loss: 25, duplicates: 15, ends: 25, infinite: 20})
		r := newRun(t, scgs.Options{}, s.specs())
		for _, msg := range s.arrived {
			r.put(msg)
			r.drain()
		}
		arrived := once(s.arrived)
		same(t, "with UNKNOWN", s, r.found, expect(len(s.domains), arrived))
		st := r.d.Stats()
		gaps += st.Gaps
		if refused := len(s.arrived) - int(st.States+st.Evidence) - ends(arrived); refused != refusals(st) {
			t.Fatalf("%d messages had no effect, counted %d: %+v\n%v", refused, refusals(st), st, s)
		}
	})
	if gaps == 0 {
		t.Fatal("nothing was lost")
	}
}

func ends(arrived []message) int {
	n := 0
	for _, msg := range arrived {
		if msg.action == end {
			n++
		}
	}
	return n
}

func refusals(s scgs.Stats) int {
	n := uint64(0)
	for r := scgs.Duplicate; r <= scgs.NoMember; r++ {
		n += s.Refused(r)
	}
	return int(n)
}

// TestRestartIsUnknownInBetween restarts members on the clocks they were on.
func TestRestartIsUnknownInBetween(t *testing.T) {
	forSystems(t, func(t rapid.TB, d draw) {
		s := newSystem(d, hazards{loss: 10, ends: 15, restarts: 20, infinite: 20})
		r := newRun(t, scgs.Options{}, s.specs())
		for _, msg := range s.arrived {
			if why := r.put(msg); why != scgs.Accepted && msg.action != evidence {
				t.Fatalf("%v: %v", msg, why)
			}
			r.drain()
		}
		same(t, "with restarts", s, r.found, expect(len(s.domains), s.arrived))
	})
}

// truth gives what each state of the system really was, over all incarnations. A
// state that was cut off by a restart lasted to its newest evidence at least.
func truth(s *system) map[scgs.Ref]state {
	all := map[scgs.Ref]state{}
	for _, stream := range s.streams {
		open := scgs.Ref(0)
		for _, msg := range stream {
			if msg.action == restart {
				open = 0
				continue
			}
			if open != 0 {
				now := all[open]
				now.end = msg.at
				all[open] = now
			}
			switch msg.action {
			case start:
				open = msg.ref
				all[open] = state{ref: open, start: msg.at, end: msg.at}
			case end:
				open = 0
			}
		}
	}
	return all
}

// crowd is a detector whose members come and go, by their places in a system.
type crowd struct {
	*run
	s     *system
	now   []clocksync.Domain // of each place
	at    []scgs.Member      // of each place, or -1
	epoch uint64
}

// shuffle begins an epoch in which one place has left or come back.
func (c *crowd) shuffle(place int) {
	c.epoch++
	c.last, c.found = nil, nil
	if m := c.at[place]; m >= 0 {
		c.at[place] = -1
		c.d.Epoch(c.epoch, []scgs.Member{m}, nil)
	} else {
		c.at[place] = c.d.Epoch(c.epoch, nil, []scgs.Spec{{Domain: c.now[place]}})[0]
	}
	if c.opened {
		if !c.d.Next(&c.event) || c.event.Kind != scgs.Closed || c.event.Epoch != c.epoch-1 {
			c.t.Fatalf("epoch %d: %+v, want the old one's global state to end", c.epoch, c.event)
		}
		c.opened = false
	}
}

// TestSoundUnderEverything loses, doubles, restarts, gives up, moves to other
// clocks, removes and adds members, and overflows queues: what is found must be
// true.
func TestSoundUnderEverything(t *testing.T) {
	complete, collapsed, late := 0, uint64(0), uint64(0)
	forSystems(t, func(t rapid.TB, d draw) {
		s := newSystem(d, hazards{loss: 15, duplicates: 10, ends: 15, restarts: 15, moves: 50, losts: 8, infinite: 10})
		c := &crowd{run: newRun(t, scgs.Options{MaxPending: 1 + d(3)}, s.specs()), s: s, now: slices.Clone(s.domains), epoch: 1}
		for m := range s.domains {
			c.at = append(c.at, scgs.Member(m))
		}
		really := truth(s)
		for _, msg := range s.arrived {
			if d.chance(5) {
				c.shuffle(msg.member)
			}
			if msg.action == restart {
				c.now[msg.member] = msg.domain
			}
			put(c.d, c.at[msg.member], msg)
			for c.d.Next(&c.event) {
				c.opened = c.event.Kind == scgs.Opened
				if c.opened && !c.event.Partial {
					complete++
				}
				c.check(really)
			}
		}
		collapsed += c.d.Stats().Collapsed
		late += c.d.Stats().Refused(scgs.Late)
	})
	if complete == 0 || collapsed == 0 || late == 0 {
		t.Fatalf("%d global states, %d states collapsed, %d late: nothing was tried", complete, collapsed, late)
	}
}

// check compares the tuple with the truth.
func (c *crowd) check(really map[scgs.Ref]state) {
	parts := c.d.Witness(nil)
	live := 0
	for _, m := range c.at {
		if m >= 0 {
			live++
		}
	}
	if c.event.Epoch != c.epoch || len(parts) != live {
		c.t.Fatalf("%d parts for %d members in epoch %d: %+v", len(parts), live, c.epoch, c.event)
	}
	for i, p := range parts {
		for _, q := range parts[:i+1] {
			if !p.Unknown && !q.Unknown && !overlap(really[p.Ref], really[q.Ref]) {
				c.t.Fatalf("%v and %v do not overlap\n%v", really[p.Ref], really[q.Ref], c.s)
			}
		}
	}
}

// TestOneDomainIsByReadings: without any bound, members of one domain are
// compared as if all stamps were exact.
func TestOneDomainIsByReadings(t *testing.T) {
	forSystems(t, func(t rapid.TB, d draw) {
		s := newSystem(d, hazards{ends: 25})
		for m := range s.domains {
			s.domains[m] = "one"
		}
		exact := *s
		exact.arrived = slices.Clone(s.arrived)
		for i := range s.arrived {
			m := exact.arrived[i].at.Mono % 1000 // the true time
			s.arrived[i].at = clocksync.Stamp{Domain: "one", Mono: m, Within: clocksync.Unbounded}
			member := clocksync.Domain(fmt.Sprint("alone", s.arrived[i].member))
			exact.arrived[i].at = clocksync.Stamp{Domain: member, Mono: m, Within: clocksync.Exactly(m)}
			exact.domains = nil
		}
		for m := range s.domains {
			exact.domains = append(exact.domains, clocksync.Domain(fmt.Sprint("alone", m)))
		}
		same(t, "by readings", s, detect(t, s, scgs.Inst, nil).found, detect(t, &exact, scgs.Inst, nil).found)
	})
}

// TestAnsweredNeedsDecide answers every need with the least stamp that will do:
// after that only a report can bring something new.
func TestAnsweredNeedsDecide(t *testing.T) {
	forModalities(t, func(t rapid.TB, d draw, m scgs.Modality) {
		s := newSystem(d, hazards{ends: 10, loss: 10})
		r := newRun(t, scgs.Options{Modality: m}, s.specs())
		for _, msg := range s.arrived {
			r.put(msg)
		}
		for range 1 + len(s.arrived) {
			for r.d.Next(&r.event) {
				continue
			}
			missing := r.d.Needs(nil)
			if len(missing) == 0 || missing[0].Seq == 0 {
				return
			}
			before := r.d.Witness(nil)
			for _, n := range missing {
				at := answer(n, before[n.Member], m)
				if why := r.d.Evidence(n.Member, newest(s, n.Member), at); why != scgs.Accepted {
					t.Fatalf("%v to %v: %v", at, n, why)
				}
			}
			if !r.d.Next(&r.event) && slices.EqualFunc(before, r.d.Witness(nil), sameStart) {
				t.Fatalf("%v answered, and nothing follows: %v\n%v", missing, before, s)
			}
		}
		t.Fatalf("needs never end\n%v", s)
	})
}

// answer is the least stamp that is enough.
func answer(n scgs.Need, p scgs.Part, m scgs.Modality) clocksync.Stamp {
	at := clocksync.Stamp{Domain: p.Start.Domain, Mono: max(n.AfterMono+1, p.End.Mono), Within: p.End.Within}
	if m == scgs.Possibly {
		at.Within.Latest = max(n.AfterTime+1, at.Within.Latest)
		return at
	}
	at.Within = clocksync.Exactly(max(n.AfterTime+1, at.Within.Earliest))
	return at
}

func sameStart(a, b scgs.Part) bool { return a.Start == b.Start }

// newest is the number of the last report of a member that arrived.
func newest(s *system, m scgs.Member) uint64 {
	seq := uint64(0)
	for _, msg := range s.arrived {
		if msg.member == int(m) {
			seq = max(seq, msg.seq)
		}
	}
	return seq
}
