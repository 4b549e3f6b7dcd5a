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

// yields reports whether the rep of b is to be advanced before that of n.
func (n *node) yields(b *node) bool {
	switch {
	case n.byLo || b.byLo: // the order under Possibly
		return b.repLo < n.repLo || b.repLo == n.repLo && b.rep < n.rep
	case b.m != n.m:
		return b.m < n.m
	case b.repLo != n.repLo:
		return b.repLo < n.repLo
	}
	return b.repClosed && !n.repClosed
}

// merge makes n sum up some nodes, and reports whether that changed it.
func (n *node) merge(nodes []node) bool {
	rep, deadM, deadLo := &nodes[0], &nodes[0], &nodes[0]
	m, lo, chi := rep.m, rep.lo, rep.chi
	for i := 1; i < len(nodes); i++ {
		b := &nodes[i]
		lo, chi = min(lo, b.lo), min(chi, b.chi)
		if b.m <= m || b.byLo {
			m = min(m, b.m)
			if rep.yields(b) {
				rep = b
			}
		}
		if b.cm < deadM.cm {
			deadM = b
		}
		if b.clo < deadLo.clo {
			deadLo = b
		}
	}
	if n.m == m && n.repLo == rep.repLo && n.rep == rep.rep && n.repClosed == rep.repClosed && n.lo == lo && n.chi == chi &&
		n.cm == deadM.cm && n.deadM == deadM.deadM && n.clo == deadLo.clo && n.deadLo == deadLo.deadLo {
		return false
	}
	n.m, n.lo, n.chi = m, lo, chi
	n.repLo, n.rep, n.repClosed, n.byLo = rep.repLo, rep.rep, rep.repClosed, rep.byLo
	n.cm, n.deadM, n.clo, n.deadLo = deadM.cm, deadM.deadM, deadLo.clo, deadLo.deadLo
	return true
}

// tree is a tournament: node k sums up the nodes from width*k+1 on, as many as its
// width, and node 0 all. The last ones are the leaves. To look through a few nodes
// that lie side by side takes less than to climb over pairs of them.
type tree []node

const width = 8

// treeSize is the number of nodes of a tree with so many leaves, of which there is
// at least one.
func treeSize(leaves int) int { return leaves + (leaves+width-3)/(width-1) }

func newTree(nodes []node) tree {
	t := tree(nodes)
	for i := range t {
		t[i] = absent
	}
	return t
}

// countInner is the number of nodes that are no leaves.
func (t tree) countInner() int { return (len(t) + width - 2) / width }

// childrenOf are the nodes that node k, which is no leaf, sums up.
func (t tree) childrenOf(k int) []node { return t[width*k+1 : min(width*k+width+1, len(t))] }

func (t tree) root() *node { return &t[0] }

func (t tree) buildNodes() {
	for k := t.countInner() - 1; k >= 0; k-- {
		t[k].merge(t.childrenOf(k))
	}
}

// changeLeaf is a leaf that is about to change; rise must follow.
func (t tree) changeLeaf(i int32) *node { return &t[t.countInner()+int(i)] }

// updateAbove brings the nodes above a leaf up to date, up to the first that stays as it
// is.
func (t tree) updateAbove(i int32) {
	for k := t.countInner() + int(i); k > 0; {
		if k = (k - 1) / width; !t[k].merge(t.childrenOf(k)) {
			return
		}
	}
}

// leastBut returns the least lo(EB), and the least lo(T) of closed heads with its
// leaf's name, over all leaves but one.
func (t tree) leastBut(i int32) (lo, clo clocksync.Instant, dead int32) {
	lo, clo, dead = clocksync.MaxInstant, clocksync.MaxInstant, int32(none)
	for k := t.countInner() + int(i); k > 0; k = (k - 1) / width {
		nodes, own := t.childrenOf((k-1)/width), &t[k]
		for j := range nodes {
			s := &nodes[j]
			if s == own {
				continue
			}
			lo = min(lo, s.lo)
			if s.clo < clo {
				clo, dead = s.clo, s.deadLo
			}
		}
	}
	return lo, clo, dead
}

// appendBelow appends the names of the leaves under node k with m(EB) or lo(EB) below
// a limit.
func (t tree) appendBelow(dst []int32, k int, m, lo clocksync.Instant) []int32 {
	switch {
	case t[k].m >= m && t[k].lo >= lo:
		return dst
	case k >= t.countInner():
		return append(dst, t[k].rep)
	}
	for i := range t.childrenOf(k) {
		dst = t.appendBelow(dst, width*k+1+i, m, lo)
	}
	return dst
}

// domain sums up the heads of a clock domain. Along the heads of a member neither the reading
// nor a finite hi(S) goes back, nor is that before an earlier lo(S), so the latest over all
// heads only grow and need no tree.
type domain struct {
	one   [1]node          // the tree of a single head: close by, as it is seldom in the cache
	name  clocksync.Domain // empty for the rest of a group's
	heads tree
	maxM  clocksync.Instant // latest m(S)
	maxHi clocksync.Instant // latest hi(S), or lo(S) where that is infinite
	row   int32             // of the detector's own summaries
	bad   bool              // maxM is not before the least m(EB)
	dying bool              // stands in Detector.dying
}

// keyLeaf makes k the leaf of a member's head.
func (d *Detector) keyLeaf(m Member, mb *member, k *node) {
	if mb.queue.n == 0 {
		*k = absent
		return
	}
	s := mb.queue.front()
	end := s.endBound()
	k.m, k.lo, k.repLo, k.rep = end.m, end.lo, end.lo, int32(m)
	k.byLo, k.repClosed = d.modality == Possibly, s.closed
	if s.closed {
		k.cm, k.clo, k.chi = end.m, end.lo, end.hi
		k.deadM, k.deadLo = int32(m), int32(m)
		if !k.byLo && d.isUnbounded(s) && d.isMulti() {
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

func (d *Detector) isMulti() bool { return len(d.domains) > 1 }

// countHead counts the member's head in, or that it has none.
func (d *Detector) countHead(mb *member) {
	if mb.queue.n == 0 {
		d.missing++
		if mb.group != nil {
			d.beginRows(mb)
			return
		}
		d.noteLaterStarts(mb.domain, d.framePoint(mb.reachedPoint()))
		return
	}
	s := mb.queue.front()
	if s.sort != known {
		d.unknown++
	}
	if d.isUnbounded(s) {
		d.infinite++
	}
	if mb.group != nil {
		d.beginRows(mb)
		return
	}
	d.noteLaterStarts(mb.domain, s.start)
}

// noteLaterStarts takes note that no later head of a member in the domain starts before p.
// For one that has no head this is its newest stamp, by which others can be
// refuted.
//
// A start without an upper bound refutes by its lower end, as it is not before it
// and nor is any later one. Else, of heads that end at the same time, those after the
// first could stay, and a level above would not hear that they have ended.
func (d *Detector) noteLaterStarts(h int32, p point) {
	dom := &d.domains[h]
	dom.maxM = max(dom.maxM, p.m)
	if p.lo != clocksync.MaxInstant {
		d.maxLo = max(d.maxLo, p.lo)
	}
	if p.hi == clocksync.MaxInstant {
		p.hi = p.lo
	}
	if p.hi > dom.maxHi && p.hi != clocksync.MaxInstant {
		dom.maxHi = p.hi
		d.raise(best{h, dom.maxHi})
		if d.up != nil {
			d.up.noteStart(dom.row, p.hi)
		}
	}
}

// uncountHead undoes the counts of enter.
func (d *Detector) uncountHead(mb *member) {
	if mb.queue.n == 0 {
		d.missing--
		return
	}
	s := mb.queue.front()
	if s.sort != known {
		d.unknown--
	}
	if d.isUnbounded(s) {
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

// refreshTrees brings the trees up to date after the member's head changed.
func (d *Detector) refreshTrees(m Member) {
	mb := &d.members[m]
	if d.one.on {
		d.keyOneClock(m, mb)
		return
	}
	if mb.group != nil {
		d.refreshRows(m, mb)
		return
	}
	heads := d.domains[mb.domain].heads
	d.keyLeaf(m, mb, heads.changeLeaf(mb.leaf))
	heads.updateAbove(mb.leaf)
	d.reviewDomain(mb.domain)
}

// reviewDomain brings what depends on one domain's heads up to date.
func (d *Detector) reviewDomain(h int32) {
	d.reviewReadings(h)
	dom := &d.domains[h]
	r, k := dom.heads.root(), d.top.changeLeaf(h)
	k.m, k.lo, k.cm, k.clo, k.chi = r.lo, r.lo, clocksync.MaxInstant, r.clo, r.chi
	k.repLo, k.rep, k.repClosed = r.lo, h, r.repClosed
	if r.byLo {
		k.m, k.repLo = r.repLo, clocksync.Instant(r.rep)
	}
	if k.deadLo = r.deadLo; k.deadLo != int32(none) {
		k.deadLo = h
	}
	d.top.updateAbove(h)
	if d.up != nil {
		d.up.touchRow(dom.row)
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
