package synccore

import (
	"math/bits"

	"github.com/gopegasus/pegasus/internal/plan"
)

// places is a set of predicates, by their places in the plan.
type places []uint64

func newPlaces(n int) places { return make(places, (n+63)/64) }

func (p places) add(i int) { p[i/64] |= 1 << (i % 64) }

func (p places) remove(i int) { p[i/64] &^= 1 << (i % 64) }

// each yields the set in order, as it was when it came to each 64 of them.
func (p places) each(yield func(int) bool) {
	for word, rest := range p {
		for ; rest != 0; rest &= rest - 1 {
			if !yield(64*word + bits.TrailingZeros64(rest)) {
				return
			}
		}
	}
}

// attention says which predicates have to be looked at, so that a global state costs
// nothing for the others.
type attention struct {
	all     places
	readers []places // by field of a state: those whose condition reads it
	// Those that have to be looked at on each global state, whatever it changes, and
	// those with a hold time or a cooldown that runs. Some may be in them that need not.
	restless, waiting places
}

// watchAll looks at all predicates of a plan.
func (a *attention) watchAll(p *plan.Level) {
	n := len(p.Rules)
	*a = attention{all: newPlaces(n), readers: make([]places, len(p.State)), restless: newPlaces(n), waiting: newPlaces(n)}
	for f := range a.readers {
		a.readers[f] = newPlaces(n)
	}
	for i, r := range p.Rules {
		a.all.add(i)
		for f := range a.readers {
			if r.When != nil && r.When.Uses().Fields&(1<<f) != 0 {
				a.readers[f].add(i)
			}
		}
	}
	a.lookAtAll()
}

func (a *attention) lookAtAll() {
	copy(a.restless, a.all)
	copy(a.waiting, a.all)
}

// affectedRules are the predicates in a word of a set whose condition may have another value
// when these fields have changed, or more than fields.
func (a *attention) affectedRules(word int, fields uint64, more bool) (rules uint64) {
	if more {
		return a.all[word]
	}
	for ; fields != 0; fields &= fields - 1 {
		rules |= a.readers[bits.TrailingZeros64(fields)][word]
	}
	return rules
}

// noteStanding takes note of where a predicate stands after it was judged.
func (a *attention) noteStanding(i int, r *plan.Rule, s *ruleState) {
	if s.settled(r) {
		a.restless.remove(i)
	} else {
		a.restless.add(i)
	}
	if s.waits() {
		a.waiting.add(i)
	}
}
