package agentcore_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// TestScenarios plays testdata/scenarios. Times are in milliseconds; at, the
// reading of the member's clock, is now unless it is given. The member is "w",
// its state has one field, n. After each command but flush, the line "wake T"
// says when the core wants to be flushed.
//
//	new [threads] [size=N] [age=MS]
//	welcome [next=N] [term=N] [incarnation=N] [refused [known=N]] [dropped] [unasked] [heartbeat=MS] [fields=2]
//	set n=N | end | alive
//	enter region=R [handler=NAME] | leave entry=N
//	probe seq=N [mono=MS] [time=MS] [incarnation=N] | resend from=N to=N
//	signal number=N entry=N [name=S] [cancel] [from=S] [decided=S] [term=N] [epoch=N] [incarnation=N] [target=M] | next entry=N | finish
//	lapse entry=N after=MS | recorded entry=N | back
//	probe-domain name=DOMAIN mono=MS time=MS
//	recall | quit | stats
//	flush
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		var w world
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			w.text.Reset()
			w.run(t, d)
			if d.Cmd != "flush" && d.Cmd != "stats" {
				fmt.Fprintf(&w.text, "wake %s\n", ms(w.core.Wake()))
			}
			return w.text.String()
		})
	})
}

type world struct {
	core    *machine
	out     agentcore.Output
	running *control.Signal
	text    strings.Builder
}

func (w *world) run(t *testing.T, d *datadriven.TestData) {
	t.Helper()
	now := instant(t, d, "now", 0)
	at := stamp(now)
	if d.HasArg("at") {
		at = stamp(instant(t, d, "at", 0))
	}
	switch d.Cmd {
	case "new":
		w.core = newMachine(agentcore.Options{
			Hello:     wire.Hello{Member: "w", Incarnation: 1, Domain: "d", Threads: d.HasArg("threads")},
			BatchSize: int(num(t, d, "size", 0)),
			BatchAge:  time.Duration(num(t, d, "age", 0)) * time.Millisecond,
		})
	case "welcome":
		reception := w.core.OnWelcome(now, welcome(t, d, w.core.Incarnation()))
		fmt.Fprint(&w.text, receptions[reception])
		if reception == agentcore.Ignored {
			fmt.Fprintf(&w.text, ": %s", w.core.out.Why)
		}
		w.text.WriteString("\n")
	case "set":
		w.tell(w.core.Set(now, at, rowOf(int64(num(t, d, "n", 0)), d)))
	case "end":
		w.tell(w.core.End(now, at))
	case "alive":
		w.tell(w.core.Alive(now, at))
	case "probe-domain":
		var domain string
		d.ScanArgs(t, "name", &domain)
		w.core.OnProbe(now, &wire.Probe{
			AfterMono: instant(t, d, "mono", clocksync.MinInstant), AfterTime: instant(t, d, "time", clocksync.MinInstant), Domain: clocksync.Domain(domain),
		})
	case "probe":
		w.core.OnProbe(now, &wire.Probe{
			Incarnation: num(t, d, "incarnation", w.core.Incarnation()),
			Seq:         num(t, d, "seq", 1),
			AfterMono:   instant(t, d, "mono", clocksync.MinInstant),
			AfterTime:   instant(t, d, "time", clocksync.MinInstant),
		})
	case "resend":
		w.core.OnResend(now, &wire.Resend{Incarnation: w.core.Incarnation(), From: num(t, d, "from", 1), To: num(t, d, "to", 1)})
	case "recall":
		w.core.Recall(now)
	case "quit":
		w.core.Leave(now)
	case "stats":
		s := w.core.Stats()
		fmt.Fprintf(&w.text, "reports %d, batches %d, resent %d, dropped %d, gone %d, rejoins %d, backwards %d, strange %d\n",
			s.Reports, s.Batches, s.Resent, s.Dropped, s.Gone, s.Rejoins, s.Backwards, s.Strange)
		fmt.Fprintf(&w.text, "signals %d, copies %d, late %d, applied %d\n", s.Signals, s.Copies, s.Late(), s.Fates[control.Applied])
	case "flush":
		w.core.Flush(now, at, &w.out)
		w.show()
	default:
		w.region(t, d, now)
	}
}

func (w *world) region(t *testing.T, d *datadriven.TestData, now clocksync.Instant) {
	t.Helper()
	switch d.Cmd {
	case "enter":
		entry, err := w.core.Enter(now, word(t, d, "region", ""), []control.Handler{{Name: word(t, d, "handler", "go")}})
		w.tell(err)
		fmt.Fprintf(&w.text, "entry %d\n", entry)
	case "leave":
		if w.running = w.core.LeaveRegion(now, num(t, d, "entry", 0)); w.running != nil {
			fmt.Fprintf(&w.text, "cancelled by %s\n", cmp.Or(w.running.Name, "want of control"))
		}
	case "lapse":
		after := time.Duration(num(t, d, "after", 0)) * time.Millisecond
		for _, o := range w.core.step(now, agentcore.Input{Kind: agentcore.InLapse, Entry: num(t, d, "entry", 0), After: after}).Fresh {
			fmt.Fprintf(&w.text, "%s#%d: %v\n", o.Signal.Region, o.Signal.Entry, o.Fate)
		}
	case "back":
		w.core.step(now, agentcore.Input{Kind: agentcore.InBack})
	case "recorded":
		w.core.OnSignals(now, &wire.Signals{
			Synchronizer: "s", Term: 1, Incarnation: w.core.Incarnation(), Recorded: []wire.Receipt{{Term: num(t, d, "entry", 0), Name: "r"}},
		})
	case "signal":
		from := word(t, d, "from", "s")
		m := &wire.Signals{
			Synchronizer: from, Term: num(t, d, "term", 1), Epoch: num(t, d, "epoch", 1),
			Incarnation: num(t, d, "incarnation", w.core.Incarnation()),
			Signals: []control.Signal{{
				Decision: control.Decision{Synchronizer: word(t, d, "decided", from), Term: num(t, d, "term", 1), Epoch: num(t, d, "epoch", 1), Number: num(t, d, "number", 1)},
				Name:     word(t, d, "name", "go"), Kind: control.Activate, Target: word(t, d, "target", "w"), Region: "r", Entry: num(t, d, "entry", 0),
			}},
		}
		if d.HasArg("cancel") {
			m.Signals[0].Kind = control.Cancel
		}
		for _, o := range w.core.OnSignals(now, m) {
			fmt.Fprintf(&w.text, "%s: %v\n", o.Signal.Name, o.Fate)
		}
	case "next":
		if w.running = w.core.Next(now, num(t, d, "entry", 0), control.AtCheck); w.running != nil {
			fmt.Fprintf(&w.text, "run %s\n", w.running.Name)
		}
	case "finish":
		w.core.Finish(now, w.running, control.Applied)
	default:
		t.Fatalf("%s: no such command", d.Pos)
	}
}

var receptions = map[agentcore.Reception]string{
	agentcore.Ignored: "ignored", agentcore.Accepted: "accepted", agentcore.Refused: "refused",
	agentcore.Recalled: "recalled", agentcore.Dropped: "dropped",
}

func welcome(t *testing.T, d *datadriven.TestData, incarnation uint64) *wire.Welcome {
	t.Helper()
	w := &wire.Welcome{
		Synchronizer: "s", Term: num(t, d, "term", 1), Member: "w", Incarnation: num(t, d, "incarnation", incarnation),
		Schema: schema(d), NextSeq: num(t, d, "next", 0), Heartbeat: int64(num(t, d, "heartbeat", 0)) * int64(time.Millisecond),
	}
	if d.HasArg("by") {
		d.ScanArgs(t, "by", &w.Synchronizer)
	}
	switch {
	case d.HasArg("refused"):
		w.Refused, w.Reason, w.NextSeq = true, "no", num(t, d, "known", 0)
	case d.HasArg("dropped"):
		w.Reason = "silent"
	case d.HasArg("unasked"):
		w.Member, w.Incarnation = "", 0
	default:
		w.Accepted = true
	}
	return w
}

func schema(d *datadriven.TestData) scgs.Schema {
	s := scgs.Schema{{Name: "n", Type: scgs.Int}}
	if d.HasArg("fields") {
		s = append(s, scgs.Field{Name: "b", Type: scgs.Bool})
	}
	return s
}

func rowOf(n int64, d *datadriven.TestData) []scgs.Value {
	if d.HasArg("fields") {
		return []scgs.Value{scgs.IntValue(n), scgs.BoolValue(true)}
	}
	return []scgs.Value{scgs.IntValue(n)}
}

func (w *world) tell(err error) {
	if err != nil {
		fmt.Fprintln(&w.text, err)
	}
}

func (w *world) show() {
	for _, h := range w.out.Hellos {
		fmt.Fprintf(&w.text, "hello %d", h.Incarnation)
		if h.Leader != "" {
			fmt.Fprintf(&w.text, " after term %d", h.Term)
		}
		w.text.WriteString("\n")
	}
	for i := range w.out.Batches {
		fmt.Fprintln(&w.text, batch(&w.out.Batches[i]))
	}
	for _, g := range w.out.Gones {
		fmt.Fprintf(&w.text, "gone below %d\n", g.First)
	}
	for _, a := range w.out.Acks {
		for _, b := range a.Answers {
			fmt.Fprintf(&w.text, "answer %d %s: %v", b.Decision.Number, b.Name, b.Fate)
			if s := b.Lapse(); s != nil {
				fmt.Fprintf(&w.text, ", of entry %d: %s", s.Entry, b.Detail)
			}
			if a.To != "s" {
				fmt.Fprintf(&w.text, " to %s", a.To)
			}
			w.text.WriteString("\n")
		}
	}
}

func batch(b *wire.Batch) string {
	var s strings.Builder
	fmt.Fprintf(&s, "batch of %d:", b.Incarnation)
	for _, r := range b.Reports {
		if r.End {
			fmt.Fprintf(&s, " -%d@%s", r.Seq, ms(r.At.Mono))
			continue
		}
		fmt.Fprintf(&s, " %d@%s n=%d", r.Seq, ms(r.At.Mono), r.Row[0].Int())
	}
	for _, r := range b.Regions {
		fmt.Fprintf(&s, " %s#%d since %d", r.Name, r.Entry, r.Since)
	}
	if b.Evidence.Seq > 0 {
		fmt.Fprintf(&s, " alive %d@%s", b.Evidence.Seq, ms(b.Evidence.At.Mono))
	}
	if b.Again {
		s.WriteString(" again")
	}
	if b.Leaving {
		s.WriteString(" leaving")
	}
	return s.String()
}

func stamp(at clocksync.Instant) clocksync.Stamp {
	return clocksync.Stamp{Domain: "d", Mono: at, Within: clocksync.Around(at, 2*time.Millisecond)}
}

// ms shows an instant in milliseconds.
func ms(i clocksync.Instant) string {
	switch i {
	case clocksync.MinInstant:
		return "now"
	case clocksync.MaxInstant:
		return "never"
	}
	return fmt.Sprint(float64(i) / 1e6)
}

func instant(t *testing.T, d *datadriven.TestData, arg string, otherwise clocksync.Instant) clocksync.Instant {
	t.Helper()
	if !d.HasArg(arg) {
		return otherwise
	}
	return clocksync.Instant(num(t, d, arg, 0) * 1e6)
}

func num(t *testing.T, d *datadriven.TestData, arg string, otherwise uint64) uint64 {
	t.Helper()
	if d.HasArg(arg) {
		d.ScanArgs(t, arg, &otherwise)
	}
	return otherwise
}

func word(t *testing.T, d *datadriven.TestData, arg, otherwise string) string {
	t.Helper()
	if d.HasArg(arg) {
		d.ScanArgs(t, arg, &otherwise)
	}
	return otherwise
}
