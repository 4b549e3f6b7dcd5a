package sim

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// Held is a state that a member truly had: from one true time up to another.
type Held struct {
	From, To clocksync.Instant
}

// Clock is what a member stamps by.
type Clock interface {
	Read() clocksync.Stamp
	Quality() clocksync.Quality
}

// Member is the machine of an agent on a host, or of a thread there, and a
// program that obeys signals at once.
type Member struct {
	// Welcomed, if not nil, is called each time that the synchronizer has taken the member in.
	Welcomed func()
	// Obeyed, if not nil, is called for each signal that took effect.
	Obeyed func(*control.Signal)
	// Held are the states that Change began, by their number less 1; the last one
	// still holds.
	Held []Held

	name     string
	host     *Host
	clock    Clock  // nil: the system's clock
	group    *Group // nil: a thread
	level    *Level // nil: a process
	up, down *Link
	core     *agentcore.Core
	out      agentcore.Output // of ticks
	answer   agentcore.Output // of the last step but ticks
	due      clocksync.Instant
	alarm    alarm
	entries  map[string]uint64 // of open regions
	over     bool              // the program has ended
}

// Join adds a member that stamps by a clock, or without a bound where that is
// nil. One of a name that was there before is its next incarnation.
func (g *Group) Join(name string, h *Host, k Clock, up, down *Link) *Member {
	m := &Member{name: name, host: h, clock: k, group: g, up: up, down: down, due: clocksync.MinInstant, entries: map[string]uint64{}}
	m.core = agentcore.New(agentcore.Options{Hello: wire.Hello{
		Member: name, Incarnation: drawIncarnation(g.Members, name), Host: string(h.Domain), Domain: h.Domain, Quality: m.quality(),
	}})
	g.Members = append(g.Members, m)
	h.Do(m.flush)
	return m
}

// drawIncarnation is the incarnation of the next member of a name.
func drawIncarnation(members []*Member, name string) uint64 {
	next := uint64(1)
	for _, m := range members {
		if m.name == name {
			next = max(next, m.core.Incarnation()+1)
		}
	}
	return next
}

// Set begins a state. The synchronizer must have said what states are.
func (m *Member) Set(row []scgs.Value) { m.begin(m.stamp(), row) }

func (m *Member) begin(at clocksync.Stamp, row []scgs.Value) {
	if err := m.stepInput(agentcore.Input{Kind: agentcore.InState, At: at, Row: row}).Err; err != nil {
		panic(fmt.Sprintf("sim: member %s: %v", m.name, err))
	}
	m.setAlarm()
}

// Enter opens a region that is not open, with a handler for activations of each
// of the names.
func (m *Member) Enter(region string, names ...string) {
	handlers := make([]control.Handler, len(names))
	for i, name := range names {
		handlers[i].Name = name
	}
	out := m.stepInput(agentcore.Input{Kind: agentcore.InEnter, Region: region, Handlers: handlers})
	if out.Err != nil {
		panic(fmt.Sprintf("sim: member %s: %v", m.name, out.Err))
	}
	m.entries[region] = out.Entry
	m.setAlarm()
}

// Exit leaves a region. It does nothing if the region is not open, since a signal may have
// cancelled it.
func (m *Member) Exit(region string) {
	entry, open := m.entries[region]
	if !open {
		return
	}
	delete(m.entries, region)
	if s := m.stepInput(agentcore.Input{Kind: agentcore.InExit, Entry: entry}).Signal; s != nil {
		m.obeyed(s)
	}
	m.setAlarm()
}

func (m *Member) obeyed(s *control.Signal) {
	m.stepInput(agentcore.Input{Kind: agentcore.InFinish, Signal: s, Fate: control.Applied})
	if m.Obeyed != nil {
		m.Obeyed(s)
	}
}

// runHandlers runs the handlers of the signals that wait, and leaves the regions that were
// cancelled.
func (m *Member) runHandlers() {
	for _, region := range slices.Sorted(maps.Keys(m.entries)) {
		entry := m.entries[region]
		next := agentcore.Input{Kind: agentcore.InNext, Entry: entry, Delivery: control.AtCheck}
		for s := m.stepInput(next).Signal; s != nil; s = m.stepInput(next).Signal {
			m.obeyed(s)
		}
		if m.core.Canceled(entry) != nil {
			m.Exit(region)
		}
	}
}

// Leave ends the program in order.
func (m *Member) Leave() {
	m.stepInput(agentcore.Input{Kind: agentcore.InLeave})
	m.setAlarm()
}

// Crash ends the program without a word.
func (m *Member) Crash() { m.over = true }

func (m *Member) quality() clocksync.Quality {
	switch {
	case m.clock == nil:
		return clocksync.Quality{Source: "system"}
	case m.clock.Quality().Status == clocksync.Unknown && m.core == nil:
		return clocksync.Quality{} // It knows no timeline before its first bound.
	}
	return m.clock.Quality()
}

// stamp reads the clock, and lets the machine know first what that rests on.
func (m *Member) stamp() clocksync.Stamp {
	if m.level != nil {
		return m.level.stampReading()
	}
	quality := m.quality()
	m.stepInput(agentcore.Input{Kind: agentcore.InClock, Quality: &quality})
	if m.clock == nil {
		return clocksync.Stamp{Domain: m.host.Domain, Mono: m.host.Mono(), Within: clocksync.Unbounded}
	}
	return m.clock.Read()
}

func (m *Member) setAlarm() {
	if m.level != nil {
		m.level.wakeAt(clocksync.MinInstant)
		return
	}
	m.alarm.setAlarm(m.host, m.due, m.flush)
}

func (m *Member) stepInput(in agentcore.Input) *agentcore.Output {
	m.stepCore(m.host.Mono(), in, &m.answer)
	return &m.answer
}

func (m *Member) stepCore(now clocksync.Instant, in agentcore.Input, out *agentcore.Output) {
	m.core.Step(now, &in, out)
	m.due = out.Wake
}

func (m *Member) flush() {
	if m.over {
		return
	}
	m.stepCore(m.host.Mono(), agentcore.Input{Kind: agentcore.InTick, At: m.stamp()}, &m.out)
	new(frames).ofMember(m.core, &m.out, m.send)
	m.setAlarm()
}

func (m *Member) send(frame []byte) {
	m.up.Send(func() { m.group.host.Do(func() { m.group.receiveFrame(m, frame) }) })
}

// receiveFrame takes a frame of the synchronizer.
func (m *Member) receiveFrame(frame []byte) {
	if m.over {
		return
	}
	switch in := toMember(frame); in.Kind {
	case agentcore.InWelcome:
		m.takeWelcome(in.Welcome)
	case agentcore.InSignals:
		m.stepInput(in)
		m.runHandlers()
	default:
		m.stepInput(in)
	}
	m.setAlarm()
}

func (m *Member) takeWelcome(w *wire.Welcome) {
	if m.stepInput(agentcore.Input{Kind: agentcore.InWelcome, Welcome: w}).Reception == agentcore.Accepted && m.Welcomed != nil {
		m.Welcomed()
	}
}
