package workcore

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestQueue: whatever comes and goes, the first is the one with the smallest key, of equal ones the one put first.
func TestQueue(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var q queue
		var want, gone []*open
		for put := range uint64(400) {
			switch o := (*open)(nil); {
			case r.IntN(5) < 2+int(put/100)%2 || len(want) == 0:
				if o = (&open{lease: leased{key: float64(r.IntN(1 + int(seed%4))), put: put}}); len(gone) > 0 && r.IntN(4) == 0 {
					o, gone = gone[0], gone[1:]
				}
				at, _ := slices.BinarySearchFunc(want, o, func(a, b *open) int {
					if a.comesBefore(b) {
						return -1
					}
					return 1
				})
				want = slices.Insert(want, at, o)
				q.pushTask(o)
			case r.IntN(3) == 0:
				i := r.IntN(len(want))
				q.removeTask(want[i])
				gone, want = append(gone, want[i]), slices.Delete(want, i, i+1)
			default:
				q.removeTask(want[0])
				want = want[1:]
			}
			if q.len() != len(want) || len(want) > 0 && q.firstTask() != want[0] {
				t.Fatalf("seed %d, step %d: %d tasks, want %d; or another one is first", seed, put, q.len(), len(want))
			}
		}
	}
}

// TestQueueRoom: a task at the head that stays does not let the line grow with those that come and go behind it.
func TestQueueRoom(t *testing.T) {
	var q queue
	ring := make([]open, 16)
	for put := range uint64(100_000) {
		o := &ring[put%16]
		if put >= 16 {
			if put%16 == 0 {
				continue // The head stays.
			}
			q.removeTask(o)
		}
		o.lease = leased{put: put}
		q.pushTask(o)
	}
	if q.len() != 16 || cap(q.line) > 64 {
		t.Errorf("%d tasks in a line of %d places", q.len(), cap(q.line))
	}
}
