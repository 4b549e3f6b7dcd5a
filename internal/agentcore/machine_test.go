package agentcore_test

import (
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// machine is a Core with a method for each input, so that tests read as what happens to a
// member. What comes out of all but ticks is in out.
type machine struct {
	*agentcore.Core

	out agentcore.Output
}

func newMachine(o agentcore.Options) *machine {
	m := &machine{Core: agentcore.New(o)}
	m.out.Wake = clocksync.MinInstant
	return m
}

func (m *machine) step(now clocksync.Instant, in agentcore.Input) *agentcore.Output {
	m.Step(now, &in, &m.out)
	return &m.out
}

func (m *machine) Flush(now clocksync.Instant, at clocksync.Stamp, out *agentcore.Output) {
	m.Step(now, &agentcore.Input{Kind: agentcore.InTick, At: at}, out)
	m.out.Due = out.Due
}

func (m *machine) Wake() clocksync.Instant { return m.out.Wake }

func (m *machine) Set(now clocksync.Instant, at clocksync.Stamp, row []scgs.Value) error {
	return m.step(now, agentcore.Input{Kind: agentcore.InState, At: at, Row: row}).Err
}

func (m *machine) End(now clocksync.Instant, at clocksync.Stamp) error {
	return m.step(now, agentcore.Input{Kind: agentcore.InEnd, At: at}).Err
}

func (m *machine) Alive(now clocksync.Instant, at clocksync.Stamp) error {
	return m.step(now, agentcore.Input{Kind: agentcore.InAlive, At: at}).Err
}

func (m *machine) Virtual(now clocksync.Instant) {
	m.step(now, agentcore.Input{Kind: agentcore.InSummary})
}

func (m *machine) Clock(now clocksync.Instant, q clocksync.Quality) agentcore.ClockNews {
	return m.step(now, agentcore.Input{Kind: agentcore.InClock, Quality: &q}).Clock
}

func (m *machine) OnWelcome(now clocksync.Instant, w *wire.Welcome) agentcore.Reception {
	return m.step(now, agentcore.Input{Kind: agentcore.InWelcome, Welcome: w}).Reception
}

func (m *machine) Recall(now clocksync.Instant) {
	m.step(now, agentcore.Input{Kind: agentcore.InRecall})
}

func (m *machine) OnProbe(now clocksync.Instant, p *wire.Probe) {
	m.step(now, agentcore.Input{Kind: agentcore.InProbe, Probe: p})
}

func (m *machine) OnResend(now clocksync.Instant, r *wire.Resend) {
	m.step(now, agentcore.Input{Kind: agentcore.InResend, Resend: r})
}

func (m *machine) OnSignals(now clocksync.Instant, s *wire.Signals) []control.Outcome {
	return m.step(now, agentcore.Input{Kind: agentcore.InSignals, Signals: s}).Fresh
}

func (m *machine) Enter(now clocksync.Instant, region string, handlers []control.Handler) (uint64, error) {
	out := m.step(now, agentcore.Input{Kind: agentcore.InEnter, Region: region, Handlers: handlers})
	return out.Entry, out.Err
}

func (m *machine) LeaveRegion(now clocksync.Instant, entry uint64) *control.Signal {
	return m.step(now, agentcore.Input{Kind: agentcore.InExit, Entry: entry}).Signal
}

func (m *machine) Next(now clocksync.Instant, entry uint64, at control.Delivery) *control.Signal {
	return m.step(now, agentcore.Input{Kind: agentcore.InNext, Entry: entry, Delivery: at}).Signal
}

func (m *machine) Finish(now clocksync.Instant, s *control.Signal, fate control.Fate) {
	m.step(now, agentcore.Input{Kind: agentcore.InFinish, Signal: s, Fate: fate})
}

func (m *machine) Leave(now clocksync.Instant) {
	m.step(now, agentcore.Input{Kind: agentcore.InLeave})
}
