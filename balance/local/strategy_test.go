package local_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/balance/local"
	"github.com/gopegasus/pegasus/clocksync"
)

// crowd is the view of member m0 with a slot that was never taken, among n members.
func crowd(n int) *local.View {
	v := &local.View{Self: "m0", Members: n}
	v.Activity.Set(0, 0, 1)
	for i := 1; i < n; i++ {
		v.Neighbours = append(v.Neighbours, local.Neighbour{Name: fmt.Sprint("m", i), Load: float64(i % 7)})
	}
	return v
}

// odd are numbers that no member should tell.
var odd = []float64{0, math.Copysign(0, -1), -1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64, 3}

// whole are counts that no member should have, and some that it may.
var whole = []int{math.MinInt, -1, 0, 1, 2, 10, math.MaxInt - 1, math.MaxInt}

// TestHostileViews shows strategies every kind of bad view. A demand is for a neighbour
// that may be asked, and a share is within what the view has.
func TestHostileViews(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		strategy := newLocalOf(t, rapid.SampledFrom(configs).Draw(t, "config"))
		count := func(what string) int { return rapid.SampledFrom(whole).Draw(t, what) }
		instant := func(what string) clocksync.Instant {
			return rapid.SampledFrom([]clocksync.Instant{clocksync.MinInstant, -5, 0, 1, 1e9, clocksync.MaxInstant}).Draw(t, what)
		}
		v := &local.View{Self: "m0", Waiting: count("waiting"), Put: count("put"), Items: count("items"), Members: count("members")}
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			v.Activity.Set(instant("change"), count("running"), count("slots"))
		}
		for i := range rapid.IntRange(0, 4).Draw(t, "neighbours") {
			v.Neighbours = append(v.Neighbours, local.Neighbour{
				Name: fmt.Sprint("m", i), Load: rapid.SampledFrom(odd).Draw(t, "load"), Told: instant("told"),
				Pending: rapid.IntRange(0, 9).Draw(t, "pending") == 0, Refusals: count("refusals"), Answered: instant("answered"),
			})
		}
		now := instant("now")
		demands, _ := strategy.Look(now, v, nil)
		for _, d := range demands {
			i := slices.IndexFunc(v.Neighbours, func(n local.Neighbour) bool { return n.Name == d.Member })
			if i < 0 || d.Member == v.Self || v.Neighbours[i].Pending {
				t.Fatalf("a demand %v in %+v", d, v.Neighbours)
			}
		}
		for range 3 {
			share := strategy.Answer(now, v, local.Demand{Member: rapid.SampledFrom([]string{"m0", "m1", "stranger", ""}).Draw(t, "asks"), Tasks: count("wanted")})
			if share.Tasks < 0 || share.Tasks > max(0, v.Waiting) || !(share.Part >= 0 && share.Part <= 1) || share.Part > 0 && v.Items < 2 {
				t.Fatalf("a share %+v of %+v", share, v)
			}
			for _, left := range whole {
				if n := share.ItemsOf(left); n < 0 || n > max(0, left-1) {
					t.Fatalf("%d of %d items for %+v", n, left, share)
				}
			}
		}
	})
}

func newLocalOf(t *rapid.T, c local.Config) local.Local {
	strategy, err := local.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return strategy
}

// TestItemsOf has a part of items, also for parts that no answer should have.
func TestItemsOf(t *testing.T) {
	for _, c := range []struct {
		part       float64
		left, want int
	}{
		{0.5, 10, 5},
		{0.5, 3, 1},
		{0.5, 2, 1},
		{0.5, 1, 0},
		{0.5, 0, 0},
		{0.5, -4, 0},
		{0.01, 10, 1},
		{1, 10, 9},
		{0, 10, 0},
		{math.NaN(), 10, 0},
		{-1, 10, 0},
		{math.Inf(1), 10, 9},
		{1. / 3, 3, 1},
		{1, math.MaxInt, math.MaxInt - 1},
	} {
		if got := (local.Share{Part: c.part}).ItemsOf(c.left); got != c.want {
			t.Errorf("%v of %d: %d, want %d", c.part, c.left, got, c.want)
		}
	}
	for left := 2; left < 2000; left++ { // A number of items comes back as it was.
		for n := 1; n < left; n += 1 + n/7 {
			if got := (local.Share{Part: float64(n) / float64(left)}).ItemsOf(left); got != n {
				t.Fatalf("%d/%d: %d", n, left, got)
			}
		}
	}
}

// TestMayAsk follows the waits after refusals.
func TestMayAsk(t *testing.T) {
	const again, longest = 10 * time.Millisecond, 55 * time.Millisecond
	for refusals, want := range []time.Duration{0, 10, 20, 40, 55, 55} {
		n := local.Neighbour{Refusals: refusals, Answered: 100}
		want := clocksync.Instant(100).Add(want * time.Millisecond)
		if may, from := n.MayAsk(200, again, longest); refusals > 0 && (may || from != want) {
			t.Errorf("after %d refusals: %v, from %v, want %v", refusals, may, from, want)
		}
		if may, _ := n.MayAsk(want, again, longest); !may {
			t.Errorf("after %d refusals it may not be asked at %v", refusals, want)
		}
		n.Told, n.Load = 101, 3 // It has work again.
		if _, from := n.MayAsk(200, again, longest); refusals > 0 && from != clocksync.Instant(100).Add(again) {
			t.Errorf("after %d refusals and new work: from %v", refusals, from)
		}
		n.Pending = true
		if may, from := n.MayAsk(want, again, longest); may || from != clocksync.MaxInstant {
			t.Errorf("an open demand: %v, %v", may, from)
		}
	}
}

// TestOrderOfAsking asks whoever tells most first, then those that told nothing, then
// those that have nothing; of equal ones the first.
func TestOrderOfAsking(t *testing.T) {
	strategy := newLocal(t, local.Config{})
	v := crowd(1)
	for i, load := range []float64{0, math.NaN(), 2, 9, 9, math.Inf(1)} {
		v.Neighbours = append(v.Neighbours, local.Neighbour{Name: fmt.Sprint("m", i+1), Load: load})
	}
	var order []string
	for {
		demands, _ := strategy.Look(5, v, nil)
		if len(demands) == 0 {
			break
		}
		order = append(order, demands[0].Member)
		n := &v.Neighbours[slices.IndexFunc(v.Neighbours, func(n local.Neighbour) bool { return n.Name == demands[0].Member })]
		n.Refusals, n.Answered = 1, 5
	}
	if want := []string{"m4", "m5", "m3", "m2", "m6", "m1"}; !slices.Equal(order, want) {
		t.Errorf("%v, want %v", order, want)
	}
}

// TestWhenToLook has the instants at which a member that does not ask looks again: when
// it comes below its threshold, if nothing changes before.
func TestWhenToLook(t *testing.T) {
	const again = 500 * time.Millisecond
	for _, c := range []struct {
		below                   string
		running, slots, waiting int // since 10 s; two slots were taken from 0 s on
		want                    clocksync.Instant
		asks                    bool
	}{
		{below: "idle(1.5)", slots: 2, want: at(11.5)},
		{below: "idle(1.5)", running: 1, slots: 2, want: clocksync.MaxInstant},
		{below: "free(1.5)", running: 1, slots: 2, want: at(11.5)},
		{below: "free(1.5)", running: 2, slots: 2, want: clocksync.MaxInstant},
		{below: "avg(0.9, 5)", slots: 2, want: at(10).Add(again)},
		{below: "avg(0.9, 5)", running: 1, slots: 2, want: clocksync.MaxInstant},
		{below: "avg(0.9, 20)", running: 1, slots: 2, want: clocksync.MaxInstant, asks: true},
		{below: "activity", running: 1, slots: 2, want: clocksync.MaxInstant},
		{below: "activity", slots: 2, want: clocksync.MaxInstant, asks: true},
		{below: "free(0)", running: 1, slots: 2, want: clocksync.MaxInstant, asks: true},
		{below: "free(0)", running: 1, slots: 2, waiting: 1, want: clocksync.MaxInstant},
		{below: "activity", slots: 0, want: clocksync.MaxInstant},
	} {
		v := crowd(2)
		v.Waiting = c.waiting
		v.Activity.Set(at(0), 2, 2)
		v.Activity.Set(at(10), c.running, c.slots)
		demands, got := newLocal(t, local.Config{Below: c.below, Again: again}).Look(at(10), v, nil)
		if got != c.want || len(demands) > 0 != c.asks {
			t.Errorf("%+v: demands %v, again at %v", c, demands, got)
		}
	}
}

// TestWhoGives has each kind answer where it may not give.
func TestWhoGives(t *testing.T) {
	view := func(running, slots, waiting, put, items int) *local.View {
		v := &local.View{Self: "m0", Members: 2, Waiting: waiting, Put: put, Items: items}
		v.Activity.Set(0, running, slots)
		return v
	}
	for _, c := range []struct {
		what            string
		receiver, chunk local.Share
		view            *local.View
		demand          local.Demand
	}{
		{what: "half, rounded up; ceil(7/2)", view: view(1, 1, 7, 7, 0), receiver: local.Share{Tasks: 4}, chunk: local.Share{Tasks: 4}},
		{what: "what two free slots take stays", view: view(1, 3, 3, 3, 0), receiver: local.Share{Tasks: 1}, chunk: local.Share{Tasks: 1}},
		{what: "all that wait can start", view: view(1, 3, 2, 2, 0)},
		{what: "put by another member", view: view(1, 1, 7, 0, 0), receiver: local.Share{Tasks: 4}},
		{what: "no more than wanted", view: view(1, 1, 7, 7, 0), demand: local.Demand{Tasks: 1}, receiver: local.Share{Tasks: 1}, chunk: local.Share{Tasks: 1}},
		{what: "a member without slots", view: view(0, 0, 7, 7, 0), receiver: local.Share{Tasks: 4}, chunk: local.Share{Tasks: 4}},
		{what: "a member that lost its slots, with tasks of another", view: view(0, 0, 7, 0, 0), receiver: local.Share{Tasks: 4}, chunk: local.Share{Tasks: 4}},
		{what: "a divisible task beside a free slot", view: view(1, 2, 0, 0, 10), receiver: local.Share{Part: 0.5}, chunk: local.Share{Part: 0.5}},
		{what: "a divisible task", view: view(1, 1, 0, 0, 10), receiver: local.Share{Part: 0.5}, chunk: local.Share{Part: 0.5}},
		{what: "its last item", view: view(1, 1, 0, 0, 1)},
		{what: "itself", view: view(1, 1, 7, 7, 0), demand: local.Demand{Member: "m0"}},
	} {
		if got := newLocal(t, local.Config{}).Answer(9, c.view, c.demand); got != c.receiver {
			t.Errorf("%s: the receiver gives %+v, want %+v", c.what, got, c.receiver)
		}
		if got := newLocal(t, local.Config{Kind: local.Chunk}).Answer(9, c.view, c.demand); got != c.chunk {
			t.Errorf("%s: the chunk is %+v, want %+v", c.what, got, c.chunk)
		}
	}
}

// TestCutterBeginsAgain puts tasks into a loop that is half cut.
func TestCutterBeginsAgain(t *testing.T) {
	for rule, want := range map[string]int{"ss": 1, "css(8)": 8, "gss": 25, "tss": 13, "fac2": 13} {
		cut, err := local.ParseCutter(rule)
		if err != nil {
			t.Fatal(err)
		}
		left := 100
		for range 7 {
			left -= cut.Next(left, 4)
		}
		if got := cut.Next(100, 4); got != want {
			t.Errorf("%s: %d of 100 new tasks, want %d", rule, got, want)
		}
		if got := cut.Next(0, 4) + cut.Next(-1, 0); got != 0 {
			t.Errorf("%s: %d of no tasks", rule, got)
		}
		if got := cut.Next(3, -7); got < 1 || got > 3 {
			t.Errorf("%s: %d of 3 for no processor", rule, got)
		}
		if got := cut.Next(math.MaxInt, math.MaxInt); got < 1 {
			t.Errorf("%s: %d of all there are", rule, got)
		}
	}
}

// TestTopologies has the neighbours by place, while the roster grows and shrinks. They
// are neighbours of each other, never of themselves, and all are linked.
func TestTopologies(t *testing.T) {
	for members := range 9 {
		for place := -1; place <= members; place++ {
			for _, name := range local.Topologies {
				got := local.Topology(name).AppendNeighbours(nil, place, members)
				for _, n := range got {
					back := local.Topology(name).AppendNeighbours(nil, n, members)
					if n < 0 || n >= members || n == place || !slices.Contains(back, place) {
						t.Errorf("%s: %d of %d has the neighbours %v", name, place, members, got)
					}
				}
				want := map[string]int{local.Full: members - 1, local.Ring: min(2, members-1), local.Mesh: 4, local.Torus: 4, local.BinaryTree: 3, local.Hypercube: 3}[name]
				if place < 0 || place >= members {
					want = 0
				}
				exact := want == 0 || name == local.Full || name == local.Ring
				slices.Sort(got)
				if got = slices.Compact(got); len(got) > want || exact && len(got) != want {
					t.Errorf("%s: %d of %d has the neighbours %v, want %d", name, place, members, got, want)
				}
				reached := []int{0}
				for i := 0; i < len(reached); i++ {
					for _, n := range local.Topology(name).AppendNeighbours(nil, reached[i], members) {
						if !slices.Contains(reached, n) {
							reached = append(reached, n)
						}
					}
				}
				if members > 0 && len(reached) != members {
					t.Errorf("%s: %d of %d are linked", name, len(reached), members)
				}
			}
		}
	}
	for _, c := range []struct {
		name           string
		place, members int
		want           []int
	}{
		{"", 2, 5, []int{3, 4, 0, 1}},
		{local.Ring, 0, 5, []int{1, 4}},
		{local.Hypercube, 5, 8, []int{4, 7, 1}},
		{local.Hypercube, 4, 6, []int{5, 0}},
		{local.Mesh, 4, 9, []int{5, 7, 3, 1}},
		{local.Mesh, 0, 9, []int{1, 3}},
		{local.Torus, 0, 9, []int{1, 3, 2, 6}},
		{local.Torus, 6, 7, []int{0, 3}},
		{local.BinaryTree, 1, 7, []int{3, 4, 0}},
	} {
		if got := local.Topology(c.name).AppendNeighbours(nil, c.place, c.members); !slices.Equal(got, c.want) {
			t.Errorf("%s: %d of %d has the neighbours %v, want %v", c.name, c.place, c.members, got, c.want)
		}
	}
}

// TestActivity compares Busy and Idle with a sum over every millisecond. Changes are
// rarer than the memory merges, so Busy is exact; TestActivityIsBounded has the others.
func TestActivity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a local.Activity
		var active []bool
		last := rapid.IntRange(1, 300).Draw(t, "last")
		a.Busy(0, time.Duration(last)*time.Millisecond)
		for range rapid.IntRange(1, 40).Draw(t, "spans") {
			running := rapid.IntRange(0, 2).Draw(t, "running")
			a.Set(clocksync.Instant(len(active))*clocksync.Instant(time.Millisecond), running, 2)
			for range rapid.IntRange(3, 30).Draw(t, "milliseconds") {
				active = append(active, running > 0)
			}
		}
		now := clocksync.Instant(len(active)) * clocksync.Instant(time.Millisecond)
		busy, idle := 0, 0
		for _, on := range active[max(0, len(active)-last):] {
			if on {
				busy++
			}
		}
		for i := len(active) - 1; i >= 0 && !active[i]; i-- {
			idle++
		}
		if got := a.Busy(now, time.Duration(last)*time.Millisecond); got != time.Duration(busy)*time.Millisecond {
			t.Fatalf("%v busy of the last %d ms, want %d ms: %v", got, last, busy, active)
		}
		if got := a.Idle(now); slices.Contains(active, true) && got != time.Duration(idle)*time.Millisecond {
			t.Fatalf("%v idle, want %d ms", got, idle)
		}
	})
}

// TestActivityIsBounded has a task begin every 50 us for 10 s. The average over 5 s is
// right to 1/120, though the memory does not have every change.
func TestActivityIsBounded(t *testing.T) {
	var a local.Activity
	a.Busy(0, 5*time.Second)
	rest := time.Duration(0) // active in the last 5 s
	now := clocksync.Instant(0)
	for now < clocksync.Instant(10*time.Second) {
		on := 10 * time.Microsecond * time.Duration(1+now/clocksync.Instant(3*time.Second))
		a.Set(now, 1, 1)
		a.Set(now.Add(on), 0, 1)
		if now >= clocksync.Instant(5*time.Second) {
			rest += on
		}
		now = now.Add(50 * time.Microsecond)
	}
	if got := a.Busy(now, 5*time.Second); (got - rest).Abs() > 5*time.Second/120 {
		t.Errorf("%v busy of 5 s, want %v", got, rest)
	}
}

// TestLookAllocatesNothing holds the figure of BenchmarkLook.
func TestLookAllocatesNothing(t *testing.T) {
	for _, c := range configs {
		strategy, v := newLocal(t, c), crowd(129)
		var demands []local.Demand
		demands, _ = strategy.Look(at(10), v, make([]local.Demand, 0, 1))
		busy := crowd(129)
		busy.Activity.Set(0, 1, 1)
		busy.Waiting, busy.Put = 100, 100
		n := testing.AllocsPerRun(100, func() {
			demands, _ = strategy.Look(at(10), v, demands[:0])
			strategy.Answer(at(10), busy, local.Demand{Member: "m1"})
			v.Activity.Set(at(10), 0, 1)
		})
		if n != 0 {
			t.Errorf("%+v: %v allocations in a look and an answer", c, n)
		}
	}
}

func BenchmarkLook(b *testing.B) {
	for name, c := range map[string]local.Config{"receiver": {}, "aldy": aldy, "chunk": {Kind: local.Chunk}} {
		b.Run(name, func(b *testing.B) {
			strategy, v := newLocal(b, c), crowd(129)
			demands := make([]local.Demand, 0, 1)
			b.ReportAllocs()
			for i := range b.N {
				demands, _ = strategy.Look(at(10)+clocksync.Instant(i), v, demands[:0])
			}
		})
	}
}
