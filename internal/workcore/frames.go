package workcore

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Limits of a frame. One with several tasks or messages fits into 64 KiB; one task, message or record may have more, and
// travels in pieces.
const (
	MaxBytes = 56 << 10 // of the texts and bytes of a parcel or a post with several tasks or messages
	MaxWhole = 40 << 20 // of an encoded frame
	MaxHeld  = 384      // leases of other accounts that a member has
	MaxName  = 128      // bytes of the name of a member
)

// maxStep is how many bytes the texts and bytes of a record have, so that its frame is no larger than MaxWhole.
const maxStep = MaxWhole - 1<<20

// Peer is one life of a member. A member that comes back is another peer.
type Peer struct {
	Name string // in the roster
	Life uint64 // its incarnation
}

// String is the name and the life.
func (p Peer) String() string { return p.Name + "#" + strconv.FormatUint(p.Life, 10) }

// Frame is what one member sends to another: one of the parts. Each frame may be lost, doubled, late
// and out of order. A frame of another phase, or of a life that the receiver does not know, is ignored.
type Frame struct {
	From, To Peer   // two lives
	Phase    uint64 // that the sender is in

	Demand  *Demand    // asks for work
	Parcel  *Parcel    // brings it, or refuses
	Step    *Step      // a record
	Verdict *Verdict   // its answer
	Holds   *Holds     // what the sender has
	Post    *Post      // messages to an object
	Posted  *Posted    // its answer
	Loop    *LoopFrame // of an elastic loop

	MoveOrder  *MoveOrder  // asks to have an object be elsewhere
	MoveAnswer *MoveAnswer // its answer
}

// Kept is the frame for one who keeps it beyond the next step: [Member] fills the same Verdict and Holds again.
func (f Frame) Kept() Frame {
	if f.Verdict != nil {
		v := *f.Verdict
		f.Verdict = &v
	}
	if f.Holds != nil {
		h := *f.Holds
		f.Holds = &h
	}
	return f
}

// Demand asks a member for work, or offers it some.
type Demand struct {
	Number uint64   // rises from demand to demand of a member, from 1
	Tasks  int      // the most that are wanted; 0: as the receiver decides
	Has    []string // IDs of objects that are at the sender, some of them if there are many
	Offer  bool     // the sender has Tasks to give: the receiver asks for them, or refuses with an empty parcel
}

// Parcel answers a demand. It need not come from the member that was asked: a part of a bag comes
// from the account of the bag.
type Parcel struct {
	Demand uint64   // the number of the demand; 0: it brings an object to where it is, unasked, or back
	Push   uint64   // of unasked parcels: rises from parcel to parcel of an account
	Leases []Parted // none: it refuses
}

// Parted is a lease and its account.
type Parted struct {
	Account Peer  // of the member that has put the task
	Lease   Lease // of the task
}

// Step is a record on its way to the account. It is sent again until a verdict arrives. A step of the
// fate Failed is one run that has failed.
type Step struct {
	Record Record    // what it says
	Keys   []float64 // of the children
	Try    int       // of the lease
	For    Peer      // the member that gets the children, if Demand is not 0
	Demand uint64    // of For
}

// Verdict says whether a record counts.
type Verdict struct {
	ID      string  // of the task
	On      uint64  // what the record builds on
	Failed  bool    // the record is one failed run: the lease may be run again
	Try     int     // of the lease that failed
	Outcome Outcome // of the record
	Seq     uint64  // of a record that counts
}

// Holds is what a member tells each other member at a steady pace.
type Holds struct {
	Number  uint64  // rises from frame to frame of a member
	Settled uint64  // its demands up to this number are answered or given up
	Load    float64 // how much it has to give: tasks that wait, and 1 - 1/items for a bag that runs
	Open    int     // tasks of its account that are not done
	Objects int     // of its account
	Away    bool    // it takes no work: it is withdrawn, or drains
	List    []Held  // leases of the account of the receiver
	// Funcs are the functions that the sender can run, by number, sorted; nil: it does not tell them this time.
	Funcs []uint64
}

// Key names what a frame brings. A frame that is sent again has the same key, if it is of a task or a message.
func (f *Frame) Key() string {
	switch {
	case f.Step != nil:
		return fmt.Sprint("step ", f.Phase, " ", f.Step.Record.ID, " ", f.Step.Record.On, " ", f.Step.Try)
	case f.Parcel != nil && f.Parcel.Demand > 0:
		return fmt.Sprint("parcel ", f.Parcel.Demand)
	case f.Parcel != nil && len(f.Parcel.Leases) > 0:
		return fmt.Sprint("object ", f.Phase, " ", f.Parcel.Leases[0].Lease.Task.ID)
	case f.Post != nil && len(f.Post.Messages) > 0:
		return fmt.Sprint("post ", f.Phase, " ", f.Post.For, " ", f.Post.Account, " ", f.Post.Messages[0].Number)
	case f.MoveOrder != nil:
		return fmt.Sprint("order ", f.MoveOrder.ID)
	case f.MoveAnswer != nil:
		return fmt.Sprint("answer ", f.MoveAnswer.ID)
	case f.Loop != nil:
		return fmt.Sprint("loop ", f.Phase, " ", f.Loop.Name, " ", f.Loop.Home, " ", f.Loop.Version)
	default:
		return strconv.Itoa(int(f.partOf()))
	}
}

// Answers is the number of the demand that a frame answers; 0: none.
func (f *Frame) Answers() uint64 {
	if f.Parcel != nil {
		return f.Parcel.Demand
	}
	return 0
}

// Check returns an error if the frame may not be sent, and is not to be read.
func (f *Frame) Check() error {
	for _, p := range []Peer{f.From, f.To} {
		if p.Name == "" || len(p.Name) > MaxName {
			return fmt.Errorf("frame between %.40q and %.40q: the name of a member has 1 to %d bytes", f.From.Name, f.To.Name, MaxName)
		}
	}
	parts := 0
	var err error
	if f.Demand != nil {
		parts++
		if f.Demand.Number == 0 || f.Demand.Tasks < 0 || len(f.Demand.Has) > MaxHas {
			err = fmt.Errorf("a demand has the number %d and asks for %d tasks", f.Demand.Number, f.Demand.Tasks)
		}
	}
	if f.Parcel != nil {
		parts++
		err = f.Parcel.check()
	}
	if f.Step != nil {
		parts++
		err = f.Step.checkStep()
	}
	if f.Verdict != nil {
		parts++
		if v := f.Verdict; v.ID == "" || len(v.ID) > MaxID || v.Outcome > Old || v.Try < 0 {
			err = fmt.Errorf("the verdict of %.40q %v", v.ID, v.Outcome)
		}
	}
	if f.Holds != nil {
		parts++
		err = f.Holds.check()
	}
	if f.Post != nil {
		parts++
		err = f.Post.checkPost()
	}
	if f.Posted != nil {
		parts++
		if len(f.Posted.For) > MaxID || len(f.Posted.Account) > MaxName+24 {
			err = fmt.Errorf("the answer of the object %.40q to %.40q", f.Posted.For, f.Posted.Account)
		}
	}
	if f.Loop != nil {
		parts++
		err = f.Loop.Check()
	}
	if f.MoveOrder != nil {
		parts++
		err = f.MoveOrder.checkOrder()
	}
	if f.MoveAnswer != nil {
		parts++
		err = f.MoveAnswer.checkAnswer()
	}
	if err == nil && parts != 1 {
		err = fmt.Errorf("the frame has %d parts and must have 1", parts)
	}
	if err != nil {
		return fmt.Errorf("frame from %v to %v: %w", f.From, f.To, err)
	}
	return nil
}

func (p *Parcel) check() error {
	if len(p.Leases) > MaxHeld {
		return fmt.Errorf("the parcel has %d tasks, and at most %d are allowed", len(p.Leases), MaxHeld)
	}
	n := 0
	for i := range p.Leases {
		l := &p.Leases[i]
		if err := l.Lease.Task.Check(); err != nil {
			return err
		}
		if t := &l.Lease.Task; t.Part || len(t.After) > 0 {
			return fmt.Errorf("the lease of task %q says what it runs after: a task that waits stays in its account", t.ID)
		} else if t.For != "" || (t.Object == nil) != (len(l.Lease.Inbox) == 0) {
			return fmt.Errorf("the lease of task %q has %d messages: an object is leased with messages, and a message never", t.ID, len(l.Lease.Inbox))
		}
		if l.Account.Name == "" || len(l.Account.Name) > MaxName || math.IsNaN(l.Lease.Key) || l.Lease.Try < 0 {
			return fmt.Errorf("the lease of task %q has the account %.40q, the key %v and %d failed runs", l.Lease.Task.ID, l.Account.Name, l.Lease.Key, l.Lease.Try)
		}
		n += l.countBytes()
	}
	if n > MaxBytes && len(p.Leases) > 1 || n > maxStep {
		return fmt.Errorf("the parcel has %d bytes, and at most %d are allowed", n, MaxBytes)
	}
	return nil
}

// countBytes is an upper bound for what a lease takes in a frame.
func (l *Parted) countBytes() int {
	n := l.Lease.Task.countBytes() + len(l.Account.Name) + 40
	for i := range l.Lease.Inbox {
		n += l.Lease.Inbox[i].countBytes()
	}
	return n
}

func (t *Task) countBytes() int {
	n := len(t.ID) + len(t.Func) + len(t.Body) + len(t.For) + 24
	if o := t.Object; o != nil {
		n += len(o.Group) + 8 + 8*len(o.Pull)
		for _, list := range [][]string{o.Near, o.At} {
			for _, id := range list {
				n += len(id) + 2
			}
		}
	}
	for _, name := range t.Reads {
		n += len(name) + 2
	}
	for _, id := range t.After {
		n += len(id) + 2
	}
	return n
}

func (s *Step) checkStep() error {
	r := &s.Record
	if err := r.Check(); err != nil {
		return err
	}
	if r.Fate == Poisoned {
		return fmt.Errorf("record of task %q: only its account finds that it is %v", r.ID, r.Fate)
	}
	n := len(r.ID) + len(r.Result) + len(r.Rest) + len(r.Error) + len(s.For.Name) + 8*len(s.Keys)
	for i := range r.Children {
		n += r.Children[i].countBytes()
	}
	for _, k := range s.Keys {
		if math.IsNaN(k) {
			return fmt.Errorf("record of task %q: the key of a child is %v: it must be a number", r.ID, k)
		}
	}
	if n > maxStep || len(s.Keys) > len(r.Children) || s.Try < 0 {
		return fmt.Errorf("record of task %q: it has %d bytes, %d keys for %d children, and at most %d bytes are allowed: record more often", r.ID, n, len(s.Keys), len(r.Children), maxStep)
	}
	return nil
}

func (h *Holds) check() error {
	if len(h.List) > MaxHeld {
		return fmt.Errorf("the list has %d leases: at most %d are allowed", len(h.List), MaxHeld)
	}
	if len(h.Funcs) > MaxFuncs || !slices.IsSorted(h.Funcs) {
		return fmt.Errorf("the list has %d functions: at most %d are allowed, and their numbers rise", len(h.Funcs), MaxFuncs)
	}
	for _, l := range h.List {
		if l.ID == "" || len(l.ID) > MaxID {
			return fmt.Errorf("the list has a task %.40q: an ID has 1 to %d bytes", l.ID, MaxID)
		}
	}
	return nil
}
