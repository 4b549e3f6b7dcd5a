package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// Pong is a synchronizer's answer to a ping.
type Pong struct {
	// Reference names the clock whose readings are the reference time: the root
	// of the synchronizer tree. It is the timeline of the samples.
	Reference string
	// Arrived holds the reference time when the ping had arrived, Departed when
	// the answer was sent. For the root both are exact; others know them as well as
	// their own bound does.
	Arrived, Departed clocksync.Interval
	// Drift is how many parts per million that clock may run fast or slow. The two
	// clocks may go apart by the sum of this and the domain's own.
	Drift float64
}

// Ping sends a ping to the synchronizer and waits for its answer.
type Ping func(ctx context.Context) (Pong, error)

// PeerOptions configure [Peer].
type PeerOptions struct {
	// Server names the synchronizer that answers. Required.
	Server string
	// Pings is how many a poll sends, one after the other: at least and by
	// default 8. The one with the least bound counts.
	Pings int
	// Every is the time between two polls: 1 s by default, at least 10 ms.
	Every time.Duration
	// Timeout is how long one answer may take: 1 s by default.
	Timeout time.Duration
	// Drift is how many parts per million the domain's clock may run fast or slow:
	// [DefaultDrift] by default.
	Drift float64
}

// minPings is how many pings find a quick one.
const minPings = 8

// Peer measures the readings of this domain against the synchronizer's clock, by round trips on
// a connection of its own. The bound needs no server and no UTC. It is half the round trip wide
// on each side and widened by drift, whatever the share of the way there and the way back.
//
// A synchronizer whose root changes starts a new timeline; measurements on the old timeline say
// nothing about the new one.
func Peer(ping Ping, o PeerOptions) (Source, error) {
	o.Pings = orDefault(o.Pings, minPings)
	o.Drift = orDefault(o.Drift, DefaultDrift())
	switch {
	case ping == nil || o.Server == "":
		return nil, errors.New("source: peer: it takes a ping and the name of the server that answers")
	case o.Pings < minPings:
		return nil, fmt.Errorf("source: peer: %d pings: at least %d, to find a quick one", o.Pings, minPings)
	case !(o.Drift > 0 && o.Drift <= clocksync.MaxDrift):
		return nil, fmt.Errorf("source: peer: drift %v ppm: it must be above 0 and at most %v", o.Drift, clocksync.MaxDrift)
	}
	one, err := newSingle("peer", o.Every, o.Timeout, "")
	if err != nil {
		return nil, err
	}
	p := &peer{one, o, ping}
	p.server, p.take = o.Server, p.sample
	return p, nil
}

type peer struct {
	single
	options PeerOptions
	ping    Ping
}

// sample is the best of a few pings, and is content with those that were answered.
func (p *peer) sample(ctx context.Context) (clocksync.Sample, error) {
	before := p.clocks.observeClocks()
	best, err := p.best(ctx)
	// The wall clock has no part in it, and may be set meanwhile.
	if err == nil && p.clocks.observeClocks().Change(before) == clocksync.Suspended {
		err = refuseServer(Disturbed, "the machine slept meanwhile")
	}
	best.From = before.Mono
	return best, err
}

// best sends the pings. If the root changes in between, those before are void.
func (p *peer) best(ctx context.Context) (best clocksync.Sample, err error) {
	for range p.options.Pings {
		sample, failed := p.once(ctx)
		switch {
		case failed != nil:
			err = failed
			if ctx.Err() != nil {
				return best, err
			}
		case best.Source == "" || best.Timeline != sample.Timeline || sample.Offset.Width() <= best.Offset.Width():
			best = sample
		}
	}
	if best.Source != "" {
		return best, nil
	}
	return best, err
}

func (p *peer) once(ctx context.Context) (clocksync.Sample, error) {
	waiting, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	sent := p.clocks.mono()
	pong, err := p.ping(waiting)
	received := p.clocks.mono()
	switch {
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(waiting.Err(), context.DeadlineExceeded) || received.Sub(sent) > p.timeout:
		return clocksync.Sample{}, refuseServer(Unanswered, "no answer within %v", p.timeout)
	case err != nil:
		return clocksync.Sample{}, refuseServer(Unavailable, "cannot ping: %w", err)
	case pong.Reference == "" || !pong.Arrived.Bounded() || !pong.Departed.Bounded():
		return clocksync.Sample{}, refuseServer(Unsynchronized, "the synchronizer does not know the reference time")
	}
	drift := p.options.Drift + pong.Drift
	if !(pong.Drift >= 0 && drift <= clocksync.MaxDrift) {
		return clocksync.Sample{}, refuseServer(Implausible, "the synchronizer's clock may drift by %v ppm and this one by %v: at most %v together make a bound", pong.Drift, p.options.Drift, clocksync.MaxDrift)
	}
	e := exchange{sent: sent, arrived: pong.Arrived, departed: pong.Departed, received: received}
	offset, err := e.offsetInterval(drift)
	if err != nil {
		return clocksync.Sample{}, err
	}
	return clocksync.Sample{
		Source:   "peer",
		Timeline: clocksync.Timeline(pong.Reference),
		At:       received,
		Offset:   offset.Widen(granularity),
		Drift:    drift,
		Parts: clocksync.Parts{
			RoundTrip:   e.roundTrip(),
			Precision:   max(pong.Arrived.Width(), pong.Departed.Width()) / 2,
			Granularity: granularity,
		},
	}, nil
}
