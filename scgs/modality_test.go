package scgs_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// condition draws on which states of the streams the condition holds.
func condition(d draw, s *system) map[scgs.Ref]bool {
	holds := map[scgs.Ref]bool{}
	for _, stream := range s.streams {
		for _, msg := range stream {
			holds[msg.ref] = msg.action == start && d.chance(70)
		}
	}
	return holds
}

// runs merges the states on which the condition holds. A gap ends a run.
func runs(all []state, holds map[scgs.Ref]bool) []state {
	var merged []state
	next := uint64(0)
	for _, s := range all {
		switch {
		case s.unknown || !holds[s.ref]:
			next = 0
			continue
		case s.seq == next:
			last := &merged[len(merged)-1]
			last.end, last.closed = s.end, s.closed
		default:
			merged = append(merged, s)
		}
		next = s.seq + 1
	}
	return merged
}

func feed(d *scgs.Detector, s *system, holds map[scgs.Ref]bool) []string {
	specs := s.specs()
	members := d.Epoch(1, nil, specs)
	var found []string
	var ev scgs.Event
	drain := func() {
		for d.Next(&ev) {
			if ev.Kind != scgs.Opened {
				continue
			}
			if ev.Partial {
				panic("partial")
			}
			var line []uint64
			for _, p := range d.Witness(nil) {
				line = append(line, p.Seq)
			}
			found = append(found, fmt.Sprint(line))
		}
	}
	for _, msg := range s.arrived {
		if msg.action == start && !holds[msg.ref] {
			msg.action = end
		}
		put(d, members[msg.member], msg)
		drain()
	}
	d.Finish()
	drain()
	return found
}

func (s *system) runsOf(holds map[scgs.Ref]bool) [][]state {
	streams := make([][]message, len(s.domains))
	for _, msg := range s.arrived {
		streams[msg.member] = append(streams[msg.member], msg)
	}
	all := make([][]state, len(s.domains))
	for m := range streams {
		all[m] = runs(states(streams[m]), holds)
	}
	return all
}

func TestDefinitelyIsInstOfRuns(t *testing.T) {
	found := 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		d := draw(r.IntN)
		s := newSystem(d, hazards{loss: 10, ends: 20, infinite: 10, restarts: 10})
		holds := condition(d, s)
		all := s.runsOf(holds)
		var want []string
		for _, tu := range tuples(all) {
			var line []uint64
			for m, k := range tu {
				line = append(line, all[m][k].seq)
			}
			want = append(want, fmt.Sprint(line))
		}
		got := feed(scgs.NewDetector(scgs.Options{Modality: scgs.Definitely}), s, holds)
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: got %v want %v\n%v%v", seed, got, want, s, holds)
		}
		found += len(got)
	}
	t.Log(found)
}

func possible(a, b state) bool {
	if a.start.Domain == b.start.Domain {
		return a.start.Mono < b.end.Mono && b.start.Mono < a.end.Mono
	}
	return a.start.Within.Earliest < b.end.Within.Latest && b.start.Within.Earliest < a.end.Within.Latest
}

// sweep is the rule of Possibly on complete runs.
func sweep(all [][]state) []string {
	var out []string
	at := make([]int, len(all))
	for {
		for m := range all {
			if at[m] >= len(all[m]) {
				return out
			}
		}
		dead := -1
		for m := range all {
			for n := range all {
				j, i := all[m][at[m]], all[n][at[n]]
				if !j.closed {
					continue
				}
				if j.start.Domain == i.start.Domain && j.end.Mono <= i.start.Mono || j.start.Domain != i.start.Domain && j.end.Within.Latest <= i.start.Within.Earliest {
					dead = m
				}
			}
		}
		if dead >= 0 {
			at[dead]++
			continue
		}
		ok := true
		for m := range all {
			for n := range all {
				ok = ok && possible(all[m][at[m]], all[n][at[n]])
			}
		}
		if !ok {
			return out
		}
		var line []uint64
		for m := range all {
			line = append(line, all[m][at[m]].seq)
		}
		out = append(out, fmt.Sprint(line))
		least := clocksync.MaxInstant
		j := -1
		for m := range all {
			if h := all[m][at[m]].end.Within.Latest; j < 0 || h < least {
				least, j = h, m
			}
		}
		if !all[j][at[j]].closed {
			return out
		}
		at[j]++
	}
}

func TestPossiblyFollowsItsRule(t *testing.T) {
	found := 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 2))
		d := draw(r.IntN)
		s := newSystem(d, hazards{loss: 10, ends: 20, infinite: 10, restarts: 10})
		holds := condition(d, s)
		all := s.runsOf(holds)
		want := sweep(all)
		got := feed(scgs.NewDetector(scgs.Options{Modality: scgs.Possibly}), s, holds)
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: got %v want %v\n%v%v", seed, got, want, s, holds)
		}
		found += len(got)
	}
	t.Log(found)
}
