package observe

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/clocksync/source"
)

// Options say how to observe. The zero value will do.
type Options struct {
	// Power is that of the node, in work units a second of all cores, where it is
	// known already or better. 0 stands for a calibration.
	Power float64
	// Every is the time between readings, from 250 ms to 1 minute. Default: 1 s.
	Every time.Duration
	// Band is by how much something has to move to be told, at most 1: a share, a
	// usage or a pressure by more than that, a quota by more than such a part of
	// itself. 0 stands for 0.05.
	Band float64
	// Children makes the processes that this one has started, and those that they
	// have, part of the program, so that what they use is not taken for use by others.
	Children bool
}

const (
	defaultEvery = time.Second
	leastEvery   = 250 * time.Millisecond // 1/25 of it is one tick of the kernel
	mostEvery    = time.Minute
	defaultBand  = 0.05
	firstWindow  = 100 * time.Millisecond
	maxPower     = 1e100 // more is not believed by balance either
)

func (o *Options) complete() error {
	if o.Every == 0 {
		o.Every = defaultEvery
	}
	if o.Band == 0 {
		o.Band = defaultBand
	}
	switch {
	case !(o.Power >= 0 && o.Power <= maxPower): // Also NaN.
		return fmt.Errorf("observe: Options.Power is %v: it is in work units a second, above 0, or 0 for a calibration", o.Power)
	case o.Every < leastEvery || o.Every > mostEvery:
		return fmt.Errorf("observe: Options.Every is %v: it is from %v to %v", o.Every, leastEvery, mostEvery)
	case !(o.Band > 0 && o.Band <= 1):
		return fmt.Errorf("observe: Options.Band is %v: it is above 0, at most 1, or 0 for %v", o.Band, defaultBand)
	}
	return nil
}

// Observer observes the node that this process runs on.
type Observer struct {
	options Options
	cores   []int
	cancel  context.CancelFunc
	running sync.WaitGroup
	end     func() error

	mu       sync.Mutex
	told     Reading
	why      map[string]string
	cost     Cost
	begin    clocksync.Instant
	watchers map[*watcher]struct{}
}

type watcher struct {
	mu   sync.Mutex // held during a call
	fn   func(Reading)
	gone bool
}

// Cost is what observation has cost so far.
type Cost struct {
	CPU     time.Duration // CPU time, without that of the calibration
	Bursts  int           // of the probe threads
	Elapsed time.Duration // since Start returned
}

// Start calibrates the node, unless Options.Power tells its power, takes a first
// reading, and goes on to observe until Close. That takes some 100 ms of all cores, or
// a few times longer beside others; ctx bounds it.
//
// Power is measured in units of work a second of CPU time. A unit is 200 000 steps of
// a random number generator with branches nobody can foresee, 330 000 of a chaotic map
// with products and quotients of 64-bit floats, and 200 000 dependent loads from a
// random walk through 256 KiB. It is the same work, with the same result, on every
// machine; a core counts with the median of 31 units while all cores work, and power
// is the sum over the cores that this process may use.
func Start(ctx context.Context, o Options) (*Observer, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	cores, err := usable()
	if err != nil {
		return nil, fmt.Errorf("observe: the cores of this process cannot be told: %w", err)
	}
	return start(ctx, o, cores, "/")
}

// start is Start for files below a root.
func start(ctx context.Context, o Options, cores []int, root string) (*Observer, error) {
	ob := &Observer{options: o, cores: cores, watchers: map[*watcher]struct{}{}}
	live, cancel := context.WithCancel(context.Background())
	ob.cancel = cancel
	l := &looker{ob: ob, files: newFiles(root, cores, o.Children)}
	ob.end = sync.OnceValue(func() error {
		ob.cancel()
		ob.running.Wait()
		return l.files.close()
	})
	ready := make(chan error, 1)
	ob.running.Go(func() {
		runtime.LockOSThread() // So that its CPU time can be told.
		defer runtime.UnlockOSThread()
		err := l.begin(ctx)
		ready <- err
		if err == nil {
			l.run(live)
		}
	})
	if err := <-ready; err != nil {
		return nil, errors.Join(fmt.Errorf("observe: %w", err), ob.Close())
	}
	return ob, nil
}

// Close ends observation. Watchers are not called any more when it has returned; it
// must not be called by one. Closing again does nothing.
func (o *Observer) Close() error { return o.end() }

// Reading is the newest reading that was told.
func (o *Observer) Reading() Reading {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.told
}

// Missing is why fields cannot be told, by their names: the kernel lacks a file, or
// has no limit, or what it says makes no sense.
func (o *Observer) Missing() map[string]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.why)
}

// Cost is what observation has cost until the newest sample. It is zero where the
// system does not tell the CPU time of a thread; there, nothing is done after Start.
func (o *Observer) Cost() Cost {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.cost
}

// Watch calls fn with the newest reading, and with each one that is told until stop is
// called: then no call is under way and none will come. Calls come one after the other,
// and hold up the next reading. fn must call neither stop nor Close.
func (o *Observer) Watch(fn func(Reading)) (stop func()) {
	w := &watcher{fn: fn}
	w.mu.Lock()
	o.mu.Lock()
	o.watchers[w] = struct{}{}
	told := o.told
	o.mu.Unlock()
	fn(told)
	w.mu.Unlock()
	return func() {
		o.mu.Lock()
		delete(o.watchers, w)
		o.mu.Unlock()
		w.mu.Lock()
		w.gone = true
		w.mu.Unlock()
	}
}

func (w *watcher) tell(r Reading) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.gone {
		w.fn(r)
	}
}

// looker is what the goroutine of an observer works with.
type looker struct {
	ob     *Observer
	files  *files
	gauge  *gauge
	budget budget
	sample sample
	at     int           // the core that the next burst begins with
	probes time.Duration // what they have cost
	zero   time.Duration // the CPU time of the thread when Start returned
	bursts int
	probe  error // why there are none
}

// begin calibrates between two samples, which make the first reading.
func (l *looker) begin(ctx context.Context) error {
	l.gauge = newGauge(l.ob.options.Power, len(l.ob.cores))
	l.look()
	if l.gauge.power == 0 {
		var err error
		if l.gauge.power, err = calibrate(ctx, l.ob.cores); err != nil {
			return fmt.Errorf("the power of this node cannot be measured: %w", err)
		}
	} else {
		select {
		case <-time.After(firstWindow):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	l.zero, _ = threadTime()
	l.ob.begin = source.Monotonic()
	l.look()
	l.ob.told = l.gauge.reading()
	l.account()
	return nil
}

// run takes samples until the context ends.
func (l *looker) run(ctx context.Context) {
	if _, err := processTime(); err != nil {
		return
	}
	before, _ := threadTime()
	timer := time.NewTimer(l.ob.options.Every)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		l.look()
		l.tell()
		now, _ := threadTime()
		timer.Reset(pause(l.ob.options.Every, now-before))
		before = now
	}
}

// look takes a sample, and has the probe threads run where that may tell more.
func (l *looker) look() {
	s := &l.sample
	own, err := processTime()
	if err != nil {
		*s = sample{at: source.Monotonic(), quota: math.Inf(1), pressure: math.NaN(), stalled: math.NaN()}
		for _, field := range Fields() {
			if field != FieldPower && field != FieldQuota {
				l.files.missing[field] = err
			}
		}
	} else {
		s.at = source.Monotonic()
		l.files.sample(s, own)
	}
	second := l.gauge.begun
	contended := l.gauge.take(s)
	if second && len(s.cores) > 0 && math.IsNaN(l.gauge.free) {
		l.files.missing[FieldShare] = errors.New("the counts of /proc/stat stand still, or have been reset")
	}
	if contended && l.probe == nil && l.budget.due(s.at) {
		l.burst()
	}
}

// maxProbes is how many threads run in a burst, each on a core; larger nodes are gone
// through in turns.
const maxProbes = 4

// burst runs a thread on each of some cores at once, as a program with one for each
// would.
func (l *looker) burst() {
	n := min(len(l.ob.cores), maxProbes)
	var ran, waited, cost time.Duration
	var mu sync.Mutex
	var probing sync.WaitGroup
	for i := range n {
		core := l.ob.cores[(l.at+i)%len(l.ob.cores)]
		probing.Go(func() {
			runtime.LockOSThread() // The thread is pinned, so it ends with the goroutine.
			r, w, c, err := probe(core)
			mu.Lock()
			defer mu.Unlock()
			ran, waited, cost = ran+r, waited+w, cost+c
			if err != nil {
				l.probe, l.gauge.blind = err, true
			}
		})
	}
	probing.Wait()
	l.at = (l.at + n) % len(l.ob.cores)
	l.gauge.burst(ran, waited)
	l.budget.spend(cost)
	l.probes += cost
	l.bursts++
}

// tell tells the reading if it differs from the one before.
func (l *looker) tell() {
	l.account()
	o, r := l.ob, l.gauge.reading()
	o.mu.Lock()
	if !r.differs(o.told, o.options.Band) {
		o.mu.Unlock()
		return
	}
	o.told = r
	watchers := slices.Collect(maps.Keys(o.watchers))
	o.mu.Unlock()
	for _, w := range watchers {
		w.tell(r)
	}
}

// account shows what has been spent, and what is missing.
func (l *looker) account() {
	spent, _ := threadTime()
	o := l.ob
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cost = Cost{CPU: spent - l.zero + l.probes, Bursts: l.bursts, Elapsed: l.sample.at.Sub(o.begin)}
	o.why = l.files.why()
	if _, known := o.why[FieldShare]; !known && l.probe != nil && math.IsNaN(l.gauge.reading().Share) {
		o.why[FieldShare] = "no probe thread can run: " + l.probe.Error()
	}
}
