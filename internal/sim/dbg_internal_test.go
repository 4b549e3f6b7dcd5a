package sim

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/synccore"
)

var dbgWho = flag.String("who", "", "")
var dbgFrom = flag.Duration("from", 0, "")

func TestDbg(t *testing.T) {
	f, _ := parseFaults(*trialFaults)
	spec := trialSpec{level: trialLevel(t), rules: trialRules, faults: f, time: *trialTime, processes: *trialSize, seed: *trialSeed}
	one := newTrial(spec)
	on := func() bool { return time.Duration(one.now) >= *dbgFrom }
	one.bent.leaderOut = func(l *leader, in *synccore.Input, out *synccore.Output) {
		if !on() {
			return
		}
		for _, e := range out.Epochs {
			fmt.Println(one.now, "EPOCH", fmt.Sprintf("%+v", e))
		}
		for _, v := range out.Verdicts {
			fmt.Println(one.now, "VERDICT", v.Predicate, v.Truth, v.Fired, v.Epoch, v.Index, v.Partial)
		}
		if in.From == *dbgWho || *dbgWho == "" && in.Kind != synccore.InTick {
			s := ""
			if in.Batch != nil {
				s = fmt.Sprintf("inc %d reports %d ev %d", in.Batch.Incarnation, len(in.Batch.Reports), in.Batch.Evidence.Seq)
				for _, r := range in.Batch.Reports {
					s += fmt.Sprint(" ", r.Seq)
				}
			}
			if in.Hello != nil {
				s = fmt.Sprintf("%+v", *in.Hello)
			}
			fmt.Println(one.now, "SYNC IN", in.Kind, in.From, in.By, s)
		}
		for _, w := range out.Welcomes {
			if w.To == *dbgWho || *dbgWho == "" {
				fmt.Println(one.now, "WELCOME", w.To, w.Via, w.Msg.Accepted, w.Msg.Refused, w.Msg.Reason, "next", w.Msg.NextSeq, "inc", w.Msg.Incarnation, w.Msg.Timeline)
			}
		}
		for _, w := range out.Resends {
			if w.To == *dbgWho || *dbgWho == "" {
				fmt.Println(one.now, "RESEND", w.To, w.Msg)
			}
		}
		for _, w := range out.Probes {
			if w.To == *dbgWho || *dbgWho == "" {
				fmt.Println(one.now, "PROBE", w.To, w.Msg)
			}
		}
		for _, w := range out.Rejected {
			fmt.Println(one.now, "REJECTED", w)
		}
	}
	one.bent.agentOut = func(a *actor, in *agentInput, out *agentOutput) {
		if !on() || a.name != *dbgWho && *dbgWho != "" {
			return
		}
		if in.Kind == agentcore.InTick && len(out.Batches)+len(out.Hellos) == 0 {
			return
		}
		if in.Kind == agentcore.InNext {
			return
		}
		fmt.Println(one.now, "AGENT", a.name, in.Kind, "mono", a.on.Mono(), "h/b/g/a", len(out.Hellos), len(out.Batches), len(out.Gones), len(out.Acks), "rec", out.Reception, "err", out.Err, "wake", out.Wake, "inc", a.core.Incarnation())
	}
	one.run()
	for _, b := range one.breaches {
		fmt.Println(string(b.judge), b.text)
	}
	for _, p := range one.all {
		fmt.Println(p.name, p.alive, p.shares, p.clock.status, p.size, p.on.Domain)
	}
	fmt.Println("leader on", one.leader.on.Domain)
}
