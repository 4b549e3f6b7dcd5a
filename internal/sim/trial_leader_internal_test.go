package sim

import (
	"fmt"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
)

// leader is the synchronizer. It restarts with nothing but a later term.
type leader struct {
	holder
	term   uint64
	core   *synccore.Core
	out    synccore.Output
	codec  *wire.BatchCodec
	batch  wire.Batch
	bundle wire.Bundle
	alarm  alarm
}

func newLeader(t *trial, on *machine) *leader {
	return &leader{holder: holder{t: t, on: on}, codec: wire.NewBatchCodec(t.level.State)}
}

func (l *leader) start() {
	if l.alive {
		return
	}
	l.life++
	l.term++
	if l.t.bent.term != nil {
		l.term = l.t.bent.term(l.life)
	}
	l.alive, l.paused, l.held, l.alarm.at = true, 0, 0, clocksync.MinInstant
	opt := synccore.Options{Term: l.term}
	if !l.on.shared {
		opt.Timeline = "true"
	}
	l.core = synccore.New(l.t.level, opt)
	l.t.termBegun()
	hello := announcement(l.t.level.Name, l.term)
	for _, p := range l.t.all {
		frame, err := wire.AppendWelcome(l.t.buffer(), &hello)
		l.send(p, "", frame, err)
	}
	l.later(0, l.tick)
}

// crash ends the synchronizer without a word.
func (l *leader) crash() {
	if !l.alive || l.t.well {
		return
	}
	l.t.Restarts++
	l.t.termOver()
	l.alive = false
	l.t.After(l.t.spread(restarts, 10*time.Millisecond, 600*time.Millisecond), l.start)
}

func (l *leader) tick() { l.step(synccore.Input{Kind: synccore.InTick}) }

// receive takes a frame of a member, or one that a multiplexer has brought.
func (l *leader) receive(from, by string, frame []byte) {
	in := synccore.Input{From: from, By: by}
	kind, err := wire.KindOf(frame)
	switch kind {
	case wire.KindHello:
		var hello wire.Hello
		hello, err = wire.DecodeHello(frame)
		in.Kind, in.Hello = synccore.InHello, &hello
	case wire.KindBatch:
		err = l.codec.Decode(frame, "", &l.batch)
		in.Kind, in.Batch = synccore.InBatch, &l.batch
		l.t.delivered(&l.batch)
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
		panic(fmt.Sprintf("sim: a frame of %s: %v", from, err))
	}
	l.step(in)
}

func (l *leader) receiveBundle(p *node, frame []byte) {
	b := &l.bundle
	if err := wire.DecodeBundle(frame, b); err != nil {
		panic(fmt.Sprintf("sim: a bundle of %s: %v", p.name, err))
	}
	for _, part := range b.Parts {
		if l.alive {
			l.receive(part.Member, p.name, part.Frame)
		}
	}
	if l.alive && (b.Version > 0 || b.Of > 0) {
		l.step(synccore.Input{Kind: synccore.InShared, From: p.name, Shared: b})
	}
}

func (l *leader) step(in synccore.Input) {
	t := l.t
	t.Steps++
	if t.bent.leaderIn != nil && !t.bent.leaderIn(l, &in) {
		return
	}
	l.core.Step(l.on.Mono(), &in, &l.out)
	if t.bent.leaderOut != nil {
		t.bent.leaderOut(l, &in, &l.out)
	}
	out := &l.out
	t.judgeStep(out)
	if len(out.Fates) > 0 && t.kill(restarts, syncFate) {
		l.crash()
		return
	}
	if len(out.Welcomes)+len(out.Resends)+len(out.Probes)+len(out.Signals) > 0 {
		l.sendAll(out)
	}
	if l.alive {
		l.alarm.set(l.on.Host, max(out.Wake, l.on.Mono().Add(50*time.Microsecond)), func() { l.later(0, l.tick) })
	}
}

func (l *leader) sendAll(out *synccore.Output) {
	t := l.t
	if t.kill(restarts, syncBeforeSend) {
		l.crash()
		return
	}
	put := func(to string, frame []byte, err error) {
		if !l.alive {
			return
		}
		l.send(t.names[to], to, frame, err)
		if t.kill(restarts, syncBetween) {
			l.crash()
		}
	}
	for i := range out.Welcomes {
		frame, err := wire.AppendWelcome(t.buffer(), &out.Welcomes[i].Msg)
		put(out.Welcomes[i].To, frame, err)
	}
	for i := range out.Probes {
		t.Probes++
		frame, err := wire.AppendProbe(t.buffer(), &out.Probes[i].Msg)
		put(out.Probes[i].To, frame, err)
	}
	for i := range out.Resends {
		t.Resends++
		frame, err := wire.AppendResend(t.buffer(), &out.Resends[i].Msg)
		put(out.Resends[i].To, frame, err)
	}
	for i := range out.Signals {
		for s, sent := out.Signals[i].Msg, 0; len(s.Signals) > 0; s.Signals = s.Signals[sent:] {
			var frame []byte
			var err error
			frame, sent, err = wire.AppendSignals(t.buffer(), &s)
			put(out.Signals[i].To, frame, err)
		}
	}
	if l.alive && t.kill(restarts, syncSent) {
		l.crash()
	}
}

func (l *leader) send(p *node, to string, frame []byte, err error) {
	if err != nil || p == nil {
		panic(fmt.Sprintf("sim: a frame for %q: %v", to, err))
	}
	l.t.carry(&p.down, frame, func(frame []byte) { p.deliver(frame, func(frame []byte) { p.receive(to, frame) }) })
}

// ask puts a question to the synchronizer's machine.
func (l *leader) ask(q synccore.Question) *synccore.Answer {
	in := synccore.Input{Kind: synccore.InAsk, Ask: &q}
	var out synccore.Output
	l.core.Step(l.on.Mono(), &in, &out)
	if l.t.bent.answer != nil {
		l.t.bent.answer(&out.Answer)
	}
	return &out.Answer
}

// signalKey tells signals apart.
type signalKey struct {
	decision     control.Decision // its number counts in a term; mutants use the upper bits of it
	name, target string
}

func keyOf(s *control.Signal) signalKey {
	k := signalKey{s.Decision, s.Name, s.Target}
	k.decision.Epoch, k.decision.Number = 0, k.decision.Number&(1<<40-1)
	return k
}
