package synccore

import (
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/scgs"
)

// Question asks a machine about itself, as an input that changes nothing. Parts that
// are not asked for cost nothing.
type Question struct {
	Status  bool
	Explain string // a predicate, or config.BalanceName; empty: not asked
	Counts  bool
	Figures bool // looks at every member and every predicate: not for each step
	Memory  bool
	Run     *RunKey
}

// RunKey names a run of the program.
type RunKey struct {
	Processor    string
	Program, Run uint64
}

// Answer has what was asked for.
type Answer struct {
	Status      monitor.Status
	Explanation *monitor.Explanation // nil: there is no such predicate
	Counts      Counts
	Figures     Figures
	// Memory is what the predicates have set so far: Invalid where nothing is known. It
	// is not to be changed, and changes with the next step.
	Memory []scgs.Value
	// Of a run: whether there is such a run, its input, and whether its result is there
	// already.
	Found, Handed bool
	Input         string
}

func (c *Core) answer(now clocksync.Instant, q *Question, a *Answer) {
	if q.Status {
		a.Status = c.status(now)
	}
	if q.Explain != "" {
		a.Explanation = nil
		if e, ok := c.explain(now, q.Explain); ok {
			a.Explanation = &e
		}
	}
	if q.Counts {
		a.Counts = c.counts()
	}
	if q.Figures {
		a.Figures = c.figures()
	}
	if q.Memory {
		a.Memory = c.memory
	}
	if r := q.Run; r != nil {
		a.Input, a.Found, a.Handed = "", false, false
		if c.exec != nil {
			a.Input, a.Found, a.Handed = c.exec.Run(r.Processor, r.Program, r.Run)
		}
	}
}
