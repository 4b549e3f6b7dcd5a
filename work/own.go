package work

import (
	"context"
	"errors"
	"fmt"

	"github.com/gopegasus/pegasus/balance/local"
	"github.com/gopegasus/pegasus/internal/workcore"
)

// Transport carries the messages between the members of a space. Each message may be lost, doubled, late and out of
// order; no result is wrong for it. The methods may be called from any goroutine.
type Transport interface {
	// Publish sends a message of at most 64 KiB to the member that has subscribed to the subject. It must
	// not wait for that member, and must not keep data.
	Publish(subject string, data []byte) error
	// Subscribe has handle called with the messages on a subject, one at a time. A token * of the subject
	// stands for any token; tokens are separated by dots. The messages on one subject are from one member, which
	// its last token names: a transport must let no other one send there.
	Subscribe(subject string, handle func(subject string, data []byte)) error
	// Flush returns once the subscriptions so far are effective.
	Flush(ctx context.Context) error
	// Close ends all calls of handle. The space calls it once.
	Close() error
}

// Over has the space send its messages by a transport of the program's own instead of NATS. States and the end of a
// phase travel over NATS still. All members of the space use transports that reach each other. With store: jetstream
// Open refuses it.
func Over(t Transport) Option {
	if t == nil {
		return Option{err: errors.New("work: the transport is nil: leave Over out")}
	}
	return Option{set: func(s *Space) { s.conn = t }}
}

// Strategy has this member use a strategy of the program's own instead of the strategy of the section. The space calls it under a
// lock, one call at a time; it must not call the space. Members may have different strategies.
func Strategy(strategy local.Local) Option {
	if strategy == nil {
		return Option{err: errors.New("work: the strategy is nil: leave Strategy out")}
	}
	return Option{set: func(s *Space) { s.strategy = strategy }}
}

// Slots has this member run n tasks at a time, 0 to 1024, instead of as many as the section says. With 0 it runs none: it
// keeps the tasks that its program puts until others ask for them.
func Slots(n int) Option {
	if n < 0 || n > maxSlots {
		return Option{err: fmt.Errorf("work: slots: %d tasks at a time: use 0 to %d", n, maxSlots)}
	}
	return Option{set: func(s *Space) { s.slots = n }}
}

// maxSlots is the largest value of the key slots, too.
const maxSlots = 1024

// Fetch has this member ask another member for at most n tasks, whatever its strategy does: the program obeys a signal. The
// strategy of the other member decides how many it gives, and whether it splits a bag. Fetch does not wait for the answer.
// A member that has not answered before is not asked again, nor is a member that is no neighbour.
func (s *Space) Fetch(from string, n int) error { return s.demand("fetch from", from, n, false) }

// Give has this member offer another one n tasks. The other one takes the offer if its strategy does, and asks for them; then
// the strategy of this member decides as for [Space.Fetch].
func (s *Space) Give(to string, n int) error { return s.demand("give to", to, n, true) }

func (s *Space) demand(what, member string, n int, offer bool) error {
	if n < 1 {
		return fmt.Errorf("work: %s member %q: %d tasks: name 1 or more", what, member, n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return fmt.Errorf("work: %s member %q: %w", what, member, s.err)
	}
	_ = s.step(&workcore.Input{Kind: workcore.InDemand, To: member, Items: n, Active: offer}) // It is never refused.
	s.tell(s.now)
	return nil
}

// Rests returns the rests of the bags of that name that this member has put and that are not done, wherever they
// are: each as it was put or last saved.
func Rests[B any](s *Space, name string) ([]B, error) {
	s.mu.Lock()
	bodies := s.machine.Rests(name)
	s.mu.Unlock()
	list := make([]B, len(bodies))
	for i, body := range bodies {
		var err error
		if list[i], err = decodeValue[B]("work: a bag of", name, body); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Active tells whether a function works or waits for something, such as an answer or a disk. It works when it begins.
// A function that waits leaves its slot to another task, and does not count as running for the strategy; up to 32 functions of a
// member may wait beside those that work. When it works again it continues at once, although its slot is taken. Active does
// nothing where ctx does not belong to a function that the space runs, and once the function has to return.
func Active(ctx context.Context, active bool) {
	r, _ := ctx.Value(runKey{}).(*run)
	if r == nil {
		return
	}
	s := r.space
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil || s.runs[r.slot] != r {
		return
	}
	_ = s.step(&workcore.Input{Kind: workcore.InActive, Slot: r.slot, Active: active}) // It is never refused.
	s.tell(s.now)
}
