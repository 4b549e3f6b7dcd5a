package workcore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/balance/local"
)

// maxLook is how many tasks that wait are looked at for one whose data are here.
const maxLook = 256

// dataKey is what the tasks that read data wait for. No task has such an ID.
func dataKey(name string) string { return fullMark + fullMark + name }

func (t *Task) checkReads() error {
	switch {
	case len(t.Reads) == 0:
		return nil
	case len(t.Reads) > MaxReads:
		return fmt.Errorf("task %q: it reads %d data, and at most %d are allowed: write them as fewer, larger ones", t.ID, len(t.Reads), MaxReads)
	case t.Object != nil || t.For != "":
		return fmt.Errorf("task %q: an object or a message reads data: have its function put a task that reads them", t.ID)
	}
	for i, name := range t.Reads {
		if name == "" || len(name) > MaxID || i > 0 && name <= t.Reads[i-1] {
			return fmt.Errorf("task %q: it reads data %.40q: names have 1 to %d bytes, and are sorted without repetition", t.ID, name, MaxID)
		}
	}
	return nil
}

// blockReads has a new task wait for data that are not written.
func (a *Account) blockReads(o *open) {
	for _, name := range o.task.Reads {
		if a.reads = true; a.written[name] {
			continue
		}
		w := a.awaited[dataKey(name)]
		if w == nil {
			w = &awaited{}
			a.awaited[dataKey(name)] = w
			a.missing++
		}
		w.by = append(w.by, o)
		w.left++
		o.needs++
	}
}

// Write notes that data are written: tasks that wait for them may run.
func (s *Store) Write(name string) {
	a := s.account
	if a.written[name] {
		return
	}
	a.written[name] = true
	a.added, a.ready = a.added[:0], a.ready[:0]
	if a.awaited[dataKey(name)] != nil {
		a.missing--
		a.settleWaiters(dataKey(name), Done)
	}
	s.admitAdded(nil)
}

// unwritten are the names of data that tasks wait for, sorted.
func (a *Account) unwritten() (names []string) {
	if !a.reads {
		return nil
	}
	for key := range a.awaited {
		if name, is := strings.CutPrefix(key, dataKey("")); is {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// failUnwritten ends the tasks that wait for data.
func (s *Store) failUnwritten() {
	a := s.account
	for _, name := range a.unwritten() {
		for _, o := range a.awaited[dataKey(name)].by {
			a.doomed = append(a.doomed, doom{o, fmt.Sprintf("data %q: no member has written them, and all wait for the end of the phase: write them before that", name)})
		}
	}
	s.endDoomed()
}

// firstReady is the first task that waits and whose data are here, of those that are looked at; nil: there is none.
func (q *queue) firstReady(ready func([]string) bool, can code) (best *open) {
	q.eachWaiting(func(o *open) {
		if (best == nil || o.comesBefore(best)) && can.hasFunction(o.task.Func) && (len(o.task.Reads) == 0 || ready(o.task.Reads)) {
			best = o
		}
	})
	return best
}

// eachWaiting calls f with tasks that wait, some of them if there are many.
func (q *queue) eachWaiting(f func(*open)) {
	for _, o := range q.late[:min(len(q.late), maxLook)] {
		f(o)
	}
	seen := 0
	for i := q.head; i < len(q.line) && q.here > 0 && seen < maxLook; i++ {
		if o := q.line[i]; o != nil {
			f(o)
			seen++
		}
	}
}

// readyHere is the first task of an account here whose data are here, and that account; nil: there is none.
func (m *Member) readyHere() (account string, best *open) {
	m.accounts.eachStore(func(name string, s *Store) {
		if o := s.waiting.firstReady(m.opts.Ready, m.code); o != nil && (best == nil || o.lease.key < best.lease.key) {
			account, best = name, o
		}
	})
	return account, best
}

// readsData reports whether tasks of the accounts here read data.
func (m *Member) readsData() (reads bool) {
	if m.opts.Ready == nil || len(m.accounts.taken) == 0 {
		return m.opts.Ready != nil && m.accounts.own.account.reads
	}
	m.accounts.eachStore(func(_ string, s *Store) { reads = reads || s.account.reads })
	return reads
}

// Reads reports whether tasks that are or were here in this phase read data.
func (m *Member) Reads() bool { return m.readsData() || m.leased }

// readyLease is the place of the first lease of another account whose data are here; -1: there is none.
func (m *Member) readyLease() int {
	return slices.IndexFunc(m.waiting, func(l Parted) bool {
		return len(l.Lease.Task.Reads) == 0 || m.opts.Ready == nil || m.opts.Ready(l.Lease.Task.Reads)
	})
}

// Waiting appends what tasks read that wait here, the next one first, some of them if there are many.
func (m *Member) Waiting(list [][]string) [][]string {
	add := func(t *Task) {
		if n := len(list); len(t.Reads) > 0 && (n == 0 || !sameReads(list[n-1], t.Reads)) {
			list = append(list, t.Reads)
		}
	}
	for i := range m.waiting {
		add(&m.waiting[i].Lease.Task)
	}
	if m.readsData() {
		m.accounts.eachStore(func(_ string, s *Store) {
			s.waiting.eachWaiting(func(o *open) {
				if n := len(list); n > 0 && sharesReads(list[n-1], o.task.Reads) {
					return
				}
				if m.code.hasFunction(o.task.Func) {
					add(&o.task)
				}
			})
		})
	}
	return list
}

// sharesReads reports whether two lists of names are the same memory.
func sharesReads(a, b []string) bool { return len(a) > 0 && len(a) == len(b) && &a[0] == &b[0] }

// sameReads reports whether two lists have the same names.
func sameReads(a, b []string) bool { return sharesReads(a, b) || slices.Equal(a, b) }

// shareReads gives a task the list of the task before if both have the same names. So later comparisons are short.
func shareReads(t *Task, last *[]string) {
	if len(t.Reads) == 0 {
		return
	}
	if slices.Equal(t.Reads, *last) {
		t.Reads = *last
	}
	*last = t.Reads
}

// Unwritten is how many names of data tasks of the accounts here wait for.
func (m *Member) Unwritten() (n int) {
	m.accounts.eachStore(func(_ string, s *Store) { n += len(s.account.unwritten()) })
	return n
}

// candidates are tasks that wait here and read the same data.
type candidates struct {
	own     []*open
	others  []Parted
	missing int // data that the member which asks does not have
}

func (c *candidates) len() int { return len(c.own) + len(c.others) }

// cheapestTasks are the tasks of a share for a member that asks, of those that wait here and are looked at: of the class that costs
// it the fewest data a task, then of the next one, and so on. An own task that may have killed a member, and one for an object, are
// left out.
func (m *Member) cheapestTasks(to Peer, share local.Share) (own []*open, others []Parted) {
	n := share.Tasks
	if n <= 0 {
		return nil, nil
	}
	classes, order := map[string]*candidates{}, []*candidates(nil)
	can := m.codeOf(to)
	of := func(t *Task) *candidates {
		key := strings.Join(t.Reads, fullMark)
		c := classes[key]
		if c == nil {
			c = &candidates{missing: m.opts.Missing(to, t.Reads)}
			classes[key] = c
			if c.missing == 0 || !share.Near {
				order = append(order, c)
			}
		}
		return c
	}
	m.accounts.own.waiting.eachWaiting(func(o *open) {
		if o.box == nil && !o.lease.unsure && can.hasFunction(o.task.Func) {
			c := of(&o.task)
			c.own = append(c.own, o)
		}
	})
	for i := range m.waiting {
		if l := &m.waiting[i]; l.Lease.Task.Object == nil && can.hasFunction(l.Lease.Task.Func) {
			c := of(&l.Lease.Task)
			c.others = append(c.others, *l)
		}
	}
	own = []*open{}
	for left := n; left > 0 && len(order) > 0; {
		best := 0
		for i, c := range order {
			// The cost a task is missing / min(left, len).
			if c.missing*min(left, order[best].len()) < order[best].missing*min(left, c.len()) {
				best = i
			}
		}
		c := order[best]
		order = slices.Delete(order, best, best+1)
		k := min(left, len(c.own))
		own, left = append(own, c.own[:k]...), left-k
		k = min(left, len(c.others))
		others, left = append(others, c.others[:k]...), left-k
	}
	return own, others
}
