package show

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/clocksync/source"
)

// wallAhead is the wall clock minus the readings of the host of a scenario.
const wallAhead = 1_700_000_000 * time.Second

// clockScene is an estimator that a scenario feeds, and what else is shown.
type clockScene struct {
	t         *testing.T
	d         *datadriven.TestData
	estimator *clocksync.Estimator
	stepped   time.Duration
	slewed    time.Duration
	sources   map[string]*source.SourceDiagnostics
	names     []string
	tried     []Trial
}

// TestClockViews shows what the lines of testdata/clock bring about: samples with
// offsets against the wall clock, at readings since the boot.
func TestClockViews(t *testing.T) {
	datadriven.Walk(t, filepath.Join("testdata", "clock"), func(t *testing.T, path string) {
		t.Helper()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			faults, now := 0, "10s"
			d.MaybeScanArgs(t, "faults", &faults)
			d.MaybeScanArgs(t, "now", &now)
			e, err := clocksync.NewEstimator(clocksync.Config{Timeline: clocksync.UTC, Faults: faults})
			if err != nil {
				t.Fatal(err)
			}
			s := clockScene{t: t, d: d, estimator: e, sources: map[string]*source.SourceDiagnostics{}}
			s.observe(0)
			for line := range strings.SplitSeq(d.Input, "\n") {
				if words := strings.Fields(line); len(words) > 0 {
					s.line(words[0], words[1:])
				}
			}
			v := s.view(s.duration(now))
			if d.Cmd == "json" {
				return v.JSON()
			}
			return v.Text()
		})
	})
}

func (s *clockScene) duration(text string) time.Duration {
	s.t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		s.d.Fatalf(s.t, "%v", err)
	}
	return d
}

func (s *clockScene) observe(at time.Duration) {
	now := clocksync.Instant(at)
	s.estimator.Observe(clocksync.Observation{Mono: now, Boot: now, Wall: now.Add(wallAhead + s.stepped), Raw: now.Add(1 - s.slewed)})
}

func (s *clockScene) line(verb string, words []string) {
	s.t.Helper()
	switch verb {
	case "sample":
		s.sample(words)
	case "bound":
		s.estimator.Bound(clocksync.Instant(s.duration(words[0])))
	case "step":
		s.stepped += s.duration(words[1])
		s.observe(s.duration(words[0]))
	case "slew":
		s.slewed += s.duration(words[1])
		s.observe(s.duration(words[0]))
	case "fault":
		s.source(words[0]).Faults[words[1]] = strings.Join(words[2:], " ")
	case "tried":
		s.tried = append(s.tried, Trial{words[0], strings.Join(words[1:], " ")})
	default:
		s.d.Fatalf(s.t, "unknown verb %s", verb)
	}
}

func (s *clockScene) source(name string) *source.SourceDiagnostics {
	if s.sources[name] == nil {
		s.sources[name] = &source.SourceDiagnostics{Name: name, Faults: map[string]string{}}
		s.names = append(s.names, name)
	}
	return s.sources[name]
}

// sample takes SOURCE SERVER AT EARLIEST LATEST and parts as name=DURATION.
func (s *clockScene) sample(words []string) {
	s.t.Helper()
	at := clocksync.Instant(s.duration(words[2]))
	one := clocksync.Sample{
		Source: words[0], Server: words[1], Timeline: clocksync.UTC, From: at, At: at,
		Offset: clocksync.Interval{
			Earliest: clocksync.Instant(wallAhead + s.duration(words[3])),
			Latest:   clocksync.Instant(wallAhead + s.duration(words[4])),
		},
	}
	for _, word := range words[5:] {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "wall":
			one.Wall = true
		case "assumed":
			one.Assumed = true
		case "drift":
			var err error
			if one.Drift, err = strconv.ParseFloat(value, 64); err != nil {
				s.d.Fatalf(s.t, "%v", err)
			}
		default:
			p := map[string]*time.Duration{
				"trip": &one.Parts.RoundTrip, "delay": &one.Parts.RootDelay, "dispersion": &one.Parts.RootDispersion,
				"precision": &one.Parts.Precision, "granularity": &one.Parts.Granularity, "correction": &one.Parts.Correction,
			}[name]
			*p = s.duration(value)
		}
	}
	s.estimator.Add(one)
}

// view is at a reading; the bound is the one that was made last.
func (s *clockScene) view(now time.Duration) Clock {
	s.observe(now)
	s.estimator.Bound(clocksync.Instant(now))
	r := source.Diagnostics{Diagnostics: s.estimator.Diagnostics(clocksync.Instant(now))}
	for _, name := range s.names {
		r.Sources = append(r.Sources, *s.sources[name])
	}
	return ClockOf(r, clocksync.DefaultDrift, s.tried)
}

// TestDrawingOfEveryPlace draws intervals inside, across and outside of a scale.
func TestDrawingOfEveryPlace(t *testing.T) {
	s := scale{from: 0, to: drawColumns - 1}
	blank := strings.Repeat(" ", drawColumns-1)
	for i, want := range map[clocksync.Interval]string{
		{Earliest: 0, Latest: 2}:                                  "[-]",
		{Earliest: 3, Latest: 3}:                                  "   |",
		{Earliest: 3, Latest: 4}:                                  "   []",
		{Earliest: -9, Latest: 2}:                                 "<-]",
		{Earliest: -9, Latest: -1}:                                "<",
		{Earliest: 99, Latest: 999}:                               blank + ">",
		{Earliest: drawColumns - 3, Latest: clocksync.MaxInstant}: blank[2:] + "[->",
		{Earliest: clocksync.MinInstant, Latest: drawColumns - 1}: "<" + strings.Repeat("-", drawColumns-2) + "]",
		{Earliest: clocksync.MinInstant, Latest: -5}:              "<",
		{Earliest: drawColumns, Latest: clocksync.MaxInstant}:     blank + ">",
		clocksync.Unbounded:                                       "<" + strings.Repeat("-", drawColumns-2) + ">",
	} {
		if got := strings.TrimRight(s.draw(i, '-'), " "); got != want {
			t.Errorf("%v:\n%q, want\n%q", i, got, want)
		}
	}
}
