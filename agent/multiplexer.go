package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
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

// multiplexer sends for the members of a process that share a connection. While there is only
// one member it sends that member's frames as they are. From the second member on it has a
// name, and speaks for all: one message carries all reports, and the evidence that the states
// still hold, which is one stamp for all. Its work is in proportion to the members with
// something to report, not to the members that there are.
//
// It reads its stamp before it looks for members with reports for the last time. A member
// enters that list before it reads the clock for a new state. So a state that began before the
// stamp is sent with it, or was sent before.
//
// Locks are taken in this order: christening, passing, the lock of a member, mu. mu is held for
// fields alone.
type multiplexer struct {
	subjects wire.Subjects
	bus      *bus.Bus
	log      *slog.Logger
	wake     chan struct{} // capacity 1
	stop     chan struct{}
	now      func() clocksync.Instant
	running  sync.WaitGroup
	gather   bool // the messages about to follow had better be in the same message
	auto     *autoClock
	armed    atomic.Int64 // an Instant: when the goroutine passes even if nobody wakes it
	heard    atomic.Int64 // an Instant: when it has last received something
	contact  contact

	mu      sync.Mutex
	name    string    // empty: each member speaks for itself
	refused bool      // the server does not permit that name
	members []*Member // replaced, not changed
	byName  map[string]*Member
	list    []*Member    // those whose pace has begun
	calls   []wire.Probe // that were asked since the last pass

	christening sync.Mutex // is held while the server is asked for a name's subjects

	// Guarded by passing.
	passing sync.Mutex
	speaks  string // the name that it has in this pass
	core    *agentcore.Multiplexer
	sender  sender
	bundle  wire.Bundle
	bytes   []byte    // of the parts
	spoken  []*Member // of the parts
	frame   []byte
	spare   []*Member
	calling []wire.Probe
	from    *Member           // whose frames are being put
	acks    string            // the subject of its answers to its own synchronizer
	last    clocksync.Instant // when it has last sent something
	sent    bool              // it has, in this pass
	quality clocksync.Quality // what its stamps rest on, as all members know
}

// newMultiplexer begins to send over a connection, for members that are added. With the name of
// a node it speaks for them from the first member on.
func newMultiplexer(name string, subjects wire.Subjects, b *bus.Bus, log *slog.Logger) *multiplexer {
	c := &multiplexer{
		subjects: subjects, bus: b, log: telemetry.Sampled(log), wake: make(chan struct{}, 1), stop: make(chan struct{}),
		byName: map[string]*Member{}, now: source.Monotonic, core: agentcore.NewMultiplexer(uint64(max(source.WallNano(), 1))), last: clocksync.MinInstant,
	}
	c.sender.publish = c.put
	c.name, c.gather = name, name != ""
	c.armed.Store(int64(clocksync.MinInstant))
	c.heard.Store(int64(clocksync.MinInstant))
	c.contact.init(c)
	c.running.Go(c.run)
	return c
}

// subscribeName hears what comes for the multiplexer's name.
func (c *multiplexer) subscribeName(ctx context.Context, name string) error {
	for _, subject := range []string{c.subjects.Probe(name), c.subjects.Signal(name), c.subjects.Announce()} {
		if err := c.bus.Subscribe(subject, bus.Limits{}, c.receive); err != nil {
			return err
		}
	}
	return c.bus.Flush(ctx)
}

// endMultiplexer ends everything but the connection.
func (c *multiplexer) endMultiplexer() error {
	close(c.stop)
	c.contact.endContact()
	c.running.Wait()
	if c.auto != nil {
		c.auto.close()
	}
	return nil
}

// addMember sends for a member from now on. The second one gives the multiplexer a name.
func (c *multiplexer) addMember(ctx context.Context, m *Member) error {
	c.mu.Lock()
	if c.byName[m.cfg.Name] != nil {
		c.mu.Unlock()
		return fmt.Errorf("%w, on this connection: close it first, or give this one another name", ErrNameTaken)
	}
	c.members, c.byName[m.cfg.Name] = append(slices.Clip(c.members), m), m
	several := len(c.members) > 1 && c.name == "" && !c.refused
	c.mu.Unlock()
	if several {
		if err := c.nameMultiplexer(ctx); err != nil {
			return err
		}
	}
	c.mu.Lock()
	name := c.name
	c.mu.Unlock()
	if name == "" {
		if err := m.subscribeMember(ctx); err != nil {
			return err
		}
	}
	c.passing.Lock()
	defer c.passing.Unlock()
	c.mu.Lock()
	name = c.name // It may be given up, and so told to all members, but not between here and there.
	c.mu.Unlock()
	m.speakBy(name)
	return nil
}

// nameMultiplexer gives the multiplexer a name, and has the members that are there say so.
func (c *multiplexer) nameMultiplexer(ctx context.Context) error {
	c.christening.Lock()
	defer c.christening.Unlock()
	c.mu.Lock()
	done := c.name != "" || c.refused || len(c.members) == 0
	var first string
	if !done {
		first = c.members[0].cfg.Name
	}
	c.mu.Unlock()
	if done {
		return nil
	}
	name := wire.MultiplexerName(first, strings.ToLower(rand.Text()[:16]))
	if err := c.subscribeName(ctx, name); err != nil {
		return err
	}
	// Complaints of a connection that is not ours go to its owner, and of ours may come before
	// there is a name that they are of.
	refused := c.bus.Refused(name)
	c.passing.Lock()
	defer c.passing.Unlock()
	c.mu.Lock()
	members := c.members
	if c.refused = c.refused || refused != nil; refused == nil {
		c.name = name
	}
	c.mu.Unlock()
	if refused != nil {
		c.notPermitted(refused)
		return nil
	}
	for _, m := range members {
		m.speakBy(name)
	}
	return nil
}

// speakBy has the member say who speaks for it; nobody, if the name is empty.
func (m *Member) speakBy(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stepInput(&agentcore.Input{Kind: agentcore.InMultiplexer, Multiplexer: name})
}

// noteComplaint takes what the server says of the connection. Where it does not permit the
// name each member speaks for itself.
func (c *multiplexer) noteComplaint(err error) {
	c.mu.Lock()
	name, members := c.name, c.members
	hit := name != "" && errors.Is(err, bus.ErrPermission) && strings.Contains(err.Error(), name)
	if hit {
		c.name, c.refused = "", true
	}
	c.mu.Unlock()
	if !hit {
		if !slices.ContainsFunc(members, func(m *Member) bool { return m.lacksPermission(err) }) {
			c.log.Warn("the connection complains", telemetry.ClassKey, bus.Class(err), "group", c.subjects.Group, "error", err)
		}
		return
	}
	c.notPermitted(err)
	for _, m := range members {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		if err := m.subscribeMember(ctx); err != nil && !errors.Is(err, bus.ErrDisconnected) && !errors.Is(err, bus.ErrClosed) {
			m.log.Error("the member cannot be told anything", "member", m.cfg.Name, "error", err)
		}
		cancel()
	}
	c.passing.Lock()
	defer c.passing.Unlock()
	for _, m := range members {
		m.mu.Lock()
		c.core.Drop(m.core)
		m.mu.Unlock()
		m.speakBy("")
	}
}

func (c *multiplexer) notPermitted(err error) {
	c.log.Warn("the server does not permit that one subject is used for all members of this process, so each sends for itself; permit pegasus.v1.TENANT.GROUP.{st,pr,sg}.p.MEMBER.* for that",
		"group", c.subjects.Group, "error", err)
}

// dropMember leaves a member to speak for itself. Nothing more is sent for it when drop returns.
func (c *multiplexer) dropMember(m *Member) {
	c.passing.Lock()
	defer c.passing.Unlock()
	c.mu.Lock()
	other := func(o *Member) bool { return o == m }
	c.members, c.list = slices.DeleteFunc(slices.Clone(c.members), other), slices.DeleteFunc(c.list, other)
	if c.byName[m.cfg.Name] == m {
		delete(c.byName, m.cfg.Name)
	}
	c.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dropped = true
	c.core.Drop(m.core)
}

// listMember enters a member in the list. Its lock is held.
func (c *multiplexer) listMember(m *Member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, m)
}

// receive takes what a synchronizer has for several members.
func (c *multiplexer) receive(msg bus.Message) {
	c.heard.Store(int64(c.now()))
	kind, err := wire.KindOf(msg.Data)
	switch {
	case err != nil:
	case kind == wire.KindProbe:
		var p wire.Probe
		if p, err = wire.DecodeProbe(msg.Data); err == nil && p.Seq == 0 && p.Domain == "" {
			c.contact.noteLeader()
			c.queueProbe(&p)
			c.sendDue()
		}
	case kind == wire.KindBundle:
		var b wire.Bundle
		if err = wire.DecodeBundle(msg.Data, &b); err == nil {
			c.handParts(msg.Subject, b.Parts...)
		}
	case kind == wire.KindWelcome:
		var w wire.Welcome
		if w, err = wire.DecodeWelcome(msg.Data); err == nil {
			c.passWelcome(msg, w.Member)
		}
	case kind == wire.KindPeers:
		var p wire.Peers
		if p, err = wire.DecodePeers(msg.Data); err == nil {
			c.passWelcome(msg, p.Member)
		}
	case kind == wire.KindSignals: // From a single member, too long for a bundle.
		var s wire.Signals
		if s, err = wire.DecodeSignals(msg.Data); err == nil && len(s.Signals) > 0 {
			c.handParts(msg.Subject, wire.Part{Member: s.Signals[0].Target, Frame: msg.Data})
		}
	default:
		err = &wire.FrameError{Kind: kind, Field: "kind", Reason: "no multiplexer is sent this"}
	}
	if err != nil {
		c.log.Debug("a message was refused", telemetry.ClassKey, "frame", "subject", msg.Subject, "error", err)
	}
}

// queueProbe has the next pass give evidence, as soon as there is as much as was asked for.
func (c *multiplexer) queueProbe(p *wire.Probe) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.calls) < maxCalls {
		c.calls = append(c.calls, *p)
	}
}

// maxCalls is how many requests for evidence wait for a pass: as many as wait for an answer.
const maxCalls = 16

// passWelcome hands on a welcome, or a piece of the roster, that came alone: to all members but those
// that have heard it themselves, or to the one member whose is too long for a bundle.
func (c *multiplexer) passWelcome(msg bus.Message, member string) {
	if member != "" {
		c.handParts(msg.Subject, wire.Part{Member: member, Frame: msg.Data})
		return
	}
	c.mu.Lock()
	members := c.members
	c.mu.Unlock()
	for _, m := range members {
		m.receiveMessage(msg)
	}
}

// handParts gives each part to its member.
func (c *multiplexer) handParts(subject string, parts ...wire.Part) {
	for _, p := range parts {
		c.mu.Lock()
		m := c.byName[p.Member]
		c.mu.Unlock()
		if m != nil {
			m.receiveMessage(bus.Message{Subject: subject, Data: p.Frame})
		}
	}
}

// run sends due reports until the multiplexer is closed.
func (c *multiplexer) run() {
	timer, armed := time.NewTimer(0), clocksync.MinInstant
	defer timer.Stop()
	for {
		if c.gather {
			// Blocks that are about to end on this processor had better be in the same
			// message.
			runtime.Gosched()
		}
		c.passing.Lock()
		next, now := c.pass()
		c.passing.Unlock()
		if next < armed { // An early pass does no harm.
			armed = next
			timer.Reset(next.Sub(now))
			c.armed.Store(int64(armed))
		}
		select {
		case <-c.wake:
		case <-timer.C:
			armed = clocksync.MaxInstant
			c.armed.Store(int64(armed))
		case <-c.stop:
			return
		}
	}
}

// Where nothing waits, a member sends its reports on its own goroutine. quietGap is the least
// age of the last message for that: faster reports are sent by the multiplexer's goroutine,
// which takes more of them along. A message of the synchronizer that is not older than
// livelyGap shows that the server accepts messages, so that no member waits for it.
const (
	quietGap  = 50 * time.Microsecond
	livelyGap = 100 * time.Millisecond
)

// sendDue sends due reports on this goroutine, or has them sent. No lock is held. A nil
// multiplexer sends nothing.
func (c *multiplexer) sendDue() {
	if c == nil {
		return
	}
	now := c.now()
	if !c.gather && now.Sub(clocksync.Instant(c.heard.Load())) < livelyGap && c.passing.TryLock() {
		if c.last == clocksync.MinInstant || now.Sub(c.last) >= quietGap {
			next, _ := c.pass()
			c.passing.Unlock()
			if int64(next) >= c.armed.Load() {
				return
			}
		} else {
			c.passing.Unlock()
		}
	}
	notifyChannel(c.wake)
}

// pass sends due reports, and returns when the next pass is.
func (c *multiplexer) pass() (wake, now clocksync.Instant) {
	c.mu.Lock()
	c.speaks = c.name
	members, list := c.members, c.take()
	c.calling, c.calls = append(c.calling[:0], c.calls...), c.calls[:0]
	c.mu.Unlock()
	for i := range c.calling {
		c.core.Ask(&c.calling[i])
	}
	now = c.now()
	wake, all := c.round(list, now, c.speaks != "" && c.core.Due(now))
	if all {
		// Only a member that has begun a state meanwhile can have done so before the stamp, but
		// the stamp is later than the reports of all others.
		var at clocksync.Stamp
		if len(members) > 0 {
			at = c.stamp(members)
		}
		c.mu.Lock()
		list = c.take()
		c.mu.Unlock()
		next, _ := c.round(list, now, true)
		wake = min(wake, next)
		if wait := c.core.Evidence(now, at, &c.bundle); wait >= 0 {
			wake = min(wake, now.Add(wait).Add(1))
		}
	}
	if c.speaks != "" {
		wake = min(wake, c.core.Wake())
	}
	c.send()
	if c.sent {
		c.sent, c.last = false, now
	}
	return wake, now
}

// take empties the list. mu is held, and passing.
func (c *multiplexer) take() (list []*Member) {
	list, c.list, c.spare = c.list, c.spare[:0], nil
	return list
}

// round has the members of a list report, and puts waiting members back. If one of them has a
// report, or all is set, the multiplexer sends the reports of all members that it speaks for.
func (c *multiplexer) round(list []*Member, now clocksync.Instant, all bool) (wake clocksync.Instant, told bool) {
	told = all || c.speaks != "" && slices.ContainsFunc(list, func(m *Member) bool { return m.isDue(now) })
	wake = clocksync.MaxInstant
	waiting := list[:0]
	for _, m := range list {
		next, waits := c.turn(m, now, told)
		if wake = min(wake, next); waits {
			waiting = append(waiting, m)
		}
	}
	c.mu.Lock()
	c.list, c.spare = append(waiting, c.list...), c.list[:0]
	c.mu.Unlock()
	return wake, told
}

// stamp reads the clock that all members share. If what its stamps rest on has changed,
// each member has to know.
func (c *multiplexer) stamp(members []*Member) (at clocksync.Stamp) {
	first := members[0]
	first.mu.Lock()
	first.readEventStamp(&at)
	quality := first.quality // Its own state may have shown the change to it alone.
	first.mu.Unlock()
	if quality != c.quality {
		c.quality = quality
		for _, m := range members {
			m.mu.Lock()
			m.stampClock()
			m.pace.bringForward(clocksync.MinInstant)
			m.mu.Unlock()
		}
	}
	return at
}

// isDue reports whether the member has something to say now.
func (m *Member) isDue(now clocksync.Instant) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pace.until <= now
}

// turn takes what one member has to say, if that is due or all of it is to be told, and
// returns when it next is, and whether it stays in the list until then.
func (c *multiplexer) turn(m *Member, now clocksync.Instant, all bool) (next clocksync.Instant, waits bool) {
	m.mu.Lock()
	if m.pace.until > now && !all {
		defer m.mu.Unlock()
		return m.pace.until, true
	}
	body := m.body
	m.body = nil
	if to := m.core.Synchronizer(); m.acks == "" || to != m.acksTo {
		m.acks, m.acksTo = m.subjects.Ack(to, m.cfg.Name), to
	}
	c.from, c.acks = m, m.acks
	if body != nil {
		_ = c.put(m.reports, body)
	}
	core := c.core
	if c.speaks == "" {
		core = nil
	}
	return m.flushDue(&c.sender, core, all)
}

// put adds a frame of a member to the bundle. The frame is sent alone if it is too long, if its
// receiver does not know the multiplexer, or if it says for the first time that the multiplexer
// speaks for the member.
func (c *multiplexer) put(subject string, frame []byte) error {
	c.sent = true
	if kind, _ := wire.KindOf(frame); c.speaks == "" || kind == wire.KindHello || subject != c.from.reports && subject != c.acks {
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
	if c.bundle.Empty() {
		return
	}
	c.sent = true
	subject := c.subjects.State(c.speaks)
	rest, spoken := c.bundle, c.spoken
	for !rest.Empty() {
		parts := len(rest.Parts)
		frame, left, err := wire.AppendBundle(c.frame[:0], &rest)
		if err != nil {
			c.log.Error("a message could not be encoded", "subject", subject, "error", err)
			break
		}
		c.frame, rest = frame, left
		sent := spoken[:parts-len(rest.Parts)]
		if err := c.bus.Publish(subject, frame); err != nil {
			for _, m := range sent {
				m.publishErrors.Add(1)
			}
		}
		spoken = spoken[len(sent):]
	}
	c.bundle, c.bytes, c.spoken = wire.Bundle{Parts: c.bundle.Parts[:0]}, c.bytes[:0], c.spoken[:0]
}
