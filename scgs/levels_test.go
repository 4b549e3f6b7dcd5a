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

// level is a detector in a tree of levels: its members are plain ones, and the
// groups of the level below.
type level struct {
	t      rapid.TB
	d      *scgs.Detector
	above  *level
	member scgs.Member  // of it
	specs  []scgs.Spec  // of the members
	leaves []int        // members of the system, where they are plain
	below  []*level     // or nil there
	values [][]scgs.Ref // by Ref: of each member of the system, 0 if it is not in this tuple
	event  scgs.Event
	sum    scgs.Summary
	runs   bool
	shared []clocksync.Domain
	all    []int // members of the system, here and below
	tells  func(l *level, value []scgs.Ref)
}

// forest draws a tree of up to depth levels for the members of the system, some
// of which may be in no group. It returns the root, all levels bottom up, and the
// level and number of each member.
type forest struct {
	root   *level
	levels []*level // bottom up
	home   []*level // of each member
	place  []scgs.Member
	s      *system
	o      scgs.Options
}

func newForest(t rapid.TB, d draw, s *system, depth int, o scgs.Options) *forest {
	f := &forest{s: s, o: o, home: make([]*level, len(s.domains)), place: make([]scgs.Member, len(s.domains))}
	members := make([]int, len(s.domains))
	for m := range members {
		members[m] = m
	}
	f.root = f.grow(t, d, members, depth)
	return f
}

// grow makes a level of some members of the system.
func (f *forest) grow(t rapid.TB, d draw, members []int, depth int) *level {
	l := &level{t: t, d: scgs.NewDetector(f.o), all: members, values: make([][]scgs.Ref, 1), runs: f.o.Modality == scgs.Definitely}
	groups := make([][]int, d(3))
	if depth == 1 {
		groups = nil
	}
	add := func(spec scgs.Spec, leaf int, below *level) {
		l.specs, l.leaves, l.below = append(l.specs, spec), append(l.leaves, leaf), append(l.below, below)
	}
	for _, m := range members {
		if g := d(len(groups) + 1); g < len(groups) && d(6) > 0 {
			groups[g] = append(groups[g], m)
			continue
		}
		f.home[m], f.place[m] = l, scgs.Member(len(l.specs))
		add(scgs.Spec{Domain: f.s.domains[m]}, m, nil)
	}
	for _, g := range groups {
		if len(g) == 0 {
			continue
		}
		low := f.grow(t, d, g, depth-1)
		low.above, low.member = l, scgs.Member(len(l.specs))
		low.shared = f.outside(g)
		low.d.Share(low.shared...)
		add(scgs.Spec{Group: true}, -1, low)
	}
	for i, m := range l.d.Epoch(1, nil, l.specs) {
		if m != scgs.Member(i) {
			t.Fatalf("member %d is %d", i, m)
		}
	}
	f.levels = append(f.levels, l)
	return l
}

// outside gives the domains that members outside of the group have.
func (f *forest) outside(group []int) []clocksync.Domain {
	var names []clocksync.Domain
	for m, name := range f.s.domains {
		if !slices.Contains(group, m) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (f *forest) put(msg message) scgs.Reason {
	return put(f.home[msg.member].d, f.place[msg.member], msg)
}

// forward lets the level find what it can, and tells the one above.
func (l *level) forward(keep func() bool) {
	for more := true; more; {
		more = l.d.Next(&l.event)
		ref := scgs.Ref(0)
		if more && l.event.Kind == scgs.Opened && !l.event.Partial {
			ref = scgs.Ref(len(l.values))
			l.values = append(l.values, l.value())
		}
		if more && !l.event.Partial && l.tells != nil {
			l.tells(l, l.value())
		}
		if l.above != nil && l.d.Summarize(&l.sum) && keep() {
			if why := l.above.d.Summary(l.member, &l.sum, ref); why != scgs.Accepted {
				l.t.Fatalf("%+v: %v", l.sum, why)
			}
		}
	}
	if l.d.Summarize(&l.sum) && l.above != nil {
		l.t.Fatalf("told twice: %+v", l.sum)
	}
}

// value is the current tuple, in local states.
func (l *level) value() []scgs.Ref {
	var v []scgs.Ref
	set := func(leaf int, r scgs.Ref) {
		for len(v) <= leaf {
			v = append(v, 0)
		}
		v[leaf] = r
	}
	for _, p := range l.d.Witness(nil) {
		if l.below[p.Member] == nil {
			id := p.Ref
			if l.runs { // whose ref changes as it continues
				id = scgs.Ref(p.Seq)
			}
			set(l.leaves[p.Member], id)
			continue
		}
		for leaf, r := range l.below[p.Member].values[p.Ref] {
			if r != 0 {
				set(leaf, r)
			}
		}
	}
	return v
}

func always() bool { return true }

// tell is an event as a detector delivers it, by local states.
type tell struct {
	kind  scgs.Kind
	value string
	step  bool
	span  scgs.Span
}

func record(into *[]tell) func(l *level, value []scgs.Ref) {
	return func(l *level, value []scgs.Ref) {
		*into = append(*into, tell{l.event.Kind, fmt.Sprint(value), l.event.Step, l.event.Span})
	}
}

func lines(all []tell) string {
	var words []string
	for _, f := range all {
		words = append(words, fmt.Sprintf("%v %s step=%v %+v", f.kind, f.value, f.step, f.span))
	}
	return strings.Join(words, "\n  ")
}

func (f *forest) String() string {
	var b strings.Builder
	for i, l := range f.levels {
		fmt.Fprintf(&b, "level %d: members %v", i, l.leaves)
		if l.above != nil {
			fmt.Fprintf(&b, ", member %d of level %d", l.member, slices.Index(f.levels, l.above))
		}
		fmt.Fprintln(&b)
	}
	return b.String() + f.s.String()
}

// TestLevelsAgreeWithOneDetector compares a tree of levels with one detector for
// all members. Where each level tells the one above all that it has after every
// message, the two agree message by message, in all they deliver. Where it is told
// late they agree on what is found once all is told.
func TestLevelsAgreeWithOneDetector(t *testing.T) {
	for _, modality := range []scgs.Modality{scgs.Inst, scgs.Definitely} {
		for _, depth := range []int{2, 3} {
			for _, hazards := range []hazards{
				{longer: 12, ends: 20},
				{longer: 12, ends: 20, infinite: 20},
				{longer: 4, ends: 20, infinite: 50, grid: 4},
				{longer: 12, ends: 20, loss: 15, duplicates: 10},
				{longer: 12, ends: 20, loss: 5, infinite: 10, restarts: 10},
			} {
				t.Run(fmt.Sprintf("%v/levels=%d/loss=%d/infinite=%d/restarts=%d", modality, depth, hazards.loss, hazards.infinite, hazards.restarts), func(t *testing.T) {
					systems, shared, found, across := 0, 0, 0, 0
					forSystems(t, func(t rapid.TB, d draw) {
						s := newSystemOf(2+d(5), 1+d(4), d, hazards)
						if hazards.loss == 0 {
							s.promiseEnds(d)
						}
						f := newForest(t, d, s, depth, scgs.Options{Modality: modality})
						n := f.agrees(t, d, hazards)
						systems++
						found += n
						if f.shares() {
							shared++
							across += n
						}
					})
					t.Logf("%d systems, %d with groups that share a clock; %d global states, %d of these", systems, shared, found, across)
					if across == 0 {
						t.Fatal("nothing was found where a clock is shared")
					}
				})
			}
		}
	}
}

// promiseEnds makes some of the evidence say that the state lasts until it ends.
func (s *system) promiseEnds(d draw) {
	for i := range s.arrived {
		msg := &s.arrived[i]
		if msg.action != evidence || d(4) > 0 {
			continue
		}
		stream := s.streams[msg.member]
		for _, next := range stream[slices.IndexFunc(stream, func(m message) bool { return m.ref == msg.ref })+1:] {
			if next.action == restart {
				break
			}
			if next.action != evidence {
				msg.at.Within.Earliest = next.at.Within.Earliest
				msg.at.Within.Latest = max(msg.at.Within.Latest, msg.at.Within.Earliest)
				break
			}
		}
	}
}

func (f *forest) agrees(t rapid.TB, d draw, h hazards) int {
	flat := newForest(t, d, f.s, 1, f.o)
	prompt, often := d(2) == 0, 1+d(100)
	var got, want []tell
	f.root.tells, flat.root.tells = record(&got), record(&want)
	for i, msg := range f.s.arrived {
		if f.o.Modality == scgs.Definitely && msg.action == start && !msg.holds {
			msg.action = end
		}
		if a, b := f.put(msg), flat.put(msg); a != b {
			t.Fatalf("%v: %v below, %v flat", msg, a, b)
		}
		flat.root.forward(always)
		all := prompt || i == len(f.s.arrived)-1 || d.chance(often)
		for _, l := range f.levels {
			if all || d.chance(often) {
				l.forward(always)
			}
		}
		if all && !agree(got, want, prompt, h.infinite > 0) {
			t.Fatalf("after %d messages, prompt=%v: levels found\n  %s\nflat\n  %s\n%v", i+1, prompt, lines(got), lines(want), f)
		}
	}
	return len(got)
}

// agree compares what was delivered. Where a state ended without an upper bound
// the levels may know a better one, from what followed it. Where of two states that
// may have ended first one has ended, levels do not wait for the other.
func agree(got, want []tell, prompt, infinite bool) bool {
	if n := len(want); len(got) == n+1 && got[n].kind == scgs.Closed {
		got = got[:n]
	}
	return slices.EqualFunc(got, want, func(a, b tell) bool {
		if infinite || a.kind == scgs.Closed {
			a.span.EnvelopeTo = max(a.span.EnvelopeTo, b.span.EnvelopeTo)
		}
		return a == b || !prompt && a.kind == b.kind && a.value == b.value
	})
}

// shares reports whether a group uses a clock that members outside use too.
func (f *forest) shares() bool {
	for _, l := range f.levels {
		for _, m := range l.all {
			if slices.Contains(f.outside(l.all), f.s.domains[m]) {
				return true
			}
		}
	}
	return false
}

// TestNeedsReachTheMembersOfGroups answers what each level lacks, through those
// below it down to the members, until none lacks anything. Then the root has found
// what one detector finds whose needs were answered.
func TestNeedsReachTheMembersOfGroups(t *testing.T) {
	asked := 0
	forSystems(t, func(t rapid.TB, d draw) {
		s := newSystemOf(2+d(4), 1+d(4), d, hazards{ends: 5})
		s.arrived = s.arrived[:d(len(s.arrived)+1)]
		f, flat := newForest(t, d, s, 3, scgs.Options{}), newForest(t, d, s, 1, scgs.Options{})
		var got, want []tell
		f.root.tells, flat.root.tells = record(&got), record(&want)
		for _, tree := range []*forest{f, flat} {
			for _, msg := range s.arrived {
				tree.put(msg)
			}
			for now := clocksync.Instant(1000); tree.answer(now); now++ {
				asked++
				if now == 2000 {
					t.Fatalf("needs without end: %v\n%v", tree.root.d.Needs(nil), tree)
				}
			}
		}
		if !agree(got, want, false, false) {
			t.Fatalf("levels found\n  %s\nflat\n  %s\n%v", lines(got), lines(want), f)
		}
	})
	if asked == 0 {
		t.Fatal("nothing was asked")
	}
}

// answer gives evidence where the root lacks any, and reports whether it did.
func (f *forest) answer(now clocksync.Instant) bool {
	answered := false
	answer := func(m scgs.Member, l *level, n scgs.Need) {
		if n.Seq == 0 {
			return // nothing was reported
		}
		leaf := l.leaves[m]
		at := clocksync.Stamp{Domain: f.s.domains[leaf], Mono: 10_000 + now, Within: clocksync.Exactly(now)}
		if at.Mono <= n.AfterMono || now <= n.AfterTime || n.Newest.Domain != at.Domain {
			l.t.Fatalf("need %+v is of no use for member %d\n%v", n, leaf, f)
		}
		if why := l.d.Evidence(m, n.Seq, at); why != scgs.Accepted {
			l.t.Fatalf("%+v: %v", n, why)
		}
		answered = true
	}
	for _, l := range f.levels {
		l.forward(always)
		l.ask(l.d.Needs(nil), answer)
	}
	return answered
}

// ask passes needs down to the plain members.
func (l *level) ask(needs []scgs.Need, answer func(m scgs.Member, l *level, n scgs.Need)) {
	for _, n := range needs {
		if low := l.below[n.Member]; low != nil {
			low.ask(low.d.NeedsFor(nil, n), answer)
		} else {
			answer(n.Member, l, n)
		}
	}
}
