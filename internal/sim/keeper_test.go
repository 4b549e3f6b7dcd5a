package sim

import (
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// TestAClockThatDriftsTooFastIsFoundOut: the assumption about the drift is
// wrong, as where a daemon slews the clock, and honest servers show it.
func TestAClockThatDriftsTooFastIsFoundOut(t *testing.T) {
	for _, rate := range []int64{-500_000, 500_000} {
		w := New(5)
		h := w.NewHost("h", HostSpec{Rate: rate})
		k, err := NewKeeper(h, clocksync.Config{Timeline: clocksync.UTC, Faults: 1, Drift: 50}, 8*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			l := LinkSpec{Delay: 2 * time.Millisecond}
			k.Ask(name(i), w.NewTimeServer(time.Millisecond), w.NewLink(l), w.NewLink(l))
		}
		for k.Quality().Status != clocksync.Untrusted && w.Now() < 300*second {
			w.Run(w.Now() + second)
		}
		r := k.Diagnostics()
		if r.Contradictions == 0 || len(r.Taints) == 0 || len(r.Taints[0].Outliers) == 0 {
			t.Fatalf("rate %d: no contradiction was found: %+v", rate, r)
		}
		if s := k.Now(); s.Within.Bounded() {
			t.Errorf("rate %d: an untrusted clock stamps %v", rate, s)
		}
		h.SetRate(0)
		w.Run(w.Now().Add(5 * time.Minute))
		if s := k.Now(); k.Quality().Status != clocksync.Synchronized || !s.Within.Contains(w.Now()) {
			t.Errorf("rate %d: afterwards the clock is %+v and stamps %v at %v", rate, k.Quality(), s, w.Now())
		}
	}
}

func TestKeeperConfig(t *testing.T) {
	_, err := NewKeeper(New(1).NewHost("h", HostSpec{}), clocksync.Config{}, time.Second)
	if want := "sim: clocksync: no timeline: name utc, utc-smeared or the root synchronizer"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
