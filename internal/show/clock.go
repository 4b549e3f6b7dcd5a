package show

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/clocksync/source"
)

// Clock is a report as it is shown: offsets are the reference time minus the
// wall clock of this host, in nanoseconds.
type Clock struct {
	source.Diagnostics

	wall    time.Time // what the wall clock shows
	drift   float64   // that was assumed, in parts per million
	offset  clocksync.Interval
	servers []serverView
	notes   []string
}

// serverView is a server, or a source that named none.
type serverView struct {
	clocksync.ServerDiagnostics

	name   string
	offset clocksync.Interval
	age    time.Duration // of the best sample
	growth time.Duration // what the drift made of it since
	why    string        // it does not agree
}

// Trial is a source of this machine that has no bound.
type Trial struct {
	Name  string // of the source, or of the server that it asked
	Fault string // why there is no bound
}

// ClockOf is a report, of a clock that may drift so many parts per million, with the
// sources that were tried before.
func ClockOf(r source.Diagnostics, drift float64, tried []Trial) Clock {
	ahead := r.Bound.Seen.Wall.Sub(r.Bound.Seen.Mono) // of the wall clock, to the readings
	v := Clock{Diagnostics: r, drift: drift, wall: time.Unix(0, int64(r.Now.Add(ahead)))}
	v.offset = againstWall(r.Offset, ahead)
	faults := faultsOf(r.Sources)
	for _, t := range tried {
		faults[t.Name] = t.Fault
	}
	for _, s := range r.Servers {
		one := serverView{ServerDiagnostics: s, name: ServerName(s.Source, s.Server), offset: againstWall(s.Offset, ahead)}
		if s.Standing != clocksync.Silent {
			one.age = r.Now.Sub(s.Best.At)
			one.growth = time.Duration(float64(one.age) * max(drift, s.Best.Drift) * 1e-6)
		}
		if s.Standing == clocksync.Silent && r.Bound.Quality.Status == clocksync.Untrusted {
			one.offset = againstWall(said(s.Newest, r.Now, drift), ahead) // It shows who contradicts whom.
		}
		one.why = why(s, r.Diagnostics, faults[one.name])
		if s.Standing != clocksync.Silent && faults[one.name] != "" {
			v.Note("%s gave no sample when asked last: %s", one.name, faults[one.name])
		}
		delete(faults, one.name)
		v.servers = append(v.servers, one)
	}
	for _, name := range slices.Sorted(maps.Keys(faults)) {
		v.servers = append(v.servers, serverView{name: name, offset: clocksync.Unbounded, why: faults[name]})
	}
	v.noteQuality()
	v.noteCorrections()
	v.noteRefused()
	v.notePast()
	return v
}

// ServerName names a server of a source, or a source that named none.
func ServerName(source, server string) string { return strings.TrimSpace(source + " " + server) }

// againstWall moves an interval of offsets of the readings; an infinite end stays.
func againstWall(i clocksync.Interval, ahead time.Duration) clocksync.Interval {
	return clocksync.Interval{Earliest: i.Earliest.Add(-ahead), Latest: i.Latest.Add(-ahead)}
}

// said is what a sample allows by now, counted or not.
func said(s clocksync.Sample, now clocksync.Instant, drift float64) clocksync.Interval {
	b := clocksync.Bound{From: clocksync.MinInstant, Until: clocksync.MaxInstant, At: s.At, Offset: s.Offset, Drift: max(drift, s.Drift)}
	return b.OffsetAt(now)
}

// faultsOf are the faults of all sources by the name of the server.
func faultsOf(sources []source.SourceDiagnostics) map[string]string {
	all := map[string]string{}
	for _, s := range sources {
		for server, fault := range s.Faults {
			all[ServerName(s.Name, server)] = fault
		}
	}
	return all
}

// why tells why a server has no part in the bound; empty if it has.
func why(s clocksync.ServerDiagnostics, r clocksync.Diagnostics, fault string) string {
	switch s.Standing {
	case clocksync.Silent:
		switch {
		case fault != "":
			return fault
		case r.Bound.Quality.Status == clocksync.Untrusted:
			return "trust was lost, and what it said is dropped"
		}
		return "no sample may still be used"
	case clocksync.Waiting:
		if r.Bound.Quality.Status == clocksync.Untrusted {
			return "trust was lost: it must give 8 new samples that agree"
		}
		return fmt.Sprintf("there is no bound to compare it with: %s, and %d may be wrong", Count(r.Counted, "server")+" counted", r.Faults)
	case clocksync.Outvoted:
		switch {
		case s.Offset.Before(r.Offset):
			return "lies " + brief(r.Offset.Earliest.Sub(s.Offset.Latest)) + " below the bound"
		case r.Offset.Before(s.Offset):
			return "lies " + brief(s.Offset.Earliest.Sub(r.Offset.Latest)) + " above the bound"
		}
		return "contradicted itself and must give 8 samples that agree"
	case clocksync.Agreeing:
	}
	return ""
}

// Note adds a line below what is known.
func (v *Clock) Note(format string, args ...any) {
	v.notes = append(v.notes, fmt.Sprintf(format, args...))
}

// noteQuality tells what the bound rests on that somebody might take for more.
func (v *Clock) noteQuality() {
	q := v.Bound.Quality
	if q.Assumed {
		v.Note("assumed: the bound rests on the operator's word, which nobody measured")
	}
	if q.Unverified {
		v.Note("unverified: the bound rests on one server, which nobody could contradict")
	}
	var same []string
	for _, s := range v.servers {
		if s.Source == "kernel" && s.Standing != clocksync.Silent {
			v.Note("the kernel's word is a bound only if its daemon means it: chronyd leaves out what it is still correcting")
		}
		if s.Newest.Wall && s.Standing != clocksync.Silent && !slices.Contains(same, s.Source) {
			same = append(same, s.Source)
		}
	}
	if len(same) > 1 {
		v.Note("%s read the same wall clock and count as %d: a fault of that clock may affect all of them", strings.Join(same, ", "), len(same))
	}
}

// noteCorrections tells where the wall clock is not what its daemon or a server
// says.
func (v *Clock) noteCorrections() {
	for _, s := range v.servers {
		switch c := s.Newest.Parts.Correction; {
		case c == 0 || s.Standing != clocksync.Agreeing:
		case s.Source == "ntp":
			v.Note("%s says that the wall clock is certainly off by %s: what keeps it follows another time", s.name, brief(c.Abs()))
		default:
			v.Note("%s is correcting the wall clock by %s, which is in its bound", s.name, signed(c))
		}
	}
}

func (v *Clock) noteRefused() {
	var list []string
	for reason, n := range v.Refused {
		if n > 0 && clocksync.Reason(reason) != clocksync.Taken {
			list = append(list, fmt.Sprintf("%d %v", n, clocksync.Reason(reason)))
		}
	}
	if len(list) > 0 {
		v.Note("samples refused: %s", strings.Join(list, ", "))
	}
}

// notePast tells when trust was lost, and what became of the clocks.
func (v *Clock) notePast() {
	for _, t := range v.Taints {
		whom := "the servers contradict each other"
		switch {
		case t.Past:
			whom = "the servers contradict what they said before"
		case t.Slewed:
			whom = "a daemon runs the clock faster or slower than the drift that is assumed: limit it (chronyd: maxslewrate), or say --drift"
		}
		end := "still"
		if t.To != clocksync.MaxInstant {
			end = "until " + brief(v.Now.Sub(t.To)) + " ago"
		}
		since := "the start"
		if t.From.Finite() {
			since = brief(v.Now.Sub(t.From)) + " ago"
		}
		if !t.Slewed {
			whom += "; outliers: " + cmp.Or(strings.Join(t.Outliers, ", "), "none")
		}
		v.Note("tainted since %s, %s: %s", since, end, whom)
	}
	if v.Steps > 0 {
		v.Note("the wall clock was set %s since the start", Count(v.Steps, "time"))
	}
	if v.Suspends > 0 {
		v.Note("the machine slept %s since the start", Count(v.Suspends, "time"))
	}
}
