package scgs

import "github.com/gopegasus/pegasus/clocksync"

// Threshold finds where a condition on the local state certainly held for at
// least k members of a set at once, and never waits for a member that it does
// not need: that there are two leaders is found while a third member is cut off.
//
// It looks at runs, the maximal sequences of a member's states in which the
// condition holds. A set of runs of at least k members is reported if any two of
// them certainly overlap, by the test of the package comment, each with itself
// too, and no further run overlaps all of them. Each such set is reported once,
// by the input that completes it, and never taken back. [Set.Grows] tells the
// sets that only add to one reported before from those that are new alarms. With
// k the number of members it finds what a [Detector] finds under [Definitely];
// that at least k+1 hold shows that "at most k" was violated.
//
// Reports are put in as into a [Detector] of runs: [Threshold.Start] for a state
// in which the condition holds, [Threshold.End] for one in which it does not.
// After each input [Threshold.Next] takes out the sets that it completed. A
// Threshold must not be used by two goroutines at once.
//
// A fact that holds only for a choice of sets ("this one or that one, whichever was first") is
// not found. The intermediate sets depend on the order of arrival; the sets that no later set
// adds to do not.
//
// Of members in whose state the condition does not hold nothing but the newest stamp is kept,
// and an ended run only for as long as it can be in a set to come. A member that is silent and
// has not left, or whose stamps have no bounds, keeps the runs of the others, up to
// Options.MaxPending each.
//
// An input costs O(log members) if the run that it is about does not begin to overlap another
// one, or too few runs are open to make a set with the runs that it overlaps. Otherwise it
// costs time in proportion to the open runs and to the sets found, and where not all overlap
// each other to the square of those near it. With Options.Alarms it costs O(log members) too,
// and a little for each start that the run has begun to outlast, if no alarm can come of it;
// that is so but for about one input for each run, where stamps of the same clock rise
// together.
type Threshold struct {
	k          int
	maxPending int
	ends       bool
	alarmsOnly bool
	members    []holder
	free       []Member // removed, to be given out again, last first

	clocks     []*clockRuns // in order of first appearance
	byName     map[clocksync.Domain]*clockRuns
	progressed least // of each member: no later start of it is before that, nor a new overlap

	count   int     // runs kept
	open    []*run  // those that have not ended, in no order
	starts  ordered // those whose start has an upper bound, by it
	over    ordered // those that have ended, by the Earliest of the end
	waiting ordered // of those, the ones that their clock's members have passed, by when all have
	serial  uint64
	pool    []*run // to be used again
	retired []*run // the same, once no set that waits for Next has them

	epoch, index uint64
	sets         []found // for Next, from next on
	next         int
	runs         []*run // of the sets

	alarms     []*alarm // that are remembered, oldest first
	remembered int      // the runs of these
	lapse      uint64   // what covered a run in an earlier one may do so no more
	odd        int      // the runs that are odd

	search   search
	tick     uint64
	released []Ref
	ended    []Part
	stats    Stats
}

// holder is a member of a Threshold.
type holder struct {
	stampOrder
	clockRuns   *clockRuns // of its newest clock
	open        *run
	closed      []*run // those that are kept, oldest first
	leaf        int32  // in the clock's tree
	multiplexer int32  // of Spec
	alive       bool
}

// Set is a set of runs that certainly overlapped.
type Set struct {
	Epoch uint64 // in which it was found
	// Index numbers the sets of an epoch from 1.
	Index uint64
	// Grows is true if the set contains another set that was reported before. Sets for which it
	// is false are the alarms.
	Grows bool
	// Runs are the runs of the set in order of members; Seq is the number of a
	// run's first state and Ref the ref of its newest. The next Next into the
	// same Set overwrites them.
	Runs []Part
	// Span is when they held, by what is known when Next is called.
	Span
}

// found is a set that waits for Next: its runs are Threshold.runs[from:to].
type found struct {
	epoch, index uint64
	grows        bool
	from, to     int
}

// NewThreshold returns a detector of at least k members, without members, before
// its first epoch. A k below 1 counts as 1, Options.Modality for nothing.
//
// Options.MaxPending bounds, for each member, the ended runs that are kept (the
// oldest are dropped and counted as Collapsed); and for each input the sets found
// and the overlapping runs among which all of them are looked for. Beyond that an
// input completes at least one set if there is any, others may be left out, and
// that is counted as Truncated. Reported sets are remembered, for Grows and for
// Options.Alarms, while together they have at most 128 times as many runs. Then the
// oldest are forgotten: a set that only adds to one of those may be reported as an
// alarm, no alarm is taken for less than it is.
//
// With Options.Alarms the sets for which Grows would be true are neither delivered
// nor counted in Index; the others are the same, by the same inputs.
func NewThreshold(k int, o Options) *Threshold {
	if o.MaxPending <= 0 {
		o.MaxPending = defaultMaxPending
	}
	return &Threshold{
		k: max(k, 1), maxPending: o.MaxPending, ends: o.Ends, alarmsOnly: o.Alarms, lapse: 1,
		byName: make(map[clocksync.Domain]*clockRuns),
	}
}

// Epoch begins the epoch id with other members: it removes some, adds others and returns the
// numbers of the added members, in their order. A number in remove that is no member is passed
// over. The runs of remaining members continue, and no set of theirs is reported twice; runs of
// removed members are in no set from here on. It costs O(members).
func (t *Threshold) Epoch(id uint64, remove []Member, add []Spec) []Member {
	for _, m := range remove {
		if h := t.findHolder(m); h != nil {
			t.leave(m, h)
		}
	}
	added := make([]Member, 0, len(add))
	for _, s := range add {
		m := Member(len(t.members))
		if n := len(t.free); n > 0 {
			m, t.free = t.free[n-1], t.free[:n-1]
		} else {
			t.members = append(t.members, holder{})
		}
		t.members[m] = holder{stampOrder: newStampOrder(s.Domain), multiplexer: s.Multiplexer, alive: true}
		added = append(added, m)
	}
	t.epoch, t.index = id, 0
	t.layoutClocks()
	return added
}

// leave removes a member and its runs.
func (t *Threshold) leave(m Member, h *holder) {
	if r := h.open; r != nil {
		t.endOpen(h, r)
		t.dropRun(r)
	}
	for len(h.closed) > 0 {
		t.dropRun(h.closed[0])
	}
	t.members[m] = holder{}
	t.free = append(t.free, m)
}

// findHolder returns the member of that number, or nil.
func (t *Threshold) findHolder(m Member) *holder {
	if m < 0 || int(m) >= len(t.members) || !t.members[m].alive {
		return nil
	}
	return &t.members[m]
}

// Next fills s with the next of the sets that the inputs have completed and returns true, or
// returns false if there is none. The sets of an input come in ascending order of their runs'
// members and numbers.
func (t *Threshold) Next(s *Set) bool {
	if t.next == len(t.sets) {
		t.sets, t.runs, t.next = t.sets[:0], t.runs[:0], 0
		for _, r := range t.retired {
			t.recycleRun(r)
		}
		t.retired = t.retired[:0]
		return false
	}
	f := t.sets[t.next]
	t.next++
	t.stats.Global++
	runs := t.runs[f.from:f.to]
	parts := s.Runs[:0]
	for _, r := range runs {
		parts = append(parts, r.partOf())
	}
	*s = Set{Epoch: f.epoch, Index: f.index, Grows: f.grows, Runs: parts, Span: SpanOf(parts)}
	return true
}

// Run returns the open run of a member, as it is known by now; false if it has
// none.
func (t *Threshold) Run(m Member) (Part, bool) {
	h := t.findHolder(m)
	if h == nil || h.open == nil {
		return Part{}, false
	}
	return h.open.partOf(), true
}

// Released appends to dst the handles that the detector has dropped since the
// last call. The owner may use them for other values. While sets wait for
// [Threshold.Next] none of a run is dropped.
func (t *Threshold) Released(dst []Ref) []Ref {
	dst = append(dst, t.released...)
	t.released = t.released[:0]
	return dst
}

// Ended appends to dst the runs that ended since the last call, if Options.Ends
// was set; a run that is open is not among them.
func (t *Threshold) Ended(dst []Part) []Part {
	dst = append(dst, t.ended...)
	t.ended = t.ended[:0]
	return dst
}

// Stats returns the counts so far. Global counts the sets delivered, Collapsed
// the runs dropped by Options.MaxPending.
func (t *Threshold) Stats() Stats { return t.stats }
