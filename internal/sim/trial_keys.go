package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
)

// The words of once, as the configuration has them.
const (
	onceRun    = "run"
	onceEpoch  = "epoch"
	onceMember = "member"
)

// firings are the firings of a predicate in a term, as judge K remembers them.
type firings struct {
	epoch uint64            // of the last one
	first clocksync.Instant // the earliest that may be the first one since it was last ready to fire again
	last  map[standing]shot
}

// standing is a member since the epoch that it joined in; the zero standing is the predicate as a whole.
type standing struct {
	member string
	joined uint64
}

// shot is the last firing for a member, or of a predicate.
type shot struct {
	at, from clocksync.Instant // when it fired; since when its witness truly held
	epoch    uint64
	gaps     uint64 // that the synchronizer had counted
	members  []string
}

// key tells predicates apart over reloads: one with another text is another one.
func (x *text) key() string { return x.Name + "\n" + x.Text }

// forgetFirings forgets the firings of predicates that another configuration does not have.
func (l *leader) forgetFirings() {
	fired := map[string]*firings{}
	for _, x := range l.texts {
		if f := l.fired[x.key()]; f != nil {
			fired[x.key()] = f
		}
	}
	l.fired = fired
}

// standing is the standing of a member of a witness in an epoch.
func (l *leader) standing(member string, epoch uint64) (s standing) {
	s.member = member
	for _, at := range l.joins[member] {
		if at <= epoch {
			s.joined = at
		}
	}
	return s
}

// runsKnown is for how long a threshold surely knows the runs of its members, which are eight of each.
const runsKnown = 200 * time.Millisecond

// judgeKeys is judge K: a predicate fires no more often, and no sooner, than once, cooldown, until and after say. It held from
// one instant to another.
func (t *trial) judgeKeys(l *leader, x *text, v *monitor.Verdict, from, to clocksync.Instant) {
	now := shot{at: t.now, from: from, epoch: v.Decision.Epoch}
	f := l.fired[x.key()]
	if f == nil {
		f = &firings{last: map[standing]shot{}}
		l.fired[x.key()] = f
	}
	var of standing
	if x.Detector.Each && len(v.Witness) == 1 {
		of = l.standing(v.Witness[0].Name, now.epoch)
	}
	threshold := x.Detector.AtLeast > 1 && x.Detector.Least == nil
	if threshold {
		for i := range v.Witness {
			now.members = append(now.members, v.Witness[i].Name)
		}
	}
	if threshold || x.Detector.Until != nil {
		now.gaps = l.askQuestion(synccore.Question{Counts: true}).Counts.Gaps
	}
	last, again := f.last[of]
	switch {
	case x.Once == onceRun && (f.epoch > 0 || t.firedBefore(l, x)):
		t.addBreach('K', "%s fired twice in a run, and says once: run", x.Name)
	case x.Once == onceEpoch && f.epoch == now.epoch:
		t.addBreach('K', "%s fired twice in epoch %d, and says once: epoch", x.Name, now.epoch)
	case x.Once == onceMember && again:
		t.addBreach('K', "%s fired twice for %s, which joined in epoch %d, and says once: member", x.Name, of.member, of.joined)
	case again && now.at.Sub(last.at) < x.Cooldown-x.Cooldown/1000:
		t.addBreach('K', "%s fired %v after it had fired, and has a cooldown of %v", x.Name, now.at.Sub(last.at), x.Cooldown)
	case again && last.epoch == now.epoch && last.at < now.at && last.gaps == now.gaps && !l.tooOld && // In one step it is not known where its gaps are.
		!t.readyAgain(x, v, of.member, last.from, min(to, t.now)):
		t.addBreach('K', "%s fired twice, and its until was false %s: %s: %s", x.Name, spanText(last.from, min(to, t.now)), x.untilText(l.level), witnessText(v))
	}
	// What members were before the epoch the term need not know, and of a member only its newest runs.
	known := threshold && min(last.from, now.from) >= l.begun && now.at.Sub(min(last.from, now.from)) < runsKnown
	if known && again && last.epoch == now.epoch && last.at < now.at && last.gaps == now.gaps && !l.tooOld && t.stayed(x, &last, &now) {
		t.addBreach('K', "%s fired twice, and as many as it asks for held its condition %s: %s", x.Name, spanText(min(last.from, now.from), max(last.from, now.from)), witnessText(v))
	}
	for _, a := range x.After {
		if first := t.firstOf(l, a.Rule); t.now.Sub(first) < a.Wait-a.Wait/1000 {
			t.addBreach('K', "%s fired %v after %s, and waits for %v", x.Name, t.now.Sub(first), a.Rule, a.Wait)
		}
	}
	if f.epoch == 0 || f.epoch == now.epoch {
		f.first = t.now // It was ready in between, since in an epoch it fires again for no other reason.
	}
	f.epoch, f.last[of] = now.epoch, now
	if x.Once == onceRun {
		t.ran[ranKey{x.key(), l.term}] = v.Decision.Number
	}
	if _, ok := t.earliest[x.Name]; !ok {
		t.earliest[x.Name] = t.now
	}
}

// ranKey is a predicate in a term.
type ranKey struct {
	key  string
	term uint64
}

// firedBefore reports whether a predicate has fired in an earlier term of the same run, as the later one knows.
func (t *trial) firedBefore(l *leader, x *text) bool {
	for o, on := t.origins[l.term]; on; o, on = t.origins[o.term] {
		if n := t.ran[ranKey{x.key(), o.term}]; n > 0 && n <= o.last {
			return true
		}
	}
	return false
}

// firstOf is the earliest that may be the first firing of a predicate since it was last ready again: with a process that stands
// by it may be a firing of an earlier term.
func (t *trial) firstOf(l *leader, name string) clocksync.Instant {
	if x := l.texts[name]; x != nil && l.fired[x.key()] != nil && len(t.several) == 1 {
		return l.fired[x.key()].first
	}
	if at, ok := t.earliest[name]; ok && len(t.several) > 1 {
		return at
	}
	return t.now
}

// stayed reports whether a threshold was reached all the time between two firings by the runs of their members alone, which
// the synchronizer knows.
func (t *trial) stayed(x *text, a, b *shot) bool {
	if a.from > b.from {
		a, b = b, a
	}
	at := []clocksync.Instant{a.from, b.from}
	var runs []stay
	for _, s := range []*shot{a, b} {
		for _, name := range s.members {
			r := t.stayOf(x, name, s.from)
			runs = append(runs, r)
			for _, edge := range []clocksync.Instant{r.from - 1, r.to} {
				if edge > a.from && edge < b.from {
					at = append(at, edge)
				}
			}
		}
	}
	return !slices.ContainsFunc(at, func(at clocksync.Instant) bool {
		held := map[string]bool{}
		for _, r := range runs {
			if r.from <= at && at < r.to {
				held[r.member] = true
			}
		}
		return len(held) < x.Detector.AtLeast
	})
}

// stay is how long a condition held for a member.
type stay struct {
	member   string
	from, to clocksync.Instant
}

// stayOf is the run of a member that holds at an instant.
func (t *trial) stayOf(x *text, member string, at clocksync.Instant) stay {
	holds, truth, r := x.localCondition(t.memberOf(member)), t.findActor(member).truth, stay{member: member}
	for i := range truth {
		s := &truth[i]
		switch {
		case !holds(s.row) || r.to != s.from:
			if r.from <= at && at < r.to {
				return r
			}
			if r.from, r.to = s.from, s.from; !holds(s.row) {
				continue
			}
			r.to = s.to
		default:
			r.to = s.to
		}
	}
	return r
}

func (x *text) untilText(level *plan.Level) string {
	return conditionText(level, cmp.Or(x.Detector.Until, x.Until), x.Detector.Each)
}

// readyAgain reports whether a predicate with until may have become ready to fire again in a time: until was true of the members
// of the witness, or was unknown of a member.
func (t *trial) readyAgain(x *text, v *monitor.Verdict, member string, from, to clocksync.Instant) bool {
	switch {
	case x.Detector.Until != nil:
		for _, s := range t.findActor(member).truth {
			if s.to <= from || s.from > to {
				continue
			}
			x.one.Reset([]predicates.Member{t.memberOf(member)})
			x.one.Set(0, s.row)
			when, until := x.Detector.Local.Eval(x.one).Truth, x.Detector.Until.Eval(x.one).Truth
			if until == predicates.True || when == predicates.Unknown || when == predicates.False && until == predicates.Unknown {
				return true
			}
		}
		return false
	case x.Until == nil || !ofStates(x.Until) || v.Modality != "" || online(x.Rule):
		return true
	}
	members := make([]predicates.Member, len(v.Witness))
	at := []clocksync.Instant{from}
	for i := range v.Witness {
		members[i] = t.memberOf(v.Witness[i].Name)
		for _, s := range t.findActor(members[i].Name).truth {
			if s.from > from && s.from <= to {
				at = append(at, s.from)
			}
		}
	}
	x.all.Reset(members)
	return slices.ContainsFunc(at, func(at clocksync.Instant) bool {
		for i := range members {
			x.all.SetUnknown(i)
			truth := t.findActor(members[i].Name).truth
			k, found := slices.BinarySearchFunc(truth, at, func(s stretch, at clocksync.Instant) int { return cmp.Compare(s.from, at) })
			if !found {
				k--
			}
			if k >= 0 && truth[k].to > at {
				x.all.Set(i, truth[k].row)
			}
		}
		return x.Until.Eval(x.all).Truth == predicates.True
	})
}
