package sim

import (
	"encoding/binary"
	"hash"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// World is the true time and the events to come. It starts at 0.
type World struct {
	// Rand is the only source of chance in the world.
	Rand *rand.Rand

	now   clocksync.Instant
	queue events
	order uint64
	trace hash.Hash64
}

// New returns the world of a seed.
func New(seed uint64) *World {
	return &World{Rand: rand.New(rand.NewPCG(seed, 0)), trace: fnv.New64a()}
}

// Now is the true time.
func (w *World) Now() clocksync.Instant { return w.now }

// After lets something happen once d has passed; a d below 0 counts as 0. What
// is to happen at one time happens in the order it was asked for.
func (w *World) After(d time.Duration, do func()) {
	w.order++
	w.queue.push(event{w.now.Add(max(d, 0)), w.order, do})
}

// Run lets everything happen that is due up to a time, which then is now.
func (w *World) Run(until clocksync.Instant) {
	for len(w.queue) > 0 && w.queue[0].at <= until {
		e := w.queue.popEvent()
		w.now = max(w.now, e.at)
		e.do()
	}
	w.now = max(w.now, until)
}

// Note adds what happened now to the trace.
func (w *World) Note(what string, values ...int64) {
	b := binary.LittleEndian.AppendUint64([]byte(what), uint64(w.now))
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	_, _ = w.trace.Write(b) // A hash takes everything.
}

// Trace is a hash of all notes so far.
func (w *World) Trace() uint64 { return w.trace.Sum64() }

// Between draws from [a, b].
func (w *World) Between(a, b time.Duration) time.Duration {
	return a + time.Duration(w.Rand.Int64N(int64(b-a)+1))
}

// Exponential draws from the exponential distribution of a mean.
func (w *World) Exponential(mean time.Duration) time.Duration {
	return time.Duration(w.Rand.ExpFloat64() * float64(mean))
}

type event struct {
	at    clocksync.Instant
	order uint64
	do    func()
}

// events is a heap by time, then by the order in which they were asked for. It does not use
// container/heap, which allocates for each event.
type events []event

func (q events) less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].order < q[j].order
}

func (q *events) push(e event) {
	*q = append(*q, e)
	h := *q
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.less(i, up) {
			return
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

func (q *events) popEvent() event {
	h := *q
	last := len(h) - 1
	top := h[0]
	h[0], h[last] = h[last], event{}
	h = h[:last]
	for i := 0; ; {
		least := 2*i + 1
		if least >= last {
			break
		}
		if right := least + 1; right < last && h.less(right, least) {
			least = right
		}
		if !h.less(least, i) {
			break
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
	*q = h
	return top
}
