package peers

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gopegasus/pegasus/clocksync"
)

// ms is an instant in milliseconds.
func ms(x float64) clocksync.Instant { return clocksync.Instant(x * 1e6) }

// changes are those of a worker at these milliseconds, beginning with its first state, each in a bracket of 0.1 ms.
func changes(at ...float64) (c []Change) {
	for _, x := range at {
		c = append(c, Change{ms(x), ms(x + 0.1)})
	}
	return c
}

// told are receipts of firing 1.
func told(at ...float64) (t []Telling) {
	for _, x := range at {
		t = append(t, Telling{Number: 1, At: ms(x)})
	}
	return t
}

// TestJudge judges two workers. Both are idle from 20 to 30 ms, and from 60 to 90 ms.
func TestJudge(t *testing.T) {
	workers := [][]Change{changes(0, 10, 30, 60, 90), changes(0, 20, 40, 50, 100)}
	fire := func(at float64, states ...int) Firing { return Firing{Number: 1, At: ms(at), States: states} }
	base := Judgement{Changes: 10, Intervals: 2, Long: 2, Longer: 1}
	for name, c := range map[string]struct {
		changes [][]Change
		firings []Firing
		told    [][]Telling
		want    func(j *Judgement)
	}{
		"nothing is fired": {want: func(j *Judgement) { j.Missed, j.MissedLonger = 2, 1 }},
		"in time": {
			firings: []Firing{fire(21, 1, 1)}, told: [][]Telling{told(22), told(24)},
			want: func(j *Judgement) { j.Firings, j.Missed, j.MissedLonger, j.P50, j.P99 = 1, 1, 1, 2, 4 },
		},
		"to one worker only, after the end": {
			firings: []Firing{fire(65, 3, 3)}, told: [][]Telling{nil, told(95)},
			want: func(j *Judgement) { j.Firings, j.Missed, j.Late, j.P50, j.P99 = 1, 1, 1, 35, 35 },
		},
		"with the word that it is over": {
			firings: []Firing{fire(31, 1, 1)}, told: [][]Telling{told(32), {{1, ms(34), true}}},
			want: func(j *Judgement) {
				j.Firings, j.Missed, j.MissedLonger, j.Late, j.Over, j.P50, j.P99 = 1, 1, 1, 1, 1, 12, 14
			},
		},
		"received by nobody": {
			firings: []Firing{fire(21, 1, 1)},
			want:    func(j *Judgement) { j.Firings, j.Missed, j.MissedLonger = 1, 2, 1 },
		},
		"one had become busy before the other was idle": {
			firings: []Firing{fire(55, 1, 3)}, told: [][]Telling{told(56), told(56)},
			want: func(j *Judgement) { j.Firings, j.False, j.Missed, j.MissedLonger = 1, 1, 2, 1 },
		},
		"received before the instant that is claimed, at which not all were idle": {
			firings: []Firing{fire(61, 1, 3)}, told: [][]Telling{told(59), nil},
			want: func(j *Judgement) { j.Firings, j.False, j.Missed, j.MissedLonger = 1, 1, 2, 1 },
		},
		"so late that the next interval has begun": {
			firings: []Firing{fire(65, 1, 1)}, told: [][]Telling{told(66), told(66)},
			want: func(j *Judgement) { j.Firings, j.Missed, j.MissedLonger, j.Late, j.P50, j.P99 = 1, 1, 1, 1, 46, 46 },
		},
		"a second firing does not count for the latency": {
			firings: []Firing{fire(21, 1, 1), {2, ms(25), []int{1, 1}}}, told: [][]Telling{told(22), {{2, ms(29), false}}},
			want: func(j *Judgement) { j.Firings, j.Missed, j.MissedLonger, j.P50, j.P99 = 2, 1, 1, 2, 2 },
		},
		"a state that the worker never had": {
			firings: []Firing{fire(21, 1, 5)}, told: [][]Telling{told(22), nil},
			want: func(j *Judgement) { j.Firings, j.False, j.Missed, j.MissedLonger = 1, 1, 2, 1 },
		},
		"an unknown state": {
			firings: []Firing{fire(21, 1, -1)}, told: [][]Telling{told(22), nil},
			want: func(j *Judgement) { j.Firings, j.False, j.Missed, j.MissedLonger = 1, 1, 2, 1 },
		},
		"a worker is left out": {
			firings: []Firing{fire(21, 1)}, told: [][]Telling{told(22), nil},
			want: func(j *Judgement) { j.Firings, j.False, j.Missed, j.MissedLonger = 1, 1, 2, 1 },
		},
		"the brackets leave a doubt": {
			changes: [][]Change{changes(0, 10, 20), changes(0, 20.05, 40)}, firings: []Firing{fire(21, 1, 1)}, told: [][]Telling{told(22), nil},
			want: func(j *Judgement) {
				*j = Judgement{Changes: 6, Intervals: 1, Firings: 1, Late: 1, P50: 1.95, P99: 1.95}
			},
		},
		"the brackets touch": {
			changes: [][]Change{changes(0, 10, 20), changes(0, 20.1, 40)}, firings: []Firing{fire(21, 1, 1)}, told: [][]Telling{told(22), nil},
			want: func(j *Judgement) { *j = Judgement{Changes: 6, Firings: 1, False: 1} },
		},
		"an idle state without an end": {
			changes: [][]Change{changes(0, 10), changes(0, 20)},
			want:    func(j *Judgement) { *j = Judgement{Changes: 4} },
		},
		"an interval of 5 ms at most": {
			changes: [][]Change{changes(0, 10, 30), changes(0, 24.9, 40)},
			want:    func(j *Judgement) { *j = Judgement{Changes: 6, Intervals: 1} },
		},
		"no worker": {changes: [][]Change{}, want: func(j *Judgement) { *j = Judgement{} }},
	} {
		if c.changes == nil {
			c.changes = workers
		}
		want := base
		c.want(&want)
		got := Judge(&Trace{Changes: c.changes, Told: c.told, Firings: c.firings})
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// imagined is a run of imagined workers: what they did, in order, and when a controller learns of each change.
type imagined struct {
	trace  Trace
	events []event
}

type event struct {
	worker, state int
	made, learned clocksync.Instant
}

// imagine has workers alternate for ten seconds. A controller learns of the changes of the first three after up to a
// delay, in the order of each worker, and at once of those of the others.
func imagine(seed uint64, delay time.Duration) (r imagined) {
	rng := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // A test.
	for worker := range workers {
		var list []Change
		var at, newest clocksync.Instant
		for state := 0; at < ms(10_000); state++ {
			list = append(list, Change{at, at.Add(time.Microsecond)})
			learned := at.Add(time.Microsecond)
			if worker < slowWorkers && delay > 0 {
				learned = learned.Add(time.Duration(rng.Int64N(int64(delay))))
			}
			newest = max(newest, learned)
			r.events = append(r.events, event{worker, state, at, newest})
			mean := meanBusy
			if state%2 == 1 {
				mean = meanIdle
			}
			at = at.Add(2*time.Microsecond + time.Duration(rng.ExpFloat64()*float64(mean)))
		}
		if len(list)%2 == 0 {
			list = append(list, Change{at, at.Add(time.Microsecond)})
		}
		r.trace.Changes = append(r.trace.Changes, list)
	}
	r.trace.Told = make([][]Telling, workers)
	slices.SortStableFunc(r.events, func(a, b event) int { return int(a.learned - b.learned) })
	return r
}

func (r *imagined) fire(at clocksync.Instant, states []int) {
	number := uint64(len(r.trace.Firings) + 1)
	r.trace.Firings = append(r.trace.Firings, Firing{number, at, slices.Clone(states)})
	for worker := range r.trace.Told {
		r.trace.Told[worker] = append(r.trace.Told[worker], Telling{Number: number, At: at.Add(time.Millisecond)})
	}
}

// useView is a controller with a latest-value view. With a coin it fires on one of 50 changes instead.
func (r *imagined) useView(coin *rand.Rand) Judgement {
	states, idle := make([]int, workers), 0
	for _, e := range r.events {
		was := idle
		if idle += e.state%2 - states[e.worker]%2; e.state == 0 {
			continue
		}
		states[e.worker] = e.state
		if coin == nil && idle == workers && was != workers || coin != nil && coin.IntN(50) == 0 {
			r.fire(e.learned, states)
		}
	}
	return Judge(&r.trace)
}

// TestJudgeSeesFalseFirings is the negative control: the judge finds no fault with a controller that learns of each
// change at once, and finds the false firings of a view with a delay and of a coin.
func TestJudgeSeesFalseFirings(t *testing.T) {
	for seed := range uint64(20) {
		r := imagine(seed, 0)
		if j := r.useView(nil); j.False > 0 || j.Missed > 0 || j.Long < 30 || j.Firings < 80 {
			t.Errorf("seed %d, a view without a delay: %+v", seed, j)
		}
		r = imagine(seed, longest)
		if j := r.useView(nil); j.False < j.Firings/10 || j.Missed == 0 {
			t.Errorf("seed %d, a view with a delay: %+v", seed, j)
		}
		r = imagine(seed, 0)
		coin := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // A test.
		if j := r.useView(coin); j.False < j.Firings/2 || j.Firings < 10 {
			t.Errorf("seed %d, a coin: %+v", seed, j)
		}
	}
}
