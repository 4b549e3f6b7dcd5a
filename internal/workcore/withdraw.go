package workcore

import (
	"slices"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// withdrawal is what a member knows of members that take no work: of itself and of others.
type withdrawal struct {
	withdrawn   bool
	since       clocksync.Instant // when it was withdrawn
	withdrawals uint64
	gives       bool            // it gives away what it has
	away        map[string]bool // holders that take no work; this one while it gives, unless it drains
}

// maxRefugees is how many objects a member that takes no work has on their way to others at a time. A parcel for
// each is sent unasked.
const maxRefugees = 128

// takeWithdraw notes whether this member takes work. [Member.settleWithdrawal] does what follows.
func (m *Member) takeWithdraw(in *Input) {
	if m.leave.withdrawn == !in.Active {
		return
	}
	if m.leave.withdrawn = !in.Active; m.leave.withdrawn {
		m.leave.since = m.now
		m.leave.withdrawals++
	}
	m.told = clocksync.MinInstant // The others hear of it at once.
}

// takesNone reports whether this member asks for no work, and is sent none.
func (m *Member) takesNone() bool { return m.drains || m.leave.withdrawn }

// settleWithdrawal begins to give away the tasks here, or ends it. A member that is withdrawn, or drains, works on
// while none of its neighbours takes work. A member that drains gives nevertheless while it knows none.
func (m *Member) settleWithdrawal(out *Output) {
	known, takes := false, false
	for i := 0; i < len(m.peers) && m.takesNone(); i++ {
		if p := &m.peers[i]; p.place >= 0 && p.number > 0 {
			known, takes = true, takes || !p.away
		}
	}
	gives := m.takesNone() && takes || m.drains && !known
	began := gives && !m.leave.gives
	m.leave.gives = gives
	m.markAway(m.holder, gives && !m.drains)
	if began {
		m.giveUpLeases(out)
	}
}

// giveUpLeases gives up the waiting leases, and has the running ones saved: their rest goes back to its account.
func (m *Member) giveUpLeases(out *Output) {
	m.told = clocksync.MinInstant // The accounts hear of it at once.
	m.waiting = slices.DeleteFunc(m.waiting, func(l Parted) bool { return m.drains || !l.Lease.isBound() })
	for id, o := range m.objects {
		if !o.stays {
			m.forgetObject(id)
		}
	}
	for i := range m.slots {
		if s := &m.slots[i]; s.isRunning() && !s.recording && s.Lease.Task.Object == nil {
			out.Yields = append(out.Yields, Part{Slot: i})
		}
	}
}

// isBound reports whether a lease is of an object that is pinned, or bound to members.
func (l *Lease) isBound() bool {
	return l.Task.Object != nil && (l.Pinned || len(l.Task.Object.At) > 0)
}

// setAway notes whether another member takes no work.
func (m *Member) setAway(p *peer, away bool) {
	if p.away = away; p.place >= 0 {
		m.view.Neighbours[p.place].Away = away
	}
	m.markAway(p.String(), away)
}

// markAway has the accounts know whether a holder takes no work.
func (m *Member) markAway(holder string, away bool) {
	if m.leave.away[holder] == away {
		return
	}
	if delete(m.leave.away, holder); away {
		m.leave.away[holder] = true
	}
	m.accounts.eachStore(func(_ string, s *Store) { s.placeAgain(holder) })
}

// placeAgain has objects find a place again after a holder takes no work any more, or takes work again.
func (s *Store) placeAgain(holder string) {
	if holder != s.self {
		for _, o := range s.account.objects {
			if o.lease.at == holder && s.away[holder] && o.isFree() {
				o.lease.at = ""
			}
		}
		return
	}
	staying := s.staying
	s.staying = nil
	list := append(s.takePushes(), staying...)
	for _, o := range s.account.objects {
		if o.lease.holder == "" && o.lease.place >= 0 {
			list = append(list, o)
			s.waiting.removeTask(o)
			o.lease.place = -1
		} else if o.lease.at == holder && s.away[holder] && o.isFree() {
			o.lease.at = ""
		}
	}
	slices.SortFunc(list, byPut)
	for _, o := range list {
		s.rouseTask(o)
	}
}

// isFree reports whether an object may leave the holder where it is.
func (o *open) isFree() bool {
	return o.box != nil && len(o.task.Object.At) == 0 && (!o.box.pinned || o.lease.at == "")
}

// firstStaying is the object that is next of those that stay; nil: none.
func (s *Store) firstStaying() *open {
	for len(s.staying) > 0 {
		if o := s.staying[0]; o.fate == Kept && o.needs == 0 && o.lease.holder == "" && o.lease.place < 0 && len(o.box.inbox) > 0 {
			return o
		}
		s.staying = s.staying[1:]
	}
	return nil
}

// nextHere is the key of the task of an account here that may start here next; false if there is none.
func (m *Member) nextHere() (key float64, ok bool) {
	if !m.leave.gives && m.readsData() {
		if _, o := m.readyHere(); o != nil {
			return o.lease.key, true
		}
		return 0, false
	}
	if !m.leave.gives {
		key, _, ok = m.accounts.nextKey(m.code)
		return key, ok
	}
	m.accounts.eachStore(func(_ string, s *Store) {
		if o := s.firstStaying(); o != nil && (!ok || o.lease.key < key) {
			key, ok = o.lease.key, true
		}
	})
	return key, ok
}

// handHere leases the task of [Member.nextHere] to this member.
func (m *Member) handHere() (l Lease) {
	if !m.leave.gives && m.readsData() {
		name, o := m.readyHere()
		if l = m.accounts.store(name).handOut(o, m.holder, 0); name != "" {
			l.Task.ID = fullID(name, l.Task.ID)
		}
		return l
	}
	if !m.leave.gives {
		l, _ = m.accounts.handTask(m.holder, 0, nil, nil, m.code)
		return l
	}
	key, _ := m.nextHere()
	found := false
	m.accounts.eachStore(func(name string, s *Store) {
		o := s.firstStaying()
		if found || o == nil || o.lease.key != key {
			return
		}
		found = true
		s.staying = s.staying[1:]
		if l = s.handOut(o, m.holder, 0); name != "" {
			l.Task.ID = fullID(name, l.Task.ID)
		}
	})
	return l
}

// findRefuge is the member that an object goes to from a member that takes no work: where most of its neighbours are, as
// far as they are of the same account, and of those the least loaded one. It is false if none takes work, or as many
// objects are on their way as may.
func (m *Member) findRefuge(s *Store, o *open) (Peer, bool) {
	m.pushes = slices.DeleteFunc(m.pushes, func(p push) bool {
		of, id := m.accounts.storeOf(p.id)
		if of == nil {
			return true
		}
		at := of.currentTask(id, p.on)
		return at == nil || at.lease.demand != pushed
	})
	best, pull, load := -1, 0.0, 0.0
	if len(m.pushes) >= maxRefugees {
		return Peer{}, false
	}
	for i := range m.peers {
		p := &m.peers[i]
		if p.away || p.number == 0 || !m.codeOf(p.Peer).hasFunction(o.task.Func) {
			continue
		}
		here := s.pullOf(o, p.String())
		has := p.load + float64(m.sentTo(p.Peer))
		if best < 0 || here > pull || here == pull && has < load {
			best, pull, load = i, here, has
		}
	}
	if best < 0 {
		return Peer{}, false
	}
	return m.peers[best].Peer, true
}

// sentTo is how many objects are on their way to a member.
func (m *Member) sentTo(to Peer) (n int) {
	for i := range m.pushes {
		if m.pushes[i].to == to {
			n++
		}
	}
	return n
}

// pullOf is how much the neighbours of an object at a holder attract it, as far as they are in the account.
func (s *Store) pullOf(o *open, holder string) (sum float64) {
	for i, id := range o.task.Object.Near {
		near := s.account.objects[id]
		if near == nil || near.lease.at != holder {
			continue
		}
		if pull := o.task.Object.Pull; i < len(pull) {
			sum += pull[i]
		} else {
			sum++
		}
	}
	return sum
}

// countStaying is how many objects stay here although this member takes no work.
func (m *Member) countStaying() (n int) {
	if !m.leave.withdrawn {
		return 0
	}
	for _, o := range m.objects {
		if o.stays {
			n++
		}
	}
	return n
}

// listStaying lists them, at most so many, in the order of their IDs.
func (m *Member) listStaying(most int) []string {
	list := []string{}
	for id, o := range m.objects {
		if o.stays {
			list = append(list, id)
		}
	}
	slices.SortFunc(list, strings.Compare)
	return list[:min(len(list), most)]
}

// Hysteresis decides when a member is withdrawn and when it comes back, from conditions that hold or do not. The zero
// Hysteresis is of a member that takes work.
type Hysteresis struct {
	Away    bool // the member is withdrawn
	holding bool // the condition that would change that holds
	since   clocksync.Instant
}

// Judge takes whether the conditions to withdraw and to come back hold now. The condition that would change
// something has to hold for the hold time without interruption; while both hold the member is withdrawn. It returns
// when to judge again even if nothing changes before.
func (h *Hysteresis) Judge(now clocksync.Instant, when, back bool, hold time.Duration) (again clocksync.Instant) {
	holds := when
	if h.Away {
		holds = back && !when
	}
	switch {
	case !holds:
		h.holding = false
		return clocksync.MaxInstant
	case !h.holding:
		h.holding, h.since = true, now
	}
	if until := h.since.Add(hold); now < until {
		return until
	}
	h.Away, h.holding = !h.Away, false
	return clocksync.MaxInstant
}

// Restart forgets since when a condition has held: the conditions are others now.
func (h *Hysteresis) Restart() { h.holding = false }
