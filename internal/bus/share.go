package bus

import (
	"context"
	"sync"
)

// Share makes another Bus of the connection of a Bus that [Dial] or [Wrap] has made: with
// subscriptions and callbacks of its own. Close ends those alone; the first bus is to be closed
// last.
func Share(b *Bus, opts Options) (*Bus, error) { return Wrap(b.nc, opts) }

// Pool keeps what several in a process have in common, such as a connection, by a key that
// says what has to be the same for all of them. The first one makes it, and with the last
// it ends. The zero Pool is empty, and may be used by several goroutines.
type Pool[K comparable, V any] struct {
	mu sync.Mutex
	of map[K]*pooled[V]
}

// pooled is a value and how many have it.
type pooled[V any] struct {
	ready chan struct{} // closed when there is one, or an error
	value V
	made  bool
	err   error
	users int
}

// Take returns what there is for a key, or makes it. A caller that comes while another one
// makes it waits for that, and tries itself if that fails. What it returns with the value gives
// it back, once: end is called with the last. ctx bounds the wait.
func (p *Pool[K, V]) Take(ctx context.Context, key K, begin func() (V, error), end func(V) error) (value V, release func() error, err error) {
	for {
		s, first := p.claim(key)
		if first {
			v, err := begin()
			p.mu.Lock()
			s.value, s.err, s.made = v, err, err == nil // Who gives up meanwhile looks at them.
			p.mu.Unlock()
			if err != nil {
				p.leave(key, s)
			}
			close(s.ready)
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			// After a failure the first has been counted out already, and nobody finds the
			// value: to be counted out again does no harm then.
			if p.leave(key, s) {
				_ = end(s.value)
			}
			return value, nil, context.Cause(ctx)
		}
		switch {
		case s.err == nil:
			return s.value, func() error {
				if !p.leave(key, s) {
					return nil
				}
				return end(s.value)
			}, nil
		case first || ctx.Err() != nil:
			return value, nil, s.err
		}
	}
}

// claim counts a caller in, and says whether it is the first, which has to make the value.
func (p *Pool[K, V]) claim(key K) (s *pooled[V], first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = map[K]*pooled[V]{}
	}
	s = p.of[key]
	if s == nil {
		s, first = &pooled[V]{ready: make(chan struct{})}, true
		p.of[key] = s
	}
	s.users++
	return s, first
}

// leave counts a caller out, and reports whether it was the last and there is a value to end.
// After a failure nobody finds it any more.
func (p *Pool[K, V]) leave(key K, s *pooled[V]) (last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.users--
	last = s.users == 0
	if (last || s.err != nil) && p.of[key] == s {
		delete(p.of, key)
	}
	return last && s.made
}
