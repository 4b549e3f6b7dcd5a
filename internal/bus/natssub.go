package bus

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"
)

// natsSub is a subscription of a natsBus.
type natsSub struct {
	bus  *natsBus
	nats *nats.Subscription
	off  atomic.Bool
	done chan struct{} // Closed when the goroutine of the handler ends.

	once  sync.Once     // For Unsubscribe.
	final atomic.Uint64 // Messages dropped; nats.go forgets it with the subscription.
}

func (b *natsBus) Subscribe(subject string, limits Limits, handle Handler) (Subscription, error) {
	if err := checkSubject(subject, true); err != nil {
		return nil, failed("subscribe", subject, err)
	}
	s, err := b.subscribe(subject, limits.withDefaults(), handle)
	if err != nil {
		return nil, failed("subscribe", subject, b.translate(err, 0))
	}
	return s, nil
}

func (b *natsBus) subscribe(subject string, limits Limits, handle Handler) (*natsSub, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closing {
		return nil, ErrClosed
	}
	s := &natsSub{bus: b, done: make(chan struct{})}
	sub, err := b.nc.Subscribe(subject, func(m *nats.Msg) {
		if s.off.Load() {
			return
		}
		handle(Message{Subject: m.Subject, Reply: m.Reply, Data: m.Data})
	})
	if err != nil {
		return nil, err
	}
	s.nats = sub
	sub.SetClosedHandler(func(string) { close(s.done) })
	if err := sub.SetPendingLimits(limits.Messages, limits.Bytes); err != nil {
		return nil, err // Closed meanwhile.
	}
	go s.watch(sub.StatusChanged(nats.SubscriptionSlowConsumer))
	b.subs = append(b.subs, s)
	return s, nil
}

// watch reports the beginning of every loss; it ends with the subscription.
func (s *natsSub) watch(changes <-chan nats.SubStatus) {
	for {
		select {
		case _, open := <-changes:
			if !open {
				return
			}
			slow := &SlowError{Subject: s.nats.Subject, Dropped: s.Dropped()}
			s.bus.events.put(func() { s.bus.opts.OnError(slow) })
		case <-s.done:
			return
		}
	}
}

func (s *natsSub) Unsubscribe() {
	s.once.Do(func() {
		s.off.Store(true)
		s.final.Store(s.Dropped())
		_ = s.nats.Unsubscribe() // Fails only where the connection is closed.
		s.bus.forget(s)
	})
}

func (b *natsBus) forget(s *natsSub) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.subs = slices.DeleteFunc(b.subs, func(o *natsSub) bool { return o == s })
	b.dropped.Add(s.final.Load())
}

func (s *natsSub) Dropped() uint64 {
	if n, err := s.nats.Dropped(); err == nil {
		return uint64(max(n, 0))
	}
	return s.final.Load()
}
