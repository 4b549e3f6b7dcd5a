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
