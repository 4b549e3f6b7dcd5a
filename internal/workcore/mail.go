package workcore

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/balance/local"
	"github.com/gopegasus/pegasus/clocksync"
)

// pushed is the number of the demand of a lease that is brought unasked, until its holder tells of it.
const pushed = math.MaxUint64

// mail is messages of an account to an object elsewhere. One post of them is on its way at a time, and begins with
// the first message that was not taken: so they stay in their order.
type mail struct {
	again clocksync.Instant // when the post is sent again
	tries int               // since the last answer

	// Of an object in another account of this member. First the log of the sender has to have the messages, up to upTo;
	// then the object's log, as answer says.
	upTo   uint64
	answer Posted
	fresh  bool   // that was in this step
	ticket uint64 // the logs have it from then on
}

// push is an object on its way to where it is.
type push struct {
	id    string // full
	on    uint64
	to    Peer
	again clocksync.Instant
}

// mayMove reports whether a lease may go from a member that has not begun it to another one.
func (l *Lease) mayMove(to string, has []string) bool {
	o := l.Task.Object
	return !l.Pinned && o.mayBe(to) && local.MayMove(o.Near, has)
}

// came is where an object came from that a strategy has moved here, and until when it does not go back.
type came struct {
	from  string
	until clocksync.Instant
}

// maxCame is how many of them a member knows. Those beyond it may go back.
const maxCame = 4096

// noteArrival notes where an object comes from, unless it has not begun: then that was no place of it.
func (m *Member) noteArrival(l *Lease, from string) {
	if m.opts.Stay <= 0 || len(l.Inbox) > 0 && l.Inbox[0].makesState(&l.Task) || len(m.came) >= maxCame {
		return
	}
	_, id := splitID(l.Task.ID)
	m.came[id] = came{from, m.now.Add(m.opts.Stay)}
}

// mustStay reports whether an object does not go to a holder that asks for work: it came from there a short time ago, or
// another strategy moves objects.
func (m *Member) mustStay(full, to string) bool {
	if m.meter != nil {
		return true // The strategy that is central moves it.
	}
	_, id := splitID(full)
	c, is := m.came[id]
	return is && c.from == to && m.now < c.until
}

// atHand is an object that ran here last.
type atHand struct {
	account Peer
	stays   bool // it is pinned, or bound to members
}

// noteObject notes that an object of an account has run here, whether it continues, and whether it is bound to members.
func (m *Member) noteObject(full string, account Peer, r *Record, bound bool) {
	_, id := splitID(full)
	stays := bound || r.Pinned
	leaves := m.meter != nil && m.meter.leaves[id]
	if leaves {
		delete(m.meter.leaves, id)
	}
	if r.Fate != Kept || leaves || m.leave.gives && !stays {
		m.forgetObject(full)
		return
	}
	m.objects[id] = atHand{account, stays}
	if slices.Contains(m.has, id) {
		return
	}
	m.has = slices.Clip(append(slices.Clone(m.has[max(0, len(m.has)-MaxHas+1):]), id)) // Frames have the one before.
}

func (m *Member) forgetObject(full string) {
	_, id := splitID(full)
	delete(m.objects, id)
	if m.meter != nil {
		m.meter.forgetObject(id)
		m.meter.changed = true
	}
	if i := slices.Index(m.has, id); i >= 0 {
		m.has = slices.Delete(slices.Clone(m.has), i, i+1)
	}
}

// Objects lists the objects that ran here last, as far as this member knows: it hears only of those that it gives away
// itself.
func (m *Member) Objects() []string { return slices.Sorted(maps.Keys(m.objects)) }

// HasObject reports whether an object is among [Member.Objects].
func (m *Member) HasObject(id string) bool {
	_, has := m.objects[id]
	return has
}

// sender is the name by which others know an account. With a log the account continues in another life.
func (m *Member) sender(name string) string {
	switch {
	case name != "":
		return name
	case m.durable != nil:
		return m.opts.Self.Name
	default:
		return m.holder
	}
}

// sendPosts sends messages to objects elsewhere.
func (m *Member) sendPosts(now clocksync.Instant, out *Output) {
	m.accounts.eachStore(func(name string, s *Store) {
		if len(s.account.posts) == 0 {
			return
		}
		for _, to := range s.listPosters() {
			account := m.sender(name)
			key := mailKey{to, account}
			one := m.mails[key]
			if one == nil {
				one = &mail{again: now}
				m.mails[key] = one
			}
			if len(m.accounts.taken) > 0 && m.postHere(s, to, account, one) || one.again > now {
				continue
			}
			if one.tries++; one.tries > mostTries {
				delete(m.homes, to) // Another member may have the account now.
			}
			one.again = now.Add(m.opts.Repeat << min(max(0, one.tries-mostTries), quietest))
			if home, known := m.homes[to]; known {
				p := s.postOf(to)
				p.Account = account
				m.sent.Directed++
				m.sendFrame(home, Frame{Post: p}, out)
				continue
			}
			m.sent.Undirected++
			for i := range m.peers {
				m.sendFrame(m.peers[i].Peer, Frame{Post: &Post{For: to, Account: account}}, out)
			}
		}
	})
}

// mostTries is after how many posts without an answer an object is looked for again.
const mostTries = 5

// postHere hands messages to an object in another account of this member, if it is there.
func (m *Member) postHere(s *Store, to, account string, one *mail) (here bool) {
	if one.fresh {
		one.fresh, one.ticket = false, m.Ticket()
	}
	if (one.upTo > 0 || one.answer.For != "") && m.Written() < one.ticket {
		return true
	}
	if one.answer.For != "" {
		s.recordPosted(&one.answer, objectEnded)
		one.answer = Posted{}
	}
	p := s.postOf(to)
	p.Messages = slices.DeleteFunc(p.Messages, func(l Message) bool { return one.upTo > 0 && l.Number > one.upTo })
	if p.Account = account; len(p.Messages) == 0 {
		one.upTo = 0
		return true
	}
	first := one.upTo == 0
	m.accounts.eachStore(func(_ string, other *Store) {
		switch {
		case other == s || here:
		case first:
			if _, _, here = other.Receive(&Post{For: to, Account: account}); here {
				one.upTo, one.fresh = p.Messages[len(p.Messages)-1].Number, true
			}
		default:
			var taken uint64
			var gone bool
			if taken, gone, here = other.Receive(p); here {
				one.answer, one.fresh = Posted{For: to, Number: taken, Gone: gone}, true
			}
		}
	})
	if !here || one.answer.For != "" {
		one.upTo = 0
	}
	return here
}

const objectEnded = "its object has ended"

// forgetHeld drops outputs that wait for the log of an account that another life has now: where objects are to
// run, messages to objects, and the receipts for them. All of that is sent again.
func (m *Member) forgetHeld(account string) {
	for _, one := range m.mails {
		one.upTo, one.answer, one.fresh = 0, Posted{}, false
	}
	var gone []int // slots whose function never begins
	for i := range m.durable.held {
		out := &m.durable.held[i].out
		out.Runs = slices.DeleteFunc(out.Runs, func(r Run) bool {
			of, _ := splitID(m.slots[r.Slot].Lease.Task.ID)
			if is := r.Inbox != nil && (of == account || m.slots[r.Slot].stopped); is {
				gone = append(gone, r.Slot)
				m.slots[r.Slot] = slot{}
			}
			return r.Inbox != nil && slices.Contains(gone, r.Slot)
		})
		out.Stops = slices.DeleteFunc(out.Stops, func(i int) bool { return slices.Contains(gone, i) })
		out.Frames = slices.DeleteFunc(out.Frames, func(f Frame) bool {
			return f.Post != nil || f.Posted != nil || f.Parcel != nil && slices.ContainsFunc(f.Parcel.Leases, func(l Parted) bool { return l.Lease.Task.Object != nil })
		})
	}
}

// takePost takes messages to an object of an account here, or tells that it is here.
func (m *Member) takePost(from Peer, p *Post, out *Output) {
	answered := false
	m.accounts.eachStore(func(_ string, s *Store) {
		if answered {
			return
		}
		if taken, gone, here := s.Receive(p); here {
			answered = true
			m.sendFrame(from, Frame{Posted: &Posted{p.For, p.Account, taken, gone}}, out)
		}
	})
}

// takePosted records the messages taken, and sends the next ones.
func (m *Member) takePosted(now clocksync.Instant, from Peer, p *Posted) {
	m.homes[p.For] = from
	m.accounts.eachStore(func(name string, s *Store) {
		if m.sender(name) == p.Account {
			s.recordPosted(p, objectEnded)
		}
	})
	if one := m.mails[mailKey{p.For, p.Account}]; one != nil {
		one.again, one.tries = now, 0
	}
}

// loseHome forgets where objects are whose member is gone, and counts them. Without logs they are gone too.
func (m *Member) loseHome(p Peer) (objects int) {
	for to, home := range m.homes {
		if home == p {
			if delete(m.homes, to); !strings.HasPrefix(to, groupMark) {
				objects++
			}
			if m.durable == nil {
				m.accounts.own.recordPosted(&Posted{For: to, Gone: true}, fmt.Sprintf("its object was lost with member %q, which had created it", p.Name))
			}
		}
	}
	if m.durable == nil {
		m.accounts.own.forgetSender(p.String())
	}
	m.pushes = slices.DeleteFunc(m.pushes, func(o push) bool { return o.to == p })
	return objects
}

// pushObjects brings objects with messages to the members where they are.
func (m *Member) pushObjects(now clocksync.Instant, out *Output) {
	m.accounts.eachStore(func(name string, s *Store) {
		for _, o := range s.takePushes() {
			if l := &o.lease; o.fate != Kept || l.holder != "" || l.place >= 0 || len(o.box.inbox) == 0 || slices.Contains(s.staying, o) {
				continue
			}
			to, is := m.placeOf(o)
			if !is && m.leave.away[m.holder] && o.isFree() {
				if to, is = m.findRefuge(s, o); !is {
					s.pushes = append(s.pushes, o) // Until others have the messages sent before.
					continue
				}
				o.lease.at = to.String()
			}
			switch {
			case !is && len(o.task.Object.At) > 0:
				s.pushes = append(s.pushes, o) // Until one of these members is there.
			case !is:
				o.lease.at = ""
				s.rouseTask(o)
			case to == m.opts.Self:
				o.lease.at = m.holder
				s.queueObject(o)
			case m.peers[m.findPeer(to)].number == 0:
				s.pushes = append(s.pushes, o) // Until its space is open and it has told of itself.
			default:
				m.push(now, name, s, o, to, out)
			}
		}
	})
	for i := len(m.pushes); i > 0; i-- {
		p := m.pushes[0]
		if p.again > now {
			return
		}
		m.pushes = m.pushes[1:]
		s, id := m.accounts.storeOf(p.id)
		if s == nil {
			continue
		}
		if o := s.currentTask(id, p.on); o != nil && o.lease.demand == pushed {
			name, _ := splitID(p.id)
			m.push(now, name, s, o, p.to, out)
		}
	}
}

func (m *Member) push(now clocksync.Instant, name string, s *Store, o *open, to Peer, out *Output) {
	l := s.handOut(o, to.String(), pushed)
	if name != "" {
		l.Task.ID = fullID(name, l.Task.ID)
	}
	if m.meter != nil {
		m.meter.forgetObject(o.task.ID)
	}
	m.pushed++
	m.sendFrame(to, Frame{Parcel: &Parcel{Push: m.pushed, Leases: []Parted{{m.opts.Self, l}}}}, out)
	m.pushes = append(m.pushes, push{l.Task.ID, l.On, to, now.Add(2 * m.opts.Pace)})
}

// placeOf is the member where an object is: a member that it is bound to, if it is bound.
func (m *Member) placeOf(o *open) (Peer, bool) {
	all := []Peer{m.opts.Self}
	for i := range m.peers {
		all = append(all, m.peers[i].Peer)
	}
	at := o.task.Object.At
	for _, p := range all {
		if o.lease.at == p.String() && (len(at) == 0 || slices.Contains(at, p.Name)) && (!m.leave.away[p.String()] || !o.isFree() && (len(at) < 2 || o.box.pinned)) {
			return p, true
		}
	}
	for _, name := range at { // A member that takes work, if there is one.
		if i := slices.IndexFunc(all, func(p Peer) bool { return p.Name == name && !m.leave.away[p.String()] }); i >= 0 {
			return all[i], true
		}
	}
	for _, name := range at {
		if i := slices.IndexFunc(all, func(p Peer) bool { return p.Name == name }); i >= 0 {
			return all[i], true
		}
	}
	return Peer{}, false
}

// moveObject has an object be at another member.
func (m *Member) moveObject(in *Input) error {
	to := m.opts.Self
	if i := slices.IndexFunc(m.peers, func(p peer) bool { return p.Name == in.To }); i >= 0 {
		to = m.peers[i].Peer
	} else if in.To != to.Name {
		return fmt.Errorf("object %q: it cannot move to member %q, which is not in the group now", in.ID, in.To)
	}
	if m.leave.away[to.String()] {
		return fmt.Errorf("object %q: it cannot move to member %q, which takes no work now: it is withdrawn, or drains", in.ID, in.To)
	}
	var err error
	found := false
	m.accounts.eachStore(func(_ string, s *Store) {
		if !found && (s == m.accounts.own || s.account.objects[in.ID] != nil) {
			found = s.account.objects[in.ID] != nil
			err = s.moveObject(in.ID, to.String())
		}
	})
	return err
}

// nextMail is when a post or an object is sent again.
func (m *Member) nextMail() clocksync.Instant {
	at := clocksync.MaxInstant
	m.accounts.eachStore(func(name string, s *Store) {
		for to := range s.account.posts {
			if one := m.mails[mailKey{to, m.sender(name)}]; one != nil && one.answer.For == "" && one.upTo == 0 {
				at = min(at, one.again)
			}
		}
	})
	if len(m.pushes) > 0 {
		at = min(at, m.pushes[0].again)
	}
	return at
}

// endMails forgets the mail of the phase that has ended.
func (m *Member) endMails() { m.mails, m.pushes = map[mailKey]*mail{}, nil }
