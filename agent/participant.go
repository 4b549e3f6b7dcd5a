package agent

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/gostate"
	"github.com/gopegasus/pegasus/internal/telemetry"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// participant is what a process and a thread have in common: a state, regions,
// and the machine that speaks to a synchronizer for them.
//
// One lock orders everything in a process: a stamp that is read under it is above the stamps of
// all earlier states, and no state changes while it is read.
type participant struct {
	owner     *Member // a process's own
	mu        *sync.Mutex
	above     *level // a thread's: the goroutine that has given up mu runs its due turns; nil: a process's
	readStamp func(*clocksync.Stamp)
	at        clocksync.Stamp // of the last state that was set
	now       func() clocksync.Instant
	core      *agentcore.Core
	last      clocksync.Instant // of the last step
	due       agentcore.Due     // since then
	answer    agentcore.Output  // of the last step but ticks
	pace      *pace
	regions   map[string]*Region
	spans     *telemetry.MemberSpans
	closed    bool
	state     gostate.Encoding
}

// stepMachine steps the machine. But for setRow nothing else does, and nothing but await learns
// when it is due next.
// Who brings one event to several machines may give all of them the instant at which it
// began. The lock is held.
func (p *participant) stepMachine(now clocksync.Instant, in *agentcore.Input, out *agentcore.Output) {
	p.last = max(p.last, now)
	p.core.Step(p.last, in, out)
	p.await(out.Due)
}

// await takes note of when the machine is due. The lock is held.
func (p *participant) await(due agentcore.Due) {
	p.due = due
	if p.owner != nil && p.owner.link.watcher != nil {
		p.owner.link.watcher.addState(p.core.Sequence())
	}
	p.pace.bringForward(due.Wake)
}

// stepInput is a step now. What it returns holds until the next one. The lock is held.
func (p *participant) stepInput(in *agentcore.Input) *agentcore.Output {
	p.stepMachine(p.now(), in, &p.answer)
	return &p.answer
}

// beginState begins a state now. The lock is held.
func (p *participant) beginState(state any) error {
	if p.closed {
		return ErrClosed
	}
	e, at, err := p.state.Of(state, p.core.Codec().Schema())
	if err != nil {
		return err
	}
	return p.beginPlainState(e, at)
}

// beginPlainState begins now the state that lies at an address. The lock is held.
func (p *participant) beginPlainState(e *gostate.Encoder, state unsafe.Pointer) error {
	words, ok := p.state.Words(e, state)
	if !ok {
		row, err := p.state.Row(e, state)
		if err != nil {
			return err
		}
		return p.state.Took(e, p.setRow(row))
	}
	p.readStamp(&p.at)
	return p.begun(p.core.Plain(p.instant(), &p.at, words))
}

// setRow begins the state of a row now. The lock is held.
func (p *participant) setRow(row []scgs.Value) error {
	p.readStamp(&p.at)
	return p.begun(p.core.State(p.instant(), &p.at, row))
}

// instant is now, which does not matter while there is news. The lock is held.
func (p *participant) instant() clocksync.Instant {
	if !p.due.News {
		p.last = max(p.last, p.now())
	}
	return p.last
}

// begun notes the result of a state. The lock is held.
func (p *participant) begun(due agentcore.Due, err error) error {
	p.await(due)
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	return nil
}

// deliverSignals hands signals that were accepted to their regions, and appends to dst those
// that are to look, with or without the lock. The lock is held.
func (p *participant) deliverSignals(fresh []control.Outcome, dst []*Region) []*Region {
	for _, o := range fresh {
		if r := p.regions[o.Signal.Region]; o.Fate == control.Waiting && r != nil && r.noteArrived(o.Signal) {
			dst = append(dst, r)
		}
	}
	return dst
}

// cancelRegions cancels the open regions. The lock is held.
func (p *participant) cancelRegions() {
	p.closed = true
	for _, r := range p.regions {
		r.end(ErrClosed)
	}
}

// newestReading is the reading at which the open state began. The lock is held.
func (p *participant) newestReading() clocksync.Instant {
	if start, open := p.core.Start(); open {
		return start.Mono
	}
	return clocksync.MinInstant
}

// readAbove reads the clock until it is above the newest state. It gives up after a
// while; such a stamp is no evidence, and the next one will be. The lock is held, but
// not between two readings.
func readAbove(lock sync.Locker, stamp func() clocksync.Stamp, newest func() clocksync.Instant) clocksync.Stamp {
	for tries := 0; ; tries++ {
		at := stamp()
		if tries == 1000 || at.Mono > newest() {
			return at
		}
		lock.Unlock()
		lock.Lock()
	}
}

// pace tells when the next turn of a machine is due. It is guarded by the lock of the
// process.
type pace struct {
	until  clocksync.Instant
	nearer func() // until is nearer than it was
	begin  func() // there may be a turn at all; nil: nobody wants to know
	begun  bool   // that was reported
}

// bringForward brings the next turn forward.
func (p *pace) bringForward(at clocksync.Instant) {
	if at >= p.until {
		return
	}
	p.until = at
	p.noteNews()
	p.nearer()
}

// noteNews tells that there may be a turn.
func (p *pace) noteNews() {
	if !p.begun && p.begin != nil {
		p.begun = true
		p.begin()
	}
}

// checkName refuses what cannot be named on the wire.
func checkName(what, name string) error {
	if err := wire.CheckToken(what, name); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	return nil
}
