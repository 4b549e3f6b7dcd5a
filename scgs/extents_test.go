package scgs_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/scgs"
)

// valueOf gives small numbers, negative ones too, of which many are equal.
func valueOf(ref scgs.Ref) float64 { return float64(ref*7%5) - 1 }

// extentsOf enumerates what must be delivered.
func extentsOf(r realm, declared scgs.Range) []scgs.Extent {
	var all []scgs.Extent
	for _, at := range r.instants() {
		now := scgs.Extent{From: at, Extremes: scgs.Extremes{Sum: hull(), Least: hull(), Greatest: hull()}}
		for _, t := range r.tuples(at) {
			sum, least, greatest := scgs.Range{}, scgs.Range{Low: math.Inf(1), High: math.Inf(1)}, scgs.Range{Low: math.Inf(-1), High: math.Inf(-1)}
			for _, ref := range r.refs(t) {
				v := scgs.Range{Low: valueOf(ref), High: valueOf(ref)}
				if ref == 0 {
					v = declared
				}
				sum = scgs.Range{Low: sum.Low + v.Low, High: sum.High + v.High}
				least = scgs.Range{Low: min(least.Low, v.Low), High: min(least.High, v.High)}
				greatest = scgs.Range{Low: max(greatest.Low, v.Low), High: max(greatest.High, v.High)}
			}
			widen(&now.Sum, sum)
			widen(&now.Least, least)
			widen(&now.Greatest, greatest)
		}
		if n := len(all); n == 0 || all[n-1].Extremes != now.Extremes {
			now.Epoch, now.Index = 1, uint64(n+1)
			all = append(all, now)
		}
	}
	return all
}

func hull() scgs.Range { return scgs.Range{Low: math.Inf(1), High: math.Inf(-1)} }

func widen(r *scgs.Range, by scgs.Range) {
	r.Low, r.High = min(r.Low, by.Low), max(r.High, by.High)
}

// extentRun is an Extents under test and what it has delivered.
type extentRun struct {
	t     rapid.TB
	x     *scgs.Extents
	found []scgs.Extent
}

func newExtentRun(t rapid.TB, o scgs.ExtentOptions, specs []scgs.Spec) *extentRun {
	x, err := scgs.NewExtents(o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	x.Epoch(1, nil, specs)
	return &extentRun{t: t, x: x}
}

func (r *extentRun) put(msg message) {
	if msg.action == start {
		r.x.Start(scgs.Member(msg.member), msg.seq, msg.at, valueOf(msg.ref))
		return
	}
	hand(r.x, scgs.Member(msg.member), msg)
}

func (r *extentRun) drain() {
	var x scgs.Extent
	before := r.x.Until()
	for r.x.Next(&x) {
		if x.From < before {
			r.t.Fatalf("%+v begins before %v", x, before)
		}
		r.found = append(r.found, x)
	}
}

// TestExtentsAreExact compares with enumeration at every prefix of the messages,
// in any order of arrival: each Extent as soon as it is final, and none else.
func TestExtentsAreExact(t *testing.T) {
	declared := scgs.Range{Low: -2, High: 7}
	delivered := 0
	forSystems(t, func(t rapid.TB, d draw) {
		s := newSystem(d, hazards{loss: 10, duplicates: 10, ends: 15, restarts: 10, moves: 50, infinite: 20})
		r := newExtentRun(t, scgs.ExtentOptions{Declared: declared}, s.specs())
		realm := newRealm(len(s.domains), s.arrived)
		want := extentsOf(realm, declared)
		lazy := d.chance(30) // takes events only now and then
		for i, msg := range s.arrived {
			r.put(msg)
			if lazy && !d.chance(20) {
				continue
			}
			r.drain()
			until := watermark(len(s.domains), s.arrived[:i+1])
			final := want[:len(r.found)]
			if !slices.Equal(r.found, final) || len(final) < len(want) && want[len(final)].From < until {
				t.Fatalf("found %+v\nwant %+v before %v\n%v%v", r.found, want, until, realm, s)
			}
		}
		r.x.Finish()
		r.drain()
		if !slices.Equal(r.found, want) {
			t.Fatalf("at the end\nfound %+v\nwant  %+v\n%v%v", r.found, want, realm, s)
		}
		delivered += len(want)
	})
	if delivered < 5*systems(t) {
		t.Fatalf("only %d were to be found", delivered)
	}
}
