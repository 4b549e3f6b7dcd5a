package sim

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/scgs"
)

// mutant is a way in which the machines could be wrong, and the judges of which one has to
// notice. The inputs or outputs of a machine are wrong, so that the machines stay as they are.
type mutant struct {
	name   string
	judges string
	bend   func() *bent
	config [2]string // in the configuration of the machine alone: this text is replaced by that one
	faults Faults    // 0: all
	calm   bool      // only trials with members that do little
	pair   *pairBent // of trials with a process that stands by
}

// later moves a stamp by a time.
func later(s clocksync.Stamp, d time.Duration) clocksync.Stamp {
	s.Mono = s.Mono.Add(d)
	if s.Within.Bounded() {
		s.Within = clocksync.Interval{Earliest: s.Within.Earliest.Add(d), Latest: s.Within.Latest.Add(d)}
	}
	return s
}

// batches is a mutant of the synchronizer's handling of batches.
func batches(change func(l *leader, in *synccore.Input, b *wire.Batch) bool) func() *bent {
	return func() *bent {
		return &bent{leaderIn: func(l *leader, in *synccore.Input) bool {
			return in.Kind != synccore.InBatch || change(l, in, in.Batch)
		}}
	}
}

// answers is a mutant of the synchronizer's handling of fates.
func answers(change func(a *wire.Answer)) func() *bent {
	return func() *bent {
		return &bent{leaderIn: func(_ *leader, in *synccore.Input) bool {
			if in.Kind == synccore.InAck {
				for i := range in.Ack.Answers {
					change(&in.Ack.Answers[i])
				}
			}
			return true
		}}
	}
}

// fates is a mutant of the synchronizer's messages about fates.
func fates(change func(out *synccore.Output)) func() *bent {
	return func() *bent {
		return &bent{leaderOut: func(_ *leader, _ *synccore.Input, out *synccore.Output) { change(out) }}
	}
}

// inputs is a mutant of a member that does not take some inputs.
func inputs(takes func(a *actor, in *agentcore.Input) bool) func() *bent {
	return func() *bent { return &bent{agentIn: takes} }
}

// signals is a mutant of a member's handling of signals.
func signals(change func(a *actor, m *wire.Signals)) func() *bent {
	return func() *bent {
		return &bent{signals: func(a *actor, in *agentcore.Input) { change(a, in.Signals) }}
	}
}

var mutants = []mutant{
	{name: "the bound of a clock is halved", judges: "S", bend: func() *bent {
		return &bent{stamp: func(s *clocksync.Stamp) {
			if s.Within.Bounded() {
				quarter := s.Within.Width() / 4
				s.Within = clocksync.Interval{Earliest: s.Within.Earliest.Add(quarter), Latest: s.Within.Latest.Add(-quarter)}
			}
		}}
	}},
	{name: "a clock is taken for exact", judges: "S", bend: func() *bent {
		return &bent{stamp: func(s *clocksync.Stamp) {
			if s.Within.Bounded() {
				s.Within = clocksync.Exactly(s.Within.Earliest.Add(s.Within.Width() / 2))
			}
		}}
	}},
	{name: "all hosts are taken for one clock", judges: "S", bend: func() *bent {
		return &bent{leaderIn: func(_ *leader, in *synccore.Input) bool {
			if in.Kind == synccore.InHello {
				in.Hello.Domain = "h0"
			}
			return true
		}}
	}},
	{name: "evidence is a millisecond late", judges: "S", bend: batches(func(_ *leader, _ *synccore.Input, b *wire.Batch) bool {
		b.Evidence.At = later(b.Evidence.At, time.Millisecond)
		return true
	})},
	{name: "evidence of all is a millisecond late", judges: "S", bend: func() *bent {
		return &bent{leaderIn: func(_ *leader, in *synccore.Input) bool {
			if in.Kind == synccore.InShared {
				in.Shared.At = later(in.Shared.At, time.Millisecond)
			}
			return true
		}}
	}},
	{name: "evidence is taken for the state before", judges: "S", bend: batches(func(_ *leader, _ *synccore.Input, b *wire.Batch) bool {
		if n := uint64(len(b.Reports)); b.Evidence.Seq > n && n > 0 && !b.Again {
			b.Evidence.Seq -= n
			b.Reports = b.Reports[:0]
		}
		return true
	})},
	{name: "evidence is as late as a probe asks", judges: "S", bend: func() *bent {
		asked := map[string]wire.Probe{}
		return &bent{
			agentIn: func(a *actor, in *agentcore.Input) bool {
				if in.Kind == agentcore.InProbe {
					asked[a.name] = *in.Probe
					in.Probe = &wire.Probe{Incarnation: in.Probe.Incarnation, Seq: in.Probe.Seq, AfterMono: clocksync.MinInstant, AfterTime: clocksync.MinInstant}
				}
				return true
			},
			agentOut: func(a *actor, _ *agentcore.Input, out *agentcore.Output) {
				for i := range out.Batches {
					e := &out.Batches[i].Evidence
					p, ok := asked[a.name]
					if e.Seq == 0 || !ok || p.Seq != e.Seq {
						continue
					}
					late := p.AfterMono.Sub(e.At.Mono) + 1
					if p.AfterTime != clocksync.MinInstant {
						late = max(late, p.AfterTime.Sub(e.At.Within.Earliest)+1)
					}
					e.At = later(e.At, max(late, 0))
					delete(asked, a.name)
				}
			},
		}
	}},
	{name: "a probe is answered by what will be", judges: "S", bend: func() *bent {
		return &bent{agentOut: func(_ *actor, _ *agentcore.Input, out *agentcore.Output) {
			for i := range out.Batches {
				if e := &out.Batches[i].Evidence; e.Seq > 0 && len(out.Batches[i].Reports) == 0 {
					e.At = later(e.At, 5*time.Millisecond)
				}
			}
		}}
	}},
	{name: "a multiplexer stamps behind its list", judges: "S", bend: func() *bent { return &bent{stampLast: true} }},
	{name: "evidence of all goes with the sum before", judges: "S", bend: func() *bent {
		before := map[string]uint64{}
		return &bent{bundle: func(p *node, b *wire.Bundle) {
			if b.Of == 0 {
				return
			}
			sum := b.Sum
			if old := before[p.name]; old != 0 && len(b.Parts) > 0 {
				b.Sum, b.Parts = old, nil
			}
			before[p.name] = sum
		}}
	}},
	{name: "a state has the values of the one before", judges: "S", bend: batches(func(_ *leader, _ *synccore.Input, b *wire.Batch) bool {
		for i := len(b.Reports) - 1; i > 0; i-- {
			b.Reports[i].Row = b.Reports[i-1].Row
		}
		return true
	})},
	{name: "a state begins before it did", judges: "S", bend: batches(func(_ *leader, _ *synccore.Input, b *wire.Batch) bool {
		for i := range b.Reports {
			b.Reports[i].At = later(b.Reports[i].At, -500*time.Microsecond)
		}
		return true
	})},
	{name: "a report is left out, and those behind it move up", judges: "S", bend: func() *bent {
		gone := map[lifeKey]uint64{} // the number of the report that was left out
		return &bent{
			leaderIn: func(l *leader, in *synccore.Input) bool {
				b := in.Batch
				if in.Kind != synccore.InBatch || in.By != "" {
					return true
				}
				key := lifeKey{b.Member, b.Incarnation}
				if gone[key] == 0 && len(b.Reports) > 1 {
					gone[key] = b.Reports[0].Seq
				}
				for i := 0; i < len(b.Reports); i++ {
					switch at := gone[key]; {
					case b.Reports[i].Seq == at:
						b.Reports = slices.Delete(b.Reports, i, i+1)
						i--
					case b.Reports[i].Seq > at && at > 0:
						b.Reports[i].Seq--
					}
				}
				if gone[key] > 0 && b.Evidence.Seq >= gone[key] {
					b.Evidence.Seq--
				}
				return true
			},
		}
	}},
	{name: "a gap is filled with the state before", judges: "SG", bend: func() *bent {
		type newest struct {
			seq uint64
			row []scgs.Value
			at  clocksync.Stamp
		}
		last := map[lifeKey]newest{}
		return &bent{leaderIn: func(_ *leader, in *synccore.Input) bool {
			b := in.Batch
			if in.Kind != synccore.InBatch || len(b.Reports) == 0 {
				return true
			}
			key := lifeKey{b.Member, b.Incarnation}
			var reports []wire.Report
			for _, r := range b.Reports {
				n := last[key]
				for seq := n.seq + 1; n.seq > 0 && seq < r.Seq; seq++ {
					reports = append(reports, wire.Report{Seq: seq, At: later(n.at, time.Duration(seq-n.seq)), Row: n.row}) //nolint:gosec // Few.
				}
				if reports = append(reports, r); r.Seq > n.seq {
					last[key] = newest{r.Seq, slices.Clone(r.Row), r.At}
				}
			}
			b.Reports = reports
			return true
		}}
	}},
	{name: "gaps are not counted", judges: "G", bend: func() *bent {
		return &bent{answer: func(a *synccore.Answer) { a.Counts.Gaps = 0 }}
	}},
	{name: "who comes back is taken for another process", judges: "G", bend: func() *bent {
		return &bent{leaderIn: func(_ *leader, in *synccore.Input) bool {
			if in.Kind == synccore.InHello {
				in.Hello.Leader, in.Hello.Term = "", 0
			}
			return true
		}}
	}},
	{name: "a hold time is a third", judges: "S", config: [2]string{"for: 30ms", "for: 10ms"}},
	{name: "definitely does not wait", judges: "S", config: [2]string{"for: 5ms", "for: 1ms"}},
	{name: "two of them are one", judges: "S", config: [2]string{"when: count(members, .on) >= 2\n        signal", "when: count(members, .on) >= 1\n        signal"}},
	{name: "all are any", judges: "S", config: [2]string{"when: all(members, .on)\n        signal", "when: any(members, .on)\n        signal"}},

	{name: "a reload is not gone over to", judges: "S", bend: func() *bent {
		return &bent{leaderIn: func(_ *leader, in *synccore.Input) bool { return in.Kind != synccore.InLevel }}
	}},
	{name: "a reload is gone over to, and not back", judges: "S", bend: func() *bent {
		var first *plan.Level
		return &bent{leaderIn: func(_ *leader, in *synccore.Input) bool {
			if in.Kind == synccore.InLevel && first == nil {
				first = in.Level
			}
			return in.Kind != synccore.InLevel || in.Level == first
		}}
	}},
	{name: "a reload leaves a time out that a predicate has to hold", judges: "S", bend: func() *bent {
		return &bent{leaderIn: func(_ *leader, in *synccore.Input) bool {
			if in.Kind == synccore.InLevel {
				level := *in.Level
				level.Rules = slices.Clone(level.Rules)
				for i, r := range level.Rules {
					rule := *r
					rule.Hold = min(r.Hold, time.Millisecond)
					level.Rules[i] = &rule
				}
				in.Level = &level
			}
			return true
		}}
	}},

	{name: "the gate forgets its keys", judges: "A", bend: func() *bent {
		seen := map[signalKey]uint64{}
		return &bent{signals: func(_ *actor, in *agentcore.Input) {
			for i := range in.Signals.Signals {
				s := &in.Signals.Signals[i]
				s.Decision.Number += seen[keyOf(s)] << 40
				s.Cause = control.Cause{}
				seen[keyOf(s)]++
			}
		}}
	}},
	{name: "the gate does not look at the entry", judges: "A", bend: signals(func(a *actor, m *wire.Signals) {
		for i := range m.Signals {
			for _, e := range a.open {
				if e.region.name == m.Signals[i].Region {
					m.Signals[i].Entry = e.number
				}
			}
		}
	})},
	{name: "a signal to a dead life is taken by the next", judges: "A", bend: signals(func(a *actor, m *wire.Signals) {
		m.Incarnation = a.core.Incarnation()
	})},
	{name: "nobody knows what an earlier term has done", judges: "A", calm: true, bend: func() *bent {
		return &bent{
			signals: func(_ *actor, in *agentcore.Input) {
				for i := range in.Signals.Signals {
					in.Signals.Signals[i].Cause = control.Cause{}
				}
			},
			leaderIn: func(_ *leader, in *synccore.Input) bool {
				if in.Kind == synccore.InHello {
					for i := range in.Hello.Fates {
						in.Hello.Fates[i].Fate = control.Waiting
					}
				}
				return true
			},
		}
	}},

	{name: "runs of an earlier term are taken for new ones", judges: "A", bend: signals(func(_ *actor, m *wire.Signals) {
		for i := range m.Signals {
			m.Signals[i].Cause = m.Signals[i].Cause.Plain()
		}
	})},

	{name: "a term does not rise", judges: "FAS", bend: func() *bent { return &bent{term: func(uint64) uint64 { return 1 }} }},
	{name: "a fate is lost", judges: "F", bend: func() *bent {
		n := 0
		return &bent{leaderOut: func(_ *leader, _ *synccore.Input, out *synccore.Output) {
			if n += len(out.Fates); len(out.Fates) > 0 && n%7 == 0 {
				out.Fates = out.Fates[:len(out.Fates)-1]
			}
		}}
	}},
	{name: "a fate is told twice", judges: "F", bend: fates(func(out *synccore.Output) {
		if n := len(out.Fates); n > 1 {
			out.Fates = append(out.Fates, out.Fates[n-1])
		}
	})},
	{name: "what an earlier term has sent is not recorded", judges: "F", bend: func() *bent {
		return &bent{leaderIn: func(l *leader, in *synccore.Input) bool {
			if in.Kind == synccore.InAck {
				in.Ack.Answers = slices.DeleteFunc(in.Ack.Answers, func(a wire.Answer) bool { return a.Decision.Term < l.term })
			}
			return true
		}}
	}},
	{name: "a fate of an earlier term is recorded each time it is told", judges: "F", bend: func() *bent {
		var last []monitor.Fate
		return &bent{leaderOut: func(_ *leader, in *synccore.Input, out *synccore.Output) {
			if in.Kind == synccore.InAck {
				out.Fates = append(out.Fates, last...)
				last = last[:0]
				for _, f := range out.Fates {
					if f.Earlier {
						last = append(last, f)
					}
				}
			}
		}}
	}},
	{name: "a fate of an earlier term is recorded as one of this term", judges: "F", bend: func() *bent {
		return &bent{leaderOut: func(l *leader, _ *synccore.Input, out *synccore.Output) {
			for _, f := range out.Fates {
				if f.Earlier {
					f.Signal.Decision.Term = l.term
				}
			}
		}}
	}},
	{name: "what is told is taken for recorded", judges: "F", bend: func() *bent {
		told := map[string][]wire.Receipt{}
		return &bent{
			agentOut: func(a *actor, _ *agentcore.Input, out *agentcore.Output) {
				for i := range out.Acks {
					for _, x := range out.Acks[i].Answers {
						told[a.name] = append(told[a.name], wire.Receipt{Term: x.Decision.Term, Number: x.Decision.Number, Name: x.Name})
					}
				}
			},
			signals: func(a *actor, in *agentcore.Input) {
				in.Signals.Recorded, told[a.name] = append(in.Signals.Recorded, told[a.name]...), nil
			},
		}
	}},
	{name: "who waits is taken for done", judges: "F", bend: func() *bent {
		return &bent{agentOut: func(_ *actor, _ *agentcore.Input, out *agentcore.Output) {
			for i := range out.Acks {
				for j := range out.Acks[i].Answers {
					if a := &out.Acks[i].Answers[j]; a.Fate == control.Waiting {
						a.Fate = control.Applied
					}
				}
			}
		}}
	}},
	{name: "who waits is taken for expired", judges: "F", bend: answers(func(a *wire.Answer) {
		if a.Fate == control.Waiting {
			a.Fate = control.Expired
		}
	})},
	{name: "refused is taken for applied", judges: "F", bend: answers(func(a *wire.Answer) {
		if a.Fate == control.NoSuchEntry || a.Fate == control.Refused {
			a.Fate = control.Applied
		}
	})},
	{name: "applied is taken for refused", judges: "F", bend: answers(func(a *wire.Answer) {
		if a.Fate == control.Applied {
			a.Fate = control.Refused
		}
	})},
	{name: "an answer is taken for that of another signal", judges: "F", bend: answers(func(a *wire.Answer) { a.Decision.Number++ })},
	{name: "no answer is taken, and signals do not expire", judges: "LF", config: [2]string{"expires: 2s", "expires: 60s"}, bend: func() *bent {
		return &bent{leaderIn: func(_ *leader, in *synccore.Input) bool { return in.Kind != synccore.InAck }}
	}},

	{name: "a term falls", judges: "C", bend: func() *bent { return &bent{term: func(n uint64) uint64 { return 1000 - n }} }},
	{name: "who comes back is not heard", judges: "C", bend: func() *bent {
		return &bent{leaderIn: func(_ *leader, in *synccore.Input) bool {
			return in.Kind != synccore.InHello || in.Hello.Incarnation%1000 == 0
		}}
	}},
	{name: "a member has no heartbeat", judges: "C", bend: batches(func(_ *leader, _ *synccore.Input, b *wire.Batch) bool { return len(b.Reports) > 0 })},
	{name: "a member does not hear that it was dropped", judges: "C", bend: inputs(func(_ *actor, in *agentcore.Input) bool {
		return in.Kind != agentcore.InWelcome || in.Welcome.Reason == ""
	})},
	{name: "a roster is never told again", judges: "C", bend: func() *bent {
		return &bent{bundle: func(_ *node, b *wire.Bundle) {
			if len(b.Parts) == 0 {
				b.Roster = wire.Roster{}
			}
		}}
	}},

	{name: "one that stands by forgets the signals under way", judges: "F", pair: &pairBent{told: kept(func(k *synccore.Kept) { k.Letters = nil })}},
	{name: "what it is retold is taken for later", judges: "S", pair: &pairBent{told: func(in *synccore.Input) {
		if in.Kind == synccore.InBatch {
			in.Batch.Evidence.At = later(in.Batch.Evidence.At, 50*time.Millisecond)
		}
	}}},
	{name: "nobody knows the signals with which one goes on", judges: "A", pair: &pairBent{}, bend: signals(func(_ *actor, m *wire.Signals) {
		for i := range m.Signals {
			m.Signals[i].Cause = control.Cause{}
		}
	})},
	{name: "it does not notice what was lost on the way", judges: "F", pair: &pairBent{hole: true}},
	{name: "its decisions count from 0", judges: "FA", pair: &pairBent{told: kept(func(k *synccore.Kept) { k.Decisions = 0 })}},
	{name: "a leader does not end when another one leads", judges: "FL", pair: &pairBent{mute: true}},
}

// kept is a mutant of the leader's private state as sent to a process that stands by.
func kept(change func(*synccore.Kept)) func(*synccore.Input) {
	return func(in *synccore.Input) {
		if in.Kind == synccore.InKept {
			change(in.Kept)
		}
	}
}

// mutantSeeds is how many trials a mutant may outlive.
const mutantSeeds = 256

// TestMutants: each mutant is noticed, by the judge that has to.
func TestMutants(t *testing.T) {
	for i, m := range slices.Concat(mutants, keyMutants) {
		ofKeys := i >= len(mutants)
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			spec := trialOf(t, m.faults, time.Second)
			if spec.bend = m.bend; m.pair != nil {
				spec.pair = func(t *trial) time.Duration { return pairOf(t, *m.pair) }
			}
			if spec.faults == 0 {
				spec.faults = AllFaults
			}
			config := trialConfig
			if ofKeys {
				config = keysConfig
				keysTrial(t, &spec)
			}
			judged := spec.level
			if m.config[0] != "" {
				text := strings.ReplaceAll(config, m.config[0], m.config[1])
				plans, err := configfile.Parse("mutant.yaml", []byte(text))
				if err != nil || text == config {
					t.Fatalf("the configuration of the mutant is not another one, or %v", err)
				}
				spec.level, spec.faults = plans[0], spec.faults&^reloads
			}
			others := map[byte]int{}
			for n := range uint64(mutantSeeds) {
				if spec.seed = n + 1; m.calm {
					spec.seed *= 8
				}
				one := newTrial(spec)
				if ofKeys {
					one.texts[spec.level] = newTexts(judged, nil)
				}
				one.runTrial()
				for _, b := range one.breaches {
					if strings.ContainsRune(m.judges, rune(b.judge)) {
						t.Logf("trial %d: %c %.150s", spec.seed, b.judge, b.text)
						return
					}
					others[b.judge]++
				}
			}
			t.Errorf("it outlives %d trials: others noticed it, %v", mutantSeeds, others)
		})
	}
}
