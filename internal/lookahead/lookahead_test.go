package lookahead_test

import (
	"slices"
	"testing"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/lookahead"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

func level(t *testing.T, predicate string) *plan.Level {
	t.Helper()
	const head = "synchronizers:\n  gsync:\n    members: {group: g, count: 2}\n    silence: {after: 1s, then: drop}\n    state: {on: bool}\n"
	plans, err := configfile.Parse("ahead.yaml", []byte(head+predicate))
	if err != nil {
		t.Fatal(err)
	}
	return plans[0]
}

// TestTruths: a rule is decided where every choice of the states that wait agrees.
func TestTruths(t *testing.T) {
	on, off := []scgs.Value{scgs.BoolValue(true)}, []scgs.Value{scgs.BoolValue(false)}
	a := lookahead.New(level(t, `    predicates: {p: {when: "all(members, .on)"}}`))
	a.Reset([]predicates.Member{{Name: "a"}, {Name: "b"}})
	sum := func(place int, rows ...[]scgs.Value) {
		t.Helper()
		a.Begin()
		for _, row := range rows {
			a.State(row, row != nil)
		}
		a.End(place)
	}
	if got := a.Touched(); len(got) != 2 {
		t.Fatalf("%v is touched after a reset", got)
	}
	for _, c := range []struct {
		a, b  [][]scgs.Value
		truth predicates.Truth
		known bool
	}{
		{[][]scgs.Value{on}, [][]scgs.Value{off}, predicates.False, true},
		{[][]scgs.Value{on, off, on}, [][]scgs.Value{off}, predicates.False, true},
		{[][]scgs.Value{on, off, on}, [][]scgs.Value{off, on}, predicates.Unknown, true},
		{[][]scgs.Value{on, on}, [][]scgs.Value{on}, predicates.True, true},
		{[][]scgs.Value{nil}, [][]scgs.Value{on}, predicates.Unknown, true},
		{[][]scgs.Value{nil, on}, [][]scgs.Value{off}, 0, false},
		{nil, [][]scgs.Value{off}, 0, false},
		{make([][]scgs.Value, lookahead.Limit+1), [][]scgs.Value{off}, 0, false},
	} {
		a.Touch(0)
		a.Touch(1)
		sum(0, c.a...)
		sum(1, c.b...)
		truths, known := a.Truths()
		if known != c.known || known && truths[0] != c.truth {
			t.Errorf("%v and %v: %v, %t", c.a, c.b, truths, known)
		}
	}
	for _, rules := range []string{
		`    predicates: {p: {when: "all(members, .on)", cooldown: 1s}}`,
		`    predicates: {p: {when: "all(members, .on)", until: "none(members, .on)"}}`,
		`    predicates: {p: {when: "all(members, .on)", modality: definitely}}`,
		"    memory: {m: {type: int, initial: 0}}\n    predicates: {p: {when: \"memory.m > 0\", set: {m: \"1\"}}}",
		`    predicates: {p: {when: "count(members, .on) != count(prev, .on)"}}`,
	} {
		if lookahead.New(level(t, rules)) != nil {
			t.Errorf("%s is not always asked for", rules)
		}
	}
}

// TestBegins: a member is asked past the newest states of the others, and not past its own.
func TestBegins(t *testing.T) {
	var b lookahead.Begins
	b.Reset([]clocksync.Domain{"h", "h", "k"})
	if b.Newest() != clocksync.MinInstant {
		t.Error(b.Newest())
	}
	b.Note(0, 10, 110)
	b.Note(1, 20, 120)
	b.Note(2, 5, 130)
	b.Rank()
	if b.Newest() != 130 {
		t.Error(b.Newest())
	}
	for _, c := range []struct {
		place             int
		reading, earliest clocksync.Instant
		mono, time        clocksync.Instant
		lacks             bool
	}{
		{0, 21, 131, 20, 130, false},
		{0, 20, 131, 20, 130, true},
		{0, 21, 130, 20, 130, true},
		{1, 20, 131, 10, 130, false},
		{2, 5, 121, clocksync.MinInstant, 120, false},
		{2, 5, 120, clocksync.MinInstant, 120, true},
	} {
		need, lacks := b.Need(c.place, c.reading, c.earliest)
		if need.AfterMono != c.mono || need.AfterTime != c.time || lacks != c.lacks {
			t.Errorf("%+v: %+v, %t", c, need, lacks)
		}
	}
	b.Ask(1, scgs.Need{AfterMono: 30, AfterTime: 100})
	if need, lacks := b.Need(1, 99, 999); !lacks || need.AfterMono != 30 || need.AfterTime != 130 {
		t.Errorf("%+v, %t", need, lacks)
	}
}

// TestTrial: a trial finds the global states that follow if the newest states last, in their order, and is
// not sound where a state is missing, unknown or has ended, or where too many wait.
func TestTrial(t *testing.T) {
	plan := level(t, `    predicates: {p: {when: "all(members, .on)"}}`)
	rows := [][]scgs.Value{{scgs.BoolValue(false)}, {scgs.BoolValue(true)}}
	at := func(ms int) clocksync.Stamp {
		i := clocksync.Instant(ms) * 1_000_000
		return clocksync.Stamp{Domain: "h", Mono: i, Within: clocksync.Around(i, 0)}
	}
	// states are a member's: each begins at the instant given and has the row of its number, the last one is open.
	states := func(begins ...int) []scgs.Part {
		parts := make([]scgs.Part, len(begins))
		for i, ms := range begins {
			parts[i] = scgs.Part{Seq: uint64(i + 1), Ref: scgs.Ref(i % 2), Start: at(ms), End: at(ms + 1), Open: true}
			if i > 0 {
				parts[i-1].End, parts[i-1].Open = at(ms), false
			}
		}
		return parts
	}
	trial := lookahead.NewTrial(plan)
	trial.Reset([]predicates.Member{{Name: "a"}, {Name: "b"}}, []clocksync.Domain{"h", "h"})
	row := func(_ int, ref scgs.Ref) []scgs.Value { return rows[ref] }
	find := func(a, b []scgs.Part) (truths []predicates.Truth) {
		trial.Begin()
		trial.Add(0, a)
		trial.Add(1, b)
		if !trial.Sound() {
			return nil
		}
		for {
			next, more := trial.Next(row)
			if !more {
				return truths
			}
			truths = append(truths, next[0])
		}
	}
	const yes, no = predicates.True, predicates.False
	for _, c := range []struct {
		a, b []scgs.Part
		want []predicates.Truth
	}{
		{states(0), states(1), []predicates.Truth{no}},
		{states(0, 10), states(1, 11), []predicates.Truth{no, no, yes}},
		{states(0, 10, 20), states(1, 15), []predicates.Truth{no, no, yes, no}},
		{states(0, 10, 20), states(1, 25), []predicates.Truth{no, no, no, no}}, // Each was on, never both.
		{states(0, 10, 20, 30), states(1, 15), []predicates.Truth{no, no, yes, no, yes}},
	} {
		if got := find(c.a, c.b); !slices.Equal(got, c.want) {
			t.Errorf("%v, want %v", got, c.want)
		}
	}
	ended, unknown, torn := states(0, 10), states(0, 10), states(0, 10)
	ended[1].Open, unknown[0].Unknown, torn[0].End = false, true, at(9)
	for i, a := range [][]scgs.Part{nil, ended, unknown, torn, states(make([]int, 20)...)} {
		if got := find(a, states(1)); got != nil {
			t.Errorf("trial %d: %v of states that show less than all", i, got)
		}
	}
}

// BenchmarkTrial is a trial of ten members with three waiting states each.
func BenchmarkTrial(b *testing.B) {
	plans, err := configfile.Parse("trial.yaml", []byte("synchronizers:\n  g:\n    members: {group: g, count: 10}\n    state: {on: bool}\n    predicates: {p: {when: \"all(members, .on)\"}}\n"))
	if err != nil {
		b.Fatal(err)
	}
	trial := lookahead.NewTrial(plans[0])
	names, domains, states := make([]predicates.Member, 10), make([]clocksync.Domain, 10), make([][]scgs.Part, 10)
	for i := range names {
		names[i].Name, domains[i] = string(rune('a'+i)), "h"
		for k := range 3 {
			at := clocksync.Instant(k*100 + i)
			end := at + 100
			states[i] = append(states[i], scgs.Part{
				Seq: uint64(k + 1), Ref: scgs.Ref((k + i) % 2), Open: k == 2,
				Start: clocksync.Stamp{Domain: "h", Mono: at, Within: clocksync.Around(at, 0)}, End: clocksync.Stamp{Domain: "h", Mono: end, Within: clocksync.Around(end, 0)},
			})
		}
	}
	trial.Reset(names, domains)
	rows := [][]scgs.Value{{scgs.BoolValue(false)}, {scgs.BoolValue(true)}}
	stands := make([]lookahead.Stand, 1)
	b.ReportAllocs()
	for b.Loop() {
		trial.Begin()
		for i := range states {
			trial.Add(i, states[i])
		}
		stands[0] = lookahead.Stand{Truth: predicates.False, Armed: true}
		if fires, _ := trial.Run(stands, false, func(_ int, ref scgs.Ref) []scgs.Value { return rows[ref] }); fires || !trial.Sound() {
			b.Fatal("it fires, or shows too little")
		}
	}
}
