package synchronizer

import (
	"sync"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/bus"
)

// item is one message for the owner of the core.
type item struct {
	ack    bool
	group  string // of the member, if it is another one
	by     string // the multiplexer that has brought it; empty: it came from the member itself
	member string
	frame  []byte
	body   *bus.Message      // a request on the data subject; frame is empty then
	at     clocksync.Instant // when it came, if somebody measures
}

// inbox is the one way to a core: bounded, many writers, one reader. A writer
// at the bound waits, which holds up its connection, where what overflows is
// dropped and counted.
type inbox struct {
	mu     sync.Mutex
	space  sync.Cond
	items  []item
	limit  int
	closed bool
	// When the newest complete round trip to the server had begun: what the server had then
	// is among the items, or was. 0: there was none.
	reached clocksync.Instant
	ready   chan struct{}
}

func newInbox(limit int) *inbox {
	b := &inbox{limit: limit, ready: make(chan struct{}, 1)}
	b.space.L = &b.mu
	return b
}

func (b *inbox) put(it item) {
	b.mu.Lock()
	for len(b.items) >= b.limit && !b.closed {
		b.space.Wait()
	}
	if !b.closed {
		b.items = append(b.items, it)
	}
	b.mu.Unlock()
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// take returns everything that waits, and the round trip that it is up to; spare is the
// slice it may reuse.
func (b *inbox) take(spare []item) ([]item, clocksync.Instant) {
	b.mu.Lock()
	defer b.mu.Unlock()
	items := b.items
	clear(spare)
	b.items = spare[:0]
	b.space.Broadcast()
	return items, b.reached
}

// reach notes a round trip that is complete.
func (b *inbox) reach(begun clocksync.Instant) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reached = begun
}

// heard is the newest round trip if nothing waits that came before it, else 0.
func (b *inbox) heard() clocksync.Instant {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.items) > 0 {
		return 0
	}
	return b.reached
}

// depth is how many messages wait.
func (b *inbox) depth() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.items)
}

// close lets waiting writers go; what they bring is dropped from now on.
func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.space.Broadcast()
}
