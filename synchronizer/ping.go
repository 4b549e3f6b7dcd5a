package synchronizer

import (
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/wire"
)

// pong answers a ping with the readings of the reference clock, beside the owner
// of the core: what waits there would widen the bound of whoever asks.
func (s *Synchronizer) pong(m bus.Message) {
	arrived := s.clock.Now().Mono
	_, err := wire.DecodePing(m.Data)
	if err == nil {
		err = s.answer(m, arrived)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.stats.Malformed++
		return
	}
	s.stats.Pings++
}

func (s *Synchronizer) answer(m bus.Message, arrived clocksync.Instant) error {
	frame, err := wire.AppendPong(nil, &wire.Pong{
		Timeline: clocksync.Timeline(s.clock.Domain()),
		Arrived:  clocksync.Exactly(arrived), Departed: clocksync.Exactly(s.clock.Now().Mono),
	})
	if err != nil {
		return err
	}
	return s.bus.Reply(m, frame)
}
