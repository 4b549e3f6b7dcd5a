package synccore

import (
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/scgs"
)

// Question asks a machine about itself, as an input that changes nothing. Parts that
// are not asked for cost nothing.
type Question struct {
	Status  bool    // everything, for people: not for each step
	Explain string  // a predicate, or config.BalanceName; empty: not asked
	Counts  bool    // cheap
	Figures bool    // looks at every member and every predicate: not for each step
	Memory  bool    // the variables of the memory
	Run     *RunKey // a run of the program; nil: not asked
}

// RunKey names a run of the program.
type RunKey struct {
	Processor    string // the member that has it
	Program, Run uint64 // the id of the execution and the number of the run
}

// Answer is the answer to a question.
type Answer struct {
	Status      monitor.Status       // shares nothing with the machine
	Explanation *monitor.Explanation // nil: there is no such predicate
	Counts      Counts               // if asked, as each of the others
	Figures     Figures              // at this instant
	// Memory is what the predicates have set so far: Invalid where nothing is known. It
	// is not to be changed, and changes with the next step.
	Memory []scgs.Value
	// Of a run: whether there is such a run, its input, and whether its result is there
	// already.
	Found, Handed bool
	Input         string // JSON
}

func (c *Core) answerQuestion(now clocksync.Instant, q *Question, a *Answer) {
	*a = Answer{}
	if q.Status {
		a.Status = c.status(now)
	}
	if q.Explain != "" {
		if e, ok := c.explainPredicate(now, q.Explain); ok {
			a.Explanation = &e
		}
	}
	if q.Counts {
		a.Counts = c.counts()
	}
	if q.Figures {
		a.Figures = c.lookAtFigures()
	}
	if q.Memory {
		a.Memory = c.memory
	}
	if r := q.Run; r != nil {
		if c.exec != nil {
			a.Input, a.Found, a.Handed = c.exec.Run(r.Processor, r.Program, r.Run)
		}
	}
}
