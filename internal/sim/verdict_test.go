package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/testcount"
	"github.com/gopegasus/pegasus/scgs"
)

const groupLasts = 3 * time.Minute

// allHere fires on each global state.
const allHere = `
synchronizers:
  gsync:
    members: {group: g, count: {min: 2, max: 16}}
    silence: {after: 5s, then: drop}
    state: {n: int}
    predicates:
      here: {when: "all(members, .n > 0)", every: true}
`

// observer knows the true times of all states, and judges each verdict by them.
type observer struct {
	t       *testing.T
	world   *World
	group   *Group
	hosts   []*Host
	members map[string]*Member

	verdicts, across, lost, wrong int
	worst                         time.Duration // bound of a verdict
}

func newObserver(t *testing.T, w *World, timeline clocksync.Timeline) *observer {
	t.Helper()
	root := w.NewHost("root", HostSpec{Mono: clocksync.Instant(w.Between(0, time.Hour)), Rate: int64(w.Between(-200_000, 200_000))})
	plans, err := configfile.Parse("sim.yaml", []byte(allHere))
	if err != nil {
		t.Fatal(err)
	}
	g := NewGroup(root, plans[0], timeline)
	o := &observer{t: t, world: w, group: g, members: map[string]*Member{}, hosts: []*Host{root}}
	g.Observe = o.look
	return o
}

// host adds a host whose clocks show any time.
func (o *observer) host() *Host {
	w := o.world
	h := w.NewHost(clocksync.Domain(fmt.Sprintf("host-%d", len(o.hosts))), HostSpec{
		Mono: clocksync.Instant(w.Between(0, 1000*time.Hour)), Wall: w.Between(-time.Minute, time.Minute),
		Rate: int64(w.Between(-200_000, 200_000)),
	})
	o.hosts = append(o.hosts, h)
	return h
}

func (o *observer) link() *Link {
	w := o.world
	return w.NewLink(LinkSpec{
		Delay: w.Between(20*time.Microsecond, 2*time.Millisecond), Burst: w.Between(time.Millisecond, 20*time.Millisecond),
		Backlog: w.Between(0, 500*time.Microsecond), Loss: 0.01,
	})
}

func (o *observer) keeper(h *Host, c clocksync.Config) *Keeper {
	o.t.Helper()
	c.Drift = 500 // Two clocks that drift by 200 each.
	k, err := NewKeeper(h, c, time.Second)
	if err != nil {
		o.t.Fatal(err)
	}
	return k
}

// join adds a member that changes its state now and then.
func (o *observer) join(h *Host, k Clock) {
	name := fmt.Sprintf("m%d", len(o.members))
	m := o.group.Join(name, h, k, o.link(), o.link())
	o.members[name] = m
	var again func()
	again = func() {
		m.Change()
		h.After(o.world.Exponential(30*time.Millisecond)+time.Microsecond, again)
	}
	h.After(time.Second, again)
}

// disturb steps, slews and suspends hosts, the synchronizer's host too.
func (o *observer) disturb() {
	w := o.world
	w.After(w.Exponential(10*time.Second), func() {
		h := o.hosts[w.Rand.IntN(len(o.hosts))]
		switch w.Rand.IntN(5) {
		case 0:
			h.Step(10 * time.Second)
		case 1:
			h.Step(-10 * time.Second)
		case 2:
			h.Step(w.Between(-time.Second, time.Second))
		case 3:
			h.SetRate(int64(w.Between(-200_000, 200_000)))
		case 4:
			if !h.Suspended() {
				h.Suspend(w.Between(100*time.Millisecond, 10*time.Second))
			}
		}
		o.disturb()
	})
}

// look judges what a step told: all states of a witness must have held at one
// true time.
func (o *observer) look(out *synccore.Output) {
	for i := range out.Rejected {
		o.world.Note(out.Rejected[i].Detail)
	}
	for _, c := range out.Clocks {
		if c.Quality.Status == clocksync.Unknown || c.Quality.Status == clocksync.Untrusted {
			o.lost++
		}
	}
	for i := range out.Verdicts {
		v := &out.Verdicts[i]
		if !v.Fired {
			continue
		}
		o.verdicts++
		if !v.Span.SameClock {
			o.across++
			o.worst = max(o.worst, v.Bound)
		}
		from, to := clocksync.MinInstant, clocksync.MaxInstant
		for _, p := range v.Witness {
			held := o.members[p.Name].Held[p.Row[0].Int()-1]
			from, to = max(from, held.From), min(to, held.To)
		}
		o.world.Note("verdict", int64(from), int64(to))
		if from >= to {
			o.wrong++
		}
	}
}

// measured is a group whose members measure themselves against the root, two on
// each host and one on the root's own clock.
func measured(t *testing.T, seed uint64) *observer {
	t.Helper()
	w := New(seed)
	o := newObserver(t, w, "")
	root := o.hosts[0]
	o.join(root, nil)
	for range 2 {
		h := o.host()
		for range 2 {
			k := o.keeper(h, clocksync.Config{Timeline: root.readTimeline()})
			k.Ask("root", Root(root), o.link(), o.link())
			o.join(h, k)
		}
	}
	return o
}

// served is a group whose hosts ask time servers, of which the first so many lie.
func served(t *testing.T, seed uint64, servers, liars, faults int) *observer {
	t.Helper()
	w := New(seed)
	o := newObserver(t, w, clocksync.UTC)
	for range 3 {
		h := o.host()
		k := o.keeper(h, clocksync.Config{Timeline: clocksync.UTC, Faults: faults})
		for i := range servers {
			s := w.NewTimeServer(100 * time.Microsecond)
			if i < liars {
				shift := w.Between(-10*time.Second, 10*time.Second)
				s = NewLiar(func(Question) (earliest, latest time.Duration) { return shift, shift + time.Microsecond })
			}
			k.Ask(name(i), s, o.link(), o.link())
		}
		o.join(h, k)
	}
	return o
}

// TestNoVerdictIsFalse: hosts that are stepped by 10 s either way, slewed,
// suspended and lied to, as many as may be wrong, never lead to a verdict on
// states that did not hold together.
func TestNoVerdictIsFalse(t *testing.T) {
	for kind, world := range map[string]func(seed uint64) *observer{
		"measured": func(seed uint64) *observer { return measured(t, seed) },
		"served":   func(seed uint64) *observer { return served(t, seed, 3, 1, 1) },
	} {
		t.Run(kind, func(t *testing.T) {
			groups := testcount.Of(t, "GROUPS", 4)
			var verdicts, across, lost int
			var worst time.Duration
			for i := range uint64(groups) { //nolint:gosec // Above 0.
				o := world(*seed + i)
				o.disturb()
				o.world.Run(clocksync.Instant(groupLasts))
				if o.wrong > 0 {
					t.Fatalf("world %d: %d of %d verdicts are false: repeat with PEGASUS_GROUPS=1 go test ./internal/sim -run %s -sim.seed=%[1]d", *seed+i, o.wrong, o.verdicts, t.Name())
				}
				if o.across == 0 {
					t.Errorf("world %d: nothing was certain between hosts", *seed+i)
				}
				verdicts, across, lost, worst = verdicts+o.verdicts, across+o.across, lost+o.lost, max(worst, o.worst)
			}
			t.Logf("%d worlds of %v: %d verdicts, all true, %d between hosts by bounds up to %v; bounds were lost %d times", groups, groupLasts, verdicts, across, worst, lost)
			if lost == 0 {
				t.Error("no bound was ever lost")
			}
		})
	}
}

// TestTheObserverNoticesALie: where more lie than may be wrong, verdicts are
// false, and the observer says so.
func TestTheObserverNoticesALie(t *testing.T) {
	o := served(t, *seed, 1, 1, 0)
	o.world.Run(clocksync.Instant(groupLasts))
	if o.wrong == 0 {
		t.Errorf("%d verdicts by clocks that were lied to, and none is false", o.verdicts)
	}
}

// TestTheSameSeedIsTheSameGroup.
func TestTheSameSeedIsTheSameGroup(t *testing.T) {
	trace := func(seed uint64) uint64 {
		o := measured(t, seed)
		o.disturb()
		o.world.Run(clocksync.Instant(20 * time.Second))
		return o.world.Trace()
	}
	if a, b, other := trace(1), trace(1), trace(2); a != b || a == other {
		t.Error("a seed and its world are not one")
	}
}

// Change begins the next state with a single int field, the number of the state from 1, once a
// synchronizer has said what states are.
func (m *Member) Change() {
	at := m.stamp()
	if m.core.Codec() == nil {
		return
	}
	now := m.host.world.now
	if n := len(m.Held); n > 0 {
		m.Held[n-1].To = now
	}
	m.Held = append(m.Held, Held{From: now, To: clocksync.MaxInstant})
	m.begin(at, []scgs.Value{scgs.IntValue(int64(len(m.Held)))})
}
