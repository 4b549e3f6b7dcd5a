package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// The waits of a courier.
const (
	attemptWait = time.Second            // for one answer
	againWait   = 100 * time.Millisecond // before the next attempt
	absentLimit = 3 * time.Second        // nobody serves the run, though the server is there
	goneLimit   = 30 * time.Second       // no answer at all; only for workers that nobody started
)

// courier carries a worker's requests to the coordinator, one after the other
// in the order in which they were posted, each until it is answered. It survives
// the loss of the server for as long as that takes.
type courier struct {
	conn    transport
	name    string
	patient bool   // waits for ever: the worker ends with its parent
	voided  func() // is told that the session was void and another one begins

	mu      sync.Mutex
	session string
	number  uint64
	queue   []errand
	ready   chan struct{}
}

// transport carries one request to one answer.
type transport interface {
	Request(ctx context.Context, data []byte) ([]byte, error)
}

// errand is a request under way. The courier calls done with the answer, on its
// own goroutine; with the status void if the session becomes so before.
type errand struct {
	request request
	done    func(reply)
}

var (
	errOver = errors.New("the run has ended")
	errVoid = errors.New("the coordinator has dropped this worker")
	errGone = errors.New("the run is gone: its coordinator does not answer")
)

func newCourier(conn transport, name string, patient bool, voided func()) *courier {
	return &courier{conn: conn, name: name, patient: patient, voided: voided, session: newID(), ready: make(chan struct{}, 1)}
}

// post sends a request later; done may be nil.
func (c *courier) post(r request, done func(reply)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.enqueue(r, done)
}

func (c *courier) enqueue(r request, done func(reply)) {
	c.number++
	r.Name, r.Session, r.Number = c.name, c.session, c.number
	c.queue = append(c.queue, errand{r, done})
	select {
	case c.ready <- struct{}{}:
	default:
	}
}

// ask sends a request and waits for the answer.
func (c *courier) ask(ctx context.Context, r request) (reply, error) {
	answer := make(chan reply, 1)
	c.post(r, func(a reply) { answer <- a })
	select {
	case a := <-answer:
		switch a.Status {
		case statusError:
			return a, fmt.Errorf("%s: %s", r.Op, a.Error)
		case statusVoid:
			return a, errVoid
		default:
			return a, nil
		}
	case <-ctx.Done():
		return reply{}, context.Cause(ctx)
	}
}

// waiting is the number of requests that are not answered.
func (c *courier) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue)
}

// run carries until the context ends, which is no error, or the run does.
func (c *courier) run(ctx context.Context) error {
	for {
		e, ok := c.next(ctx)
		if !ok {
			return nil
		}
		a, err := c.deliver(ctx, e.request)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // The context ended first.
		}
		if err != nil {
			return err
		}
		switch {
		case a.Status == statusOver:
			return errOver
		case a.Status == statusVoid:
			c.renew(e.request.Session)
		case c.finish(e.request):
			e.tell(a)
		}
	}
}

// next waits for the oldest request; it stays in the queue until it is answered.
func (c *courier) next(ctx context.Context) (errand, bool) {
	for {
		c.mu.Lock()
		if len(c.queue) > 0 {
			defer c.mu.Unlock()
			return c.queue[0], true
		}
		c.mu.Unlock()
		select {
		case <-c.ready:
		case <-ctx.Done():
			return errand{}, false
		}
	}
}

// finish takes an answered request out of the queue; false if its session is
// over.
func (c *courier) finish(r request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 || c.queue[0].request.Session != r.Session || c.queue[0].request.Number != r.Number {
		return false
	}
	c.queue = c.queue[1:]
	return true
}

// hello is how a session begins.
func (c *courier) hello() request {
	return request{Op: opHello, PID: os.Getpid(), Outside: !c.patient}
}

// renew begins a new session if the present one is void. What waits in the
// queue is dropped: it speaks of leases that are no longer the worker's.
func (c *courier) renew(void string) {
	c.mu.Lock()
	if c.session != void {
		c.mu.Unlock()
		return
	}
	dropped := c.queue
	c.session, c.number, c.queue = newID(), 0, nil
	c.enqueue(c.hello(), nil)
	c.mu.Unlock()
	for _, e := range dropped {
		e.tell(reply{Status: statusVoid})
	}
	c.voided()
}

func (e *errand) tell(a reply) {
	if e.done != nil {
		e.done(a)
	}
}

// deliver repeats a request until it is answered, ctx ends, or the run is gone.
func (c *courier) deliver(ctx context.Context, r request) (reply, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return reply{}, fmt.Errorf("%s: %w", r.Op, err)
	}
	since, absent := time.Now(), time.Time{}
	for {
		a, err := c.attempt(ctx, data)
		now := time.Now()
		switch {
		case err == nil:
			return a, nil
		case ctx.Err() != nil:
			return reply{}, ctx.Err()
		case errors.Is(err, nats.ErrMaxPayload):
			return reply{}, fmt.Errorf("%s: %d bytes are more than the server takes: raise its max_payload to 64 KiB: %w", r.Op, len(data), err)
		case !errors.Is(err, nats.ErrNoResponders):
			absent = time.Time{}
		case absent.IsZero():
			absent = now
		case !c.patient && now.Sub(absent) > absentLimit:
			return reply{}, errGone
		}
		if !c.patient && now.Sub(since) > goneLimit {
			return reply{}, errGone
		}
		pause(ctx, againWait)
	}
}

func (c *courier) attempt(ctx context.Context, data []byte) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptWait)
	defer cancel()
	answer, err := c.conn.Request(ctx, data)
	if err != nil {
		return reply{}, err
	}
	var a reply
	if err := json.Unmarshal(answer, &a); err != nil {
		return reply{}, fmt.Errorf("answer of the coordinator: %w", err)
	}
	return a, nil
}

// pause waits, or returns at once when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
