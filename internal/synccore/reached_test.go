package synccore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// line is what a member says at a time: its state, or that the last one still holds.
type line struct {
	at   int
	kind string // on, off or alive
}

// arrivals are traces of three members, with how often "at least two are on" becomes true in each.
var arrivals = map[string]struct {
	bound int // 0: all are on one host
	lines [3][]line
	fired int
	sets  int // that a detector finds beside those that grow: where one run ends as another begins there are two
}{
	"all stay": {0, [3][]line{
		{{10, "on"}, {25, "alive"}, {60, "alive"}}, {{20, "on"}, {25, "alive"}, {60, "alive"}}, {{40, "on"}, {60, "alive"}},
	}, 1, 1},
	"all stay, on three hosts": {2, [3][]line{
		{{10, "on"}, {25, "alive"}, {60, "alive"}}, {{20, "on"}, {25, "alive"}, {60, "alive"}}, {{40, "on"}, {60, "alive"}},
	}, 1, 1},
	"one leaves before the third comes": {0, [3][]line{
		{{10, "on"}, {60, "alive"}}, {{20, "on"}, {30, "off"}, {60, "alive"}}, {{40, "on"}, {50, "alive"}, {60, "alive"}},
	}, 2, 2},
	"one leaves before the third comes, on three hosts": {2, [3][]line{
		{{10, "on"}, {60, "alive"}}, {{20, "on"}, {30, "off"}, {60, "alive"}}, {{40, "on"}, {50, "alive"}, {60, "alive"}},
	}, 2, 2},
	"one leaves after the third has come": {0, [3][]line{
		{{10, "on"}, {60, "alive"}}, {{20, "on"}, {30, "alive"}, {50, "off"}}, {{40, "on"}, {45, "alive"}, {60, "alive"}},
	}, 1, 1},
	"one leaves as the third comes": {0, [3][]line{
		{{10, "on"}, {60, "alive"}}, {{20, "on"}, {30, "alive"}, {40, "off"}}, {{40, "on"}, {45, "alive"}, {60, "alive"}},
	}, 1, 2},
	"one leaves about when the third comes": {10, [3][]line{
		{{10, "on"}, {140, "alive"}}, {{35, "on"}, {60, "alive"}, {80, "off"}}, {{81, "on"}, {140, "alive"}},
	}, 1, 2},
	"one comes back": {0, [3][]line{
		{{10, "on"}, {60, "alive"}}, {{20, "on"}, {30, "off"}, {40, "on"}, {60, "alive"}}, {{50, "alive"}},
	}, 2, 2},
	"others take over": {0, [3][]line{
		{{10, "on"}, {30, "off"}}, {{20, "on"}, {60, "alive"}}, {{40, "on"}, {50, "alive"}, {60, "alive"}},
	}, 2, 2},
}

// reached is a synchronizer of three members that are off, and of a single threshold.
func reached(t *testing.T, bound int, keys string) *comparison {
	t.Helper()
	plans, err := configfile.Parse("reached.yaml", fmt.Appendf(nil, `
synchronizers:
  gsync:
    members: {group: g, count: 3, min: 1}
    silence: {after: 1h, then: block}
    state: {on: bool}
    predicates:
      p: {modality: atleast, when: "count(members, .on) >= 2"%s}
`, keys))
	if err != nil {
		t.Fatal(err)
	}
	c := &comparison{core: synccore.New(plans[0], synccore.Options{Term: 1}), got: map[string][]string{}}
	for m := range 3 {
		d := clocksync.Domain("h")
		if bound > 0 {
			d = clocksync.Domain(fmt.Sprintf("h%d", m))
		}
		c.domains = append(c.domains, d)
		c.step(synccore.Input{Kind: synccore.InHello, Hello: &wire.Hello{Member: member(m), Incarnation: 1, Domain: d}}, m)
	}
	c.seq, c.told = make([]uint64, 3), make([]uint64, 3)
	for m := range 3 {
		c.report(m, c.stamp(m, 0, bound), false)
	}
	return c
}

func (c *comparison) stamp(m, at, bound int) clocksync.Stamp {
	return clocksync.Stamp{Domain: c.domains[m], Mono: clocksync.Instant(at), Within: clocksync.Around(clocksync.Instant(at), time.Duration(bound))}
}

func (c *comparison) line(m int, l line, bound int) {
	if at := c.stamp(m, l.at, bound); l.kind == "alive" {
		c.alive(m, at)
	} else {
		c.report(m, at, l.kind == "on")
	}
}

// interleave calls f with every order in which the lines can arrive, each member's own in order.
func interleave(left [3]int, order []int, f func(order []int)) {
	done := true
	for m := range left {
		if left[m] > 0 {
			done = false
			rest := left
			rest[m]--
			interleave(rest, append(order, m), f)
		}
	}
	if done {
		f(order)
	}
}

// TestReachedInAnyOrder: how often a threshold fires does not depend on whose reports and evidence
// arrive first, and is as often as a detector finds that is given all in order of time.
func TestReachedInAnyOrder(t *testing.T) {
	for name, trace := range arrivals {
		t.Run(name, func(t *testing.T) {
			alarms := sorted(trace.lines, trace.bound)
			if len(alarms) != trace.sets {
				t.Errorf("in order of time it is found for %v, want %d alarms", alarms, trace.sets)
			}
			left := [3]int{len(trace.lines[0]), len(trace.lines[1]), len(trace.lines[2])}
			failures := 0
			interleave(left, nil, func(order []int) {
				c := reached(t, trace.bound, "")
				next := [3]int{}
				for _, m := range order {
					c.line(m, trace.lines[m][next[m]], trace.bound)
					next[m]++
				}
				got := slices.Clone(c.got["p"])
				slices.Sort(got)
				if len(got) != trace.fired || trace.fired > 1 && !slices.Equal(got, alarms) {
					if failures++; failures < 4 {
						t.Errorf("by %v it fires on %v, want %d firings", order, c.got["p"], trace.fired)
					}
				}
			})
		})
	}
}

// sorted are the alarms of a detector that is given the lines in order of time.
func sorted(lines [3][]line, bound int) (alarms []string) {
	c := comparison{domains: []clocksync.Domain{"h", "h", "h"}}
	if bound > 0 {
		c.domains = []clocksync.Domain{"h0", "h1", "h2"}
	}
	var specs []scgs.Spec
	for _, d := range c.domains {
		specs = append(specs, scgs.Spec{Domain: d})
	}
	d := scgs.NewThreshold(2, scgs.Options{})
	d.Epoch(1, nil, specs)
	seq, next := [3]uint64{1, 1, 1}, [3]int{}
	for m := range 3 {
		d.End(scgs.Member(m), 1, c.stamp(m, 0, bound)) //nolint:gosec // There are three.
	}
	var set scgs.Set
	for {
		first := -1
		for m := range 3 {
			if next[m] < len(lines[m]) && (first < 0 || lines[m][next[m]].at < lines[first][next[first]].at) {
				first = m
			}
		}
		if first < 0 {
			slices.Sort(alarms)
			return alarms
		}
		l, m := lines[first][next[first]], scgs.Member(first) //nolint:gosec // There are three.
		next[first]++
		if l.kind != "alive" {
			seq[first]++
		}
		switch at := c.stamp(first, l.at, bound); l.kind {
		case "alive":
			d.Evidence(m, seq[first], at)
		case "on":
			d.Start(m, seq[first], at, 0)
		default:
			d.End(m, seq[first], at)
		}
		for d.Next(&set) {
			if !set.Grows {
				var runs []string
				for _, p := range set.Runs {
					runs = append(runs, fmt.Sprintf("%s:%d", member(int(p.Member)), p.Seq))
				}
				alarms = append(alarms, strings.Join(runs, " "))
			}
		}
	}
}
