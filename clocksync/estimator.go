package clocksync

import (
	"errors"
	"fmt"
	"time"
)

// The defaults of a [Config].
const (
	DefaultDrift = 50.0
	DefaultStale = 5 * time.Minute
)

// Config says what an [Estimator] may assume.
type Config struct {
	// Timeline is the reference time; samples of another one are refused. Required.
	Timeline Timeline
	// Faults is how many servers may be wrong at a time, whatever they say: less
	// than half of those configured, so (n-1)/2 or less. No bound is claimed from
	// so few servers that all may be wrong.
	Faults int
	// Drift is how many parts per million the domain's clock may run fast or slow,
	// including what a daemon slews it by; from 0 to [MaxDrift]. 0 means
	// [DefaultDrift]; 200 is right for most virtual machines.
	Drift float64
	// Granularity is the step in which the domain's clock advances. 0 means 1 ns.
	Granularity time.Duration
	// Limit is the half width of the bound above which it is Degraded. 0: none.
	Limit time.Duration
	// Stale is the age of samples from which the bound is Degraded, if not more
	// than Faults servers gave a younger one. 0 means [DefaultStale].
	Stale time.Duration
}

func (c Config) withDefaults() (Config, error) {
	switch {
	case c.Timeline == "":
		return c, errors.New("clocksync: no timeline: name utc, utc-smeared or the root synchronizer")
	case c.Faults < 0 || c.Faults > MaxServers/2:
		return c, fmt.Errorf("clocksync: faults %d: it must be from 0 to %d", c.Faults, MaxServers/2)
	case !(c.Drift >= 0 && c.Drift <= MaxDrift): // Also NaN.
		return c, fmt.Errorf("clocksync: drift %v ppm: it must be from 0 to %v", c.Drift, MaxDrift)
	case c.Granularity < 0 || c.Limit < 0 || c.Stale < 0:
		return c, fmt.Errorf("clocksync: granularity %v, limit %v, stale %v: none may be below 0", c.Granularity, c.Limit, c.Stale)
	}
	if c.Drift == 0 {
		c.Drift = DefaultDrift
	}
	if c.Granularity == 0 {
		c.Granularity = 1
	}
	if c.Stale == 0 {
		c.Stale = DefaultStale
	}
	return c, nil
}

// MaxServers is how many servers an Estimator knows at a time.
const MaxServers = 64

// Reason says why a sample was refused.
type Reason uint8

// The reasons; Taken is the zero value and no refusal.
const (
	Taken          Reason = iota
	Malformed             // a required field is missing or the interval, drift or readings are none
	OtherTimeline         // it is of another timeline
	Unsynchronized        // the server says that it knows no time
	Void                  // a suspend, or a step of the wall clock that it rests on, came after From
	Outdated              // its server gave a later one already
	NearLeap              // it may lie within a second of a leap second
	TooMany               // there are MaxServers servers with usable samples already
	Reasons               // the number of reasons
)

func (r Reason) String() string {
	return [...]string{
		"taken", "malformed", "other timeline", "unsynchronized", "void", "outdated", "near a leap second", "too many servers",
	}[r]
}

// Estimator makes the bound of one domain's clock from the samples of several
// servers, of which some may be wrong.
type Estimator struct {
	config Config
}

// NewEstimator returns an estimator that knows nothing yet. The error says which
// value of the config is out of range.
func NewEstimator(c Config) (*Estimator, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Estimator{config: c}, nil
}

// Observe tells the estimator what the clocks of the host show, and returns what
// happened to them since the last observation. After Stepped and Suspended the
// sources should be asked at once. Observe after the exchange of a sample and
// before its Add.
func (e *Estimator) Observe(o Observation) Change { return Unchanged }

// Add hands in a sample. It counts from the next Bound on.
func (e *Estimator) Add(s Sample) Reason { return Taken }

// Bound fuses what is known at the reading now and returns the line to stamp by
// from then on. Readings must not go back.
func (e *Estimator) Bound(now Instant) Bound { return Bound{} }

// Report tells what is known at the reading now.
func (e *Estimator) Report(now Instant) Report { return Report{} }
