package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/examples/tsp/bnb"
	"github.com/gopegasus/pegasus/examples/tsp/lease"
)

// session is a worker's account at the coordinator.
type session struct {
	name, id string
	outside  bool   // the run has not started it
	number   uint64 // of the last request
	answer   []byte // to it, in case it is repeated
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

// handle answers one request; nil is no answer.
func (c *coordinator) handle(data []byte) []byte {
	var r request
	if err := json.Unmarshal(data, &r); err != nil {
		return marshal(reply{Status: statusError, Error: "not a request: " + err.Error()})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over && r.Op != opBye {
		return marshal(reply{Status: statusOver})
	}
	s := c.sessions[r.Name]
	switch {
	case s != nil && s.id == r.Session && s.number == r.Number:
		return s.answer
	case r.Op == opHello && r.Number == 1:
		s = c.begin(&r)
	case s == nil || s.id != r.Session:
		return marshal(reply{Status: statusVoid})
	case r.Number < s.number:
		return nil // A copy of one that has been answered and left behind.
	}
	s.number = r.Number
	s.answer = marshal(c.execute(s, &r))
	return s.answer
}

// begin opens a session; one of the same name before it is void.
func (c *coordinator) begin(r *request) *session {
	if old := c.sessions[r.Name]; old != nil {
		if ids := c.table.Drop(old.id); len(ids) > 0 {
			c.screen.line("%s begins again: %s queued again", r.Name, plural(len(ids), "subtask"))
		}
	}
	s := &session{name: r.Name, id: r.Session, outside: r.Outside}
	c.sessions[r.Name], c.pids[r.Name] = s, r.PID
	c.journal.Info("hello", "worker", r.Name, "session", r.Session, "pid", r.PID)
	c.changed()
	return s
}

// execute does what a request asks for, once.
func (c *coordinator) execute(s *session, r *request) reply {
	if r.Length > 0 || len(r.Tour) > 0 {
		if err := bnb.Verify(c.in, r.Tour, r.Length); err != nil {
			return failed(err)
		}
		c.improveLocked(s.name, r.Tour, r.Length)
	}
	a, err := c.operate(s, r)
	if err != nil {
		return failed(err)
	}
	a.Status = statusOK
	c.changed()
	return a
}

func failed(err error) reply { return reply{Status: statusError, Error: err.Error()} }

func (c *coordinator) operate(s *session, r *request) (a reply, err error) {
	switch r.Op {
	case opHello:
		a.Run = c.info
	case opInstance:
		a.Chunk, err = c.chunk(r.Offset)
	case opTour:
		a.Tour, a.Length = c.tour, c.best
	case opGrant:
		a.Leases = c.grant(s, r)
	case opRelease:
		n := c.table.Release(s.id, r.IDs)
		c.journal.Info("release", "worker", s.name, "leases", r.IDs, "released", n)
	case opReturn:
		if err = c.valid(r.Given, r.Kept); err == nil {
			err = c.table.Return(s.id, r.ID, r.Given, r.Kept)
		}
		c.journal.Info("return", "worker", s.name, "lease", r.ID, "given", len(r.Given), "kept", len(r.Kept), "error", err)
	case opComplete:
		err = c.table.Complete(s.id, r.ID)
		c.journal.Info("complete", "worker", s.name, "lease", r.ID, "error", err)
	case opImprove:
	case opPing, opBye:
		c.progress(s, r)
	default:
		err = fmt.Errorf("unknown operation %q", r.Op)
	}
	return a, err
}

// valid refuses subtasks that are none of this instance: another worker would
// stumble over them.
func (c *coordinator) valid(lists ...[]lease.Item) error {
	for _, it := range slices.Concat(lists...) {
		if _, err := bnb.DecodeSubtask(it.Body, c.in.N); err != nil {
			return err
		}
	}
	return nil
}

func (c *coordinator) grant(s *session, r *request) (granted []lease.Lease) {
	if c.verdict != "" {
		return nil
	}
	granted = c.table.Grant(s.id, r.First, r.Count, maxBodies)
	if len(granted) > 0 && c.first.IsZero() {
		c.first = c.now()
	}
	for _, l := range granted {
		c.journal.Info("grant", "worker", s.name, "lease", l.ID, "parent", l.Parent, "bound", l.Bound)
	}
	return granted
}

func (c *coordinator) progress(s *session, r *request) {
	s.progress = r.Progress
	for _, h := range r.Progress.Bounds {
		c.table.Raise(s.id, h.ID, h.Bound)
	}
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
