package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// stamped is a stamp, and when it was taken in truth.
type stamped struct {
	clocksync.Stamp

	truth clocksync.Instant
}

// TestCertainOrderIsTheTrueOrder has hosts with two processes each, which
// measure apart, and one intake for all, at which stamps arrive in any order. An
// observer compares the order that is certain with the true one.
func TestCertainOrderIsTheTrueOrder(t *testing.T) {
	decided, undecided := 0, 0
	for seed := range uint64(8) {
		d, u := certainOrder(t, seed)
		decided, undecided = decided+d, undecided+u
	}
	t.Logf("%d pairs of stamps were certain, %d not", decided, undecided)
	if decided < undecided {
		t.Errorf("only %d of %d pairs were certain", decided, decided+undecided)
	}
}

func certainOrder(t *testing.T, seed uint64) (decided, undecided int) {
	t.Helper()
	w := New(seed)
	merges := map[clocksync.Domain]*clocksync.MonotoneMerger{}
	var kept []stamped
	for h := range 3 {
		host := w.NewHost(clocksync.Domain(fmt.Sprintf("host-%d", h)), HostSpec{
			Mono: clocksync.Instant(w.Between(0, time.Hour)), Rate: w.Rand.Int64N(400_001) - 200_000,
		})
		merges[host.Domain] = clocksync.NewMonotoneMerger(4096)
		trouble(w, host)
		for range 2 {
			k := process(t, w, host)
			var stamp func()
			stamp = func() {
				s := stamped{k.Now(), w.Now()}
				w.After(w.Exponential(50*time.Millisecond), func() { kept = intake(t, merges[s.Domain], kept, s) })
				host.After(w.Exponential(200*time.Millisecond), stamp)
			}
			host.Do(stamp)
		}
	}
	w.Run(clocksync.Instant(2 * time.Minute))
	for _, a := range kept {
		for _, b := range kept[:min(len(kept), 500)] {
			switch {
			case clocksync.CertainlyBefore(a.Stamp, b.Stamp):
				decided++
				if a.truth >= b.truth {
					t.Fatalf("seed %d: %v at %v is certainly before %v at %v", seed, a.Stamp, a.truth, b.Stamp, b.truth)
				}
			case !clocksync.CertainlyBefore(b.Stamp, a.Stamp):
				undecided++
			}
		}
	}
	return decided, undecided
}

// process starts a process that asks three servers, of which one lies.
func process(t *testing.T, w *World, h *Host) *Keeper {
	t.Helper()
	k, err := NewKeeper(h, clocksync.Config{Timeline: clocksync.UTC, Faults: 1, Drift: coverageDrift}, 4*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		s := w.NewTimeServer(time.Millisecond)
		if i == 1 {
			s = NewLiar(func(Question) (time.Duration, time.Duration) { return 1000, w.Exponential(time.Millisecond) + 1000 })
		}
		l := LinkSpec{Delay: w.Between(time.Millisecond, 10*time.Millisecond), Burst: 20 * time.Millisecond, Backlog: 10 * time.Millisecond}
		k.Ask(name(i), s, w.NewLink(l), w.NewLink(l))
	}
	return k
}

// trouble steps or suspends a host now and then.
func trouble(w *World, h *Host) {
	w.After(w.Exponential(time.Minute), func() {
		if w.Rand.IntN(2) == 0 {
			h.Step(w.Between(-10*time.Second, 10*time.Second))
		} else if !h.Suspended() {
			h.Suspend(w.Between(200*time.Millisecond, 10*time.Second))
		}
		trouble(w, h)
	})
}

func intake(t *testing.T, merge *clocksync.MonotoneMerger, kept []stamped, s stamped) []stamped {
	t.Helper()
	woven, ok := merge.Next(s.Stamp)
	if !ok || !woven.Within.Contains(s.truth) {
		t.Fatalf("%v at %v was woven to %v, %v", s.Stamp, s.truth, woven, ok)
	}
	for _, o := range kept {
		if o.Domain != woven.Domain || woven.Within.Latest == clocksync.MaxInstant || o.Within.Latest == clocksync.MaxInstant {
			continue
		}
		first, second := o.Within, woven.Within
		if o.Mono > woven.Mono {
			first, second = second, first
		}
		if o.Mono != woven.Mono && (first.Earliest > second.Earliest || first.Latest > second.Latest) {
			t.Fatalf("%v and %v are not monotone", o.Stamp, woven)
		}
	}
	return append(kept, stamped{woven, s.truth})
}
