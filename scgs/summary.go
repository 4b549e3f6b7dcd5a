package scgs

import "github.com/gopegasus/pegasus/clocksync"

// Summary is what a group's detector tells the one a level above, where the
// group is a member: a tuple that became certain, how far the tuples told before
// hold, or both. It is made by [Detector.Summarize] and taken by
// [Detector.Summary].
type Summary struct {
	// Run counts the group's epochs and moves of members to other clocks. Each starts over:
	// reports of the run before say nothing about this run.
	Run uint64
	// Number counts the summaries of the run from 1, so that a loss shows.
	Number uint64
	// Index is the index of the group's tuple that this summary opens, 0 if none.
	Index uint64
	// Step is the event's: only one member changed since tuple Index-1, and
	// nothing lies between the two.
	Step bool
	// From is the latest lower end of the tuple's starts. No later one has a
	// lower one.
	From clocksync.Instant
	// Rows has one for each shared clock domain that the group's members use, and
	// one for the rest. The next call of Summarize with this summary overwrites
	// it.
	Rows []Row
}

// Row sums up the members of a group in one clock domain, or in all those that
// have no row of their own.
type Row struct {
	// Domain is empty in the row of the rest, which has no readings.
	Domain clocksync.Domain
	// StartMono is the latest reading, and StartLatest the latest upper end, of
	// the starts of the tuple that is opened. No later one has earlier ones.
	StartMono, StartLatest clocksync.Instant
	// Held is how far the local states that the group looks at have shown to hold,
	// those that have ended among them too.
	Held Ends
	// Ended sums up the local states that the group has left since the last
	// summary: all tuples opened before this one hold no longer than that.
	Ended Ends
}

// Ends are the least of some local states' ends, each of the three separately: MaxInstant where
// there are none. Latest counts only states that have ended.
type Ends struct {
	Mono             clocksync.Instant // readings of the row's domain
	Earliest, Latest clocksync.Instant // ends of the intervals of reference time
}

var endless = Ends{clocksync.MaxInstant, clocksync.MaxInstant, clocksync.MaxInstant}

// leastOf gives the least of both.
func (e Ends) leastOf(f Ends) Ends {
	return Ends{min(e.Mono, f.Mono), min(e.Earliest, f.Earliest), min(e.Latest, f.Latest)}
}

// summarizer is what a detector remembers to sum up its tuples for a level above.
type summarizer struct {
	shared map[clocksync.Domain]bool
	rows   []outward
	latest clocksync.Instant // the greatest domain.maxHi in the rest
	cover  []int32           // the nodes of Detector.top that together are the rest

	run, number uint64
	sent        uint64 // the last tuple told
	stale       bool   // something changed since the last time
	passed      int    // how often only starts have changed since then
}

// outward is a row of summaries.
type outward struct {
	domain int32 // in Detector.domains; none for the rest
	row    Row   // as it is
	told   Row   // as the level above knows it; Ended is all since the last tuple told
	stale  bool  // the row is not what it is
}

// patience is how often starts alone may change before they are reported. They serve only to
// let the level above drop states that the group's later tuples cannot meet.
const patience = 64

// Share makes the detector's members a group, whose tuples [Detector.Summarize]
// sums up for a detector a level above. The domains are those that have members
// outside of the group too, anywhere in the tree of levels; they need not be all
// that the members here use, nor only such. A domain left out by mistake costs
// global states and makes no false one. A tuple that is open ends as at an epoch.
func (d *Detector) Share(domains ...clocksync.Domain) {
	u := &summarizer{shared: make(map[clocksync.Domain]bool, len(domains))}
	for _, name := range domains {
		u.shared[name] = true
	}
	d.closeTuple()
	if d.up != nil {
		u.run = d.up.run
	}
	d.up = u
	d.layoutDomains()
}

// Summarize fills s with the news for a detector above, and reports whether there is any. Call
// it after each call of Next, whatever Next returned:
//
//	for more := true; more; {
//		more = group.Next(&event)
//		if group.Summarize(&summary) {
//			above.Summary(member, &summary, ref)
//		}
//	}
//
// Calling it less often, but after each Opened, only costs time: tuples are known later above.
// A tuple is not known there at all if Summarize is not called after its Opened. Partial tuples
// are not reported. It costs O(rows), where the rows of shared domains are few. Under Possibly
// there is never any news: tuples that possibly overlap are no chain, so the tuples of a group
// do not decide about the level above. Report the members' runs there.
func (d *Detector) Summarize(s *Summary) bool {
	u := d.up
	if u == nil || len(u.rows) == 0 || d.modality == Possibly {
		return false
	}
	opens := d.open && d.unknown == 0 && u.sent != d.index
	if !opens && (d.advance != none || !u.stale && u.number > 0) {
		return false // the next call of Next continues at once, or nothing has changed
	}
	if !d.renew() && !opens && u.number > 0 {
		return false
	}
	u.number++
	u.passed = 0
	*s = Summary{Run: u.run, Number: u.number, From: d.maxLo, Rows: s.Rows[:0]}
	if opens {
		u.sent, s.Index, s.Step = d.index, d.index, d.step
	}
	for i := range u.rows {
		s.Rows = append(s.Rows, u.rows[i].tell(opens))
	}
	if opens && d.infinite > 0 {
		s.Rows[0].StartLatest = clocksync.MaxInstant // it is the only one
	}
	return true
}

// renew brings the rows up to date, and reports whether they hold news.
func (d *Detector) renew() bool {
	u := d.up
	u.stale = false
	news, starts := false, false
	for i := range u.rows {
		o := &u.rows[i]
		if !o.stale {
			continue
		}
		o.stale = false
		d.renewRow(o)
		row, told := &o.row, &o.told
		news = news || row.Ended != endless || row.Held.leastOf(told.Ended) != told.Held.leastOf(told.Ended)
		starts = starts || row.StartMono != told.StartMono || row.StartLatest != told.StartLatest
	}
	if starts {
		u.passed++
	}
	return news || u.passed >= patience
}

// tell is the row for a summary, which the level above knows from then on. All
// that it was told before hold no longer than the ends told since: an end that is
// not below these, or evidence, is no news until there is another tuple.
func (o *outward) tell(opens bool) Row {
	r := o.row
	ended := o.told.Ended.leastOf(r.Ended)
	if opens {
		ended = endless
	}
	o.told, o.told.Ended, o.row.Ended = r, ended, endless
	return r
}

// renewRow sums up the heads of a row.
func (d *Detector) renewRow(o *outward) {
	r := &o.row
	if o.domain == int32(none) {
		r.StartMono, r.StartLatest, r.Held = clocksync.MinInstant, d.up.latest, endless
		for _, k := range d.up.cover {
			n := &d.top[k]
			r.Held.Earliest, r.Held.Latest = min(r.Held.Earliest, n.lo), min(r.Held.Latest, n.chi)
		}
		return
	}
	dom := &d.domains[o.domain]
	n := dom.heads.root()
	r.StartMono, r.StartLatest = dom.maxM, dom.maxHi
	r.Held = Ends{n.m, n.lo, n.chi}
}

// layoutRows begins a run: it gives each domain its row. A group in one domain has no
// rest, as nothing in it is compared by intervals.
func (u *summarizer) layoutRows(domains []domain, top tree) {
	u.run++
	u.number, u.sent, u.latest, u.stale = 0, 0, clocksync.MinInstant, true
	u.rows, u.cover = u.rows[:0], u.cover[:0]
	own := func(name clocksync.Domain) bool {
		return name != "" && (len(domains) == 1 || u.shared[name])
	}
	for h := range domains {
		if dom := &domains[h]; own(dom.name) {
			dom.row = int32(len(u.rows))
			u.rows = append(u.rows, newOutward(int32(h), dom.name))
		}
	}
	rest := false
	for h := range domains {
		if dom := &domains[h]; !own(dom.name) {
			dom.row = int32(len(u.rows))
			rest = true
		}
	}
	if rest {
		u.rows = append(u.rows, newOutward(int32(none), ""))
		u.covers(domains, top, 0)
	}
}

func newOutward(h int32, name clocksync.Domain) outward {
	row := Row{Domain: name, Ended: endless}
	return outward{domain: h, row: row, told: row, stale: true}
}

// covers finds the largest subtrees of the top, below its node k, that have no
// domain but of the rest, and reports whether there is only one.
func (u *summarizer) covers(domains []domain, top tree, k int) bool {
	if h := k - top.countInner(); h >= 0 {
		if u.rows[domains[h].row].domain != int32(none) {
			return false
		}
		u.cover = append(u.cover, int32(k))
		return true
	}
	from, all := len(u.cover), true
	for i := range top.childrenOf(k) {
		all = u.covers(domains, top, width*k+1+i) && all
	}
	if all {
		u.cover = append(u.cover[:from], int32(k))
	}
	return all
}

// touchRow takes note that the heads of a row may have changed.
func (u *summarizer) touchRow(row int32) { u.rows[row].stale, u.stale = true, true }

// noteStart takes note of a start in a row.
func (u *summarizer) noteStart(row int32, hi clocksync.Instant) {
	if u.rows[row].domain == int32(none) {
		u.latest = max(u.latest, hi)
	}
}

// noteLeft takes note of a local state that the group continues from.
func (u *summarizer) noteLeft(row int32, e Ends) {
	o := &u.rows[row]
	if o.domain == int32(none) {
		e.Mono = clocksync.MaxInstant // of several clocks, or of one that no other group has
	}
	if all := o.row.Ended.leastOf(e); all.leastOf(o.told.Ended) != o.told.Ended {
		o.row.Ended = all
		u.touchRow(row)
	}
}
