package sim

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
)

const second = clocksync.Instant(time.Second)

func TestHostClocks(t *testing.T) {
	w := New(1)
	h := w.NewHost("h", HostSpec{Mono: 1000, Wall: time.Minute, Rate: 100_000}) // 100 ppm
	want := func(mono, boot, wall clocksync.Instant) {
		t.Helper()
		if got := h.Observe(); got != (clocksync.Observation{Mono: mono, Boot: boot, Wall: wall, Raw: mono}) {
			t.Fatalf("at %v the clocks show %+v, want %v, %v, %v", w.Now(), got, mono, boot, wall)
		}
	}
	want(1000, 1000, 60*second)
	w.Run(10 * second)
	want(10*second+1_001_000, 10*second+1_001_000, 70*second+1_000_000)
	h.Step(-5 * time.Second)
	want(10*second+1_001_000, 10*second+1_001_000, 65*second+1_000_000)
	var at []clocksync.Instant
	note := func() { at = append(at, w.Now()) }
	h.After(time.Second, note)
	h.Suspend(20 * time.Second)
	h.Do(note)
	w.Run(29 * second)
	if !h.Suspended() || len(at) > 0 {
		t.Fatalf("suspended: %v, but something happened at %v", h.Suspended(), at)
	}
	w.Run(30 * second)
	want(10*second+1_001_000, 30*second+1_001_000, 85*second+1_000_000)
	h.SetRate(0)
	w.Run(40 * second)
	want(20*second+1_001_000, 40*second+1_001_000, 95*second+1_000_000)
	if len(at) != 2 || at[0] != 30*second || at[1].Sub(31*second).Abs() > 200*time.Microsecond {
		t.Errorf("what the host was to do happened at %v", at)
	}
}

// TestNoPartOfANanosecondIsLost reads and changes nothing, however often.
func TestNoPartOfANanosecondIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Int64Range(-200_000, 200_000).Draw(t, "rate")
		w := New(1)
		a, b := w.NewHost("a", HostSpec{Rate: rate}), w.NewHost("b", HostSpec{Rate: rate})
		for range 20 {
			w.Run(w.Now().Add(time.Duration(rapid.Int64Range(0, 3_000_000_000).Draw(t, "pass"))))
			before := b.Mono()
			b.SetRate(rate)
			if a.Mono() != b.Mono() || b.Mono() != before {
				t.Fatalf("at %v: %v, %v, and %v before", w.Now(), a.Mono(), b.Mono(), before)
			}
		}
	})
}

func TestLinks(t *testing.T) {
	w := New(7)
	l := w.NewLink(LinkSpec{Delay: 5 * time.Millisecond, Burst: 10 * time.Millisecond, Backlog: 5 * time.Millisecond, Loss: 0.25})
	const n = 4000
	var arrived []int
	queued := 0
	for i := range n {
		sent := w.Now()
		l.Send(func() {
			if d := w.Now().Sub(sent); d < 5*time.Millisecond {
				t.Fatalf("message %d took %v", i, d)
			} else if d > 6*time.Millisecond {
				queued++
			}
			arrived = append(arrived, i)
		})
		w.Run(w.Now().Add(time.Duration(w.Rand.Int64N(int64(2 * time.Millisecond)))))
	}
	w.Run(w.Now().Add(time.Minute))
	for i := range arrived[1:] {
		if arrived[i] > arrived[i+1] {
			t.Fatalf("message %d overtook %d", arrived[i], arrived[i+1])
		}
	}
	if lost := n - len(arrived); lost < n/5 || lost > n/3 || queued < n/10 || queued > n*9/10 {
		t.Errorf("%d of %d lost, %d queued", lost, n, queued)
	}
}

// TestLiarsAreBelieved: their words lead to the interval that they want.
func TestLiarsAreBelieved(t *testing.T) {
	w := New(3)
	h := w.NewHost("h", HostSpec{Mono: 99 * second})
	k, err := NewKeeper(h, clocksync.Config{Timeline: clocksync.UTC}, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	words := 0
	k.Taken = func(s clocksync.Sample) {
		words++
		const truth = -99 * second
		if got, want := s.Offset, (clocksync.Interval{Earliest: truth + 1000, Latest: truth + 2000}); got.Hull(want) != got || got.Width() > want.Width()+20_000 {
			t.Errorf("the word is %v, the lie was %v", got, want)
		}
	}
	liar := NewLiar(func(Question) (time.Duration, time.Duration) { return 1000, 2000 })
	k.Ask("a", liar, w.NewLink(LinkSpec{Delay: 3 * time.Millisecond}), w.NewLink(LinkSpec{Delay: time.Millisecond}))
	w.Run(20 * second)
	if words < 15 {
		t.Errorf("%d words", words)
	}
}
