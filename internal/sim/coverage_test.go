package sim

import (
	"flag"
	"fmt"
	"math"
	"math/bits"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

var (
	readings = flag.Int("sim.readings", 1_000_000, "how many readings TestStampsHoldTheTrueTime judges")
	seed     = flag.Uint64("sim.seed", 1, "the seed of the first world")
)

const (
	readingsPerWorld = 4000
	worldLasts       = 20 * time.Minute
	coverageDrift    = 200.0 // ppm
)

// TestStampsHoldTheTrueTime lets hosts that drift by up to 200 ppm, are stepped
// and suspended ask 2f+1 servers, of which f lie together, over asymmetric paths
// with queues, and judges every reading by the true time. The bounds are also
// compared with the best that the same samples allow.
func TestStampsHoldTheTrueTime(t *testing.T) {
	var sum summary
	worlds := (*readings + readingsPerWorld - 1) / readingsPerWorld
	for i := range worlds {
		j := newJudge(t, *seed+uint64(i))
		j.run(readingsPerWorld)
		sum.add(j.summary)
		if t.Failed() {
			t.Fatalf("world %d: repeat with go test ./internal/sim -run %s -sim.seed=%[1]d -sim.readings=1", *seed+uint64(i), t.Name())
		}
	}
	t.Logf("%d worlds: %v", worlds, sum)
	if sum.finite < sum.readings*9/10 {
		t.Errorf("only %d of %d readings had a bound", sum.finite, sum.readings)
	}
	if sum.worst > 1.5 || sum.ratio > 1.05*float64(sum.ratios) {
		t.Errorf("the bounds are wider than 1.5 times the smallest: %v", sum)
	}
}

func TestTheSameSeedIsTheSameWorld(t *testing.T) {
	for i := range uint64(8) {
		a, b := newJudge(t, i), newJudge(t, i)
		a.run(100)
		b.run(100)
		if a.world.Trace() != b.world.Trace() {
			t.Errorf("world %d has the traces %x and %x", i, a.world.Trace(), b.world.Trace())
		}
		other := newJudge(t, i+1000)
		if other.run(100); other.world.Trace() == a.world.Trace() {
			t.Errorf("worlds %d and %d have one trace", i, i+1000)
		}
	}
}

type summary struct {
	readings, finite, ratios, above int
	ratio, worst, most              float64
	steps, suspends, contradicted   uint64
}

func (s *summary) add(o summary) {
	s.readings, s.finite, s.ratios, s.above = s.readings+o.readings, s.finite+o.finite, s.ratios+o.ratios, s.above+o.above
	s.ratio, s.worst, s.most = s.ratio+o.ratio, max(s.worst, o.worst), max(s.most, o.most)
	s.steps, s.suspends, s.contradicted = s.steps+o.steps, s.suspends+o.suspends, s.contradicted+o.contradicted
}

func (s summary) String() string {
	return fmt.Sprintf("%d readings, all true, %.2f %% with a bound; %d steps, %d suspends, %d self-contradictions of servers; "+
		"a bound is %.4f times as wide as the smallest that the last 8 samples of each server allow, or narrower; "+
		"with all samples ever, %.4f times on average of %d, %.3f at most, above 1.5 in %d",
		s.readings, 100*float64(s.finite)/float64(s.readings), s.steps, s.suspends, s.contradicted,
		s.worst, s.ratio/float64(s.ratios), s.ratios, s.most, s.above)
}

// judge owns one world with one host, and knows the true time.
type judge struct {
	t      *testing.T
	world  *World
	host   *Host
	keeper *Keeper
	oracle *oracle
	summary
}

func newJudge(t *testing.T, seed uint64) *judge {
	t.Helper()
	w := New(seed)
	j := &judge{t: t, world: w}
	j.host = w.NewHost("host", HostSpec{
		Mono: clocksync.Instant(w.Between(0, 1000*time.Hour)),
		Wall: w.Between(-time.Hour, time.Hour),
		Rate: j.anyRate(),
	})
	faults := w.Rand.IntN(4)
	every := w.Between(4*time.Second, 64*time.Second)
	k, err := NewKeeper(j.host, clocksync.Config{Timeline: clocksync.UTC, Faults: faults, Drift: coverageDrift}, every)
	if err != nil {
		t.Fatal(err)
	}
	j.keeper = k
	j.oracle = newOracle(2*faults+1, faults)
	k.Taken = j.oracle.add
	k.Changed = func(c clocksync.Change) {
		if c == clocksync.Suspended {
			j.oracle.forget()
		}
	}
	j.askServers(faults)
	j.disturb()
	return j
}

// anyRate is up to 200 ppm either way, and often just that.
func (j *judge) anyRate() int64 {
	const most = int64(coverageDrift * 1000)
	switch r := j.world.Rand; r.IntN(3) {
	case 0:
		return most
	case 1:
		return -most
	default:
		return r.Int64N(2*most+1) - most
	}
}

func (j *judge) askServers(faults int) {
	w := j.world
	liars := w.Rand.Perm(2*faults + 1)[:faults]
	lie := j.anyLie()
	near := w.Between(0, 20*time.Millisecond)
	for i := range 2*faults + 1 {
		s := w.NewTimeServer(w.Between(0, 2*time.Millisecond))
		for _, l := range liars {
			if l == i {
				s = NewLiar(lie)
			}
		}
		j.keeper.Ask(name(i), s, j.anyLink(near), j.anyLink(near))
	}
}

func name(i int) string { return string(rune('a' + i)) }

func (j *judge) anyLink(near time.Duration) *Link {
	w := j.world
	s := LinkSpec{Delay: 20*time.Microsecond + near + w.Exponential(5*time.Millisecond)}
	if w.Rand.IntN(3) > 0 {
		s.Burst = w.Between(5*time.Millisecond, 50*time.Millisecond)
		s.Backlog = s.Burst * time.Duration(w.Rand.IntN(95)) / 100
	}
	if w.Rand.IntN(4) == 0 {
		s.Loss = w.Rand.Float64() / 2
	}
	return w.NewLink(s)
}

// anyLie is what all liars of a world say: that the offset lies just beside the
// truth, mostly; the nearer, the harder to tell.
func (j *judge) anyLie() Lie {
	w := j.world
	beside := w.Between(time.Microsecond, 50*time.Microsecond)
	width := w.Exponential(5 * time.Millisecond)
	above := func(d time.Duration) (time.Duration, time.Duration) { return d, d + width }
	below := func(d time.Duration) (time.Duration, time.Duration) { return -d - width, -d }
	turn := clocksync.Instant(w.Between(0, worldLasts))
	switch w.Rand.IntN(7) {
	case 0:
		return func(Question) (time.Duration, time.Duration) { return above(beside) }
	case 1:
		return func(Question) (time.Duration, time.Duration) { return below(beside) }
	case 2: // Now here, now there.
		return func(Question) (time.Duration, time.Duration) {
			if w.Rand.IntN(2) == 0 {
				return above(beside)
			}
			return below(beside)
		}
	case 3: // Leading away more slowly than the clock may drift.
		return func(q Question) (time.Duration, time.Duration) {
			return above(beside + time.Duration(q.Arrived/10_000))
		}
	case 4: // Far off.
		return func(Question) (time.Duration, time.Duration) { return above(time.Hour) }
	case 5: // Honest for a time.
		return func(q Question) (time.Duration, time.Duration) {
			if q.Arrived < turn {
				return -width, width
			}
			return above(beside)
		}
	default: // At random.
		return func(Question) (time.Duration, time.Duration) {
			return above(w.Between(-50*time.Millisecond, 50*time.Millisecond))
		}
	}
}

// disturb changes the rate, steps the wall clock and suspends the host now and
// then; the host is read as soon as it is awake.
func (j *judge) disturb() {
	w := j.world
	w.After(w.Exponential(time.Minute), func() {
		switch w.Rand.IntN(10) {
		case 0, 1:
			j.host.Step(w.Between(-10*time.Second, 10*time.Second))
		case 2:
			if d := 150*time.Millisecond + w.Exponential(time.Minute); !j.host.Suspended() {
				j.host.Suspend(d)
				w.After(d, j.read)
			}
		default:
			j.host.SetRate(j.anyRate())
		}
		j.disturb()
	})
}

func (j *judge) run(n int) {
	gap := worldLasts * 4 / time.Duration(n)
	for j.readings < n && !j.t.Failed() {
		j.world.Run(j.world.now.Add(j.world.Exponential(gap)))
		for range 4 {
			j.world.Run(j.world.now.Add(j.world.Exponential(100 * time.Microsecond)))
			j.read()
		}
		j.compare()
	}
	r := j.keeper.Report()
	j.steps, j.suspends = r.Steps, r.Suspends
	if r.Contradictions > 0 {
		j.t.Errorf("%d contradictions though no more servers lied than may: %+v", r.Contradictions, r.Taints)
	}
	for _, s := range r.Servers {
		j.contradicted += s.Contradicted
	}
}

// read judges one stamp.
func (j *judge) read() {
	if j.host.Suspended() {
		return
	}
	s := j.keeper.Now()
	j.readings++
	if !s.Within.Contains(j.world.now) {
		j.t.Errorf("at %v the stamp is %v: it misses the true time; the report is %+v", j.world.now, s, j.keeper.Report())
	}
	if s.Within.Bounded() {
		j.finite++
	}
}

// compare sets the bound against the smallest one; being smaller would be wrong
// even where the true time is still inside.
func (j *judge) compare() {
	if j.host.Suspended() || !j.keeper.bound.Offset.Bounded() || j.host.asleep != j.keeper.bound.Seen.Boot.Sub(j.keeper.bound.Seen.Mono) {
		return
	}
	m := j.host.Mono()
	got := j.keeper.bound.OffsetAt(m)
	lo, hi := j.oracle.smallest(m)
	const rounding = 4
	if float64(got.Earliest) > lo+rounding || float64(got.Latest) < hi-rounding {
		j.t.Errorf("at reading %v the bound %v does not hold all of [%f, %f], which the samples allow", m, got, lo, hi)
	}
	ratio := float64(got.Width()) / (hi - lo)
	j.ratios++
	j.ratio += ratio
	j.most = max(j.most, ratio)
	if ratio > 1.5 {
		j.above++
	}
	if ratio > 1.01 {
		lo, hi = j.oracle.smallestOfRecent(m)
		ratio = float64(got.Width()) / (hi - lo)
	}
	j.worst = max(j.worst, ratio)
}

// oracle knows the smallest bound that samples allow: where the offset can be
// if the servers outside one of the sets of so many liars are right in all they
// ever said. Each such set is followed by itself, and a server is never
// forgiven. The estimator remembers 8 samples, so the smallest that these allow
// is known, too.
type oracle struct {
	n, faults int
	recent    [][]clocksync.Sample // of each server
	honest    []uint               // sets of servers
	lo, hi    []float64
	at        []clocksync.Instant
}

func newOracle(n, faults int) *oracle {
	o := &oracle{n: n, faults: faults}
	o.forget()
	return o
}

func (o *oracle) forget() {
	o.honest, o.lo, o.hi, o.at = nil, nil, nil, nil
	o.recent = make([][]clocksync.Sample, o.n)
	for set := range uint(1) << o.n {
		if bits.OnesCount(set) == o.n-o.faults {
			o.honest = append(o.honest, set)
			o.lo, o.hi, o.at = append(o.lo, math.Inf(-1)), append(o.hi, math.Inf(1)), append(o.at, 0)
		}
	}
}

func (o *oracle) add(s clocksync.Sample) {
	server := uint(s.Server[0] - 'a')
	o.recent[server] = append(o.recent[server], s)
	o.recent[server] = o.recent[server][max(0, len(o.recent[server])-8):]
	for i, set := range o.honest {
		if set>>server&1 == 0 || o.lo[i] > o.hi[i] { // An empty set of offsets stays empty.
			continue
		}
		lo, hi := o.grown(i, s.At)
		o.lo[i], o.hi[i], o.at[i] = max(lo, float64(s.Offset.Earliest)), min(hi, float64(s.Offset.Latest)), s.At
	}
}

func (o *oracle) grown(i int, m clocksync.Instant) (lo, hi float64) {
	g := drifted(o.at[i], m)
	return o.lo[i] - g, o.hi[i] + g
}

func (o *oracle) smallest(m clocksync.Instant) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for i := range o.honest {
		if l, h := o.grown(i, m); o.lo[i] <= o.hi[i] {
			lo, hi = min(lo, l), max(hi, h)
		}
	}
	return lo, hi
}

func (o *oracle) smallestOfRecent(m clocksync.Instant) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, set := range o.honest {
		if l, h, ok := o.recentOf(set, m); ok {
			lo, hi = min(lo, l), max(hi, h)
		}
	}
	return lo, hi
}

// recentOf is where the offset can be if all of a set are right. The samples
// allow some course of the offset if each two of them do.
func (o *oracle) recentOf(set uint, m clocksync.Instant) (lo, hi float64, ok bool) {
	var all []clocksync.Sample
	for server, samples := range o.recent {
		if set>>server&1 != 0 {
			all = append(all, samples...)
		}
	}
	lo, hi = math.Inf(-1), math.Inf(1)
	for _, a := range all {
		for _, b := range all {
			if float64(a.Offset.Earliest-b.Offset.Latest) > drifted(a.At, b.At) {
				return 0, 0, false
			}
		}
		lo = max(lo, float64(a.Offset.Earliest)-drifted(a.At, m))
		hi = min(hi, float64(a.Offset.Latest)+drifted(a.At, m))
	}
	return lo, hi, true
}

// drifted is by how much an offset can change between two readings.
func drifted(a, b clocksync.Instant) float64 {
	return math.Abs(float64(a-b)) * coverageDrift / (1e6 - coverageDrift)
}
