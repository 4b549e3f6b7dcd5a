package scgs

import "github.com/gopegasus/pegasus/clocksync"

// node sums up the heads below it. EB is the end of a closed head and the newest
// evidence of an open one; absent values are MaxInstant.
//
// Over the domains the same node is used with domains for heads: m, repLo and lo
// are then the least lo(EB) of the domain, and cm is not used. (Under Possibly m
// is the least lo(EB) and repLo the number of the head that has it.)
type node struct {
	m   clocksync.Instant // least m(EB)
	lo  clocksync.Instant // least lo(EB)
	cm  clocksync.Instant // least m(T) of the closed heads
	clo clocksync.Instant // least lo(T) of the closed heads
	chi clocksync.Instant // least hi(T) of the closed heads

	repLo     clocksync.Instant // lo(EB) of rep
	rep       int32             // the head with least (m(EB), lo(EB), closed before open)
	deadM     int32             // the closed head with cm
	deadLo    int32             // the closed head with clo
	repClosed bool
	byLo      bool // rep is the head with least (repLo, number) instead
}

// absent is the node of a member without a head.
var absent = node{
	m: clocksync.MaxInstant, lo: clocksync.MaxInstant,
	cm: clocksync.MaxInstant, clo: clocksync.MaxInstant, chi: clocksync.MaxInstant,
	repLo: clocksync.MaxInstant, rep: int32(none), deadM: int32(none), deadLo: int32(none),
}

// yields reports whether, of two nodes with equal m, the rep of b is to be
// advanced before that of n.
func (n *node) yields(b *node) bool {
	if n.repLo != b.repLo {
		return b.repLo < n.repLo
	}
	return b.repClosed && !n.repClosed
}

// yieldsByLo is the order of advancing under Possibly.
func (n *node) yieldsByLo(b *node) bool {
	return b.repLo < n.repLo || b.repLo == n.repLo && b.rep < n.rep
}

// merge makes n sum up a and b, and reports whether that changed it.
func (n *node) merge(a, b *node) bool {
	rep, m, lo := a, a, a
	switch {
	case a.byLo || b.byLo:
		if a.yieldsByLo(b) {
			rep = b
		}
	case b.m < a.m || b.m == a.m && a.yields(b):
		rep = b
	}
	if b.cm < a.cm {
		m = b
	}
	if b.clo < a.clo {
		lo = b
	}
	first, least, chi := min(a.m, b.m), min(a.lo, b.lo), min(a.chi, b.chi)
	if n.m == first && n.repLo == rep.repLo && n.rep == rep.rep && n.repClosed == rep.repClosed &&
		n.lo == least && n.chi == chi &&
		n.cm == m.cm && n.deadM == m.deadM && n.clo == lo.clo && n.deadLo == lo.deadLo {
		return false
	}
	n.repLo, n.rep, n.repClosed, n.byLo = rep.repLo, rep.rep, rep.repClosed, rep.byLo
	n.m, n.lo, n.chi = first, least, chi
	n.cm, n.deadM, n.clo, n.deadLo = m.cm, m.deadM, lo.clo, lo.deadLo
	return true
}

// tree is a tournament: node i sums up nodes 2i and 2i+1, node 1 all, and the
// second half are the leaves. Any number of leaves will do, since merge does not
// care for their order.
type tree []node

func newTree(nodes []node) tree {
	t := tree(nodes)
	for i := range t {
		t[i] = absent
	}
	return t
}

func (t tree) root() *node { return &t[1] }

func (t tree) build() {
	for i := len(t)/2 - 1; i > 0; i-- {
		t[i].merge(&t[2*i], &t[2*i+1])
	}
}

// at is a leaf that is about to change; rise must follow.
func (t tree) at(i int32) *node { return &t[len(t)/2+int(i)] }

// rise brings the nodes above a leaf up to date, up to the first that stays as it
// is.
func (t tree) rise(i int32) {
	k := (len(t)/2 + int(i)) / 2
	for k > 0 && t[k].merge(&t[2*k], &t[2*k+1]) {
		k /= 2
	}
}

// but returns the least lo(EB), and the least lo(T) of closed heads with its
// leaf's name, over all leaves but one.
func (t tree) but(i int32) (lo, clo clocksync.Instant, dead int32) {
	lo, clo, dead = clocksync.MaxInstant, clocksync.MaxInstant, int32(none)
	for k := len(t)/2 + int(i); k > 1; k /= 2 {
		s := &t[k^1]
		lo = min(lo, s.lo)
		if s.clo < clo {
			clo, dead = s.clo, s.deadLo
		}
	}
	return lo, clo, dead
}

// below appends the names of the leaves under node k with m(EB) or lo(EB) below
// a limit.
func (t tree) below(dst []int32, k int, m, lo clocksync.Instant) []int32 {
	switch {
	case t[k].m >= m && t[k].lo >= lo:
		return dst
	case k >= len(t)/2:
		return append(dst, t[k].rep)
	}
	return t.below(t.below(dst, 2*k, m, lo), 2*k+1, m, lo)
}

// domain sums up the heads of one clock domain. Along the heads of a member
// neither the reading nor a finite hi(S) goes back, so the latest over all heads
// only grow and need no tree.
type domain struct {
	one   [2]node          // the tree of a single head: close by, as it is seldom in the cache
	name  clocksync.Domain // empty for the rest of a group's
	heads tree
	maxM  clocksync.Instant // latest m(S)
	maxHi clocksync.Instant // latest finite hi(S)
	row   int32             // of the detector's own summaries
	bad   bool              // maxM is not before the least m(EB)
	dying bool              // stands in Detector.dying
}

// key makes k the leaf of a member's head.
func (d *Detector) key(m Member, mb *member, k *node) {
	if mb.queue.n == 0 {
		*k = absent
		return
	}
	s := mb.queue.front()
	end := s.bound()
	k.m, k.lo, k.repLo, k.rep = end.m, end.lo, end.lo, int32(m)
	k.byLo, k.repClosed = d.modality == Possibly, s.closed
	if s.closed {
		k.cm, k.clo, k.chi = end.m, end.lo, end.hi
		k.deadM, k.deadLo = int32(m), int32(m)
		if !k.byLo && d.unbounded(s) && d.multi() {
			k.clo = clocksync.MinInstant // it is in no global state: refuted at once
		}
		return
	}
	k.cm, k.clo, k.chi = clocksync.MaxInstant, clocksync.MaxInstant, clocksync.MaxInstant
	k.deadM, k.deadLo = int32(none), int32(none)
	if k.byLo {
		k.chi = end.hi // the core's end, by evidence too
	}
}

func (d *Detector) multi() bool { return len(d.domains) > 1 }

// enter counts the member's head in, or that it has none.
func (d *Detector) enter(mb *member) {
	if mb.queue.n == 0 {
		d.missing++
		if mb.group != nil {
			d.beginRows(mb)
			return
		}
		d.begin(mb.domain, d.frame(mb.last))
		return
	}
	s := mb.queue.front()
	if s.sort != known {
		d.unknown++
	}
	if d.unbounded(s) {
		d.infinite++
	}
	if mb.group != nil {
		d.beginRows(mb)
		return
	}
	d.begin(mb.domain, s.start)
}

// begin takes note that no later head of a member in the domain starts before p.
// For one that has no head this is its newest stamp, by which others can be
// refuted.
func (d *Detector) begin(h int32, p point) {
	dom := &d.domains[h]
	dom.maxM = max(dom.maxM, p.m)
	if p.lo != clocksync.MaxInstant {
		d.maxLo = max(d.maxLo, p.lo)
	}
	if p.hi > dom.maxHi && p.hi != clocksync.MaxInstant {
		dom.maxHi = p.hi
		d.raise(best{h, dom.maxHi})
		if d.up != nil {
			d.up.begin(dom.row, p.hi)
		}
	}
}

// exit undoes the counts of enter.
func (d *Detector) exit(mb *member) {
	if mb.queue.n == 0 {
		d.missing--
		return
	}
	s := mb.queue.front()
	if s.sort != known {
		d.unknown--
	}
	if d.unbounded(s) {
		d.infinite--
	}
}

// raise enters a domain's new latest hi(S) among the two best.
func (d *Detector) raise(b best) {
	switch {
	case b.domain == d.first.domain:
		d.first = b
	case b.hi > d.first.hi:
		d.first, d.second = b, d.first
	case b.domain == d.second.domain || b.hi > d.second.hi:
		d.second = b
	}
}

// refresh brings the trees up to date after the member's head changed.
func (d *Detector) refresh(m Member) {
	mb := &d.members[m]
	if mb.group != nil {
		d.refreshRows(m, mb)
		return
	}
	heads := d.domains[mb.domain].heads
	d.key(m, mb, heads.at(mb.leaf))
	heads.rise(mb.leaf)
	d.review(mb.domain)
}

// review brings what depends on one domain's heads up to date.
func (d *Detector) review(h int32) {
	d.reviewReadings(h)
	dom := &d.domains[h]
	r, k := dom.heads.root(), d.top.at(h)
	*k = *r
	k.m, k.repLo, k.rep, k.deadM, k.cm = r.lo, r.lo, h, int32(none), clocksync.MaxInstant
	if k.byLo {
		k.m, k.repLo, k.byLo = r.repLo, clocksync.Instant(r.rep), false
	}
	if r.deadLo != int32(none) {
		k.deadLo = h
	}
	d.top.rise(h)
	if d.up != nil {
		d.up.touch(dom.row)
	}
}

// reviewReadings does so for the test by readings.
func (d *Detector) reviewReadings(h int32) {
	dom := &d.domains[h]
	r := dom.heads.root()
	if bad := dom.maxM >= r.m; bad != dom.bad {
		dom.bad = bad
		if bad {
			d.bad++
		} else {
			d.bad--
		}
	}
	if dom.maxM >= r.cm && !dom.dying {
		dom.dying = true
		d.dying = append(d.dying, h)
	}
}
