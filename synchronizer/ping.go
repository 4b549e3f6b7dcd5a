package synchronizer

import (
	"context"
	"errors"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/wire"
)

// answerPing answers a ping with the readings of the reference clock, beside the owner
// of the core: what waits there would widen the bound of whoever asks.
func (s *Synchronizer) answerPing(m bus.Message) {
	arrived := s.clock.Now()
	if !s.leads.Load() { // Another one may.
		return
	}
	_, err := wire.DecodePing(m.Data)
	if err == nil {
		err = s.answer(m, arrived)
	}
	if errors.Is(err, bus.ErrReply) {
		s.noteUnsentReply(m, err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.stats.Malformed++
		s.tally.rejected[rejectReason(err)]++
		return
	}
	s.stats.Pings++
}

// pongBytes is room for most answers, so that none is made after the reading.
const pongBytes = 160

func (s *Synchronizer) answer(m bus.Message, arrived clocksync.Instant) error {
	frame := make([]byte, 0, pongBytes)
	// The timeline comes after both readings: should the machine have slept in
	// between, they bound the offset of the later one as well.
	p := wire.Pong{Arrived: clocksync.Exactly(arrived), Departed: clocksync.Exactly(s.clock.Now()), Drift: s.opt.Drift}
	p.Timeline = s.clock.Timeline()
	frame, err := wire.AppendPong(frame, &p)
	if err != nil {
		return err
	}
	return s.bus.Reply(m, frame)
}

// roundTripPause is how long after a round trip to the server the next one begins. It
// leaves a server that stood still the time for what had come to it.
const roundTripPause = 100 * time.Millisecond

// roundTrips tells the owner of the core, behind the messages that came before, how far
// it can have heard everything: a server that stands still makes no member silent.
func (s *Synchronizer) roundTrips(ctx context.Context) {
	for ctx.Err() == nil {
		begun := s.opt.now()
		if s.bus.Flush(ctx) == nil {
			s.in.noteRoundTrip(begun)
		}
		select {
		case <-time.After(roundTripPause):
		case <-ctx.Done():
		}
	}
}
