package scgs

import (
	"math"
	"slices"
	"strconv"

	"github.com/gopegasus/pegasus/clocksync"
)

// Answer is a three-valued answer. The zero Answer is Inconclusive: what has not
// been decided must not act.
type Answer uint8

// The answers.
const (
	Inconclusive Answer = iota
	No
	Yes
)

// String gives the word for the answer.
func (a Answer) String() string {
	switch a {
	case Inconclusive:
		return "inconclusive"
	case No:
		return "no"
	case Yes:
		return "yes"
	}
	return "answer(" + strconv.Itoa(int(a)) + ")"
}

// SearchOptions limit a [Search].
type SearchOptions struct {
	// MaxPending is the number of states that may wait for each member. Beyond
	// it many become one UNKNOWN. 0 means 1024.
	MaxPending int
	// MaxCombinations is how many combinations of states may be looked at for
	// one instant. If there are more to look at, the answer is Inconclusive.
	// 0 means 10,000.
	MaxCombinations int
}

const defaultMaxCombinations = 10_000

// Finding is whether a predicate may have held, from an instant of reference
// time to that of the next Finding.
type Finding struct {
	Epoch  uint64            // of the members it is about
	Index  uint64            // within its epoch, from 1
	From   clocksync.Instant // MinInstant in the first, if nothing was delivered before
	Answer Answer            // whether the predicate may have held
}

// Search finds at which instants of reference time any predicate over the
// members' states may have held (the modality Possibly of Cooper and Marzullo
// 1991), by looking at the combinations of states that are possible then. That is
// NP-complete in general (Chase and Garg 1998), but only members that may be in
// several states at that instant make combinations, and when a state becomes
// possible only those with it are new. [Extents] does the same for sums, counts
// and extremes without combinations.
//
// Members of one clock domain are taken as if their clocks were their own: then
// Yes may be said of states that excluded each other, and No is as sure as ever.
// It must not be used by two goroutines at once.
type Search struct {
	possibleStates
	holds  func([]Ref) Answer
	budget int

	answer Answer
	states []Ref    // of each member: one of its window, while Yes that of the witness
	picked []uint64 // their numbers
	wide   []Member // those with more than one state in the window ...
	place  []int32  // ... and where each member stands there, or -1

	changes []windowChange // of the instant reached
	seen    []int32        // how many states of each window count: all, but while new ones are gone through
	turning []Member       // of the combinations looked at
	looked  uint64
}

// NewSearch returns a search without members, before its first epoch. The
// predicate is called by Next with a state of each member, by its number; it is
// the Ref given to Start, or 0 for an UNKNOWN and for numbers of no member. It
// answers Yes if it holds on them, No if not, and Inconclusive if that depends on
// what is UNKNOWN. It must depend on nothing else and not keep the slice.
func NewSearch(predicate func(states []Ref) Answer, o SearchOptions) *Search {
	if o.MaxCombinations <= 0 {
		o.MaxCombinations = defaultMaxCombinations
	}
	budget := min(o.MaxCombinations, math.MaxInt32) // times a window it is still an int
	return &Search{possibleStates: newPossibleStates(o.MaxPending, 0, 0), holds: predicate, budget: budget}
}

// Epoch begins the epoch id with other members, as [Detector.Epoch] does. It
// begins at the instant [Search.Until] that was reached, and its first Finding is
// from there on. Members that join are UNKNOWN before their first report.
func (s *Search) Epoch(id uint64, remove []Member, add []Spec) []Member {
	added := s.begin(id, remove, add)
	n := len(s.members)
	s.states, s.picked, s.seen = make([]Ref, n), make([]uint64, n), make([]int32, n)
	s.place, s.wide = make([]int32, n), s.wide[:0]
	for m := range s.members {
		s.place[m] = -1
		if win := &s.members[m]; win.in > 0 {
			s.seen[m] = win.in
			s.take(Member(m), win.base)
			s.widen(Member(m))
		}
	}
	s.answer = Inconclusive
	return added
}

// Start reports that the member's state seq began at the stamp, as
// [Detector.Start] does. The ref, which may not be 0, is what the predicate is
// given for it.
func (s *Search) Start(m Member, seq uint64, at clocksync.Stamp, ref Ref) Reason {
	if ref == 0 {
		return s.refuse(Malformed)
	}
	return s.report(m, seq, at, candidate{ref: ref})
}

// Next fills f with the next Finding and returns true, or returns false if
// nothing more is certain. Each answers otherwise than the one before; none is
// taken back, and they depend on the order of arrival only where members are lost
// or join, or states exceed MaxPending.
func (s *Search) Next(f *Finding) bool {
	for s.advance() {
		answer := s.judge()
		if s.index > 0 && answer == s.answer {
			continue
		}
		s.answer = answer
		s.index++
		*f = Finding{Epoch: s.epoch, Index: s.index, From: s.reached, Answer: answer}
		return true
	}
	return false
}

// Witness appends to dst, after a Yes and before the next call of Next, the
// states for which the predicate was Yes at its From, by the members' numbers.
func (s *Search) Witness(dst []Ref) []Ref {
	if s.answer != Yes {
		return dst
	}
	return append(dst, s.states...)
}

// Combinations is how often the predicate was called.
func (s *Search) Combinations() uint64 { return s.looked }

// judge brings the windows to the instant reached and answers for it. While the
// states of a witness are possible the answer is Yes, and nothing is looked at.
// Combinations that gave no Yes need not be looked at again until one that gave
// Inconclusive, or was not looked at, may have left.
func (s *Search) judge() Answer {
	left, lost := s.move()
	switch {
	case s.index > 0 && s.answer == Yes && !lost:
		return Yes
	case s.index > 0 && (s.answer == No || s.answer == Inconclusive && !left):
		return s.extend()
	}
	return s.search()
}

// move brings the windows to the instant reached. It reports whether a state has
// left one, and whether one that stands in states has.
func (s *Search) move() (left, lost bool) {
	s.changes = s.changes[:0]
	for m := s.due(); m != none; m = s.due() {
		c := s.shift(m)
		s.changes = append(s.changes, c)
		left = left || c.left
		s.seen[m] = s.members[m].in
		if base := s.members[m].base; c.rebuilt || s.picked[m] < base {
			lost = true
			s.take(m, base)
		}
		s.widen(m)
	}
	return left, lost
}

// take makes the state of that number the member's one in states.
func (s *Search) take(m Member, number uint64) {
	s.picked[m], s.states[m] = number, s.members[m].candidate(number).ref
}

// widen enters the member among the wide ones, or takes it out.
func (s *Search) widen(m Member) {
	i, isWide := s.place[m], s.members[m].in > 1
	switch {
	case isWide && i < 0:
		s.place[m] = int32(len(s.wide))
		s.wide = append(s.wide, m)
	case !isWide && i >= 0:
		last := s.wide[len(s.wide)-1]
		s.wide[i], s.place[last] = last, i
		s.wide, s.place[m] = s.wide[:len(s.wide)-1], -1
	}
}

// search looks at all combinations.
func (s *Search) search() Answer {
	if s.count(none, 0) > s.budget {
		return Inconclusive
	}
	return s.look(none, 0)
}

// extend looks at the combinations that have a new state.
func (s *Search) extend() Answer {
	missing := 0 // members all of whose states are new
	for _, c := range s.changes {
		s.seen[c.member] = s.old(c)
		if s.seen[c.member] == 0 {
			missing++
		}
	}
	answer := s.through(missing)
	for _, c := range s.changes {
		s.seen[c.member] = s.members[c.member].in
	}
	return answer
}

// through goes through the members that have new states, and looks at all new
// ones of each with all states of the members before it and those of the others
// that are not new.
func (s *Search) through(missing int) Answer {
	answer, budget := s.answer, s.budget
	for _, c := range s.changes {
		m, from := c.member, s.seen[c.member]
		in := s.members[m].in
		if from == in {
			continue
		}
		if from == 0 {
			missing--
		}
		if missing == 0 {
			if budget -= s.count(m, from); budget < 0 {
				return Inconclusive
			}
			switch s.look(m, from) {
			case Yes:
				return Yes
			case Inconclusive:
				answer = Inconclusive
			case No:
			}
		}
		s.seen[m] = in
	}
	return answer
}

// old is how many of the member's possible states were so before the change.
func (s *Search) old(c windowChange) int32 {
	if base := s.members[c.member].base; c.first > base {
		return int32(c.first - base)
	}
	return 0
}

// count is the number of combinations of the states that count, of member k of
// those from that place on, or any number above the budget.
func (s *Search) count(k Member, from int32) int {
	n := 1
	if k != none {
		n = int(s.members[k].in - from)
	}
	for _, m := range s.wide {
		if m != k {
			n *= int(s.seen[m])
		}
		if n > s.budget {
			break
		}
	}
	return n
}

// look asks the predicate about the combinations that count counts, until it
// says Yes.
func (s *Search) look(k Member, from int32) Answer {
	s.turning = append(s.turning[:0], s.wide...)
	if k != none && s.place[k] < 0 {
		s.turning = append(s.turning, k)
	}
	for _, m := range s.turning {
		s.reset(m, k, from)
	}
	answer := No
	for more := true; more; more = s.turn(k, from) {
		s.looked++
		switch s.holds(s.states) {
		case Yes:
			return Yes
		case Inconclusive:
			answer = Inconclusive
		case No:
		}
	}
	return answer
}

// turn goes on to the next combination, the last member first.
func (s *Search) turn(k Member, from int32) bool {
	for _, m := range slices.Backward(s.turning) {
		win, next := &s.members[m], s.picked[m]+1
		if m == k && next < win.base+uint64(win.in) || m != k && next < win.base+uint64(s.seen[m]) {
			s.take(m, next)
			return true
		}
		s.reset(m, k, from)
	}
	return false
}

// reset takes the first state of the member that counts.
func (s *Search) reset(m, k Member, from int32) {
	if m != k {
		from = 0
	}
	s.take(m, s.members[m].base+uint64(from))
}
