package scgs_test

import (
	"testing"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// FuzzThreshold puts in anything at all: what is reported certainly overlaps.
func FuzzThreshold(f *testing.F) {
	f.Add([]byte{0, 0, 1, 9, 2, 0, 1, 1, 9, 2, 2, 0, 1, 40, 2, 2, 1, 1, 40, 2})
	f.Add([]byte{0, 0, 1, 255, 3, 5, 0, 0, 0, 0, 3, 1, 0, 0, 0, 4, 2, 1, 0, 0})
	f.Fuzz(func(t *testing.T, input []byte) {
		d := scgs.NewThreshold(1+len(input)%3, scgs.Options{MaxPending: 1 + len(input)%5, Ends: true})
		d.Epoch(1, nil, []scgs.Spec{{Domain: "a"}, {Domain: "a"}, {Domain: "b"}, {Domain: "c"}})
		domains := []clocksync.Domain{"a", "b", "c", "d"}
		var set scgs.Set
		for n := uint64(2); len(input) >= 5; n++ {
			op, m, seq, mono, width := input[0], scgs.Member(input[1]%5), uint64(input[2]), input[3], input[4]
			input = input[5:]
			domain := domains[op>>4&3]
			if op&8 == 0 {
				domain = domains[max(0, int(m)-1)%4]
			}
			at := clocksync.Stamp{Domain: domain, Mono: extreme(mono), Within: clocksync.Around(extreme(mono), 1)}
			if width > 0 {
				at.Within = clocksync.Interval{Earliest: extreme(mono - width%16), Latest: extreme(mono + width/16)}
			}
			switch op & 7 {
			case 0, 1:
				d.Start(m, seq, at, 1)
			case 2:
				d.Evidence(m, seq, at)
			case 3:
				d.End(m, seq, at)
			case 4:
				d.Lost(m)
			case 5:
				d.Restart(m, domain, clocksync.MaxInstant)
			case 6:
				d.Epoch(n, []scgs.Member{m}, []scgs.Spec{{Domain: domain}})
			default:
				for _, need := range d.Needs(nil) {
					if need.Newest.Mono > need.AfterMono && need.Newest.Within.Earliest > need.AfterTime {
						t.Fatalf("asks for what it has: %+v", need)
					}
				}
				continue
			}
			if op&128 == 0 {
				drainChecked(t, d, &set)
			}
		}
		drainChecked(t, d, &set)
		d.Released(nil)
		d.Ended(nil)
	})
}

func drainChecked(t *testing.T, d *scgs.Threshold, set *scgs.Set) {
	t.Helper()
	for d.Next(set) {
		for i, x := range set.Runs {
			for j, y := range set.Runs {
				if !clocksync.CertainlyBefore(x.Start, y.End) || i < j && x.Member >= y.Member {
					t.Fatalf("%+v and %+v in a set", x, y)
				}
			}
		}
		if want := span(set.Runs); want != set.Span {
			t.Fatalf("span %+v, want %+v", set.Span, want)
		}
	}
}
