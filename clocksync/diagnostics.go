package clocksync

import "time"

// Diagnostics is what an [Estimator] knows, for people and for instruments. All
// offsets are reference time minus reading, at Now.
type Diagnostics struct {
	Now     Instant             // the reading all of this is about
	Bound   Bound               // what Estimator.Bound last returned
	Offset  Interval            // of Bound, at Now
	Faults  int                 // how many servers may be wrong
	Counted int                 // how many servers were counted
	Needed  int                 // in how many of these a point must lie to be believed
	Servers []ServerDiagnostics // by source and name
	Taints  []Taint             // the last ones, oldest first
	// Refused counts the samples refused, by reason.
	Refused [Reasons]uint64
	// Contradictions counts how often trust was lost. Steps, Suspends and Slews (which are
	// contradictions, too) count what the clock observed.
	Contradictions, Steps, Suspends, Slews uint64
}

// Age is the time since the newest sample of any server, by the reading Now. It
// is false if there is none.
func (r Diagnostics) Age() (time.Duration, bool) {
	newest := MinInstant
	for _, s := range r.Servers {
		newest = max(newest, s.Newest.At)
	}
	return r.Now.Sub(newest), newest.Finite()
}

// Taint is a time of the domain's clock whose stamps cannot be trusted, since
// what the servers said at its end contradicts what they said before.
type Taint struct {
	From     Instant  // the reading at which the bound was last confirmed
	Noticed  Instant  // the reading at which the contradiction was noticed
	To       Instant  // the reading from which enough servers agreed again; MaxInstant: not yet
	Outliers []string // the servers that contradict the rest or what was said before, as source/server
	Past     bool     // it is with what the servers said before; otherwise between them
	Slewed   bool     // it is with a clock that is never slewed: a daemon slewed the domain's clock
}

// Standing is how a server stands in the vote.
type Standing uint8

const (
	// Silent servers have no sample that may still be used.
	Silent Standing = iota
	// Agreeing servers have an interval that shares a point with the bound.
	Agreeing
	// Outvoted servers have an interval that shares no point with the bound, or
	// contradicted themselves less than 8 samples ago.
	Outvoted
	// Waiting servers have no bound to be compared with, since too few servers say
	// something, or because trust was lost and they have not given enough since.
	Waiting
)

// String is the name in lower case.
func (s Standing) String() string {
	return labelOf(uint8(s), "silent", "agreeing", "outvoted", "waiting")
}

// ServerDiagnostics is the knowledge about a single server.
type ServerDiagnostics struct {
	Source, Server string   // the kind of source, as "ntp", and the server's name in it
	Standing       Standing // in the vote
	Offset         Interval // what all its samples allow together; Unbounded if Silent
	Newest         Sample   // the last one taken
	Best           Sample   // the narrowest one by now; zero if Silent
	Kept           int      // samples that are kept, at most 8
	Taken          uint64   // samples taken since the start
	// Contradicted counts how often a sample excluded the ones before it, which
	// were then forgotten; it counts as wrong for the next 8.
	Contradicted uint64
}
