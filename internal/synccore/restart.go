package synccore

import (
	"fmt"

	"github.com/gopegasus/pegasus/clocksync"
)

// Restart is how a machine is hosted that goes on with the program of one whose
// process has ended.
type Restart struct {
	Term      uint64             `json:"term"`                // larger than that before
	Reference clocksync.Domain   `json:"reference,omitempty"` // Options.Reference
	Timeline  clocksync.Timeline `json:"timeline,omitempty"`  // Options.Timeline
	Relative  bool               `json:"relative,omitempty"`  // Options.Relative
}

// options are those of the new life.
func (r *Restart) options() Options {
	return Options{Term: r.Term, Reference: r.Reference, Timeline: r.Timeline, Relative: r.Relative}
}

// restart begins a new life with nothing of the old one but the program: which
// runs have ended, and with what, and which were started where. What goes on is
// found again in the states of the members that come back; those that do not are
// lost after the time of silence.
//
// The end of a program that has ended is told once more.
func (c *Core) restart(r *Restart, out *Output) {
	if r.Term <= c.opt.Term {
		panic(fmt.Sprintf("synccore: restart in term %d after term %d", r.Term, c.opt.Term))
	}
	exec, now, formed := c.exec, c.now, c.begun
	*c = *New(c.plan, r.options())
	c.now, c.stepped, c.looked = now, true, now
	if c.exec = exec; exec != nil {
		exec.Restart(now, formed, c.epochBegun(), &c.done)
		c.programDone(out)
	}
}
