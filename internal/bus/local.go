package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// MaxLocalPayload is the largest message of a [Local] in bytes: what the
// embedded server allows by default, so that what passes here passes there.
const MaxLocalPayload = 64 << 10

// inboxPrefix begins the subjects replies go to.
const inboxPrefix = "_INBOX."

// Local takes the place of a server for the connections of one process. It
// works in a synctest bubble.
type Local struct {
	mu       sync.RWMutex
	down     bool
	nextID   int
	conns    []*localConn
	exact    map[string][]*localSub
	wild     []*localSub
	requests map[string]request
}

// request waits for messages to its inbox: for one, or for many.
type request struct {
	from  *localConn
	reply chan []byte
	many  bool
}

// NewLocal returns a broker without connections. It needs no closing: what runs
// belongs to its connections.
func NewLocal() *Local {
	return &Local{exact: map[string][]*localSub{}, requests: map[string]request{}}
}

// Connect adds a connection. ConnectTimeout and Extra have no meaning here.
func (l *Local) Connect(opts Options) Bus {
	c := &localConn{broker: l, opts: opts.withDefaults(), events: newEvents()}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.nextID++
	c.id = l.nextID
	l.conns = append(l.conns, c)
	return c
}

// errStopped is the cause that OnDisconnect is given.
var errStopped = errors.New("the in-process bus was stopped")

// Stop has every connection lose the broker, as if a server had died; Start has
// it back. Subscriptions survive, messages published meanwhile do not.
func (l *Local) Stop() {
	for _, c := range l.setDown(true) {
		c.events.put(func() { c.opts.OnDisconnect(errStopped) })
	}
}

// Start undoes [Local.Stop].
func (l *Local) Start() {
	for _, c := range l.setDown(false) {
		c.reconnects.Add(1)
		c.events.put(c.opts.OnReconnect)
	}
}

// setDown returns the connections that the change matters to.
func (l *Local) setDown(down bool) []*localConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down == down {
		return nil
	}
	l.down = down
	return slices.Clone(l.conns)
}

// publish hands a message to every subscription of another connection that
// matches, and reports whether there was one.
func (l *Local) publish(from *localConn, m Message) (received bool, err error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if err := from.usable(); err != nil {
		return false, err
	}
	if len(m.Data) > MaxLocalPayload {
		return false, fmt.Errorf("%w: %d bytes, limit %d", ErrTooLarge, len(m.Data), MaxLocalPayload)
	}
	shared := false // The copy of data that all receivers see has been made.
	deliver := func(s *localSub) {
		if s.conn == from {
			return
		}
		if !shared {
			m.Data, shared = bytes.Clone(m.Data), true
		}
		received = true
		s.put(m)
	}
	for _, s := range l.exact[m.Subject] {
		deliver(s)
	}
	for _, s := range l.wild {
		if match(s.subject, m.Subject) {
			deliver(s)
		}
	}
	if strings.HasPrefix(m.Subject, inboxPrefix) {
		received = l.answer(from, m) || received
	}
	return received, nil
}

// answer hands a reply to the request that waits for it; one more than it has room
// for is lost.
func (l *Local) answer(from *localConn, m Message) bool {
	r, ok := l.requests[m.Subject]
	if !ok || r.from == from {
		return false
	}
	select {
	case r.reply <- bytes.Clone(m.Data):
	default:
		if r.many {
			r.from.dropped.Add(1)
		}
	}
	return true
}

func (l *Local) add(s *localSub) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.conn.closing {
		return ErrClosed
	}
	s.conn.subs = append(s.conn.subs, s)
	if hasWildcard(s.subject) {
		l.wild = append(l.wild, s)
	} else {
		l.exact[s.subject] = append(l.exact[s.subject], s)
	}
	return nil
}

// remove takes a subscription out, where that was not done before.
func (l *Local) remove(s *localSub) {
	l.mu.Lock()
	defer l.mu.Unlock()
	same := func(o *localSub) bool { return o == s }
	s.conn.subs = slices.DeleteFunc(s.conn.subs, same)
	if hasWildcard(s.subject) {
		l.wild = slices.DeleteFunc(l.wild, same)
		return
	}
	l.exact[s.subject] = slices.DeleteFunc(l.exact[s.subject], same)
	if len(l.exact[s.subject]) == 0 {
		delete(l.exact, s.subject)
	}
}

// localConn is one connection to a Local. What is not atomic or constant is
// guarded by the broker's lock.
type localConn struct {
	counters
	broker *Local
	opts   Options
	id     int
	events *mailbox[func()]

	subs    []*localSub
	inboxes int
	closing bool // No subscription begins.
	closed  bool // Nothing is sent.
}

// usable expects the broker's lock.
func (c *localConn) usable() error {
	switch {
	case c.closed:
		return ErrClosed
	case c.broker.down:
		return ErrDisconnected
	}
	return nil
}

func (c *localConn) Publish(subject string, data []byte) error {
	return c.sent(failed("publish", subject, c.publish(Message{Subject: subject, Data: data})))
}

func (c *localConn) publish(m Message) error {
	if err := checkSubject(m.Subject, false); err != nil {
		return err
	}
	_, err := c.broker.publish(c, m)
	return err
}

func (c *localConn) Reply(m Message, data []byte) error {
	if m.Reply == "" {
		return c.sent(failed("reply to", m.Subject, ErrNoReply))
	}
	return c.sent(failed("reply to", m.Subject, c.publish(Message{Subject: m.Reply, Data: data})))
}

func (c *localConn) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	reply, err := c.request(ctx, subject, data)
	return reply, failed("request", subject, err)
}

func (c *localConn) request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	if err := errors.Join(checkSubject(subject, false), ctx.Err()); err != nil {
		return nil, c.sent(err)
	}
	inbox, replies := c.openInbox(1)
	defer c.closeInbox(inbox)
	if err := c.publishRequest(subject, inbox, data); err != nil {
		return nil, err
	}
	return c.next(ctx, replies)
}

func (c *localConn) Gather(ctx context.Context, subject string, data []byte, take func([]byte) bool) error {
	return failed("request", subject, c.gather(ctx, subject, data, take))
}

func (c *localConn) gather(ctx context.Context, subject string, data []byte, take func([]byte) bool) error {
	if err := errors.Join(checkSubject(subject, false), ctx.Err()); err != nil {
		return c.sent(err)
	}
	inbox, replies := c.openInbox(GatherLimit)
	defer c.closeInbox(inbox)
	if err := c.publishRequest(subject, inbox, data); err != nil {
		return err
	}
	for {
		reply, err := c.next(ctx, replies)
		if err != nil || !take(reply) {
			return err
		}
	}
}

// publishRequest fails where nobody is there to answer.
func (c *localConn) publishRequest(subject, inbox string, data []byte) error {
	received, err := c.broker.publish(c, Message{Subject: subject, Reply: inbox, Data: data})
	if c.sent(err) == nil && !received {
		return ErrNoResponders
	}
	return err
}

// next waits for a reply.
func (c *localConn) next(ctx context.Context, replies <-chan []byte) ([]byte, error) {
	select {
	case data := <-replies:
		c.received.Add(1)
		return data, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// openInbox has room for that many replies.
func (c *localConn) openInbox(room int) (string, <-chan []byte) {
	c.broker.mu.Lock()
	defer c.broker.mu.Unlock()
	c.inboxes++
	inbox := inboxPrefix + strconv.Itoa(c.id) + "." + strconv.Itoa(c.inboxes)
	replies := make(chan []byte, room)
	c.broker.requests[inbox] = request{from: c, reply: replies, many: room > 1}
	return inbox, replies
}

func (c *localConn) closeInbox(inbox string) {
	c.broker.mu.Lock()
	defer c.broker.mu.Unlock()
	delete(c.broker.requests, inbox)
}

func (c *localConn) Subscribe(subject string, limits Limits, handle Handler) (Subscription, error) {
	if err := checkSubject(subject, true); err != nil {
		return nil, failed("subscribe", subject, err)
	}
	s := &localSub{conn: c, subject: subject}
	s.mailbox = newMailbox(limits.withDefaults(), Message.size, func(m Message) {
		c.received.Add(1)
		handle(m)
	})
	if err := c.broker.add(s); err != nil {
		s.end(true)
		return nil, failed("subscribe", subject, err)
	}
	return s, nil
}

func (c *localConn) Flush(ctx context.Context) error {
	c.broker.mu.RLock()
	defer c.broker.mu.RUnlock()
	return failed("flush", c.opts.Name, errors.Join(c.usable(), ctx.Err()))
}

func (c *localConn) State() State {
	c.broker.mu.RLock()
	defer c.broker.mu.RUnlock()
	switch {
	case c.closed:
		return Closed
	case c.broker.down:
		return Reconnecting
	}
	return Connected
}

func (c *localConn) Stats() Stats { return c.stats() }

func (c *localConn) Close() error {
	subs, first := c.beginClose()
	if !first {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.opts.DrainTimeout)
	defer cancel()
	running := make([]running, len(subs))
	for i, s := range subs {
		c.broker.remove(s)
		s.end(false)
		running[i].subject, running[i].done = s.subject, s.done
	}
	err := waitFor(ctx, running)
	c.endClose()
	for _, s := range subs {
		s.end(true)
	}
	c.events.end(true)
	select {
	case <-c.events.done:
	case <-ctx.Done():
	}
	return err
}

// beginClose stops subscribing; handlers may publish until endClose.
func (c *localConn) beginClose() (subs []*localSub, first bool) {
	l := c.broker
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.closing {
		return nil, false
	}
	c.closing = true
	l.conns = slices.DeleteFunc(l.conns, func(o *localConn) bool { return o == c })
	return slices.Clone(c.subs), true
}

func (c *localConn) endClose() {
	c.broker.mu.Lock()
	defer c.broker.mu.Unlock()
	c.closed = true
}

// localSub is a subscription of a localConn.
type localSub struct {
	*mailbox[Message]
	conn    *localConn
	subject string
}

func (s *localSub) put(m Message) {
	dropped, first := s.mailbox.put(m)
	if dropped > 0 {
		s.conn.dropped.Add(1)
	}
	if first {
		s.conn.events.put(func() { s.conn.opts.OnError(&SlowError{Subject: s.subject, Dropped: dropped}) })
	}
}

func (s *localSub) Unsubscribe() {
	s.conn.broker.remove(s)
	s.end(true)
}

func (s *localSub) Dropped() uint64 { return s.losses() }
