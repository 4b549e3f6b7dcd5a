package synccore_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// TestScenarios runs the stories of testdata. Every command is one step of the
// machine; now=MS is the host's clock, a stamp is MONO or MONO+-BOUND, and the
// output is what the machine asks for and tells.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		t.Helper()
		if strings.Contains(path, "/fuzz/") || strings.Contains(path, "/rapid/") || strings.Contains(path, "/execution/") {
			return // Inputs that failed once, and the stories of TestExecutions.
		}
		s := &story{t: t}
		datadriven.RunTest(t, path, s.run)
	})
}

// TestAskedForThresholds plays the stories of thresholds again, with these asked for by
// their modality: nothing else is told. What is read in a reload stays as it is, so
// that one form goes over to the other, and nothing fires for that.
func TestAskedForThresholds(t *testing.T) {
	paths, err := filepath.Glob("testdata/*threshold*")
	if err != nil || len(paths) < 4 {
		t.Fatalf("%d stories, %v", len(paths), err)
	}
	for _, path := range append(paths, "testdata/explain") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			s := &story{t: t, edit: func(src string) string {
				src = regexp.MustCompile(`(?m)^( *)when: count\(`).ReplaceAllString(src, "${1}modality: atleast\n$0")
				return strings.ReplaceAll(src, `{when: "count(`, `{modality: atleast, when: "count(`)
			}}
			datadriven.RunTest(t, path, s.run)
			if !s.edited {
				t.Error("nothing was asked for")
			}
		})
	}
}

type story struct {
	edit   func(config string) string // nil: as it is
	edited bool                       // edit has changed something

	t     *testing.T
	plans plan.Levels
	core  *synccore.Core
	now   clocksync.Instant
	out   synccore.Output

	record recorder
}

func (s *story) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	if d.Cmd == "config" {
		return s.config(t, d)
	}
	s.t = t
	if d.HasArg("now") {
		s.now = clocksync.Instant(time.Duration(s.int(d, "now")) * time.Millisecond)
	}
	switch d.Cmd {
	case "journal":
		return string(s.record.text)
	case "status":
		return s.status()
	case "why":
		return s.why(d.CmdArgs[0].Key)
	case "figures":
		return s.figures()
	case "flights":
		return s.flights()
	}
	in := s.input(d)
	if d.HasArg("reached") {
		in.Reached = clocksync.Instant(time.Duration(s.int(d, "reached")) * time.Millisecond)
	}
	s.record.step(t, s.core, s.now, &in, &s.out)
	return s.print()
}

// config compiles a file and hosts one of its levels.
func (s *story) config(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	src := d.Input
	if s.edit != nil {
		src = s.edit(src)
		s.edited = s.edited || src != d.Input
	}
	plans, err := configfile.Parse("test.yaml", []byte(src))
	if err != nil {
		return err.Error()
	}
	s.plans = plans
	plan := plans[0]
	if d.HasArg("level") {
		plan = plans.Get(s.arg(d, "level"))
	}
	s.record = recorder{on: d.HasArg("journal")}
	s.core = synccore.New(plan, synccore.Options{Term: 7, Local: d.HasArg("local")})
	s.now = 0
	return "ok\n"
}

// status is a line for the whole, and one for each member and predicate.
func (s *story) status() string {
	st := s.core.Status(s.now)
	members, predicates := st.Members, st.Predicates
	st.Members, st.Predicates = nil, nil
	lines := []string{s.json("", st)}
	for _, m := range members {
		lines = append(lines, s.json("", m))
	}
	for _, p := range predicates {
		lines = append(lines, s.json("", p))
	}
	return strings.Join(lines, "")
}

// why is a line for the whole, each part, what is missing, and the last decision.
func (s *story) why(predicate string) string {
	e, ok := s.core.Explain(s.now, predicate)
	if !ok {
		return "no such predicate\n"
	}
	if len(e.Groups) > 0 {
		lines := []string{fmt.Sprintf("%s has %d groups\n", e.Name, len(e.Groups))}
		for _, g := range e.Groups {
			lines = append(lines, s.why(g.Name))
		}
		return strings.Join(lines, "")
	}
	parts, missing, last := e.Parts, e.Missing, e.Last
	e.Parts, e.Missing, e.Last = nil, nil, nil
	lines := []string{s.json("", e)}
	for _, p := range parts {
		lines = append(lines, s.json("part ", p))
	}
	for _, m := range missing {
		lines = append(lines, s.json("missing ", m))
	}
	if last != nil {
		lines = append(lines, s.json("last ", last))
	}
	return strings.Join(lines, "")
}

// flights is how the section balance stands.
func (s *story) flights() string {
	b := s.core.Status(s.now).Balance
	if b == nil {
		return "no section balance\n"
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %d looks, %d quiet, %d plans, %d moves\n", b.Strategy, b.Looks, b.Quiet, b.Plans, b.Moves)
	for _, f := range b.UnderWay {
		fmt.Fprintf(&text, "%s from %s to %s by %s: %s\n", f.Load, f.From, f.To, f.Decision, f.Phase)
	}
	return text.String()
}

func (s *story) json(what string, v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		s.t.Fatal(err)
	}
	return what + string(text) + "\n"
}

func (s *story) arg(d *datadriven.TestData, key string) string {
	var v string
	d.ScanArgs(s.t, key, &v)
	return v
}

func (s *story) int(d *datadriven.TestData, key string) int64 {
	i, err := strconv.ParseInt(s.arg(d, key), 10, 64)
	if err != nil {
		d.Fatalf(s.t, "%s: %v", key, err)
	}
	return i
}

func (s *story) uint(d *datadriven.TestData, key string, otherwise uint64) uint64 {
	if !d.HasArg(key) {
		return otherwise
	}
	return uint64(s.int(d, key))
}

// stamp reads MONO or MONO+-BOUND; without a bound the interval is infinite.
func (s *story) stamp(d *datadriven.TestData, text string, domain clocksync.Domain) clocksync.Stamp {
	mono, bound, bounded := strings.Cut(text, "+-")
	m, err := strconv.ParseInt(mono, 10, 64)
	if err != nil {
		d.Fatalf(s.t, "stamp %q: %v", text, err)
	}
	at := clocksync.Stamp{Domain: domain, Mono: clocksync.Instant(m), Within: clocksync.Unbounded}
	if bounded {
		b, err := strconv.ParseInt(bound, 10, 64)
		if err != nil {
			d.Fatalf(s.t, "stamp %q: %v", text, err)
		}
		at.Within = clocksync.Around(at.Mono, time.Duration(b))
	}
	return at
}

// input is the input of a command; group=G makes it one of another group.
func (s *story) input(d *datadriven.TestData) synccore.Input {
	in := s.ofMember(d)
	d.MaybeScanArgs(s.t, "group", &in.Group)
	return in
}

func (s *story) ofMember(d *datadriven.TestData) synccore.Input {
	from := ""
	if len(d.CmdArgs) > 0 && len(d.CmdArgs[0].Vals) == 0 {
		from = d.CmdArgs[0].Key
	}
	domain := clocksync.Domain("host")
	if d.HasArg("domain") {
		domain = clocksync.Domain(s.arg(d, "domain"))
	} else if known := s.core.Domain(from); known != "" {
		domain = known
	}
	incarnation := s.uint(d, "inc", 1)
	switch d.Cmd {
	case "reload":
		plans, err := configfile.Parse("changed.yaml", []byte(d.Input))
		if err != nil {
			d.Fatalf(s.t, "%v", err)
		}
		return synccore.Input{Kind: synccore.InLevel, Level: plans[0]}
	case "tick":
		return synccore.Input{Kind: synccore.InTick}
	case "hello":
		h := &wire.Hello{Member: from, Incarnation: incarnation, Host: "box", Domain: domain, Threads: d.HasArg("threads"), Causes: d.HasArg("causes")}
		d.MaybeScanArgs(s.t, "host", &h.Host)
		if h.Term = s.uint(d, "term", 0); h.Term > 0 {
			h.Leader = "gsync"
		}
		h.Life, h.Process, h.Asks, h.Had = s.uint(d, "life", 0), s.uint(d, "process", 0), d.HasArg("asks"), s.uint(d, "had", 0)
		if d.HasArg("host") {
			h.Host = s.arg(d, "host")
		}
		if d.HasArg("fields") {
			h.Typed = true
			h.Schema = s.fields(d)
		}
		return synccore.Input{Kind: synccore.InHello, From: from, Hello: h}
	case "batch":
		return synccore.Input{Kind: synccore.InBatch, From: from, Batch: s.batch(d, from, incarnation, domain)}
	case "gone":
		return synccore.Input{Kind: synccore.InGone, From: from, Gone: &wire.Gone{Member: from, Incarnation: incarnation, First: s.uint(d, "first", 0)}}
	case "ack":
		return synccore.Input{Kind: synccore.InAck, From: from, Ack: s.ack(d, from, incarnation)}
	case "alive":
		return synccore.Input{Kind: synccore.InEvidence, At: s.stamp(d, s.arg(d, "at"), domain)}
	case "process":
		row := s.row(d, s.core.Level().Process)
		return synccore.Input{Kind: synccore.InProcess, At: s.stamp(d, s.arg(d, "at"), domain), Row: row}
	case "parent":
		return synccore.Input{Kind: synccore.InParent, Signal: s.signal(d)}
	}
	d.Fatalf(s.t, "unknown command %q", d.Cmd)
	return synccore.Input{}
}

func (s *story) fields(d *datadriven.TestData) scgs.Schema {
	var schema scgs.Schema
	for _, arg := range d.CmdArgs {
		if arg.Key != "fields" {
			continue
		}
		for _, v := range arg.Vals {
			name, word, _ := strings.Cut(v, ":")
			word, isList := strings.CutPrefix(word, "list/")
			t, _ := scgs.ParseType(word)
			if isList {
				t = scgs.ListOf(t)
			}
			schema = append(schema, scgs.Field{Name: name, Type: t})
		}
	}
	return schema
}

// batch reads seq=N at=STAMP FIELD=VALUE..., end, alive=STAMP, evidence=SEQ,
// region=(NAME, ENTRY, SINCE), again, leaving.
func (s *story) batch(d *datadriven.TestData, from string, incarnation uint64, domain clocksync.Domain) *wire.Batch {
	b := &wire.Batch{Member: from, Incarnation: incarnation, Again: d.HasArg("again"), Leaving: d.HasArg("leaving")}
	if d.HasArg("seq") {
		r := wire.Report{Seq: s.uint(d, "seq", 0), End: d.HasArg("end"), At: s.stamp(d, s.arg(d, "at"), domain)}
		if !r.End {
			r.Row = s.row(d, s.core.Level().State)
		}
		b.Reports = append(b.Reports, r)
		b.Evidence.Seq = r.Seq
	}
	if d.HasArg("alive") {
		b.Evidence.Seq = s.uint(d, "evidence", b.Evidence.Seq)
		b.Evidence.At = s.stamp(d, s.arg(d, "alive"), domain)
	} else {
		b.Evidence.Seq = 0
	}
	for _, arg := range d.CmdArgs {
		if arg.Key == "region" {
			entry, _ := strconv.ParseUint(arg.Vals[1], 10, 64)
			since, _ := strconv.ParseUint(arg.Vals[2], 10, 64)
			b.Regions = append(b.Regions, wire.Region{Name: arg.Vals[0], Entry: entry, Since: since})
		}
	}
	return b
}

func (s *story) row(d *datadriven.TestData, schema scgs.Schema) []scgs.Value {
	row := make([]scgs.Value, len(schema))
	for i, f := range schema {
		for _, arg := range d.CmdArgs {
			switch {
			case arg.Key != f.Name:
			case f.Type.IsList(): // (a, b)
				var list []scgs.Value
				for _, text := range slices.DeleteFunc(arg.Vals, func(v string) bool { return v == "" }) {
					list = append(list, s.value(f.Type.Elem(), text))
				}
				row[i] = scgs.ListValue(f.Type.Elem(), list...)
			default:
				row[i] = s.value(f.Type, arg.Vals[0])
			}
		}
	}
	return row
}

func (s *story) value(typ scgs.Type, text string) scgs.Value {
	switch typ {
	case scgs.Bool:
		return scgs.BoolValue(text == "true")
	case scgs.Int:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			s.t.Fatal(err)
		}
		return scgs.IntValue(n)
	case scgs.Float:
		x, _ := strconv.ParseFloat(text, 64)
		return scgs.FloatValue(x)
	case scgs.Enum:
		return scgs.EnumValue(text)
	default:
		return scgs.StringValue(text)
	}
}

func (s *story) ack(d *datadriven.TestData, from string, incarnation uint64) *wire.Ack {
	a := wire.Answer{
		Decision: control.Decision{Synchronizer: s.core.Level().Name, Term: 7, Epoch: s.uint(d, "epoch", 1), Number: s.uint(d, "number", 1)},
		Name:     s.arg(d, "name"), Target: from,
	}
	if d.HasArg("detail") {
		a.Detail = s.arg(d, "detail")
	}
	for _, f := range control.Fates {
		if f.String() == s.arg(d, "fate") {
			a.Fate = f
		}
	}
	return &wire.Ack{Member: from, Incarnation: incarnation, Answers: []wire.Answer{a}}
}

func (s *story) signal(d *datadriven.TestData) *control.Signal {
	sig := &control.Signal{Name: s.arg(d, "name"), Kind: control.Activate, Decision: control.Decision{Synchronizer: "up", Epoch: 1, Number: 1}}
	for _, arg := range d.CmdArgs {
		if arg.Key == "data" {
			i, _ := strconv.ParseInt(arg.Vals[1], 10, 64)
			sig.Data = append(sig.Data, control.Datum{Name: arg.Vals[0], Value: scgs.IntValue(i)})
		}
	}
	return sig
}

func (s *story) print() string {
	var b strings.Builder
	o := &s.out
	for _, p := range o.Peers {
		m := &p.Msg
		fmt.Fprintf(&b, "peers %s version=%d epoch=%d phase=%d total=%d section=%t,%t %v\n", cmp.Or(p.To, "all"), m.Version, m.Epoch, m.Phase, m.Total, m.SectionHash != 0, len(m.Section) > 0, m.Peers)
	}
	for _, w := range o.Welcomes {
		switch m := w.Msg; {
		case m.Refused:
			fmt.Fprintf(&b, "refuse %s: %s\n", w.To, m.Reason)
			if m.Replaced {
				fmt.Fprintf(&b, "  it is replaced\n")
			}
			if m.NextSeq > 0 {
				fmt.Fprintf(&b, "  it may go above %d\n", m.NextSeq)
			}
		case m.Accepted:
			fmt.Fprintf(&b, "welcome %s next=%d section=%t heartbeat=%v\n", w.To, m.NextSeq, len(m.Section) > 0, time.Duration(m.Heartbeat))
			for _, a := range m.Aims {
				fmt.Fprintf(&b, "  %v %s in %s\n", a.Kind, a.Signal, a.Region)
			}
			if m.Untold > 0 {
				fmt.Fprintf(&b, "  untold %d\n", m.Untold)
			}
		default:
			fmt.Fprintf(&b, "introduce %s inc=%d %s\n", w.To, m.Incarnation, m.Reason)
		}
	}
	for _, r := range o.Reloads {
		fmt.Fprintf(&b, "reload %s\n", r.Config)
		for _, change := range r.Changes {
			fmt.Fprintf(&b, "  %s\n", change)
		}
	}
	for _, r := range o.Resends {
		fmt.Fprintf(&b, "resend %s %d..%d\n", r.To, r.Msg.From, r.Msg.To)
	}
	for _, e := range o.Epochs {
		fmt.Fprintf(&b, "epoch %d %v joined %v dropped %v\n", e.Epoch, e.Members, e.Joined, e.Dropped)
	}
	for _, v := range o.Verdicts {
		fmt.Fprintf(&b, "verdict %s %v", v.Predicate, v.Truth)
		if v.Reason != "" {
			fmt.Fprintf(&b, " (%s)", v.Reason)
		}
		if v.EndedAgo > 0 {
			fmt.Fprintf(&b, " over %v", v.EndedAgo)
		}
		if v.Suppressed > 0 {
			fmt.Fprintf(&b, " suppressed %d", v.Suppressed)
		}
		if v.Fired {
			fmt.Fprintf(&b, " fired %v", v.Decision)
			if v.Modality != "" {
				fmt.Fprintf(&b, " %s", v.Modality)
			}
			for _, p := range v.Witness {
				fmt.Fprintf(&b, " %s:%d%v", p.Name, p.State.Seq, p.Row)
			}
		}
		b.WriteString("\n")
	}
	for i := range o.Plans {
		p := &o.Plans[i]
		fmt.Fprintf(&b, "plan %v on %d/%d: %s\n%s", p.Decision, p.Epoch, p.Index, p.Plan.Verdict, p.Plan.Details())
	}
	for _, a := range o.Signals {
		for _, sig := range a.Msg.Signals {
			fmt.Fprintf(&b, "signal %s %v %s region=%s entry=%d decision=%v data=%v\n", target(a.Group, a.To), sig.Kind, sig.Name, sig.Region, sig.Entry, sig.Decision, sig.Data)
		}
	}
	for _, f := range o.Fates {
		fmt.Fprintf(&b, "fate %s %s %v %s\n", target(f.Group, f.Signal.Target), f.Signal.Name, f.Fate, f.Detail)
		if f.Hint != "" {
			fmt.Fprintf(&b, "hint %s\n", f.Hint)
		}
	}
	for _, p := range o.Probes {
		fmt.Fprintf(&b, "probe %s seq=%d mono>%v time>%v\n", p.To, p.Msg.Seq, p.Msg.AfterMono, p.Msg.AfterTime)
	}
	for _, e := range o.Summary {
		fmt.Fprintf(&b, "summary %s %v %v\n", [...]string{"", "start", "end", "alive"}[e.Kind], e.At.Mono, e.Row)
	}
	for _, r := range o.Rejected {
		fmt.Fprintf(&b, "rejected %s: %s\n", r.From, r.Detail)
	}
	if o.Failed != "" {
		fmt.Fprintf(&b, "failed: %s\n", o.Failed)
	}
	if b.Len() == 0 {
		return "-\n"
	}
	return b.String()
}

func target(group, member string) string { return strings.TrimPrefix(group+"/"+member, "/") }
