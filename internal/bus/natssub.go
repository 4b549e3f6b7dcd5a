package bus

import (
	"sync/atomic"

	"github.com/nats-io/nats.go"
)

// natsSub is a subscription of a Bus.
type natsSub struct {
	bus  *Bus
	nats *nats.Subscription
	off  atomic.Bool   // No call of the handler begins.
	done chan struct{} // Closed when the goroutine of the handler ends.
}

// Subscribe has the handler called with every message of a subject that
// matches from now on until Close; for messages of other connections "now" is
// the next Flush that returns nil. Zero limits mean the default ones.
func (b *Bus) Subscribe(subject string, limits Limits, handle Handler) error {
	if err := checkSubject(subject, true); err != nil {
		return failedOn("subscribe", subject, err)
	}
	return failedOn("subscribe", subject, b.translateError(b.subscribe(subject, limits.withDefaults(), handle), 0))
}

func (b *Bus) subscribe(subject string, limits Limits, handle Handler) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closing {
		return ErrClosed
	}
	s := &natsSub{bus: b, done: make(chan struct{})}
	sub, err := b.nc.Subscribe(subject, func(m *nats.Msg) {
		if s.off.Load() {
			return
		}
		handle(Message{Subject: m.Subject, Reply: m.Reply, Data: m.Data})
	})
	if err != nil {
		return err
	}
	s.nats = sub
	sub.SetClosedHandler(func(string) { close(s.done) })
	if err := sub.SetPendingLimits(limits.Messages, limits.Bytes); err != nil {
		return err // Closed meanwhile.
	}
	go s.watch(sub.StatusChanged(nats.SubscriptionSlowConsumer))
	b.subs = append(b.subs, s)
	return nil
}

// watch reports the beginning of every loss; it ends with the subscription.
func (s *natsSub) watch(changes <-chan nats.SubStatus) {
	for {
		select {
		case _, open := <-changes:
			if !open {
				return
			}
			slow := &SlowError{Subject: s.nats.Subject, Dropped: s.countDropped()}
			s.bus.events.putCall(func() { s.bus.opts.OnError(slow) })
		case <-s.done:
			return
		}
	}
}

// endDelivery drops the messages that wait. A running call of the handler continues.
func (s *natsSub) endDelivery() {
	s.off.Store(true)
	dropped := s.countDropped() // nats.go forgets it with the subscription.
	_ = s.nats.Unsubscribe()    // Fails only where the connection is closed.
	s.bus.dropped.Add(dropped)
}

// countDropped counts the messages lost because the handler was too slow, 0 after the end.
func (s *natsSub) countDropped() uint64 {
	n, _ := s.nats.Dropped()
	return uint64(max(n, 0))
}
