package balance

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/gopegasus/pegasus/clocksync"
)

// Plan is what a strategy decided, and why.
type Plan struct {
	Strategy string            // its name
	At       clocksync.Instant // the instant that was given to Strategy.Plan
	// Verdict is one sentence: whether there is an imbalance and by what numbers,
	// or why nothing can be said.
	Verdict string
	Nodes   []NodeView // in the order of State.Nodes
	// Moves are to be carried out in any order, once each.
	Moves []Move
	// Refused are the first refusals among the loads considered or reported, More is how many
	// others there were.
	Refused []Refusal
	More    int // refusals beyond those listed
	// Before and After are the longest queue of a node that was believed, without
	// and with the moves, in seconds; +Inf where work is on a node that has
	// nothing to spare. After is never above Before.
	Before, After float64
	// Again is when a load that was refused because it rests may move;
	// clocksync.MaxInstant if there is none.
	Again clocksync.Instant
}

// NodeView is a node as the strategy saw it.
type NodeView struct {
	Name      string  // as in the state
	Available float64 // Ind_avail: power x share
	Index     float64 // what imbalance and classes look at
	Class     Class   // before the moves
	Loads     int     // running, waiting and under way to it
	Work      float64 // their weight
	Queue     float64 // seconds they take
	Then      float64 // the same with the moves
	Note      string  // why it was left alone
}

// Move sends one load to another node.
type Move struct {
	Load, From, To string  // names, as in the state
	Weight, Size   float64 // of the load, in the units of the state
	// Rank is equation 3.2, of Of loads that could move; Attraction and Deviation
	// are its terms. Only the PEGASUS strategy has them.
	Rank, Attraction, Deviation float64
	Of                          int // how many loads could move
	// Quality is equation 3.3, the highest of the Targets underloaded nodes that
	// passed the checks; Pull and Spare are its terms.
	Quality, Pull, Spare float64
	Targets              int // how many underloaded nodes passed the checks
	// Alone is set for a load too large for its node: the seconds it would take
	// there, above Fair, those that all work takes on all nodes.
	Alone, Fair float64
	// The queues of both nodes in seconds, before and after; ToAfter counts the
	// transfer.
	FromBefore, FromAfter, ToBefore, ToAfter float64
}

// Reason is why something was refused.
type Reason uint8

// The reasons.
const (
	BadNode  Reason = iota // the node's report cannot be believed or used
	BadLoad                // the load's report cannot be used
	NoGain                 // the target's queue would not stay shorter by the margin
	NoTarget               // no underloaded node, or no way to one
	Resting                // the load moved a short while ago
	NoReturn               // the load would go back where it came from
	Unsent                 // the order to its node has no room for it
	Declined               // its node was ordered to move it, and did not
)

// String is the word for a reason.
func (r Reason) String() string {
	return [...]string{"bad node", "bad load", "no gain", "no target", "resting", "no return", "unsent", "declined"}[r]
}

// Refusal is something that a strategy did not do, and why. Fields that do not
// apply are empty.
type Refusal struct {
	Load, From, To string // names; From is where the load is, To where it would have gone
	Reason         Reason // the kind of refusal
	Detail         string // the numbers behind it, one line
}

// String is one line.
func (r *Refusal) String() string {
	var b strings.Builder
	b.WriteString("refused")
	if r.Load != "" {
		b.WriteString(" " + r.Load)
	}
	if r.From != "" {
		b.WriteString(" on " + r.From)
	}
	if r.To != "" {
		b.WriteString(" to " + r.To)
	}
	return b.String() + ": " + r.Reason.String() + ": " + r.Detail
}

// String is one line that says why this load and why that target.
func (m *Move) String() string {
	return fmt.Sprintf("move %s (%s) from %s to %s: %s", m.Load, formatShort(m.Weight), m.From, m.To, m.Why())
}

// Why says why this load, and why that target.
func (m *Move) Why() string {
	var b strings.Builder
	if m.Of > 0 {
		fmt.Fprintf(&b, "rank %s is the least acceptable of %d (attraction %s, deviation %s), quality %s the highest acceptable of %d (attraction %s, availability %s); ",
			formatShort(m.Rank), m.Of, formatShort(m.Attraction), formatShort(m.Deviation), formatShort(m.Quality), m.Targets, formatShort(m.Pull), formatShort(m.Spare))
	}
	if m.Alone > 0 {
		fmt.Fprintf(&b, "it alone would take %s on %s, and all work takes all nodes %s; ", formatSeconds(m.Alone), m.From, formatSeconds(m.Fair))
	}
	fmt.Fprintf(&b, "%s %s -> %s, %s %s -> %s", m.From, formatSeconds(m.FromBefore), formatSeconds(m.FromAfter), m.To, formatSeconds(m.ToBefore), formatSeconds(m.ToAfter))
	return b.String()
}

// String explains the plan: the verdict, a table of the nodes, the moves, what
// was refused. docs/balance.md tells how to read it.
func (p *Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s at %s: %s\n", p.Strategy, formatSeconds(float64(p.At)/1e9), p.Verdict)
	b.WriteString(p.Details())
	return b.String()
}

// Details is String without its first line, of strategy, instant and verdict.
func (p *Plan) Details() string {
	var b strings.Builder
	fmt.Fprintf(&b, "longest queue %s, with %d moves %s\n", formatSeconds(p.Before), len(p.Moves), formatSeconds(p.After))
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprint(w, "NODE\tCLASS\tINDEX\tAVAILABLE\tLOADS\tWORK\tQUEUE\tTHEN\n")
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Note != "" {
			_, _ = fmt.Fprintf(w, "%s\tleft alone: %s\n", n.Name, n.Note)
			continue
		}
		_, _ = fmt.Fprintf(w, "%s\t%v\t%s\t%s\t%d\t%s\t%s\t%s\n", n.Name, n.Class, formatShort(n.Index), formatShort(n.Available), n.Loads, formatShort(n.Work), formatSeconds(n.Queue), formatSeconds(n.Then))
	}
	_ = w.Flush() // A Builder does not fail.
	for i := range p.Moves {
		b.WriteString(p.Moves[i].String() + "\n")
	}
	for i := range p.Refused {
		b.WriteString(p.Refused[i].String() + "\n")
	}
	if p.More > 0 {
		fmt.Fprintf(&b, "and %d more refused\n", p.More)
	}
	return b.String()
}

// formatShort gives three digits.
func formatShort(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) }

func formatSeconds(x float64) string {
	if math.IsInf(x, 1) {
		return "without end"
	}
	return formatShort(x) + "s"
}
