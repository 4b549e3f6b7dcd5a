package synchronizer

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/clocksync/source"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
)

// The bounds of the events sent to watchers.
const (
	leaseTime   = 5 * time.Second       // after a watcher has asked last
	maxEvents   = 1024                  // that wait to be told; more are counted
	eventPause  = 50 * time.Millisecond // between two rounds of telling
	maxWatched  = 64                    // states of a witness
	maxPlanned  = 32                    // members, moves and refusals of a plan
	maxResult   = 4 << 10               // bytes of a result
	nanoSeconds = int64(time.Second)
)

// eventFeed takes events from the owner of the core while a client watches; a goroutine beside
// it publishes them.
type eventFeed struct {
	until   atomic.Int64 // of the lease, on the host's clock
	waiting chan timedEvent
	untold  atomic.Uint64
	missed  atomic.Uint64 // of these, not yet told to the watchers
}

// timedEvent is an event and the wall clock when it was sent.
type timedEvent struct {
	wall  int64
	event monitor.Event
}

// extendLease has events told for a while.
func (f *eventFeed) extendLease(now clocksync.Instant) { f.until.Store(int64(now.Add(leaseTime))) }

// putEvent never waits.
func (f *eventFeed) putEvent(e monitor.Event, now func() clocksync.Instant) {
	if until := f.until.Load(); until == 0 || clocksync.Instant(until) <= now() {
		return
	}
	select {
	case f.waiting <- timedEvent{source.WallNano(), e}:
	default:
		f.lost(1)
	}
}

func (f *eventFeed) lost(n uint64) {
	f.untold.Add(n)
	f.missed.Add(n)
}

// tellAll publishes events until the context ends.
func (s *Synchronizer) tellAll(ctx context.Context) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		select {
		case <-ctx.Done():
			return
		case first := <-s.feed.waiting:
			s.tellRound(first)
		}
		pause.Reset(eventPause)
	}
}

// tellRound publishes what waits, as JSON lines in as few messages as hold them.
func (s *Synchronizer) tellRound(first timedEvent) {
	var lines []byte
	count := uint64(0)
	flush := func() {
		if count > 0 && s.bus.Publish(s.subjects.Events(s.name), lines) != nil {
			s.feed.lost(count)
		}
		lines, count = lines[:0], 0
	}
	tell := func(l monitor.Line, wall int64) {
		line := s.line(l, wall)
		if len(lines)+len(line) > wire.PartBytes {
			flush()
		}
		lines = append(lines, line...)
		count++
	}
	for n := len(s.feed.waiting); ; n-- {
		if missed := s.feed.missed.Swap(0); missed > 0 {
			tell(monitor.Skipped{Lines: missed}.Line(), first.wall)
			count--
		}
		for _, l := range linesOf(first.event) {
			tell(l, first.wall)
		}
		if n == 0 {
			break
		}
		first = <-s.feed.waiting
	}
	flush()
}

func (s *Synchronizer) line(l monitor.Line, wall int64) []byte {
	l.Time, l.Synchronizer = time.Unix(wall/nanoSeconds, wall%nanoSeconds), s.name
	line, err := json.Marshal(&l)
	if err != nil {
		panic("synchronizer: an event that does not encode: " + err.Error())
	}
	return append(line, '\n')
}

// linesOf are the lines of an event, without the parts that may not fit a message.
func linesOf(e monitor.Event) (all []monitor.Line) {
	l := e.Line()
	switch b := l.Body.(type) {
	case *monitor.Epoch:
		for _, d := range b.Dropped {
			all = append(all, d.Line())
		}
	case *monitor.PlanLine:
		b.PlanCut = &monitor.PlanCut{}
		refused := 0
		b.Nodes, b.NodesLeftOut = cut(b.Nodes, maxPlanned)
		b.Moves, b.MovesLeftOut = cut(b.Moves, maxPlanned)
		b.Refused, refused = cut(b.Refused, maxPlanned)
		b.LeftOut += refused
	case *monitor.VerdictLine:
		if b.Firing != nil {
			b.Witness, b.WitnessLeftOut = cut(b.Witness, maxWatched)
		}
	case *monitor.ProgramLine:
		if n := len(b.Result); n > maxResult {
			b.Result, b.ResultBytes = "", n
		}
	}
	return append(all, l)
}

// cut is the beginning of a list, and how many are left out.
func cut[T any](list []T, limit int) ([]T, int) {
	n := min(limit, len(list))
	return list[:n], len(list) - n
}
