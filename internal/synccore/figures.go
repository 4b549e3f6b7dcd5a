package synccore

import (
	"time"

	"github.com/gopegasus/pegasus/balance"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// Counts are counters since the machine was made.
type Counts struct {
	Reports   uint64                    // taken in, without copies
	Gaps      uint64                    // in the reports of members, given up; and before incarnations, told by these
	Collapsed uint64                    // local states given up because too many of a member waited
	Global    uint64                    // global states
	Partial   uint64                    // global states with unknown members
	Runs      monitor.RunCounts         // of the program
	Balance   [strategies]BalanceCounts // by the place of the strategy in balance.Names
}

// strategies is how many balance.Names there are.
const strategies = 4

// BalanceCounts are the plans of the section balance by one strategy, and their moves: the
// ordered moves, and the moves considered or told and refused, in each plan.
type BalanceCounts struct {
	Plans, Moves, Refused uint64 // since the machine was made
}

// countPlan adds a plan.
func (n *BalanceCounts) countPlan(p *balance.Plan) {
	n.Plans++
	n.Moves += uint64(len(p.Moves))
	n.Refused += uint64(len(p.Refused) + p.More) //nolint:gosec // Lengths.
}

// counts returns the counters so far.
func (c *Core) counts() Counts {
	s := c.det.Stats()
	n := Counts{Reports: c.taken, Gaps: s.Gaps + c.between, Collapsed: s.Collapsed, Global: s.Global, Partial: s.Partial, Balance: c.balanced}
	if c.exec != nil {
		n.Runs, _, _ = c.exec.Counts()
	}
	return n
}

// Figures describe the machine at one instant.
type Figures struct {
	Epoch   uint64 // 0: nothing is decided
	Online  int    // members that are there
	Awaited int    // members that an epoch needs
	Waiting int    // signals without a final fate
	// The clocks of the members that are there: those that read the reference clock
	// itself, and the others by status.
	Exact  int
	Clocks [clocksync.Untrusted + 1]int // by clocksync.Status
	// Bound is the widest half width of the newest stamps that have one.
	Bound   time.Duration
	Bounded bool // there is such a stamp
	// Truths counts the predicates by their newest verdict in the epoch, Told those
	// that have one; the others count as unknown.
	Truths [predicates.True + 1]int // by predicates.Truth
	Told   int                      // at most the number of predicates
	// Of a program: runs that have not ended, and blocks that wait for a processor.
	Running, Queued int
}

// lookAtFigures looks at every member and every predicate.
func (c *Core) lookAtFigures() Figures {
	f := Figures{Epoch: c.inForce(), Awaited: c.awaited(), Waiting: c.outbox.Len()}
	for _, m := range c.sorted {
		if !m.gone {
			f.Online++
			c.clockFigures(m, &f)
		}
	}
	for i := range c.states {
		truth := predicates.Unknown
		if s := &c.states[i]; s.told {
			truth = s.truth
			f.Told++
		}
		f.Truths[truth]++
	}
	if c.exec != nil {
		_, f.Running, f.Queued = c.exec.Counts()
	}
	return f
}

func (c *Core) clockFigures(m *member, f *Figures) {
	if c.readsReference(m) {
		f.Exact++
		f.Bounded = true
		return
	}
	f.Clocks[m.quality.Status]++
	within := m.within
	if m.listed && m.multiplexer.read > m.read {
		within = m.multiplexer.within
	}
	if within.Bounded() {
		f.Bounded = true
		f.Bound = max(f.Bound, (within.Width()+1)/2)
	}
}

// heardAt is when the newest of the reports that began a global state was taken
// in; MinInstant if that is not known any more.
func (r *membership) heardAt(changed []scgs.Change) clocksync.Instant {
	at := clocksync.MinInstant
	for i := range changed {
		if ch := &changed[i]; !ch.Unknown {
			at = max(at, r.byIndex[ch.Member].heardAt(ch.Seq))
		}
	}
	return at
}

// heardAt is when a member's report was taken in, if it is still known.
func (m *member) heardAt(seq uint64) clocksync.Instant {
	if m.tookFrom > 0 && seq >= m.tookFrom {
		return m.took
	}
	return clocksync.MinInstant
}
