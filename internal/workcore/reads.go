package workcore

import (
	"fmt"
	"slices"
	"strings"
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
		a.settle(dataKey(name), Done)
	}
	s.admit(nil)
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
func (q *queue) firstReady(ready func([]string) bool) (best *open) {
	q.each(func(o *open) {
		if (best == nil || o.before(best)) && (len(o.task.Reads) == 0 || ready(o.task.Reads)) {
			best = o
		}
	})
	return best
}

// each calls f with tasks that wait, some of them if there are many.
func (q *queue) each(f func(*open)) {
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

// readyHere is the first task of the own account whose data are here.
func (m *Member) readyHere() *open {
	return m.accounts.own.waiting.firstReady(m.opts.Ready)
}

// reads reports whether tasks of the own account read data.
func (m *Member) reads() bool { return m.opts.Ready != nil && m.accounts.own.account.reads }

// Reads reports whether tasks that are or were here in this phase read data.
func (m *Member) Reads() bool { return m.reads() || m.leased }

// readyLease is the place of the first lease of another account whose data are here; -1: there is none.
func (m *Member) readyLease() int {
	return slices.IndexFunc(m.waiting, func(l Parted) bool {
		return len(l.Lease.Task.Reads) == 0 || m.opts.Ready == nil || m.opts.Ready(l.Lease.Task.Reads)
	})
}

// Waiting appends what tasks read that wait here, the next one first, some of them if there are many.
func (m *Member) Waiting(list [][]string) [][]string {
	add := func(t *Task) {
		if n := len(list); len(t.Reads) > 0 && (n == 0 || !slices.Equal(list[n-1], t.Reads)) {
			list = append(list, t.Reads)
		}
	}
	for i := range m.waiting {
		add(&m.waiting[i].Lease.Task)
	}
	if m.reads() {
		m.accounts.own.waiting.each(func(o *open) { add(&o.task) })
	}
	return list
}

// Unwritten is how many names of data tasks of the own account wait for.
func (m *Member) Unwritten() int { return len(m.accounts.own.account.unwritten()) }
