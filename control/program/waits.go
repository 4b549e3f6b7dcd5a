package program

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/predicates"
)

// Wait is a construct that has begun and waits for something from outside: a block
// for a node, a switch for a verdict.
type Wait struct {
	Construct int     // its number, see [Compiled.Info]
	Replicas  []int32 // as in [Action]
	For       string  // such as "s.p, which is unknown", for people
}

// Waits lists what waits, oldest first, limit at most, and how many more there are. It
// looks at everything that has begun.
func (r *Run) Waits(limit int) (list []Wait, more int) {
	var found []int32
	for f := range r.frames {
		if x := &r.frames[f]; x.node >= 0 && (x.state == deciding || x.state == queued) {
			found = append(found, int32(f))
		}
	}
	slices.SortFunc(found, func(a, b int32) int { return cmp.Compare(r.frames[a].seq, r.frames[b].seq) })
	for _, f := range found[:min(limit, len(found))] {
		x := &r.frames[f]
		w := Wait{Construct: int(x.node), Replicas: r.appendReplicas(nil, f)}
		w.For = r.waitsFor(f)
		list = append(list, w)
	}
	return list, len(found) - len(list)
}

// waitsFor says what a block or a switch that waits does so for.
func (r *Run) waitsFor(f int32) string {
	n := &r.compiled.nodes[r.frames[f].node]
	if r.frames[f].state == queued {
		return r.lacks(&r.procs[n.proc])
	}
	return r.undecided(n)
}

// oldestWaiting finds the frame that has waited longest, of a construct and its inside; -1 if
// none waits.
func (r *Run) oldestWaiting(f int32) int32 {
	oldest := int32(-1)
	if s := r.frames[f].state; s == deciding || s == queued {
		oldest = f
	}
	for c := r.frames[f].inside.first; c >= 0; c = r.beside[c].next {
		if w := r.oldestWaiting(c); w >= 0 && (oldest < 0 || r.frames[w].seq < r.frames[oldest].seq) {
			oldest = w
		}
	}
	return oldest
}

// undecided says what a switch waits for.
func (r *Run) undecided(n *node) string {
	for _, q := range n.conds {
		if r.truthOf(q) == predicates.Unknown {
			return r.compiled.names[q] + ", which is unknown"
		}
	}
	return "a new verdict on a predicate inside the loop, since the last iteration took no time"
}

// lacks says what a block waits for on a processor.
func (r *Run) lacks(p *proc) string {
	what := "nodes"
	if len(p.want.Labels) > 0 {
		what += " labelled " + strings.Join(p.want.Labels, " and ")
	}
	if p.want.Cores > 0 {
		what += fmt.Sprintf(" with %d cores or more", p.want.Cores)
	}
	there := 0
	for i := range r.hosts {
		if p.fitsHost(&r.hosts[i]) {
			there++
		}
	}
	if need := max(1, p.want.Count); !p.mapped || there == 0 {
		return fmt.Sprintf("%s: %d of %d are there", what, there, need)
	}
	return fmt.Sprintf("%s: %d are there, and none is free", what, len(p.bound))
}
