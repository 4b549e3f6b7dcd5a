package work

import (
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/workcore"
	"github.com/gopegasus/pegasus/internal/workreport"
	"github.com/gopegasus/pegasus/scgs"
)

// row is what the member tells of the space in its state. It has a lock of its own, since the link
// reads it under its lock.
type row struct {
	mu     sync.Mutex
	told   workcore.Told
	awaits bool
	stuck  int
	slots  int
	calls  string // with the key record
}

// set has the next state tell other values.
func (r *row) set(t workcore.Told, awaits bool, stuck, slots int, calls string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told, r.awaits, r.stuck, r.slots, r.calls = t, awaits, stuck, slots, calls
}

func (r *row) stuckNow() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stuck
}

// end is for a member that has closed the space: it does not hold up the others.
func (r *row) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told, r.awaits = workcore.Told{Idle: true, Settled: true, Phase: r.told.Phase}, false
}

// fill gives the value of a field of the state.
func (r *row) fill(f scgs.Field) (scgs.Value, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := &r.told
	switch f.Name {
	case "work.idle":
		return scgs.BoolValue(t.Idle), true
	case "work.settled":
		return scgs.BoolValue(t.Settled), true
	case "work.awaits":
		return scgs.BoolValue(r.awaits), true
	case "work.phase":
		return scgs.IntValue(int64(t.Phase)), true //nolint:gosec // Phases are counted from 1.
	case "work.queued":
		return scgs.IntValue(int64(t.Queued)), true
	case "work.running":
		return scgs.IntValue(int64(t.Running)), true
	case "work.open":
		return scgs.IntValue(int64(t.Open)), true
	case "work.objects":
		return scgs.IntValue(int64(t.Objects)), true
	case "work.stuck":
		return scgs.IntValue(int64(r.stuck)), true
	case "work.moved":
		return scgs.IntValue(int64(t.Moved)), true //nolint:gosec // It counts from 0.
	case "work.slots":
		if t.Load == nil {
			return scgs.IntValue(int64(r.slots)), true
		}
		return loadField(t.Load, f.Name)
	case "work.calls":
		return scgs.StringValue(r.calls), true
	default:
		return loadField(t.Load, f.Name)
	}
}

// recordedCalls are the figures of calls that are told with the key record. The lock is held.
func recordedCalls(s *Space) string {
	if !s.section.Record || s.calls.machine == nil {
		return ""
	}
	return workreport.CallsText(s.calls.machine.Report())
}

// tell reports what has changed. Whether the member is idle, in which phase it is, and, while it is
// idle, whether its program waits, is told at once: the end of a phase rests on it. While it is not idle
// no phase ends, so the rest is told at a pace. The lock is held.
func (s *Space) tell(now clocksync.Instant) {
	if s.entered != s.phase || s.machine == nil || s.err != nil {
		return // A phase is told once this member can hear of its end.
	}
	t, before := s.toldNow(), &s.told
	awaits := slices.ContainsFunc(s.waiters, func(w *waiter) bool { return w.awaits })
	exact := t.Idle != before.Idle || t.Phase != before.Phase || t.Idle && (t.Settled != before.Settled || awaits != s.awaits)
	if !exact && now < s.estimate.Add(pauseOf(&t, before)) { // The loop looks again then.
		return
	}
	calls := recordedCalls(s)
	if t == *before && awaits == s.awaits && s.stuck == s.row.stuckNow() && calls == s.toldCalls {
		return
	}
	s.told, s.toldCalls, s.awaits, s.estimate = t, calls, awaits, now
	s.row.set(t, awaits, s.stuck, len(s.runs), calls)
	if err := s.link.Tell(s.row.fill); err != nil {
		s.log.Warn("the state of the space cannot be told", "error", err)
	}
}

// toldNow is what is to be told. The lock is held.
func (s *Space) toldNow() workcore.Told {
	t := s.out.Told
	t.Idle = t.Idle && !s.inLoop()
	if s.logs != nil && s.logs.unsure {
		t.Idle = false
	}
	return t
}

// nextEstimate is when estimates may be told again; MaxInstant: they have not changed.
func (s *Space) nextEstimate() clocksync.Instant {
	if s.toldNow() == s.told && recordedCalls(s) == s.toldCalls || s.entered != s.phase {
		return clocksync.MaxInstant
	}
	t := s.toldNow()
	return s.estimate.Add(pauseOf(&t, &s.told))
}

// pauseOf returns the least time before a report of t: a short one if tasks begin or cease to wait, as predicates fetch tasks.
func pauseOf(t, told *workcore.Told) time.Duration {
	if (t.Queued > 0) != (told.Queued > 0) {
		return turnPause
	}
	return estimatePause
}

// Stats are figures of this member's part in the space.
type Stats struct {
	Phase   uint64 // from 1
	Queued  int    // tasks that wait here
	Running int    // tasks that run here
	Open    int    // tasks that this member has put and that are not done
	Stuck   int    // functions that go on though their contexts have ended
	Tasks   uint64 // that this member has put so far, with what functions and splits have put
	Moved   uint64 // tasks and parts of bags that came here from other members
	Given   uint64 // how often a task that this member has put came to another one
	Redone  uint64 // tasks of this member that another one was running, or may have begun, when it was lost
	// Withdrawn says that this member takes no work now, by the key withdraw of the configuration.
	Withdrawn   bool
	Stay        int    // objects that stay here nevertheless: they ran here last, and are pinned or bound to members
	Withdrawals uint64 // how often this member was withdrawn
	// Local, Directed and Undirected count messages to objects by what they cost: those to objects that this member has
	// created, which cost no message of NATS; posts to the member that has created the object; and questions to all members
	// which of them has.
	Local, Directed, Undirected uint64
	// Ordered counts the moves of objects that the synchronizer has ordered here, with a strategy that is central, and
	// Refused counts the refused ones among them.
	Ordered, Refused uint64

	Dropped uint64 // messages to other members that found the queue full; what matters was sent again
	Bad     uint64 // messages of other members that could not be read
}

// Stats returns the figures of this moment.
func (s *Space) Stats() Stats {
	s.sender.mu.Lock()
	dropped := s.sender.dropped
	s.sender.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	t, mail := &s.out.Told, s.machine.Mail()
	ordered, refused := s.machine.Ordered()
	return Stats{Ordered: ordered, Refused: refused, Phase: s.phase, Queued: t.Queued, Running: t.Running, Open: t.Open, Stuck: s.stuck, Tasks: s.machine.Counts().Put, Moved: t.Moved, Given: t.Given, Redone: t.Redone, Withdrawn: t.Withdrawn, Stay: t.Stay, Withdrawals: t.Withdrawals, Local: mail.Local, Directed: mail.Directed, Undirected: mail.Undirected, Dropped: dropped, Bad: s.bad}
}

// reportPause is the least time between two answers to those who ask how the space stands here. More
// than one may ask at a time: all hear each answer.
const reportPause = 100 * time.Millisecond

// answerStatus answers how the space stands here.
func (s *Space) answerStatus(string, []byte) {
	s.mu.Lock()
	now := s.link.Now()
	if s.err != nil || now < s.reported.Add(reportPause) {
		s.mu.Unlock()
		return
	}
	s.reported = now
	r := s.machine.Report(now)
	r.Loops, r.Calls = s.reportLoops(now), s.calls.machine.Report()
	if s.logs != nil {
		s.logs.fillReport(r.Log)
	}
	r.Stuck, r.Awaits = s.stuck, slices.ContainsFunc(s.waiters, func(w *waiter) bool { return w.awaits })
	s.mu.Unlock()
	s.sender.mu.Lock()
	r.Dropped = s.sender.dropped
	s.sender.mu.Unlock()
	data, err := json.Marshal(r)
	_, told := s.link.Status()
	if err = errors.Join(err, s.conn.Publish(told, data)); err != nil {
		s.log.Debug("how the space stands could not be told", "error", err)
	}
}

// Holding is what one member has of the tasks that this member has put.
type Holding struct {
	Member string // its name
	Tasks  int    // that it has
	Runs   int    // of them run
}

// Holdings lists the members that have tasks that this member has put, by name; this member too.
func (s *Space) Holdings() []Holding {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Holding
	for _, h := range s.machine.Holdings() {
		list = append(list, Holding(h))
	}
	return list
}
