package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// flushWait bounds a Flush whose context has no deadline.
const flushWait = 10 * time.Second

// Wrap makes a Bus of a connection that belongs to the caller: it is neither closed nor
// changed, and Close only ends our subscriptions. The caller's choices stay valid: without
// nats.NoEcho the connection receives what it publishes, and complaints of the server
// (ErrPermission) go to its own error handler. ConnectTimeout and Extra have no meaning here.
func Wrap(nc *nats.Conn, opts Options) (*Bus, error) {
	if nc == nil || nc.IsClosed() {
		return nil, fmt.Errorf("bus: wrap a NATS connection: %w", ErrClosed)
	}
	b := newNATS(opts)
	b.nc = nc
	b.stopDial = func() {} // Not ours to stop.
	b.watch()
	return b, nil
}

// Bus is one connection. Its methods may be called from any goroutine.
type Bus struct {
	opts   Options
	nc     *nats.Conn
	events *events // Calls the callbacks of opts.

	refusals atomic.Int32               // Of the credentials, one after another, since the connection was lost.
	refused  atomic.Bool                // That was reported.
	steady   atomic.Pointer[time.Timer] // Forgets them, when the connection has been back for a while.

	dropped atomic.Uint64 // Messages, of subscriptions after their end and of Gather.

	// state follows the connection's. We keep our own because nats.go holds its
	// lock while it dials, and a caller must not wait for that.
	state atomic.Int32

	// stopDial ends an attempt to connect in progress. hangUp releases the
	// connection: it closes one of ours. hungUp is closed when nothing comes from
	// it any more.
	stopDial, hangUp func()
	hungUp           chan struct{}

	mu      sync.Mutex
	subs    []*natsSub
	closing bool // No subscription begins.
}

func newNATS(opts Options) *Bus {
	return &Bus{opts: opts.withDefaults(), events: newEvents(), hungUp: make(chan struct{})}
}

// watch reports what becomes of a connection whose handlers are not ours.
func (b *Bus) watch() {
	changes := b.nc.StatusChanged(nats.RECONNECTING, nats.CONNECTED, nats.CLOSED)
	if !b.nc.IsConnected() {
		b.become(Reconnecting)
	}
	quit := make(chan struct{})
	b.hangUp = func() {
		b.nc.RemoveStatusListener(changes)
		close(quit)
	}
	go func() {
		defer close(b.hungUp)
		for {
			select {
			case status := <-changes:
				b.changed(status)
			case <-quit:
				return
			}
		}
	}()
}

func (b *Bus) changed(status nats.Status) {
	switch status { //nolint:exhaustive // Only these are asked for.
	case nats.CONNECTED:
		b.noteReconnect()
	case nats.RECONNECTING:
		b.noteDisconnect(b.nc.LastError())
	case nats.CLOSED:
		b.noteLost(nil)
	}
}

// become changes the state; Closed is for good.
func (b *Bus) become(s State) (was State) {
	for {
		old := b.state.Load()
		if State(old) == Closed || b.state.CompareAndSwap(old, int32(s)) { //nolint:gosec // Three states.
			return State(old)
		}
	}
}

func (b *Bus) noteDisconnect(cause error) {
	b.unsteady()
	if b.isClosing() || b.become(Reconnecting) != Connected {
		return
	}
	if cause == nil {
		cause = errors.New("closed by the server")
	}
	b.events.putCall(func() { b.opts.OnDisconnect(fmt.Errorf("bus: connection lost: %w", cause)) })
}

// steadyAfter is how long a connection is back after which its credentials have been good: in
// the second in which a JWT expires the server lets it in, and ends it at once.
const steadyAfter = 5 * time.Second

// forgetRefusals begins the count again.
func (b *Bus) forgetRefusals() {
	b.refusals.Store(0)
	b.refused.Store(false)
}

// unsteady has the refusals before it count on: the connection was lost again.
func (b *Bus) unsteady() {
	if t := b.steady.Swap(nil); t != nil {
		t.Stop()
	}
}

func (b *Bus) noteReconnect() {
	if b.refused.Load() {
		b.steady.Store(time.AfterFunc(steadyAfter, b.forgetRefusals)) // Until it is lost or closed.
	}
	if b.become(Connected) == Reconnecting {
		b.events.putCall(b.opts.OnReconnect)
	}
}

// noteLost is called when the connection is closed for good though we did not close
// it: by its owner, or because the server said what nats.go cannot continue after.
func (b *Bus) noteLost(cause error) {
	if b.isClosing() || b.become(Closed) == Closed {
		return
	}
	b.events.putCall(func() {
		b.opts.OnError(fmt.Errorf("bus: connection lost for good, connect again: %w", errors.Join(ErrClosed, cause)))
	})
}

// takeComplaint takes what the server or nats.go report outside any call, on a
// connection of ours.
func (b *Bus) takeComplaint(err error) {
	switch {
	case errors.Is(err, nats.ErrSlowConsumer):
		return // The subscription reports it.
	case errors.Is(err, nats.ErrPermissionViolation):
		err = fmt.Errorf("%w: %w", ErrPermission, err)
	case CredentialsRefused(err):
		b.unsteady()
		if b.refusals.Add(1); b.refused.Swap(true) {
			return // It is reported once.
		}
		err = fmt.Errorf("%w: renew the credentials; the connection tries again, each %v at the latest", b.opts.Explain(err), maxRefusedWait)
	}
	b.events.putCall(func() { b.opts.OnError(fmt.Errorf("bus: %w", err)) })
}

// Refused returns the last complaint of the server if that was that it does not permit a
// subject with this in it, else nil. After a Flush it has answered all subscriptions before.
func (b *Bus) Refused(part string) error {
	if b.nc == nil {
		return nil
	}
	if err := b.nc.LastError(); errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), part) {
		return fmt.Errorf("bus: %w: %w", ErrPermission, err)
	}
	return nil
}

func (b *Bus) isClosing() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closing
}

// checkUsable tells whether something can be sent.
func (b *Bus) checkUsable() error {
	switch b.State() {
	case Closed:
		return ErrClosed
	case Reconnecting:
		return ErrDisconnected
	case Connected:
	}
	return nil
}

// Publish sends data to whoever subscribes to the subject. A nil error means
// the message was handed over, not that anybody received it. The bus does not
// keep data.
func (b *Bus) Publish(subject string, data []byte) error {
	return failedOn("publish", subject, b.publish(subject, data))
}

func (b *Bus) publish(subject string, data []byte) error {
	if err := checkSubject(subject, false); err != nil {
		return err
	}
	if err := b.checkUsable(); err != nil {
		return err
	}
	return b.translateError(b.nc.Publish(subject, data), len(data))
}

// Reply answers a message that came from Request or Gather; ErrNoReply where
// it did not. It fails with ErrReply where the answer would not go to an inbox: a
// server does not check whether who asks may publish on the reply subject.
func (b *Bus) Reply(m Message, data []byte) error {
	switch {
	case m.Reply == "":
		return failedOn("reply to", m.Subject, ErrNoReply)
	case !strings.HasPrefix(m.Reply, nats.InboxPrefix):
		return failedOn("reply to", m.Subject, fmt.Errorf("%w: it is %q", ErrReply, m.Reply))
	}
	return failedOn("reply to", m.Subject, b.publish(m.Reply, data))
}

// Request sends data and returns the first reply. It fails with
// ErrNoResponders at once where nobody subscribes to the subject, and with
// the error of ctx where nobody answers in time: it is ctx alone that bounds
// the wait.
func (b *Bus) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	reply, err := b.request(ctx, subject, data)
	return reply, failedOn("request", subject, err)
}

func (b *Bus) request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	if err := errors.Join(checkSubject(subject, false), b.checkUsable(), ctx.Err()); err != nil {
		return nil, err
	}
	reply, err := b.nc.RequestWithContext(ctx, subject, data)
	if err != nil {
		return nil, b.translateError(err, len(data))
	}
	return reply.Data, nil
}

// Gather sends data and hands every reply to take, one at a time and each publisher's in their
// order, until take returns false, which is success, or ctx is done, which is its error. It
// fails with ErrNoResponders at once where nobody subscribes to the subject, and with
// ErrPermission where the server refuses the subject or the replies to this user. More than
// GatherLimit replies that wait for take are lost and counted.
func (b *Bus) Gather(ctx context.Context, subject string, data []byte, take func([]byte) bool) error {
	return failedOn("request", subject, b.gather(ctx, subject, data, take))
}

func (b *Bus) gather(ctx context.Context, subject string, data []byte, take func([]byte) bool) error {
	if err := errors.Join(checkSubject(subject, false), b.checkUsable(), ctx.Err()); err != nil {
		return err
	}
	inbox := b.nc.NewInbox()
	sub, err := b.nc.SubscribeSync(inbox)
	if err != nil {
		return b.translateError(err, 0)
	}
	defer func() {
		if lost, err := sub.Dropped(); err == nil && lost > 0 {
			b.dropped.Add(uint64(lost))
		}
		_ = sub.Unsubscribe() // It fails only on a closed connection.
	}()
	if err := sub.SetPendingLimits(GatherLimit, -1); err != nil {
		return b.translateError(err, 0)
	}
	before := b.nc.LastError()
	if err := b.translateError(b.nc.PublishRequest(subject, inbox, data), len(data)); err != nil {
		return err
	}
	if err := b.flush(ctx); err != nil {
		return err
	}
	// Without this a request that is refused has no answer, and fails when its time is over.
	refused := func() error {
		for _, part := range []string{`"` + subject + `"`, `"` + inbox + `"`} {
			if err := b.Refused(part); err != nil && b.nc.LastError() != before { //nolint:errorlint // Is it the same one?
				return err
			}
		}
		return nil
	}
	if err := refused(); err != nil {
		return err
	}
	for {
		m, err := sub.NextMsgWithContext(ctx)
		switch {
		case errors.Is(err, nats.ErrSlowConsumer):
			continue // Counted at the end.
		case err != nil:
			return cmp.Or(refused(), b.translateError(err, 0)) // The client may have learned of a refusal after the flush.
		case len(m.Data) == 0 && m.Header.Get("Status") == "503":
			return ErrNoResponders
		}
		if !take(m.Data) {
			return nil
		}
	}
}

// Flush returns nil once the server has everything sent before and has
// queued to this connection what came to it earlier.
func (b *Bus) Flush(ctx context.Context) error {
	return failedOn("flush", b.opts.Name, b.flush(ctx))
}

// CatchUp returns nil once the handlers have returned from everything that had come to
// the server for this connection before the call. A handler that waits for the caller
// makes it wait until ctx ends.
func (b *Bus) CatchUp(ctx context.Context) error {
	err := b.flush(ctx)
	if err == nil {
		err = b.handled(ctx)
	}
	return failedOn("catch up", b.opts.Name, err)
}

// handled waits until the handlers have returned from what has arrived.
func (b *Bus) handled(ctx context.Context) error {
	done := make(chan struct{})
	if err := b.nc.Barrier(func() { close(done) }); err != nil {
		return b.translateError(err, 0) // Closed.
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// flush does not wait for a server that is away.
func (b *Bus) flush(ctx context.Context) error {
	if err := b.checkUsable(); err != nil {
		return err
	}
	if b.nc.IsReconnecting() { // Which we have yet to be told.
		return ErrDisconnected
	}
	ctx, cancel := context.WithTimeout(ctx, flushWait)
	defer cancel()
	err := b.nc.FlushWithContext(ctx)
	lost := errors.Is(err, nats.ErrConnectionClosed) && !b.nc.IsClosed() // That is how nats.go reports one lost meanwhile.
	if lost || err != nil && b.nc.IsReconnecting() {                     // A flush that begins just then waits in vain.
		return ErrDisconnected
	}
	return b.translateError(err, 0)
}

// translateError turns the errors of nats.go into ours.
func (b *Bus) translateError(err error, size int) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrDisconnected):
		return ErrDisconnected
	case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrConnectionDraining):
		return ErrClosed
	case errors.Is(err, nats.ErrNoResponders):
		return ErrNoResponders
	case errors.Is(err, nats.ErrMaxPayload):
		return fmt.Errorf("%w: %d bytes, limit %d", ErrTooLarge, size, b.nc.MaxPayload())
	}
	return err
}

// NATS is the connection, for what this package does not do. Its owner must neither close it nor change its handlers.
func (b *Bus) NATS() *nats.Conn { return b.nc }

// State tells whether the server can be reached.
func (b *Bus) State() State { return State(b.state.Load()) }

// Dropped counts the messages lost to slow handlers, and replies lost to a slow
// Gather, since the connection was made.
func (b *Bus) Dropped() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.dropped.Load()
	for _, sub := range b.subs {
		n += sub.countDropped()
	}
	return n
}

// Close runs handlers on what has arrived, ends every subscription and waits
// for all of it, at most Options.DrainTimeout; then it fails with
// ErrDrainTimeout, naming what still runs. Closing again returns nil.
func (b *Bus) Close() error {
	subs, first := b.beginClose()
	if !first {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), b.opts.DrainTimeout)
	defer cancel()
	if b.State() != Connected {
		b.stopDial()
	}
	b.drain(ctx)
	for _, s := range subs {
		s.endDelivery()
	}
	err := waitFor(ctx, subs)
	b.become(Closed) // Only now: the handlers may have published until here.
	b.hangUp()
	b.events.endEvents()
	for _, done := range []<-chan struct{}{b.hungUp, b.events.done} {
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
	return err
}

func (b *Bus) beginClose() (subs []*natsSub, first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closing {
		return nil, false
	}
	b.closing = true
	return slices.Clone(b.subs), true
}

// drain has everything handled that the server sent before now.
func (b *Bus) drain(ctx context.Context) {
	// Without a server there is only what has arrived. A server that goes away at this moment
	// must not use up the time of the handlers.
	flushing, cancel := context.WithTimeout(ctx, b.opts.DrainTimeout/2)
	defer cancel()
	_ = b.flush(flushing)
	_ = b.handled(ctx) // If it is closed there is nothing to wait for.
}
