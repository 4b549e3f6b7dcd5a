package loopcore

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	partition "github.com/gopegasus/pegasus/balance/span"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/workcore"
)

// Options make a [Loop].
type Options struct {
	Name   string             // of the loop, the same at all members
	Self   workcore.Peer      // this life of the member
	Home   bool               // this member keeps the loop
	Total  int                // rows of an iteration, 0 to MaxRows of workcore
	Repeat time.Duration      // until what nobody has heard is sent again; default 200 ms
	Speeds map[string]float64 // of the home: rows a second by the name of a member, as an earlier loop has measured them
}

// Loop is the machine of a member of an elastic loop. The home keeps the partition: which member has which rows. It
// counts each row once in each iteration, with the partial result of the member that had it at the end. A member
// whose partial result has not arrived when it is lost, or that gives rows back, has them redone by the others. The
// home itself closes its own part last, so there is always a member that can redo rows.
//
// It is not safe for concurrent use. Its methods only note what has happened; [Loop.Frames] then returns the
// messages to send.
type Loop struct {
	opts   Options
	roster []workcore.Peer
	number int  // the iteration that runs, or that this member waits for; 0: none yet
	open   bool // the iteration runs here
	ended  bool
	why    string // the loop has failed

	self     seat            // what this member does
	seats    []*seat         // of the home: the other members, by name and life
	free     []workcore.Span // of the home: rows of the iteration that nobody has
	spare    []workcore.Span // of the home: rows that are handed out to whoever has done its own
	gone     []Part          // of the home: partial results of members that are gone
	carry    []byte          // into the iteration
	value    []byte          // the reduced value of the iteration before
	redo     int             // rows of lost members that were handed out again
	moved    int             // rows that a member got and did not have before
	released int             // of them, rows of members that were gone, or gave them back
	yields                   // how fast the iterations are

	home line   // of a member: the connection with its home
	gave uint64 // of a member: the version that says that it gives its rows back
	back bool   // of a member: it takes rows again once its home has that version
	away []workcore.Peer
	past []line // of the home: members that have left, or were refused, until they have heard of it
}

// line is the exchange with one other member.
type line struct {
	workcore.Peer
	version uint64 // of the message
	acked   uint64 // that the other one has
	heard   uint64 // of the other one
	asked   bool   // it waits for an answer
	again   clocksync.Instant
	why     string // of past: why it was refused
	valued  int    // the iteration whose value it may not have yet although it takes no part any more; 0: none
	value   []byte // of that iteration
}

// seat is one member of the loop.
type seat struct {
	line
	in      bool            // it takes part in the iteration
	since   int             // the iteration from which on it takes part without a gap
	number  int             // that it says it is in
	spans   []workcore.Span // in the order in which it does them
	before  []workcore.Span // that it had in the iteration before
	done    int
	until   clocksync.Instant // of the home: when it gave its rows back in the iteration; 0: it has not
	closed  bool
	gives   bool
	out     bool
	speed   float64 // as measured last
	rate    float64 // its mean: one slow iteration moves few rows
	has     bool    // its partial result is there
	partial []byte
	typ     string
}

// Part is the partial result of a member.
type Part struct {
	Member string // its name
	First  int    // its first row; -1: it has none
	Rows   int    // that it is about
	Type   string // of the value
	Value  []byte // as bytes
}

// New makes the machine of a loop. It is an error if the options make no sense.
func New(o Options) (*Loop, error) {
	if o.Name == "" || len(o.Name) > workcore.MaxID {
		return nil, fmt.Errorf("loop %.40q: its name has %d bytes: give it one of 1 to %d", o.Name, len(o.Name), workcore.MaxID)
	}
	if o.Total < 0 || o.Total > workcore.MaxRows {
		return nil, fmt.Errorf("loop %q: a total of %d rows cannot be divided: give 0 to %d", o.Name, o.Total, workcore.MaxRows)
	}
	o.Repeat = cmp.Or(o.Repeat, 200*time.Millisecond)
	l := &Loop{opts: o, self: seat{line: line{Peer: o.Self}}}
	l.speed = maps.Clone(o.Speeds)
	if !o.Home {
		l.home.changed()
	}
	return l, nil
}

// changed has the message sent soon.
func (l *line) changed() { l.version++; l.again = clocksync.MinInstant }

// Ended reports whether the loop is over here, and why if it has failed.
func (l *Loop) Ended() (why string, ended bool) { return l.why, l.ended }

// TakeRoster notes the members of the group. A member that is missing is gone for good.
func (l *Loop) TakeRoster(now clocksync.Instant, roster []workcore.Peer) {
	for _, p := range roster {
		if l.opts.Home && p != l.opts.Self && !slices.Contains(l.roster, p) && l.find(p) == nil {
			l.away = append(l.away, p)
		}
	}
	l.roster = slices.Clone(roster)
	isGone := func(p workcore.Peer) bool { return !slices.Contains(roster, p) }
	l.away = slices.DeleteFunc(l.away, isGone)
	l.past = slices.DeleteFunc(l.past, func(p line) bool { return isGone(p.Peer) })
	if !l.opts.Home {
		if l.home.Name != "" && isGone(l.home.Peer) && !l.ended {
			l.end(fmt.Sprintf("its home, member %q, is gone, and the loop with it: begin another loop", l.home.Name))
		}
		return
	}
	for _, s := range slices.Clone(l.seats) {
		if isGone(s.Peer) {
			l.lose(now, s)
		}
	}
	l.settle()
}

// Missing lists, at the home, the members of the roster that have not come to the loop.
func (l *Loop) Missing() []string {
	var list []string
	for _, p := range l.roster {
		if p != l.opts.Self && l.find(p) == nil && !slices.ContainsFunc(l.past, func(o line) bool { return o.Peer == p }) {
			list = append(list, p.Name)
		}
	}
	return list
}

func (l *Loop) find(p workcore.Peer) *seat {
	if i := slices.IndexFunc(l.seats, func(s *seat) bool { return s.Peer == p }); i >= 0 {
		return l.seats[i]
	}
	return nil
}

// lose takes a member out of the loop. Its partial result counts if it is there, else its rows are redone.
func (l *Loop) lose(now clocksync.Instant, s *seat) {
	l.noteGone(now, s)
	l.seats = slices.DeleteFunc(l.seats, func(o *seat) bool { return o == s })
	switch {
	case !l.open || !s.in:
	case s.has:
		l.gone = append(l.gone, s.part())
		l.free = append(l.free, rest(s.spans, s.done)...)
	default:
		l.redo += partition.Total(s.spans)
		l.free = append(l.free, s.spans...)
	}
}

// part is the partial result of a member.
func (s *seat) part() Part {
	p := Part{Member: s.Name, First: -1, Rows: s.done, Type: s.typ, Value: s.partial}
	for _, i := range first(s.spans, s.done) {
		if p.First < 0 || i.Low < p.First {
			p.First = i.Low
		}
	}
	return p
}

// first returns the first n rows of a list, and rest all others.
func first(list []workcore.Span, n int) []workcore.Span { a, _ := splitSpans(list, n); return a }
func rest(list []workcore.Span, n int) []workcore.Span  { _, b := splitSpans(list, n); return b }

func splitSpans(list []workcore.Span, n int) (before, after []workcore.Span) {
	for _, s := range list {
		k := min(n, s.Len())
		n -= k
		if k > 0 {
			before = append(before, workcore.Span{Low: s.Low, High: s.Low + k})
		}
		if k < s.Len() {
			after = append(after, workcore.Span{Low: s.Low + k, High: s.High})
		}
	}
	return before, after
}

// Open begins, at the home, the next iteration, with a value for all members. All that have come take part.
func (l *Loop) Open(now clocksync.Instant, carry []byte) error {
	switch {
	case !l.opts.Home || l.open || l.ended:
		return fmt.Errorf("loop %q: iteration %d cannot begin here now", l.opts.Name, l.number+1)
	case len(carry) > workcore.MaxBody:
		return fmt.Errorf("loop %q: the carried value has %d bytes, and at most %d are allowed: carry the name of the data instead", l.opts.Name, len(carry), workcore.MaxBody)
	}
	l.number, l.open, l.carry, l.gone = l.number+1, true, carry, nil
	l.noteOpen(now)
	taking := []*seat{&l.self}
	for _, s := range l.seats {
		if s.gives { // Nobody waits for it.
			if s.in && s.number < l.number {
				s.valued, s.value = l.number-1, l.value
			}
			*s = seat{line: s.line, number: s.number, gives: true, speed: s.speed, rate: s.rate}
			continue
		}
		if !s.out {
			taking = append(taking, s)
		}
	}
	for _, s := range taking {
		if s.speed == 0 {
			s.speed = l.speed[s.Name]
		}
		if s.rate == 0 {
			s.rate = s.speed
		}
		s.rate = s.rate/2 + s.speed/2
	}
	lists := l.divide(taking)
	for i, s := range taking {
		if !s.in {
			s.since = l.number
		}
		s.in, s.done, s.until, s.closed, s.has, s.partial, s.typ = true, 0, 0, false, false, nil, ""
		s.spans = lists[i]
		s.changed()
	}
	l.free = nil
	l.settle()
	return nil
}

// divide returns what each member gets in the next iteration: what it had, as far as the speeds allow.
func (l *Loop) divide(taking []*seat) [][]workcore.Span {
	old := make([][]workcore.Span, len(taking))
	var held []workcore.Span
	isNew := l.number == 1
	for i, s := range taking {
		old[i] = sorted(first(s.spans, s.done))
		held = append(held, old[i]...)
		isNew = isNew || !s.in || s.gives && len(old[i]) > 0
	}
	free := complement(sorted(held), l.opts.Total)
	speeds := l.speeds(taking)
	sizes, err := partition.Cut(l.opts.Total, speeds)
	if err != nil { // Not with speeds that were checked.
		panic("loopcore: " + err.Error())
	}
	if even := func() bool {
		for i := range sizes {
			if d := sizes[i] - partition.Total(old[i]); max(d, -d) > max(1, sizes[i]/evenPart) {
				return false
			}
		}
		return true
	}; !isNew && len(free) == 0 && even() {
		l.spare = nil
		for i, s := range taking {
			s.before = old[i]
		}
		return old
	}
	lists, err := partition.Move(append(slices.Clone(old), free), append(slices.Clone(sizes), 0))
	if err != nil { // Not with sizes that were cut.
		panic("loopcore: " + err.Error())
	}
	lists = lists[:len(old)]
	if slices.ContainsFunc(lists, func(list []workcore.Span) bool { return len(list) > workcore.MaxSpans/2 }) {
		lists = partition.Lists(partition.Lay(sizes))
	}
	l.keepSpare(taking, lists)
	for i, s := range taking {
		s.before = old[i]
	}
	if l.number > 1 {
		moved := partition.Moved(old, lists)
		l.moved, l.released = l.moved+moved, l.released+min(moved, partition.Total(free))
	}
	return lists
}

// Parts of the rows of a member.
const (
	spareFirst = 8  // a member whose speed is not known gets one of so many parts at first
	spareLeast = 64 // a member that has done its own gets at least one of so many parts of its share with equal speeds
)

// keepSpare keeps most rows of the members back whose speed is not known. Whoever has done its own gets more of them.
func (l *Loop) keepSpare(taking []*seat, lists [][]workcore.Span) {
	l.spare = nil
	for i, s := range taking {
		if n := partition.Total(lists[i]) / spareFirst; s.speed == 0 && n > 1 {
			l.spare = append(l.spare, rest(lists[i], n)...)
			lists[i] = first(lists[i], n)
		}
	}
	l.spare = sorted(l.spare)
}

// handOutSpare gives spare rows to the members that have done their own: half of the share of all that each would get by
// its speed.
func (l *Loop) handOutSpare(able []*seat) {
	speeds := l.speeds(able)
	for i, s := range able {
		if len(l.spare) == 0 {
			return
		}
		if s.done < partition.Total(s.spans) || s != &l.self && len(s.spans)+len(l.spare)+1 > workcore.MaxSpans/2 {
			continue
		}
		sum := 0.0
		for _, v := range speeds {
			sum += v / speeds[i]
		}
		n := max(1, l.opts.Total/spareLeast/len(able), int(float64(partition.Total(l.spare))/sum/2))
		last := 0
		if len(s.spans) > 0 {
			last = s.spans[len(s.spans)-1].High
		}
		at, _ := slices.BinarySearchFunc(l.spare, last, func(o workcore.Span, row int) int { return o.Low - row }) // Rows beside its own.
		part, left := splitSpans(slices.Concat(l.spare[at:], l.spare[:at]), n)
		l.spare = sorted(left)
		if l.number > 1 { // Else no member had them.
			l.noteMoved(s, part)
		}
		if len(s.spans) > 0 && part[0].Low == last {
			s.spans = slices.Clone(s.spans)
			s.spans[len(s.spans)-1].High, part = part[0].High, part[1:]
		}
		s.spans = append(slices.Clip(s.spans), part...)
		s.changed()
	}
}

// evenPart: a partition is kept while each member has its due but for this part of it.
const evenPart = 20

// speeds are the speeds of members; a member without a measured one has the mean of the others.
func (l *Loop) speeds(of []*seat) []float64 {
	list, known, sum := make([]float64, len(of)), 0, 0.0
	for i, s := range of {
		if list[i] = cmp.Or(s.rate, s.speed); list[i] > 0 && !s.gives {
			known++
			sum += list[i] / float64(len(of)) // So that no sum is infinite.
		}
	}
	mean := 1.0
	if known > 0 {
		mean = min(max(sum*(float64(len(of))/float64(known)), math.SmallestNonzeroFloat64), math.MaxFloat64)
	}
	for i, s := range of {
		if list[i] == 0 {
			list[i] = mean
		}
		if s.gives && s != &l.self {
			list[i] = 0
		}
	}
	return list
}

// sorted returns the rows of a list in their order, with as few spans as possible.
func sorted(list []workcore.Span) []workcore.Span {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b workcore.Span) int { return a.Low - b.Low })
	var out []workcore.Span
	for _, s := range list {
		if n := len(out); n > 0 && out[n-1].High == s.Low {
			out[n-1].High = s.High
		} else {
			out = append(out, s)
		}
	}
	return out
}

// complement returns the rows of a total that a sorted list does not have.
func complement(list []workcore.Span, total int) (free []workcore.Span) {
	low := 0
	for _, s := range append(slices.Clip(list), workcore.Span{Low: total, High: total}) {
		if s.Low > low {
			free = append(free, workcore.Span{Low: low, High: s.Low})
		}
		low = s.High
	}
	return free
}

// settle hands out, at the home, the rows that nobody has, and closes the iteration once all rows are done.
func (l *Loop) settle() {
	if !l.opts.Home || !l.open || l.ended {
		return
	}
	var able []*seat // They can do more rows.
	for _, s := range l.all() {
		if s.in && s.gives && s != &l.self && !s.closed {
			l.free = append(l.free, rest(s.spans, s.done)...)
			s.spans, s.closed = first(s.spans, s.done), true
			s.changed()
		}
		if s.in && !s.closed {
			able = append(able, s)
		}
	}
	if l.free = sorted(l.free); len(l.free) > 0 && len(able) > 0 {
		l.handOut(able)
	}
	if len(l.spare) > 0 {
		l.handOutSpare(able)
	}
	for _, s := range able {
		if s.done < partition.Total(s.spans) {
			return
		}
	}
	for _, s := range able {
		if s != &l.self && !s.closed {
			s.closed = true
			s.changed()
		}
	}
	l.self.closed = !slices.ContainsFunc(l.seats, func(s *seat) bool { return s.in && !s.has })
}

// handOut gives free rows to members that can do more, by their speeds.
func (l *Loop) handOut(able []*seat) {
	able = slices.DeleteFunc(slices.Clone(able), func(s *seat) bool { return s != &l.self && len(s.spans)+len(l.free)+1 > workcore.MaxSpans })
	sizes, err := partition.Cut(partition.Total(l.free), l.speeds(able))
	if err != nil { // Not with speeds that were checked.
		panic("loopcore: " + err.Error())
	}
	for i, s := range able {
		var part []workcore.Span
		if part, l.free = splitSpans(l.free, sizes[i]); len(part) > 0 {
			s.spans = append(slices.Clip(s.spans), part...)
			l.released += l.noteMoved(s, part)
			s.changed()
		}
	}
}

// all are the home and the other members.
func (l *Loop) all() []*seat { return append([]*seat{&l.self}, l.seats...) }

// Begun reports whether an iteration runs here, and returns its number and what the home carries into it.
func (l *Loop) Begun() (number int, carry []byte, begun bool) { return l.number, l.carry, l.open }

// Assigned returns the rows that this member has in the iteration, in the order in which it does them. More may
// follow until closed.
func (l *Loop) Assigned() (list []workcore.Span, closed bool) { return l.self.spans, l.self.closed }

// SetDone notes that this member has done the first of its rows, and at which speed: 0 is unknown.
func (l *Loop) SetDone(rows int, speed float64) {
	if l.ended || !l.open || rows < l.self.done || rows > partition.Total(l.self.spans) {
		return
	}
	if l.self.done = rows; speed > 0 && speed <= math.MaxFloat64 {
		l.self.speed = speed
	}
	l.report()
}

// GiveBack has this member give back all but the rows that it has done, and take no part in later iterations, until
// [Loop.TakeBack]. The home keeps its rows.
func (l *Loop) GiveBack() {
	if l.back = false; !l.opts.Home && !l.ended && !l.self.gives {
		l.self.gives, l.self.closed, l.self.spans = true, true, first(l.self.spans, l.self.done)
		l.report()
		l.gave = l.home.version
	}
}

// TakeBack has this member get rows again, from one of the next iterations on.
func (l *Loop) TakeBack() {
	l.back = l.self.gives
	l.takeBack()
}

// takeBack has the member get rows again once its home knows that it has given back the rows of the iteration that
// runs: what it says next replaces that.
func (l *Loop) takeBack() {
	if l.back && !l.ended && l.home.acked >= l.gave {
		l.back, l.self.gives = false, false
		l.report()
	}
}

// SetPartial notes the partial result of this member in the iteration, and its type.
func (l *Loop) SetPartial(value []byte, typ string) error {
	switch {
	case l.ended || !l.open || !l.self.closed || l.self.has:
		return fmt.Errorf("loop %q: iteration %d: its rows are not done: let the body range over all of Mine, then call Reduce once", l.opts.Name, l.number)
	case len(value) > workcore.MaxBody:
		return fmt.Errorf("loop %q: iteration %d: the partial result has %d bytes, and at most %d are allowed", l.opts.Name, l.number, len(value), workcore.MaxBody)
	}
	l.self.has, l.self.partial, l.self.typ = true, value, clipped(typ)
	l.report()
	return nil
}

func clipped(text string) string { return text[:min(len(text), workcore.MaxError)] }

// report has the home hear of a change at this member.
func (l *Loop) report() {
	if l.opts.Home {
		l.settle()
		return
	}
	l.home.changed()
}

// Parts returns, at the home, all partial results in the order of their first rows, once they are there. Those
// without rows are left out, but for one of the home if nobody has any.
func (l *Loop) Parts() (list []Part, complete bool) {
	if !l.open || !l.self.has {
		return nil, false
	}
	list = slices.Clone(l.gone)
	for _, s := range l.all() {
		if s.in {
			list = append(list, s.part())
		}
	}
	list = slices.DeleteFunc(list, func(p Part) bool { return p.Rows == 0 })
	if len(list) == 0 {
		return []Part{l.self.part()}, true
	}
	slices.SortFunc(list, func(a, b Part) int { return a.First - b.First })
	return list, true
}

// Reduced ends, at the home, the iteration with the value that its partial results have come to.
func (l *Loop) Reduced(now clocksync.Instant, value []byte) error {
	if !l.opts.Home || !l.open || !l.self.has || l.ended {
		return fmt.Errorf("loop %q: iteration %d: its partial results are not there", l.opts.Name, l.number)
	}
	if len(value) > workcore.MaxBody {
		return fmt.Errorf("loop %q: iteration %d: the reduced value has %d bytes, and at most %d are allowed", l.opts.Name, l.number, len(value), workcore.MaxBody)
	}
	l.noteReduced(now)
	l.open, l.value = false, value
	for _, s := range l.seats {
		s.changed()
	}
	return nil
}

// Value returns, at a member that is not the home, the reduced value of an iteration once it is there.
func (l *Loop) Value(number int) (value []byte, ok bool) {
	return l.value, !l.opts.Home && number > 0 && l.number > number
}

// Leave ends the loop here. At the home it ends for all members, with why as its fault if that is not empty.
func (l *Loop) Leave(why string) {
	if l.ended {
		return
	}
	reduced := l.number > 0 && !l.open
	l.end(why)
	if !l.opts.Home {
		l.self.out = true
		l.home.changed()
		return
	}
	for _, s := range l.seats {
		if reduced && s.in && s.number <= l.number { // The end must not overtake the last value.
			s.valued, s.value = l.number, l.value
		}
		l.past = append(l.past, s.line)
	}
	for _, p := range l.away {
		l.past = append(l.past, line{Peer: p})
	}
	l.seats, l.away = nil, nil
	for i := range l.past {
		l.past[i].why = cmp.Or(l.past[i].why, clipped(why))
		l.past[i].changed()
	}
}

func (l *Loop) end(why string) { l.ended, l.open, l.why = true, false, why }

// TakeFrame takes a frame of another member of the roster.
func (l *Loop) TakeFrame(now clocksync.Instant, from workcore.Peer, f *workcore.LoopFrame) {
	switch {
	case f.Name != l.opts.Name || !slices.Contains(l.roster, from) || f.Check() != nil:
	case l.opts.Home && f.Home:
		l.Leave(fmt.Sprintf("members %q and %q both say that they are its home: let one of them say so", l.opts.Self.Name, from.Name))
	case l.opts.Home:
		l.takeReport(now, from, f)
	case f.Home:
		l.takeOrder(from, f)
	}
}

// news notes what a frame says of the exchange, and reports whether the rest of it is new.
func (l *line) news(f *workcore.LoopFrame) bool {
	l.acked = max(l.acked, min(f.Heard, l.version))
	l.asked = l.asked || f.Asks
	if f.Version <= l.heard {
		return false
	}
	l.heard = f.Version
	return true
}

// takeReport takes, at the home, what a member says.
func (l *Loop) takeReport(now clocksync.Instant, from workcore.Peer, f *workcore.LoopFrame) {
	if i := slices.IndexFunc(l.past, func(p line) bool { return p.Peer == from }); i >= 0 {
		l.past[i].news(f)
		return
	}
	l.away = slices.DeleteFunc(l.away, func(p workcore.Peer) bool { return p == from })
	s := l.find(from)
	if s == nil {
		s = &seat{line: line{Peer: from}}
		s.changed()
		why := ""
		if f.Total != l.opts.Total {
			why = fmt.Sprintf("member %q has %d rows, and its home, member %q, has %d: let all programs give the same total", from.Name, f.Total, l.opts.Self.Name, l.opts.Total)
		}
		if why != "" || l.ended {
			s.news(f)
			s.why = cmp.Or(why, clipped(l.why))
			l.past = append(l.past, s.line)
			return
		}
		at, _ := slices.BinarySearchFunc(l.seats, from, func(o *seat, p workcore.Peer) int {
			return cmp.Or(strings.Compare(o.Name, p.Name), cmp.Compare(o.Life, p.Life))
		})
		l.seats = slices.Insert(l.seats, at, s)
	}
	if !s.news(f) {
		return
	}
	if f.Number > s.number {
		s.number = f.Number
		s.changed() // The next message to it depends on that.
	}
	if f.Out {
		l.lose(now, s)
		s.changed()
		l.past = append(l.past, s.line)
		l.settle()
		return
	}
	if f.Gives && !s.gives {
		s.until = now
	}
	s.gives = f.Gives
	if !l.open || !s.in || f.Number != l.number {
		return
	}
	if f.Speed > 0 && (s.speed == 0 || !f.Gives) { // A member that gives its rows back may have done too few of them.
		s.speed = f.Speed
	}
	if f.Done >= s.done && f.Done <= partition.Total(s.spans) {
		s.done = f.Done
	}
	l.settle()
	if f.Has && s.closed && s.done == f.Done && !s.has {
		s.has, s.partial, s.typ = true, f.Value, f.Result
		l.settle()
	}
}

// takeOrder takes what the home says.
func (l *Loop) takeOrder(from workcore.Peer, f *workcore.LoopFrame) {
	if l.home.Name == "" {
		l.home.Peer = from
		l.home.changed() // It asks at once.
	}
	if l.home.Peer != from {
		if !l.ended {
			l.Leave(fmt.Sprintf("members %q and %q both say that they are its home: let one of them say so", l.home.Name, from.Name))
		}
		return
	}
	defer l.takeBack()
	if !l.home.news(f) || l.ended {
		return
	}
	switch {
	case f.Ended:
		if f.Has && f.Number == l.number && l.open && l.self.has {
			l.value, l.number = f.Value, l.number+1
		}
		l.end(f.Error)
	case f.Has:
		if f.Number == l.number && l.open && l.self.has {
			l.value, l.number, l.open = f.Value, l.number+1, false
			l.home.changed()
		}
	case f.Number > 0 && !l.open && f.Number >= l.number: // Greater: the home has not waited for it meanwhile.
		l.number, l.open, l.carry = f.Number, true, f.Value
		l.self = seat{line: l.self.line, speed: l.self.speed, gives: l.self.gives, spans: f.Spans, closed: f.Close}
		if l.self.gives {
			l.self.spans, l.self.closed = nil, true
		}
		l.home.changed()
	case f.Number == l.number && l.open && !l.self.closed && partition.Total(f.Spans) >= partition.Total(l.self.spans):
		l.self.spans, l.self.closed = f.Spans, f.Close
	}
}

// Frames appends the messages to send now.
func (l *Loop) Frames(now clocksync.Instant, dst []workcore.Frame) []workcore.Frame {
	add := func(to *line, f workcore.LoopFrame) {
		f.Name, f.Home, f.Version, f.Heard, f.Asks = l.opts.Name, l.opts.Home, to.version, to.heard, to.acked < to.version
		to.asked, to.again = false, now.Add(l.opts.Repeat)
		dst = append(dst, workcore.Frame{From: l.opts.Self, To: to.Peer, Loop: &f})
	}
	if !l.opts.Home {
		if h := &l.home; h.due(now) {
			if f := l.say(); h.Name != "" {
				add(h, f)
			} else if h.again = now.Add(l.opts.Repeat); !l.ended {
				for _, p := range l.roster {
					if h.Peer = p; p != l.opts.Self {
						add(h, f)
					}
				}
				h.Peer = workcore.Peer{}
			}
		}
		return dst
	}
	for _, p := range l.away { // Once: a member that comes later asks for its home.
		dst = append(dst, workcore.Frame{From: l.opts.Self, To: p, Loop: &workcore.LoopFrame{Name: l.opts.Name, Home: true}})
	}
	l.away = nil
	for _, s := range l.seats {
		if s.due(now) {
			add(&s.line, l.order(s))
		}
	}
	for i := range l.past {
		if p := &l.past[i]; p.asked || p.heard > 0 && p.due(now) || p.acked == 0 && p.again == clocksync.MinInstant {
			f := workcore.LoopFrame{Ended: true, Error: p.why}
			if p.valued > 0 {
				f.Number, f.Has, f.Value = p.valued, true, p.value
			}
			add(p, f)
		}
	}
	return dst
}

func (l *line) due(now clocksync.Instant) bool {
	return l.asked || l.acked < l.version && l.again <= now
}

// order is what the home says to a member.
func (l *Loop) order(s *seat) workcore.LoopFrame {
	switch {
	case s.number > 0 && s.number <= s.valued:
		return workcore.LoopFrame{Number: s.valued, Has: true, Value: s.value}
	case l.number > 0 && s.in && s.number >= s.since && s.number < l.number, l.number > 0 && s.in && !l.open && s.number == l.number:
		return workcore.LoopFrame{Number: s.number, Has: true, Value: l.value}
	case !l.open || !s.in:
		return workcore.LoopFrame{}
	}
	f := workcore.LoopFrame{Number: l.number, Spans: s.spans, Close: s.closed}
	if !s.has {
		f.Value = l.carry
	}
	return f
}

// say is what a member says to its home.
func (l *Loop) say() workcore.LoopFrame {
	f := workcore.LoopFrame{Number: l.number, Total: l.opts.Total, Gives: l.self.gives, Out: l.self.out, Speed: l.self.speed}
	if l.open {
		if f.Done = l.self.done; l.self.has {
			f.Has, f.Value, f.Result = true, l.self.partial, l.self.typ
		}
	}
	return f
}

// Wake is when [Loop.Frames] is due next even if nothing happens.
func (l *Loop) Wake() clocksync.Instant {
	at := clocksync.MaxInstant
	look := func(o *line) {
		switch {
		case o.asked:
			at = clocksync.MinInstant
		case o.acked < o.version:
			at = min(at, o.again)
		}
	}
	if !l.opts.Home {
		if l.home.Name != "" || !l.ended {
			look(&l.home)
		}
		return at
	}
	for _, s := range l.seats {
		look(&s.line)
	}
	for i := range l.past {
		if p := &l.past[i]; p.heard > 0 || p.asked {
			look(p)
		}
	}
	return at
}
