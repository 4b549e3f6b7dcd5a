package synchronizer

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/monitor"
)

// item is one message for the owner of the core.
type item struct {
	ack    bool
	group  string // of the member, if it is another one
	by     string // the multiplexer that has brought it; empty: it came from the member itself
	member string
	frame  []byte
	body   *bus.Message      // a request on the data subject; frame is empty then
	at     clocksync.Instant // when it came
	shed   uint64            // how many of its sender were shed before it
}

// cost is what a message takes of the inbox: its bytes, and what it takes beside them.
func (it *item) cost() int {
	if it.body != nil {
		return itemCost + len(it.body.Data)
	}
	return itemCost + len(it.frame)
}

// The bounds of waiting messages. In all they hold inboxBytes, so at most inboxBytes/itemCost
// messages.
const (
	inboxBytes = 64 << 20
	itemCost   = 256
	// inboxAge is how long a message from a heavy sender may wait. If messages have waited
	// longer during inboxGrace, the inbox drops all messages of heavy senders that have waited
	// for inboxRest, except the newest of each. A core that was held up only for a moment needs
	// less than inboxGrace. So the core soon catches up, and knows a common state of all
	// senders in between. Dropping at different times for each sender would never give it one.
	inboxAge   = time.Second
	inboxGrace = inboxAge / 2
	inboxRest  = inboxAge / 4
	// turnBytes is how much is taken of a sender before the next one's turn, and takeBytes how
	// much is taken at once. After that the loop answers questions and looks at timers.
	turnBytes = 8 << 10
	takeBytes = 64 << 10
	// idleSenders is how many senders without waiting messages are remembered.
	idleSenders = 4096
	// nodesKept is for how many messages there is room while none waits.
	nodesKept = 16_384
	// shedNames is how many senders are counted by name.
	shedNames  = 256
	otherNames = "(others)" // no sender can have that name
)

// sender is the sender of a message and its kind of subject: order is kept within that.
type sender struct {
	ack, body     bool
	group, member string
}

// waiting are the waiting messages of a single sender, in order.
type waiting struct {
	sender

	first, last int32 // nodes
	messages    int
	cost        int
	shed        uint64 // messages so far
	credit      int    // what it may have taken before the next one's turn; below 0: it has had more
	place       int    // among the senders with waiting messages
	listed      bool
	fresh       bool     // it is in the list of those that have begun to send
	next        *waiting // in its list
}

// line is a list of senders.
type line struct{ first, last *waiting }

func (l *line) add(w *waiting) {
	w.next = nil
	if l.first == nil {
		l.first = w
	} else {
		l.last.next = w
	}
	l.last = w
}

func (l *line) pop() { l.first = l.first.next }

// node is a message in the list of its sender.
type node struct {
	item

	next int32
	mark uint64
}

// mark is a round trip to the server that is complete, before which messages wait.
type mark struct {
	begun clocksync.Instant
	older int // messages that came before it and after the one before, and wait
}

// maxMarks is how many round trips wait for the messages before them.
const maxMarks = 64

// Why frames are shed.
const (
	shedFull = iota // the inbox is full, and the sender has more than its share of it
	shedOld         // it has waited for too long, and a newer one of the sender waits
	shedReasons
)

var shedWords = [shedReasons]string{shedFull: "full", shedOld: "old"}

// shed counts frames by reason.
type shed [shedReasons]uint64

func (s shed) total() uint64 { return s[shedFull] + s[shedOld] }

// inbox is the only way to a core: bounded, many writers, one reader. No writer waits, so a
// flooding sender does not hold up the others. Senders take turns, and a sender that has just
// begun is first, so each waits for at most a turn of the others. When the inbox is full, and
// where the core falls behind, it drops frames undecoded: the oldest of the senders that have
// more than their share. The next frame shows the gap. The newest frame is kept, unless
// the inbox is full of messages that are the only ones of their senders: then it is dropped.
type inbox struct {
	mu      sync.Mutex
	limit   int
	cost    int
	count   int
	closed  bool
	nodes   []node
	free    int32 // list of nodes that are not used; below 0: none
	senders map[sender]*waiting
	active  []*waiting // senders with waiting messages
	heavy   *waiting   // that has lost something last
	walked  int        // where the search for one was
	fresh   line       // those that have begun to send
	turns   line       // all others with waiting messages, now or a turn ago
	taken   clocksync.Instant
	since   clocksync.Instant // before that the owner of the core stood still
	late    clocksync.Instant // since then messages have waited for too long; MaxInstant: they have not

	// Round trips: marks[i] is the mark of number first+i. A message that comes now is before
	// the mark of the number that follows.
	marks   []mark
	marked  uint64
	newer   int               // messages that wait and came after all marks
	reached clocksync.Instant // the newest round trip before which nothing waits; 0: there was none

	sheds  shed
	bySend map[string]*shed
	ready  chan struct{}
}

func newInbox(limit int) *inbox {
	return &inbox{
		limit: limit, free: -1, senders: map[sender]*waiting{}, ready: make(chan struct{}, 1), bySend: map[string]*shed{},
		taken: clocksync.MinInstant, since: clocksync.MinInstant, late: clocksync.MaxInstant,
	}
}

// putMessage never waits.
func (b *inbox) putMessage(it item) {
	b.mu.Lock()
	if !b.closed {
		b.add(&it)
	}
	b.mu.Unlock()
	b.wake()
}

func (b *inbox) wake() {
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

func (b *inbox) add(it *item) {
	w, cost := b.of(it), it.cost()
	for b.cost+cost > b.limit {
		victim := b.tooMuch(w, cost)
		if victim == nil {
			b.lost(w, shedFull)
			return
		}
		b.lost(victim, shedFull)
		b.remove(victim)
	}
	n := b.free
	if n < 0 {
		n = int32(len(b.nodes)) //nolint:gosec // Bounded by the limit.
		b.nodes = append(b.nodes, node{})
	} else {
		b.free = b.nodes[n].next
	}
	b.nodes[n] = node{item: *it, next: -1, mark: b.marked}
	if w.messages == 0 {
		w.first, w.place = n, len(b.active)
		b.active = append(b.active, w)
	} else {
		b.nodes[w.last].next = n
	}
	w.last = n
	w.messages++
	w.cost += cost
	b.cost += cost
	b.count++
	b.newer++
	if !w.listed {
		w.listed, w.fresh, w.credit = true, true, turnBytes
		b.fresh.add(w)
	}
}

// of finds the sender of a message.
func (b *inbox) of(it *item) *waiting {
	key := sender{ack: it.ack, body: it.body != nil, group: it.group, member: it.member}
	w := b.senders[key]
	if w == nil {
		if len(b.senders) >= idleSenders+len(b.active) {
			for k, w := range b.senders {
				if w.messages == 0 && !w.listed {
					delete(b.senders, k)
				}
			}
		}
		w = &waiting{sender: key}
		b.senders[key] = w
	}
	return w
}

// tooMuch is a sender that has its share of the inbox or more, and two messages at least: the
// sender of the new message, if it is such a sender. It is nil if there is none.
func (b *inbox) tooMuch(adds *waiting, cost int) *waiting {
	if len(b.active) == 0 {
		return nil
	}
	share := b.cost / len(b.active)
	switch {
	case adds.messages > 0 && adds.cost+cost > share:
		return adds
	case b.heavy != nil && b.heavy.messages > 1 && b.heavy.cost >= share:
		return b.heavy
	case len(b.active) == b.count && adds.messages == 0: // Nobody has two.
		return nil
	}
	for range b.active {
		b.walked++
		if w := b.active[b.walked%len(b.active)]; w.messages > 1 && w.cost >= share {
			b.heavy = w
			return w
		}
	}
	if adds.messages > 0 {
		return adds
	}
	return nil
}

// lost counts a frame that is shed.
func (b *inbox) lost(w *waiting, why int) {
	w.shed++
	name := w.member
	if w.group != "" {
		name = w.group + "/" + w.member
	}
	counts := b.bySend[name]
	if counts == nil {
		if len(b.bySend) >= shedNames {
			name = otherNames
		}
		if counts = b.bySend[name]; counts == nil {
			counts = &shed{}
			b.bySend[name] = counts
		}
	}
	counts[why]++
	b.sheds[why]++
}

// remove takes out the oldest message of a sender.
func (b *inbox) remove(w *waiting) item {
	n := w.first
	it, marked := b.nodes[n].item, b.nodes[n].mark
	w.first = b.nodes[n].next
	b.nodes[n] = node{next: b.free}
	b.free = n
	w.messages--
	cost := it.cost()
	w.cost -= cost
	b.cost -= cost
	b.count--
	if w.messages == 0 {
		last := b.active[len(b.active)-1]
		b.active[w.place], last.place = last, w.place
		b.active = b.active[:len(b.active)-1]
	}
	if marked == b.marked {
		b.newer--
	} else {
		b.marks[len(b.marks)-int(b.marked-marked)].older-- //nolint:gosec // At most maxMarks.
		b.pass()
	}
	return it
}

// pass goes past the round trips before which nothing waits.
func (b *inbox) pass() {
	n := 0
	for n < len(b.marks) && b.marks[n].older == 0 {
		b.reached = b.marks[n].begun
		n++
	}
	if n > 0 {
		b.marks = b.marks[:copy(b.marks, b.marks[n:])]
	}
}

// takeTurn returns what it is the turn of, and the round trip that it is up to; spare is the
// slice it may reuse. more is set if something is left.
func (b *inbox) takeTurn(now clocksync.Instant, spare []item) (items []item, reached clocksync.Instant, more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(spare)
	items = spare[:0]
	if b.taken != clocksync.MinInstant && now.Sub(b.taken) >= pauseLimit {
		b.since = now
	}
	b.taken = now
	b.shedOld(now)
	for size := 0; b.count > 0 && size < takeBytes; {
		w := b.turn()
		if w.messages == 0 {
			b.rest(w)
			continue
		}
		if w.credit <= 0 {
			w.credit += turnBytes
			b.toTurns(w)
			continue
		}
		it := b.remove(w)
		it.shed = w.shed
		cost := it.cost()
		w.credit -= cost
		size += cost
		items = append(items, it)
	}
	switch {
	case b.count > 0:
		b.wake()
	case len(b.nodes) > nodesKept: // A flood is over.
		b.nodes, b.free = nil, -1
	}
	return items, b.reached, b.count > 0
}

// age is how long the oldest message of a sender has waited.
func (b *inbox) age(now clocksync.Instant, w *waiting) time.Duration {
	return now.Sub(max(b.nodes[w.first].at, b.since))
}

// isMuch reports whether a sender has a quarter of its share of the waiting messages or more, and
// two messages at least: a sender with less does not cause the core to fall behind.
func (b *inbox) isMuch(w *waiting) bool {
	return w.messages > 1 && 4*w.cost >= b.cost/len(b.active)
}

// shedOld sheds what has waited for too long, but for the newest of each sender.
func (b *inbox) shedOld(now clocksync.Instant) {
	switch late := slices.ContainsFunc(b.active, func(w *waiting) bool { return b.isMuch(w) && b.age(now, w) > inboxAge }); {
	case !late:
		b.late = clocksync.MaxInstant
		return
	case b.late == clocksync.MaxInstant:
		b.late = now
	}
	if now.Sub(b.late) < inboxGrace {
		return
	}
	b.late = clocksync.MaxInstant
	for _, w := range b.active {
		for much := b.isMuch(w); much && w.messages > 1 && b.age(now, w) > inboxRest; {
			b.remove(w)
			b.lost(w, shedOld)
		}
	}
}

// turn returns the first sender. There must be one.
func (b *inbox) turn() *waiting {
	if b.fresh.first != nil {
		return b.fresh.first
	}
	return b.turns.first
}

// toTurns has whoever is first wait for the next turn.
func (b *inbox) toTurns(w *waiting) {
	if w.fresh {
		b.fresh.pop()
	} else {
		b.turns.pop()
	}
	w.fresh = false
	b.turns.add(w)
}

// rest takes a sender without waiting messages off its list. A sender that has just begun waits
// for the others' turn first, or it would be first again with its next message.
func (b *inbox) rest(w *waiting) {
	if w.fresh && b.turns.first != nil {
		b.toTurns(w)
		return
	}
	if w.fresh {
		b.fresh.pop()
	} else {
		b.turns.pop()
	}
	w.listed, w.fresh = false, false
}

// noteRoundTrip notes a round trip that is complete.
func (b *inbox) noteRoundTrip(begun clocksync.Instant) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.count == 0:
		b.reached = begun
	case len(b.marks) < maxMarks:
		b.marks = append(b.marks, mark{begun, b.newer})
		b.marked++
		b.newer = 0
		b.pass()
	}
}

// stoodUntil is until when the owner of the core stood still the last time.
func (b *inbox) stoodUntil() clocksync.Instant {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.since
}

// heardUpTo is the newest round trip before which nothing waits.
func (b *inbox) heardUpTo() clocksync.Instant {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reached
}

// depth is how many messages wait.
func (b *inbox) depth() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count
}

// shedCounts is how many frames were shed.
func (b *inbox) shedCounts() shed {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sheds
}

// maxShedTold is how many senders a report of dropped frames names.
const maxShedTold = 32

// shedBy is that by sender, of those that have lost most.
func (b *inbox) shedBy() []monitor.ShedStatus {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := make([]monitor.ShedStatus, 0, len(b.bySend))
	for name, s := range b.bySend {
		list = append(list, monitor.ShedStatus{From: name, Full: s[shedFull], Old: s[shedOld]})
	}
	slices.SortFunc(list, func(a, b monitor.ShedStatus) int {
		return cmp.Or(cmp.Compare(b.Full+b.Old, a.Full+a.Old), cmp.Compare(a.From, b.From))
	})
	return list[:min(len(list), maxShedTold)]
}

// closeInbox drops all later messages.
func (b *inbox) closeInbox() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
}
