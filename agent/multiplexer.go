package agent

import (
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/clocksync/source"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/telemetry"
	"github.com/gopegasus/pegasus/internal/wire"
)

// multiplexer speaks for the members of a node, which share a connection: one message
// carries what all of them have to say, and the evidence that their states still
// hold. A global state of many processors needs evidence of each, so to ask and to
// answer for them one by one would cost as many messages.
type multiplexer struct {
	name     string
	subjects wire.Subjects
	bus      *bus.Bus
	log      *slog.Logger
	wake     chan struct{} // capacity 1; the pace of each member is told here
	stop     chan struct{}
	now      func() clocksync.Instant
	running  sync.WaitGroup

	mu      sync.Mutex
	members []*Member // replaced, not changed
	called  bool
	busy    atomic.Int32 // members that run a block
	call    wire.Probe   // all that was asked for since the last answer

	// Guarded by passing, which is taken before the lock of a member.
	passing sync.Mutex
	sender  sender
	bundle  wire.Bundle
	bytes   []byte    // of the parts
	spoken  []*Member // of the parts
	frame   []byte
	from    *Member // whose frames are being put
	acks    string  // the subject of its answers to its own synchronizer
}

// startMultiplexer subscribes for a node and begins to speak for members that are
// added.
func startMultiplexer(name string, subjects wire.Subjects, b *bus.Bus, log *slog.Logger) (*multiplexer, error) {
	c := &multiplexer{name: name, subjects: subjects, bus: b, log: telemetry.Sampled(log), wake: make(chan struct{}, 1), stop: make(chan struct{}), now: source.Monotonic}
	c.sender.publish = c.put
	for _, subject := range []string{subjects.Probe(name), subjects.Signal(name)} {
		if err := b.Subscribe(subject, bus.Limits{}, c.receive); err != nil {
			return nil, err
		}
	}
	c.running.Go(c.run)
	return c, nil
}

func (c *multiplexer) close() {
	close(c.stop)
	c.running.Wait()
}

func (c *multiplexer) all() []*Member {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.members
}

func (c *multiplexer) add(m *Member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members = append(slices.Clip(c.members), m)
	notify(c.wake)
}

// drop leaves a member to speak for itself. Nothing of it is under way when drop
// returns.
func (c *multiplexer) drop(m *Member) {
	c.mu.Lock()
	c.members = slices.DeleteFunc(slices.Clone(c.members), func(o *Member) bool { return o == m })
	c.mu.Unlock()
	c.passing.Lock()
	defer c.passing.Unlock()
}

// receive takes what a synchronizer has for several members.
func (c *multiplexer) receive(msg bus.Message) {
	kind, err := wire.KindOf(msg.Data)
	switch {
	case err != nil:
	case kind == wire.KindProbe:
		var p wire.Probe
		if p, err = wire.DecodeProbe(msg.Data); err == nil && p.Seq == 0 {
			c.ask(&p)
			notify(c.wake)
		}
	default:
		var b wire.Bundle
		if err = wire.DecodeBundle(msg.Data, &b); err == nil {
			c.hand(msg.Subject, &b)
		}
	}
	if err != nil {
		c.log.Debug("a message was refused", telemetry.ClassKey, "frame", "subject", msg.Subject, "error", err)
	}
}

// ask has the next pass give evidence, as soon as there is as much as was asked for.
func (c *multiplexer) ask(p *wire.Probe) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.called {
		c.called, c.call = true, *p
	}
	c.call.AfterMono, c.call.AfterTime = max(c.call.AfterMono, p.AfterMono), max(c.call.AfterTime, p.AfterTime)
}

// hand gives each part to its member.
func (c *multiplexer) hand(subject string, b *wire.Bundle) {
	members := c.all()
	for _, p := range b.Parts {
		i := slices.IndexFunc(members, func(m *Member) bool { return m.cfg.Name == p.Member })
		if i >= 0 {
			members[i].receive(bus.Message{Subject: subject, Data: p.Frame})
		}
	}
}

// run sends what is due until the multiplexer is closed.
func (c *multiplexer) run() {
	keepPace(c.wake, c.stop, func() (next, now clocksync.Instant) {
		// Blocks that are about to end on this processor had better be in the same
		// message.
		runtime.Gosched()
		return c.pass()
	})
}

// pass sends what is due, and returns when the next pass is. If the last block has
// ended, or evidence was asked for, what is sent ends with evidence of all members:
// that of each is above what any of them has told before. A JOIN then need not ask
// this node. While blocks run, more is about to follow.
func (c *multiplexer) pass() (wake, now clocksync.Instant) {
	c.passing.Lock()
	defer c.passing.Unlock()
	c.mu.Lock()
	members, called, call := c.members, c.called, c.call
	c.called = false
	c.mu.Unlock()
	wake, now = clocksync.MaxInstant, c.now()
	for _, m := range members {
		wake = min(wake, c.turn(m, now))
	}
	if called || len(c.bundle.Parts) > 0 && c.busy.Load() == 0 {
		var wait time.Duration
		if wait, now = c.evidence(members, &call); called && wait >= 0 { // Not yet.
			wake = min(wake, now.Add(wait).Add(1))
			c.ask(&call)
			if len(c.bundle.Parts) == 0 {
				c.bundle.Alive = c.bundle.Alive[:0]
			}
		}
	}
	c.send()
	return wake, now
}

// evidence reads that of every member which has told its state, and says how long it
// is until all of it answers a call, below 0 if it does.
func (c *multiplexer) evidence(members []*Member, call *wire.Probe) (wait time.Duration, now clocksync.Instant) {
	wait = -1
	for _, m := range members {
		m.mu.Lock()
		at := readAbove(m.mu, m.stamp, m.newest)
		now = m.now()
		m.step(now, &agentcore.Input{Kind: agentcore.InEvidence, At: at}, &m.answer)
		if e := m.answer.Evidence; e.Seq > 0 {
			c.bundle.Alive = append(c.bundle.Alive, wire.Alive{Member: m.cfg.Name, Incarnation: m.core.Incarnation(), Evidence: e})
			wait = max(wait, agentcore.Lacks(call, e))
		}
		m.mu.Unlock()
	}
	return wait, now
}

// turn takes what one member has to say, if that is due, and returns when it next is.
func (c *multiplexer) turn(m *Member, now clocksync.Instant) clocksync.Instant {
	m.mu.Lock()
	if m.pace.until > now {
		defer m.mu.Unlock()
		return m.pace.until
	}
	body := m.body
	m.body = nil
	c.from, c.acks = m, m.subjects.Ack(m.core.Synchronizer(), m.cfg.Name)
	m.mu.Unlock()
	if body != nil {
		_ = c.put(m.reports, body)
	}
	return m.flush(&c.sender)
}

// put makes a frame of a member a part of the bundle, or sends it alone if it is
// too long, or for somebody who does not know the multiplexer.
func (c *multiplexer) put(subject string, frame []byte) error {
	if subject != c.from.reports && subject != c.acks {
		return c.bus.Publish(subject, frame)
	}
	if len(c.bytes)+len(frame) > wire.MaxPart {
		c.send()
	}
	if len(frame) > wire.MaxPart {
		return c.bus.Publish(subject, frame)
	}
	from := len(c.bytes)
	c.bytes = append(c.bytes, frame...)
	c.bundle.Parts = append(c.bundle.Parts, wire.Part{Member: c.from.cfg.Name, Frame: c.bytes[from:len(c.bytes):len(c.bytes)]})
	c.spoken = append(c.spoken, c.from)
	return nil
}

// send publishes the bundle in as many frames as it needs. What cannot be sent shows
// as a gap later, as if each member had sent it.
func (c *multiplexer) send() {
	rest, spoken, subject := c.bundle, c.spoken, c.subjects.State(c.name)
	for len(rest.Parts) > 0 || len(rest.Alive) > 0 {
		frame, parts, alive, err := wire.AppendBundle(c.frame[:0], &rest)
		if err != nil {
			c.log.Error("a message could not be encoded", "subject", subject, "error", err)
			break
		}
		c.frame = frame
		if err := c.bus.Publish(subject, frame); err != nil {
			for _, m := range spoken[:parts] {
				m.publishErrors.Add(1)
			}
		}
		rest.Parts, rest.Alive, spoken = rest.Parts[parts:], rest.Alive[alive:], spoken[parts:]
	}
	c.bundle.Parts, c.bundle.Alive, c.bytes, c.spoken = c.bundle.Parts[:0], c.bundle.Alive[:0], c.bytes[:0], c.spoken[:0]
}
