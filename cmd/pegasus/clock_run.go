package main

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/clocksync/source"
	"github.com/gopegasus/pegasus/internal/show"
)

// How often --watch prints the bound, and how often the wait for a bound looks
// for its end.
const (
	watchEvery = time.Second
	lookEvery  = 10 * time.Millisecond
)

// clockRun is one run of the subcommand.
type clockRun struct {
	flags   *clockFlags
	sources clockSources
	stdout  io.Writer
	every   time.Duration // between two views or trials
	tried   []show.Trial
}

// run prints the bound once, or each second until the context ends.
func (r *clockRun) run(ctx context.Context) error {
	waiting, cancel := context.WithCancel(ctx)
	if !r.flags.watch {
		waiting, cancel = context.WithTimeout(ctx, r.flags.timeout)
	}
	defer cancel()
	chosen, err := r.choose(waiting)
	if err != nil {
		return err
	}
	if chosen == nil { // The context has ended.
		return r.none()
	}
	clock, err := source.Measured(r.flags.options(), chosen...) //nolint:contextcheck // It polls until it is closed.
	if err != nil {
		return unprefixed(err)
	}
	defer clock.Close()
	if r.flags.watch { // The first answers are looked for before it begins.
		waiting, cancel = context.WithTimeout(ctx, r.every)
		defer cancel()
	}
	for !r.settled(clock) && pause(waiting, lookEvery) {
	}
	for !r.flags.watch || ctx.Err() == nil {
		report := clock.Diagnostics()
		err := r.show(show.ClockOf(report, r.flags.drift, r.tried))
		switch {
		case err != nil:
			return err
		case r.flags.watch:
			pause(ctx, r.every)
		case !r.claimed(&report):
			return errTold
		default:
			return nil
		}
	}
	return nil
}

// choose returns the sources to measure with: those that are named, or the first
// of this machine that has a sample, which is waited for.
func (r *clockRun) choose(ctx context.Context) ([]source.Source, error) {
	if len(r.sources.named) > 0 {
		return r.sources.named, nil
	}
	for {
		r.tried = nil
		for _, s := range r.sources.local {
			samples, err := s.Sample(ctx)
			if len(samples) > 0 {
				return []source.Source{s}, nil
			}
			r.tried = append(r.tried, trialOf(s, err))
		}
		if r.flags.watch && ctx.Err() == nil {
			if err := r.show(r.unknown()); err != nil {
				return nil, err
			}
		}
		if !pause(ctx, r.every) {
			return nil, nil
		}
	}
}

func trialOf(s source.Source, err error) show.Trial {
	t := show.Trial{Name: s.Name(), Fault: "no sample"}
	if refusal, ok := errors.AsType[*source.Refusal](err); ok {
		t.Name, t.Fault = show.ServerName(refusal.Source, refusal.Server), refusal.Err.Error()
	}
	return t
}

// pause is false if the context ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// settled reports whether every source was asked and there is a bound to claim,
// or a contradiction that no waiting makes good.
func (r *clockRun) settled(clock *source.MeasuredClock) bool {
	report := clock.Diagnostics()
	if report.Contradictions > 0 {
		return true
	}
	for _, s := range report.Sources {
		if s.Polls == 0 {
			return false
		}
	}
	return r.claimed(&report)
}

// claimed reports whether the bound is one to act on.
func (r *clockRun) claimed(report *source.Diagnostics) bool {
	s := report.Bound.Quality.Status
	return report.Contradictions == 0 && (s == clocksync.Synchronized || s == clocksync.Degraded && r.flags.limit == 0)
}

// none ends a run whose sources have never had a bound.
func (r *clockRun) none() error {
	if r.flags.watch {
		return nil
	}
	if err := r.show(r.unknown()); err != nil {
		return err
	}
	return errTold
}

// unknown is what there is to tell without any sample.
func (r *clockRun) unknown() show.Clock {
	now := clocksync.Instant(time.Now().UnixNano())
	var report source.Diagnostics
	report.Offset = clocksync.Unbounded
	report.Bound.Seen.Wall = now
	report.Bound.Tainted = clocksync.MaxInstant
	report.Bound.Quality = clocksync.Quality{Timeline: r.flags.timeline(), Expires: clocksync.MaxInstant}
	v := show.ClockOf(report, r.flags.drift, r.tried)
	v.Note("nothing on this machine has a bound: run chronyd, or ask servers with --ntp HOST,HOST,HOST")
	return v
}

// show clears a terminal before each view of --watch, and parts them elsewhere.
func (r *clockRun) show(v show.Clock) error {
	text := v.Text()
	switch {
	case r.flags.asJSON:
		text = v.JSON()
	case r.flags.watch && isTerminal(r.stdout):
		text = "\x1b[H\x1b[2J" + text
	case r.flags.watch:
		text += "\n"
	}
	_, err := io.WriteString(r.stdout, text)
	return fail(err)
}

func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
