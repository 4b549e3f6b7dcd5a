package synchronizer

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/bus/bustest"
	"github.com/gopegasus/pegasus/monitor"
)

// TestFrozenServer: a server that stands still for longer than the limit of silence makes no
// member silent; a member that says nothing afterwards is silent as ever.
func TestFrozenServer(t *testing.T) {
	const cfg = `
synchronizers:
  gsync:
    members: {group: g, count: {min: 1, max: 2}}
    silence: {after: 1s, then: drop}
    state: {n: int}
`
	bustest.Bubble(t, func(t *testing.T) {
		var mu sync.Mutex
		var lost []monitor.Dropped
		told := func() []monitor.Dropped {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(lost)
		}
		begun := time.Now()
		c := newCrowd(t, cfg, Options{
			now: func() clocksync.Instant { return clocksync.Instant(time.Since(begun) + time.Hour) },
			Observe: func(e monitor.Event) {
				if e, ok := e.(monitor.Epoch); ok {
					mu.Lock()
					defer mu.Unlock()
					lost = append(lost, e.Dropped...)
				}
			},
		})
		seq := uint64(0)
		say := func(total time.Duration, members ...string) {
			const pause = 300 * time.Millisecond
			for range total / pause {
				seq++
				for _, m := range members {
					c.send(c.subjects.State(m), c.batch(m, seq, clocksync.Instant(seq)*clocksync.Instant(time.Second), 1))
				}
				time.Sleep(pause)
			}
			synctest.Wait()
		}
		for _, m := range []string{"a", "b"} {
			c.send(c.subjects.State(m), c.hello(m))
		}
		say(900*time.Millisecond, "a", "b")
		if s, err := c.s.Status(t.Context()); err != nil || s.Epoch != 2 || len(s.Members) != 2 {
			t.Fatalf("%+v, %v", s, err)
		}
		thaw := c.local.Freeze()
		say(1800*time.Millisecond, "a", "b")
		thaw()
		say(900*time.Millisecond, "a", "b")
		if dropped := told(); len(dropped) != 0 {
			t.Errorf("the server stood still, and %v are dropped", dropped)
		}
		say(1800*time.Millisecond, "a")
		if dropped := told(); len(dropped) != 1 || dropped[0].Name != "b" {
			t.Errorf("dropped: %v", dropped)
		}
	})
}
