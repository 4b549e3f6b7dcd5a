package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/telemetry"
	"github.com/gopegasus/pegasus/internal/wire"
)

// ControlLoss is what a region does while nobody controls its member: it has either Hold or
// CancelAfter.
type ControlLoss struct {
	// Hold has the program wait until control is back: in [Member.Region] before the work
	// begins, and in [Region.Check] and [Region.Wait] before they return. Activations that
	// come meanwhile are run there. The wait ends as well with the context that was given, the
	// region's cancellation, or Close.
	Hold bool
	// CancelAfter has the region cancelled when it has been without control for so long, as by
	// a signal. It counts from the loss, or from the entry if that was later. A killed
	// synchronizer is missed only after Silence: 3 s end 5 s after the kill, counting only time
	// in which this process ran.
	CancelAfter time.Duration
	// Handle is the cancel handler of that; Signal.Duration("after") is CancelAfter. If it is
	// nil, Region returns [*Canceled].
	Handle Handler
	// Silence is how long the member may hear nothing of the synchronizer, from 500 ms to 1 h.
	// 0 stands for 2 s.
	Silence time.Duration
}

// OnControlLoss sets what happens to the region while nothing controls its member. Default: the
// region continues. Control is lost when the server is away, or when the member heard nothing
// of the synchronizer for Silence: no message, and no beat of the leading process. Control is
// back when the member hears the synchronizer again. Time for which this process itself stood
// still does not count; the process first reads what has arrived meanwhile.
//
// A region of a thread follows the control of its process. A region takes either this
// cancellation or the cancellation of a signal, whichever is first. The synchronizer learns of
// it when control is back.
func OnControlLoss(l ControlLoss) RegionOption {
	return func(r *Region) error {
		switch {
		case r.loss != nil:
			return errors.New("agent: OnControlLoss is given twice: keep one")
		case l.Hold == (l.CancelAfter != 0) || l.CancelAfter < 0:
			return fmt.Errorf("agent: OnControlLoss has Hold %t and CancelAfter %v: set Hold, or a CancelAfter above 0; to continue without control, leave OnControlLoss out", l.Hold, l.CancelAfter)
		case l.Handle != nil && l.Hold:
			return errors.New("agent: OnControlLoss has Hold and a Handle, which is for CancelAfter: leave it out")
		case l.Silence != 0 && (l.Silence < agentcore.MinSilence || l.Silence > agentcore.MaxSilence):
			return fmt.Errorf("agent: OnControlLoss has a Silence of %v: use %v to %v, or 0 for %v", l.Silence, agentcore.MinSilence, agentcore.MaxSilence, agentcore.DefaultSilence)
		}
		r.loss = &loss{ControlLoss: l, region: r}
		if l.Handle != nil {
			r.cancel[""] = l.Handle // No signal has that name.
		}
		return nil
	}
}

// Controlled reports whether the member is under control: the server is there, and the member
// heard the synchronizer in the last two seconds. It sends nothing and takes less than a
// microsecond. Until some seconds after the first call it may report true, since nothing has
// been observed yet.
func (m *Member) Controlled() bool {
	x := &m.multiplexer.contact
	x.plain.Do(func() { x.enterRule(&x.any) })
	return x.held(&x.any) == nil
}

// loss is a region's rule, and where it stands.
type loss struct {
	ControlLoss

	region  *Region
	number  uint64          // of the rule
	free    chan struct{}   // closed when control is back; nil: it is there. Guarded by the contact.
	counted <-chan struct{} // the last hold that was counted; used by the goroutine of Region only
}

// contact follows whether the leading process is heard over a connection. Nothing of it runs
// before the first question. Its lock is taken under the lock of a member, and held for fields
// alone.
type contact struct {
	c     *multiplexer
	heard atomic.Int64  // an Instant: when who leads has sent something for a member
	lost  atomic.Bool   // whoever hears it wakes the goroutine
	wake  chan struct{} // capacity 1

	plain sync.Once // of any, which is for Controlled
	any   loss

	mu      sync.Mutex
	core    *agentcore.Control
	losses  map[uint64]*loss
	ctx     context.Context //nolint:containedctx // Of the goroutines; nil before there are any.
	cancel  context.CancelFunc
	over    bool
	beats   []string // the synchronizers whose beats are heard
	effects []agentcore.Effect
}

// maxLeaders is how many synchronizers may take members in over one connection, one after
// the other, so that their beats are heard.
const maxLeaders = 8

func (x *contact) init(c *multiplexer) {
	x.c, x.core, x.wake, x.losses = c, agentcore.NewControl(), make(chan struct{}, 1), map[uint64]*loss{}
	x.heard.Store(int64(clocksync.MinInstant))
}

// endContact ends the goroutines.
func (x *contact) endContact() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over = true; x.cancel != nil {
		x.cancel()
	}
}

// noteLeader takes note that who leads has sent what has just come.
func (x *contact) noteLeader() {
	x.heard.Store(x.c.heard.Load())
	if x.lost.Load() {
		notifyChannel(x.wake)
	}
}

// noteAccepted notes the synchronizer that has admitted a member.
func (x *contact) noteAccepted(w *wire.Welcome) {
	x.mu.Lock()
	x.core.Accepted(x.c.now(), w.Synchronizer, w.Term)
	x.mu.Unlock()
	notifyChannel(x.wake)
}

func (x *contact) onBeat(msg bus.Message) {
	var b wire.Beat
	if err := wire.DecodeBeat(msg.Data, &b); err != nil {
		x.c.log.Debug("a message was refused", telemetry.ClassKey, "beat", "subject", msg.Subject, "error", err)
		return
	}
	x.mu.Lock()
	if msg.Subject == x.c.subjects.Beat(x.core.Leader()) {
		x.core.Beat(x.c.now(), b.Term, b.Leads())
	}
	x.mu.Unlock()
	if x.lost.Load() {
		notifyChannel(x.wake)
	}
}

// enterRule begins a rule.
func (x *contact) enterRule(l *loss) {
	x.mu.Lock()
	defer x.tell()
	if x.ctx == nil && !x.over {
		x.ctx, x.cancel = context.WithCancel(context.Background())
		x.c.running.Go(x.run)
	}
	now, lost := x.c.now(), false
	x.core.Server(now, x.c.bus.State() != bus.Connected)
	l.number, lost = x.core.Enter(now, agentcore.Rule{Silence: l.Silence, CancelAfter: l.CancelAfter})
	if x.losses[l.number] = l; lost {
		l.free = make(chan struct{})
	}
	x.lost.Store(x.core.Awaits())
	notifyChannel(x.wake)
}

// tell gives up the lock, and logs first what has come about with control.
func (x *contact) tell() {
	lost, back, after := x.core.News()
	if !lost && !back {
		x.mu.Unlock()
		return
	}
	leader, cause := x.core.Leader(), "the server is away"
	var holds, cancels []string
	for _, l := range x.losses {
		switch {
		case l.region == nil: // Of Controlled.
		case l.Hold:
			holds = append(holds, l.region.p.process().cfg.Name+"/"+l.region.name)
		default:
			cancels = append(cancels, l.region.p.process().cfg.Name+"/"+l.region.name)
		}
	}
	x.mu.Unlock()
	if back {
		x.c.log.Info("the members of this process are controlled again", telemetry.ClassKey, "control", "group", x.c.subjects.Group, "synchronizer", leader, "after", after)
		return
	}
	if x.c.bus.State() == bus.Connected {
		cause = fmt.Sprintf("synchronizer %q is not heard", leader)
	}
	x.c.log.Warn("nobody controls the members of this process", telemetry.ClassKey, "control", "group", x.c.subjects.Group, "cause", cause, "holds", few(holds), "cancels", few(cancels))
}

// few is the first of many names, in order, and how many more there are.
func few(names []string) []string {
	const shown = 8
	slices.Sort(names)
	if more := len(names) - shown; more > 0 {
		names = append(names[:shown], fmt.Sprintf("and %d more", more))
	}
	return names
}

// exitRule ends a rule.
func (x *contact) exitRule(l *loss) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.core.Exit(l.number)
	delete(x.losses, l.number)
	x.lost.Store(x.core.Awaits())
}

// held is closed when control is back; nil if it is there.
func (x *contact) held(l *loss) <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	return l.free
}

// run looks when it is due.
func (x *contact) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-x.wake:
		case <-x.ctx.Done():
			return
		}
		timer.Reset(x.turn())
	}
}

// turn has what has come about take effect, and returns how long it is until the next one.
func (x *contact) turn() time.Duration {
	x.listen()
	x.mu.Lock()
	now := x.c.now()
	x.core.Server(now, x.c.bus.State() != bus.Connected)
	x.core.Hear(now, clocksync.Instant(x.heard.Load()))
	effects, ask, told, wake := x.core.Turn(now, x.effects[:0])
	x.effects = effects
	x.lost.Store(x.core.Awaits())
	var look []*Region
	var lapsed []*loss
	for _, e := range effects {
		l := x.losses[e.Rule]
		switch e.Kind {
		case agentcore.EffectLost:
			l.free = make(chan struct{})
			if l.Hold {
				look = append(look, l.region)
			}
		case agentcore.EffectBack:
			close(l.free)
			l.free = nil
		case agentcore.EffectCancel:
			lapsed = append(lapsed, l)
		}
	}
	if ask {
		x.c.running.Go(x.roundTrip)
	}
	x.tell()
	for _, r := range look {
		r.attendSignals()
	}
	for _, l := range lapsed {
		l.region.lapse(l.CancelAfter)
	}
	if told {
		x.c.back()
	}
	return wake.Sub(now)
}

// listen hears the beats of the synchronizer that has admitted a member. The connection may be
// busy, so no lock is held.
func (x *contact) listen() {
	x.mu.Lock()
	leader := x.core.Leader()
	known := leader == "" || len(x.beats) == maxLeaders || slices.Contains(x.beats, leader)
	x.mu.Unlock()
	if known {
		return
	}
	if err := x.c.bus.Subscribe(x.c.subjects.Beat(leader), bus.Limits{}, x.onBeat); err != nil {
		x.c.log.Debug("the beats of the synchronizer cannot be heard yet", "synchronizer", leader, "error", err)
		return
	}
	x.mu.Lock()
	x.beats = append(x.beats, leader)
	x.mu.Unlock()
}

// roundTrip returns when all has been taken that had come to the server for this connection.
func (x *contact) roundTrip() {
	ctx, cancel := context.WithTimeout(x.ctx, agentcore.DefaultSilence)
	defer cancel()
	err := x.c.bus.CatchUp(ctx)
	x.mu.Lock()
	now := x.c.now()
	x.core.Hear(now, clocksync.Instant(x.heard.Load()))
	x.core.RoundTrip(now, err == nil)
	x.mu.Unlock()
	notifyChannel(x.wake)
}

// back has the members tell which of their regions were cancelled for want of control.
func (c *multiplexer) back() {
	c.mu.Lock()
	members := c.members
	c.mu.Unlock()
	for _, m := range members {
		m.mu.Lock()
		m.stepInput(&agentcore.Input{Kind: agentcore.InBack})
		m.mu.Unlock()
	}
}

// process is the member whose control the participant goes by.
func (p *participant) process() *Member {
	if p.above != nil {
		return p.above.m
	}
	return p.owner
}

// awaitAdmission begins the rule of a region that is about to be entered, and waits while it is held.
func (r *Region) awaitAdmission(ctx context.Context) error {
	m := r.p.process()
	m.multiplexer.contact.enterRule(r.loss)
	free := r.heldUntil()
	if free == nil {
		return nil
	}
	select {
	case <-free:
		return nil
	case <-m.stop:
		return ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("agent: region %q is held, as nobody controls its member: %w", r.name, context.Cause(ctx))
	}
}

// heldUntil is closed when the region is no longer held; nil if it is not held.
func (r *Region) heldUntil() <-chan struct{} {
	if r.loss == nil || !r.loss.Hold {
		return nil
	}
	m := r.p.process()
	free := m.multiplexer.contact.held(r.loss)
	if free != nil && r.loss.counted != free {
		r.loss.counted = free
		m.held.Add(1)
	}
	return free
}

// lapse cancels the region for want of control.
func (r *Region) lapse(after time.Duration) {
	p := r.p
	p.mu.Lock()
	fresh := p.stepInput(&agentcore.Input{Kind: agentcore.InLapse, Entry: r.entry, After: after}).Fresh
	if look := p.deliverSignals(fresh, nil); len(look) > 0 {
		m := p.process()
		m.lapsed.Add(1)
		m.log.Warn("a region is cancelled, as nobody controls its member", "member", m.cfg.Name, "region", r.name, "after", after)
		r.attendSignals()
	}
	p.mu.Unlock()
	p.above.runDue()
}
