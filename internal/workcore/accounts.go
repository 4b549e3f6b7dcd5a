package workcore

import (
	"slices"
	"strings"
)

// accounts are the accounts that a member keeps: its own, and the accounts of members that are gone, which it has
// taken over. A task of the latter has a full ID outside of its account: the name of the account is in front.
type accounts struct {
	own   *Store
	taken []taken // by name
}

// taken is the account of another member.
type taken struct {
	name  string
	store *Store
}

// fullMark begins a full ID. No ID that a program gives begins with it.
const fullMark = "\x00"

// fullID is the ID of a task of an account that was taken over.
func fullID(account, id string) string { return fullMark + account + fullMark + id }

// splitID is the account, or "", and the ID in it.
func splitID(full string) (account, id string) {
	if rest, ok := strings.CutPrefix(full, fullMark); ok {
		if account, id, ok = strings.Cut(rest, fullMark); ok {
			return account, id
		}
	}
	return "", full
}

// storeOf is the store of a task, and its ID there; nil: it is not here.
func (a *accounts) storeOf(full string) (*Store, string) {
	account, id := splitID(full)
	if account == "" {
		return a.own, full
	}
	if i := a.findAccount(account); i >= 0 {
		return a.taken[i].store, id
	}
	return nil, id
}

func (a *accounts) findAccount(name string) int {
	return slices.IndexFunc(a.taken, func(t taken) bool { return t.name == name })
}

// eachStore calls f with each store and the name of its account; "" is the own one.
func (a *accounts) eachStore(f func(name string, s *Store)) {
	f("", a.own)
	for _, t := range a.taken {
		f(t.name, t.store)
	}
}

func (a *accounts) adoptStore(name string, s *Store) {
	a.taken = append(a.taken, taken{name, s})
	slices.SortFunc(a.taken, func(a, b taken) int { return strings.Compare(a.name, b.name) })
}

// isCareful reports whether an owner of any of the accounts has died in this phase.
func (a *accounts) isCareful() (careful bool) {
	a.eachStore(func(_ string, s *Store) { careful = careful || s.careful })
	return careful
}

// loseHolder takes back what a holder has of each account.
func (a *accounts) loseHolder(holder string) {
	a.eachStore(func(_ string, s *Store) { s.Lose(holder) })
}

// isCurrent reports whether a record of a task that builds on a sequence would count.
func (a *accounts) isCurrent(full string, on uint64) bool {
	s, id := a.storeOf(full)
	return s != nil && s.currentTask(id, on) != nil
}

// endPhase ends the phase of each account, if no task is open.
func (a *accounts) endPhase() bool {
	if a.countAll().Open > 0 {
		return false
	}
	a.eachStore(func(_ string, s *Store) { s.End() })
	return true
}

// takeRecord takes a record into its account. Seq is the record's sequence if it counts.
func (a *accounts) takeRecord(r *Record, keys []float64) (outcome Outcome, seq uint64, err error) {
	s, id := a.storeOf(r.ID)
	if s == nil {
		return Closed, 0, nil
	}
	if s != a.own {
		other := *r
		other.ID = id
		r = &other
	}
	outcome, err = s.Record(r, keys)
	return outcome, s.Account().Seq(), err
}

func (a *accounts) failTask(full string, on uint64, try int, why string) bool {
	s, id := a.storeOf(full)
	return s != nil && s.Fail(id, on, try, why)
}

func (a *accounts) claimTask(full, holder string) {
	if s, id := a.storeOf(full); s != nil {
		s.claimTask(id, holder)
	}
}

func (a *accounts) giveBack(full string, on uint64) {
	if s, id := a.storeOf(full); s != nil {
		s.Return(id, on)
	}
}

// giveBackAt lets a lease wait again, of an object at a holder; empty: it may go anywhere.
func (a *accounts) giveBackAt(full string, on uint64, at string) {
	s, id := a.storeOf(full)
	if s == nil {
		return
	}
	if o := s.currentTask(id, on); o != nil && o.lease.holder != "" {
		o.lease.at = at
		s.requeueTask(o)
	}
}

func (a *accounts) countWaiting() (n int) {
	if len(a.taken) == 0 {
		return a.own.Waiting()
	}
	a.eachStore(func(_ string, s *Store) { n += s.Waiting() })
	return n
}

// countStaying is how many objects with messages stay here although this member takes no work.
func (a *accounts) countStaying() (n int) {
	a.eachStore(func(_ string, s *Store) { n += len(s.staying) })
	return n
}

// nextKey is the key of the task that hand gives next to a member that can run some functions, and its account.
func (a *accounts) nextKey(can code) (key float64, name string, ok bool) {
	key, ok = a.own.nextKey(can)
	for _, t := range a.taken {
		if k, waits := t.store.nextKey(can); waits && (!ok || k < key) {
			key, name, ok = k, t.name, true
		}
	}
	return key, name, ok
}

// isUnsure reports whether the task that hand gives next is to be given alone.
func (a *accounts) isUnsure(can code) bool {
	_, name, _ := a.nextKey(can)
	return a.store(name).isUnsure(can)
}

// handTask leases the task with the smallest key; not an object that stays.
func (a *accounts) handTask(holder string, demand uint64, has []string, stays func(id string) bool, can code) (Lease, bool) {
	name := ""
	if len(a.taken) > 0 {
		_, name, _ = a.nextKey(can)
	}
	l, ok := a.store(name).handTo(holder, demand, has, stays, can)
	if ok && name != "" {
		l.Task.ID = fullID(name, l.Task.ID)
	}
	return l, ok
}

// store is the store of an account; "" is the own one.
func (a *accounts) store(name string) *Store {
	if name == "" {
		return a.own
	}
	return a.taken[a.findAccount(name)].store
}

// noteHeld notes what a holder has of each account.
func (a *accounts) noteHeld(holder string, list []Held, settled uint64) (void []int) {
	if len(a.taken) == 0 && !slices.ContainsFunc(list, func(h Held) bool { return strings.HasPrefix(h.ID, fullMark) }) {
		return a.own.Hold(holder, list, settled)
	}
	known := make([]bool, len(list))
	a.eachStore(func(name string, s *Store) {
		var part []Held
		var places []int
		for i, h := range list {
			if account, id := splitID(h.ID); account == name {
				h.ID, known[i] = id, true
				part, places = append(part, h), append(places, i)
			}
		}
		for _, k := range s.Hold(holder, part, settled) {
			void = append(void, places[k])
		}
	})
	for i := range list {
		if !known[i] { // Another member has that account.
			void = append(void, i)
		}
	}
	slices.Sort(void)
	return void
}

// appendResults appends the results of the own account. The results of the others are in their logs.
func (a *accounts) appendResults(list []Result) []Result {
	for _, t := range a.taken {
		t.store.results = nil
	}
	return a.own.Results(list)
}

// countAll are the figures of the own account, and the open tasks of all accounts.
func (a *accounts) countAll() Counts {
	c := a.own.account.Counts()
	for _, t := range a.taken {
		of := t.store.account.Counts()
		c.Open, c.Blocked, c.Missing, c.Objects = c.Open+of.Open, c.Blocked+of.Blocked, c.Missing+of.Missing, c.Objects+of.Objects
	}
	return c
}
