package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/examples/tsp/bnb"
)

// session is what the coordinator knows of a worker.
type session struct {
	outside  bool // the run has not started it
	progress progress
}

// serve takes requests on the data connection until it is closed.
func (c *coordinator) serve(nc *nats.Conn) error {
	answer := func(to func([]byte) []byte) nats.MsgHandler {
		return func(m *nats.Msg) {
			if a := to(m.Data); a != nil {
				_ = m.Respond(a) // If it is lost, the request comes again.
			}
		}
	}
	if _, err := nc.Subscribe(dataSubject(c.info.ID), answer(c.handle)); err != nil {
		return fmt.Errorf("data connection: %w", err)
	}
	if _, err := nc.Subscribe(runsSubject, answer(c.announce)); err != nil {
		return fmt.Errorf("data connection: %w", err)
	}
	if err := nc.FlushTimeout(connectWait); err != nil {
		return fmt.Errorf("data connection: %w", err)
	}
	return nil
}

// announce tells a worker that looks for runs of this one.
func (c *coordinator) announce([]byte) []byte { return marshal(c.info) }

// handle answers one request.
func (c *coordinator) handle(data []byte) []byte {
	var r request
	if err := json.Unmarshal(data, &r); err != nil {
		return marshal(reply{Status: statusError, Error: "not a request: " + err.Error()})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over && r.Op != opPing {
		return marshal(reply{Status: statusOver})
	}
	if r.Length > 0 || len(r.Tour) > 0 {
		if err := bnb.Verify(c.in, r.Tour, r.Length); err != nil {
			return failed(err)
		}
		c.improveLocked(r.Name, r.Tour, r.Length)
		c.publishLogged()
	}
	a, err := c.operate(&r)
	if err != nil {
		return failed(err)
	}
	return marshal(a)
}

func failed(err error) []byte { return marshal(reply{Status: statusError, Error: err.Error()}) }

func (c *coordinator) operate(r *request) (a reply, err error) {
	a.Status = statusOK
	switch r.Op {
	case opHello:
		c.sessions[r.Name], c.pids[r.Name] = &session{outside: r.Outside}, r.PID
		c.journal.Info("hello", "worker", r.Name, "pid", r.PID)
		a.Run = c.info
	case opInstance:
		a.Chunk, err = c.chunk(r.Offset)
	case opTour:
		a.Tour, a.Length = c.tour, c.best
	case opImprove:
	case opPing:
		if c.sessions[r.Name] == nil { // It was lost, and is back.
			c.sessions[r.Name] = &session{outside: r.Outside}
		}
		if c.sessions[r.Name].progress = r.Progress; c.over {
			a.Status = statusOver
		}
	default:
		err = fmt.Errorf("unknown operation %q", r.Op)
	}
	return a, err
}

func (c *coordinator) chunk(offset int) ([]byte, error) {
	if offset < 0 || offset >= len(c.file) {
		return nil, errors.New("the instance has no such part")
	}
	return c.file[offset:min(offset+chunkSize, len(c.file))], nil
}

func marshal(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic("tsp: an answer does not encode: " + err.Error())
	}
	return data
}
