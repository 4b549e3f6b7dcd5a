package workcore

import (
	"fmt"
	"maps"
	"slices"
)

// Account is the fold of a log: which tasks are open, and the results. It is not safe for concurrent use.
// It keeps the tasks, records and their bytes that it is given, and they must not change.
type Account struct {
	phase  uint64
	seq    uint64           // of the last entry that was taken
	tasks  map[string]*open // of the phase, by ID; of those that are not open any more the fate alone: overAs
	counts Counts
	added  []*open // by the last entry, in its order; nil: that task was not added
	ready  []*open // tasks that may run since the last entry

	// Of tasks that run after others. A task without After and without parts has no share in it.
	awaited map[string]*awaited // by the ID that is waited for
	wholes  map[string]*whole   // by the ID of the task that was put, while a task of it is open
	blocked int                 // tasks that wait
	missing int                 // keys of awaited that no task has
	doomed  []doom              // tasks that wait for a failed task; the owner of the log ends them

	written   map[string]bool // names of data, see reads.go
	reads     bool            // a task of the phase reads data
	lastReads []string        // of the task that was put last

	// Of objects, see objects.go.
	objects  map[string]*open   // by ID
	groups   map[string][]*open // by [GroupOf]
	posts    map[string][]*open // messages to objects that are not here, by For
	received map[mailKey]uint64 // the number of the last message that was taken
	mailed   uint64             // the number of the last one of posts
	failures []failure          // of messages, by the last record of an object
}

// open is a task that is not done.
type open struct {
	task  Task   // as it was put; Body is the rest
	fate  Fate   // Kept: it is open
	last  uint64 // the sequence of its last record that counted; 0: none
	lease leased // of a Store
	needs int    // tasks that it waits for
	whole *whole // that it is of; nil: it has no parts and is none
	box   *box   // of an object; nil: it is none
	mail  uint64 // of a message to an object of another account: its number
}

// overAs stands for all tasks that are over, by their fate.
var overAs = [...]*open{Done: {fate: Done}, Failed: {fate: Failed}, Poisoned: {fate: Poisoned}}

// Counts are the figures of an account, over all phases but for Open, Blocked and Missing.
type Counts struct {
	Open     int    // tasks that are not done, with messages; an object is none
	Objects  int    // that have not ended
	Blocked  int    // of them, those that wait for other tasks
	Missing  int    // IDs that tasks wait for and that no task has
	Direct   uint64 // messages to objects of the same account
	Put      uint64 // tasks that counted, with children
	Records  uint64 // that counted
	Done     uint64 // tasks
	Failed   uint64 // tasks
	Poisoned uint64 // tasks
	Stale    uint64 // records that did not count: another one had come before
	Void     uint64 // puts, records and ends that did not count for another reason
}

// Outcome says whether an entry of the log counts.
type Outcome uint8

// The outcomes of an entry.
const (
	Counted   Outcome = iota // it counts
	Again                    // the task was put before, and nothing changes: it is the same, or has a record already
	Stale                    // another record came first
	Closed                   // its task is not open: it is done, was never put, or waits for others
	PhaseOver                // its phase is over, or has not begun
	Taken                    // another task has the ID
	NotEmpty                 // tasks are open, so the phase does not end here
	Old                      // an entry of that sequence was taken before
)

// String is the outcome for people.
func (o Outcome) String() string {
	names := []string{"counts", "was put before", "is stale", "its task is not open", "its phase is over", "its ID is taken", "tasks are open", "was taken before"}
	if int(o) < len(names) {
		return names[o]
	}
	return fmt.Sprintf("outcome %d", uint8(o))
}

// NewAccount returns the account of an empty log, in phase 1.
func NewAccount() *Account {
	return &Account{phase: 1, tasks: map[string]*open{}, awaited: map[string]*awaited{}, wholes: map[string]*whole{}, objects: map[string]*open{}, groups: map[string][]*open{}, posts: map[string][]*open{}, received: map[mailKey]uint64{}, written: map[string]bool{}}
}

// Phase is the phase that the account is in, from 1.
func (a *Account) Phase() uint64 { return a.phase }

// Seq is the sequence of the last entry that was taken.
func (a *Account) Seq() uint64 { return a.seq }

// Counts are the figures so far.
func (a *Account) Counts() Counts {
	c := a.counts
	c.Blocked, c.Missing = a.blocked, a.missing
	return c
}

// Put takes the put of a task in a phase. The sequence must be above the sequence of every entry before.
func (a *Account) Put(seq, phase uint64, t *Task) Outcome {
	if !a.hasNext(seq) {
		return Old
	}
	if phase != a.phase {
		a.counts.Void++
		return PhaseOver
	}
	a.added, a.ready = a.added[:0], a.ready[:0]
	return a.add(t, nil)
}

// add adds a task that is put by a record of another one, or by a put: of is nil then.
func (a *Account) add(t *Task, of *open) Outcome {
	a.added = append(a.added, nil)
	if o := a.tasks[t.ID]; o != nil {
		if o.fate != Kept || o.last > 0 || o.task.sameTask(t) {
			return Again // After a record the body is another one.
		}
		a.counts.Void++
		return Taken
	}
	o := &open{task: *t}
	shareReads(&o.task, &a.lastReads)
	a.tasks[t.ID], a.added[len(a.added)-1] = o, o
	if a.counts.Put++; t.Object != nil {
		a.addObject(o)
	} else {
		a.counts.Open++
	}
	if t.Part && of != nil {
		a.joinParent(of, o)
	}
	if len(t.After)+len(t.Reads) > 0 {
		a.blockTask(o)
	}
	if a.awaited[t.ID] != nil {
		a.missing--
	}
	if o.needs == 0 {
		a.beginTask(o)
	}
	return Counted
}

// Record takes a record in a phase. A task that waits for others has only a record of the fate Failed.
func (a *Account) Record(seq, phase uint64, r *Record) Outcome {
	return a.takeRecord(seq, phase, a.findTask(r.ID), r)
}

// takeRecord takes a record of the task o; nil: it is not open.
func (a *Account) takeRecord(seq, phase uint64, o *open, r *Record) Outcome {
	if !a.hasNext(seq) {
		return Old
	}
	if phase != a.phase {
		a.counts.Void++
		return PhaseOver
	}
	switch {
	case o == nil, o.needs > 0 && r.Fate != Failed:
		a.counts.Stale++
		return Closed
	case o.last != r.On:
		a.counts.Stale++
		return Stale
	}
	a.counts.Records++
	o.last, o.task.Body = seq, r.Rest
	a.added, a.ready = a.added[:0], a.ready[:0]
	if o.box != nil {
		a.serveMessages(o, r)
	}
	for i := range r.Children { // Before the task is over: its parts are not, and who waits for it waits for them.
		a.add(&r.Children[i], o)
	}
	if r.Fate != Kept {
		a.tasks[r.ID] = overAs[r.Fate]
		if o.fate = r.Fate; o.box == nil {
			a.counts.Open--
		}
		a.forgetTask(o)
		*a.counts.countOf(r.Fate)++
		a.finishWaiting(o, r.Fate)
	}
	return Counted
}

// countOf is the count of a fate that ends a task.
func (c *Counts) countOf(f Fate) *uint64 {
	switch f {
	case Failed:
		return &c.Failed
	case Poisoned:
		return &c.Poisoned
	default:
		return &c.Done
	}
}

// End takes the end of a phase. It counts if no task is open, and begins the next phase.
func (a *Account) End(seq, phase uint64) Outcome {
	switch {
	case !a.hasNext(seq):
		return Old
	case phase != a.phase:
		a.counts.Void++
		return PhaseOver
	case a.counts.Open > 0:
		a.counts.Void++
		return NotEmpty
	}
	a.phase++
	clear(a.tasks)
	clear(a.written)
	a.reads = false
	maps.Copy(a.tasks, a.objects)
	return Counted
}

func (a *Account) hasNext(seq uint64) bool {
	if seq <= a.seq {
		return false
	}
	a.seq = seq
	return true
}

// findTask returns a task that is open, or nil.
func (a *Account) findTask(id string) *open {
	if o := a.tasks[id]; o != nil && o.fate == Kept {
		return o
	}
	return nil
}

// Find returns a task as it is to be run now, and the sequence that its next record builds on; false
// if it is not open.
func (a *Account) Find(id string) (t Task, on uint64, isOpen bool) {
	o := a.findTask(id)
	if o == nil {
		return Task{}, 0, false
	}
	return o.task, o.last, true
}

// Open are the IDs of the open tasks, sorted.
func (a *Account) Open() (ids []string) {
	for id, o := range a.tasks {
		if o.fate == Kept {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
