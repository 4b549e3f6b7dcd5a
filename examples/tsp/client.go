package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// The waits of a client.
const (
	attemptWait = time.Second            // for one answer
	againWait   = 100 * time.Millisecond // before the next attempt
	absentLimit = 3 * time.Second        // nobody serves the run, though the server is there
	goneLimit   = 30 * time.Second       // no answer at all; only for workers that nobody started
)

// client is a worker's side of the data connection. It survives the loss of the server for as long as that takes.
type client struct {
	conn    transport
	name    string
	patient bool // waits for ever: the worker ends with its parent
}

// transport carries one request to one answer.
type transport interface {
	Request(ctx context.Context, data []byte) ([]byte, error)
}

var (
	errOver = errors.New("the run has ended")
	errGone = errors.New("the run is gone: its coordinator does not answer")
)

// ask repeats a request until it is answered, ctx ends, or the run is gone.
func (c *client) ask(ctx context.Context, r request) (reply, error) {
	r.Name = c.name
	data, err := json.Marshal(r)
	if err != nil {
		return reply{}, fmt.Errorf("%s: %w", r.Op, err)
	}
	since, absent := time.Now(), time.Time{}
	for {
		a, err := c.attempt(ctx, data)
		now := time.Now()
		switch {
		case err == nil && a.Status == statusOver:
			return reply{}, errOver
		case err == nil && a.Status == statusError:
			return reply{}, fmt.Errorf("%s: %s", r.Op, a.Error)
		case err == nil:
			return a, nil
		case ctx.Err() != nil:
			return reply{}, context.Cause(ctx)
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

func (c *client) attempt(ctx context.Context, data []byte) (reply, error) {
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
