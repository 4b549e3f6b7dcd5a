package work

import (
	"context"
	"errors"

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

// Strategy has this member use a strategy of the program's own instead of that of the section. The space calls it under a
// lock, one call at a time; it must not call the space. Members may have different strategies.
func Strategy(strategy local.Local) Option {
	if strategy == nil {
		return Option{err: errors.New("work: the strategy is nil: leave Strategy out")}
	}
	return Option{set: func(s *Space) { s.strategy = strategy }}
}

// Active tells whether a function works or waits for something, such as an answer or a disk. It works when it begins.
// One that waits leaves its slot to another task, and does not count as running for the strategy; up to 32 functions of a
// member may wait beside those that work. When it works again it goes on at once, although its slot is taken. Active does
// nothing where ctx is not that of a function that the space runs, and once the function has to return.
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
