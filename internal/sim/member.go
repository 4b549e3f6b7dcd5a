package sim

import (
	"fmt"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// Held is a state that a member truly had: from one true time up to another.
type Held struct {
	From, To clocksync.Instant
}

// Member is the machine of an agent on a host. Its state is one int field: the
// number of the state, from 1.
type Member struct {
	// Held are its states by their number less 1; the last one still holds.
	Held []Held

	name     string
	host     *Host
	keeper   *Keeper // nil: the system's clock
	group    *Group
	up, down *Link
	core     *agentcore.Core
	out      agentcore.Output
	alarm    alarm
}

// Join adds a member that stamps by a keeper, or without a bound where that is
// nil.
func (g *Group) Join(name string, h *Host, k *Keeper, up, down *Link) *Member {
	m := &Member{name: name, host: h, keeper: k, group: g, up: up, down: down}
	m.core = agentcore.New(agentcore.Options{Hello: wire.Hello{
		Member: name, Incarnation: 1, Host: string(h.Domain), Domain: h.Domain, Quality: m.quality(),
	}})
	g.Members = append(g.Members, m)
	h.Do(m.flush)
	return m
}

// Change begins the next state, once a synchronizer has said what states are.
func (m *Member) Change() {
	at := m.stamp()
	if m.core.Codec() == nil {
		return
	}
	now := m.host.world.now
	if n := len(m.Held); n > 0 {
		m.Held[n-1].To = now
	}
	m.Held = append(m.Held, Held{From: now, To: clocksync.MaxInstant})
	if err := m.core.Set(m.host.Mono(), at, []scgs.Value{scgs.IntValue(int64(len(m.Held)))}); err != nil {
		panic(fmt.Sprintf("sim: member %s: %v", m.name, err))
	}
	m.wake()
}

func (m *Member) quality() clocksync.Quality {
	switch {
	case m.keeper == nil:
		return clocksync.Quality{Source: "system"}
	case m.keeper.Quality().Status == clocksync.Unknown && m.core == nil:
		return clocksync.Quality{} // It knows no timeline before its first bound.
	}
	return m.keeper.Quality()
}

// stamp reads the clock, and lets the machine know first what that rests on.
func (m *Member) stamp() clocksync.Stamp {
	m.core.Clock(m.host.Mono(), m.quality())
	if m.keeper == nil {
		return clocksync.Stamp{Domain: m.host.Domain, Mono: m.host.Mono(), Within: clocksync.Unbounded}
	}
	return m.keeper.Read()
}

func (m *Member) wake() { m.alarm.set(m.host, m.core.Wake(), m.flush) }

func (m *Member) flush() {
	m.core.Flush(m.host.Mono(), m.stamp(), &m.out)
	for i := range m.out.Hellos {
		frame, err := wire.AppendHello(nil, &m.out.Hellos[i])
		m.send(frame, err)
	}
	for i := range m.out.Batches {
		for b, n := &m.out.Batches[i], -1; n != len(b.Reports); {
			if n > 0 {
				b.Reports = b.Reports[n:]
			}
			frame, sent, err := m.core.Codec().Append(nil, b)
			m.send(frame, err)
			n = sent
		}
	}
	for i := range m.out.Gones {
		frame, err := wire.AppendGone(nil, &m.out.Gones[i])
		m.send(frame, err)
	}
	m.wake()
}

func (m *Member) send(frame []byte, err error) {
	if err != nil {
		panic(fmt.Sprintf("sim: a frame of member %s: %v", m.name, err))
	}
	m.up.Send(func() { m.group.host.Do(func() { m.group.receive(m, frame) }) })
}

// receive takes a frame of the synchronizer.
func (m *Member) receive(frame []byte) {
	now := m.host.Mono()
	kind, err := wire.KindOf(frame)
	switch kind { //nolint:exhaustive // The others travel the other way.
	case wire.KindWelcome:
		var w wire.Welcome
		w, err = wire.DecodeWelcome(frame)
		m.core.OnWelcome(now, &w)
	case wire.KindProbe:
		var p wire.Probe
		p, err = wire.DecodeProbe(frame)
		m.core.OnProbe(now, &p)
	case wire.KindResend:
		var r wire.Resend
		r, err = wire.DecodeResend(frame)
		m.core.OnResend(&r)
	}
	if err != nil {
		panic(fmt.Sprintf("sim: a frame for member %s: %v", m.name, err))
	}
	m.wake()
}
