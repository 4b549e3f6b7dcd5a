package scgs

import (
	"slices"
	"strconv"

	"github.com/gopegasus/pegasus/clocksync"
)

// Member numbers a member of a [Detector], densely from 0. The number of a
// removed member is given out again by a later epoch.
type Member int32

// Ref is the owner's handle for the value of a local state. A detector carries
// it and never looks into it; 0 stands for none.
type Ref uint32

// Spec is what a detector must know of a member that joins.
type Spec struct {
	// Domain is the clock domain that the member's stamps come from.
	Domain clocksync.Domain
	// Group is true if the member is a group with a detector of its own: its
	// reports are summaries, and Domain and Multiplexer are not used.
	Group bool
	// Multiplexer is a positive number that those members have in common for which
	// one stamp can be evidence ([Detector.Held]), as their reports come over one
	// connection; 0 for none. The owner gives such numbers out.
	Multiplexer int32
}

// Modality is what a [Detector] claims of the tuples it delivers.
type Modality uint8

const (
	// Inst is for local states: all states of the tuple certainly held at the
	// same time.
	Inst Modality = iota
	// Definitely is for runs of states in which a condition on the local state
	// holds: the conditions of all members certainly held at the same time.
	Definitely
	// Possibly is for such runs too: the conditions of all members may have held
	// at the same time.
	Possibly
)

// String gives the word for the modality.
func (m Modality) String() string {
	switch m {
	case Inst:
		return "inst"
	case Definitely:
		return "definitely"
	case Possibly:
		return "possibly"
	}
	return "modality(" + strconv.Itoa(int(m)) + ")"
}

// Options say what a detector looks for, and its limits.
type Options struct {
	Modality Modality // Inst by default
	// MaxPending is the number of closed local states that may wait for each
	// member behind the one the detector looks at. Beyond it the oldest of
	// them become one UNKNOWN, or are dropped if they are runs. 0 means 1024.
	MaxPending int
	// Ends keeps what [Detector.Ended] hands out.
	Ends bool
	// Alarms leaves out the sets of a [Threshold] that grow from a reported one.
	// That costs far less where many members hold the condition.
	Alarms bool
}

const defaultMaxPending = 1024

// Detector finds the strongly consistent global states of a set of members, one
// report at a time. Reports are put in with [Detector.Start], [Detector.End] and
// [Detector.Evidence], or [Detector.Held] for several members; [Detector.Next] takes
// out what has become certain, or [Detector.Advance] where it is enough to know what
// has begun. It must not be used by two goroutines at once.
type Detector struct {
	modality   Modality
	maxPending int
	ends       bool
	members    []member
	places     []place  // of each member
	free       []Member // removed, to be given out again, last first
	live       int

	// The heads of all members, summed up: by domain, and the domains.
	domains []domain
	top     tree // over the domains; its keys are their least ends
	first   best // the two domains whose heads start latest
	second  best
	maxLo   clocksync.Instant // the latest lo(S) of the heads
	bad     int               // domains that fail the test by readings
	dying   []int32           // domains that may have a head refuted by readings
	one     oneClock          // does so instead where it can
	general bool              // it shall not, so that tests can compare

	// Heads by kind: members that have none, UNKNOWN ones, and starts without
	// an upper bound.
	missing, unknown, infinite int

	epoch, index uint64
	open         bool        // the tuple of heads was delivered as Opened
	step         bool        // that was a step
	advance      Member      // to be popped by the next call of Next, or none
	forced       reach       // how far UNKNOWN ones had to hold in this epoch
	closing      Event       // Closed by an epoch, to be delivered ...
	hasClosing   bool        // ... if there is one
	delta        delta       // what changed since the last Opened
	released     []Ref       // not yet handed back to the owner
	ended        []Part      // not yet handed out
	scratch      []int32     // of Needs
	up           *summarizer // for the level above, or nil
	stats        Stats
}

const none Member = -1

// reach is how far the open UNKNOWN intervals that are forced had to hold: to
// the end of the last head that was advanced past them.
type reach struct {
	domain clocksync.Domain
	to     point
}

// best is a domain and the latest hi(S) of its heads.
type best struct {
	domain int32
	hi     clocksync.Instant
}

// member is one member's queue of local states and what its reports are checked
// against: two cache lines, the only ones of it that a report touches.
type member struct {
	queue queue
	stampOrder
	domain int32  // of the head, in Detector.domains
	leaf   int32  // of the head, in that domain's tree, or in its multiplexer's line
	group  *group // or nil: a plain member
	said   uint64 // of what its multiplexer held, in oneClock, what it was told of
	line   int32  // there, from 1, or 0
	alive  bool   // is a member of this epoch
	dirty  bool   // has another head than in the last tuple delivered
	vague  bool   // its newest stamp has no upper bound
	stale  bool   // stands in endSpan.stale
}

// place says which clocks a member's states are stamped by, where that is not
// its newest one, and who speaks for it.
type place struct {
	home        clocksync.Domain   // of the head
	moves       []clocksync.Domain // of the heads to come that are marked as moved
	multiplexer int32              // of Spec
}

// NewDetector returns a detector without members, before its first epoch.
func NewDetector(o Options) *Detector {
	if o.MaxPending <= 0 {
		o.MaxPending = defaultMaxPending
	}
	return &Detector{modality: o.Modality, ends: o.Ends, maxPending: o.MaxPending, advance: none, forced: reach{to: unheard}}
}

// Epoch begins the epoch id with other members: it removes some, adds others and
// returns the numbers of those added, in their order. Members that stay keep
// their local states from the one the detector looks at onwards; the global
// states of an epoch are made of all its members and only of them. A number in
// remove that is no member is passed over.
//
// What became certain in the old epoch should have been taken out with
// [Detector.Next] before. A global state that is open then ends: its Closed is
// the first event Next delivers, still with the old epoch's id. It costs
// O(members).
func (d *Detector) Epoch(id uint64, remove []Member, add []Spec) []Member {
	d.closeTuple()
	for _, m := range remove {
		if d.findMember(m) != nil {
			d.drop(m)
		}
	}
	added := make([]Member, 0, len(add))
	for _, s := range add {
		added = append(added, d.join(s))
	}
	d.epoch, d.index, d.forced = id, 0, reach{to: unheard}
	d.layoutDomains()
	d.delta.reset(len(d.members))
	return added
}

// closeTuple ends the open tuple, whose Closed Next will deliver.
func (d *Detector) closeTuple() {
	d.settleHead()
	if d.open {
		d.makeEnd(&d.closing)
		d.hasClosing, d.open = true, false
	}
}

func (d *Detector) join(s Spec) Member {
	m := Member(len(d.members))
	if n := len(d.free); n > 0 {
		m, d.free = d.free[n-1], d.free[:n-1]
	} else {
		d.members = append(d.members, member{})
		d.places = append(d.places, place{})
	}
	d.members[m] = member{alive: true, stampOrder: newStampOrder(s.Domain)}
	d.places[m] = place{home: s.Domain, multiplexer: s.Multiplexer}
	if s.Group {
		d.places[m].multiplexer = 0
		d.members[m].group = &group{from: clocksync.MinInstant}
	}
	d.live++
	return m
}

func (d *Detector) drop(m Member) {
	q := &d.members[m].queue
	for i := range q.n {
		d.releaseRef(q.at(i).ref)
	}
	d.members[m], d.places[m] = member{}, place{}
	d.free = append(d.free, m)
	d.live--
}

// findMember returns the member of that number, or nil.
func (d *Detector) findMember(m Member) *member {
	if m < 0 || int(m) >= len(d.members) || !d.members[m].alive {
		return nil
	}
	return &d.members[m]
}

func (d *Detector) releaseRef(r Ref) {
	if r != 0 {
		d.released = append(d.released, r)
	}
}

// Released appends to dst the handles of the local states that the detector has
// dropped since the last call. The owner may use them for other values.
func (d *Detector) Released(dst []Ref) []Ref {
	dst = append(dst, d.released...)
	d.released = d.released[:0]
	return dst
}

// layoutDomains files the members by domain and rebuilds the summaries of their heads.
func (d *Detector) layoutDomains() {
	for m := range d.members {
		d.heardOf(&d.members[m])
	}
	d.domains = d.domains[:0]
	d.dying = d.dying[:0]
	d.missing, d.unknown, d.infinite, d.bad = 0, 0, 0, 0
	d.first, d.second = best{0, clocksync.MinInstant}, best{-1, clocksync.MinInstant}
	d.maxLo = clocksync.MinInstant
	if d.hasOneClock() {
		d.layoutOneClock()
		return
	}
	d.one = oneClock{}
	d.place()
	d.top = newTree(make([]node, treeSize(len(d.domains))))
	if d.up != nil {
		d.up.layoutRows(d.domains, d.top)
	}
	for m := range d.members {
		mb := &d.members[m]
		switch {
		case !mb.alive:
			continue
		case mb.group == nil:
			d.keyLeaf(Member(m), mb, d.domains[mb.domain].heads.changeLeaf(mb.leaf))
		default:
			for i := range mb.group.rows {
				r := &mb.group.rows[i]
				*d.domains[r.domain].heads.changeLeaf(r.leaf) = d.rowKey(Member(m), mb, i)
			}
		}
		d.countHead(mb)
	}
	for h := range d.domains {
		d.domains[h].heads.buildNodes()
		d.reviewDomain(int32(h))
	}
}

// place gives each member its domain, in order of first appearance, and its leaf
// there. Each row of a group is placed like a member.
func (d *Detector) place() {
	p := placement{d: d, index: make(map[clocksync.Domain]int32)}
	for m := range d.members {
		mb := &d.members[m]
		switch {
		case !mb.alive:
		case mb.group == nil:
			mb.domain, mb.leaf = p.leaf(p.domain(d.places[m].home))
		default:
			for i := range mb.group.rows {
				r := &mb.group.rows[i]
				r.domain, r.leaf = p.leaf(p.domain(r.name))
			}
		}
	}
	size := 0
	for _, n := range p.sizes {
		size += treeSize(n)
	}
	slab := make([]node, size)
	for h, n := range p.sizes {
		dom := &d.domains[h]
		if n == 1 {
			dom.heads = newTree(dom.one[:])
			continue
		}
		nodes := treeSize(n)
		dom.heads, slab = newTree(slab[:nodes:nodes]), slab[nodes:]
	}
}

// placement counts the places handed out.
type placement struct {
	d     *Detector
	index map[clocksync.Domain]int32
	sizes []int // heads of each domain
}

// domain finds or adds a domain. The domain of a group's rest, which has no name, is shared
// with no other member.
func (p *placement) domain(name clocksync.Domain) int32 {
	if h, known := p.index[name]; known && name != "" {
		return h
	}
	h := int32(len(p.sizes))
	p.index[name] = h
	p.sizes = append(p.sizes, 0)
	p.d.domains = append(p.d.domains, domain{name: name, maxM: clocksync.MinInstant, maxHi: clocksync.MinInstant})
	return h
}

func (p *placement) leaf(h int32) (domain, leaf int32) {
	p.sizes[h]++
	return h, int32(p.sizes[h] - 1)
}

// delta is what changed since the last Opened.
type delta struct {
	all     bool     // everything: nothing was delivered in this epoch
	members []Member // each once
	pops    int      // heads advanced
	joined  bool     // the newest head began with the event that ended the one before it
}

func (c *delta) reset(members int) {
	c.members = slices.Grow(c.members[:0], members)
	c.all, c.pops = true, 0
}
