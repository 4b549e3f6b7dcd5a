package agent_test

import (
	"sync"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync/source"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
)

// hub runs a real synchronizer's machine for group "g" over a bus.
type hub struct {
	t        testing.TB
	bus      *bus.Bus
	subjects wire.Subjects
	codec    *wire.BatchCodec

	mu       sync.Mutex
	core     *synccore.Core
	out      synccore.Output
	hellos   map[string]wire.Hello
	verdicts map[string]int // firings
	fates    []monitor.Fate
	rejected []string
	mute     string                 // the member that is not heard
	lose     func(*wire.Peers) bool // what of the roster is lost; nil: nothing
	end      chan struct{}
	ended    sync.WaitGroup
}

// newHub hosts the first level of a configuration.
func newHub(tb testing.TB, connect func(bus.Options) *bus.Bus, config string) *hub {
	tb.Helper()
	plans, err := configfile.Parse("test.yaml", []byte(config))
	if err != nil {
		tb.Fatal(err)
	}
	h := &hub{
		t: tb, bus: connect(bus.Options{}), subjects: wire.Subjects{Tenant: "default", Group: "g"},
		codec: wire.NewBatchCodec(plans[0].State), core: synccore.New(plans[0], synccore.Options{Term: 1}),
		hellos: map[string]wire.Hello{}, verdicts: map[string]int{}, end: make(chan struct{}),
	}
	for subject, handle := range map[string]bus.Handler{h.subjects.StateAll(): h.onState, h.subjects.AckAll(plans[0].Name): h.onAck} {
		if err := h.bus.Subscribe(subject, bus.Limits{}, handle); err != nil {
			tb.Fatal(err)
		}
	}
	if err := h.bus.Flush(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	h.ended.Go(h.tick)
	tb.Cleanup(func() {
		close(h.end)
		h.ended.Wait()
		if err := h.bus.Close(); err != nil {
			tb.Error(err)
		}
	})
	return h
}

func (h *hub) tick() {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			h.step(synccore.Input{Kind: synccore.InTick})
		case <-h.end:
			return
		}
	}
}

func (h *hub) onState(m bus.Message) {
	from, _ := h.subjects.ParseState(m.Subject)
	if kind, _ := wire.KindOf(m.Data); kind != wire.KindBundle {
		h.frame(from, "", m.Data)
		return
	}
	var b wire.Bundle
	if err := wire.DecodeBundle(m.Data, &b); err != nil {
		h.t.Error(err)
		return
	}
	for _, p := range b.Parts {
		h.frame(p.Member, from, p.Frame)
	}
	if b.Version > 0 || b.Of > 0 {
		h.step(synccore.Input{Kind: synccore.InShared, From: from, Shared: &b})
	}
}

func (h *hub) frame(from, by string, data []byte) {
	kind, err := wire.KindOf(data)
	in := synccore.Input{From: from, By: by}
	h.mu.Lock()
	mute := h.mute == from
	h.mu.Unlock()
	if mute {
		return
	}
	switch kind {
	case wire.KindHello:
		var hello wire.Hello
		hello, err = wire.DecodeHello(data)
		in.Kind, in.Hello = synccore.InHello, &hello
		h.hellos[from] = hello
	case wire.KindBatch:
		in.Kind, in.Batch = synccore.InBatch, &wire.Batch{}
		err = h.codec.Decode(data, h.hellos[from].Domain, in.Batch)
	case wire.KindGone:
		var gone wire.Gone
		gone, err = wire.DecodeGone(data)
		in.Kind, in.Gone = synccore.InGone, &gone
	case wire.KindAck:
		var ack wire.Ack
		ack, err = wire.DecodeAck(data)
		in.Kind, in.Ack = synccore.InAck, &ack
	}
	if err != nil {
		h.t.Error(err)
		return
	}
	h.step(in)
}

func (h *hub) onAck(m bus.Message) {
	_, from, _ := h.subjects.ParseAck(m.Subject)
	ack, err := wire.DecodeAck(m.Data)
	if err != nil {
		h.t.Error(err)
		return
	}
	h.step(synccore.Input{Kind: synccore.InAck, From: from, Ack: &ack})
}

func (h *hub) step(in synccore.Input) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.core.Step(source.Monotonic().Add(aboveZero), &in, &h.out)
	for _, p := range h.out.Peers {
		h.peers(p)
	}
	for _, w := range h.out.Welcomes {
		frame, err := wire.AppendWelcome(nil, &w.Msg)
		h.publish(h.subjects.Probe, w.To, w.Via, frame, err)
	}
	for _, p := range h.out.Probes {
		frame, err := wire.AppendProbe(nil, &p.Msg)
		h.publish(h.subjects.Probe, p.To, p.Via, frame, err)
	}
	for _, r := range h.out.Resends {
		frame, err := wire.AppendResend(nil, &r.Msg)
		h.publish(h.subjects.Probe, r.To, r.Via, frame, err)
	}
	for _, s := range h.out.Signals {
		frame, _, err := wire.AppendSignals(nil, &s.Msg)
		h.publish(h.subjects.Signal, s.To, s.Via, frame, err)
	}
	for _, v := range h.out.Verdicts {
		if v.Fired {
			h.verdicts[v.Predicate]++
		}
	}
	h.fates = append(h.fates, h.out.Fates...)
	for _, r := range h.out.Rejected {
		h.rejected = append(h.rejected, r.From+": "+r.Detail)
	}
}

// peers sends the roster, one peer in a frame.
func (h *hub) peers(a wire.Addressed[wire.Peers]) {
	subject := h.subjects.Probe
	if a.To == "" {
		subject = func(string) string { return h.subjects.Announce() }
	}
	for rest := a.Msg; ; {
		piece := rest
		piece.Peers = rest.Peers[:min(1, len(rest.Peers))]
		if h.lose == nil || !h.lose(&piece) {
			frame, _, err := wire.AppendPeers(nil, &piece)
			h.publish(subject, a.To, a.Via, frame, err)
		}
		if len(rest.Peers) <= 1 {
			return
		}
		rest.Peers, rest.First, rest.Section = rest.Peers[1:], rest.First+1, nil
	}
}

// aboveZero brings the time of a bubble, which begins in the year 2000, above the zero instant, at
// which a machine takes for over what never was.
const aboveZero = 100 * 365 * 24 * time.Hour

// set changes the hub between two steps.
func (h *hub) set(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
}

// publish sends a frame to a member, or by way of its multiplexer.
func (h *hub) publish(subject func(string) string, to, via string, frame []byte, err error) {
	if via != "" && err == nil {
		frame, _, err = wire.AppendBundle(nil, &wire.Bundle{Parts: []wire.Part{{Member: to, Frame: frame}}})
		to = via
	}
	if err == nil {
		err = h.bus.Publish(subject(to), frame)
	}
	if err != nil {
		h.t.Error(err)
	}
}

func (h *hub) fired(predicate string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.verdicts[predicate]
}
