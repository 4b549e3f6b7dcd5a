package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/clocksync/source"
)

// The subjects of bare messages.
const (
	rawReports = "bench.report" // of the rates; a number follows
	rawTaken   = "bench.taken"  // how many of them have come
	rawAsk     = "bench.ask"
	rawAnswer  = "bench.answer"
)

// Bare messages on their way are bounded, far above what the network and the
// server hold, so that none is dropped.
const (
	rawWindow = 20_000
	rawStride = 2_000 // between two acknowledgements
)

// responder is the bare counterpart of a synchronizer: it counts reports and
// answers questions, on a connection to the server in its own process.
type responder struct {
	nc     *nats.Conn
	answer atomic.Pointer[[]byte]
}

func newResponder(url string) (*responder, error) {
	r := &responder{}
	r.answer.Store(new([]byte))
	taken := uint64(0)
	var err error
	r.nc, err = bare(url, map[string]func(*nats.Conn, *nats.Msg){
		rawReports + ".*": func(nc *nats.Conn, _ *nats.Msg) {
			if taken++; taken%rawStride == 0 {
				_ = nc.Publish(rawTaken, binary.LittleEndian.AppendUint64(nil, taken)) // The worker says what it lacks.
			}
		},
		rawAsk: func(nc *nats.Conn, _ *nats.Msg) { _ = nc.Publish(rawAnswer, *r.answer.Load()) },
	})
	return r, err
}

// bare connects to the server and hears some subjects.
func bare(url string, hear map[string]func(*nats.Conn, *nats.Msg)) (*nats.Conn, error) {
	_, options, err := ownServer(url)
	if err != nil {
		return nil, fmt.Errorf("the bare connection: %w", err)
	}
	nc, err := nats.Connect(url, append(options, nats.NoEcho())...)
	if err != nil {
		return nil, fmt.Errorf("the bare connection: %w", err)
	}
	for subject, take := range hear {
		_, failed := nc.Subscribe(subject, func(m *nats.Msg) { take(nc, m) })
		err = errors.Join(err, failed)
	}
	if err = errors.Join(err, nc.Flush()); err != nil {
		nc.Close()
		return nil, fmt.Errorf("the bare connection: %w", err)
	}
	return nc, nil
}

// answerWith sets the size of the answers.
func (r *responder) answerWith(bytes int) {
	payload := make([]byte, bytes)
	r.answer.Store(&payload)
}

func (r *responder) close() { r.nc.Close() }

// rawClient is the bare counterpart of the members in a worker: as many
// connections, one goroutine that sends.
type rawClient struct {
	conns    []*nats.Conn
	subjects []string
	sent     uint64
	taken    atomic.Uint64
	more     chan struct{} // capacity 1
	answered chan struct{} // capacity 1
}

func newRawClient(url string, connections int) (*rawClient, error) {
	c := &rawClient{more: make(chan struct{}, 1), answered: make(chan struct{}, 1)}
	hear := map[string]func(*nats.Conn, *nats.Msg){
		rawTaken: func(_ *nats.Conn, m *nats.Msg) {
			c.taken.Store(binary.LittleEndian.Uint64(m.Data))
			notify(c.more)
		},
		rawAnswer: func(*nats.Conn, *nats.Msg) { notify(c.answered) },
	}
	for i := range connections {
		nc, err := bare(url, hear)
		if err != nil {
			c.close()
			return nil, err
		}
		c.conns, c.subjects = append(c.conns, nc), append(c.subjects, fmt.Sprintf("%s.m%d", rawReports, i))
		hear = nil // The first one hears for all.
	}
	return c, nil
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (c *rawClient) close() {
	for _, nc := range c.conns {
		nc.Close()
	}
}

// rate sends messages over some of the connections in turn, and counts what has arrived.
func (c *rawClient) rate(ctx context.Context, q request) (figures, error) {
	payload := make([]byte, q.Bytes)
	began, first := source.Monotonic(), c.taken.Load()
	until := began.Add(q.Time)
	for source.Monotonic() < until {
		for c.sent-c.taken.Load() >= rawWindow {
			if err := await(ctx, c.more); err != nil {
				return figures{}, err
			}
		}
		for range rawStride {
			i := int(c.sent % uint64(q.Members)) //nolint:gosec // A remainder.
			if err := c.conns[i].Publish(c.subjects[i], payload); err != nil {
				return figures{}, err
			}
			c.sent++
		}
	}
	for c.taken.Load() < c.sent {
		if err := await(ctx, c.more); err != nil {
			return figures{}, err
		}
	}
	n := c.sent - first
	return figures{Rate: float64(n) / source.Monotonic().Sub(began).Seconds(), Count: n}, nil
}

// echo measures round trips.
func (c *rawClient) echo(ctx context.Context, q request) (figures, error) {
	payload := make([]byte, q.Bytes)
	return roundTrips(q, func() (clocksync.Instant, error) {
		if err := c.conns[0].Publish(rawAsk, payload); err != nil {
			return 0, err
		}
		err := await(ctx, c.answered)
		return source.Monotonic(), err
	})
}

// roundTrips makes round trips for the time of the leg; each tells when it was
// over.
func roundTrips(q request, one func() (over clocksync.Instant, err error)) (figures, error) {
	var took []float64
	for until := source.Monotonic().Add(q.Time); ; {
		began := source.Monotonic()
		if began >= until && len(took) > 0 {
			return percentiles(took), nil
		}
		over, err := one()
		if err != nil {
			return figures{}, err
		}
		took = append(took, float64(over.Sub(began))/1e3)
	}
}

// percentiles sorts the latencies.
func percentiles(took []float64) figures {
	slices.Sort(took)
	at := func(p int) float64 { return took[(len(took)-1)*p/100] }
	return figures{P50: at(50), P99: at(99), Count: uint64(len(took))}
}

func await(ctx context.Context, c <-chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
