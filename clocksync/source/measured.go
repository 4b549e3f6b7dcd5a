package source

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// MeasuredOptions say what [Measured] may assume.
type MeasuredOptions struct {
	// Timeline is the reference time; samples of another timeline are refused. It may be empty
	// if there is one source: then it is the timeline of the last samples, and an earlier bound
	// of another timeline is void.
	Timeline clocksync.Timeline
	// Faults is how many of the servers may be wrong at a time. 0 stands for the
	// most that their number allows, (n-1)/2; NoFaults for none.
	Faults int
	// Drift, Limit and Stale are as in [clocksync.Config], but that a Drift of 0
	// stands for [DefaultDrift].
	Drift        float64       // parts per million
	Limit, Stale time.Duration // 0: as there
}

// unknown is the timeline of a clock that takes it from its source, before that
// has said it.
const unknown clocksync.Timeline = "unknown"

// NoFaults is for [MeasuredOptions] whose servers are always right.
const NoFaults = -1

func (o MeasuredOptions) faults(servers int) (int, error) {
	most := (servers - 1) / 2
	switch {
	case o.Faults == 0:
		return most, nil
	case o.Faults == NoFaults:
		return 0, nil
	case o.Faults < 0 || o.Faults > most:
		return 0, fmt.Errorf("source: faults %d: of %d servers at most %d may be wrong; configure more", o.Faults, servers, most)
	}
	return o.Faults, nil
}

// MeasuredClock is a clock whose bound is measured. It asks its sources in goroutines of its
// own until it is closed, and stamps by their samples; its stamps never go back as long as the
// timeline stays.
//
// A stamp looks at the wall clock too, and has no latest end while that has moved
// against the readings since the bound was made: the machine may have slept.
type MeasuredClock struct {
	domain  clocksync.Domain
	clocks  readings
	options MeasuredOptions
	config  clocksync.Config
	line    atomic.Pointer[line] // nil for the moment of a change
	wake    chan struct{}        // the clocks changed: look at once
	stop    context.CancelFunc
	running sync.WaitGroup

	mu        sync.Mutex // of what is below
	estimator *clocksync.Estimator
	sources   []*polled
	published chan struct{} // closed when the next bound is there
}

// Measured starts to poll the sources, of which there is at least one. The clock
// is there at once, without a bound; [clocksync.Quality] tells when it has one.
func Measured(o MeasuredOptions, sources ...Source) (*MeasuredClock, error) {
	return measured(o, machine, sources)
}

func measured(o MeasuredOptions, clocks readings, sources []Source) (*MeasuredClock, error) {
	servers := 0
	for _, s := range sources {
		servers += s.Servers()
	}
	if servers == 0 {
		return nil, errors.New("source: nothing to measure with: name a source, or use the system clock")
	}
	if servers > clocksync.MaxServers {
		return nil, fmt.Errorf("source: %d servers: at most %d can be measured with", servers, clocksync.MaxServers)
	}
	if o.Timeline == "" && len(sources) > 1 {
		return nil, errors.New("source: several sources need a timeline: utc, utc-smeared or the root synchronizer")
	}
	faults, err := o.faults(servers)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	c := &MeasuredClock{
		domain:  systemDomain(),
		clocks:  clocks,
		options: o,
		config: clocksync.Config{
			Timeline:    orDefault(o.Timeline, unknown),
			Faults:      faults,
			Drift:       orDefault(o.Drift, DefaultDrift()),
			Granularity: granularity,
			Limit:       o.Limit,
			Stale:       o.Stale,
		},
		wake:      make(chan struct{}, 1),
		stop:      stop,
		published: make(chan struct{}),
	}
	if err := c.beginEstimator(); err != nil {
		stop()
		return nil, err
	}
	c.start(ctx, sources)
	return c, nil
}

func (c *MeasuredClock) start(ctx context.Context, sources []Source) {
	for _, s := range sources {
		c.sources = append(c.sources, newPolled(s))
	}
	for _, p := range c.sources {
		c.running.Go(func() { c.pollSource(ctx, p) })
	}
	c.running.Go(func() { c.watchClocks(ctx) })
}

// beginEstimator makes a new estimator, and the line of its first bound.
func (c *MeasuredClock) beginEstimator() error {
	estimator, err := clocksync.NewEstimator(c.config)
	if err != nil {
		return err
	}
	c.estimator = estimator
	c.estimator.Observe(c.clocks.observeClocks())
	c.line.Store(&line{bound: c.estimator.Bound(c.clocks.mono()), floor: noFloor})
	return nil
}

// Close ends the polling and waits for it. Later stamps use the last bound.
func (c *MeasuredClock) Close() {
	c.stop()
	c.running.Wait()
}

// Wait waits until there is a bound. The error says which servers gave none, if
// the context ends before.
func (c *MeasuredClock) Wait(ctx context.Context) error {
	for {
		c.mu.Lock()
		published, faults := c.published, c.listFaults()
		c.mu.Unlock()
		if status := c.Quality().Status; status == clocksync.Synchronized || status == clocksync.Degraded {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("source: no bound yet (%s): %w", faults, context.Cause(ctx))
		case <-published:
		}
	}
}

// Domain is the one of [System].
func (c *MeasuredClock) Domain() clocksync.Domain { return c.domain }

// Quality says what the bound of the stamps rests on.
func (c *MeasuredClock) Quality() clocksync.Quality {
	for {
		if l := c.line.Load(); l != nil {
			q := l.bound.Quality
			if q.Timeline == unknown {
				q.Timeline = ""
			}
			return q
		}
		runtime.Gosched()
	}
}

// Now reads the clock. It takes no lock and allocates nothing; for the moment in
// which a bound replaces another, it waits.
func (c *MeasuredClock) Now() clocksync.Stamp {
	for {
		l := c.line.Load()
		if l == nil {
			runtime.Gosched()
			continue
		}
		wall, mono := c.clocks.both()
		seen := clocksync.Observation{Mono: mono, Wall: wall, Boot: clocksync.MinInstant}
		changed := seen.Change(l.bound.Seen) != clocksync.Unchanged
		if changed {
			mono, changed = c.lookAgain(l)
		}
		// What was read before the line was taken back is stamped by it: all its
		// readings are before those of the next line.
		if c.line.Load() == l {
			return clocksync.Stamp{Domain: c.domain, Mono: mono, Within: l.intervalAt(mono, changed)}
		}
	}
}

// lookAgain tells a change of the clocks from a process that was held up between
// reading one and the other.
func (c *MeasuredClock) lookAgain(l *line) (mono clocksync.Instant, changed bool) {
	for range tries {
		seen := clocksync.Observation{Mono: c.clocks.mono(), Wall: clocksync.Instant(c.clocks.wall()), Boot: clocksync.MinInstant}
		mono = c.clocks.mono()
		seen.Slack = mono.Sub(seen.Mono)
		if seen.Change(l.bound.Seen) == clocksync.Unchanged {
			return mono, false
		}
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return mono, true
}

// publishBound puts the next bound in the place of the last. Between taking the last
// one back and reading the clock, nobody stamps by either.
func (c *MeasuredClock) publishBound(b clocksync.Bound) {
	next := &line{bound: b}
	last := c.line.Swap(nil)
	next.followLine(last, c.clocks.mono())
	c.line.Store(next)
	close(c.published)
	c.published = make(chan struct{})
}
