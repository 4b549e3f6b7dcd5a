package workcore

import (
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/gopegasus/pegasus/balance/local"
	"github.com/gopegasus/pegasus/clocksync"
)

// MaxFuncs is how many functions one member declares at most.
const MaxFuncs = 512

// tellPace is in how many Holds to a member one has the functions again.
const tellPace = 8

// code is the functions that a member can run: their numbers, sorted. nil: all functions.
type code []uint64

// funcNumber is what members know a function by in [Holds].
func funcNumber(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return h.Sum64()
}

func codeOf(names []string) code {
	if names == nil {
		return nil
	}
	c := make(code, 0, len(names))
	for _, name := range names {
		c = append(c, funcNumber(name))
	}
	slices.Sort(c)
	return slices.Compact(c)
}

// hasFunction reports whether a function is one of them.
func (c code) hasFunction(name string) bool {
	if c == nil {
		return true
	}
	_, is := slices.BinarySearch(c, funcNumber(name))
	return is
}

// codeOf is the functions that a peer can run; none, before it has told. Without functions of its own this member knows of
// none, and each member counts as able.
func (m *Member) codeOf(to Peer) code {
	if m.code == nil || to == m.opts.Self {
		return m.code
	}
	if i := m.findPeer(to); i >= 0 && m.peers[i].code != nil {
		return m.peers[i].code
	}
	return code{}
}

// tellsCode reports whether the next Holds to a peer have the functions of this member: the first ones do, and later ones
// now and then, since some may be lost.
func (m *Member) tellsCode(i int) bool {
	if m.code == nil {
		return false
	}
	p := &m.peers[i]
	p.introduced++
	return p.introduced <= 2 || (m.number+uint64(i))%tellPace == 0 //nolint:gosec // A place is not negative.
}

// setCode has the store know which functions its member can run.
func (s *Store) setCode(c code) {
	s.code = c
	for _, o := range s.account.tasks {
		o.lease.strange = !c.hasFunction(o.task.Func)
		if o.lease.strange && o.lease.holder == "" && o.lease.place >= 0 {
			s.waiting.strange++
		}
	}
}

// nextOf is the task that waits with the smallest key of those that a member can run; nil: there is none.
func (q *queue) nextOf(c code) (best *open) {
	if q.len() == 0 {
		return nil
	}
	if o := q.firstTask(); c.hasFunction(o.task.Func) {
		return o
	}
	for i := q.head; i < len(q.line) && q.here > 0; i++ {
		if o := q.line[i]; o != nil && c.hasFunction(o.task.Func) {
			best = o
			break
		}
	}
	for _, o := range q.late {
		if c.hasFunction(o.task.Func) && (best == nil || o.comesBefore(best)) {
			best = o
		}
	}
	return best
}

// countStrange is how many of the tasks that wait and are looked at another member can run, and the store's member cannot.
func (s *Store) countStrange(to code) (n int) {
	if s.waiting.strange == 0 {
		return 0
	}
	s.waiting.eachWaiting(func(o *open) {
		if o.lease.strange && to.hasFunction(o.task.Func) {
			n++
		}
	})
	return n
}

// offerStrange offers tasks that this member cannot run to neighbours that can: a strategy offers only what it would not run here.
func (m *Member) offerStrange(now clocksync.Instant) {
	if m.accounts.own.waiting.strange == 0 || now < m.offers {
		return
	}
	m.offers = now.Add(m.opts.Pace)
	for _, i := range m.near {
		if p := &m.peers[i]; p.place >= 0 && !p.away && p.demand == 0 {
			if n := m.accounts.own.countStrange(m.codeOf(p.Peer)); n > 0 {
				m.demands = append(m.demands, local.Demand{Member: p.Name, Tasks: n, Offer: true})
			}
		}
	}
}

// Undeclared are the functions that keep the phase from its end, sorted: only tasks of them are open in the own account, and
// neither this member nor one of those that it gives work to has declared them. It is empty before all of these have told.
func (m *Member) Undeclared() (names []string) {
	a, q := m.accounts.own.account, &m.accounts.own.waiting
	if q.strange == 0 || q.strange < a.counts.Open-a.blocked {
		return nil
	}
	for _, i := range m.near {
		if p := &m.peers[i]; p.place >= 0 && p.code == nil {
			return nil
		}
	}
	for _, o := range a.tasks {
		if o.fate != Kept || o.needs > 0 || slices.Contains(names, o.task.Func) {
			continue
		}
		if slices.ContainsFunc(m.near, func(i int) bool { return m.peers[i].place >= 0 && m.peers[i].code.hasFunction(o.task.Func) }) {
			return nil
		}
		names = append(names, o.task.Func)
	}
	slices.Sort(names)
	return names
}

// failUndeclared ends the tasks of some functions, which no member has declared.
func (s *Store) failUndeclared(names []string) {
	s.waiting.all(func(o *open) {
		if slices.Contains(names, o.task.Func) {
			s.account.doomed = append(s.account.doomed, doom{o, fmt.Sprintf("function %q: no member that may get the task has declared it, and the program waits for the end of the phase: declare it in Open of a program of the space, and let that member join before", o.task.Func)})
		}
	})
	slices.SortFunc(s.account.doomed, func(a, b doom) int { return byPut(a.task, b.task) })
	s.endDoomed()
}

// all calls f with each task that waits.
func (q *queue) all(f func(*open)) {
	for _, o := range slices.Concat(q.line, q.late) {
		if o != nil {
			f(o)
		}
	}
}
