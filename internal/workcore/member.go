package workcore

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/balance/local"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/workreport"
)

// ErrOpen says that a phase was declared over while a task was open.
var ErrOpen = errors.New("tasks are open")

// Member is the machine of a member of a space whose accounts lie in memory. It keeps the account of
// the tasks that its own program puts, holds leases of all accounts, and runs them in its slots. It is
// driven by [Member.Step] alone. It is not safe for concurrent use.
type Member struct {
	opts     Options
	code     code // that it has told the others; nil: it tells nothing
	accounts accounts
	durable  *durable // of its logs; nil: it has none
	holder   string   // Self as the accounts know it
	phase    uint64
	settled  bool
	over     bool
	drains   bool
	moved    uint64
	leave    withdrawal

	peers   []peer       // the others of the roster
	places  map[Peer]int // of them in peers
	near    []int        // places of those that a demand or an offer may be open with, in their order
	view    local.View
	demands []local.Demand // memory of look
	asked   []local.Demand // by the program, until the next look

	waiting []Parted   // leases of other accounts, by their keys
	slots   []slot     // by their numbers
	records []*pending // in the order in which they are sent again
	passed  []passed   // leases that were passed on a short time ago

	homes     map[string]Peer   // by object or group: the member with its account
	mails     map[mailKey]*mail // by object and account: messages on their way
	pushes    []push            // objects on their way to where they are
	pushed    uint64            // the number of the last of these parcels
	sent      workreport.Mail   // messages to objects, without messages of the own account
	has       []string          // objects that have run here last, some of them
	objects   map[string]atHand // all of them
	came      map[string]came   // objects that came here a short time ago
	meter     *meter            // of the objects here; nil: the strategy is not central
	leased    bool              // leases came here in this phase whose tasks read data
	lastReads []string          // of the last of them
	ordered   uint64            // moves that were ordered
	refused   uint64            // of them, those that were refused
	now       clocksync.Instant // of this step

	demand uint64            // the number of the last one
	number uint64            // of the last Holds
	told   clocksync.Instant // when it was sent
	quiet  int               // how many Holds in a row had nothing to tell
	load   float64           // that it had
	turned int               // peers whose turned is not 0
	put    int               // tasks of the accounts here that waited after the last step
	look   clocksync.Instant // when the strategy looks again
	offers clocksync.Instant // when tasks are offered again that this member cannot run
}

// peer is the record of another member.
type peer struct {
	Peer
	place      int    // in view.Neighbours; -1: it is no neighbour
	open       int    // tasks of its account, as it told
	objects    int    // of its account, as it told
	pushed     uint64 // the number of the last parcel that it sent unasked
	number     uint64 // of its last Holds
	served     uint64 // the number of its last demand
	demand     uint64 // of this member's open demand to it; 0: none
	offers     bool   // that demand is an offer
	offered    uint64 // the number of its offer, until the strategy has looked; 0: none
	deadline   clocksync.Instant
	away       bool    // it takes no work, as it told
	code       code    // as it told; nil: it has not
	introduced int     // Holds to it
	load       float64 // as it told
	heard      float64 // the load of this member that it knows
	turned     float64 // from which load on it hears that it may ask again, since it was refused; 0: it was not, or has heard
}

// slot runs one task.
type slot struct {
	Parted
	since     clocksync.Instant // when its function began, or was measured last
	taken     bool              // a function runs in it
	stopped   bool              // what the function returns does not count
	passive   bool              // the function waits for something, and does not count as running
	recording bool              // it waits for the verdict of a yield
	items     int               // that are left
	asker     Peer              // who gets the next part
	demand    uint64
}

// pending is a record without a verdict.
type pending struct {
	account Peer
	step    Step
	slot    int // that waits for it; -1: none
	again   clocksync.Instant
	bound   bool // of an object: to members
}

// passed is a lease that another member may not have yet. This member tells of it for a while, so
// that the account does not put the task again meanwhile: while the server is away the account hears nothing, so the
// other one has to have told everybody twice what it has.
type passed struct {
	account Peer
	held    Held
	to      Peer
	until   clocksync.Instant
	heard   uint64 // the number of its last Holds then
}

// NewMember makes a member that has no roster yet.
func NewMember(opts Options) *Member {
	opts = opts.withDefaults()
	m := &Member{
		opts: opts, code: codeOf(opts.Funcs), accounts: accounts{own: opts.Account}, holder: opts.Self.String(), phase: opts.Phase, slots: make([]slot, opts.Slots), told: clocksync.MinInstant,
		homes: map[string]Peer{}, objects: map[string]atHand{}, mails: map[mailKey]*mail{}, came: map[string]came{},
		view: local.View{Self: opts.Self.Name, Members: 1},
	}
	if m.accounts.own == nil {
		m.accounts.own = NewStore(opts.Limits)
		m.accounts.own.self = m.holder
	} else {
		m.durable = &durable{}
	}
	m.accounts.own.setCode(m.code)
	m.leave.away = map[string]bool{}
	m.accounts.own.away = m.leave.away
	if opts.Central {
		m.meter = newMeter()
	}
	return m
}

// Step takes one input at the instant now, which never goes back, and fills out.
func (m *Member) Step(now clocksync.Instant, in *Input, out *Output) {
	m.now = now
	if out.resetOutput(); !m.over {
		m.take(now, in, out)
		m.settleWithdrawal(out)
		m.giveUpDemands(now)
		if in.Kind != InPut && in.Kind != InItems && in.Kind != InDone { // These concern only the run that is over.
			m.stopVoid(out)
		}
		m.sendPosts(now, out)
		m.pushObjects(now, out)
		m.startTasks(out)
		m.sendDemands(now, out)
		m.repeatRecords(now, out)
		m.sendHolds(now, out)
		m.tellTurned(out)
		out.Results = m.accounts.appendResults(out.Results)
		m.logEntries(out)
		m.measureWindow(now)
	}
	out.Over, out.Told, out.Wake = m.over, m.makeTold(), m.nextWake()
}

func (m *Member) take(now clocksync.Instant, in *Input, out *Output) {
	switch in.Kind {
	case InTick:
	case InRoster:
		m.takeRoster(in.Roster, out)
	case InFrame:
		if f := in.Frame; f.To == m.opts.Self && f.Phase == m.phase {
			if i := m.findPeer(f.From); i >= 0 {
				m.takeFrame(now, i, f, out)
			}
		}
	case InSettled:
		m.settled = in.Settled
	case InPut:
		if out.Err = m.checkKey(in); out.Err == nil {
			out.Err = m.accounts.own.Put(in.Task, in.Key)
		}
	case InCancel:
		if !m.accounts.own.Cancel(in.ID, "its program has cancelled it") {
			out.Err = fmt.Errorf("task %q: it is not open here: a task is cancelled by the member that has put it", in.ID)
		}
	case InItems:
		m.slots[in.Slot].items = in.Items
	case InYield, InDone:
		m.takeStep(now, in, out)
	case InEnd:
		m.takeEnd(in, out)
	case InDrain:
		m.takeDrain()
	case InWithdraw:
		m.takeWithdraw(in)
	case InDurable:
		m.durable.noteReached(in.ID, in.Ticket)
	case InAdopt:
		m.takeAccount(in)
	case InDisown:
		m.disownAccount(in.ID)
	case InMove:
		out.Err = m.moveObject(in)
	case InOrders:
		m.takeOrders(now, in, out)
	case InDemand:
		m.asked = append(m.asked, local.Demand{Member: in.To, Tasks: max(0, in.Items), Offer: in.Active})
	case InWritten:
		m.accounts.eachStore(func(_ string, s *Store) { s.Write(in.ID) })
	case InUnwritten:
		m.accounts.eachStore(func(_ string, s *Store) { s.failUnwritten() })
	case InUndeclared:
		m.accounts.own.failUndeclared(m.Undeclared())
	case InActive:
		m.slots[in.Slot].passive = !in.Active
	case InUnderway:
		m.noteUnderway(now, in)
	default:
		panic(fmt.Sprintf("workcore: an input of the kind %d", in.Kind))
	}
}

func (m *Member) checkKey(in *Input) error {
	if math.IsNaN(in.Key) {
		return fmt.Errorf("task %q: its key is %v: it must be a number", in.Task.ID, in.Key)
	}
	return nil
}

// findPeer returns the place of a peer, or -1.
func (m *Member) findPeer(p Peer) int {
	if i, is := m.places[p]; is {
		return i
	}
	return -1
}

// noteNear notes that a demand or an offer may be open with a peer.
func (m *Member) noteNear(place int) {
	if at, is := slices.BinarySearch(m.near, place); !is {
		m.near = slices.Insert(m.near, at, place)
	}
}

// takeRoster forgets members that are gone, with all that belongs to them.
func (m *Member) takeRoster(roster []Peer, out *Output) {
	for i := range m.peers {
		if p := &m.peers[i]; !slices.Contains(roster, p.Peer) {
			m.losePeer(p, out)
		}
	}
	for _, p := range roster {
		m.disownAccount(p.Name)
	}
	place := slices.Index(roster, m.opts.Self)
	if place < 0 {
		m.over = true
		if c := m.Counts(); c.Open+c.Objects > 0 {
			out.Lost = append(out.Lost, Lost{m.opts.Self, c.Open, c.Objects})
		}
		m.dropAll(out)
		return
	}
	peers, places, neighbours := m.peers, m.places, m.view.Neighbours
	m.places, m.near = make(map[Peer]int, len(roster)), nil
	m.peers, m.view.Neighbours, m.view.Members, m.turned = nil, nil, len(roster), 0
	near := m.opts.Topology.AppendNeighbours(nil, place, len(roster))
	for j := range roster {
		if j == place {
			continue
		}
		p, n := peer{Peer: roster[j], place: -1}, local.Neighbour{Name: roster[j].Name, Silent: true}
		if k, is := places[p.Peer]; is {
			if p = peers[k]; p.place >= 0 {
				n = neighbours[p.place]
			}
			n.Silent, n.Away, p.place = p.number == 0, p.away, -1
		}
		if slices.Contains(near, j) {
			p.place = len(m.view.Neighbours)
			m.view.Neighbours = append(m.view.Neighbours, n)
		}
		if m.places[p.Peer] = len(m.peers); p.place >= 0 || p.demand > 0 || p.offered > 0 {
			m.near = append(m.near, len(m.peers))
		}
		m.peers = append(m.peers, p)
		if p.turned > 0 {
			m.turned++
		}
	}
}

// losePeer takes back a peer's leases, and drops all that belongs to its account.
func (m *Member) losePeer(p *peer, out *Output) {
	m.markAway(p.String(), false)
	m.accounts.loseHolder(p.String())
	objects := max(p.objects, m.loseHome(p.Peer)) // It may not have told yet.
	if m.durable == nil {
		maps.DeleteFunc(m.objects, func(_ string, o atHand) bool { return o.account == p.Peer })
	}
	here := 0
	for i := range m.slots {
		if s := &m.slots[i]; s.isRunning() && s.Account == p.Peer {
			here++
			m.stop(i, out)
		}
	}
	ofPeer := func(l Parted) bool { return l.Account == p.Peer }
	before := len(m.waiting) + len(m.records) + len(m.passed)
	m.waiting = slices.DeleteFunc(m.waiting, ofPeer)
	m.records = slices.DeleteFunc(m.records, func(r *pending) bool { return r.account == p.Peer })
	m.passed = slices.DeleteFunc(m.passed, func(l passed) bool { return l.account == p.Peer })
	here += before - len(m.waiting) - len(m.records) - len(m.passed)
	m.passed = slices.DeleteFunc(m.passed, func(l passed) bool { return l.to == p.Peer })
	out.Lost = append(out.Lost, Lost{p.Peer, max(here, p.open), objects})
}

// isRunning reports whether a task runs in a slot, and its record may count.
func (s *slot) isRunning() bool { return s.taken && !s.stopped }

// stop asks a function to return, and ignores what it returns. Its slot is taken until then.
func (m *Member) stop(i int, out *Output) {
	m.slots[i] = slot{taken: true, stopped: true}
	out.Stops = append(out.Stops, i)
}

// dropAll gives up all leases.
func (m *Member) dropAll(out *Output) {
	for i := range m.slots {
		if m.slots[i].isRunning() {
			m.stop(i, out)
		}
	}
	m.waiting, m.records, m.passed = nil, nil, nil
}

// stopVoid stops the runs of own tasks that are open no more, or have another record.
func (m *Member) stopVoid(out *Output) {
	for i := range m.slots {
		if s := &m.slots[i]; s.isRunning() && s.Account == m.opts.Self && !m.accounts.isCurrent(s.Lease.Task.ID, s.Lease.On) {
			m.stop(i, out)
		}
	}
}

// takeEnd begins the next phase.
func (m *Member) takeEnd(in *Input, out *Output) {
	if in.Phase != m.phase {
		return // It was reported before.
	}
	if !in.Void && !m.accounts.endPhase() {
		out.Err = fmt.Errorf("phase %d: %w, %d of them, and it was declared over", in.Phase, ErrOpen, m.Counts().Open)
		return
	}
	if m.phase++; !in.Void {
		m.leased = false
		m.endMails()
		m.dropAll(out)
	}
}

// takeDrain has this member give up everything, for good.
func (m *Member) takeDrain() {
	m.drains, m.told = true, clocksync.MinInstant // The others hear of it at once.
	m.accounts.eachStore(func(_ string, s *Store) { s.leaves = true })
}

func (m *Member) takeFrame(now clocksync.Instant, i int, f *Frame, out *Output) {
	if out.Err = f.Check(); out.Err != nil {
		return
	}
	p := &m.peers[i]
	switch {
	case f.Demand != nil:
		if f.Demand.Number > p.served { // Else it is a copy, or the demand was given up.
			p.served = f.Demand.Number
			if f.Demand.Offer {
				m.takeOffer(p, f.Demand)
				return
			}
			if p.offers {
				m.settleDemand(now, p.demand, true)
			}
			m.answer(now, p, f.Demand, out)
		}
	case f.Parcel != nil:
		m.quiet = 0 // Its account hears soon which of its tasks are here.
		m.takeParcel(now, p, f.Parcel, out)
	case f.Step != nil:
		v := m.judge(p.Peer, f.Step, out)
		m.sendVerdict(p.Peer, v, out)
		m.settle(now, f.Step)
	case f.Verdict != nil:
		m.takeVerdict(p.Peer, f.Verdict, out)
	case f.Holds != nil:
		m.takeHolds(now, i, f.Holds, out)
	case f.Post != nil:
		m.takePost(p.Peer, f.Post, out)
	case f.Posted != nil:
		m.takePosted(now, p.Peer, f.Posted)
	case f.MoveOrder != nil:
		refusal := m.moveOrdered(p.Peer, f.MoveOrder)
		m.sendFrame(p.Peer, Frame{MoveAnswer: &MoveAnswer{f.MoveOrder.ID, refusal}}, out)
	case f.MoveAnswer != nil:
		m.takeMoveAnswer(now, p.Peer, f.MoveAnswer)
	}
}

func (m *Member) sendFrame(to Peer, f Frame, out *Output) {
	f.From, f.To, f.Phase = m.opts.Self, to, m.phase
	out.Frames = append(out.Frames, f)
}

func (m *Member) sendVerdict(to Peer, v Verdict, out *Output) {
	out.verdicts = append(out.verdicts, v)
	m.sendFrame(to, Frame{Verdict: &out.verdicts[len(out.verdicts)-1]}, out)
}

// judge takes a record into the own account. If it counts, its parts go to the member that asked.
func (m *Member) judge(from Peer, s *Step, out *Output) Verdict {
	v := Verdict{ID: s.Record.ID, On: s.Record.On, Outcome: Stale}
	if s.Record.Fate == Failed {
		v.Failed, v.Try = true, s.Try
		if m.accounts.failTask(v.ID, v.On, s.Try, s.Record.Error) {
			v.Outcome = Counted
		}
		return v
	}
	outcome, seq, err := m.accounts.takeRecord(&s.Record, s.Keys)
	if out.Err = err; outcome == Counted {
		v.Seq = seq
		if s.Record.Fate == Kept {
			m.accounts.claimTask(v.ID, from.String())
		}
		if s.Demand > 0 && m.findPeer(s.For) >= 0 {
			m.give(s.For, &Demand{Number: s.Demand}, len(s.Record.Children), nil, out)
		}
	}
	v.Outcome = outcome
	return v
}

// settle notes that a part which this member asked for is in its own account.
func (m *Member) settle(now clocksync.Instant, s *Step) {
	if s.For == m.opts.Self {
		m.settleDemand(now, s.Demand, len(s.Record.Children) > 0)
	}
}

// settleDemand notes the answer to an open demand, and reports whether it was open.
func (m *Member) settleDemand(now clocksync.Instant, number uint64, given bool) bool {
	k := slices.IndexFunc(m.near, func(i int) bool { return m.peers[i].demand == number })
	if number == 0 || k < 0 {
		return false
	}
	p := &m.peers[m.near[k]]
	if p.demand, p.offers = 0, false; p.place >= 0 {
		n := &m.view.Neighbours[p.place]
		n.Pending, n.Answered = false, now
		if n.Refusals++; given {
			n.Refusals = 0
		}
	}
	return true
}

// noteUnderway has what rests on a frame that travels in pieces wait for it.
func (m *Member) noteUnderway(now clocksync.Instant, in *Input) {
	for _, i := range m.near {
		if p := &m.peers[i]; p.demand > 0 && p.demand == in.Ticket {
			p.deadline = max(p.deadline, now.Add(m.opts.Patience))
		}
	}
	for i := range m.passed {
		if p := &m.passed[i]; p.to.Name == in.To {
			p.until = max(p.until, now.Add(m.opts.Patience))
		}
	}
	for i := range m.pushes {
		if p := &m.pushes[i]; p.to.Name == in.To {
			p.again = max(p.again, now.Add(2*m.opts.Pace))
		}
	}
}

func (m *Member) giveUpDemands(now clocksync.Instant) {
	for _, i := range m.near {
		if p := &m.peers[i]; p.demand > 0 && p.deadline <= now {
			m.settleDemand(now, p.demand, false)
		}
	}
	m.passed = slices.DeleteFunc(m.passed, func(p passed) bool {
		to := m.findPeer(p.to)
		return p.until <= now && to >= 0 && m.peers[to].number >= p.heard+2
	})
}

// answer gives what the strategy says: tasks that wait, or a part of a bag once it has yielded.
func (m *Member) answer(now clocksync.Instant, p *peer, d *Demand, out *Output) {
	m.refresh(now)
	to := m.codeOf(p.Peer)
	share := m.opts.Strategy.Answer(now, &m.view, local.Demand{Member: p.Name, Tasks: d.Tasks})
	if m.leave.gives { // A strategy keeps the tasks that a member can do alone.
		share = local.Share{Tasks: cmp.Or(d.Tasks, (m.accounts.countWaiting()+1)/2)}
	}
	if share.Tasks <= 0 && share.Part > 0 {
		if i := m.largest(); i >= 0 && to.hasFunction(m.slots[i].Lease.Task.Func) {
			s := &m.slots[i]
			if n := share.ItemsOf(s.items); n > 0 {
				s.asker, s.demand = p.Peer, d.Number
				out.Yields = append(out.Yields, Part{i, n})
				return
			}
		}
	}
	if n := m.accounts.own.countStrange(to); n > 0 { // Those do not wait for this member.
		share.Tasks = max(share.Tasks, min(cmp.Or(d.Tasks, n), (n+1)/2))
	}
	if m.opts.Missing != nil && m.Reads() && !m.leave.gives && !m.accounts.isUnsure(to) && len(m.accounts.taken) == 0 {
		own, others := m.cheapestTasks(p.Peer, share)
		m.passedOn(now, p, others[:m.giveChosen(p.Peer, d, own, len(own), others, out)])
		m.tellLeft(now, p, out)
		return
	}
	var passOn []Parted
	holder, has := p.String(), slices.Clip(d.Has)
	for i := 0; i < len(m.waiting) && len(passOn) < share.Tasks-m.accounts.countWaiting(); i++ {
		if l := &m.waiting[i].Lease; !to.hasFunction(l.Task.Func) {
			continue
		} else if l.Task.Object == nil || m.drains || m.leave.gives && !l.Pinned && l.Task.Object.mayBe(p.Name) || l.mayMove(p.Name, has) && !m.mustStay(l.Task.ID, holder) {
			if passOn = append(passOn, m.waiting[i]); l.Task.Object != nil {
				_, id := splitID(l.Task.ID)
				has = append(has, id)
			}
		}
	}
	m.passedOn(now, p, passOn[:m.give(p.Peer, d, share.Tasks, passOn, out)])
	m.tellLeft(now, p, out)
}

// tellLeft tells a member that got tasks how many are left here, if that is much: so it may ask again before the next
// Holds are due.
func (m *Member) tellLeft(now clocksync.Instant, p *peer, out *Output) {
	if last := len(out.Frames) - 1; last < 0 || out.Frames[last].Parcel == nil || len(out.Frames[last].Parcel.Leases) == 0 {
		return
	}
	if m.refresh(now); m.loadNow() > 0 {
		m.number++
		m.sendHoldsTo(m.places[p.Peer], m.loadNow(), out)
	}
}

// passedOn notes leases of others that went to another member.
func (m *Member) passedOn(now clocksync.Instant, p *peer, list []Parted) {
	for _, l := range list {
		m.waiting = slices.DeleteFunc(m.waiting, func(w Parted) bool { return w.id() == l.id() })
		m.forgetObject(l.Lease.Task.ID)
		m.passed = append(m.passed, passed{l.Account, Held{ID: l.Lease.Task.ID, On: l.Lease.On, Passed: true}, p.Peer, now.Add(m.opts.Patience), p.number})
	}
}

// takeOffer shows an offer to the strategy.
func (m *Member) takeOffer(p *peer, d *Demand) {
	m.noteNear(m.findPeer(p.Peer))
	if p.offered = d.Number; p.place >= 0 {
		m.view.Neighbours[p.place].Offers = d.Tasks
	}
}

// refuseOffers refuses the offers that the strategy has seen and not taken: it sent no demand after the
// one of that number.
func (m *Member) refuseOffers(before uint64, out *Output) {
	for _, i := range m.near {
		p := &m.peers[i]
		if p.offered == 0 {
			continue
		}
		if p.demand <= before || p.offers {
			m.sendFrame(p.Peer, Frame{Parcel: &Parcel{Demand: p.offered}}, out)
		}
		if p.offered = 0; p.place >= 0 {
			m.view.Neighbours[p.place].Offers = 0
		}
	}
}

// largest returns the slot with most items of those that may be asked for a part, or -1.
func (m *Member) largest() int {
	best := -1
	for i := range m.slots {
		if s := &m.slots[i]; s.mayPart() && (best < 0 || s.items > m.slots[best].items) {
			best = i
		}
	}
	return best
}

func (s *slot) mayPart() bool { return s.isRunning() && !s.recording && s.demand == 0 && s.items > 1 }

// give sends at most n own tasks that wait and then leases of others, as many as a parcel holds. An
// empty parcel refuses. It returns how many leases of others went.
func (m *Member) give(to Peer, d *Demand, n int, others []Parted, out *Output) int {
	return m.giveChosen(to, d, nil, n, others, out)
}

// giveChosen is give for own tasks that were chosen, n of them; nil: the next ones.
func (m *Member) giveChosen(to Peer, d *Demand, own []*open, n int, others []Parted, out *Output) int {
	parcel, bytes := &Parcel{Demand: d.Number}, 0
	add := func(l Parted) bool {
		bytes += l.countBytes()
		if len(parcel.Leases) == 0 || bytes <= MaxBytes && len(parcel.Leases) < MaxHeld {
			parcel.Leases = append(parcel.Leases, l)
			return true
		}
		return false
	}
	full := false
	holder, can := to.String(), m.codeOf(to)
	stays := func(id string) bool { return m.mustStay(id, holder) }
	has := slices.Clip(d.Has) // And what this parcel brings.
	for single := false; n > 0 && !single; n-- {
		if single = m.accounts.isUnsure(can); single && len(parcel.Leases) > 0 {
			break
		}
		var l Lease
		if ok := own != nil; ok {
			l = m.accounts.own.handOut(own[len(own)-n], holder, d.Number)
		} else if l, ok = m.accounts.handTask(holder, d.Number, has, stays, can); !ok {
			break
		}
		if full = !add(Parted{m.opts.Self, l}); full {
			m.accounts.giveBack(l.Task.ID, l.On)
			break
		}
		if l.Task.Object != nil {
			m.forgetObject(l.Task.ID)
			_, id := splitID(l.Task.ID)
			has = append(has, id)
		}
	}
	given := 0
	for ; !full && given < len(others) && add(others[given]); given++ {
	}
	m.sendFrame(to, Frame{Parcel: parcel}, out)
	if i := m.findPeer(to); i >= 0 && len(parcel.Leases) == 0 {
		m.setTurned(&m.peers[i], max(1, 2*m.loadNow()))
	}
	return given
}

func (m *Member) setTurned(p *peer, load float64) {
	if p.turned == 0 && load > 0 {
		m.turned++
	} else if p.turned > 0 && load == 0 {
		m.turned--
	}
	p.turned = load
}

// tellTurned tells members that were refused of tasks that were put since the last step: one member of each task. They do not ask
// again for long, and the next Holds may be far.
func (m *Member) tellTurned(out *Output) {
	grown := m.view.Put - m.put
	m.put = m.view.Put
	if grown <= 0 || m.turned == 0 {
		return
	}
	load := m.loadNow()
	for i := 0; i < len(m.peers) && grown > 0; i++ {
		if p := &m.peers[i]; p.turned > 0 && p.turned <= load {
			m.number++
			m.sendHoldsTo(i, load, out)
			grown--
		}
	}
}

// takeParcel takes what answers an open demand. Another parcel is a copy or too late: its leases
// stay away, and their accounts put the tasks again.
func (m *Member) takeParcel(now clocksync.Instant, from *peer, p *Parcel, out *Output) {
	if p.Demand == 0 {
		if p.Push > 0 && p.Push <= from.pushed || slices.ContainsFunc(p.Leases, func(l Parted) bool {
			return l.Lease.Task.Object == nil || (p.Push == 0) != (l.Account == m.opts.Self)
		}) {
			return
		}
		if p.Push == 0 && len(p.Leases) > 0 { // It refuses what this member has sent.
			m.setAway(from, true)
		}
		from.pushed = max(from.pushed, p.Push)
	} else if !m.settleDemand(now, p.Demand, len(p.Leases) > 0) || len(p.Leases) == 0 {
		return
	}
	here := map[leaseID]bool{} // The leases here already. A parcel may hold some thousand leases.
	for i := range m.waiting {
		here[m.waiting[i].id()] = true
	}
	for i := range m.slots {
		if s := &m.slots[i]; s.isRunning() {
			here[s.id()] = true
		}
	}
	for _, p := range m.records {
		here[leaseID{p.account, p.step.Record.ID, p.step.Record.On}] = true
	}
	maps.DeleteFunc(m.came, func(_ string, c came) bool { return c.until <= now })
	for _, l := range p.Leases {
		if p.Demand > 0 && l.Lease.Task.Object != nil {
			m.noteArrival(&l.Lease, from.String())
		}
		if m.leave.gives && l.Account != m.opts.Self && (m.drains || !l.Lease.isBound()) {
			if p.Push > 0 {
				m.sendFrame(l.Account, Frame{Parcel: &Parcel{Leases: []Parted{l}}}, out)
			}
			continue // Its account does not find it here, and puts it again.
		}
		id, on := l.Lease.Task.ID, l.Lease.On
		switch {
		case l.Account == m.opts.Self && p.Demand > 0: // It was asked for.
			m.accounts.giveBackAt(id, on, m.holder)
		case l.Account == m.opts.Self:
			m.accounts.giveBackAt(id, on, "")
		case m.findPeer(l.Account) >= 0 && m.held() < MaxHeld && !here[l.id()]:
			m.moved++
			m.leased = m.leased || len(l.Lease.Task.Reads) > 0
			here[l.id()] = true
			shareReads(&l.Lease.Task, &m.lastReads)
			at, _ := slices.BinarySearchFunc(m.waiting, l.Lease.Key, func(w Parted, key float64) int {
				if w.Lease.Key <= key { // Equal keys stay in their order.
					return -1
				}
				return 1
			})
			m.waiting = slices.Insert(m.waiting, at, l)
		}
	}
}

// held is how many leases this member tells of.
func (m *Member) held() int { return len(m.waiting) + len(m.slots) + len(m.records) + len(m.passed) }

func (l *Parted) is(account Peer, id string, on uint64) bool {
	return l.Lease.On == on && l.Lease.Task.ID == id && l.Account == account
}

func (p *pending) is(account Peer, id string, on uint64) bool {
	return p.step.Record.On == on && p.step.Record.ID == id && p.account == account
}

// leaseID tells leases apart.
type leaseID struct {
	account Peer
	id      string
	on      uint64
}

func (l *Parted) id() leaseID { return leaseID{l.Account, l.Lease.Task.ID, l.Lease.On} }

// takeVerdict drops the lease that a verdict is about, or lets its slot continue from the new record.
func (m *Member) takeVerdict(account Peer, v *Verdict, out *Output) {
	at := slices.IndexFunc(m.records, func(p *pending) bool { // Verdicts come in the order of the records.
		return p.is(account, v.ID, v.On) && (!v.Failed || p.step.Record.Fate == Failed && p.step.Try == v.Try)
	})
	returned := at >= 0 && m.records[at].slot < 0
	if returned && v.Outcome == Counted && m.records[at].step.Record.Served > 0 {
		m.noteObject(v.ID, account, &m.records[at].step.Record, m.records[at].bound)
	}
	switch {
	case at == 0:
		m.records[0] = nil
		m.records = m.records[1:]
	case at > 0:
		m.records = slices.Delete(m.records, at, at+1)
	}
	if v.Failed || returned {
		return // A lease is at one place.
	}
	m.waiting = slices.DeleteFunc(m.waiting, func(l Parted) bool { return l.is(account, v.ID, v.On) })
	m.passed = slices.DeleteFunc(m.passed, func(p passed) bool {
		return p.account == account && p.held.ID == v.ID && p.held.On == v.On
	})
	for i := range m.slots {
		s := &m.slots[i]
		switch {
		case !s.isRunning() || !s.is(account, v.ID, v.On):
		case s.recording && v.Outcome == Counted && m.leave.gives:
			if m.stop(i, out); account == m.opts.Self {
				m.accounts.giveBack(v.ID, v.Seq)
			}
		case s.recording && v.Outcome == Counted:
			s.recording, s.Lease.On, s.Lease.Try = false, v.Seq, 0
			out.Recorded = append(out.Recorded, i)
		default:
			m.stop(i, out)
		}
	}
}

func (m *Member) takeHolds(now clocksync.Instant, i int, h *Holds, out *Output) {
	p := &m.peers[i]
	if h.Number <= p.number {
		return // It is older than the known state.
	}
	if p.number == 0 && m.number > 0 { // It is new, and asks nobody before it has heard of them.
		m.number++
		m.sendHoldsTo(i, m.loadNow(), out)
	}
	p.number, p.open, p.objects = h.Number, h.Open, h.Objects
	if p.load = h.Load; h.Funcs != nil {
		p.code = h.Funcs
	}
	m.setAway(p, h.Away)
	if p.place >= 0 {
		n := &m.view.Neighbours[p.place]
		n.Load, n.Told, n.Silent = h.Load, now, false
	}
	for _, k := range m.accounts.noteHeld(p.String(), h.List, h.Settled) {
		m.sendVerdict(p.Peer, Verdict{ID: h.List[k].ID, On: h.List[k].On, Outcome: Closed}, out)
	}
}

// takeStep takes what a function yields or returns.
func (m *Member) takeStep(now clocksync.Instant, in *Input, out *Output) {
	s := &m.slots[in.Slot]
	switch {
	case !s.taken:
		panic(fmt.Sprintf("workcore: slot %d runs nothing", in.Slot))
	case s.stopped:
		if in.Kind == InDone {
			*s = slot{}
		} else {
			out.Stops = append(out.Stops, in.Slot)
		}
		return
	case s.recording:
		panic(fmt.Sprintf("workcore: slot %d continues before its record counts", in.Slot))
	}
	step := *in.Step
	step.Record.ID, step.Record.On, step.Try = s.Lease.Task.ID, s.Lease.On, s.Lease.Try
	if s.demand > 0 && len(step.Record.Children) > 0 {
		step.For, step.Demand = s.asker, s.demand
	}
	if err := step.checkStep(); err != nil || (step.Record.Fate == Kept) != (in.Kind == InYield) && (s.Lease.Task.Object == nil || in.Kind == InYield) {
		if out.Err = err; err == nil {
			out.Err = fmt.Errorf("record of task %q: it is %v: a yield keeps its task, and a function that returns does not", step.Record.ID, step.Record.Fate)
		}
		if in.Kind == InYield {
			return // The program may yield less.
		}
		step.Record = Record{ID: step.Record.ID, On: step.Record.On, Fate: Failed, Error: cutText(out.Err.Error())}
		step.Keys, step.Demand = nil, 0
	}
	if s.demand > 0 && step.Demand == 0 && m.findPeer(s.asker) >= 0 {
		m.give(s.asker, &Demand{Number: s.demand}, 0, nil, out)
	}
	if in.Kind == InDone {
		m.view.Done++
	}
	if m.meter != nil && s.Lease.Task.Object != nil {
		m.meter.noteRun(now, s.since, &s.Lease.Task, step.Record.Children)
	}
	account, place, object := s.Account, -1, s.Lease.Task.Object
	bound := object != nil && len(object.At) > 0
	s.demand, s.items = 0, in.Items
	if s.recording = in.Kind == InYield; s.recording {
		place = in.Slot
	} else {
		*s = slot{}
	}
	if account == m.opts.Self {
		v := m.judge(account, &step, out)
		if v.Outcome == Counted && step.Record.Served > 0 {
			m.noteObject(v.ID, account, &step.Record, bound)
		}
		m.takeVerdict(account, &v, out)
		return
	}
	m.sendRecord(now, &pending{account: account, step: step, slot: place, bound: bound}, out)
}

func (m *Member) sendRecord(now clocksync.Instant, p *pending, out *Output) {
	m.sendFrame(p.account, Frame{Step: &p.step}, out)
	p.again = now.Add(m.opts.Repeat)
	m.records = append(m.records, p)
}

func (m *Member) repeatRecords(now clocksync.Instant, out *Output) {
	for len(m.records) > 0 && m.records[0].again <= now {
		p := m.records[0]
		m.records = m.records[1:]
		m.sendRecord(now, p, out)
	}
}

// MaxPassive is how many functions may wait beyond those that work.
const MaxPassive = 32

// startTasks fills the free slots: the smallest key first, of equal ones the tasks of others. A function that waits
// leaves its slot to another one.
func (m *Member) startTasks(out *Output) {
	active := 0
	for i := range m.slots {
		if m.slots[i].taken && !m.slots[i].passive {
			active++
		}
	}
	for i := 0; active < m.opts.Slots && i < m.opts.Slots+MaxPassive; i++ {
		if i < len(m.slots) && m.slots[i].taken {
			continue
		}
		key, own := m.nextHere()
		next := m.readyLease()
		if i == len(m.slots) && (own || next >= 0) {
			m.slots = append(m.slots, slot{})
		}
		switch {
		case next == 0 && (!own || m.waiting[0].Lease.Key <= key):
			m.slots[i].Parted, m.waiting[0] = m.waiting[0], Parted{}
			m.waiting = m.waiting[1:]
		case next > 0 && (!own || m.waiting[next].Lease.Key <= key):
			m.slots[i].Parted = m.waiting[next]
			m.waiting = slices.Delete(m.waiting, next, next+1)
		case own:
			m.slots[i].Account = m.opts.Self
			m.slots[i].Lease = m.handHere()
		default:
			return
		}
		m.slots[i].taken, m.slots[i].since = true, m.now
		active++
		l := &m.slots[i].Lease
		run := Run{i, l.Task, m.slots[i].Account, l.Inbox, l.Pinned, l.On}
		_, run.Task.ID = splitID(run.Task.ID)
		out.Runs = append(out.Runs, run)
	}
}

// refresh brings the view up to date.
func (m *Member) refresh(now clocksync.Instant) {
	v, running := &m.view, 0
	v.Items = 0
	for i := range m.slots {
		s := &m.slots[i]
		if s.taken && !s.passive {
			running++
		}
		if s.mayPart() {
			v.Items = max(v.Items, s.items)
		}
	}
	slots := m.opts.Slots
	if m.leave.gives { // It asks for nothing, and offers what it has.
		slots = 0
	}
	v.Activity.Set(now, running, slots)
	v.Put = m.accounts.countWaiting() - m.accounts.own.waiting.strange
	v.Waiting = v.Put + len(m.waiting)
}

func (m *Member) sendDemands(now clocksync.Instant, out *Output) {
	defer m.refuseOffers(m.demand, out)
	m.refresh(now)
	m.demands, m.look = m.opts.Strategy.Look(now, &m.view, m.demands[:0])
	m.demands, m.asked = append(m.demands, m.asked...), m.asked[:0]
	m.offerStrange(now)
	for _, d := range m.demands {
		i := slices.IndexFunc(m.peers, func(p peer) bool { return p.Name == d.Member })
		if i < 0 || m.peers[i].place < 0 || m.peers[i].demand > 0 || m.takesNone() && !d.Offer {
			continue
		}
		room := MaxHeld - m.held()
		if d.Offer {
			room = d.Tasks
		} else if room < 1 { // It looks again once there is room, at the latest when it reports its passed-on leases no more.
			if m.look = clocksync.MaxInstant; len(m.passed) > 0 {
				m.look = max(m.passed[0].until, now.Add(m.opts.Pace))
			}
			break
		}
		if d.Tasks > 0 {
			room = min(room, d.Tasks)
		} else if d.Offer {
			continue
		}
		if m.loadNow() < m.peers[i].heard/2 { // It gives by what it knows of this member.
			m.number++
			m.sendHoldsTo(i, m.loadNow(), out)
		}
		m.demand++
		m.peers[i].demand, m.peers[i].offers, m.peers[i].deadline = m.demand, d.Offer, now.Add(m.opts.Patience)
		m.view.Neighbours[m.peers[i].place].Pending = true
		m.sendFrame(m.peers[i].Peer, Frame{Demand: &Demand{m.demand, room, m.has, d.Offer}}, out)
	}
}

// loadNow is how much this member has to give, as neighbours learn it: 1 for each task that waits, and less
// for a bag that runs, from 0.5 for two items up. So a member that is short asks where the largest bag is.
func (m *Member) loadNow() float64 {
	load := float64(m.view.Waiting + m.accounts.own.waiting.strange)
	for i := range m.slots {
		if s := &m.slots[i]; s.isRunning() && s.items > 1 {
			load += 1 - 1/float64(s.items)
		}
	}
	return load
}

// sendHolds tells each other member what this one has of it, at a steady pace, and sooner when there
// is something to give again.
func (m *Member) sendHolds(now clocksync.Instant, out *Output) {
	if load := m.loadNow(); now >= m.nextHolds() && len(m.peers) > 0 {
		m.told, m.load = now, load
		m.number++
		if m.quiet++; m.busy() {
			m.quiet = 0
		}
		for i := range m.peers {
			m.sendHoldsTo(i, load, out)
		}
	}
}

func (m *Member) sendHoldsTo(i int, load float64, out *Output) {
	m.peers[i].heard = load
	m.setTurned(&m.peers[i], 0)
	out.holds = append(out.holds, Holds{m.number, m.settledDemand(), load, m.Counts().Open, m.Counts().Objects, m.takesNone(), m.heldOf(m.peers[i].Peer), nil})
	if m.tellsCode(i) {
		out.holds[len(out.holds)-1].Funcs = m.code
	}
	m.sendFrame(m.peers[i].Peer, Frame{Holds: &out.holds[len(out.holds)-1]}, out)
}

// muchLoad is the least load whose growth goes out early.
const muchLoad = 16

// nextHolds is sooner where there is something to give again or the load has doubled, and later where nothing has been told
// for a while.
func (m *Member) nextHolds() clocksync.Instant {
	switch {
	case m.loadNow() >= max(muchLoad, 2*m.load):
		return m.told.Add(m.opts.Pace / 32)
	case m.load == 0 && m.loadNow() > 0:
		return m.told.Add(m.opts.Pace / 8)
	case m.quiet == 0 || m.busy():
		return m.told.Add(m.opts.Pace)
	default:
		return m.told.Add(m.opts.Pace << min(m.quiet-1, quietest))
	}
}

// quietest is how often the pace of Holds doubles while this member has nothing to tell.
const quietest = 4

// busy reports whether Holds of this member may tell others something.
func (m *Member) busy() bool {
	if m.Counts().Open+len(m.waiting)+len(m.records)+len(m.passed) > 0 {
		return true
	}
	return slices.ContainsFunc(m.slots, func(s slot) bool { return s.taken }) || slices.ContainsFunc(m.near, func(i int) bool { return m.peers[i].demand > 0 })
}

// settledDemand is the number up to which all demands are settled.
func (m *Member) settledDemand() uint64 {
	n := m.demand
	for _, i := range m.near {
		if d := m.peers[i].demand; d > 0 {
			n = min(n, d-1)
		}
	}
	return n
}

// heldOf lists the leases of an account.
func (m *Member) heldOf(account Peer) (list []Held) {
	for i := range m.waiting {
		if l := &m.waiting[i]; l.Account == account {
			list = append(list, Held{ID: l.Lease.Task.ID, On: l.Lease.On})
		}
	}
	for i := range m.slots {
		if s := &m.slots[i]; s.isRunning() && s.Account == account {
			list = append(list, Held{ID: s.Lease.Task.ID, On: s.Lease.On, Runs: true})
		}
	}
	for i := range m.records {
		if p := m.records[i]; p.account == account && p.slot < 0 {
			list = append(list, Held{ID: p.step.Record.ID, On: p.step.Record.On})
		}
	}
	for i := range m.passed {
		if p := &m.passed[i]; p.account == account {
			list = append(list, p.held)
		}
	}
	return list
}

// Holdings lists the members with tasks of this member's account, by name; itself too.
func (m *Member) Holdings() []workreport.Holding {
	list := []workreport.Holding{}
	for _, p := range append([]peer{{Peer: m.opts.Self}}, m.peers...) {
		h := workreport.Holding{Member: p.Name}
		m.accounts.eachStore(func(_ string, s *Store) {
			for _, o := range s.held[p.String()] {
				if h.Tasks++; o.lease.runs {
					h.Runs++
				}
			}
		})
		if h.Tasks > 0 {
			list = append(list, h)
		}
	}
	slices.SortFunc(list, func(a, b workreport.Holding) int { return strings.Compare(a.Member, b.Member) })
	return list
}

// Rests returns the bodies of the open tasks of a function that this member has put: what the last record of each has
// left. They must not change.
func (m *Member) Rests(function string) (list [][]byte) {
	for _, o := range m.accounts.own.account.tasks {
		if o.fate == Kept && o.task.Func == function {
			list = append(list, o.task.Body)
		}
	}
	return list
}

// Counts are the figures of this member's account.
func (m *Member) Counts() Counts { return m.accounts.countAll() }

func (m *Member) makeTold() Told {
	c := m.Counts()
	t := Told{
		Settled: m.settled, Phase: m.phase, Queued: m.accounts.countWaiting() + m.accounts.countStaying() + len(m.waiting), Open: c.Open, Blocked: c.Blocked, Missing: c.Missing, Objects: c.Objects,
		Moved: m.moved, Given: m.accounts.own.given, Redone: m.accounts.own.redone, Drained: m.drains,
		Withdrawn: m.leave.withdrawn, Withdrawals: m.leave.withdrawals, Stay: m.countStaying(),
	}
	for i := range m.slots {
		t.Drained = t.Drained && !m.slots[i].taken
		if m.slots[i].isRunning() {
			t.Running++
		}
	}
	t.Unwritten = m.durable.countUnwritten()
	t.Idle = t.Open == 0 && t.Queued == 0 && t.Running == 0 && len(m.records) == 0 && t.Unwritten == 0
	t.Drained = t.Drained && t.Idle
	if m.meter != nil {
		t.Load = m.meter.load
	}
	return t
}

// nextWake is when the next step is due.
func (m *Member) nextWake() clocksync.Instant {
	if m.over {
		return clocksync.MaxInstant
	}
	at := m.look
	if m.accounts.own.waiting.strange > 0 {
		at = min(at, m.offers)
	}
	if len(m.peers) > 0 {
		at = min(at, m.nextHolds())
	}
	if len(m.records) > 0 {
		at = min(at, m.records[0].again)
	}
	at = min(at, m.nextMail())
	if m.meter != nil && m.meter.willChange() {
		at = min(at, m.meter.begun.Add(meterWindow))
	}
	for _, i := range m.near {
		if m.peers[i].demand > 0 {
			at = min(at, m.peers[i].deadline)
		}
	}
	return at
}
