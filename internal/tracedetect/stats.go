package tracedetect

import (
	"fmt"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/internal/tracefile"
)

// Stats counts what a Core has read and emitted.
type Stats struct {
	States, Alive, Leaves uint64 // lines taken
	Restarts              uint64 // incarnations after the first
	Gaps, Lost            uint64 // jumps in the numbers, and how many are missing

	// Lines passed over.
	Duplicates      uint64 // states and leaves whose number came before
	OldAlive        uint64 // alive lines of states that have ended
	OldIncarnations uint64 // of an incarnation before the newest of its participant
	NotMembers      uint64 // of participants that are not members
	Gone            uint64 // of members that had left for ever

	Emitted  uint64 // global states
	Filtered uint64 // those on which Options.When does not hold
	Partial  uint64 // certain tuples that are none, since a member is UNKNOWN

	// The widths of the intervals of reference time that have both ends, and how
	// many have not.
	Bounded           uint64
	Narrowest, Widest time.Duration // 0 if Bounded is 0
	Unbounded         uint64        // intervals without an end
}

// Stats returns the counts so far.
func (c *Core) Stats() Stats { return c.stats }

// count takes in a line that is taken.
func (s *Stats) count(l *tracefile.Line) {
	switch l.Type {
	case tracefile.State:
		s.States++
	case tracefile.Alive:
		s.Alive++
	case tracefile.Leave:
		s.Leaves++
	}
	if !l.Within.Bounded() {
		s.Unbounded++
		return
	}
	width := l.Within.Width()
	if s.Bounded == 0 || width < s.Narrowest {
		s.Narrowest = width
	}
	s.Widest = max(s.Widest, width)
	s.Bounded++
}

// Summary has a line for each kind of figure; faulty is the number of lines that were
// skipped.
func (s *Stats) Summary(faulty uint64) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-14s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("reports", "%d: %d states, %d alive, %d leaves; %d restarts", s.States+s.Alive+s.Leaves, s.States, s.Alive, s.Leaves, s.Restarts)
	line("losses", "%d reports missing in %d gaps", s.Lost, s.Gaps)
	line("duplicates", "%d; %d late alive, %d of old incarnations", s.Duplicates, s.OldAlive, s.OldIncarnations)
	line("ignored", "%d of no member, %d of members that had left, %d faulty", s.NotMembers, s.Gone, faulty)
	line("global states", "%d printed, %d not kept by --when; %d more with an unknown member", s.Emitted, s.Filtered, s.Partial)
	bounds := "none"
	if s.Bounded > 0 {
		bounds = fmt.Sprintf("%v to %v from earliest to latest", s.Narrowest, s.Widest)
	}
	line("bounds", "%s; %d stamps unbounded", bounds, s.Unbounded)
	return b.String()
}
