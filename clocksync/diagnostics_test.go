package clocksync_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

func TestReasons(t *testing.T) {
	e := estimator(t, clocksync.Config{})
	good := word("a", 10*second, -5, 5)
	add(t, e, good)
	change := func(f func(*clocksync.Sample)) clocksync.Sample {
		s := word("a", 11*second, -5, 5)
		f(&s)
		return s
	}
	for name, c := range map[string]struct {
		sample clocksync.Sample
		want   clocksync.Reason
	}{
		"again":             {good, clocksync.Outdated},
		"no source":         {change(func(s *clocksync.Sample) { s.Source = "" }), clocksync.Malformed},
		"no server":         {change(func(s *clocksync.Sample) { s.Server = "" }), clocksync.Malformed},
		"no timeline":       {change(func(s *clocksync.Sample) { s.Timeline = "" }), clocksync.Malformed},
		"no interval":       {change(func(s *clocksync.Sample) { s.Offset = interval(5, 4) }), clocksync.Malformed},
		"infinite instant":  {change(func(s *clocksync.Sample) { s.Offset = clocksync.Exactly(clocksync.MaxInstant) }), clocksync.Malformed},
		"before it began":   {change(func(s *clocksync.Sample) { s.From = s.At + 1 }), clocksync.Malformed},
		"never measured":    {change(func(s *clocksync.Sample) { s.From = clocksync.MinInstant }), clocksync.Malformed},
		"negative lifetime": {change(func(s *clocksync.Sample) { s.Lasts = -1 }), clocksync.Malformed},
		"negative drift":    {change(func(s *clocksync.Sample) { s.Drift = -1 }), clocksync.Malformed},
		"unknown leap":      {change(func(s *clocksync.Sample) { s.Leap = 4 }), clocksync.Malformed},
		"smeared":           {change(func(s *clocksync.Sample) { s.Timeline = clocksync.SmearedUTC }), clocksync.OtherTimeline},
		"unsynchronized":    {change(func(s *clocksync.Sample) { s.Leap = clocksync.LeapUnsynchronized }), clocksync.Unsynchronized},
	} {
		if got := e.Add(c.sample); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	wantOffset(t, e.Bound(10*second), clocksync.Synchronized, interval(-5, 5))
	for i := range clocksync.MaxServers - 1 {
		add(t, e, word(fmt.Sprintf("b%d", i), 11*second, -5, 5))
	}
	if got := e.Add(word("c", 11*second, -5, 5)); got != clocksync.TooMany {
		t.Errorf("one server more than fit is %v", got)
	}
	if got := e.Diagnostics(11 * second).Refused; got[clocksync.Malformed] != 10 || got[clocksync.TooMany] != 1 || got[clocksync.Taken] != clocksync.MaxServers {
		t.Errorf("counted %v", got)
	}
}

func TestNames(t *testing.T) {
	for r := range clocksync.Reasons {
		if s := r.String(); s == "" || s[0] < 'a' {
			t.Errorf("reason %d is named %q", r, s)
		}
	}
	for got, want := range map[string]string{
		clocksync.Untrusted.String(): "untrusted", clocksync.Suspended.String(): "suspended",
		clocksync.Waiting.String(): "waiting", clocksync.Status(99).String(): "99",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestRoomForNewServers(t *testing.T) {
	e := estimator(t, clocksync.Config{})
	for i := range 10 * clocksync.MaxServers {
		s := word(fmt.Sprintf("s%d", i), clocksync.Instant(i+10)*second, -5, 5)
		s.Lasts = time.Minute
		add(t, e, s)
	}
	if n := len(e.Diagnostics(9999 * second).Servers); n > clocksync.MaxServers {
		t.Errorf("%d servers are kept", n)
	}
}

func TestReport(t *testing.T) {
	e := estimator(t, clocksync.Config{Faults: 1})
	fixed := word("operator", 12*second, -50*ms, 50*ms)
	fixed.Source, fixed.Assumed = "fixed", true
	short := word("d", 10*second, 0, 1)
	short.Lasts = time.Second
	add(t, e, word("b", 10*second, -5*ms, 5*ms), word("b", 11*second, -7*ms, 4*ms), word("c", 11*second, 99*ms, 100*ms), short, fixed)
	b := e.Bound(12 * second)
	if q := b.Quality; q.Source != "fixed+ntp" || !q.Assumed || q.Unverified || q.Timeline != clocksync.UTC {
		t.Errorf("%+v", q)
	}
	r := e.Diagnostics(20 * second)
	var lines []string
	for _, s := range r.Servers {
		lines = append(lines, fmt.Sprintf("%s/%s %v kept %d best %v", s.Source, s.Server, s.Standing, s.Kept, time.Duration(s.Best.At)))
	}
	want := []string{
		"fixed/operator agreeing kept 1 best 12s",
		"ntp/b agreeing kept 2 best 10s",
		"ntp/c outvoted kept 1 best 11s",
		"ntp/d silent kept 0 best 0s",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("servers:\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	if age, ok := r.Age(); age != 8*time.Second || !ok || r.Counted != 3 || r.Needed != 2 {
		t.Errorf("age %v %v, counted %d, needed %d", age, ok, r.Counted, r.Needed)
	}
	if r.Offset != b.OffsetAt(20*second) {
		t.Errorf("%v is not the bound %v", r.Offset, b)
	}
	if _, ok := estimator(t, clocksync.Config{}).Diagnostics(0).Age(); ok {
		t.Error("there is an age without samples")
	}
}
