package sim

import (
	"container/heap"
	"encoding/binary"
	"hash"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// World is the true time and what is to happen. It starts at 0.
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
	heap.Push(&w.queue, event{w.now.Add(max(d, 0)), w.order, do})
}

// Run lets everything happen that is due up to a time, which then is now.
func (w *World) Run(until clocksync.Instant) {
	for len(w.queue) > 0 && w.queue[0].at <= until {
		e := heap.Pop(&w.queue).(event) // The queue holds nothing else.
		w.now = e.at
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

// events is a heap by time, then by the order in which they were asked for.
type events []event

func (q events) Len() int { return len(q) }

func (q events) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].order < q[j].order
}

func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q *events) Push(e any) { *q = append(*q, e.(event)) }

func (q *events) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = event{}
	*q = (*q)[:last]
	return e
}
