package workcore

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// What a member tells of its objects to a strategy that is central.
const (
	MaxTold       = 64          // objects, and pairs of them
	MaxLabels     = 256         // bytes of the names of objects, together
	maxMetered    = 16_384      // objects and pairs that are measured
	meterWindow   = time.Second // between two measurements
	leastMeasured = 1e-6        // smaller values are forgotten
	maxDeclined   = 8           // refused orders that a member tells of
	declinedFor   = 10 * time.Second
)

// Load is what a member tells of its objects. It does not change.
type Load struct {
	Slots     int       // tasks that it runs at a time; 0: it takes no work
	Objects   []int64   // numbers of those that have run here, the heaviest first
	Weights   []float64 // of each the seconds in a second that it runs, or the weight that it was created with
	Names     []string  // of the first of them; empty: it cannot be printed
	Senders   []int64   // of pairs of objects: one of Objects
	Receivers []int64   // to which it sends
	Volumes   []float64 // messages in a second
	Refused   []int64   // objects that this member was ordered to move and did not
	Reasons   []string  // why, one of the words of [MoveAnswer]
}

// ObjectNumber is what a central strategy knows an object by. It fits into a float64.
func ObjectNumber(id string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	return int64(h.Sum64() >> 11) //nolint:gosec // It has 53 bits.
}

// Order orders a member to have one of its objects go to another member.
type Order struct {
	Object int64  // by its number
	To     string // name of a member
}

// MoveOrder asks the account of an object to have it be elsewhere. The member asks where the object is.
type MoveOrder struct {
	ID string // of the object
	To string // name of a member
}

// MoveAnswer answers a [MoveOrder].
type MoveAnswer struct {
	ID      string // of the object
	Refusal string // a word; empty: it moves, once it is saved
}

// The words of a refusal.
const (
	refusedGone   = "gone"   // the object is not there, or has ended
	refusedPinned = "pinned" // it does not move
	refusedBound  = "bound"  // it is bound to members
	refusedMember = "no such member"
	refusedAway   = "member takes no work"
)

var refusals = []string{"", refusedGone, refusedPinned, refusedBound, refusedMember, refusedAway}

func (o *MoveOrder) checkOrder() error {
	if o.ID == "" || len(o.ID) > MaxID || o.To == "" || len(o.To) > MaxName {
		return fmt.Errorf("the order to move object %.40q to member %.40q: an ID has 1 to %d bytes, and a name 1 to %d", o.ID, o.To, MaxID, MaxName)
	}
	return nil
}

func (a *MoveAnswer) checkAnswer() error {
	if a.ID == "" || len(a.ID) > MaxID || !slices.Contains(refusals, a.Refusal) {
		return fmt.Errorf("the answer %.40q to the order to move object %.40q: an answer is empty or one of %q", a.Refusal, a.ID, refusals[1:])
	}
	return nil
}

// pair is two objects, of which the first sends to the second.
type pair struct{ from, to string }

// meter measures the objects that run at a member: a mean over the windows, in which older windows count half as much
// as the next one.
type meter struct {
	begun    clocksync.Instant // of the window
	busy     map[string]time.Duration
	sent     map[pair]float64
	declared map[string]float64 // weights that objects were created with
	weights  map[string]float64
	volumes  map[pair]float64
	declined []declined
	leaves   map[string]bool // objects that run here, and go once they are saved
	changed  bool            // something else than a measurement
	load     *Load
}

// declined is an order that was refused.
type declined struct {
	id    string
	why   string
	until clocksync.Instant
}

func newMeter() *meter {
	return &meter{
		busy: map[string]time.Duration{}, sent: map[pair]float64{}, declared: map[string]float64{}, weights: map[string]float64{}, volumes: map[pair]float64{},
		leaves: map[string]bool{}, load: &Load{},
	}
}

// noteRun notes that an object ran from an instant on, and what it sent to other objects. Beyond the bound it is not
// measured.
func (m *meter) noteRun(now, since clocksync.Instant, t *Task, children []Task) {
	_, id := splitID(t.ID)
	if !m.willChange() {
		m.begun = since
	}
	d := now.Sub(max(since, m.begun))
	if _, known := m.busy[id]; known || len(m.busy) < maxMetered {
		m.busy[id] += d
		m.declared[id] = t.Weight
	}
	for i := range children {
		p := pair{id, children[i].For}
		if p.to == "" || p.to[:1] == groupMark {
			continue
		}
		if _, known := m.sent[p]; known || len(m.sent) < maxMetered {
			m.sent[p]++
		}
	}
}

// forgetObject drops an object that is not here any more.
func (m *meter) forgetObject(id string) {
	delete(m.busy, id)
	delete(m.weights, id)
	delete(m.declared, id)
	maps.DeleteFunc(m.sent, func(p pair, _ float64) bool { return p.from == id })
	maps.DeleteFunc(m.volumes, func(p pair, _ float64) bool { return p.from == id })
}

// willChange reports whether the next window may change the report.
func (m *meter) willChange() bool {
	return len(m.busy)+len(m.sent)+len(m.weights)+len(m.volumes)+len(m.declined) > 0
}

// end ends a window, and begins the next one.
func (m *meter) end(now clocksync.Instant) {
	seconds := now.Sub(m.begun).Seconds()
	m.begun = now
	fold(m.weights, m.busy, func(d time.Duration) float64 { return d.Seconds() / seconds })
	fold(m.volumes, m.sent, func(n float64) float64 { return n / seconds })
	for id := range m.declared {
		if _, measured := m.weights[id]; !measured {
			delete(m.declared, id)
		}
	}
	m.declined = slices.DeleteFunc(m.declined, func(d declined) bool { return now >= d.until })
}

// fold adds the values of a window to their means, and clears the window.
func fold[K comparable, V any](means map[K]float64, window map[K]V, value func(V) float64) {
	for k, v := range window {
		if _, known := means[k]; !known {
			means[k] = value(v) // The first one is the mean: it has none before it to be added to.
		} else {
			means[k] = (means[k] + value(v)) / 2
		}
	}
	for k := range means {
		if _, seen := window[k]; !seen {
			means[k] /= 2
		}
		if means[k] < leastMeasured {
			delete(means, k)
		}
	}
	clear(window)
}

// tell makes the report: the heaviest of the objects that are here, and the largest of their traffic.
func (m *meter) tell(slots int, here map[string]atHand) *Load {
	l := &Load{Slots: slots}
	weight := func(id string) float64 { return cmp.Or(m.declared[id], m.weights[id]) }
	ids := slices.SortedFunc(maps.Keys(m.weights), func(a, b string) int { return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(a, b)) })
	room, told := MaxLabels, map[string]bool{}
	for _, id := range ids {
		n := ObjectNumber(id)
		if len(l.Objects) == MaxTold {
			break
		}
		if _, is := here[id]; !is || slices.Contains(l.Objects, n) {
			continue // Of two objects with one number the heavier one is reported.
		}
		told[id] = true
		l.Objects, l.Weights = append(l.Objects, n), append(l.Weights, weight(id))
		if room -= len(id); room >= 0 {
			if strconv.Quote(id) != `"`+id+`"` {
				id = ""
			}
			l.Names = append(l.Names, id)
		}
	}
	pairs := slices.SortedFunc(maps.Keys(m.volumes), func(a, b pair) int {
		return cmp.Or(cmp.Compare(m.volumes[b], m.volumes[a]), cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
	for _, p := range pairs {
		if len(l.Senders) < MaxTold && told[p.from] {
			l.Senders, l.Receivers, l.Volumes = append(l.Senders, ObjectNumber(p.from)), append(l.Receivers, ObjectNumber(p.to)), append(l.Volumes, m.volumes[p])
		}
	}
	for _, d := range m.declined {
		l.Refused, l.Reasons = append(l.Refused, ObjectNumber(d.id)), append(l.Reasons, d.why)
	}
	return l
}

// decline notes that an object was to move and does not.
func (m *meter) decline(now clocksync.Instant, id, why string) {
	m.declined = slices.DeleteFunc(m.declined, func(d declined) bool { return d.id == id })
	m.declined = append(m.declined[max(0, len(m.declined)-maxDeclined+1):], declined{id, why, now.Add(declinedFor)})
}

// measureWindow ends a window that is over, and tells at once what else has changed.
func (m *Member) measureWindow(now clocksync.Instant) {
	t := m.meter
	if t == nil {
		return
	}
	slots := m.opts.Slots
	if m.takesNone() {
		slots = 0
	}
	over := now >= t.begun.Add(meterWindow) && t.willChange()
	if over {
		for i := range m.slots {
			if s := &m.slots[i]; s.isRunning() && s.Lease.Task.Object != nil {
				t.noteRun(now, s.since, &s.Lease.Task, nil)
				s.since = now
			}
		}
		t.end(now)
	}
	if over || slots != t.load.Slots || t.changed {
		t.load, t.changed = t.tell(slots, m.objects), false
	}
}

// takeOrders has objects go to other members.
func (m *Member) takeOrders(now clocksync.Instant, in *Input, out *Output) {
	if m.meter == nil {
		return
	}
	for _, o := range in.Orders {
		m.takeOrder(now, o, out)
	}
}

func (m *Member) takeOrder(now clocksync.Instant, o Order, out *Output) {
	m.ordered++
	var id string
	for one := range m.meter.weights {
		if ObjectNumber(one) == o.Object && (id == "" || one < id) {
			id = one
		}
	}
	at, here := m.objects[id]
	account := at.account
	switch {
	case !here && id == "":
		m.refused++ // It was reported before, and has left.
	case !here:
		m.decline(now, id, refusedGone)
	case account == m.opts.Self:
		m.takeMoveAnswer(now, account, &MoveAnswer{id, m.moveOrdered(m.opts.Self, &MoveOrder{id, o.To})})
	default:
		m.sendFrame(account, Frame{MoveOrder: &MoveOrder{id, o.To}}, out)
	}
}

func (m *Member) decline(now clocksync.Instant, id, why string) {
	m.refused++
	m.meter.changed = true
	m.meter.decline(now, id, why)
}

// moveOrdered has an object of an account here go from a member to another one, or returns why it does not.
func (m *Member) moveOrdered(from Peer, o *MoveOrder) (refusal string) {
	to := slices.IndexFunc(m.peers, func(p peer) bool { return p.Name == o.To })
	switch {
	case to < 0 && o.To != m.opts.Self.Name:
		return refusedMember
	case to < 0 && m.takesNone(), to >= 0 && m.peers[to].away:
		return refusedAway
	}
	can := m.code
	if to >= 0 {
		can = m.codeOf(m.peers[to].Peer)
	}
	refusal = refusedGone
	m.accounts.eachStore(func(_ string, s *Store) {
		one := s.account.objects[o.ID]
		if one == nil {
			return
		}
		switch l := &one.lease; {
		case l.at != from.String() && l.holder != from.String():
		case one.box.pinned:
			refusal = refusedPinned
		case len(one.task.Object.At) > 0, !can.hasFunction(one.task.Func):
			refusal = refusedBound
		case m.moveObject(&Input{ID: o.ID, To: o.To}) == nil:
			refusal = ""
		}
	})
	return refusal
}

// takeMoveAnswer takes what an account says of an order.
func (m *Member) takeMoveAnswer(now clocksync.Instant, from Peer, a *MoveAnswer) {
	if m.meter == nil || m.objects[a.ID].account != from {
		return
	}
	if a.Refusal != "" {
		m.decline(now, a.ID, a.Refusal)
		return
	}
	for i := range m.slots {
		if s := &m.slots[i]; s.isRunning() {
			_, id := splitID(s.Lease.Task.ID)
			m.meter.leaves[a.ID] = m.meter.leaves[a.ID] || id == a.ID
		}
	}
	m.forgetObject(a.ID)
}

// Ordered counts the orders of a central strategy that came here, and how many of them were refused.
func (m *Member) Ordered() (orders, refused uint64) { return m.ordered, m.refused }
