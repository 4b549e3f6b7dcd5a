package sim

import (
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

func (j *judge) askServers(faults int) {
	w := j.world
	liars := w.Rand.Perm(2*faults + 1)[:faults]
	lie := j.anyLie()
	near := w.Between(0, 20*time.Millisecond)
	for i := range 2*faults + 1 {
		s := w.NewTimeServer(w.Between(0, 2*time.Millisecond))
		for _, l := range liars {
			if l == i {
				s = NewLiar(lie)
			}
		}
		j.keeper.Ask(name(i), s, j.anyLink(near), j.anyLink(near))
	}
}

func name(i int) string { return string(rune('a' + i)) }

func (j *judge) anyLink(near time.Duration) *Link {
	w := j.world
	s := LinkSpec{Delay: 20*time.Microsecond + near + w.Exponential(5*time.Millisecond)}
	if w.Rand.IntN(3) > 0 {
		s.Burst = w.Between(5*time.Millisecond, 50*time.Millisecond)
		s.Backlog = s.Burst * time.Duration(w.Rand.IntN(95)) / 100
	}
	if w.Rand.IntN(4) == 0 {
		s.Loss = w.Rand.Float64() / 2
	}
	return w.NewLink(s)
}

// anyLie is what all liars of a world say: that the offset lies just beside the
// truth, mostly; the nearer, the harder to tell.
func (j *judge) anyLie() Lie {
	w := j.world
	beside := w.Between(time.Microsecond, 50*time.Microsecond)
	width := w.Exponential(5 * time.Millisecond)
	above := func(d time.Duration) (time.Duration, time.Duration) { return d, d + width }
	below := func(d time.Duration) (time.Duration, time.Duration) { return -d - width, -d }
	turn := clocksync.Instant(w.Between(0, worldLasts))
	switch w.Rand.IntN(7) {
	case 0:
		return func(Question) (time.Duration, time.Duration) { return above(beside) }
	case 1:
		return func(Question) (time.Duration, time.Duration) { return below(beside) }
	case 2: // Now here, now there.
		return func(Question) (time.Duration, time.Duration) {
			if w.Rand.IntN(2) == 0 {
				return above(beside)
			}
			return below(beside)
		}
	case 3: // Leading away more slowly than the clock may drift.
		return func(q Question) (time.Duration, time.Duration) {
			return above(beside + time.Duration(q.Arrived/10_000))
		}
	case 4: // Far off.
		return func(Question) (time.Duration, time.Duration) { return above(time.Hour) }
	case 5: // Honest for a time.
		return func(q Question) (time.Duration, time.Duration) {
			if q.Arrived < turn {
				return -width, width
			}
			return above(beside)
		}
	default: // At random.
		return func(Question) (time.Duration, time.Duration) {
			return above(w.Between(-50*time.Millisecond, 50*time.Millisecond))
		}
	}
}
