package bus

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// mailbox calls a handler with items, one at a time and in order, on a
// goroutine of its own. What finds no room is refused.
type mailbox[T any] struct {
	limits Limits
	size   func(T) int
	handle func(T)
	done   chan struct{} // Closed when the goroutine ends.

	mu      sync.Mutex
	wake    sync.Cond
	queue   []T
	count   int // Items queued or in the handler; bytes likewise.
	bytes   int
	dropped uint64
	slow    bool // The last item was refused.
	ending  bool // No more items are taken.
	discard bool // Nor are the queued ones handled.
}

func newMailbox[T any](limits Limits, size func(T) int, handle func(T)) *mailbox[T] {
	m := &mailbox[T]{limits: limits, size: size, handle: handle, done: make(chan struct{})}
	m.wake.L = &m.mu
	go m.run()
	return m
}

// newEvents returns a mailbox that calls what it is given.
func newEvents() *mailbox[func()] {
	limits := Limits{Messages: 1024, Bytes: 1024}
	return newMailbox(limits, func(func()) int { return 1 }, func(f func()) { f() })
}

// put queues an item, or drops it where the limits are reached: it returns how
// many were dropped so far, 0 where this one was not, and whether it is the
// first since the last that was taken.
func (m *mailbox[T]) put(item T) (dropped uint64, first bool) {
	size := m.size(item)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ending {
		return 0, false
	}
	if m.count+1 > m.limits.Messages || m.bytes+size > m.limits.Bytes {
		m.dropped++
		first = !m.slow
		m.slow = true
		return m.dropped, first
	}
	m.slow = false
	m.count++
	m.bytes += size
	m.queue = append(m.queue, item)
	if len(m.queue) == 1 {
		m.wake.Signal()
	}
	return 0, false
}

// run takes the whole queue at a time, so that its storage is used in turns.
func (m *mailbox[T]) run() {
	defer close(m.done)
	var batch []T
	for {
		clear(batch)
		batch = m.take(batch[:0])
		if len(batch) == 0 {
			return
		}
		for _, item := range batch {
			if !m.wanted() {
				return
			}
			m.handle(item)
			m.handled(m.size(item))
		}
	}
}

// take waits for items and returns them; none when the mailbox has ended.
func (m *mailbox[T]) take(empty []T) []T {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.queue) == 0 && !m.ending {
		m.wake.Wait()
	}
	batch := m.queue
	m.queue = empty
	return batch
}

func (m *mailbox[T]) wanted() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.discard
}

func (m *mailbox[T]) handled(size int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count--
	m.bytes -= size
}

// end lets the goroutine finish, after the queued items or, to discard them,
// after the one in the handler. It does not wait.
func (m *mailbox[T]) end(discard bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ending = true
	m.discard = m.discard || discard
	m.wake.Signal()
}

func (m *mailbox[T]) losses() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dropped
}

// running is a subscription whose goroutine has not ended.
type running struct {
	subject string
	done    <-chan struct{}
}

// waitFor returns nil when all have ended, else names those that have not when
// ctx is done.
func waitFor(ctx context.Context, all []running) error {
	var names []string
	for _, r := range all {
		select {
		case <-r.done:
			continue
		default:
		}
		select {
		case <-r.done:
		case <-ctx.Done():
			names = append(names, strconv.Quote(r.subject))
		}
	}
	if names == nil {
		return nil
	}
	return fmt.Errorf("bus: close: %w: %s", ErrDrainTimeout, strings.Join(names, ", "))
}
