package workcore

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// The errors of Put that a program can tell apart.
var (
	ErrDuplicateID = errors.New("another task has that ID")
	ErrFull        = errors.New("as many tasks are open as may be")
)

// Limits bound what a store does for one task. Zero means the default.
type Limits struct {
	Retry  int // runs of a task that returns an error; default 3
	Losses int // holders that may die while they run a task; default 3
	Open   int // open tasks, beyond which Put is refused; 0: no limit
	Batch  int // messages that an object serves before it is saved; default 10
}

// Lease is a task in the hands of a holder. It moves with the task: whoever has it may record.
type Lease struct {
	Task Task    // as it is to be run now: its body is the rest
	On   uint64  // what its next record builds on
	Key  float64 // smaller keys run first
	Try  int     // how many runs since On have returned an error
	// Inbox are the messages that the object Task is to serve now, in their order.
	Inbox  []Message
	Pinned bool // the object does not move
}

// Result is what a counted record has found.
type Result struct {
	ID    string // of the task
	Func  string // of the task
	Seq   uint64 // of the record; rises from result to result
	Fate  Fate   // what the record leaves of the task
	Value []byte // since the record before of the same task
	Error string // of a task that is Failed or Poisoned
}

// Store keeps the log of the tasks that one process puts, in memory, and knows who holds them. It is
// not safe for concurrent use. Records decide; leases only save work: a task that is taken back from
// a holder that lives is run twice and counted once.
type Store struct {
	account *Account
	limits  Limits
	waiting queue              // tasks that may run and that nobody holds
	held    map[string][]*open // by holder, in no order
	results []Result
	puts    uint64
	given   uint64          // how often a task came to a holder that it was not with before
	self    string          // the holder that is not counted
	redone  uint64          // tasks that a holder was running, or may have begun, when it was lost
	logs    bool            // what changes the account goes to log
	log     []byte          // entries, each behind its length
	scratch []byte          // of note
	code    code            // of this member
	ended   bool            // log has the end of a phase
	owned   bool            // the last entry of an owner says that it has the account
	careful bool            // an owner has died in this phase: a task may have killed it
	batch   int             // messages of a lease of an object
	leaves  bool            // this member drains: every object may move
	pushes  []*open         // objects with messages whose place is another member
	away    map[string]bool // holders that take no work; shared by the stores of a member
	staying []*open         // objects with messages that stay here although this member takes no work
}

// leased is the holder of an open task.
type leased struct {
	key     float64
	put     uint64 // in the order of the puts
	holder  string // empty: it waits
	runs    bool   // the holder has begun it
	began   bool   // the log says that the owner's process runs it
	before  uint64 // what its last record that counted builds on
	failed  int    // runs that returned an error
	losses  int    // holders that died while they ran it
	unsure  bool   // a holder died that was just given it, among others: it is given alone
	alone   bool   // it was, and the holder has told nothing since
	demand  uint64 // of the holder, which the parcel with the task answers; 0: the holder has told that it has it
	place   int    // in a part of the queue, or among what its holder holds; -1: in neither
	strange bool   // this member cannot run its function
	late    bool   // its place is in the heap of the queue
	at      string // of an object: the holder where it is; empty: nowhere
	handed  bool   // of an object: a holder has had a lease of it as it is now
	moves   string // of an object: the holder where it is to be once its record counts; empty: where it ran
}

// NewStore returns an empty store.
func NewStore(limits Limits) *Store {
	limits.Retry, limits.Losses = cmp.Or(limits.Retry, 3), cmp.Or(limits.Losses, 3)
	return &Store{account: NewAccount(), limits: limits, held: map[string][]*open{}, batch: cmp.Or(limits.Batch, 10)}
}

// Account is the account of the store, to be read.
func (s *Store) Account() *Account { return s.account }

// Put puts a task. Tasks with smaller keys are handed out first, and of equal keys those that were
// put first. The same task once more changes nothing.
func (s *Store) Put(t *Task, key float64) error {
	if err := t.Check(); err != nil {
		return err
	}
	if s.limits.Open > 0 && s.account.counts.Open >= s.limits.Open && s.account.findTask(t.ID) == nil {
		return fmt.Errorf("task %q: %w: %d", t.ID, ErrFull, s.limits.Open)
	}
	if t.Part {
		return fmt.Errorf("task %q: it is a part of another task, and only the record of that one puts it", t.ID)
	}
	if circle := s.account.findCircle(t); circle != "" && s.account.tasks[t.ID] == nil {
		return fmt.Errorf("%s: none of them could begin: leave one of these out of After", circle)
	}
	switch s.account.Put(s.account.Seq()+1, s.account.Phase(), t) {
	case Counted:
		if s.logs {
			s.writeEntry(&entry{kind: entryPut, seq: s.account.Seq(), task: *t, key: key})
		}
		s.admitAdded([]float64{key})
		s.endDoomed()
	case Taken:
		return fmt.Errorf("task %q: %w: give each task of a phase its own", t.ID, ErrDuplicateID)
	default:
	}
	return nil
}

// admitAdded takes what the last entry has added, by the keys of its tasks, and lets wait what may run.
func (s *Store) admitAdded(keys []float64) {
	for i, o := range s.account.added {
		if o != nil {
			s.puts++
			o.lease = leased{key: keyOf(keys, i), put: s.puts, place: -1, strange: !s.code.hasFunction(o.task.Func)}
		}
	}
	for _, o := range s.account.ready {
		s.rouseTask(o)
	}
}

// endDoomed records as Failed what waits for a task that has failed, and what waits for that, and so on.
func (s *Store) endDoomed() {
	a := s.account
	for i := 0; i < len(a.doomed); i++ { // A record may doom more.
		if d := &a.doomed[i]; d.task.fate == Kept {
			s.writeRecord(s.account.Seq()+1, &Record{ID: d.task.task.ID, On: d.task.last, Fate: Failed, Error: cutText(d.why)}, nil)
		}
	}
	clear(a.doomed)
	a.doomed = a.doomed[:0]
}

// Waiting is how many tasks nobody holds that may run.
func (s *Store) Waiting() int { return s.waiting.len() }

// isUnsure reports whether the task that Hand gives next is to be given alone.
func (s *Store) isUnsure(can code) bool {
	o := s.waiting.nextOf(can)
	return o != nil && o.lease.unsure
}

// Next returns the key of the task that Hand gives next; false if none waits.
func (s *Store) Next() (key float64, ok bool) { return s.nextKey(nil) }

func (s *Store) nextKey(can code) (key float64, ok bool) {
	o := s.waiting.nextOf(can)
	if o == nil {
		return 0, false
	}
	return o.lease.key, true
}

// Hand leases the task that waits with the smallest key to a holder, in answer to its demand of a number;
// 0: no parcel can be lost on the way. It returns false if none waits.
func (s *Store) Hand(holder string, demand uint64) (l Lease, ok bool) {
	return s.handTo(holder, demand, nil, nil, nil)
}

// handTo is Hand for a holder that has objects. Objects for which stays is true are not given to another holder.
func (s *Store) handTo(holder string, demand uint64, has []string, stays func(id string) bool, can code) (l Lease, ok bool) {
	o := s.firstFor(holder, has, stays, can)
	if o == nil {
		return Lease{}, false
	}
	return s.handOut(o, holder, demand), true
}

func (s *Store) handOut(o *open, holder string, demand uint64) (l Lease) {
	if o.box != nil {
		s.fenceObject(o)
	}
	s.giveTask(o, holder, false)
	o.lease.demand, o.lease.alone = demand, o.lease.unsure && demand > 0
	if s.logs && holder == s.self && !o.lease.began {
		o.lease.began = true
		s.writeEntry(&entry{kind: entryBegan, seq: s.account.Seq(), record: Record{ID: o.task.ID}})
	}
	return s.leaseOf(o)
}

func (s *Store) leaseOf(o *open) Lease {
	l := Lease{Task: o.task, On: o.last, Key: o.lease.key, Try: o.lease.failed}
	l.Task.After, l.Task.Part = nil, false // They concern the account alone.
	if o.box != nil {
		if l.Inbox, l.Pinned = s.inboxOf(o), o.box.pinned; l.Inbox[0].makesState(&o.task) {
			l.Task.Body = nil
		}
	}
	return l
}

// Record takes a record from whoever has the lease. Keys are the children's keys, in their order.
// If it counts, its result is in Results, and its holder continues with the rest.
func (s *Store) Record(r *Record, keys []float64) (Outcome, error) {
	if err := r.Check(); err != nil {
		return Closed, err
	}
	outcome := s.writeRecord(s.account.Seq()+1, r, keys)
	s.endDoomed()
	return outcome, nil
}

// writeRecord takes one record as the entry of a sequence.
func (s *Store) writeRecord(seq uint64, r *Record, keys []float64) Outcome {
	o := s.account.findTask(r.ID)
	outcome := s.account.takeRecord(seq, s.account.Phase(), o, r)
	if outcome != Counted {
		return outcome
	}
	if s.logs {
		s.writeEntry(&entry{kind: entryStep, seq: seq, record: *r, keys: keys})
	}
	switch {
	case o.box != nil:
		for _, f := range s.account.failures { // Of messages that it could not serve, and its own.
			s.results = append(s.results, Result{f.message.ID, f.message.Func, s.account.Seq(), f.fate, nil, f.why})
		}
		s.giveTask(o, "", false)
		o.lease.handed = false
	case o.task.For == "" || r.Fate > Done:
		s.results = append(s.results, Result{r.ID, o.task.Func, s.account.Seq(), r.Fate, r.Result, r.Error})
	}
	if l := &o.lease; r.Fate != Kept {
		s.giveTask(o, "", false)
	} else {
		l.failed, l.losses, l.unsure, l.before = 0, 0, false, r.On // The rest is another task.
	}
	s.admitAdded(keys)
	return outcome
}

func keyOf(keys []float64, i int) float64 {
	if i < len(keys) {
		return keys[i]
	}
	return 0
}

// giveTask takes a task out of the queue, or from its holder, and gives it to another one, or to nobody.
func (s *Store) giveTask(o *open, holder string, runs bool) {
	l := &o.lease
	switch {
	case l.holder == "" && l.place >= 0:
		s.waiting.removeTask(o)
	case l.holder != "" && l.holder != holder:
		list := s.held[l.holder]
		last := list[len(list)-1]
		list[l.place], last.lease.place = last, l.place
		list[len(list)-1] = nil
		s.held[l.holder] = list[:len(list)-1]
	}
	if holder != "" && holder != l.holder {
		if holder != s.self {
			s.given++
		}
		l.place = len(s.held[holder])
		s.held[holder] = append(s.held[holder], o)
	}
	if l.holder, l.runs, l.demand, l.alone = holder, runs, 0, false; holder == "" {
		l.place = -1
	}
}

// Fail notes that a run of a lease has returned an error, and reports whether it counts: the first of
// those with the same Try does. The task waits again, until it has failed as often as it may: then it
// is recorded as Failed.
func (s *Store) Fail(id string, on uint64, try int, why string) bool {
	o := s.currentTask(id, on)
	if o == nil || o.lease.failed != try {
		return false
	}
	if o.lease.failed++; o.lease.failed < s.limits.Retry {
		s.requeueTask(o)
		return true
	}
	s.giveUp(o, Failed, cutText(why))
	return true
}

func cutText(why string) string { return why[:min(len(why), MaxError)] }

// Cancel records an open task as Failed, and reports whether it was open.
func (s *Store) Cancel(id, why string) bool {
	o := s.account.findTask(id)
	if o != nil {
		s.endTask(o, Failed, cutText(why))
	}
	return o != nil
}

// Return lets a lease wait again that its holder has sent back. An object keeps its place.
func (s *Store) Return(id string, on uint64) {
	if o := s.currentTask(id, on); o != nil && o.lease.holder != "" {
		s.requeueTask(o)
	}
}

// Lose takes back all that a holder has, since it is gone. A task that it was running is recorded as
// Poisoned if as many holders have died of it as may. It returns how many tasks were taken back.
func (s *Store) Lose(holder string) int {
	n := 0
	for _, o := range s.of(holder) {
		l := &o.lease
		n++
		if l.runs || l.demand > 0 { // What it had just been given it may have begun.
			s.redone++
		}
		l.unsure = l.unsure || l.demand > 0
		if l.runs || l.alone {
			l.losses++
			s.writeEntry(&entry{kind: entryDied, seq: s.account.Seq(), record: Record{ID: o.task.ID}})
		}
		if !s.poisonTask(o, holder) {
			s.requeueTask(o)
		}
	}
	delete(s.held, holder)
	s.vacateHolder(holder)
	return n
}

// poisonTask records a task as Poisoned if as many holders have died of it as may.
func (s *Store) poisonTask(o *open, last string) bool {
	if o.lease.losses < s.limits.Losses {
		return false
	}
	s.giveUp(o, Poisoned, fmt.Sprintf("%d members died while they ran it, %s the last", o.lease.losses, last))
	return true
}

// Held is a lease as a holder tells of it.
type Held struct {
	ID     string // of the task
	On     uint64 // of the lease
	Runs   bool   // it has begun
	Passed bool   // it is on its way to another member: if that has it, this is no news
}

// Hold notes what a holder has, by its own word. What it has from others is its own from now on. What
// it was to have, and is not in the list, has been lost on the way: it waits again. A parcel that
// answers a demand above settled may still arrive. Void are the places in the list whose records would
// not count any more.
func (s *Store) Hold(holder string, list []Held, settled uint64) (void []int) {
	if len(list) == 0 && len(s.held[holder]) == 0 {
		return nil
	}
	has := make(map[string]bool, len(list))
	for i, h := range list {
		o := s.currentTask(h.ID, h.On)
		if o == nil {
			if o = s.account.findTask(h.ID); o != nil && o.lease.holder == holder && o.lease.before == h.On {
				has[h.ID] = true // It does not know yet that its record counts.
				continue
			}
			void = append(void, i)
			continue
		}
		has[h.ID] = true
		if o.lease.demand == pushed {
			o.lease.demand = 0
		}
		if !h.Passed {
			s.giveTask(o, holder, h.Runs)
		}
	}
	for _, o := range s.of(holder) {
		unheard := o.lease.demand == pushed && s.away[holder] && o.isFree() // It is refused.
		if !has[o.task.ID] && (o.lease.demand <= settled || unheard) {
			o.lease.at = ""
			s.requeueTask(o)
		}
	}
	return void
}

// claimTask notes that an open task, whose record has just counted, runs on at a holder.
func (s *Store) claimTask(id, holder string) {
	switch o := s.account.findTask(id); {
	case o == nil:
	case o.box != nil: // It is saved, and its place is where it ran.
		if o.lease.holder == "" && o.lease.at != holder {
			s.giveTask(o, "", false)
		}
		if o.lease.at = holder; o.lease.moves != "" && !o.box.pinned {
			o.lease.at = o.lease.moves
		}
		o.lease.moves = ""
		s.rouseTask(o)
	case o.lease.holder == holder:
		o.lease.runs = true // What it told before the parcel arrived may still be under way.
	default:
		s.giveTask(o, holder, true)
	}
}

// Results appends the results since the last call, in the order of the log.
func (s *Store) Results(list []Result) []Result {
	list = append(list, s.results...)
	clear(s.results)
	s.results = s.results[:0]
	return list
}

// End ends the phase if no task is open, and reports whether it did.
func (s *Store) End() bool {
	if s.account.End(s.account.Seq()+1, s.account.Phase()) != Counted {
		return false
	}
	s.writeEntry(&entry{kind: entryEnd, seq: s.account.Seq()})
	s.noteObjects()
	s.ended, s.careful = true, false
	return true
}

// currentTask is a task if a record that builds on a sequence would count.
func (s *Store) currentTask(id string, on uint64) *open {
	if o := s.account.findTask(id); o != nil && o.last == on && o.needs == 0 {
		return o
	}
	return nil
}

// of are the tasks that a holder has, in the order of the puts.
func (s *Store) of(holder string) []*open {
	list := slices.Clone(s.held[holder])
	slices.SortFunc(list, byPut)
	return list
}

// requeueTask lets a task wait again.
func (s *Store) requeueTask(o *open) {
	o.lease.began = false
	s.giveTask(o, "", false)
	s.rouseTask(o)
}

// endTask records that a task is over without a result.
func (s *Store) endTask(o *open, fate Fate, why string) {
	if _, err := s.Record(&Record{ID: o.task.ID, On: o.last, Fate: fate, Error: why}, nil); err != nil {
		panic("workcore: " + err.Error()) // It has no bytes of others but why.
	}
}
