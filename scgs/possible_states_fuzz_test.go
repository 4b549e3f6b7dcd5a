package scgs_test

import (
	"math"
	"testing"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// FuzzPossible takes bytes for operations. Whatever comes, in whatever order,
// nothing must panic, events go on in time, ranges have their ends in order, and
// each handle comes back at most once.
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
		z.q.Finish()
		z.drain()
	})
}

type possibleFuzzer struct {
	t      *testing.T
	x      *scgs.Extents
	q      *scgs.Search
	ref    scgs.Ref
	held   map[scgs.Ref]bool
	epoch  uint64
	extent scgs.Extent
	last   scgs.Finding
}

func newPossibleFuzzer(t *testing.T) *possibleFuzzer {
	t.Helper()
	x, err := scgs.NewExtents(scgs.ExtentOptions{MaxPending: 3})
	if err != nil {
		t.Fatal(err)
	}
	z := &possibleFuzzer{t: t, x: x, held: map[scgs.Ref]bool{}}
	z.extent.From, z.last.From = clocksync.MinInstant, clocksync.MinInstant
	z.q = scgs.NewSearch(z.ask, scgs.SearchOptions{MaxPending: 3, MaxCombinations: 20})
	z.begin(nil, []scgs.Spec{{Domain: "d0"}, {Domain: "d1"}, {Domain: "d0"}})
	return z
}

// ask is the predicate: it may only be asked about states that are still held.
func (z *possibleFuzzer) ask(states []scgs.Ref) scgs.Answer {
	sum := scgs.Ref(0)
	for _, ref := range states {
		if ref != 0 && !z.held[ref] {
			z.t.Fatalf("asked about state %d, which was released", ref)
		}
		sum += ref
	}
	return scgs.Answer(sum % 7 % 3)
}

func (z *possibleFuzzer) begin(remove []scgs.Member, add []scgs.Spec) {
	z.epoch++
	z.x.Epoch(z.epoch, remove, add)
	z.q.Epoch(z.epoch, remove, add)
}

func (z *possibleFuzzer) step(op, who, seq, mono, width byte) {
	m := scgs.Member(who%6) - 1
	domain := name(int(who/6) % 3)
	at := clocksync.Stamp{Domain: domain, Mono: extreme(mono), Within: clocksync.Interval{
		Earliest: extreme(mono - width%16), Latest: extreme(mono + width/16),
	}}
	var a, b scgs.Reason
	switch op % 8 {
	case 0, 1, 2:
		z.ref++
		a = z.x.Start(m, uint64(seq), at, valueOf(z.ref))
		b = z.q.Start(m, uint64(seq), at, z.ref)
		z.held[z.ref] = b == scgs.Accepted
	case 3:
		a, b = z.x.End(m, uint64(seq), at), z.q.End(m, uint64(seq), at)
	case 4:
		a, b = z.x.Evidence(m, uint64(seq), at), z.q.Evidence(m, uint64(seq), at)
	case 5:
		a, b = z.x.Lost(m), z.q.Lost(m)
	case 6:
		a, b = z.x.Restart(m, domain, clocksync.MaxInstant), z.q.Restart(m, domain, clocksync.MaxInstant)
	case 7:
		var add []scgs.Spec
		if seq%3 > 0 {
			add = append(add, scgs.Spec{Domain: domain})
		}
		z.begin([]scgs.Member{m}, add)
	}
	if a != b {
		z.t.Fatalf("operation %d: %v and %v", op, a, b)
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
	var f scgs.Finding
	for z.q.Next(&f) {
		if f.From < z.last.From || f.Epoch == z.last.Epoch && f.Answer == z.last.Answer {
			z.t.Fatalf("%+v after %+v", f, z.last)
		}
		if w := z.q.Witness(nil); f.Answer == scgs.Yes && z.ask(w) != scgs.Yes {
			z.t.Fatalf("%v is no witness", w)
		}
		z.last = f
	}
	for _, ref := range z.q.Released(nil) {
		if !z.held[ref] {
			z.t.Fatalf("state %d was released twice", ref)
		}
		delete(z.held, ref)
	}
	if a, b := len(z.x.Needs(nil)), len(z.q.Needs(nil)); a != b {
		z.t.Fatalf("%d and %d needs", a, b)
	}
}
