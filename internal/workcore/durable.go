package workcore

import (
	"fmt"
	"maps"
	"slices"
)

// durable holds back what a member tells others and its program until the logs have what it rests on. So nobody ever
// hears of a record, a put or the end of a phase that a crash could undo. Functions do not wait: a crash ends them too.
type durable struct {
	last    uint64   // ticket that was given
	pending []ticket // that the logs do not have yet, by their numbers
	held    []held   // outputs, in the order of their steps
}

type ticket struct {
	number  uint64
	account string
}

// held is the output of a step that rests on all tickets up to one.
type held struct {
	until uint64
	out   Output
}

// written is the ticket up to which the logs have everything.
func (d *durable) written() uint64 {
	if len(d.pending) > 0 {
		return d.pending[0].number - 1
	}
	return d.last
}

func (d *durable) countUnwritten() int {
	if d == nil {
		return 0
	}
	return len(d.pending) + len(d.held)
}

// noteReached notes that the log of an account has all up to a ticket.
func (d *durable) noteReached(account string, number uint64) {
	d.pending = slices.DeleteFunc(d.pending, func(t ticket) bool { return t.account == account && t.number <= number })
}

// forget gives up the tickets of an account that another life has now. What rests on them alone is about tasks that
// are not this member's any more, and harms nobody: their new owner knows nothing of it. But a verdict or a lease names a
// record by its sequence, which another record may get; this member may have the account again by then.
func (d *durable) forget(account string) {
	d.pending = slices.DeleteFunc(d.pending, func(t ticket) bool { return t.account == account })
	of := func(full string) bool { name, _ := splitID(full); return name == account }
	for i := range d.held {
		out := &d.held[i].out
		out.Frames = slices.DeleteFunc(out.Frames, func(f Frame) bool {
			if f.Parcel != nil {
				f.Parcel.Leases = slices.DeleteFunc(f.Parcel.Leases, func(l Parted) bool { return l.Account == f.From && of(l.Lease.Task.ID) })
			}
			return f.Verdict != nil && of(f.Verdict.ID)
		})
	}
}

// Written is the ticket up to which the logs have everything. Without logs it is 0.
func (m *Member) Written() uint64 {
	if m.durable == nil {
		return 0
	}
	return m.durable.written()
}

// Ticket is the last ticket given.
func (m *Member) Ticket() uint64 {
	if m.durable == nil {
		return 0
	}
	return m.durable.last
}

// logEntries puts the new entries into the output, and holds back the rest of it if need be.
func (m *Member) logEntries(out *Output) {
	d := m.durable
	if d == nil {
		return
	}
	m.accounts.eachStore(func(name string, s *Store) {
		if entries := s.TakeLog(); len(entries) > 0 {
			if d.last++; name == "" {
				name = m.opts.Self.Name
			}
			d.pending = append(d.pending, ticket{d.last, name})
			out.Log = append(out.Log, Append{Account: name, Entries: entries, Ticket: d.last, Phase: m.phase, Open: s.account.counts.Open, Objects: s.account.counts.Objects, Ends: s.ended})
			s.ended = false
		}
	})
	if len(d.pending) == 0 && len(d.held) == 0 {
		return
	}
	now, later := out.Runs[:0], []Run(nil)
	for _, r := range out.Runs { // The log has to know of a run before the process can die of it, and of the fence of an object.
		if r.Task.Object != nil || m.accounts.isCareful() {
			later = append(later, r)
		} else {
			now = append(now, r)
		}
	}
	if out.Runs = now; len(out.Frames)+len(out.Results)+len(out.Lost)+len(later) == 0 {
		return
	}
	h := held{until: d.last, out: Output{Runs: later, Results: slices.Clone(out.Results), Lost: slices.Clone(out.Lost), Frames: make([]Frame, len(out.Frames))}}
	for i := range out.Frames {
		h.out.Frames[i] = out.Frames[i].Kept()
	}
	d.held = append(d.held, h)
	out.Frames, out.Results, out.Lost = out.Frames[:0], out.Results[:0], out.Lost[:0]
}

// Release fills out with the output of an earlier step, once the logs have all that it rests on, and reports
// whether there was one. Whoever drives a member with logs calls it after each step, until it returns false.
func (m *Member) Release(out *Output) bool {
	d := m.durable
	if d == nil || m.over || len(d.held) == 0 || d.held[0].until > d.written() {
		return false
	}
	*out = d.held[0].out
	d.held[0] = held{}
	d.held = d.held[1:]
	out.Over, out.Told, out.Wake = m.over, m.makeTold(), m.nextWake()
	return true
}

// takeAccount takes over the account of a member that is gone.
func (m *Member) takeAccount(in *Input) {
	if m.accounts.findAccount(in.ID) >= 0 || in.ID == m.opts.Self.Name || slices.ContainsFunc(m.peers, func(p peer) bool { return p.Name == in.ID }) {
		panic(fmt.Sprintf("workcore: the account of %q is taken over a second time, or from a member that is there", in.ID))
	}
	in.Account.leaves, in.Account.away = m.drains, m.leave.away
	for _, name := range slices.Sorted(maps.Keys(m.accounts.own.account.written)) {
		in.Account.Write(name)
	}
	m.accounts.adoptStore(in.ID, in.Account)
	if m.leave.away[m.holder] {
		in.Account.placeAgain(m.holder)
	}
}

// disownAccount forgets an account that was taken over.
func (m *Member) disownAccount(name string) {
	i := m.accounts.findAccount(name)
	if i < 0 {
		return
	}
	m.accounts.taken = slices.Delete(m.accounts.taken, i, i+1)
	m.forgetHeld(name)
	m.durable.forget(name)
}

// GiveUp has the logs say that this member runs nothing any more, so that nobody counts it as dead. What
// it returns is to be appended before the member goes; no step may follow.
func (m *Member) GiveUp() []Append {
	if m.durable == nil || m.over {
		return nil
	}
	m.over = true
	m.accounts.eachStore(func(_ string, s *Store) { s.GiveUp() })
	var out Output
	m.logEntries(&out)
	return out.Log
}
