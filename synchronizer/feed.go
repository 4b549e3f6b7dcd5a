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

// The bounds of what watchers are told.
const (
	leaseTime   = 5 * time.Second       // after a watcher has asked last
	maxEvents   = 1024                  // that wait to be told; more are counted
	eventPause  = 50 * time.Millisecond // between two rounds of telling
	maxWatched  = 64                    // states of a witness
	maxPlanned  = 32                    // members, moves and refusals of a plan
	nanoSeconds = int64(time.Second)
)

// eventFeed takes events from the owner of the core while somebody watches; a
// goroutine beside it publishes them.
type eventFeed struct {
	until   atomic.Int64 // of the lease, on the host's clock
	waiting chan timedEvent
	untold  atomic.Uint64
	missed  atomic.Uint64 // of these, not yet told to the watchers
}

// timedEvent is an event and the wall clock when it was told.
type timedEvent struct {
	wall  int64
	event monitor.Event
}

// lease has events told for a while.
func (f *eventFeed) lease(now clocksync.Instant) { f.until.Store(int64(now.Add(leaseTime))) }

// put never waits.
func (f *eventFeed) put(e monitor.Event, now func() clocksync.Instant) {
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
	tell := func(o map[string]any, wall int64) {
		line := s.line(o, wall)
		if len(lines)+len(line) > wire.PartBytes {
			flush()
		}
		lines = append(lines, line...)
		count++
	}
	for n := len(s.feed.waiting); ; n-- {
		if missed := s.feed.missed.Swap(0); missed > 0 {
			tell(map[string]any{"event": "skipped", "lines": missed}, first.wall)
			count--
		}
		for _, o := range watchedObjects(first.event) {
			tell(o, first.wall)
		}
		if n == 0 {
			break
		}
		first = <-s.feed.waiting
	}
	flush()
}

// shortPlan is a plan without what one message may have no room for.
func shortPlan(o map[string]any, p *monitor.PlanStatus) map[string]any {
	o["nodes"], o["nodes_left_out"] = p.Nodes[:min(maxPlanned, len(p.Nodes))], max(0, len(p.Nodes)-maxPlanned)
	o["moves"], o["moves_left_out"] = p.Moves[:min(maxPlanned, len(p.Moves))], max(0, len(p.Moves)-maxPlanned)
	o["refused"], o["left_out"] = p.Refused[:min(maxPlanned, len(p.Refused))], p.LeftOut+max(0, len(p.Refused)-maxPlanned)
	return o
}

func (s *Synchronizer) line(o map[string]any, wall int64) []byte {
	o["time"] = time.Unix(wall/nanoSeconds, wall%nanoSeconds).UTC().Format(time.RFC3339Nano)
	o["synchronizer"] = s.name
	line, err := json.Marshal(o)
	if err != nil {
		panic("synchronizer: an event that does not encode: " + err.Error())
	}
	return append(line, '\n')
}

// watchedObjects are the objects of an event; a large witness is cut.
func watchedObjects(e monitor.Event) []map[string]any {
	switch e := e.(type) {
	case monitor.Epoch:
		var all []map[string]any
		for _, d := range e.Dropped {
			all = append(all, map[string]any{"event": "lost", "member": d.Name, "reason": d.Reason})
		}
		return append(all, Object(e))
	case monitor.Plan:
		p := e.Status()
		return []map[string]any{shortPlan(planObject(&p), &p)}
	case monitor.Verdict:
		out := len(e.Witness) - maxWatched
		if out <= 0 {
			break
		}
		e.Witness = e.Witness[:maxWatched]
		o := Object(e)
		o["witness_left_out"] = out
		return []map[string]any{o}
	}
	return []map[string]any{Object(e)}
}
