package clocksync

import (
	"cmp"
	"slices"
	"strings"
)

// MaxServers is how many servers an Estimator knows at a time.
const MaxServers = 64

// Estimator makes the bound of a domain's clock from the samples of several servers, some of
// which may be wrong.
//
// A server allows the points that all its kept samples allow, each widened by the
// drift since. Of n servers that answer at least n-f are right, with f = [Config.Faults],
// so the true offset is a point that n-f of them allow; the bound is the hull of
// these points (Marzullo and Owicki, Maintaining the Time in a Distributed System,
// 1983; the deepest overlap would be no bound). A server that contradicted itself
// is not counted among the n-f for its next 8 samples, and two that contradicted
// each other are not counted together. The true offset is also where it was
// before, except for the drift.
//
// Where no point is left, more than f servers were wrong or the clock drifts more
// than [Config.Drift]. Then all samples are dropped and the bound is infinite,
// Untrusted, until f+1 servers, and all but f of those that answer, agree in 8 new
// samples each.
//
// The assumption, in full: at no time do more than f servers have a wrong sample
// among those that are kept or still count in a conflict; that is 8 of
// each server, and two older ones if nothing since is tighter.
//
// An Estimator is deterministic, reads no clock and uses bounded memory. It must
// not be used by two goroutines at once.
type Estimator struct {
	config    Config
	servers   []*server // ordered by source and name
	conflicts []conflict
	seen      Observation
	started   bool    // seen is one
	now       Instant // the latest reading of Bound
	void      Instant // samples from before are refused
	stepped   Instant // samples by the wall clock from before are refused
	leap      leapWatch
	slew      slewWatch

	line      Bound       // the last line, without granularity; Status Unknown: none
	where     intervalSet // where the offset can be at line.At; line.Offset is its hull
	from      Instant     // the first reading the line says something about
	last      Bound       // what Bound returned last
	voters    int         // that line was made of, or would have been
	confirmed Instant     // the reading at which the line was last drawn
	lost      bool        // trust is; then the last taint tells since when
	taints    []Taint

	refused                                [Reasons]uint64
	contradictions, steps, suspends, slews uint64
}

// NewEstimator returns an estimator that knows nothing yet. The error says which
// value of the config is out of range.
func NewEstimator(c Config) (*Estimator, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	e := &Estimator{config: c, now: MinInstant, void: MinInstant, stepped: MinInstant, confirmed: MinInstant, leap: noLeap()}
	e.last = e.noBound()
	return e, nil
}

// Observe tells the estimator what the clocks of the host show, and returns what
// happened to them since the last observation. After Stepped and Suspended the
// sources should be asked, and Bound be called, at once. While a daemon slews the
// domain's clock by more than it may drift, which shows a second later, there is no
// trust and no sample is taken. Observe after the
// exchange of a sample and before its Add, so that an exchange during which the
// clocks changed is refused. An observation with a smaller reading than the last
// one is ignored.
func (e *Estimator) Observe(o Observation) Change {
	if e.started && o.Mono < e.seen.Mono {
		return Unchanged
	}
	change := Unchanged
	if e.started {
		change = o.Change(e.seen)
	}
	e.started, e.seen = true, o
	switch at := o.Mono.Add(o.Slack); change {
	case Suspended:
		e.suspends++
		e.forgetUntil(at)
	case Stepped:
		e.steps++
		e.stepped = at
		for _, v := range e.servers {
			v.dropSamples(func(s Sample) bool { return s.Wall })
		}
	case Unchanged, Slewed:
	}
	if change == Suspended {
		e.slew.since = o
		return change
	}
	if e.slew.lookForSlew(o, e.config.Drift) {
		e.slewed(o.Mono.Add(o.Slack))
		if change == Unchanged {
			return Slewed
		}
	}
	return change
}

// slewed takes trust back when a slew begins. What was measured while it lasted is
// void when it ends.
func (e *Estimator) slewed(at Instant) {
	if e.slew.slewing {
		e.slews++
		e.distrustAll(at, Taint{Slewed: true})
	}
	e.void = max(e.void, at)
}

// forgetUntil makes void what was measured up to a reading, and the line.
func (e *Estimator) forgetUntil(until Instant) {
	e.void = max(e.void, until)
	e.line = Bound{}
	for _, v := range e.servers {
		v.dropSamples(func(Sample) bool { return true })
	}
}

// Add hands in a sample. It counts from the next Bound on. The reason is Taken,
// or why the sample was refused; refusals are counted.
func (e *Estimator) Add(s Sample) Reason {
	r := e.add(s)
	e.refused[r]++
	return r
}

func (e *Estimator) add(s Sample) Reason {
	if r := s.checkSample(); r != Taken {
		return r
	}
	e.passLeap(s.At)
	switch {
	case s.Timeline != e.config.Timeline:
		return OtherTimeline
	case e.slew.slewing, s.From <= e.void, s.Wall && s.From <= e.stepped:
		return Void
	case shiftEnd(s.Offset.Earliest, s.At) < e.leap.over:
		return NearLeap
	}
	v := e.server(s)
	switch {
	case v == nil:
		return TooMany
	case v.taken > 0 && s.At <= v.newest.At:
		return Outdated
	}
	v.addSample(s, e.config.Drift)
	e.noteConflicts(v)
	return Taken
}

// server finds or makes the server of a sample; nil if there is no room.
func (e *Estimator) server(s Sample) *server {
	i, found := slices.BinarySearchFunc(e.servers, s, func(v *server, s Sample) int {
		return cmp.Or(cmp.Compare(v.source, s.Source), cmp.Compare(v.name, s.Server))
	})
	if found {
		return e.servers[i]
	}
	if len(e.servers) == MaxServers {
		gone := slices.IndexFunc(e.servers, func(v *server) bool { return v.isSilent(s.At) })
		if gone < 0 {
			return nil
		}
		e.servers = slices.Delete(e.servers, gone, gone+1)
		if gone < i {
			i--
		}
	}
	v := &server{source: s.Source, name: s.Server}
	e.servers = slices.Insert(e.servers, i, v)
	return v
}

func (e *Estimator) passLeap(m Instant) {
	if e.leap.takePassed(m) {
		e.forgetUntil(m)
	}
}

// joinSources joins the names of the kinds of servers.
func joinSources(servers []*server) string {
	var names []string
	for _, v := range servers {
		if len(names) == 0 || names[len(names)-1] != v.source {
			names = append(names, v.source)
		}
	}
	return strings.Join(names, "+")
}
