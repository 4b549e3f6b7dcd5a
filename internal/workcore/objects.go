package workcore

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/balance/local"
)

// MaxServed is how many messages one lease of an object has at most.
const MaxServed = 1024

// MaxHas is how many objects a member tells of in a demand.
const MaxHas = 64

// Object says more of a task that is an object.
type Object struct {
	Near []string `json:"near,omitempty"` // objects: it moves only to a member that has one of them, or no object
	// Pull says how much each of Near attracts it, in their order; beyond its end 1. Of several objects that may move to a
	// member, the one moves whose neighbours there attract it most.
	Pull  []float64 `json:"pull,omitempty"`
	At    []string  `json:"at,omitempty"`    // members: it is at one of them only, the first that is there; none: at any
	Group string    `json:"group,omitempty"` // as part of which it may be sent messages
}

// Message is a message to an object.
type Message struct {
	ID     string // of its task
	Func   string // that serves it
	Body   []byte // its argument
	Number uint64 // in the account of its sender, where it rises; of an object of that account 0
}

// makesState reports whether the message makes the state of an object.
func (m *Message) makesState(object *Task) bool { return m.Number == 0 && m.ID == object.ID }

func (m *Message) countBytes() int { return len(m.ID) + len(m.Func) + len(m.Body) + 24 }

// Post brings messages to the account of an object, in their order, from the first message not taken on.
// Without messages it asks which member has the object.
type Post struct {
	For      string    // the object or the group
	Account  string    // of the sender
	Messages []Message // numbers rise
}

// Posted answers a post.
type Posted struct {
	For     string // as in the post
	Account string // as in the post
	Number  uint64 // of the last message that was taken
	Gone    bool   // the object has ended, and takes none
}

const groupMark = "\x01"

// GroupOf is what a message to any object of a group is for.
func GroupOf(group string) string { return groupMark + group }

// mailKey names a sequence of messages.
type mailKey struct{ object, account string }

// box are the messages of an object that are not served.
type box struct {
	inbox  []Message
	pinned bool
}

// failure is a message that its object could not serve.
type failure struct {
	message Message
	fate    Fate
	why     string
}

func (o *Object) sameObject(p *Object) bool {
	return o == nil && p == nil || o != nil && p != nil && slices.Equal(o.Near, p.Near) && slices.Equal(o.Pull, p.Pull) && slices.Equal(o.At, p.At) && o.Group == p.Group
}

func (t *Task) checkObject() error {
	switch o := t.Object; {
	case t.For == "" && o == nil:
		return nil
	case t.Part || t.For != "" && o != nil:
		return fmt.Errorf("task %q: it is a part of another task, a message and an object: it can be one of these", t.ID)
	case len(t.For) > MaxID+1:
		return fmt.Errorf("message %q: the ID of its object has %d bytes, and at most %d are allowed", t.ID, len(t.For), MaxID)
	case o == nil:
		return nil
	case len(o.Near) > MaxNear || len(o.At) > MaxNear:
		return fmt.Errorf("object %q: it has %d neighbours and may be at %d members, and at most %d are allowed", t.ID, len(o.Near), len(o.At), MaxNear)
	case len(o.Pull) > len(o.Near) || slices.ContainsFunc(o.Pull, func(w float64) bool { return math.IsNaN(w) || math.IsInf(w, 0) || w < 0 }):
		return fmt.Errorf("object %q: its neighbours attract it by %v: each has to be a finite number of at least 0", t.ID, o.Pull)
	case len(o.Group) > MaxID || slices.ContainsFunc(append(slices.Clone(o.Near), o.At...), func(s string) bool { return s == "" || len(s) > MaxID }):
		return fmt.Errorf("object %q: the names of its group, neighbours and members have 1 to %d bytes", t.ID, MaxID)
	}
	return nil
}

func (p *Post) checkPost() error {
	n := 0
	for i := range p.Messages {
		m := &p.Messages[i]
		if n += m.countBytes(); m.ID == "" || len(m.ID) > MaxID || len(m.Func) > MaxID || len(m.Body) > MaxBody || m.Number == 0 || i > 0 && m.Number <= p.Messages[i-1].Number {
			return fmt.Errorf("message %.40q for %.40q: its number is %d, and its body has %d bytes", m.ID, p.For, m.Number, len(m.Body))
		}
	}
	if p.For == "" || len(p.For) > MaxID+1 || p.Account == "" || len(p.Account) > MaxName+24 || n > MaxBytes && len(p.Messages) > 1 || len(p.Messages) > MaxServed {
		return fmt.Errorf("the post of %.40q for %.40q has %d messages with %d bytes", p.Account, p.For, len(p.Messages), n)
	}
	return nil
}

// addObject adds an object. Messages that were put before it are in its inbox.
func (a *Account) addObject(o *open) {
	o.box = &box{}
	a.objects[o.task.ID] = o
	if g := o.task.Object.Group; g != "" {
		a.groups[GroupOf(g)] = append(a.groups[GroupOf(g)], o)
	}
	o.box.inbox = append(o.box.inbox, Message{ID: o.task.ID, Func: o.task.Func, Body: o.task.Body}) // Makes its state.
	a.counts.Objects++
	a.counts.Open++
	for _, to := range []string{o.task.ID, GroupOf(o.task.Object.Group)} {
		early := a.posts[to]
		delete(a.posts, to)
		for _, m := range early {
			a.deliver(m)
		}
	}
}

// beginTask has a task run that waits for no other one: a message goes to its object.
func (a *Account) beginTask(o *open) {
	switch {
	case o.task.For != "":
		a.deliver(o)
	case o.box == nil || len(o.box.inbox) > 0:
		a.ready = append(a.ready, o)
	}
}

// target is the object that a message for an object or a group goes to: of a group the one with the fewest
// messages, of these the first that was put; nil: none is here.
func (a *Account) target(to string) (best *open) {
	if !strings.HasPrefix(to, groupMark) {
		return a.objects[to]
	}
	for _, o := range a.groups[to] {
		if best == nil || len(o.box.inbox) < len(best.box.inbox) {
			best = o
		}
	}
	return best
}

// deliver puts a message of this account into the inbox of its object. If that is not here, it is posted.
func (a *Account) deliver(m *open) {
	o := a.target(m.task.For)
	switch over := a.tasks[m.task.For]; {
	case o != nil:
		a.counts.Direct++
		a.put(o, Message{ID: m.task.ID, Func: m.task.Func, Body: m.task.Body})
	case over != nil && over.fate != Kept:
		a.doomed = append(a.doomed, doom{m, "its object has ended"})
	default:
		a.mailed = max(a.mailed+1, a.seq<<20) // It rises although the log was cut.
		m.mail = a.mailed
		a.posts[m.task.For] = append(a.posts[m.task.For], m)
	}
}

// put puts a message into an inbox.
func (a *Account) put(o *open, m Message) {
	if o.box.inbox = append(o.box.inbox, m); o.needs == 0 {
		a.ready = append(a.ready, o)
	}
}

// Receive takes messages of another account, of which some may have been taken before.
func (a *Account) Receive(seq uint64, p *Post) Outcome {
	o, key := a.target(p.For), mailKey{p.For, p.Account}
	if !a.hasNext(seq) {
		return Old
	}
	if o == nil {
		return Closed
	}
	a.added, a.ready = a.added[:0], a.ready[:0]
	for _, m := range p.Messages {
		if m.Number > a.received[key] {
			a.received[key] = m.Number
			a.counts.Open++
			a.put(a.target(p.For), m)
		}
	}
	return Counted
}

// serveMessages takes what a record of an object says of its messages.
func (a *Account) serveMessages(o *open, r *Record) {
	clear(a.failures)
	a.failures = a.failures[:0]
	fate := Done
	if r.Error != "" {
		fate = Failed
	}
	o.box.pinned = r.Pinned
	n := min(r.Served, len(o.box.inbox))
	why := r.Error
	if r.Fate != Kept { // What it did not serve fails with it.
		for _, m := range o.box.inbox[n:] {
			a.over(m, Failed, cmp.Or(r.Error, "its object has ended"))
		}
	}
	served := o.box.inbox[:n]
	o.box.inbox = slices.Clone(o.box.inbox[n:])
	if r.Fate != Kept {
		o.box.inbox = nil
	}
	for _, m := range served {
		a.over(m, fate, why)
	}
}

// over notes that a message is over.
func (a *Account) over(m Message, fate Fate, why string) {
	a.counts.Open--
	if fate != Done {
		a.failures = append(a.failures, failure{m, fate, why})
	}
	if t := a.findTask(m.ID); m.Number == 0 && t != nil && t.box == nil { // It is of this account.
		a.tasks[m.ID], t.fate = overAs[fate], fate
		*a.counts.countOf(fate)++
		a.finishWaiting(t, fate)
	}
}

// forgetTask forgets a task that is over, where it is a message or an object.
func (a *Account) forgetTask(o *open) {
	id := o.task.ID
	if list := a.posts[o.task.For]; o.task.For != "" {
		if i := slices.Index(list, o); i == 0 {
			a.posts[o.task.For] = list[1:]
		} else if i > 0 {
			a.posts[o.task.For] = slices.Delete(list, i, i+1)
		}
		if len(a.posts[o.task.For]) == 0 {
			delete(a.posts, o.task.For)
		}
		if to := a.objects[o.task.For]; to != nil { // It was cancelled.
			to.box.inbox = slices.DeleteFunc(to.box.inbox, func(m Message) bool { return m.ID == id && m.Number == 0 })
		}
		for _, to := range a.groups[o.task.For] {
			to.box.inbox = slices.DeleteFunc(to.box.inbox, func(m Message) bool { return m.ID == id && m.Number == 0 })
		}
	}
	if o.box == nil {
		return
	}
	delete(a.objects, id)
	a.counts.Objects--
	g := GroupOf(o.task.Object.Group)
	if a.groups[g] = slices.DeleteFunc(a.groups[g], func(m *open) bool { return m == o }); len(a.groups[g]) == 0 {
		delete(a.groups, g)
	}
	maps.DeleteFunc(a.received, func(k mailKey, _ uint64) bool { return k.object == id })
}

// rouseTask lets an object run that has messages and nobody has, or any other task that waits.
func (s *Store) rouseTask(o *open) {
	l := &o.lease
	if o.box == nil {
		s.waiting.pushTask(o)
		return
	}
	free := o.isFree()
	if free && s.away[l.at] {
		l.at = ""
	}
	mayWait := !free || !s.away[s.self] // Else it is sent away.
	switch {
	case o.fate != Kept || o.needs > 0 || l.holder != "" || l.place >= 0 || len(o.box.inbox) == 0 || slices.Contains(s.staying, o):
	case mayWait && (l.at == "" || l.at == s.self) && len(o.task.Object.At) == 0:
		s.queueObject(o)
	case !slices.Contains(s.pushes, o):
		s.pushes = append(s.pushes, o)
	}
}

// queueObject has an object wait behind the others, so that each has its turn.
func (s *Store) queueObject(o *open) {
	s.puts++
	if o.lease.put = s.puts; s.away[s.self] {
		s.staying = append(s.staying, o)
		return
	}
	s.waiting.pushTask(o)
}

// mayBe reports whether an object may be at a holder, as far as it is bound to members.
func (o *Object) mayBe(holder string) bool {
	name, _, _ := strings.Cut(holder, "#")
	return len(o.At) == 0 || slices.Contains(o.At, name)
}

// lookedAt is how many objects in front of the queue are looked at for an object that may move to a member.
const lookedAt = 64

// firstFor is the task that is next for a holder that has some objects; nil: none.
func (s *Store) firstFor(holder string, has []string, stays func(id string) bool, can code) *open {
	if o := s.waiting.nextOf(can); o == nil || o.box == nil && can != nil {
		return o
	}
	var passed []*open
	var found *open
	most := 0.0
	for s.waiting.len() > 0 && len(passed) < lookedAt {
		o := s.waiting.firstTask()
		bound := !can.hasFunction(o.task.Func) || o.box != nil && !s.leaves && !o.task.Object.mayBe(holder)
		if !bound && (o.box == nil || holder == s.self || s.leaves || o.lease.at == "") {
			if found == nil {
				found = o
			}
			break
		}
		if near := o.task.Object.Near; !bound && !o.box.pinned && local.MayMove(near, has) && (stays == nil || !stays(o.task.ID)) {
			if pull := local.Pull(near, o.task.Object.Pull, has); found == nil || pull > most {
				found, most = o, pull
			}
			if len(has) == 0 || len(near) == 0 {
				break // The others are as good.
			}
		}
		s.waiting.removeTask(o)
		o.lease.place = -1
		passed = append(passed, o)
	}
	for _, o := range passed {
		s.waiting.pushTask(o)
	}
	return found
}

// inboxOf are the messages of the next lease of an object. After a run that has failed it is one, so that one
// alone is to blame.
func (s *Store) inboxOf(o *open) []Message {
	n, bytes, l := 0, o.task.countBytes()+MaxName+64, &o.lease
	if bytes > MaxBytes { // The state travels in pieces, and as many messages with it as with a small one.
		bytes = 0
	}
	for n < min(len(o.box.inbox), s.batch, MaxServed) {
		if bytes += o.box.inbox[n].countBytes(); n > 0 && (bytes > MaxBytes || l.failed+l.losses > 0) {
			break
		}
		n++
	}
	return slices.Clone(o.box.inbox[:n])
}

// fenceObject gives an object a new sequence if it was handed out before as it is: whoever has that lease still, what he
// records is stale, and what he does elsewhere has an older sequence.
func (s *Store) fenceObject(o *open) {
	if o.lease.handed {
		s.account.hasNext(s.account.seq + 1)
		o.last = s.account.seq
		s.writeEntry(&entry{kind: entryFence, seq: o.last, record: Record{ID: o.task.ID}})
	}
	o.lease.handed = true
}

// giveUp ends a task that has failed as often as it may. An object loses the message that it cannot serve
// instead, but for its first one: without a state it cannot continue.
func (s *Store) giveUp(o *open, fate Fate, why string) {
	if o.box == nil || len(o.box.inbox) == 0 || o.box.inbox[0].makesState(&o.task) {
		s.endTask(o, fate, why)
		return
	}
	at := o.lease.at
	if _, err := s.Record(&Record{ID: o.task.ID, On: o.last, Rest: o.task.Body, Served: 1, Error: why, Pinned: o.box.pinned}, nil); err != nil {
		panic("workcore: " + err.Error()) // It was recorded like that before.
	}
	o.lease.at, o.lease.losses, o.lease.failed = at, 0, 0
	s.rouseTask(o)
}

// vacateHolder notes that a holder is gone, so that objects are not there any more.
func (s *Store) vacateHolder(holder string) {
	for _, o := range s.account.objects {
		if o.lease.at == holder {
			o.lease.at = ""
		}
	}
	for _, o := range s.takePushes() {
		s.rouseTask(o)
	}
}

func (s *Store) takePushes() []*open {
	list := s.pushes
	s.pushes = nil
	slices.SortFunc(list, byPut)
	return list
}

func byPut(a, b *open) int { return cmp.Compare(a.lease.put, b.lease.put) }

// Receive takes messages of another account. Taken is the number of the last one; gone: the object has ended
// in this phase; here is false if it is not in this account.
func (s *Store) Receive(p *Post) (taken uint64, gone, here bool) {
	a := s.account
	if a.target(p.For) == nil {
		o := a.tasks[p.For]
		return 0, true, o != nil && o.fate != Kept
	}
	key := mailKey{p.For, p.Account}
	if n := len(p.Messages); n > 0 && p.Messages[n-1].Number > a.received[key] {
		a.Receive(a.seq+1, p)
		s.writeEntry(&entry{kind: entryMail, seq: a.seq, post: *p})
		s.admitAdded(nil)
	}
	return a.received[key], false, true
}

// listPosters are those who have messages for objects elsewhere, in order.
func (s *Store) listPosters() []string { return slices.Sorted(maps.Keys(s.account.posts)) }

// postOf is the next post for an object or a group, without its account.
func (s *Store) postOf(to string) *Post {
	p, bytes := &Post{For: to}, 512
	for _, o := range s.account.posts[to] {
		m := Message{o.task.ID, o.task.Func, o.task.Body, o.mail}
		if bytes += m.countBytes(); len(p.Messages) > 0 && bytes > MaxBytes || len(p.Messages) == MaxServed {
			break
		}
		p.Messages = append(p.Messages, m)
	}
	return p
}

// recordPosted records the messages taken elsewhere, or all that is for an object which is gone.
func (s *Store) recordPosted(p *Posted, why string) {
	for _, o := range slices.Clone(s.account.posts[p.For]) {
		r := Record{ID: o.task.ID, On: o.last, Fate: Done}
		if p.Gone {
			r.Fate, r.Error = Failed, why
		} else if o.mail > p.Number {
			break
		}
		if _, err := s.Record(&r, nil); err != nil {
			panic("workcore: " + err.Error()) // It has no bytes of others.
		}
	}
}

// forgetSender forgets the messages taken of an account that is gone for good.
func (s *Store) forgetSender(account string) {
	maps.DeleteFunc(s.account.received, func(k mailKey, _ uint64) bool { return k.account == account })
}

// moveObject has an object be at another holder from its next message on. It does not while it runs, nor if it is
// pinned or bound to members.
func (s *Store) moveObject(id, holder string) error {
	o := s.account.objects[id]
	switch {
	case o == nil:
		return fmt.Errorf("object %q: it was not created here, or has ended: the member moves it that has created it", id)
	case o.box.pinned || len(o.task.Object.At) > 0:
		return fmt.Errorf("object %q: it is pinned, or bound to members %q: it does not move", id, o.task.Object.At)
	}
	if o.lease.holder != "" {
		o.lease.moves = holder
		return nil
	}
	s.giveTask(o, "", false)
	o.lease.at = holder
	s.rouseTask(o)
	return nil
}

// noteObjects writes all objects behind the end of a phase, since the log before it is cut off.
func (s *Store) noteObjects() {
	for _, id := range slices.Sorted(maps.Keys(s.account.objects)) {
		o := s.account.objects[id]
		s.writeEntry(&entry{kind: entryObject, seq: o.last, task: o.task, key: o.lease.key, record: Record{Pinned: o.box.pinned}})
	}
	for key, n := range s.account.received {
		s.writeEntry(&entry{kind: entryTaken, seq: s.account.seq, post: Post{For: key.object, Account: key.account, Messages: []Message{{ID: "-", Number: n}}}})
	}
}

// replayObject takes an entry about an object that was written before.
func (s *Store) replayObject(e *entry) {
	a := s.account
	o := a.objects[cmp.Or(e.record.ID, e.task.ID)]
	switch e.kind {
	case entryMail:
		a.Receive(e.seq, &e.post)
		s.admitAdded(nil)
	case entryFence:
		if a.hasNext(e.seq); o != nil {
			o.last = e.seq
		}
	case entryTaken:
		for _, m := range e.post.Messages {
			a.received[mailKey{e.post.For, e.post.Account}] = m.Number
		}
	case entryObject:
		if o == nil { // The log was cut before it.
			o = &open{task: e.task, last: e.seq, box: &box{pinned: e.record.Pinned}, lease: leased{key: e.key, place: -1}}
			a.tasks[e.task.ID], a.objects[e.task.ID] = o, o
			if g := e.task.Object.Group; g != "" {
				a.groups[GroupOf(g)] = append(a.groups[GroupOf(g)], o)
			}
			a.counts.Objects++
		}
	default:
	}
}
