package scgs_test

import (
	"math"
	"testing"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// FuzzPossible takes bytes for operations. Whatever comes, in whatever order, nothing must
// panic, events advance in time, and ranges have their ends in order.
func FuzzPossible(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2})
	f.Add([]byte("\x00\x01\x01\x05\x02\x00\x02\x01\x06\x02\x00\x03\x01\x07\x12\x00\x01\x02\x0a\x02\x00\x01\x03\x0b\x02"))
	f.Add([]byte("790000000071000720000"))                                                                                               // all members leave
	f.Add([]byte("000000b0A000000000000000000000000000000000000000000000000000&10000000000000%100000000790000000000000000007200001000")) // all are lost, one comes back
	f.Fuzz(func(t *testing.T, data []byte) {
		z := newPossibleFuzzer(t)
		for len(data) >= 5 {
			z.step(data[0], data[1], data[2], data[3], data[4])
			data = data[5:]
			z.drain()
		}
		z.x.Finish()
		z.drain()
	})
}

type possibleFuzzer struct {
	t      *testing.T
	x      *scgs.Extents
	value  scgs.Ref
	epoch  uint64
	extent scgs.Extent
}

func newPossibleFuzzer(t *testing.T) *possibleFuzzer {
	t.Helper()
	x, err := scgs.NewExtents(scgs.ExtentOptions{MaxPending: 3})
	if err != nil {
		t.Fatal(err)
	}
	z := &possibleFuzzer{t: t, x: x}
	z.extent.From = clocksync.MinInstant
	z.begin(nil, []scgs.Spec{{Domain: "d0"}, {Domain: "d1"}, {Domain: "d0"}})
	return z
}

func (z *possibleFuzzer) begin(remove []scgs.Member, add []scgs.Spec) {
	z.epoch++
	z.x.Epoch(z.epoch, remove, add)
}

func (z *possibleFuzzer) step(op, who, seq, mono, width byte) {
	m := scgs.Member(who%6) - 1
	domain := name(int(who/6) % 3)
	at := clocksync.Stamp{Domain: domain, Mono: extreme(mono), Within: clocksync.Interval{
		Earliest: extreme(mono - width%16), Latest: extreme(mono + width/16),
	}}
	switch op % 8 {
	case 0, 1, 2:
		z.value++
		z.x.Start(m, uint64(seq), at, valueOf(z.value))
	case 3:
		z.x.End(m, uint64(seq), at)
	case 4:
		z.x.Evidence(m, uint64(seq), at)
	case 5:
		z.x.Lost(m)
	case 6:
		z.x.Restart(m, domain, clocksync.MaxInstant)
	case 7:
		var add []scgs.Spec
		if seq%3 > 0 {
			add = append(add, scgs.Spec{Domain: domain})
		}
		z.begin([]scgs.Member{m}, add)
	}
}

func (z *possibleFuzzer) drain() {
	var x scgs.Extent
	for z.x.Next(&x) {
		for _, r := range []scgs.Range{x.Sum, x.Least, x.Greatest} {
			if !(r.Low <= r.High) || math.IsInf(r.Low, 1) || math.IsInf(r.High, -1) {
				z.t.Fatalf("%+v", x)
			}
		}
		if x.From < z.extent.From || x.Epoch == z.extent.Epoch && (x.From == z.extent.From || x.Index != z.extent.Index+1) {
			z.t.Fatalf("%+v after %+v", x, z.extent)
		}
		z.extent = x
	}
	z.x.Needs(nil)
}
