package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
)

// leader is the synchronizer. It restarts with nothing but a later term.
type leader struct {
	holder
	tenure
	leads  bool
	shell  shell // nil: it leads as long as it is alive
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

func (l *leader) startLeader() {
	if l.alive {
		return
	}
	l.life++
	l.alive, l.paused, l.held, l.alarm.at = true, 0, 0, clocksync.MinInstant
	if l.shell != nil {
		l.shell.begins()
		return
	}
	l.term++
	if l.t.bent.term != nil {
		l.term = l.t.bent.term(l.life)
	}
	l.core = synccore.New(l.t.level, l.options())
	l.lead()
}

func (l *leader) options() synccore.Options {
	opt := synccore.Options{Term: l.term, OnDemand: l.t.onDemand}
	if !l.on.shared {
		opt.Timeline = "true"
	}
	return opt
}

// lead begins a term.
func (l *leader) lead() {
	l.leads = true
	l.termBegun()
	l.announce()
	l.scheduleCall(0, l.tick)
}

// announce tells all members who leads.
func (l *leader) announce() {
	hello := makeAnnouncement(l.t.level.Name, l.term)
	for _, p := range l.t.all {
		l.send(p, "", mustEncode(wire.AppendWelcome(l.t.takeBuffer(), &hello)))
	}
}

// crashLeader ends the synchronizer without a word.
func (l *leader) crashLeader() {
	if !l.alive || l.t.well {
		return
	}
	l.t.Restarts++
	l.ends()
}

// ends ends the process, which is started again.
func (l *leader) ends() {
	if l.leads {
		l.termOver()
	}
	l.alive, l.leads = false, false
	for _, o := range l.t.several {
		if o.leads && !l.t.leader.leads {
			l.t.leader = o
		}
	}
	l.t.After(l.t.drawBetween(restarts, 10*time.Millisecond, 600*time.Millisecond), l.startLeader)
}

func (l *leader) tick() {
	if l.leads {
		l.stepCore(synccore.Input{Kind: synccore.InTick})
	}
}

// receiveFrame takes a frame of a member, or a frame that a multiplexer has brought.
func (l *leader) receiveFrame(from, by string, frame []byte) {
	in := toSynchronizer(from, frame, l.codec, &l.batch)
	if in.By = by; in.Kind == synccore.InBatch {
		l.noteDelivered(in.Batch)
	}
	l.stepCore(in)
}

func (l *leader) receiveBundle(p *node, frame []byte) {
	b := &l.bundle
	if err := wire.DecodeBundle(frame, b); err != nil {
		panic(fmt.Sprintf("sim: a bundle of %s: %v", p.name, err))
	}
	for _, part := range b.Parts {
		if l.leads {
			l.receiveFrame(part.Member, p.name, part.Frame)
		}
	}
	if l.leads && (b.Version > 0 || b.Of > 0) {
		l.stepCore(synccore.Input{Kind: synccore.InShared, From: p.name, Shared: b})
	}
}

func (l *leader) stepCore(input synccore.Input) {
	l.in = input
	t, in := l.t, &l.in
	if l.shell != nil && !l.shell.may(in) {
		return
	}
	t.Steps++
	if t.bent.leaderIn != nil && !t.bent.leaderIn(l, in) {
		return
	}
	if l.shell != nil {
		l.shell.before(in)
	}
	l.core.Step(l.on.Mono(), in, &l.out)
	if t.bent.leaderOut != nil {
		t.bent.leaderOut(l, in, &l.out)
	}
	out := &l.out
	t.judgeStep(l, out)
	if out.Failed != "" { // Who runs it starts it again.
		l.ends()
		return
	}
	if len(out.Fates) > 0 && t.drawKill(restarts, syncFate) {
		l.crashLeader()
		return
	}
	if len(out.Welcomes)+len(out.Resends)+len(out.Probes)+len(out.Signals) > 0 {
		l.sendAll(out)
	}
	if l.leads && l.shell != nil {
		l.shell.after(out)
	}
	if l.leads {
		l.alarm.setAlarm(l.on.Host, max(out.Wake, l.on.Mono().Add(50*time.Microsecond)), func() { l.scheduleCall(0, l.tick) })
	}
}

func (l *leader) sendAll(out *synccore.Output) {
	t := l.t
	if t.drawKill(restarts, syncBeforeSend) {
		l.crashLeader()
		return
	}
	t.Probes, t.Resends = t.Probes+len(out.Probes), t.Resends+len(out.Resends)
	t.ofSynchronizer(out, func(to string, frame []byte) {
		if !l.leads {
			return
		}
		if to == "" {
			for _, p := range t.all {
				l.send(p, to, slices.Clone(frame))
			}
		} else {
			l.send(t.names[to], to, frame)
		}
		if t.drawKill(restarts, syncBetween) {
			l.crashLeader()
		}
	})
	if l.leads && t.drawKill(restarts, syncSent) {
		l.crashLeader()
	}
}

func (l *leader) send(p *node, to string, frame []byte) {
	carry := func(frame []byte) {
		l.t.carryFrame(&p.down, frame, func(frame []byte) { p.deliverFrame(frame, func(frame []byte) { p.receiveFrame(to, frame) }) })
	}
	if l.shell != nil {
		l.shell.way(frame, carry)
		return
	}
	carry(frame)
}

// shell is a process of several, of which one leads.
type shell interface {
	begins()                           // the process has begun
	may(in *synccore.Input) bool       // whether it still leads, before a step
	before(in *synccore.Input)         // a step
	after(out *synccore.Output)        // a step, whose frames are sent
	overhears(frame []byte)            // said while it does not lead
	way(frame []byte, do func([]byte)) // has a frame pass between it and the server: now, later or never
}

// hearFrame takes a frame that the server has for it.
func (l *leader) hearFrame(frame []byte, take func([]byte)) {
	if l.shell == nil {
		l.deliverFrame(frame, take)
		return
	}
	l.shell.way(frame, func(frame []byte) {
		l.deliverFrame(frame, func(frame []byte) {
			if l.leads {
				take(frame)
			} else {
				l.shell.overhears(frame)
			}
		})
	})
}

// askQuestion puts a question to the synchronizer's machine.
func (l *leader) askQuestion(q synccore.Question) *synccore.Answer {
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
