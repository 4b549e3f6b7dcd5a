package sim

import (
	"slices"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// Level is a synchronizer's machine inside a process, and the threads of that
// process, which report to it through memory.
type Level struct {
	// Observe receives every output.
	Observe func(*synccore.Output)
	Threads []*Member

	host  *Host
	read  func() clocksync.Stamp // of the process's clock; nil: the host's, without a bound
	core  *synccore.Core
	out   synccore.Output
	alarm alarm
	last  clocksync.Instant // the reading of the last change
	gap   bool              // reports are incomplete until a ring has answered
}

// NewLevel hosts the synchronizer of a plan whose members are threads.
func NewLevel(h *Host, plan *plan.Level) *Level {
	return &Level{
		Observe: func(*synccore.Output) {}, host: h,
		core: synccore.New(plan, synccore.Options{Term: 1, Local: true}), last: clocksync.MinInstant,
	}
}

// Core is the synchronizer's machine, to look at.
func (l *Level) Core() *synccore.Core { return l.core }

// Join adds a thread. One of a name that was there before is its next
// incarnation.
func (l *Level) Join(name string) *Member {
	m := &Member{name: name, host: l.host, level: l, due: clocksync.MinInstant, entries: map[string]uint64{}}
	m.core = agentcore.New(agentcore.Options{Hello: wire.Hello{
		Member: name, Incarnation: drawIncarnation(l.Threads, name), Host: string(l.host.Domain), Domain: l.host.Domain,
	}})
	l.Threads = append(l.Threads, m)
	m.setAlarm()
	return m
}

// SetProcess begins a state of the process beside its threads.
func (l *Level) SetProcess(row []scgs.Value) {
	l.step(synccore.Input{Kind: synccore.InProcess, At: l.stampReading(), Row: row})
	l.wakeAt(clocksync.MinInstant)
}

// FromParent takes a signal of the level above.
func (l *Level) FromParent(s *control.Signal) {
	l.step(synccore.Input{Kind: synccore.InParent, Signal: s})
	l.wakeAt(clocksync.MinInstant)
}

// stampReading is of a reading alone: threads share a clock.
func (l *Level) stampReading() clocksync.Stamp {
	if l.read != nil {
		at := l.read()
		l.last = at.Mono
		return at
	}
	l.last = l.host.Mono()
	return clocksync.Stamp{Domain: l.host.Domain, Mono: l.last, Within: clocksync.Exactly(l.last)}
}

func (l *Level) wakeAt(at clocksync.Instant) { l.alarm.setAlarm(l.host, at, l.turn) }

// turn lets the machine see what has happened, up to one reading of the clock
// that is above all changes.
func (l *Level) turn() {
	now := l.host.Mono()
	if now <= l.last {
		l.wakeAt(clocksync.MinInstant)
		return
	}
	at := l.stampReading()
	l.gap = false
	for _, m := range l.Threads {
		m.stepCore(now, agentcore.Input{Kind: agentcore.InTick, At: at}, &m.out)
	}
	for _, m := range l.Threads {
		l.gap = l.gap || len(m.out.Hellos) > 0 // It may keep a report back until it is answered.
		l.report(m)
	}
	if l.gap {
		l.step(synccore.Input{Kind: synccore.InTick})
	} else {
		l.step(synccore.Input{Kind: synccore.InEvidence, At: at})
	}
	wake := l.out.Wake
	for _, m := range l.Threads {
		wake = min(wake, m.due)
	}
	l.wakeAt(wake)
}

// report steps the machine with a thread's report.
func (l *Level) report(m *Member) {
	for i := range m.out.Hellos {
		l.step(synccore.Input{Kind: synccore.InHello, From: m.name, Hello: &m.out.Hellos[i]})
	}
	for i := range m.out.Batches {
		l.step(synccore.Input{Kind: synccore.InBatch, From: m.name, Batch: &m.out.Batches[i]})
	}
	for i := range m.out.Gones {
		l.step(synccore.Input{Kind: synccore.InGone, From: m.name, Gone: &m.out.Gones[i]})
	}
	for i := range m.out.Acks {
		l.step(synccore.Input{Kind: synccore.InAck, From: m.name, Ack: &m.out.Acks[i].Ack})
	}
}

func (l *Level) step(in synccore.Input) {
	l.core.Step(l.host.Mono(), &in, &l.out)
	l.Observe(&l.out)
	for i := range l.out.Welcomes {
		l.to(l.out.Welcomes[i].To, func(m *Member) { m.takeWelcome(&l.out.Welcomes[i].Msg) })
	}
	for i := range l.out.Resends {
		l.gap = true
		l.to(l.out.Resends[i].To, func(m *Member) {
			m.stepInput(agentcore.Input{Kind: agentcore.InResend, Resend: &l.out.Resends[i].Msg})
		})
	}
	for i := range l.out.Signals {
		s := l.out.Signals[i].Msg
		s.Signals = slices.Clone(s.Signals) // A gate keeps them.
		l.to(l.out.Signals[i].To, func(m *Member) {
			m.stepInput(agentcore.Input{Kind: agentcore.InSignals, Signals: &s})
			m.runHandlers()
		})
	}
}

func (l *Level) to(name string, do func(*Member)) {
	for _, m := range l.Threads {
		if m.name == name {
			do(m)
		}
	}
}
