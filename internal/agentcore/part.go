package agentcore

import (
	"fmt"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/wire"
)

// parting is where a member stands that is about to leave.
type parting struct {
	had      uint64 // the number of the newest decision that it has had a signal of
	begins   bool   // it says so in its hellos
	said     bool   // it has, and was not answered yet
	answered bool
	next     uint64 // of the answer: the number of the report that is expected
	untold   uint64 // of the answer: signals that may not have reached the others
}

// checkLeave asks whether the member may leave, and says what it waits for; "" if it may.
func (c *Core) checkLeave(now clocksync.Instant) string {
	p := &c.parting
	known := c.seq == 0 && p.next == 0 || p.next == c.seq+1
	switch {
	case c.left || p.answered && known && p.untold == 0:
		return ""
	case !c.welcome:
		return "the synchronizer has not taken it in again"
	case c.since != clocksync.MaxInstant:
		c.owed = true
	case !p.begins && c.asks: // The answer to that hello does not count.
	case !p.said:
		p.begins = true
		c.helloAgain(now)
	}
	switch {
	case !p.answered:
		return "the synchronizer has not answered"
	case known:
		return fmt.Sprintf("%d signals to other members may not have arrived", p.untold)
	}
	return fmt.Sprintf("the synchronizer has not acknowledged its newest state, %d", c.seq)
}

// takeAnswer takes the answer to a hello.
func (p *parting) takeAnswer(w *wire.Welcome) {
	if p.said {
		p.said, p.answered, p.next, p.untold = false, true, w.NextSeq, w.Untold
	}
}
