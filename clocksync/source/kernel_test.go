package source

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

func kernelOf(tb testing.TB, d discipline) *kernel {
	tb.Helper()
	s, err := Kernel(KernelOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	k := s.(*kernel)
	k.ask = func() (discipline, error) { return d, nil }
	k.clocks = newHost(func() clocksync.Instant { return 7e9 }).readings()
	return k
}

func TestKernelBound(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		d    discipline
		want clocksync.Interval
		leap clocksync.Leap
	}{
		"settled":   {discipline{Max: 2 * ms, Est: ms}, clocksync.Around(away, 2*ms+tickError), clocksync.LeapNone},
		"slewed on": {discipline{Max: 2 * ms, Est: ms, Offset: ms}, clocksync.Interval{Earliest: away.Add(-2*ms - tickError), Latest: away.Add(3*ms + tickError)}, clocksync.LeapNone},
		"adjtime":   {discipline{Max: 2 * ms, Est: ms, Adjtime: -ms}, clocksync.Interval{Earliest: away.Add(-3*ms - tickError), Latest: away.Add(2*ms + tickError)}, clocksync.LeapNone},
		"insert":    {discipline{Max: 2 * ms, Est: ms, State: timeInsert}, clocksync.Around(away, 2*ms+tickError), clocksync.LeapInsert},
		"delete":    {discipline{Max: 2 * ms, Est: ms, State: timeDelete}, clocksync.Around(away, 2*ms+tickError), clocksync.LeapDelete},
		"no flag":   {discipline{Max: 2 * ms, Est: ms, State: 5}, clocksync.Around(away, 2*ms+tickError), clocksync.LeapNone},
	} {
		samples, err := kernelOf(t, c.d).Sample(t.Context())
		if err != nil || len(samples) != 1 {
			t.Errorf("%s: %v, %v", name, samples, err)
			continue
		}
		if got := samples[0]; got.Offset != c.want || got.Leap != c.leap || got.At != 7e9 || got.From != 7e9 || !got.Wall || got.Timeline != clocksync.UTC {
			t.Errorf("%s: %+v, want %v", name, got, c.want)
		}
	}
}

func TestKernelRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		d      discipline
		reason Reason
		text   string
	}{
		"no daemon":     {discipline{Max: 16 * time.Second, Est: 16 * time.Second}, Unsynchronized, "the maximum error is 16s or more: no daemon keeps the clock"},
		"beyond":        {discipline{Max: time.Hour, Est: 1}, Unsynchronized, "16s or more"},
		"timesyncd":     {discipline{Max: 0}, Unsynchronized, "systemd-timesyncd says of every clock"},
		"leaping":       {discipline{Max: time.Second, Est: 1, State: timeLeaping}, Disturbed, "a leap second is being inserted"},
		"negative":      {discipline{Max: -1, Est: 1}, Malformed, "maximum error -1ns"},
		"huge offset":   {discipline{Max: 1, Est: 1, Offset: -1 << 63}, Malformed, "correction"},
		"huge adjtime":  {discipline{Max: 1, Est: 1, Adjtime: time.Hour}, Malformed, "correction 1h0m0s"},
		"two overflows": {discipline{Max: 1, Est: 1, Adjtime: 1<<63 - 1, Offset: 1<<63 - 1}, Malformed, "correction"},
	} {
		samples, err := kernelOf(t, c.d).Sample(t.Context())
		got := refusals("kernel", err)
		if len(samples) != 0 || len(got) != 1 || got[0].Reason != c.reason || !strings.Contains(err.Error(), c.text) || !strings.HasPrefix(err.Error(), "source: kernel: ") {
			t.Errorf("%s: %v, %v", name, samples, err)
		}
	}
}

func TestKernelRefusesWhatWasDisturbed(t *testing.T) {
	k := kernelOf(t, discipline{})
	host := newHost(readRaw)
	k.clocks = host.readings()
	k.ask = func() (discipline, error) { host.step(time.Second, 0); return discipline{Max: 1, Est: 1}, nil }
	if _, err := k.Sample(t.Context()); err == nil || !strings.Contains(err.Error(), "the wall clock was set by 1s meanwhile") {
		t.Errorf("%v", err)
	}
}

// TestKernelAnswers asks this machine's kernel, whatever keeps its clock.
func TestKernelAnswers(t *testing.T) {
	d, err := readAdjtimex()
	if runtime.GOOS != "linux" {
		if refusalOf("kernel", "", err).Reason != Unavailable {
			t.Errorf("%v", err)
		}
		return
	}
	if err != nil || d.Max <= 0 || d.Max > time.Minute || d.State < 0 || d.State > 5 {
		t.Errorf("%+v, %v", d, err)
	}
}

func FuzzDiscipline(f *testing.F) {
	f.Add(0, int64(1e6), int64(1e5), int64(0), int64(0))
	f.Add(5, int64(16e9), int64(16e9), int64(-5), int64(7))
	seen := clocksync.Observation{Mono: 7e9, Wall: away + 7e9, Boot: 7e9, Slack: 100}
	f.Fuzz(func(t *testing.T, state int, most, estimated, offset, adjtime int64) {
		d := discipline{state, time.Duration(most), time.Duration(estimated), time.Duration(offset), time.Duration(adjtime)}
		s, err := d.sample(seen)
		if err != nil {
			if refusalOf("kernel", "", err).Reason == Failed {
				t.Fatalf("no reason: %v", err)
			}
			return
		}
		if s.Offset.Width() < 2*d.Max || s.Offset.Width() > 4*maxMaxError+2*tickError+time.Microsecond || !s.Offset.Contains(away) || d.Max >= maxMaxError {
			t.Fatalf("%+v gives %+v", d, s)
		}
	})
}

func TestOperator(t *testing.T) {
	for _, bound := range []time.Duration{0, -1, time.Hour + 1} {
		if _, err := Operator(bound, ""); err == nil {
			t.Errorf("%v is taken", bound)
		}
	}
	s, err := Operator(time.Millisecond, "")
	if err != nil {
		t.Fatal(err)
	}
	s.(*single).clocks = newHost(func() clocksync.Instant { return 7e9 }).readings()
	samples, err := s.Sample(t.Context())
	if err != nil || len(samples) != 1 {
		t.Fatalf("%v, %v", samples, err)
	}
	if got := samples[0]; !got.Assumed || !got.Wall || got.Offset != clocksync.Around(away, time.Millisecond) || got.Source != "fixed" || got.At != 7e9 || got.Timeline != clocksync.UTC {
		t.Errorf("%+v", got)
	}
}
