package work

import (
	"cmp"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/workreport"
)

// LoopStats are figures of a loop, as this member knows them. The figures of the home are 0 at the other members.
type LoopStats struct {
	Iteration int // that runs, from 1; 0: none yet

	// Of the home:
	Moved      int     // rows that came to a member which did not have them in the iteration before
	Released   int     // of Moved, rows of members that were withdrawn, have left or were lost
	Redone     int     // rows of lost members that others have got
	Efficiency float64 // of the last iteration that is over: its rows by those that the members could do meanwhile at their speeds; 0: not known
	Overall    float64 // the same of all iterations together

	// Of a member that is not the home:
	Withdrawals int           // how often it was asked to give its rows back
	Withdrawing time.Duration // the longest time from such a request until its body did no more work
	Used        float64       // part of all cores that the process has used since, until it took part again; NaN: not known
}

// Stats returns the figures of this moment.
func (l *ElasticLoop) Stats() LoopStats {
	l.space.mu.Lock()
	defer l.space.mu.Unlock()
	return l.stats(l.space.link.Now())
}

// stats has the figures. The lock is held.
func (l *ElasticLoop) stats(now clocksync.Instant) LoopStats {
	if l.machine == nil {
		return LoopStats{Used: math.NaN()}
	}
	r, w := l.machine.Report(), &l.withdrawal
	return LoopStats{
		Iteration: r.Number, Moved: r.Moved, Released: r.Released, Redone: r.Redone, Efficiency: r.Efficiency, Overall: r.Overall,
		Withdrawals: w.count, Withdrawing: w.longest, Used: w.share(now),
	}
}

// Speeds returns, at the home, the rows a second that each member does in this loop, by its name, as measured last. Time
// for reading rows is left out. Another loop of this name in a later phase divides its first iteration by them, and one
// with [SpeedsOf].
func (l *ElasticLoop) Speeds() map[string]float64 {
	l.space.mu.Lock()
	defer l.space.mu.Unlock()
	if l.machine == nil {
		return nil
	}
	return l.machine.Speeds()
}

// loopWithdrawal measures how a member gives its rows back, and what it uses after that (ADM: obtrusiveness). It is
// guarded by the lock of the space.
type loopWithdrawal struct {
	busy    bool // the body has an iteration, and has not given its partial result
	away    bool
	ended   bool // of away: the body does no more work
	asked   clocksync.Instant
	count   int
	longest time.Duration

	since      clocksync.Instant // the end of the work
	before     time.Duration     // processor time of the process until then; negative: not known
	wall, used time.Duration     // of earlier withdrawals: the time after the end of the work, and the processor time
}

// noteWithdrawal notes that this member was asked to give its rows back, or takes part again. The lock is held.
func (l *ElasticLoop) noteWithdrawal(now clocksync.Instant) {
	w := &l.withdrawal
	away := l.gives || l.pauses
	switch {
	case away && !w.away:
		w.away, w.ended, w.asked = true, false, now
		if w.count++; !w.busy {
			l.noteIdle(now)
		}
	case !away && w.away:
		if w.ended && w.before >= 0 {
			w.wall, w.used = w.wall+now.Sub(w.since), w.used+max(0, processorTime()-w.before)
		}
		w.away = false
	}
}

// noteIdle notes that the body does no more work in the iteration. The lock is held.
func (l *ElasticLoop) noteIdle(now clocksync.Instant) {
	w := &l.withdrawal
	if w.busy = false; w.away && !w.ended {
		w.ended, w.since, w.before = true, now, processorTime()
		w.longest = max(w.longest, now.Sub(w.asked))
	}
}

// leastWall is how long withdrawals have to be until their share is reported: systems count processor time in steps.
const leastWall = 50 * time.Millisecond

// share is the part of all cores that the process has used after its withdrawals.
func (w *loopWithdrawal) share(now clocksync.Instant) float64 {
	wall, used := w.wall, w.used
	if w.away && w.ended && w.before >= 0 {
		wall, used = wall+now.Sub(w.since), used+max(0, processorTime()-w.before)
	}
	if wall < leastWall || used < 0 {
		return math.NaN()
	}
	return min(1, used.Seconds()/wall.Seconds()/float64(runtime.NumCPU()))
}

// maxSpeeds bounds the loops whose speeds a space keeps.
const maxSpeeds = 64

// keepSpeeds keeps the speeds of a loop that is over. The lock is held.
func (s *Space) keepSpeeds(l *ElasticLoop) {
	speeds := l.machine.Speeds()
	if len(speeds) == 0 {
		return
	}
	if s.speeds == nil || len(s.speeds) >= maxSpeeds && s.speeds[l.name] == nil {
		s.speeds = map[string]map[string]float64{}
	}
	s.speeds[l.name] = speeds
}

// knownSpeeds returns the speeds of a loop that runs, or is over; nil: none were measured. The lock is held.
func (l *ElasticLoop) knownSpeeds(name string) map[string]float64 {
	if other := l.space.loops[name]; other != nil {
		return other.machine.Speeds()
	}
	return l.space.speeds[name]
}

// reportLoops tells how the loops of this member stand: the first of them, by name. The lock is held.
func (s *Space) reportLoops(now clocksync.Instant) []workreport.Loop {
	list := []workreport.Loop{}
	for name, l := range s.loops {
		t := l.stats(now)
		r := workreport.Loop{
			Name: name, Home: l.home, Rows: l.total, Iteration: t.Iteration, Moved: t.Moved, Released: t.Released, Redone: t.Redone,
			Efficiency: t.Efficiency, Overall: t.Overall, Withdrawals: t.Withdrawals, Withdrawing: t.Withdrawing.Seconds(),
		}
		if !math.IsNaN(t.Used) {
			r.Used = &t.Used
		}
		for member, speed := range l.machine.Speeds() {
			r.Speeds = append(r.Speeds, workreport.Speed{Member: member, Rows: speed})
		}
		slices.SortFunc(r.Speeds, func(a, b workreport.Speed) int { return strings.Compare(a.Member, b.Member) })
		r.Speeds = r.Speeds[:min(len(r.Speeds), workreport.MaxHolders)]
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b workreport.Loop) int { return cmp.Compare(a.Name, b.Name) })
	return list[:min(len(list), workreport.MaxLoops)]
}
