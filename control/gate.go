package control

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/nearest"
)

// The limits of a [Gate].
const (
	MaxOpen    = 256     // regions open at once
	MaxWaiting = 16      // unfinished activations of an entry
	MaxFates   = 4096    // final fates remembered
	MaxKept    = 1024    // final fates kept until their synchronizer has recorded them
	MaxTerm    = 1 << 62 // terms and epochs are below
	maxSenders = 64      // synchronizers beside the own one whose epochs are remembered, or marks in one entry

	epochStep = 1 << 20 // an epoch is at most so much above the one before
)

// Delivery is where an activation's handler runs.
type Delivery uint8

// The two places: at the region's next check, on the goroutine of its work; or
// at once, on another goroutine beside it.
const (
	AtCheck Delivery = iota
	AtOnce
	deliveries
)

// Handler declares that a region reacts to activations of that name.
type Handler struct {
	Name string   // of the signals it is for
	At   Delivery // where it runs; AtCheck by default
}

// Outcome is a signal and what became of it.
type Outcome struct {
	Signal *Signal // as it was offered, not copied
	Fate   Fate    // Waiting as long as it is not final
	Detail string  // why it was refused
	Again  bool    // a copy of a signal offered before; Fate is the fate of the first
	// Copy is the decision of the newest copy from a later term, which is to learn of the
	// fate as well; zero if there is none.
	Copy Decision
}

// Fated is what has become of a signal, by what names its firing in every term.
type Fated struct {
	Cause Cause  `json:"cause"` // of the firing
	Name  string `json:"name"`  // of the signal
	Entry uint64 `json:"entry"` // that it was decided on
	Fate  Fate   `json:"fate"`  // Waiting, or a final one
}

// Kept is the final fate of a signal that its synchronizer may not have recorded.
type Kept struct {
	Decision  Decision // that has sent it
	Name      string   // of the signal
	Target    string   // that it was for
	Predicate string   // that fired
	Region    string   // that it was for
	Kind      Kind     // Activate or Cancel
	Entry     uint64   // that it was decided on
	Fate      Fate     // final
	Detail    string   // why, for people

	cause Cause // of its firing
}

// Gate holds the rules of a participant's regions (PEGASUS paper, section 2.1): whether a
// signal waits, takes effect or is ignored.
//
//   - Every entry into a region has its own number. Numbers count from 1 over all regions of
//     the participant and are never used twice. A region is open at most once at a time;
//     different regions may be open together.
//   - A signal is accepted only in the entry it was decided on, once, and only if the gate has
//     seen no newer term or epoch of its synchronizer. A newer epoch does not recall an
//     accepted signal.
//   - Only [Gate.Lead] begins a term of the own synchronizer. Terms of other synchronizers, and
//     all epochs, begin with a signal decided in them, within bounds. At most 64 other
//     synchronizers are remembered. A new one replaces the one not heard for the longest,
//     unless a signal of that waits or an open entry rests on it.
//   - Within a term the [Decision], name and target of a signal tell copies of it apart from
//     others. Signals of two terms are the same if their [Cause], name, target and entry are,
//     unless the older signal was fenced off. A signal that may be the same, by
//     [Cause.Perhaps], as a waiting or applied signal is [Unconfirmed].
//   - An activation needs a handler of its name and waits until [Gate.Next] takes it out; an
//     entry has at most [MaxWaiting] unfinished activations. A cancellation needs no handler
//     and takes effect in the moment it is accepted: no waiting signal begins any more, and
//     later signals find the entry over.
//   - A signal with a TTL expires that long after it was offered, if it still waits; a copy of
//     it then gets the same answer. A TTL of zero does not expire.
//   - An accepted signal ends in exactly one final fate, which [Gate.Settled] hands out;
//     [Gate.Offer] returns the fate of any other signal. A copy is answered with the fate of
//     the first. The last [MaxFates] final fates are remembered, and [MaxKept] until their
//     synchronizer says that it has recorded them ([Gate.Recorded]). After that the entry's
//     number keeps copies out and, while the entry is still open, the number of the decision: a
//     forgotten number, or a number near it, is [Unconfirmed]. A garbled number keeps out
//     itself and none below it, as long as there are few of them.
//
// A Gate belongs to one goroutine at a time. It keeps the signals handed to it, and makes no
// copies.
type Gate struct {
	entries uint64 // the last entry number
	open    []*entry
	own     fence // of the synchronizer that has taken the participant in
	others  []fence
	head    Decision // of the signals that come, see Fence; without a Number
	heard   uint64   // how often a synchronizer was
	known   map[id]*record
	caused  map[causeID]*record // those that have a cause
	few     *record             // in the place of known, if once: those whose fate is not final
	kept    []Kept              // oldest first
	lost    uint64              // kept no more, and not recorded as far as is known
	settled []Outcome
	// order holds the known records with a final fate, oldest at order[next] once it is full.
	order []*record
	next  int
	until clocksync.Instant // nothing that waits expires sooner; MaxInstant: nothing does
	once  bool              // see Once
	spare *record           // the one forgotten last, to be used again; nil: there is none
}

type entry struct {
	region   string
	number   uint64
	handlers []Handler
	waiting  [deliveries][]held
	begun    int // activations taken out and not finished
	canceled *Signal
	marks    []mark // of the decisions that are forgotten, one for each synchronizer
	crowded  bool   // of more synchronizers than there may be marks: nothing is known of those without one
}

// mark has the numbers of the forgotten decisions of a term, and of some between them: spans in
// order. A number far from the others, such as a garbled number, so keeps out only itself.
type mark struct {
	synchronizer string
	term         uint64
	spans        []span
	recent       [8]uint64 // the numbers added last
}

type span struct{ from, to uint64 }

// maxSpans is how many spans a mark has. Above that two become one: the lowest, if numbers have
// gone beyond them, else the nearest.
const maxSpans = 64

type held struct {
	signal *Signal
	until  clocksync.Instant
}

// fence is the knowledge about a synchronizer.
type fence struct {
	synchronizer string
	term, epoch  uint64
	led          bool   // the participant was taken in by it, in this term
	records      bool   // it tells which fates it has recorded
	waits        int    // signals without a final fate
	heard        uint64 // when it was last, by that of the gate
}

// passed reports whether a decision is of an older term or epoch.
func (f *fence) passed(d *Decision) bool {
	return d.Term < f.term || d.Term == f.term && d.Epoch < f.epoch
}

// key tells signals apart: copies have equal keys.
type key struct {
	decision     Decision
	name, target string
}

func keyOf(s *Signal) key { return key{s.Decision, s.Name, s.Target} }

// id is the part of a key by which it is looked up: few keys have it in common, and it
// costs less than the whole.
type id struct {
	number uint64 // of the decision
	name   string
}

func (k *key) id() id { return id{k.decision.Number, k.name} }

// causeID is the lookup key of a firing, the same in every term.
type causeID struct {
	Cause

	entry uint64
}

// record is the memory of a signal.
type record struct {
	key    key
	entry  uint64
	cause  Cause    // zero: it has none, was fenced off, or is perhaps another one's
	copied Decision // Outcome.Copy
	signal *Signal  // nil if its fate is final: its data are not kept
	fate   Fate
	detail string
	told   bool    // its synchronizer has recorded one in its place, and waits no longer
	older  bool    // a term before that of the key's decision has made it
	next   *record // with the same id, or any
	alike  *record // with the same causeID
}

// NewGate returns the gate of a participant that is in no region.
func NewGate() *Gate {
	return &Gate{known: map[id]*record{}, caused: map[causeID]*record{}, until: clocksync.MaxInstant}
}

// Once has a new gate remember no final fate: no synchronizer sends a signal to it twice.
// Copies of a waiting signal are still recognized.
func (g *Gate) Once() { g.once = true }

// Enter opens a region and returns the number of this entry. It fails if the
// region is open already, if a handler is declared twice, or if [MaxOpen]
// regions are open.
func (g *Gate) Enter(region string, handlers []Handler) (uint64, error) {
	if g.find(region) != nil {
		return 0, fmt.Errorf("region %q is entered a second time: leave it first, or use a thread of its own for each", region)
	}
	if len(g.open) == MaxOpen {
		return 0, fmt.Errorf("region %q: %d regions are open, more are not allowed: leave some", region, MaxOpen)
	}
	for i, h := range handlers {
		if slices.ContainsFunc(handlers[:i], func(o Handler) bool { return o.Name == h.Name }) {
			return 0, fmt.Errorf("region %q has two handlers for signal %q: keep one", region, h.Name)
		}
	}
	g.entries++
	g.open = append(g.open, &entry{region: region, number: g.entries, handlers: slices.Clone(handlers)})
	return g.entries, nil
}

// Leave closes an entry: the activations that wait in it become [NoSuchEntry].
// It returns the cancellation that the entry had accepted, or nil; its handler
// runs after the region, and [Gate.Finish] ends it as it ends the activations
// that have begun. Leaving an entry that is not open does nothing.
func (g *Gate) Leave(number uint64) *Signal {
	i := slices.IndexFunc(g.open, func(e *entry) bool { return e.number == number })
	if i < 0 {
		return nil
	}
	e := g.open[i]
	g.open = slices.Delete(g.open, i, i+1)
	for _, queue := range e.waiting {
		for _, h := range queue {
			g.settle(g.recall(h.signal), NoSuchEntry, "the region was left")
		}
	}
	return e.canceled
}

// Current returns the number of the region's open entry, 0 if it is not open.
func (g *Gate) Current(region string) uint64 {
	if e := g.find(region); e != nil {
		return e.number
	}
	return 0
}

// Canceled returns the cancellation that an open entry has accepted, or nil.
func (g *Gate) Canceled(number uint64) *Signal {
	if e := g.entry(number); e != nil {
		return e.canceled
	}
	return nil
}

// Lead notes that a synchronizer has taken the participant in, in a term and epoch: it
// is the own one from now on, and what it has decided in older terms is [OldEpoch]. An
// error changes nothing.
func (g *Gate) Lead(synchronizer string, term, epoch uint64) error {
	f := g.fence(synchronizer)
	led := f != nil && f.led
	switch {
	case term >= MaxTerm || epoch >= MaxTerm:
		return fmt.Errorf("term %d, epoch %d: they are to be below 2^62", term, epoch)
	case led && term < f.term:
		return fmt.Errorf("term %d of %s is over: it is known in term %d", term, synchronizer, f.term)
	case led && term == f.term && epoch > f.epoch+epochStep:
		return fmt.Errorf("epoch %d of %s is far beyond epoch %d", epoch, synchronizer, f.epoch)
	}
	next := fence{synchronizer: synchronizer, term: term, epoch: epoch, led: true}
	if f != nil {
		next.waits, next.records = f.waits, f.records
	}
	if led && term == f.term {
		next.epoch = max(epoch, f.epoch)
	}
	if before := g.own; before.led && before.synchronizer != synchronizer {
		g.others = slices.DeleteFunc(g.others, func(f fence) bool { return f.synchronizer == synchronizer })
		if g.room() {
			before.heard = g.heard
			g.others = append(g.others, before)
		}
	}
	g.own = next
	return nil
}

// Fence sets the term and epoch of the synchronizer that sends the signals offered next:
// decisions of older terms and epochs become [OldEpoch]. It refuses an impossible term or
// epoch. That alone raises nothing for good.
func (g *Gate) Fence(synchronizer string, term, epoch uint64) error {
	g.head = Decision{Synchronizer: synchronizer, Term: term, Epoch: epoch}
	return g.bounds(g.fence(synchronizer), &g.head)
}

// bounds says why a synchronizer, of which f is known, cannot have made a decision.
func (g *Gate) bounds(f *fence, d *Decision) error {
	switch {
	case d.Term >= MaxTerm || d.Epoch >= MaxTerm:
		return fmt.Errorf("term %d, epoch %d: they are to be below 2^62", d.Term, d.Epoch)
	case f == nil:
	case f == &g.own && d.Term > f.term:
		return fmt.Errorf("term %d of %s has not taken the participant in, term %d has", d.Term, d.Synchronizer, f.term)
	case d.Term == f.term && d.Epoch > f.epoch+epochStep:
		return fmt.Errorf("epoch %d of %s is far beyond epoch %d", d.Epoch, d.Synchronizer, f.epoch)
	}
	return nil
}

// fence is the record of a synchronizer, or nil.
func (g *Gate) fence(synchronizer string) *fence {
	if g.own.led && g.own.synchronizer == synchronizer {
		return &g.own
	}
	for i := range g.others {
		if g.others[i].synchronizer == synchronizer {
			return &g.others[i]
		}
	}
	return nil
}

// room makes room for one more synchronizer, if it can.
func (g *Gate) room() bool {
	if len(g.others) < maxSenders {
		return true
	}
	oldest := -1
	for i := range g.others {
		f := &g.others[i]
		if f.waits == 0 && (oldest < 0 || f.heard < g.others[oldest].heard) && !g.marked(f.synchronizer) {
			oldest = i
		}
	}
	if oldest >= 0 {
		g.others = slices.Delete(g.others, oldest, oldest+1)
	}
	return oldest >= 0
}

// marked reports whether an open entry has a mark of a synchronizer.
func (g *Gate) marked(synchronizer string) bool {
	return slices.ContainsFunc(g.open, func(e *entry) bool {
		return slices.ContainsFunc(e.marks, func(m mark) bool { return m.synchronizer == synchronizer })
	})
}

// admit finds the fence of a decision, raised by it, or makes one.
func (g *Gate) admit(d *Decision) (*fence, error) {
	f := g.fence(d.Synchronizer)
	if err := g.bounds(f, d); err != nil {
		return nil, err
	}
	if f == nil {
		if !g.room() {
			return nil, fmt.Errorf("signals of %d synchronizers wait, %q is one more than is allowed", maxSenders, d.Synchronizer)
		}
		g.others = append(g.others, fence{synchronizer: d.Synchronizer, term: d.Term, epoch: d.Epoch})
		f = &g.others[len(g.others)-1]
	}
	g.heard++
	f.heard = g.heard
	switch {
	case d.Term > f.term:
		f.term, f.epoch, f.led = d.Term, d.Epoch, false
	case d.Term == f.term:
		f.epoch = max(f.epoch, d.Epoch)
	}
	return f, nil
}

// Offer hands the gate a signal for this participant and returns its fate so
// far: [Waiting] if it was accepted, else the final one.
func (g *Gate) Offer(now clocksync.Instant, s *Signal) Outcome {
	first := g.recall(s)
	if first == nil {
		if first = g.fired(s); first != nil && first.signal != nil {
			first.copied = s.Decision
		}
	}
	if first != nil {
		if e := g.entry(first.entry); e != nil && first.signal != nil {
			g.expire(now, e) // Whoever asks for a signal whose time is over learns of that.
		}
		return Outcome{Signal: s, Fate: first.fate, Detail: first.detail, Again: true}
	}
	if e := g.entry(s.Entry); e != nil && e.forgotten(s.Decision, g.own.led && g.own.synchronizer == s.Decision.Synchronizer) {
		return Outcome{Signal: s, Fate: Unconfirmed, Detail: "too late to tell it from a copy of a signal that is forgotten"}
	}
	f, err := g.admit(&s.Decision)
	if err != nil {
		return Outcome{Signal: s, Fate: Refused, Detail: err.Error()}
	}
	fate, detail := g.judge(now, s, f)
	if s.Cause.Firing&Renewed != 0 && len(g.kept) > 0 {
		g.supersede(s)
	}
	r := g.note(s, fate, detail)
	if fate.Final() {
		g.remember(r)
	} else {
		f.waits++
	}
	return Outcome{Signal: s, Fate: fate, Detail: detail}
}

// fired finds the record of the same firing in another term.
func (g *Gate) fired(s *Signal) *record {
	if s.Cause.Source == 0 || g.once {
		return nil
	}
	r := g.caused[causeID{s.Cause.Plain(), s.Entry}]
	for r != nil && (r.key.name != s.Name || r.key.target != s.Target ||
		r.key.decision.Synchronizer != s.Decision.Synchronizer || r.key.decision.Term == s.Decision.Term) {
		r = r.alike
	}
	return r
}

// perhaps reports whether a signal that an earlier term has made may be of the same firing, and has
// had its effect in the entry, or waits for it.
func (g *Gate) perhaps(s *Signal) bool {
	if s.Cause.Firing&PerhapsMade == 0 {
		return false
	}
	own := s.Cause.Firing&Renewed == 0
	for at, r := range g.caused {
		for ; r != nil && at.entry == s.Entry && s.Cause.Perhaps(at.Cause); r = r.alike {
			made := &r.key.decision
			earlier := made.Term < s.Decision.Term || made.Term == s.Decision.Term && own && r.older
			if earlier && made.Synchronizer == s.Decision.Synchronizer && r.key.name == s.Name && r.key.target == s.Target && r.fate <= Applied {
				return true
			}
		}
	}
	return false
}

// Fated returns what has become of the signals of a synchronizer into entries that are
// open: of those that have a [Cause], at most so many, the newest first. Activations
// whose handlers run are left out.
func (g *Gate) Fated(synchronizer string, most int) []Fated {
	var told []Fated
	tell := func(r *record) {
		if len(told) < most && r.cause.Source != 0 && r.key.decision.Synchronizer == synchronizer && g.entry(r.entry) != nil {
			told = append(told, Fated{Cause: r.cause, Name: r.key.name, Entry: r.entry, Fate: r.fate})
		}
	}
	for _, e := range g.open {
		if e.canceled != nil {
			tell(g.recall(e.canceled))
		}
		for _, queue := range e.waiting {
			for _, h := range queue {
				tell(g.recall(h.signal))
			}
		}
	}
	for i := range g.order {
		tell(g.order[(g.next+len(g.order)-1-i)%len(g.order)])
	}
	return told
}

// recall finds the record of a signal, or of the signal that it is a copy of.
func (g *Gate) recall(s *Signal) *record {
	k := keyOf(s)
	r := g.alike(&k)
	for r != nil && r.key != k {
		r = r.next
	}
	return r
}

// alike is the first of the records that may have the key.
func (g *Gate) alike(k *key) *record {
	if g.once {
		return g.few
	}
	return g.known[k.id()]
}

// note begins to remember a signal.
func (g *Gate) note(s *Signal, fate Fate, detail string) *record {
	r := g.spare
	if g.spare = nil; r == nil {
		r = &record{}
	}
	*r = record{key: keyOf(s), entry: s.Entry, signal: s, fate: fate, detail: detail}
	r.next = g.alike(&r.key)
	g.begin(r, r)
	if s.Cause.Source != 0 && !g.once && fate != OldEpoch && fate != Unconfirmed {
		at := causeID{s.Cause.Plain(), s.Entry}
		r.cause, r.alike, r.older = at.Cause, g.caused[at], s.Cause.Firing&Renewed != 0
		g.caused[at] = r
	}
	return r
}

// begin makes first, which may be nil, the first of the records alike r.
func (g *Gate) begin(r, first *record) {
	switch {
	case g.once:
		g.few = first
	case first == nil:
		delete(g.known, r.key.id())
	default:
		g.known[r.key.id()] = first
	}
}

// judge decides on a signal that is no copy of a remembered signal.
func (g *Gate) judge(now clocksync.Instant, s *Signal, f *fence) (Fate, string) {
	if err := CheckData(s.Data); err != nil {
		return Refused, err.Error()
	}
	if head := (fence{term: g.head.Term, epoch: g.head.Epoch}); f.passed(&s.Decision) ||
		g.head.Synchronizer == s.Decision.Synchronizer && head.passed(&s.Decision) {
		return OldEpoch, "a newer epoch of " + s.Decision.Synchronizer + " has begun"
	}
	e := g.find(s.Region)
	switch {
	case e == nil:
		return NoSuchEntry, "the region is not open"
	case e.number != s.Entry:
		return NoSuchEntry, fmt.Sprintf("the region is in entry %d", e.number)
	case e.canceled != nil:
		return NoSuchEntry, "the region is being left"
	case g.perhaps(s):
		return Unconfirmed, "an earlier term has made it, or one on earlier runs of the same members, and it took effect in this entry"
	case s.Kind == Cancel:
		e.canceled = s
		return Waiting, ""
	case s.Kind != Activate:
		return Refused, "no signal has the kind " + s.Kind.String()
	}
	return g.enqueue(now, e, s)
}

// maxListedHandlers is how many names a refusal lists.
const maxListedHandlers = 8

// noHandler says that no handler takes a signal, and which signals have one.
func (e *entry) noHandler(signal string) string {
	names := make([]string, len(e.handlers))
	for i, h := range e.handlers {
		names[i] = h.Name
	}
	return fmt.Sprintf("region %q has no handler for %q: it has handlers for: %s", e.region, signal, nearest.List(names, maxListedHandlers))
}

func (g *Gate) enqueue(now clocksync.Instant, e *entry, s *Signal) (Fate, string) {
	i := slices.IndexFunc(e.handlers, func(h Handler) bool { return h.Name == s.Name })
	if i < 0 {
		return Refused, e.noHandler(s.Name)
	}
	g.expire(now, e)
	if e.begun+len(e.waiting[AtCheck])+len(e.waiting[AtOnce]) >= MaxWaiting {
		return Refused, fmt.Sprintf("%d signals wait for the region already", MaxWaiting)
	}
	until := clocksync.MaxInstant
	if s.TTL > 0 {
		until = now.Add(s.TTL)
	}
	queue := &e.waiting[e.handlers[i].At]
	*queue = append(*queue, held{s, until})
	g.until = min(g.until, until)
	return Waiting, ""
}

// Next takes out the oldest activation that waits in an entry for that way of
// delivery, nil if there is none or the entry is cancelled. The caller runs its
// handler and calls [Gate.Finish].
func (g *Gate) Next(now clocksync.Instant, number uint64, at Delivery) *Signal {
	e := g.entry(number)
	if e == nil || e.canceled != nil {
		return nil
	}
	g.expire(now, e)
	queue := e.waiting[at]
	if len(queue) == 0 {
		return nil
	}
	s := queue[0].signal
	e.waiting[at] = slices.Delete(queue, 0, 1)
	e.begun++
	return s
}

// Finish ends a signal that Next or Leave handed out, with [Applied] after its
// handler has returned, or with another final fate and why. It panics if the
// signal is not one of those, or has ended.
func (g *Gate) Finish(s *Signal, fate Fate, detail string) {
	r := g.recall(s)
	if r == nil || r.signal != s || !fate.Final() {
		panic(fmt.Sprintf("control: Finish(%v %q, %v): the signal does not wait", s.Decision, s.Name, fate))
	}
	if e := g.entry(s.Entry); e != nil && s.Kind == Activate {
		e.begun--
	}
	g.settle(r, fate, detail)
}

// Cancel cancels an open entry though nobody has decided that: s names the entry, and its
// decision has no synchronizer and the entry for a number, so that no signal is taken for a
// copy of it. It is then as if it had been accepted. It reports false, and does nothing, where the entry is
// over, or cancelled already.
func (g *Gate) Cancel(s *Signal) bool {
	e := g.entry(s.Entry)
	if e == nil || e.canceled != nil {
		return false
	}
	e.canceled = s
	g.note(s, Waiting, "")
	return true
}

// Settled returns the signals that were accepted and have found their final
// fate since the last call, in that order. The slice is reused.
func (g *Gate) Settled() []Outcome {
	out := g.settled
	g.settled = g.settled[:0]
	return out
}

// Expires is when [Gate.Expire] may next have something to do; MaxInstant if never.
func (g *Gate) Expires() clocksync.Instant { return g.until }

// Expire ends what waited for longer than its TTL in all entries, whether or not anybody asks
// for what waits there.
func (g *Gate) Expire(now clocksync.Instant) {
	if now < g.until {
		return
	}
	g.until = clocksync.MaxInstant
	for _, e := range g.open {
		g.expire(now, e)
		for _, queue := range e.waiting {
			for _, h := range queue {
				g.until = min(g.until, h.until)
			}
		}
	}
}

// expire ends what waited for longer than its TTL.
func (g *Gate) expire(now clocksync.Instant, e *entry) {
	for at, queue := range e.waiting {
		e.waiting[at] = slices.DeleteFunc(queue, func(h held) bool {
			if now < h.until {
				return false
			}
			g.settle(g.recall(h.signal), Expired, "the signal waited for longer than "+h.signal.TTL.String())
			return true
		})
	}
}

// settle ends a signal that was accepted.
func (g *Gate) settle(r *record, fate Fate, detail string) {
	g.settled = append(g.settled, Outcome{Signal: r.signal, Fate: fate, Detail: detail, Copy: r.copied})
	r.fate, r.detail = fate, detail
	if f := g.fence(r.key.decision.Synchronizer); f != nil {
		f.waits = max(0, f.waits-1)
	}
	g.remember(r)
}

// keep keeps a final fate until it is recorded. Of too many the oldest quarter is lost. That
// of [Gate.Cancel] is no synchronizer's.
func (g *Gate) keep(r *record) {
	if g.once || r.told || r.key.decision.Synchronizer == "" {
		return
	}
	k := Kept{
		r.key.decision, r.key.name, r.key.target, r.signal.Predicate, r.signal.Region, r.signal.Kind, r.entry, r.fate, r.detail,
		r.signal.Cause.Plain(),
	}
	g.kept = append(g.kept, k)
	if k.Decision = r.copied; k.Decision.Number > 0 {
		g.kept = append(g.kept, k)
	}
	if len(g.kept) <= MaxKept {
		return
	}
	for i := range g.kept[:MaxKept/4] { // Many at once, as the others move up.
		if g.Records(g.kept[i].Decision.Synchronizer) {
			g.lost++
		}
	}
	g.kept = slices.Delete(g.kept, 0, MaxKept/4)
}

// supersede drops the fates of older copies of a signal that were fenced off: the synchronizer
// that has renewed the signal records its own.
func (g *Gate) supersede(s *Signal) {
	g.kept = slices.DeleteFunc(g.kept, func(k Kept) bool {
		return k.Fate == OldEpoch && k.Decision.Synchronizer == s.Decision.Synchronizer && k.Decision.Term < s.Decision.Term &&
			k.cause == s.Cause.Plain() && k.Name == s.Name && k.Target == s.Target && k.Entry == s.Entry
	})
}

// Kept are the final fates that may not be recorded, the oldest first. They are read before
// the next call.
func (g *Gate) Kept() []Kept { return g.kept }

// Lost counts the fates that were kept no more, as there were too many, and that their
// synchronizer, which tells what it has recorded, has not recorded.
func (g *Gate) Lost() uint64 { return g.lost }

// Records reports whether a synchronizer tells which fates it has recorded.
func (g *Gate) Records(synchronizer string) bool {
	f := g.fence(synchronizer)
	return f != nil && f.records
}

// Recorded notes that a synchronizer has recorded the fate of the signal of that name of its
// decision number, whatever the epoch: the fate need not be reported any more.
func (g *Gate) Recorded(synchronizer string, term, number uint64, name string) {
	f := g.fence(synchronizer)
	if f == nil {
		return
	}
	f.records = true
	of := func(d *Decision) bool { return d.Number == number && d.Term == term && d.Synchronizer == synchronizer }
	for i := 0; i < len(g.kept); i++ {
		switch k := &g.kept[i]; {
		case !of(&k.Decision) || k.Name != name:
		case i == 0: // As nearly always: fates are recorded in order.
			*k = Kept{}
			g.kept = g.kept[1:]
			i--
		default:
			g.kept = slices.Delete(g.kept, i, i+1)
			i--
		}
	}
	for r := g.known[id{number, name}]; r != nil; r = r.next {
		r.told = r.told || of(&r.key.decision)
	}
}

// remember keeps a final fate, without the signal's data, and forgets the oldest
// above the limit.
func (g *Gate) remember(r *record) {
	g.keep(r)
	r.signal = nil
	switch {
	case g.once:
		g.forget(r)
		return
	case len(g.order) < MaxFates:
		g.order = append(g.order, r)
		return
	}
	oldest := g.order[g.next]
	g.forget(oldest)
	if e := g.entry(oldest.entry); e != nil {
		e.mark(oldest.key.decision, g.own.synchronizer)
	}
	g.order[g.next] = r
	g.next = (g.next + 1) % MaxFates
}

func (g *Gate) forget(r *record) {
	if at := (causeID{r.cause, r.entry}); r.cause.Source != 0 {
		switch before := g.caused[at]; {
		case before != r:
			for before.alike != r {
				before = before.alike
			}
			before.alike = r.alike
		case r.alike == nil:
			delete(g.caused, at)
		default:
			g.caused[at] = r.alike
		}
	}
	if before := g.alike(&r.key); before == r {
		g.begin(r, r.next)
	} else {
		for before.next != r {
			before = before.next
		}
		before.next = r.next
	}
	g.spare = r
}

// mark notes that a decision's signal to this entry is forgotten. The own synchronizer
// has room in any case.
func (e *entry) mark(d Decision, own string) {
	for i := range e.marks {
		if m := &e.marks[i]; m.synchronizer == d.Synchronizer {
			m.add(d)
			return
		}
	}
	if len(e.marks) >= maxSenders && d.Synchronizer != own {
		e.crowded = true
		return
	}
	e.marks = append(e.marks, mark{d.Synchronizer, d.Term, []span{{d.Number, d.Number}}, [8]uint64{}})
}

func (m *mark) add(d Decision) {
	switch {
	case d.Term < m.term:
		return // All of that term are kept out.
	case d.Term > m.term:
		m.term, m.spans = d.Term, m.spans[:0]
	}
	i := m.find(d.Number)
	if i < len(m.spans) && m.spans[i].from <= d.Number {
		return
	}
	copy(m.recent[1:], m.recent[:])
	m.recent[0] = d.Number
	if i > 0 && m.spans[i-1].to+1 == d.Number {
		m.spans[i-1].to++
		return
	}
	if m.spans = slices.Insert(m.spans, i, span{d.Number, d.Number}); len(m.spans) <= maxSpans {
		return
	}
	k, reached := 1, slices.Min(m.recent[:]) // Not all of these are garbled.
	for i := 2; m.spans[1].from > reached && i < len(m.spans); i++ {
		if m.spans[i].from-m.spans[i-1].to < m.spans[k].from-m.spans[k-1].to {
			k = i
		}
	}
	m.spans[k-1].to = m.spans[k].to
	m.spans = slices.Delete(m.spans, k, k+1)
}

// find is the place of the first span that does not end before a number.
func (m *mark) find(number uint64) int {
	i, _ := slices.BinarySearchFunc(m.spans, number, func(s span, number uint64) int { return cmp.Compare(s.to, number) })
	return i
}

// forgotten reports whether a decision may be one whose signal is forgotten.
func (e *entry) forgotten(d Decision, own bool) bool {
	for k := range e.marks {
		if m := &e.marks[k]; m.synchronizer == d.Synchronizer {
			i := m.find(d.Number)
			return d.Term < m.term || d.Term == m.term && i < len(m.spans) && m.spans[i].from <= d.Number
		}
	}
	return e.crowded && !own
}

func (g *Gate) find(region string) *entry {
	for _, e := range g.open {
		if e.region == region {
			return e
		}
	}
	return nil
}

func (g *Gate) entry(number uint64) *entry {
	for _, e := range g.open {
		if e.number == number {
			return e
		}
	}
	return nil
}
