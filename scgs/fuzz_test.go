package scgs_test

import (
	"testing"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// FuzzDetector takes bytes for a modality and operations. Whatever comes, in whatever order,
// the detector must not panic, its events must alternate, each handle must come
// back once, and a tuple must pass the pairwise test by its own witness.
func FuzzDetector(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2})
	f.Add([]byte("\x01\x06\x00\x01\x01\x00\x00\x01\x05\x00\x01\x01\x06\x02\x00\x01\x0a\x02\x01\x01\x0b"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 {
			return
		}
		z := fuzzer{t: t, modality: modalities[data[0]%3], held: map[scgs.Ref]bool{}}
		z.d = scgs.NewDetector(scgs.Options{Modality: z.modality, MaxPending: 3, Ends: true})
		data = data[1:]
		z.d.Epoch(0, nil, []scgs.Spec{{Domain: "d0"}, {Domain: "d1"}, {Domain: "d0"}})
		for len(data) >= 5 {
			z.step(data[0], data[1], data[2], data[3], data[4])
			data = data[5:]
			z.drain()
		}
	})
}

type fuzzer struct {
	t        *testing.T
	modality scgs.Modality
	d        *scgs.Detector
	ref      scgs.Ref
	held     map[scgs.Ref]bool
	epoch    uint64
	event    scgs.Event
	kind     scgs.Kind
}

func (z *fuzzer) step(op, who, seq, mono, width byte) {
	m := scgs.Member(who%6) - 1
	domain := name(int(who/6) % 3)
	at := clocksync.Stamp{Domain: domain, Mono: extreme(mono), Within: clocksync.Interval{
		Earliest: extreme(mono - width%16), Latest: extreme(mono + width/16),
	}}
	switch op % 9 {
	case 0, 1, 2:
		z.ref++
		if z.d.Start(m, uint64(seq), at, z.ref) == scgs.Accepted {
			z.held[z.ref] = true
		}
	case 3:
		z.d.End(m, uint64(seq), at)
	case 4:
		z.d.Evidence(m, uint64(seq), at)
	case 5:
		z.d.Lost(m)
	case 6:
		z.d.Restart(m, domain, clocksync.MaxInstant)
	case 7:
		z.epoch++
		var add []scgs.Spec
		if seq%3 > 0 {
			add = append(add, scgs.Spec{Domain: domain})
		}
		z.d.Epoch(z.epoch, []scgs.Member{m}, add)
	case 8:
		z.d.Finish()
	}
}

// extreme maps both ends of a byte to the infinite instants and their
// neighbours.
func extreme(b byte) clocksync.Instant {
	switch b {
	case 0:
		return clocksync.MinInstant
	case 1:
		return clocksync.MinInstant + 1
	case 254:
		return clocksync.MaxInstant - 1
	case 255:
		return clocksync.MaxInstant
	}
	return clocksync.Instant(b)
}

func (z *fuzzer) drain() {
	for z.d.Next(&z.event) {
		if (z.event.Kind == scgs.Opened) == (z.kind == scgs.Opened) {
			z.t.Fatalf("%v follows %v", z.event.Kind, z.kind)
		}
		z.kind = z.event.Kind
		if z.kind == scgs.Opened {
			z.check(z.d.Witness(nil))
		}
	}
	for _, n := range z.d.Needs(nil) {
		if n.Seq != 0 && n.AfterMono == clocksync.MaxInstant {
			z.t.Fatalf("evidence after all readings is needed: %+v", n)
		}
	}
	for _, p := range z.d.Ended(nil) {
		if p.Open || p.Unknown || p.End.Mono < p.Start.Mono {
			z.t.Fatalf("%+v ended", p)
		}
	}
	for _, r := range z.d.Released(nil) {
		if !z.held[r] {
			z.t.Fatalf("%d released, and not held", r)
		}
		delete(z.held, r)
	}
}

func (z *fuzzer) check(parts []scgs.Part) {
	before := clocksync.CertainlyBefore
	if z.modality == scgs.Possibly {
		before = func(s, e clocksync.Stamp) bool { return startsInTime(state{start: s}, e) }
	}
	for i, p := range parts {
		for _, q := range parts[:i+1] {
			if p.Unknown || q.Unknown {
				continue
			}
			if !before(p.Start, q.End) || !before(q.Start, p.End) {
				z.t.Fatalf("%+v and %+v do not overlap", p, q)
			}
		}
	}
}
