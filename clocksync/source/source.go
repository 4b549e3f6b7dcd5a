package source

import (
	"context"
	"fmt"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// Source asks servers about the clock of this domain. [Measured] calls Sample
// from one goroutine at a time.
type Source interface {
	// Name is the kind of source, as in [clocksync.Sample].
	Name() string
	// Servers is how many servers are configured, whether they answer or not.
	Servers() int
	// Every is the time from one poll to the next.
	Every() time.Duration
	// Sample asks once. There may be samples and an error, since some servers may
	// answer and others not; the error is or joins [Refusal] values. It returns
	// soon after the context ends.
	Sample(ctx context.Context) ([]clocksync.Sample, error)
}

// shortest is the least time between two polls, and for an answer.
const shortest = 10 * time.Millisecond

// checkTimes refuses options that would poll all the time.
func checkTimes(source string, every, timeout time.Duration) error {
	switch {
	case every < shortest:
		return fmt.Errorf("source: %s: polling every %v: it must be at least %v", source, every, shortest)
	case timeout < shortest:
		return fmt.Errorf("source: %s: timeout %v: it must be at least %v", source, timeout, shortest)
	}
	return nil
}

// single is a source with one server.
type single struct {
	name     string
	server   string // as samples and refusals name it; a sample may name its own
	every    time.Duration
	timeout  time.Duration
	timeline clocksync.Timeline // of a sample that names none
	clocks   readings
	take     func(ctx context.Context) (clocksync.Sample, error)
}

// newSingle takes 0 for a second, and no timeline for UTC.
func newSingle(name string, every, timeout time.Duration, timeline clocksync.Timeline) (single, error) {
	s := single{
		name: name, every: orDefault(every, time.Second), timeout: orDefault(timeout, time.Second),
		timeline: orDefault(timeline, clocksync.UTC), clocks: machine,
	}
	return s, checkTimes(name, s.every, s.timeout)
}

func (s *single) Name() string         { return s.name }
func (s *single) Servers() int         { return 1 }
func (s *single) Every() time.Duration { return s.every }

// Sample is what the server has said, or why it gave no sample.
func (s *single) Sample(ctx context.Context) ([]clocksync.Sample, error) {
	sample, err := s.take(ctx)
	if err != nil {
		return nil, refusalOf(s.name, s.server, err)
	}
	sample.Source, sample.Server = s.name, orDefault(sample.Server, s.server)
	sample.Timeline = orDefault(sample.Timeline, s.timeline)
	sample.Leap = announcedLeap(sample.Timeline, sample.Leap)
	return []clocksync.Sample{sample}, nil
}

// ofWall is a sample that rests on the wall clock as it was observed, which is off by no
// more than the bound beside a correction. While that is slewed, the clock lies anywhere
// between where it was and where it is to go; the readings are slewed with it.
func ofWall(seen clocksync.Observation, bound, correction time.Duration) clocksync.Sample {
	wall := wallOffset(seen)
	return clocksync.Sample{
		From: seen.Mono,
		At:   seen.Mono,
		Offset: clocksync.Interval{
			Earliest: wall.Earliest.Add(min(correction, 0) - bound),
			Latest:   wall.Latest.Add(max(correction, 0) + bound),
		},
		Wall:  true,
		Parts: clocksync.Parts{RootDispersion: bound, Granularity: seen.Slack, Correction: correction},
	}
}

// orDefault is the value, or what stands for the zero value.
func orDefault[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

// announcedLeap is the leap second of a server, which matters on UTC only.
func announcedLeap(t clocksync.Timeline, leap clocksync.Leap) clocksync.Leap {
	if t != clocksync.UTC {
		return clocksync.LeapNone
	}
	return leap
}
