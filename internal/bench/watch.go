package bench

import (
	"context"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/clocksync/source"
	"github.com/gopegasus/pegasus/synchronizer"
)

// How often a load is looked at, and how long after an overload.
const (
	lookEvery = 50 * time.Millisecond
	looksLine = int(time.Second / lookEvery) // of which a line of a result is made
	afterTime = 5 * time.Second

	promptLooks = 5 // of which half of the verdicts have to be prompt
	mib         = 1 << 20
)

// The parts of a load.
const (
	phaseLoad     = "load"
	phaseOverload = "overload"
	phaseAfter    = "after"
)

// look is how a synchronizer under load stands at an instant.
type look struct {
	at     clocksync.Instant
	phase  string
	stats  synchronizer.Stats
	memory float64   // MiB
	whole  bool      // the state of every member is known; after an overload alone
	ages   []float64 // of the verdicts since the look before
}

// loadWatch looks at a synchronizer until it is ended.
type loadWatch struct {
	s     *synchronizer.Synchronizer
	timed *timedVerdicts
	stop  context.CancelFunc
	done  chan struct{}

	mu    sync.Mutex
	phase string
	looks []look
}

func newLoadWatch(s *synchronizer.Synchronizer, timed *timedVerdicts) *loadWatch {
	ctx, stop := context.WithCancel(context.Background())
	w := &loadWatch{s: s, timed: timed, stop: stop, done: make(chan struct{})}
	timed.take()
	go func() {
		defer close(w.done)
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				w.look(ctx)
			case <-ctx.Done():
				return
			}
		}
	}()
	return w
}

func (w *loadWatch) end() {
	w.stop()
	<-w.done
}

// look takes one look.
func (w *loadWatch) look(ctx context.Context) {
	l := look{stats: w.s.Stats(), memory: memory(), ages: w.timed.take()}
	w.mu.Lock()
	l.phase = w.phase
	w.mu.Unlock()
	if l.phase == phaseAfter {
		status, err := w.s.Status(ctx)
		l.whole = err == nil && status.State != nil && !status.State.Partial
	}
	l.at = source.Monotonic()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looks = append(w.looks, l)
}

// memory is what this process has of the system, in MiB.
func memory() float64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return float64(s[0].Value.Uint64()-s[1].Value.Uint64()) / mib
}

// phase is what a part of a load came to.
type phase struct {
	told, taken float64 // reports a second
	shed        uint64  // by the members
	ended       clocksync.Instant
	growth      float64 // of memory, at the most, since the first look of the load
	ages        []float64
	// The states given up in it.
	dropped, unread, gaps, collapsed uint64
}

// run has the members tell for a part of the load.
func (w *loadWatch) run(ctx context.Context, f fleet, q request, name string) (*phase, error) {
	w.look(ctx)
	w.mu.Lock()
	w.phase = name
	from := len(w.looks) - 1
	w.mu.Unlock()
	sum, err := f.call(ctx, q)
	if err != nil {
		return nil, err
	}
	w.look(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	looks := w.looks[from:]
	first, last := &looks[0], &looks[len(looks)-1]
	p := &phase{
		told: sum.Rate, shed: sum.Shed, ended: last.at,
		taken:     float64(last.stats.Reports-first.stats.Reports) / last.at.Sub(first.at).Seconds(),
		dropped:   last.stats.Dropped - first.stats.Dropped,
		unread:    last.stats.Shed - first.stats.Shed,
		gaps:      last.stats.Gaps - first.stats.Gaps,
		collapsed: last.stats.Collapsed - first.stats.Collapsed,
	}
	for _, l := range looks[1:] {
		p.ages = append(p.ages, l.ages...)
		p.growth = max(p.growth, l.memory-w.looks[0].memory)
	}
	return p, nil
}

// overload has the members tell too much, and then what they told before, when verdicts were
// that old.
func (w *loadWatch) overload(ctx context.Context, f fleet, q request, o *LoadOptions, before Percentiles) (*OverloadResult, error) {
	q.Rate, q.Time = float64(o.Rate*o.Overload), o.OverloadTime
	p, err := w.run(ctx, f, q, phaseOverload)
	if err != nil {
		return nil, err
	}
	q.Rate, q.Time = float64(o.Rate), min(afterTime, 5*o.OverloadTime)
	after, err := w.run(ctx, f, q, phaseAfter)
	if err != nil {
		return nil, err
	}
	r := &OverloadResult{
		Times: o.Overload, Time: o.OverloadTime.String(), Told: p.told, Taken: p.taken,
		Unread: p.unread, Gaps: p.gaps, Growth: max(p.growth, after.growth),
	}
	r.Right, r.Prompt = w.recovered(p.ended, before)
	return r, nil
}

// recovered is after how many seconds nothing was given up any more and all states were known,
// and after how many verdicts were prompt again; below 0: never.
func (w *loadWatch) recovered(ended clocksync.Instant, before Percentiles) (right, prompt float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	given := func(l *look) uint64 { return l.stats.Shed + l.stats.Gaps + l.stats.Dropped }
	final := &w.looks[len(w.looks)-1]
	right, prompt = -1, -1
	for i := len(w.looks) - 1; i >= 0 && w.looks[i].at > ended; i-- { // Backwards, up to the last that is not.
		l := &w.looks[i]
		if !l.whole || given(l) != given(final) {
			break
		}
		right = l.at.Sub(ended).Seconds()
	}
	for i := len(w.looks) - 1; i >= promptLooks && w.looks[i-promptLooks].at > ended; i-- {
		var ages []float64
		for _, l := range w.looks[i-promptLooks : i] {
			ages = append(ages, l.ages...)
		}
		if len(ages) > 0 && median(ages) > before.P99 {
			break
		}
		prompt = w.looks[i-promptLooks].at.Sub(ended).Seconds()
	}
	return right, prompt
}

// seconds are the looks, one line a second.
func (w *loadWatch) seconds() (lines []LoadSecond) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := looksLine; i < len(w.looks); i += looksLine {
		from, to := &w.looks[i-looksLine], &w.looks[i]
		s := LoadSecond{
			Phase: to.phase, Memory: to.memory,
			Taken:  float64(to.stats.Reports-from.stats.Reports) / to.at.Sub(from.at).Seconds(),
			Unread: to.stats.Shed - from.stats.Shed,
			Gaps:   to.stats.Gaps - from.stats.Gaps,
		}
		var ages []float64
		for _, l := range w.looks[i-looksLine+1 : i+1] {
			ages = append(ages, l.ages...)
		}
		if len(ages) > 0 {
			all := percentiles(ages)
			s.P50, s.P99 = all.P50, all.P99
		}
		lines = append(lines, s)
	}
	return lines
}
