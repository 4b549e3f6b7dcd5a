package clocksync

import (
	"cmp"
	"slices"
	"time"
)

// Bound fuses the knowledge at the reading now and returns the line to stamp by from then on. A
// reading before an earlier one counts as that one.
func (e *Estimator) Bound(now Instant) Bound {
	e.now = max(e.now, now)
	e.passLeap(e.now)
	e.last = e.fuse(e.now)
	return e.last
}

func (e *Estimator) fuse(now Instant) Bound {
	v := e.vote(now)
	e.voters = len(v.servers)
	if len(v.servers) <= e.config.Faults || e.lost && len(v.offsets) < e.need(e.voters+v.waiting) {
		return e.noBound()
	}
	where := coveredBy(v.offsets, e.conflictsAmong(v.servers[:len(v.offsets)]), e.need(e.voters))
	if len(where) == 0 {
		return e.distrustAll(now, Taint{Outliers: v.outliers(deepestPoint(v.offsets))})
	}
	until := v.until()
	if e.line.Quality.Status == Unknown || now > e.line.Until {
		e.from = now
	} else {
		before := e.where.widenBy(growthOver(now.Sub(e.line.At), e.line.Drift))
		both := where.intersectSets(before)
		if len(both) == 0 {
			return e.distrustAll(now, Taint{Past: true, Outliers: v.outliers(before)})
		}
		if until <= e.line.Until { // Else the line before says less than is needed.
			where = both
		}
	}
	if where.hullOf() == Unbounded {
		return e.noBound()
	}
	e.where = where
	return e.publish(now, Bound{At: now, Until: until, Offset: where.hullOf()}, v.servers)
}

// vote is which servers count at a reading. First come those that are not known
// to be wrong, each with where it allows the offset to be.
type vote struct {
	servers []*server
	offsets []Interval
	waiting int // servers that have not said enough since trust was lost
}

func (e *Estimator) vote(now Instant) (v vote) {
	var wrong []*server
	for _, s := range e.servers {
		s.dropSamples(func(s Sample) bool { return s.usableUntil() < now })
		switch {
		case s.isSilent(now):
		case e.lost && s.fresh < memory:
			v.waiting++
		case s.wrong:
			wrong = append(wrong, s)
		default:
			v.servers = append(v.servers, s)
			v.offsets = append(v.offsets, s.joinOffsets(now, e.config.Drift))
		}
	}
	v.servers = append(v.servers, wrong...)
	return v
}

// until is the last reading at which the same samples may be used.
func (v vote) until() Instant {
	until := MaxInstant
	for _, s := range v.servers {
		until = min(until, s.usableUntil())
	}
	return until
}

// outliers names the servers that are wrong or not where they should be.
func (v vote) outliers(should intervalSet) (names []string) {
	for i, s := range v.servers {
		if i >= len(v.offsets) || !should.overlapsInterval(v.offsets[i]) {
			names = append(names, s.source+"/"+s.name)
		}
	}
	return names
}

// need is how many servers must allow a point for it to be believed: all but
// those that may be wrong. Once trust was lost that does not do, for one server
// of two would bring it back: so many must agree that one of them is right.
func (e *Estimator) need(servers int) int {
	if e.lost {
		return max(servers-e.config.Faults, e.config.Faults+1)
	}
	return servers - e.config.Faults
}

// noBound is the bound when there is none.
func (e *Estimator) noBound() Bound {
	b := Bound{
		From: MinInstant, Until: MaxInstant, At: e.now, Offset: Unbounded, Seen: e.seen, Tainted: MaxInstant,
		Quality: Quality{Source: joinSources(e.servers), Timeline: e.config.Timeline, Expires: MaxInstant},
	}
	if e.lost {
		b.Quality.Status = Untrusted
		b.Tainted = e.taints[len(e.taints)-1].From
	}
	return b
}

// distrustAll gives up all that was measured; the taint says why.
func (e *Estimator) distrustAll(now Instant, t Taint) Bound {
	e.contradictions++
	t.From, t.Noticed, t.To = e.confirmed, now, MaxInstant
	if e.lost { // Still: it continues.
		t.From = e.taints[len(e.taints)-1].From
		e.taints = e.taints[:len(e.taints)-1]
	}
	e.taints = append(e.taints, t)
	if len(e.taints) > memory {
		e.taints = slices.Delete(e.taints, 0, 1)
	}
	e.lost = true
	e.forgetUntil(MinInstant)
	return e.noBound()
}

// publish completes a line and makes it the one that the next must agree with.
func (e *Estimator) publish(now Instant, b Bound, voters []*server) Bound {
	b.Drift = e.config.Drift
	for _, v := range voters {
		b.Drift = max(b.Drift, v.largestDrift())
	}
	b.rate = rateOver(b.Drift)
	if e.leap.noteAnnounced(e.leapComing(voters), now, b.Offset, b.Drift); e.leap.takePassed(now) {
		e.forgetUntil(now)
		return e.noBound()
	}
	if e.lost {
		e.lost = false
		e.taints[len(e.taints)-1].To = now
	}
	e.confirmed = now
	b.From, b.Until, b.Seen, b.Tainted = e.from, min(b.Until, e.leap.last), e.seen, MaxInstant
	b.Quality = e.quality(now, b, voters)
	e.line = b
	// The reading is shown for all the time until the next step of the clock.
	b.Offset.Latest = b.Offset.Latest.Add(e.config.Granularity)
	return b
}

func (e *Estimator) leapComing(voters []*server) bool {
	n := 0
	for _, v := range voters {
		if l := v.newest.Leap; l == LeapInsert || l == LeapDelete {
			n++
		}
	}
	return e.config.Timeline == UTC && n > e.config.Faults
}

// quality says what the line rests on and until when it is good.
func (e *Estimator) quality(now Instant, b Bound, voters []*server) Quality {
	q := Quality{
		Source: joinSources(voters), Timeline: e.config.Timeline,
		Unverified: len(voters) == 1, Status: Synchronized,
	}
	ages := make([]Instant, len(voters)) // the newest samples, newest first
	for i, v := range voters {
		ages[i] = v.newest.At
		for j := range v.kept {
			q.Assumed = q.Assumed || v.kept[j].Assumed
		}
	}
	slices.SortFunc(ages, func(a, b Instant) int { return cmp.Compare(b, a) })
	q.Expires = min(ages[e.config.Faults].Add(e.config.Stale), e.within(now, b))
	if now > q.Expires {
		q.Status, q.Expires = Degraded, MaxInstant
	}
	q.Expires = min(q.Expires, b.Until)
	return q
}

// within is the last reading at which half the width of the line is within the limit.
func (e *Estimator) within(now Instant, b Bound) Instant {
	left := e.config.Limit - b.Offset.Width()/2
	switch {
	case !b.Offset.Bounded(), e.config.Limit > 0 && left < 0:
		return now - 1
	case e.config.Limit == 0:
		return MaxInstant
	}
	return now.Add(time.Duration(float64(left) / b.rate))
}

// Diagnostics returns the knowledge at the reading now. It changes nothing.
func (e *Estimator) Diagnostics(now Instant) Diagnostics {
	r := Diagnostics{
		Now: now, Bound: e.last, Offset: e.last.OffsetAt(now),
		Faults: e.config.Faults, Counted: e.voters, Needed: max(e.need(e.voters), 0),
		Taints: slices.Clone(e.taints), Refused: e.refused,
		Contradictions: e.contradictions, Steps: e.steps, Suspends: e.suspends, Slews: e.slews,
	}
	for _, v := range e.servers {
		s := ServerDiagnostics{
			Source: v.source, Server: v.name, Offset: v.joinOffsets(now, e.config.Drift),
			Newest: v.newest, Best: v.bestSample(now, e.config.Drift), Kept: len(v.kept),
			Taken: v.taken, Contradicted: v.contradicted,
		}
		s.Standing = e.standing(v, s.Offset, r)
		r.Servers = append(r.Servers, s)
	}
	return r
}

func (e *Estimator) standing(v *server, offset Interval, r Diagnostics) Standing {
	switch {
	case v.isSilent(r.Now):
		return Silent
	case r.Bound.Quality.Status == Unknown, r.Bound.Quality.Status == Untrusted:
		return Waiting
	case !v.wrong && offset.Overlaps(r.Offset):
		return Agreeing
	}
	return Outvoted
}
