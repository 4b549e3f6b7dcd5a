package scgs

import "github.com/gopegasus/pegasus/clocksync"

// Summary is what a group's detector tells the one a level above, where the
// group is a member: a tuple that became certain, how far the tuples told before
// hold, or both. It is made by [Detector.Summarize] and taken by
// [Detector.Summary].
type Summary struct {
	// Run counts the group's epochs and moves of members to other clocks. Each
	// begins anew: what was told in the run before says nothing about this one.
	Run uint64
	// Number counts the summaries of the run from 1, so that a loss shows.
	Number uint64
	// Index is that of the group's tuple that this summary opens, 0 if none.
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
	// Held is how far the local states that the group looks at have shown to hold.
	Held Ends
	// HeldMono and HeldTime are true if what Held.Mono and Held.Earliest say is the
	// end of a state, and not only evidence.
	HeldMono, HeldTime bool
	// Ended sums up the local states that the group has left since the last
	// summary: all tuples opened before this one hold no longer than that.
	Ended Ends
}

// Ends are the least of some local states' ends, each of the three by itself:
// MaxInstant where there are none. Latest counts only states that have ended.
type Ends struct {
	Mono, Earliest, Latest clocksync.Instant
}

var endless = Ends{clocksync.MaxInstant, clocksync.MaxInstant, clocksync.MaxInstant}

// and gives the least of both.
func (e Ends) and(f Ends) Ends {
	return Ends{min(e.Mono, f.Mono), min(e.Earliest, f.Earliest), min(e.Latest, f.Latest)}
}

// summarizer is what a detector remembers to sum up its tuples for a level above.
type summarizer struct {
	shared map[clocksync.Domain]bool
	rows   []outward
	latest clocksync.Instant // the latest finite hi(S) of the heads in the rest

	run, number uint64
	sent        uint64 // the last tuple told
}

// outward is a row of summaries to come.
type outward struct {
	domain int32 // in Detector.domains; none for the rest
	said   Row   // the last time
	ended  Ends  // since then
}

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
	d.cut()
	if d.up != nil {
		u.run = d.up.run
	}
	d.up = u
	d.layout()
}

// Summarize fills s with what a detector above has to know that it was not told
// yet, and reports whether there is anything. Call it after each call of Next,
// whatever that returned:
//
//	for more := true; more; {
//		more = group.Next(&event)
//		if group.Summarize(&summary) {
//			above.Summary(member, &summary, ref)
//		}
//	}
//
// To call it less often, but after each Opened, only costs time: tuples are known
// later above. A tuple after whose Opened it was not called is not known there at
// all. Partial tuples are not told. It costs O(rows), where the rows of shared
// domains are few. Under Possibly there is never anything: tuples that possibly
// overlap are no chain, so those of a group do not tell what holds above. Report
// the members' runs there.
func (d *Detector) Summarize(s *Summary) bool {
	u := d.up
	if u == nil || len(u.rows) == 0 || d.modality == Possibly {
		return false
	}
	opens := d.open && d.unknown == 0 && u.sent != d.index
	if d.advance != none && !opens {
		return false // the next call of Next goes on at once
	}
	news := opens || u.number == 0
	s.Rows = s.Rows[:0]
	for i := range u.rows {
		o := &u.rows[i]
		row := d.row(o, opens)
		news = news || row != o.said || o.ended != endless
		s.Rows = append(s.Rows, row)
	}
	if !news {
		return false
	}
	u.number++
	s.Run, s.Number, s.Index, s.Step, s.From = u.run, u.number, 0, false, d.maxLo
	if opens {
		u.sent, s.Index, s.Step = d.index, d.index, d.step
	}
	for i := range u.rows {
		o := &u.rows[i]
		o.said = s.Rows[i]
		s.Rows[i].Ended, o.ended = o.ended, endless
	}
	return true
}

// row sums up the heads of a row, without those that were left.
func (d *Detector) row(o *outward, opens bool) Row {
	if o.domain == int32(none) {
		r := absent
		d.gather(&r, 1)
		return Row{
			StartMono: clocksync.MinInstant, StartLatest: d.up.latest,
			Held:     Ends{clocksync.MaxInstant, r.lo, r.chi},
			HeldTime: r.clo == r.lo && r.clo != clocksync.MaxInstant,
			Ended:    endless,
		}
	}
	dom := &d.domains[o.domain]
	r := dom.heads.root()
	row := Row{
		Domain: dom.name, StartMono: dom.maxM, StartLatest: dom.maxHi,
		Held:     Ends{r.m, r.lo, r.chi},
		HeldMono: r.cm == r.m && r.cm != clocksync.MaxInstant,
		HeldTime: r.clo == r.lo && r.clo != clocksync.MaxInstant,
		Ended:    endless,
	}
	if opens && d.infinite > 0 {
		row.StartLatest = clocksync.MaxInstant // and it is the only row
	}
	return row
}

// gather sums up the domains in the rest below node k of the top.
func (d *Detector) gather(r *node, k int) {
	n := &d.top[k]
	if n.lo >= r.lo && n.clo >= r.clo && n.chi >= r.chi {
		return
	}
	half := len(d.top) / 2
	switch {
	case k < half:
		d.gather(r, 2*k)
		d.gather(r, 2*k+1)
	case d.up.rows[d.domains[k-half].row].domain == int32(none):
		r.lo, r.clo, r.chi = min(r.lo, n.lo), min(r.clo, n.clo), min(r.chi, n.chi)
	}
}

// layout begins a run: it gives each domain its row. A group in one domain has no
// rest, shared or not: it may be compared by readings with itself.
func (u *summarizer) layout(domains []domain) {
	u.run++
	u.number, u.sent, u.latest = 0, 0, clocksync.MinInstant
	u.rows = u.rows[:0]
	rest := false
	for h := range domains {
		dom := &domains[h]
		if dom.name == "" || len(domains) > 1 && !u.shared[dom.name] {
			rest = true
			continue
		}
		dom.row = int32(len(u.rows))
		u.rows = append(u.rows, outward{domain: int32(h), ended: endless})
	}
	if !rest {
		return
	}
	for h := range domains {
		if dom := &domains[h]; dom.name == "" || len(domains) > 1 && !u.shared[dom.name] {
			dom.row = int32(len(u.rows))
		}
	}
	u.rows = append(u.rows, outward{domain: int32(none), ended: endless})
}

// begin takes note of a start in a row.
func (u *summarizer) begin(row int32, hi clocksync.Instant) {
	if u.rows[row].domain == int32(none) {
		u.latest = max(u.latest, hi)
	}
}

// left takes note of a local state that the group goes on from.
func (u *summarizer) left(row int32, e Ends) {
	o := &u.rows[row]
	if o.domain == int32(none) {
		e.Mono = clocksync.MaxInstant // of several clocks, or of one that nobody else has
	}
	o.ended = o.ended.and(e)
}
