package scgs_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// pair is a detector and one that is told the same and must answer the same: the
// first by the short ways, Held and Advance, the second by the long ones.
type pair struct {
	t            rapid.TB
	d            draw
	short, long  *scgs.Detector
	multiplexers []int32 // of each member
	oneByOne     bool    // the long one is told Evidence instead of Held
	a, b         scgs.Event
	opened, told int // tuples, and how many of them by Advance
	log          []string
}

func (p *pair) fatalf(format string, args ...any) {
	p.t.Helper()
	p.t.Fatalf("%s\nafter\n%s", fmt.Sprintf(format, args...), fmt.Sprint(p.log))
}

func (p *pair) note(format string, args ...any) {
	p.log = append(p.log, fmt.Sprintf(format, args...)+"\n")
}

func equal[T any](p *pair, what string, got, want T) {
	p.t.Helper()
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
		p.fatalf("%s: %s, the long way %s", what, g, w)
	}
}

// both tells both detectors the same.
func (p *pair) both(what string, tell func(d *scgs.Detector) any) {
	p.t.Helper()
	p.note("%s", what)
	equal(p, what, tell(p.short), tell(p.long))
}

func (p *pair) held(multiplexer int32, at clocksync.Stamp) {
	p.t.Helper()
	what := fmt.Sprintf("held %d %v", multiplexer, at)
	if !p.oneByOne {
		p.both(what, func(d *scgs.Detector) any { return d.Held(multiplexer, at) })
		return
	}
	p.note("%s", what)
	p.short.Held(multiplexer, at)
	for m, c := range p.multiplexers {
		if c == multiplexer && c > 0 {
			p.long.Evidence(scgs.Member(m), p.long.Newest(scgs.Member(m)), at)
		}
	}
}

// drain takes out what is decided, by Next and Advance in turns.
func (p *pair) drain() {
	p.t.Helper()
	for more := true; more; {
		if p.d.chance(50) {
			more = p.short.Next(&p.a)
			equal(p, "Next", more, p.long.Next(&p.b))
			if more {
				equal(p, "event", p.a, p.b)
			}
			if more && p.a.Kind == scgs.Opened {
				p.opened++
			}
		} else {
			more = p.short.Advance(&p.a)
			want := p.long.Next(&p.b)
			for want && p.b.Kind == scgs.Closed {
				want = p.long.Next(&p.b)
			}
			equal(p, "Advance", more, want)
			if more {
				p.opened, p.told = p.opened+1, p.told+1
				p.a.Span, p.b.Span = scgs.Span{}, scgs.Span{}
				equal(p, "event", p.a, p.b)
			}
		}
		p.compare(more)
	}
}

// compare asks both detectors all there is.
func (p *pair) compare(within bool) {
	p.t.Helper()
	now, open := p.short.Current()
	then, was := p.long.Current()
	equal(p, "open", open, was)
	equal(p, "Current", now, then)
	equal(p, "Witness", p.short.Witness(nil), p.long.Witness(nil))
	equal(p, "Bound", p.short.Bound(), p.long.Bound())
	if !within {
		equal(p, "Needs", p.short.Needs(nil), p.long.Needs(nil))
		got, want := p.short.Released(nil), p.long.Released(nil)
		slices.Sort(got) // those of heads that are dropped together come in any order
		slices.Sort(want)
		equal(p, "Released", got, want)
		equal(p, "Ended", p.short.Ended(nil), p.long.Ended(nil))
	}
	for m := range p.multiplexers {
		equal(p, fmt.Sprintf("Pending of %d", m), p.short.Pending(scgs.Member(m)), p.long.Pending(scgs.Member(m)))
	}
	if !p.oneByOne {
		equal(p, "Stats", p.short.Stats(), p.long.Stats())
	}
}

// specs gives each member of the system a multiplexer.
func (p *pair) specs(s *system) []scgs.Spec {
	specs := s.specs()
	for m := range specs {
		specs[m].Multiplexer = int32(p.d(4)) - p.d.coin()
		p.multiplexers = append(p.multiplexers, specs[m].Multiplexer)
	}
	return specs
}

func (d draw) coin() int32 { return int32(d(2)) }

// put tells both the messages of a system, with evidence by multiplexers and epochs in
// between.
func (p *pair) put(s *system, o scgs.Options) {
	p.t.Helper()
	p.long.General()
	specs := p.specs(s)
	epoch := uint64(1)
	p.note("members %+v, %+v", specs, o)
	p.both("epoch", func(d *scgs.Detector) any { return d.Epoch(epoch, nil, specs) })
	for i, msg := range s.arrived {
		m := scgs.Member(msg.member)
		if o.Modality != scgs.Inst {
			msg = msg.ofRuns()
		}
		p.both(msg.String(), func(d *scgs.Detector) any { return put(d, m, msg) })
		if p.d.chance(30) { // several inputs before one look
			continue
		}
		p.drain()
		if p.d.chance(35) {
			at := s.arrived[max(0, i-p.d(4))].at
			if p.d.chance(30) {
				at = s.arrived[p.d(len(s.arrived))].at
			}
			if at.Domain != "" {
				p.held(int32(p.d(4)), at)
			}
			p.drain()
		}
		if p.d.chance(4) {
			epoch++
			m := p.d(len(specs))
			p.both(fmt.Sprintf("epoch without %d and with it", m), func(d *scgs.Detector) any {
				return d.Epoch(epoch, []scgs.Member{scgs.Member(m)}, specs[m:m+1])
			})
			p.drain()
		}
	}
	p.both("finish", func(d *scgs.Detector) any { d.Finish(); return nil })
	p.drain()
}

// TestAdvanceAndHeldAgree compares Advance with Next, and Held with Evidence for
// each member.
func TestAdvanceAndHeldAgree(t *testing.T) {
	opened, told := 0, 0
	t.Run("all", func(t *testing.T) {
		forModalities(t, func(t rapid.TB, d draw, m scgs.Modality) {
			h := everything
			h.restarts, h.moves = 10, 20
			s := newSystemOf(1+d(5), 1+d(3)*d(2), d, h)
			o := scgs.Options{Modality: m, Ends: true, MaxPending: 1 + d(8)}
			p := &pair{t: t, d: d, short: scgs.NewDetector(o), long: scgs.NewDetector(o), oneByOne: d.chance(50)}
			p.put(s, o)
			if m == scgs.Inst {
				opened, told = opened+p.opened, told+p.told
			}
		})
	})
	if opened == 0 || told == 0 {
		t.Fatalf("%d tuples, %d of them by Advance: nothing was tried", opened, told)
	}
}

// shuffle tells both whatever comes, mostly in order: stamps of one clock that are in
// no order with those of other members, nor their intervals with the readings.
func (p *pair) shuffle(inputs int) {
	p.t.Helper()
	d, o := p.d, scgs.Options{Ends: true, MaxPending: 1 + p.d(6)}
	p.short, p.long = scgs.NewDetector(o), scgs.NewDetector(o)
	p.long.General()
	var specs []scgs.Spec
	var clocks []clocksync.Domain
	members := 1 + d(5)
	many := d.chance(10) // so that trees have levels
	if many {
		members, inputs = 9+d(30), 8*inputs
	}
	for range members {
		clocks = append(clocks, name(0))
		specs = append(specs, scgs.Spec{Domain: name(0), Multiplexer: int32(d(3))})
		p.multiplexers = append(p.multiplexers, specs[len(specs)-1].Multiplexer)
	}
	epoch, now, ref := uint64(1), clocksync.Instant(0), scgs.Ref(0)
	p.note("members %+v, %+v", specs, o)
	p.both("epoch", func(d *scgs.Detector) any { return d.Epoch(epoch, nil, specs) })
	for range inputs {
		now += clocksync.Instant(d(3))
		m := scgs.Member(d(len(specs)))
		seq := p.long.Newest(m) + 1
		if d.chance(5) {
			seq += uint64(d(3)) - 1
		}
		at := clocksync.Stamp{Domain: name(0), Mono: now - clocksync.Instant(d(3)), Within: clocksync.Interval{Earliest: now + clocksync.Instant(d(5))}}
		at.Within.Latest = at.Within.Earliest + clocksync.Instant(d(8))
		if d.chance(15) {
			at.Within.Latest = clocksync.MaxInstant
		}
		own := at
		own.Domain = clocks[m]
		if d.chance(3) {
			at.Domain, own.Domain = name(1), name(1)
		}
		ref++
		what := fmt.Sprintf("member %d seq %d at %v", m, seq, own)
		switch d(12) {
		default:
			p.both("start "+what, func(d *scgs.Detector) any { return d.Start(m, seq, own, ref) })
		case 5, 6:
			p.held(int32(1+d(2)), at)
		case 7, 8:
			p.both("evidence "+what, func(d *scgs.Detector) any { return d.Evidence(m, max(seq, 1)-1, own) })
		case 9:
			p.both("end "+what, func(d *scgs.Detector) any { return d.End(m, seq, own) })
		case 10:
			if d(3) == 0 {
				p.both("lost "+what, func(d *scgs.Detector) any { return d.Lost(m) })
			}
			if d(3) == 0 {
				if many { // of heads that end together another one may come to another clock first
					at.Domain = name(0)
				} else if d(3) == 0 {
					at.Domain = name(1)
				}
				p.both("restart "+what, func(d *scgs.Detector) any {
					why := d.Restart(m, at.Domain, at.Within.Latest)
					if why == scgs.Accepted {
						clocks[m] = at.Domain
					}
					return why
				})
			}
		case 11:
			if d(4) == 0 {
				epoch++
				specs[m].Multiplexer, clocks[m] = int32(d(3)), name(0)
				p.multiplexers[m] = specs[m].Multiplexer
				p.both(fmt.Sprintf("epoch without %d and with %+v", m, specs[m]), func(d *scgs.Detector) any {
					return d.Epoch(epoch, []scgs.Member{m}, specs[m:m+1])
				})
			}
		}
		if d.chance(75) {
			p.drain()
		}
	}
	p.drain()
}

// TestOneClockAsGeneral compares the ways that are only for one clock domain with the
// general ones.
func TestOneClockAsGeneral(t *testing.T) {
	opened := 0
	waitFor(t, func(t *testing.T) {
		forSystems(t, func(t rapid.TB, d draw) {
			p := &pair{t: t, d: d, oneByOne: d.chance(30)}
			p.shuffle(1 + d(40))
			opened += p.opened
		})
	})
	if opened < systems(t) {
		t.Fatalf("%d tuples: nothing was tried", opened)
	}
}

// TestTiesGoByNumber: of states that end at the same stamp the one with the lowest number is
// advanced first, in the way for one clock as in the general one. That shows where an epoch
// removes its member before the other one is refuted.
func TestTiesGoByNumber(t *testing.T) {
	at := func(mono clocksync.Instant) clocksync.Stamp {
		return clocksync.Stamp{Domain: "x", Mono: mono, Within: clocksync.Around(mono, 5)}
	}
	for _, general := range []bool{true, false} {
		for removed := range scgs.Member(3) {
			d := scgs.NewDetector(scgs.Options{})
			if general {
				d.General()
			}
			d.Epoch(1, nil, []scgs.Spec{{Domain: "x"}, {Domain: "x"}, {Domain: "x"}})
			for m := range scgs.Member(3) {
				d.Start(m, 1, at(10), 0)
			}
			for _, m := range []scgs.Member{1, 2, 0} {
				d.Start(m, 2, at(20), 0)
			}
			var ev scgs.Event
			if !d.Next(&ev) || ev.Kind != scgs.Opened || !d.Next(&ev) || ev.Kind != scgs.Closed {
				t.Fatalf("general %v: %+v, want that the first tuple has ended", general, ev)
			}
			d.Epoch(2, []scgs.Member{removed}, nil)
			// The others' first states are still there if it was member 0 that was advanced.
			if got, want := d.Next(&ev), removed == 0; got != want {
				t.Errorf("general %v, without member %d: another tuple: %v, want %v", general, removed, got, want)
			}
		}
	}
}

// waitFor returns when what runs beside other tests has ended.
func waitFor(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Run("all", func(t *testing.T) { t.Run("inst", test) })
}

// FuzzOneClock takes bytes for the choices of that test.
func FuzzOneClock(f *testing.F) {
	f.Add([]byte("one clock, several members"))
	f.Fuzz(func(t *testing.T, data []byte) {
		data = data[:min(len(data), 1<<8)] // Each step compares all that both can be asked.
		d := func(n int) int {
			if len(data) == 0 {
				return 0
			}
			b := data[0]
			data = data[1:]
			return int(b) % n
		}
		(&pair{t: t, d: d}).shuffle(len(data) / 8)
	})
}

// TestThresholdHeldAgrees compares Held with Evidence for each member.
func TestThresholdHeldAgrees(t *testing.T) {
	forSystems(t, func(t rapid.TB, d draw) {
		s := newSystem(d, everything)
		k, o := 1+d(len(s.domains)), scgs.Options{Ends: true, Alarms: d.chance(50)}
		short, long := scgs.NewThreshold(k, o), scgs.NewThreshold(k, o)
		specs := (&pair{d: d}).specs(s)
		short.Epoch(1, nil, specs)
		long.Epoch(1, nil, specs)
		for i, msg := range s.arrived {
			for _, th := range []*scgs.Threshold{short, long} {
				put(th, scgs.Member(msg.member), msg.ofRuns())
			}
			at, multiplexer := s.arrived[d(i+1)].at, int32(d(4))
			if at.Domain != "" && d.chance(40) {
				short.Held(multiplexer, at)
				for m, spec := range specs {
					if spec.Multiplexer == multiplexer && multiplexer > 0 {
						long.Evidence(scgs.Member(m), long.Newest(scgs.Member(m)), at)
					}
				}
			}
			var a, b scgs.Set
			for more := true; more; {
				more = short.Next(&a)
				if want := long.Next(&b); more != want || more && fmt.Sprint(a) != fmt.Sprint(b) {
					t.Fatalf("after %d messages: %v %+v, told one by one %v %+v\n%v", i+1, more, a, want, b, s)
				}
			}
			if got, want := short.Needs(nil), long.Needs(nil); !slices.Equal(got, want) {
				t.Fatalf("after %d messages: needs %v, told one by one %v\n%v", i+1, got, want, s)
			}
		}
	})
}

func TestHeldRefuses(t *testing.T) {
	at := clocksync.Stamp{Domain: "x", Mono: 1, Within: clocksync.Exactly(1)}
	bad := clocksync.Stamp{Domain: "x", Mono: 1, Within: clocksync.Interval{Earliest: 2, Latest: 1}}
	d, th := scgs.NewDetector(scgs.Options{}), scgs.NewThreshold(1, scgs.Options{})
	specs := []scgs.Spec{{Domain: "x", Multiplexer: 7}, {Domain: "x"}, {Group: true, Multiplexer: 3}}
	d.Epoch(1, nil, specs)
	th.Epoch(1, nil, specs[:2])
	for _, c := range []struct {
		multiplexer int32
		at          clocksync.Stamp
		want        scgs.Reason
	}{{7, at, scgs.Accepted}, {7, bad, scgs.Malformed}, {0, at, scgs.NoMember}, {-1, at, scgs.NoMember}, {3, at, scgs.NoMember}} {
		if got := d.Held(c.multiplexer, c.at); got != c.want {
			t.Errorf("multiplexer %d at %v: %v, want %v", c.multiplexer, c.at, got, c.want)
		}
		if got := th.Held(c.multiplexer, c.at); got != c.want {
			t.Errorf("threshold, multiplexer %d at %v: %v, want %v", c.multiplexer, c.at, got, c.want)
		}
	}
}
