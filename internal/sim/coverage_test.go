package sim

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/testcount"
)

var seed = flag.Uint64("sim.seed", 1, "the seed of the first world")

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
	worlds := (testcount.Of(t, "READINGS", 1_000_000) + readingsPerWorld - 1) / readingsPerWorld
	for i := range worlds {
		j := newJudge(t, *seed+uint64(i))
		j.run(readingsPerWorld)
		sum.add(j.summary)
		if t.Failed() {
			t.Fatalf("world %d: repeat with PEGASUS_READINGS=1 go test ./internal/sim -run %s -sim.seed=%d", i, t.Name(), *seed+uint64(i))
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
		"no bound is wider than %.4f times the smallest that the last 8 samples of each server allow; "+
		"of the smallest that all samples ever allow, %.4f times on average of %d, %.3f at most, above 1.5 in %d",
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
	r := j.keeper.Diagnostics()
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
		j.t.Errorf("at %v the stamp is %v: it misses the true time; the report is %+v", j.world.now, s, j.keeper.Diagnostics())
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
