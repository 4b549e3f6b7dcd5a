package show

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/gopegasus/pegasus/balance"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
	"github.com/gopegasus/pegasus/synchronizer"
)

// span held for d on one clock.
func span(d time.Duration) scgs.Span {
	return scgs.Span{SameClock: true, MonoFrom: 5, MonoTo: clocksync.Instant(5).Add(d)}
}

// fired is the verdict of a predicate that fired on the given witness.
func fired(s scgs.Span, witness ...monitor.Part) monitor.Verdict {
	bound, sources := 2*time.Millisecond, "peer"
	if s.SameClock {
		bound, sources = 0, ""
	}
	return monitor.Verdict{
		Predicate: "overload", Truth: predicates.True, Fired: true,
		Decision: control.Decision{Synchronizer: "gsync", Term: 9, Epoch: 2, Number: 17},
		Epoch:    2, Index: 40, Span: s, Witness: witness, Bound: bound, Sources: sources,
	}
}

// possibly is the verdict of a predicate of that modality that fired after its
// cooldown.
func possibly(witness ...monitor.Part) monitor.Verdict {
	v := fired(scgs.Span{}, witness...)
	v.Modality, v.Suppressed = "possibly", 3
	return v
}

// part is a state whose fields are named a, b and so on.
func part(name string, row ...scgs.Value) monitor.Part {
	p := monitor.Part{Name: name, Row: row}
	for i, v := range row {
		p.Fields = append(p.Fields, scgs.Field{Name: string(rune('a' + i)), Type: v.Type()})
	}
	return p
}

func epoch(number uint64, members, joined []string) monitor.Epoch {
	return monitor.Epoch{Epoch: number, Members: members, Joined: joined}
}

func names(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("w%d", i+1)
	}
	return list
}

func fate(f control.Fate, detail string) monitor.Fate {
	return monitor.Fate{Fate: f, Detail: detail, Signal: &control.Signal{
		Decision: control.Decision{Synchronizer: "gsync", Term: 9, Epoch: 2, Number: 17},
		Name:     "shed", Predicate: "overload", Kind: control.Activate, Target: "w1", Region: "search", Entry: 3,
	}}
}

func ofGroup(group string, f monitor.Fate) monitor.Fate {
	f.Group = group
	return f
}

// everyEvent is each kind of entry, with what can be special about it.
func everyEvent() map[string]any {
	rejection := monitor.Rejection{From: "w9", Detail: "member \"w9\" is one too many"}
	unknown := monitor.Part{Name: "w2", State: scgs.Part{Unknown: true}}
	return map[string]any{
		"ready": Ready{URL: "nats://127.0.0.1:4222", Tenant: "default", Levels: []synchronizer.Level{
			{Name: "gsync", Group: "workers", Count: 3, Predicates: []string{"all-idle", "overload"}},
			{Name: "other", Group: "watchers", Count: 1},
		}},
		"ready-secured": Ready{URL: "nats://127.0.0.1:4222", Secured: true, Tenant: "blue", Levels: []synchronizer.Level{
			{Name: "gsync", Group: "workers", Count: 3},
		}},
		"ready-keys": Ready{URL: "nats://127.0.0.1:4222", Keys: true, Tenant: "default", Levels: []synchronizer.Level{
			{Name: "gsync", Group: "workers", Count: 3},
		}},
		"ready-standby": Ready{URL: "nats://127.0.0.1:4222", Tenant: "blue", Standby: true, Levels: []synchronizer.Level{
			{Name: "gsync", Group: "workers", Count: 3},
		}},
		"epoch-first":     epoch(1, names(3), names(3)),
		"epoch-later":     epoch(2, names(3), names(3)[2:]),
		"epoch-large":     epoch(3, names(100), nil),
		"epoch-too-few":   epoch(0, names(1), nil),
		"epoch-nobody":    epoch(0, nil, nil),
		"lost":            monitor.Dropped{Name: "w3", Reason: "silent for 3s"},
		"fired":           fired(span(1234567), part("w1", scgs.EnumValue("idle"), scgs.FloatValue(0.5)), part("w2", scgs.EnumValue("search"), scgs.FloatValue(math.Inf(1)))),
		"fired-unknown":   fired(scgs.Span{HasCore: true, CoreFrom: 1, CoreTo: 901}, part("w1", scgs.DurationValue(time.Second), scgs.Value{}, scgs.StringValue("a\nb")), unknown),
		"fired-no-core":   fired(scgs.Span{}, part("w1")),
		"fired-possibly":  possibly(part("w1"), part("w2")),
		"verdict-kept":    monitor.Verdict{Predicate: "overload", Truth: predicates.True, Suppressed: 1, Epoch: 2, Index: 41},
		"verdict-false":   monitor.Verdict{Predicate: "overload", Truth: predicates.False, Epoch: 2, Index: 41},
		"verdict-unknown": monitor.Verdict{Predicate: "overload", Truth: predicates.Unknown, Reason: "w2 is unknown", Epoch: 2, Index: 42, Partial: true},
		"signal-applied":  fate(control.Applied, ""),
		"signal-group":    ofGroup("helpers", fate(control.Unconfirmed, "the target is gone")),
		"signal-refused":  fate(control.Refused, "handler: \x1b[2J\nfailed"),
		"clock": monitor.Clock{Name: "w1", Quality: clocksync.Quality{
			Source: "peer", Unverified: true, Timeline: "boot-7", Status: clocksync.Synchronized,
		}},
		"clock-lost":   monitor.Clock{Name: "w1", Quality: clocksync.Quality{Source: "ntp", Timeline: clocksync.UTC, Status: clocksync.Untrusted}},
		"refused":      Refusal{rejection, false},
		"refused-last": Refusal{rejection, true},
		"notice":       Notice("the NATS server is back"),
		"skipped":      Skipped(12),
		"skipped-one":  Skipped(1),
		"reloaded": monitor.Reload{
			Config: "pegasus.yaml", Changes: []string{"predicate quiet is new", "silence: from 3s, drop to 2s, block"},
		},
		"reloaded-same":  monitor.Reload{Config: "pegasus.yaml"},
		"reload-refused": monitor.Reload{Reason: "a: one; b: two"},
		"difference": Difference{synchronizer.Difference{
			Line: 17, Epoch: 2, Predicate: "overload",
			Recorded: synchronizer.Judgment{Judged: true, Truth: predicates.True, Fired: true}, Changed: synchronizer.Judgment{},
		}},
		"difference-over": Difference{synchronizer.Difference{
			Line: 18, Epoch: 2, Predicate: "overload", Recorded: synchronizer.Judgment{Judged: true, Truth: predicates.False}, Changed: synchronizer.Judgment{Judged: true, Truth: predicates.False},
		}},
		"replayed": Replayed{&synchronizer.Replayed{Pegasus: "v1.2.3", Inputs: 30, Decisions: 1, Complete: true}, "a.jsonl", false},
		"replayed-other": Replayed{&synchronizer.Replayed{
			Inputs: 30, Decisions: 1, FirstDifference: 7, Why: "it was cut", Differences: 3,
		}, "a.jsonl", true},
		"stopped-journal": Stopped{synchronizer.Stats{Frames: 1, Journal: synchronizer.JournalStats{Inputs: 5, Lost: 2, Bytes: 700}}},
		"plan":            planned(1),
		"plan-idle":       planned(0),
		"stopped":         Stopped{synchronizer.Stats{Frames: 1}},
		"stopped-busy": Stopped{synchronizer.Stats{
			Frames: 1200, Malformed: 2, Rejected: 3, Probes: 40, Resends: 1, Decisions: 5, Signals: 9, Dropped: 6,
			Fates: map[control.Fate]uint64{control.Applied: 7, control.NoSuchEntry: 2},
		}},
	}
}

// planned is a plan of three loads on the slower of two members, with so many moves.
func planned(moves int) monitor.Plan {
	set := balance.Default()
	set.Moves = max(1, moves)
	strategy, err := balance.New(set)
	if err != nil {
		panic(err)
	}
	s := balance.State{Nodes: []balance.Node{{Name: "w1", Power: 1, Share: 1}, {Name: "w2", Power: 2, Share: 1}, {Name: "w3", Note: "nothing is known of its state"}}}
	for i := range 3 {
		s.Loads = append(s.Loads, balance.Load{Name: strconv.Itoa(i + 1), Node: "w1", Weight: 2, Running: moves == 0})
	}
	one := monitor.Plan{Epoch: 2, Index: 41, Partial: true, Plan: strategy.Plan(0, &s)}
	if moves > 0 {
		one.Decision = control.Decision{Synchronizer: "gsync", Epoch: 2, Number: 9}
	}
	return one
}

// TestEntries compares each entry as text and as JSON with testdata/entries.
func TestEntries(t *testing.T) {
	events := everyEvent()
	at := time.Date(2030, 1, 2, 3, 4, 5, 67_000_000, time.UTC)
	datadriven.RunTest(t, "testdata/entries", func(t *testing.T, d *datadriven.TestData) string {
		t.Helper()
		event, ok := events[d.Cmd]
		if !ok {
			d.Fatalf(t, "no event %s", d.Cmd)
		}
		delete(events, d.Cmd)
		e := Entry{at, "gsync", event}
		if strings.HasPrefix(d.Cmd, "ready") || strings.HasPrefix(d.Cmd, "skipped") {
			e.From = ""
		}
		return e.Text() + e.JSON()
	})
	for name := range events {
		t.Errorf("event %s is not in the file", name)
	}
}

// TestReadyTellsOfMetrics names the address, of health as well.
func TestReadyTellsOfMetrics(t *testing.T) {
	first := Entry{Event: Ready{URL: "nats://127.0.0.1:4222", HTTP: "http://127.0.0.1:9464", Tenant: "default", Levels: everyEvent()["ready"].(Ready).Levels}}
	if !strings.Contains(first.Text(), "\nMetrics are at http://127.0.0.1:9464/metrics, health at http://127.0.0.1:9464/readyz.\n") {
		t.Errorf("ready is\n%s", first.Text())
	}
}
