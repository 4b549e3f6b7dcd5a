package synchronizer

import (
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/bus"
)

// item is one message for the owner of the core.
type item struct {
	ack    bool
	group  string // of the member, if it is another one
	member string
	frame  []byte
	body   *bus.Message      // a request on the data subject; frame is empty then
	at     clocksync.Instant // when it came, if somebody measures
}

// put hands a message to the owner of the core. At the bound of the inbox it waits,
// which holds up the connection, where what overflows is dropped and counted.
func (s *Synchronizer) put(it item) {
	select {
	case s.in <- it: // Cheaper alone than beside another.
		return
	default:
	}
	select {
	case s.in <- it:
	case <-s.done:
	}
}
