package worksim

import (
	"math"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// speed is how many units of work a slot of a node does in a second, over time.
type speed struct {
	base    float64
	changes Changes
	begin   clocksync.Instant // of the first period of the changes
	period  float64           // the work of one period but for the first
}

func newSpeed(base float64, changes Changes, begin clocksync.Instant) speed {
	s := speed{base: base, changes: changes, begin: begin}
	if changes.Every > 0 {
		s.period = s.workBetween(s.steady(), s.steady().Add(changes.Every))
	}
	return s
}

// steady is from when on the changes repeat.
func (s *speed) steady() clocksync.Instant { return s.begin.Add(s.changes.Every) }

// at returns the speed at an instant, and until when it is that.
func (s *speed) at(t clocksync.Instant) (rate float64, until clocksync.Instant) {
	steps := s.changes.Steps
	if len(steps) == 0 {
		return s.base, clocksync.MaxInstant
	}
	since, period := t.Sub(s.begin), time.Duration(0)
	factor := 1.0
	if every := s.changes.Every; every > 0 && since >= every {
		period = since / every * every
		since -= period
		factor = steps[len(steps)-1].Factor
	}
	for _, step := range steps {
		if step.At > since {
			return s.base * factor, s.begin.Add(period + step.At)
		}
		factor = step.Factor
	}
	if s.changes.Every > 0 {
		return s.base * factor, s.begin.Add(period + s.changes.Every + steps[0].At)
	}
	return s.base * factor, clocksync.MaxInstant
}

// endOfWork returns when work is done that begins at an instant; MaxInstant: never.
func (s *speed) endOfWork(t clocksync.Instant, work float64) clocksync.Instant {
	for work > 0 {
		if s.period > 0 && t >= s.steady() && work > 2*s.period {
			n := math.Floor(work/s.period) - 1
			if n*float64(s.changes.Every) > float64(longest) {
				return clocksync.MaxInstant
			}
			work -= n * s.period
			t = t.Add(time.Duration(n) * s.changes.Every)
		}
		rate, until := s.at(t)
		if until == clocksync.MaxInstant || rate*until.Sub(t).Seconds() >= work {
			ns := math.Ceil(work / rate * float64(time.Second))
			if !(ns < float64(longest)) {
				return clocksync.MaxInstant
			}
			return t.Add(time.Duration(ns))
		}
		work -= rate * until.Sub(t).Seconds()
		if t = until; t.Sub(0) > longest {
			return clocksync.MaxInstant
		}
	}
	return t
}

// longest is beyond what a run takes.
const longest = 10_000 * 24 * time.Hour

// workBetween returns what is done between two instants.
func (s *speed) workBetween(from, to clocksync.Instant) (sum float64) {
	for from < to {
		if every := s.changes.Every; s.period > 0 && from >= s.steady() && to.Sub(from) > 2*every {
			n := to.Sub(from)/every - 1
			sum += float64(n) * s.period
			from = from.Add(n * every)
		}
		rate, until := s.at(from)
		until = min(until, to)
		sum += rate * until.Sub(from).Seconds()
		from = until
	}
	return sum
}
