package sim

import (
	"fmt"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
)

// Group is a synchronizer's machine on a host, and the members that report to it
// over links.
type Group struct {
	// Observe receives every output.
	Observe func(*synccore.Output)
	Members []*Member

	host  *Host
	core  *synccore.Core
	codec *wire.BatchCodec
	out   synccore.Output
	alarm alarm

	timeline clocksync.Timeline // as the machine knows it
}

// NewGroup hosts the synchronizer of a plan whose members are processes. Without a
// timeline the reference is the monotonic clock of the host.
func NewGroup(h *Host, plan *plan.Level, timeline clocksync.Timeline) *Group {
	opt := synccore.Options{Term: 1, Reference: h.Domain, Timeline: timeline, Relative: timeline == ""}
	if opt.Relative {
		opt.Timeline = h.readTimeline()
	}
	return &Group{
		Observe:  func(*synccore.Output) {},
		host:     h,
		core:     synccore.New(plan, opt),
		codec:    wire.NewBatchCodec(plan.State),
		timeline: h.readTimeline(),
	}
}

// Core is the synchronizer's machine, to look at.
func (g *Group) Core() *synccore.Core { return g.core }

// readTimeline is the timeline of the readings: a suspend ends it.
func (h *Host) readTimeline() clocksync.Timeline {
	return clocksync.Timeline(fmt.Sprintf("%s+%d", h.Domain, h.asleep))
}

func (g *Group) receiveFrame(m *Member, frame []byte) {
	g.step(toSynchronizer(m.name, frame, g.codec, &wire.Batch{}))
}

func (g *Group) step(in synccore.Input) {
	if t := g.host.readTimeline(); t != g.timeline {
		g.timeline = t
		g.step(synccore.Input{Kind: synccore.InTimeline, Timeline: t})
	}
	g.core.Step(g.host.Mono(), &in, &g.out)
	g.Observe(&g.out)
	new(frames).ofSynchronizer(&g.out, g.send)
	g.alarm.setAlarm(g.host, g.out.Wake, func() { g.step(synccore.Input{Kind: synccore.InTick}) })
}

func (g *Group) send(to string, frame []byte) {
	for _, m := range g.Members {
		if (m.name == to || to == "") && !m.over {
			m.down.Send(func() { m.host.Do(func() { m.receiveFrame(frame) }) })
		}
	}
}

// alarm lets a host do something at a reading of its clock. Setting it to an earlier reading
// replaces the reading set before.
type alarm struct {
	at     clocksync.Instant
	number uint64
}

// moment is the least time between two steps of a machine without an input.
const moment = 5 * time.Microsecond

func (a *alarm) setAlarm(h *Host, at clocksync.Instant, do func()) {
	at = max(at, h.Mono().Add(moment))
	if at == clocksync.MaxInstant || a.number > 0 && a.at <= at && a.at > h.Mono() {
		return
	}
	a.number++
	a.at = at
	mine := a.number
	h.callAt(at, func() {
		if a.number == mine {
			a.at = clocksync.MinInstant
			do()
		}
	})
}
