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
	// Observe is told of every output.
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
		opt.Timeline = h.timeline()
	}
	return &Group{
		Observe:  func(*synccore.Output) {},
		host:     h,
		core:     synccore.New(plan, opt),
		codec:    wire.NewBatchCodec(plan.State),
		timeline: h.timeline(),
	}
}

// Core is the synchronizer's machine, to look at.
func (g *Group) Core() *synccore.Core { return g.core }

// timeline is that of the readings: a suspend ends it.
func (h *Host) timeline() clocksync.Timeline {
	return clocksync.Timeline(fmt.Sprintf("%s+%d", h.Domain, h.asleep))
}

// receive decodes a frame of a member. It panics at one that is none: the links
// lose messages and do not spoil them.
func (g *Group) receive(m *Member, frame []byte) {
	in := synccore.Input{From: m.name}
	kind, err := wire.KindOf(frame)
	switch kind { //nolint:exhaustive // The others travel the other way.
	case wire.KindHello:
		var hello wire.Hello
		hello, err = wire.DecodeHello(frame)
		in.Kind, in.Hello = synccore.InHello, &hello
	case wire.KindBatch:
		in.Kind, in.Batch = synccore.InBatch, &wire.Batch{}
		err = g.codec.Decode(frame, "", in.Batch)
	case wire.KindGone:
		var gone wire.Gone
		gone, err = wire.DecodeGone(frame)
		in.Kind, in.Gone = synccore.InGone, &gone
	case wire.KindAck:
		var ack wire.Ack
		ack, err = wire.DecodeAck(frame)
		in.Kind, in.Ack = synccore.InAck, &ack
	}
	if err != nil {
		panic(fmt.Sprintf("sim: a frame of %s: %v", m.name, err))
	}
	g.step(in)
}

func (g *Group) step(in synccore.Input) {
	if t := g.host.timeline(); t != g.timeline {
		g.timeline = t
		g.step(synccore.Input{Kind: synccore.InTimeline, Timeline: t})
	}
	g.core.Step(g.host.Mono(), &in, &g.out)
	g.Observe(&g.out)
	for i := range g.out.Welcomes {
		frame, err := wire.AppendWelcome(nil, &g.out.Welcomes[i].Msg)
		g.send(g.out.Welcomes[i].To, frame, err)
	}
	for i := range g.out.Resends {
		frame, err := wire.AppendResend(nil, &g.out.Resends[i].Msg)
		g.send(g.out.Resends[i].To, frame, err)
	}
	for i := range g.out.Probes {
		frame, err := wire.AppendProbe(nil, &g.out.Probes[i].Msg)
		g.send(g.out.Probes[i].To, frame, err)
	}
	for i := range g.out.Signals {
		for s, sent := g.out.Signals[i].Msg, 0; len(s.Signals) > 0; s.Signals = s.Signals[sent:] {
			var frame []byte
			var err error
			frame, sent, err = wire.AppendSignals(nil, &s)
			g.send(g.out.Signals[i].To, frame, err)
		}
	}
	g.alarm.set(g.host, g.out.Wake, func() { g.step(synccore.Input{Kind: synccore.InTick}) })
}

func (g *Group) send(to string, frame []byte, err error) {
	if err != nil {
		panic(fmt.Sprintf("sim: a frame for %s: %v", to, err))
	}
	for _, m := range g.Members {
		if m.name == to && !m.over {
			m.down.Send(func() { m.host.Do(func() { m.receive(frame) }) })
		}
	}
}

// alarm lets a host do something at a reading of its clock. Setting it to an
// earlier one replaces what was set.
type alarm struct {
	at     clocksync.Instant
	number uint64
}

// moment is the least time between two steps of a machine by itself.
const moment = 5 * time.Microsecond

func (a *alarm) set(h *Host, at clocksync.Instant, do func()) {
	at = max(at, h.Mono().Add(moment))
	if at == clocksync.MaxInstant || a.number > 0 && a.at <= at && a.at > h.Mono() {
		return
	}
	a.number++
	a.at = at
	mine := a.number
	h.until(at, func() {
		if a.number == mine {
			a.at = clocksync.MinInstant
			do()
		}
	})
}
