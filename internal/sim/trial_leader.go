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
	in     synccore.Input // of the step, here to be used again
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
		l.send(p, "", sound(wire.AppendWelcome(l.t.buffer(), &hello)))
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
	in := toSynchronizer(from, frame, l.codec, &l.batch)
	if in.By = by; in.Kind == synccore.InBatch {
		l.t.delivered(in.Batch)
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

func (l *leader) step(input synccore.Input) {
	l.in = input
	t, in := l.t, &l.in
	t.Steps++
	if t.bent.leaderIn != nil && !t.bent.leaderIn(l, in) {
		return
	}
	l.core.Step(l.on.Mono(), in, &l.out)
	if t.bent.leaderOut != nil {
		t.bent.leaderOut(l, in, &l.out)
	}
	out := &l.out
	t.judgeStep(out)
	if out.Failed != "" { // Who runs it starts it again.
		t.termOver()
		l.alive = false
		t.After(t.Between(10*time.Millisecond, 100*time.Millisecond), l.start)
		return
	}
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
	t.Probes, t.Resends = t.Probes+len(out.Probes), t.Resends+len(out.Resends)
	t.ofSynchronizer(out, func(to string, frame []byte) {
		if !l.alive {
			return
		}
		l.send(t.names[to], to, frame)
		if t.kill(restarts, syncBetween) {
			l.crash()
		}
	})
	if l.alive && t.kill(restarts, syncSent) {
		l.crash()
	}
}

func (l *leader) send(p *node, to string, frame []byte) {
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
