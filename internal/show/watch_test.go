package show

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/cockroachdb/datadriven"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/monitor"
)

func values(text string) monitor.Values {
	var v monitor.Values
	for pair := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(pair, "=")
		v = append(v, monitor.Named{Name: name, Value: value})
	}
	return v
}

// exampleStatus has members of every standing.
func exampleStatus() *monitor.Status {
	s := &monitor.Status{
		Tenant: "default", Config: "0123456789abcdef", Synchronizer: "gsync", Group: "workers", Term: 1_900_000_000_000_000_000, Epoch: 2, Awaited: 1, Waiting: 1,
		State: &monitor.StateStatus{Epoch: 2, Index: 17, InForce: true, Held: 1.25, SameClock: true},
		Members: []monitor.MemberStatus{
			{Name: "w1", Host: "box", Standing: monitor.InEpoch, Heard: 0.2, Clock: monitor.ClockStatus{Status: "exact", Bound: new(0.0)}, Pending: 1, State: values("phase=idle load=0.5")},
			{Name: "w2", Host: "box", Standing: monitor.InEpoch, Heard: 2.5, Silent: true, Clock: monitor.ClockStatus{Status: "synchronized", Source: "peer", Bound: new(0.00012)}, Pending: 3, State: values("phase=search load=2")},
			{Name: "w3", Host: "far", Standing: monitor.Ready, Heard: 0.1, Gaps: 1, Lost: 1, Clock: monitor.ClockStatus{Status: "untrusted", Source: "ntp"}, State: values("phase=search load=1")},
			{Name: "w4", Host: "far", Standing: monitor.NoState, Heard: 0.1, Clock: monitor.ClockStatus{Status: "unknown"}},
			{Name: "w5", Host: "far", Standing: monitor.Gone, Why: "left", Heard: 30, Clock: monitor.ClockStatus{Status: "exact"}},
			{Name: "w6", Host: "box", Standing: monitor.InEpoch, Unknown: true, Heard: 0.3, Gap: 0.25, Behind: 4, Gaps: 2, Lost: 1700, Pending: 2, Clock: monitor.ClockStatus{Status: "exact"}},
		},
		Predicates: []monitor.PredicateStatus{
			{Name: "all-idle", Truth: "false", Since: new(3.5), Armed: true, Fired: 2, Decision: "gsync/1/7", Ago: 61},
			{Name: "overload", Truth: "unknown", Reason: "the state of member w6 is unknown", Since: new(0.25), Armed: true},
			{Name: "steady", Truth: "true", Since: new(0.1), Hold: &monitor.Hold{Certain: 0.1, Wanted: 0.2}, Armed: true},
			{Name: "unjudged", Truth: "unknown", Armed: true},
		},
		Memory: values("best=7"),
		Groups: []monitor.GroupStatus{
			{Group: "helpers", Max: 1000, Members: []monitor.HeardMember{{Name: "h1", Regions: []string{"rest", "search"}}, {Name: "h2", Regions: []string{"search"}}}},
			{Group: "watchers", Max: 1000},
		},
	}
	s.Counters = map[string]uint64{"frames": 1200, "decisions": 2, "signals": 4, "resends": 1, "dropped": 0}
	s.Fates = map[string]uint64{"applied": 3, "unconfirmed": 1}
	return s
}

// TestStatusText compares the text of a status with testdata/live/status.
func TestStatusText(t *testing.T) {
	early := &monitor.Status{Tenant: "blue", Synchronizer: "gsync", Group: "workers", Awaited: 3}
	led := &monitor.Status{
		Tenant: "blue", Synchronizer: "gsync", Group: "workers", Awaited: 3, Leader: `process 7 on "box"`, Standbys: []string{`process 8 on "box", warm, 0 messages behind`, `process 9 on "far", cold: so`},
		Shed:   []monitor.ShedStatus{{From: "f4", Full: 2000, Old: 682}, {From: "f1", Old: 5}, {From: "f2", Old: 4}, {From: "f3", Old: 3}, {From: "f5", Old: 2}, {From: "f6", Old: 1}},
		Denied: []monitor.DeniedStatus{{Publish: true, Subject: "pegasus.v1.blue.other.sga", Ago: 3}, {Subject: "pegasus.v1.blue.workers.bt.*", Ago: 70}},
	}
	statuses := map[string]*monitor.Status{"full": exampleStatus(), "early": early, "led": led}
	datadriven.RunTest(t, "testdata/live/status", func(t *testing.T, d *datadriven.TestData) string {
		t.Helper()
		return Status(statuses[d.Cmd])
	})
}

// TestNobodyMakesALine: whatever members and those that stand by say of themselves is in the
// line that is theirs.
func TestNobodyMakesALine(t *testing.T) {
	status := func(odd string) string {
		s := exampleStatus()
		s.Members[0].Host, s.Members[1].Clock.Source, s.Members[4].Why = "h"+odd, "p"+odd, "left"+odd
		s.Predicates[1].Reason, s.Memory[0].Value, s.Groups[0].Members[0].Regions = "so"+odd, "best"+odd, []string{"rest" + odd}
		s.Leader, s.Standbys = "l"+odd, []string{"cold: " + odd}
		return Status(s)
	}
	why := func(odd string) string {
		e := *explanations()["waits"]
		e.Reason = "so" + odd
		e.Missing = append(e.Missing, monitor.Missing{Kind: "gone", Member: "w", Text: "left" + odd})
		return Why(&e)
	}
	for name, text := range map[string]func(string) string{"status": status, "why": why} {
		if plain, odd := text(""), text("\nleader    me\t\x1b[2J"); strings.Count(plain, "\n") != strings.Count(odd, "\n") || strings.ContainsAny(odd, "\t\x1b") {
			t.Errorf("%s:\n%s", name, odd)
		}
	}
}

// TestWhyText compares explanations as text with testdata/live/why.
func TestWhyText(t *testing.T) {
	all := explanations()
	datadriven.RunTest(t, "testdata/live/why", func(t *testing.T, d *datadriven.TestData) string {
		t.Helper()
		return Why(all[d.Cmd])
	})
}

// explanations are of a predicate that waits, and of ones that fired: by one clock,
// by several, and when no instant is certain.
func explanations() map[string]*monitor.Explanation {
	some := func(names ...string) *monitor.Some { return &monitor.Some{Count: len(names), Names: names} }
	waits := &monitor.Explanation{
		Synchronizer: "gsync", When: "all(members, .idle) &&\ncount(members, .n > 1) >= 2", For: 0.2, Epoch: 2,
		PredicateStatus: monitor.PredicateStatus{Name: "calm", Truth: "unknown", Reason: "the state of member w3 is unknown", Since: new(2.5), Armed: true},
		State:           &monitor.StateStatus{Epoch: 2, Index: 17, Partial: true, Held: 0.001},
		Parts: []monitor.Condition{
			{Text: "all(members, .idle)", Reason: "the state of member w3 is unknown", True: some("w1", "w2"), False: some(), Unknown: some("w3")},
			{Text: "count(members, .n > 1) >= 2", Reason: "the state of member w3 is unknown"},
			{Depth: 1, Text: "count(members, .n > 1)", Low: 1, High: 2, Reason: "the state of member w3 is unknown", True: some("w1"), False: some("w2"), Unknown: some("w3")},
		},
		Missing: []monitor.Missing{
			{Kind: "condition", Text: "it is unknown: the state of member w3 is unknown", Since: new(2.5)},
			{Kind: "unknown", Member: "w3", Text: "nothing is known of its state: reports of it are lost"},
			{Kind: "evidence", Member: "w1", Text: "evidence that its state 4 still held when the others had theirs", Since: new(0.05)},
		},
	}
	fired := func(d *monitor.LastDecision) *monitor.Explanation {
		d.ID, d.Ago, d.Epoch, d.Index = "gsync/1/7", 61, 1, 12
		return &monitor.Explanation{
			Synchronizer: "gsync", When: "all(members, .idle)", Every: true, Epoch: 1,
			PredicateStatus: monitor.PredicateStatus{Name: "calm", Truth: "true", Since: new(61.0), Fired: 7, Decision: d.ID, Ago: 61},
			State:           &monitor.StateStatus{Epoch: 1, Index: 12, InForce: true, Held: 61, SameClock: d.SameClock},
			Parts:           []monitor.Condition{{Text: "all(members, .idle)", Low: true, High: true, True: some("w1", "w2", "w3"), False: some(), Unknown: some()}},
			Last:            d,
		}
	}
	const ms = clocksync.Instant(time.Millisecond)
	at := func(a, b clocksync.Instant) monitor.Range { return monitor.Range{From: a, To: b} }
	state := func(member string, start, end monitor.Range) monitor.WitnessState {
		return monitor.WitnessState{Member: member, Seq: 5, Start: start, End: end, State: values("idle=true n=1")}
	}
	open := func(w monitor.WitnessState) monitor.WitnessState {
		w.Open = true
		return w
	}
	return map[string]*monitor.Explanation{
		"waits": waits,
		"same-clock": fired(&monitor.LastDecision{
			Held: 0.2, SameClock: true, Core: new(at(0, 200*ms)), Envelope: at(0, 200*ms), LeftOut: 3,
			Witness: []monitor.WitnessState{
				open(state("w1", at(-30*ms, -30*ms), at(250*ms, 250*ms))),
				state("w2", at(0, 0), at(200*ms, 200*ms)),
				state("w3", at(-5000*ms, -5000*ms), at(5000*ms, 5000*ms)),
			},
		}),
		"bounds": fired(&monitor.LastDecision{
			Held: 0.04, Bound: 0.006, Sources: "peer", Core: new(at(0, 40*ms)), Envelope: at(-10*ms, 55*ms), Partial: true,
			Witness: []monitor.WitnessState{
				state("w1", at(-12*ms, 0), at(43*ms, 55*ms)),
				open(state("w2", at(-16*ms, -4*ms), at(40*ms, clocksync.MaxInstant))),
				{Member: "w3", Unknown: true},
			},
		}),
		"inherited": fired(&monitor.LastDecision{Inherited: true, Witness: []monitor.WitnessState{}}),
		"set": fired(&monitor.LastDecision{
			Modality: "atleast", Held: 0.2, SameClock: true, Core: new(at(0, 200*ms)), Envelope: at(0, 200*ms),
			Witness: []monitor.WitnessState{open(state("w1", at(0, 0), at(200*ms, 200*ms)))},
		}),
		"no-core": fired(&monitor.LastDecision{
			Bound: 0.006, Sources: "peer", Envelope: at(0, clocksync.MaxInstant),
			Witness: []monitor.WitnessState{
				open(state("w1", at(-2*ms, 10*ms), at(4*ms, 16*ms))),
				open(state("w2", at(0, 12*ms), at(6*ms, 18*ms))),
			},
		}),
	}
}

// TestWatchView shows the screen of watch: size W H, then keys and updates, a line
// each, are applied; the output is the screen, with | at its right edge.
func TestWatchView(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	datadriven.RunTest(t, "testdata/live/watch", func(t *testing.T, d *datadriven.TestData) string {
		t.Helper()
		m := NewWatch(false)
		m.Apply(Entry{Event: Watching{Names: []string{"gsync"}}})
		for line := range strings.Lines(d.Input) {
			word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch word {
			case "size":
				if _, err := fmt.Sscan(rest, &m.Width, &m.Height); err != nil {
					t.Fatal(err)
				}
			case "key":
				if m.Key(rest) {
					return "ends\n"
				}
			case "status":
				s := exampleStatus()
				if rest != "" {
					s.Synchronizer = rest
				}
				m.Apply(Entry{at, s.Synchronizer, Standing{s}})
			case "event":
				e := &monitor.Line{}
				if err := json.Unmarshal([]byte(rest), e); err != nil {
					t.Fatal(err)
				}
				m.Apply(Entry{at, e.Synchronizer, e})
			case "notice":
				m.Apply(Entry{at, "", Notice(rest)})
			default:
				t.Fatalf("unknown word %q", word)
			}
		}
		var b strings.Builder
		for line := range strings.SplitSeq(m.Screen(), "\n") {
			if n := utf8.RuneCountInString(line); n > m.Width {
				t.Errorf("a line of %d columns: %s", n, line)
			}
			fmt.Fprintf(&b, "%-*s|\n", m.Width, line)
		}
		return b.String()
	})
}

// TestWatchKeepsAllSizes: the screen has the height of the terminal, whatever it is
// and whatever happens.
func TestWatchKeepsAllSizes(t *testing.T) {
	for _, known := range []bool{false, true} {
		m := NewWatch(true)
		m.Apply(Entry{Event: Watching{Names: []string{"gsync"}}})
		if known {
			m.Apply(Entry{From: "gsync", Event: Standing{exampleStatus()}})
			for i := range eventsKept + 5 {
				m.Apply(Entry{From: "gsync", Event: Notice(fmt.Sprint("notice ", i))})
			}
		}
		for m.Height = range 60 {
			for m.Width = range 120 {
				if got := strings.Count(m.Screen(), "\n") + 1; got != max(1, m.Height) {
					t.Fatalf("%dx%d: %d lines", m.Width, m.Height, got)
				}
			}
		}
	}
}

// TestWatchPauseIsBounded: what comes while paused is shown later, the newest of it.
func TestWatchPauseIsBounded(t *testing.T) {
	m := NewWatch(false)
	m.Apply(Entry{Event: Watching{Names: []string{"gsync"}}})
	m.Key("p")
	for i := range 2*heldKept + 1 {
		m.Apply(Entry{From: "gsync", Event: Notice(fmt.Sprint("notice ", i))})
	}
	if len(m.events) > 0 || len(m.held) > heldKept || int(m.missed)+len(m.held) != 2*heldKept+1 {
		t.Fatalf("%d events, %d held, %d missed", len(m.events), len(m.held), m.missed)
	}
	m.Key("p")
	if last := phrase(m.events[len(m.events)-1].Event); last != fmt.Sprint("notice ", 2*heldKept) || len(m.events) > eventsKept {
		t.Errorf("%d events, the last %q", len(m.events), last)
	}
}

// TestLiveText: an event reads the same in watch and in run, and is the same JSON,
// where its JSON tells all that its text does.
func TestLiveText(t *testing.T) {
	for name, event := range everyEvent() {
		if _, ok := event.(monitor.Event); !ok {
			continue
		}
		if _, more := event.(Refusal); more || name == "fired-unknown" { // JSON does not tell words from texts.
			continue
		}
		e := Entry{time.Now(), "gsync", event}
		live := &monitor.Line{}
		if err := json.Unmarshal([]byte(e.JSON()), live); err != nil {
			t.Fatal(err)
		}
		if got, want := phrase(live), phrase(event); got != want {
			t.Errorf("%s: watch says %q, run %q", name, got, want)
		}
		if got := (Entry{e.At, "gsync", live}).JSON(); got != e.JSON() {
			t.Errorf("%s: watch prints %s, run %s", name, got, e.JSON())
		}
	}
}
