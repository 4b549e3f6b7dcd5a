package loopcore

import (
	"maps"

	partition "github.com/gopegasus/pegasus/balance/span"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/workcore"
)

// Report is how a loop stands at one member. All but Number are figures of the home.
type Report struct {
	Number   int // the iteration, from 1; 0: none yet
	Moved    int // rows that came to a member which did not have them before
	Released int // of Moved, rows of members that are gone or gave them back
	Redone   int // rows of lost members that were handed out again

	Efficiency float64 // of the last iteration that is over: its rows, as a part of those that the members could do meanwhile; 0: not known
	Overall    float64 // the same of all iterations together
}

// yields measures how fast the iterations of a loop are, at its home.
type yields struct {
	speed map[string]float64 // rows a second by the name of a member, as measured last
	began clocksync.Instant  // the iteration
	lost  float64            // rows that members which are gone could do in the iteration

	last, rows, could float64 // the efficiency of the last iteration, and the two sides of all
}

// Report returns how the loop stands here.
func (l *Loop) Report() Report {
	r := Report{Number: l.number, Moved: l.moved, Released: l.released, Redone: l.redo, Efficiency: l.last}
	if l.could > 0 {
		r.Overall = l.rows / l.could
	}
	return r
}

// Speeds returns, at the home, the rows a second that each member does, by its name. Members whose speed was not
// measured are left out; members that are gone stay in.
func (l *Loop) Speeds() map[string]float64 { return maps.Clone(l.speed) }

// noteOpen notes that an iteration begins.
func (l *Loop) noteOpen(now clocksync.Instant) { l.began, l.lost = now, 0 }

// noteGone notes that a member is gone.
func (l *Loop) noteGone(now clocksync.Instant, s *seat) {
	l.noteSpeed(s)
	if l.open && s.in {
		l.lost += s.speed * l.worked(now, s)
	}
}

// noteSpeed keeps the speed of a member.
func (l *Loop) noteSpeed(s *seat) {
	if s.speed > 0 {
		if l.speed == nil {
			l.speed = map[string]float64{}
		}
		l.speed[s.Name] = s.speed
	}
}

// noteMoved notes that a member gets rows within the iteration, and returns how many of them it did not have before.
func (l *Loop) noteMoved(s *seat, part []workcore.Span) int {
	n := partition.Moved([][]workcore.Span{s.before}, [][]workcore.Span{part})
	l.moved += n
	return n
}

// worked is for how many seconds a member was there for the iteration.
func (l *Loop) worked(now clocksync.Instant, s *seat) float64 {
	if s.until != 0 {
		now = s.until
	}
	return max(0, now.Sub(l.began).Seconds())
}

// noteReduced notes that the iteration is over. A member that has done no row has no speed of this iteration: it
// counts with its earlier speed, if any.
func (l *Loop) noteReduced(now clocksync.Instant) {
	could := l.lost
	for _, s := range l.all() {
		if l.noteSpeed(s); s.in {
			could += s.speed * l.worked(now, s)
		}
	}
	if l.last = 0; could > 0 {
		l.last = float64(l.opts.Total) / could
		l.rows, l.could = l.rows+float64(l.opts.Total), l.could+could
	}
}
