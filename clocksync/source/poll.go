package source

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// pulse is how often the clocks are looked at when nothing else makes it so.
const pulse = time.Second

// polled is a source and what became of asking it.
type polled struct {
	source Source
	again  chan struct{} // the clocks changed: ask at once
	report SourceDiagnostics
}

func newPolled(s Source) *polled {
	return &polled{
		source: s,
		again:  make(chan struct{}, 1),
		report: SourceDiagnostics{Name: s.Name(), Servers: s.Servers(), Refused: map[Reason]uint64{}, Faults: map[string]string{}},
	}
}

// pollSource asks a source until the context ends.
func (c *MeasuredClock) pollSource(ctx context.Context, p *polled) {
	for {
		samples, err := p.source.Sample(ctx)
		if ctx.Err() != nil {
			return
		}
		c.take(p, samples, err)
		if !pause(ctx, shortest, nil) || !pause(ctx, p.source.Every()-shortest, p.again) {
			return
		}
	}
}

// watchClocks looks at the clocks until the context ends.
func (c *MeasuredClock) watchClocks(ctx context.Context) {
	for pause(ctx, shortest, nil) && pause(ctx, pulse-shortest, c.wake) {
		c.take(nil, nil, nil)
	}
}

// pause waits for a time or until it is woken. It is false if the context ended.
func pause(ctx context.Context, d time.Duration, woken <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	case <-woken:
	}
	return true
}

// take hands the estimator what a source said, if any, and stamps by what it
// concludes.
func (c *MeasuredClock) take(p *polled, samples []clocksync.Sample, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.follow(samples)
	if c.estimator.Observe(c.clocks.observeClocks()) != clocksync.Unchanged {
		c.askAll()
	}
	if p != nil {
		p.report.count(samples, err)
	}
	for _, s := range samples {
		c.estimator.Add(s)
	}
	c.publishBound(c.estimator.Bound(c.clocks.mono()))
}

// follow starts over where the source has another timeline, if none is given.
func (c *MeasuredClock) follow(samples []clocksync.Sample) {
	for _, s := range samples {
		if c.options.Timeline != "" || s.Timeline == c.config.Timeline || s.Timeline == "" {
			continue
		}
		c.config.Timeline = s.Timeline
		if err := c.beginEstimator(); err != nil {
			panic("source: a config that was good is no longer: " + err.Error())
		}
	}
}

// askAll wakes the pollers, but for those that are asking already.
func (c *MeasuredClock) askAll() {
	for _, p := range c.sources {
		select {
		case p.again <- struct{}{}:
		default:
		}
	}
}

// Diagnostics is what a [MeasuredClock] knows, for people and for instruments.
type Diagnostics struct {
	clocksync.Diagnostics

	Sources []SourceDiagnostics // in the order in which they were given
}

// SourceDiagnostics tells what became of asking a source.
type SourceDiagnostics struct {
	Name    string            // as "ntp" or "chrony"
	Servers int               // configured
	Polls   uint64            // since the start
	Samples uint64            // given to the estimator, which may refuse some
	Refused map[Reason]uint64 // by the source itself
	// Faults returns by server the fault of the last failed poll, until a poll succeeds. A
	// source with a single unnamed server has it under "".
	Faults map[string]string
}

func (r *SourceDiagnostics) count(samples []clocksync.Sample, err error) {
	r.Polls++
	r.Samples += uint64(len(samples))
	for _, s := range samples {
		delete(r.Faults, s.Server)
		delete(r.Faults, "")
	}
	for _, f := range refusals(r.Name, err) {
		r.Refused[f.Reason]++
		if _, known := r.Faults[f.Server]; known || len(r.Faults) < clocksync.MaxServers {
			r.Faults[f.Server] = f.Err.Error()
		}
	}
}

// refusals takes a joined error apart.
func refusals(source string, err error) []*Refusal {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []*Refusal{refusalOf(source, "", err)}
	}
	var all []*Refusal
	for _, e := range joined.Unwrap() {
		all = append(all, refusals(source, e)...)
	}
	return all
}

// listFaults lists what was wrong with the servers that gave no sample last.
func (c *MeasuredClock) listFaults() string {
	var all []string
	for _, p := range c.sources {
		for _, server := range slices.Sorted(maps.Keys(p.report.Faults)) {
			name := strings.TrimSpace(p.report.Name + " " + server)
			all = append(all, name+": "+p.report.Faults[server])
		}
	}
	if len(all) == 0 {
		return "too few samples so far"
	}
	return strings.Join(all, "; ")
}

// Diagnostics returns the present knowledge. It is a copy.
func (c *MeasuredClock) Diagnostics() Diagnostics {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := Diagnostics{Diagnostics: c.estimator.Diagnostics(c.clocks.mono())}
	for _, p := range c.sources {
		s := p.report
		s.Refused, s.Faults = maps.Clone(s.Refused), maps.Clone(s.Faults)
		r.Sources = append(r.Sources, s)
	}
	return r
}
