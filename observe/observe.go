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
	// Power is the power of the node, in work units a second of all cores, where it is known
	// already or better. 0 stands for a calibration.
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
	running sync.WaitGroup
	end     func() error

	mu       sync.Mutex
	told     Reading
	why      map[string]string
	cost     Cost
	watchers map[*watcher]struct{}

	// Of the goroutine that looks:
	files  *files
	gauge  *gauge
	budget budget
	sample sample
	at     int               // the core that the next burst begins with
	probes time.Duration     // what they have cost
	zero   time.Duration     // the CPU time of the thread when Start returned
	begun  clocksync.Instant // when it returned
	bursts int
	probe  error // why there are none
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

// Start calibrates the node, unless Options.Power gives its power, takes a first reading, and
// then observes until Close. That takes some 100 ms of all cores, or a few times longer beside
// others; ctx bounds it.
//
// Power is measured in units of work a second of CPU time. A unit is 200 000 steps of a random
// number generator with unpredictable branches, 330 000 of a chaotic map with products and
// quotients of 64-bit floats, and 200 000 dependent loads from a random walk through 256 KiB.
// It is the same work, with the same result, on every machine; a core counts with the median of
// 31 units while all cores work, and power is the sum over the cores that this process may use.
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
	live, cancel := context.WithCancel(context.Background())
	ob := &Observer{
		options: o, cores: cores, watchers: map[*watcher]struct{}{},
		files: newFiles(root, cores, o.Children), gauge: newGauge(o.Power, len(cores)),
	}
	ob.end = sync.OnceValue(func() error {
		cancel()
		ob.running.Wait()
		return ob.files.close()
	})
	ready := make(chan error, 1)
	ob.running.Go(func() {
		runtime.LockOSThread() // So that its CPU time can be told.
		defer runtime.UnlockOSThread()
		err := ob.begin(ctx)
		ready <- err
		if err == nil {
			ob.run(live)
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

// Reading is the newest published reading.
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

// Watch calls fn with the newest reading, and with each later reading until stop is called:
// then no call is under way and none will come. Calls come one after the other, and hold up the
// next reading. fn must call neither stop nor Close.
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

// begin calibrates between two samples, which make the first reading.
func (o *Observer) begin(ctx context.Context) error {
	o.look()
	if o.gauge.power == 0 {
		var err error
		if o.gauge.power, err = calibrate(ctx, o.cores); err != nil {
			return fmt.Errorf("the power of this node cannot be measured: %w", err)
		}
	} else {
		select {
		case <-time.After(firstWindow):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	o.zero, _ = threadTime()
	o.begun = source.Monotonic()
	o.look()
	o.told = o.gauge.reading()
	o.account()
	return nil
}

// run takes samples until the context ends.
func (o *Observer) run(ctx context.Context) {
	if _, err := processTime(); err != nil {
		return
	}
	before, _ := threadTime()
	timer := time.NewTimer(o.options.Every)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		o.look()
		o.tell()
		now, _ := threadTime()
		timer.Reset(pause(o.options.Every, now-before))
		before = now
	}
}

// look takes a sample, and has the probe threads run where that may tell more.
func (o *Observer) look() {
	s := &o.sample
	own, err := processTime()
	if err != nil {
		*s = sample{at: source.Monotonic(), quota: math.Inf(1), pressure: math.NaN(), stalled: math.NaN()}
		for _, field := range Fields() {
			if field != FieldPower && field != FieldQuota {
				o.files.note(field, err)
			}
		}
	} else {
		s.at = source.Monotonic()
		o.files.sample(s, own)
	}
	second := o.gauge.begun
	contended := o.gauge.take(s)
	if second && len(s.cores) > 0 && math.IsNaN(o.gauge.free) {
		o.files.missing[FieldShare] = "the counts of /proc/stat stand still, or have been reset"
	}
	if contended && o.probe == nil && o.budget.due(s.at) {
		o.burst()
	}
}

// maxProbes is how many threads run in a burst, each on a core; larger nodes are gone
// through in turns.
const maxProbes = 4

// burst runs a thread on each of some cores at once, as a program with one for each
// would.
func (o *Observer) burst() {
	n := min(len(o.cores), maxProbes)
	var ran, waited, cost time.Duration
	var mu sync.Mutex
	var probing sync.WaitGroup
	for i := range n {
		core := o.cores[(o.at+i)%len(o.cores)]
		probing.Go(func() {
			runtime.LockOSThread() // The thread is pinned, so it ends with the goroutine.
			r, w, c, err := probe(core)
			mu.Lock()
			defer mu.Unlock()
			ran, waited, cost = ran+r, waited+w, cost+c
			if err != nil {
				o.probe, o.gauge.blind = err, true
			}
		})
	}
	probing.Wait()
	o.at = (o.at + n) % len(o.cores)
	o.gauge.burst(ran, waited)
	o.budget.spend(cost)
	o.probes += cost
	o.bursts++
}

// tell tells the reading if it differs from the one before.
func (o *Observer) tell() {
	o.account()
	r := o.gauge.reading()
	o.mu.Lock()
	if !differs(r, o.told, o.options.Band) {
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
func (o *Observer) account() {
	spent, _ := threadTime()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cost = Cost{CPU: spent - o.zero + o.probes, Bursts: o.bursts, Elapsed: o.sample.at.Sub(o.begun)}
	o.why = maps.Clone(o.files.missing)
	if _, known := o.why[FieldShare]; !known && o.probe != nil && math.IsNaN(o.gauge.reading().Share) {
		o.why[FieldShare] = "no probe thread can run: " + o.probe.Error()
	}
}
