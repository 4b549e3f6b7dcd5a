package workcore

import (
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/workreport"
)

// Mail counts the messages to objects that were sent here.
func (m *Member) Mail() workreport.Mail {
	return workreport.Mail{Local: m.accounts.own.account.counts.Direct, Directed: m.sent.Directed, Undirected: m.sent.Undirected}
}

// Report is how the space stands here at an instant. The caller knows Awaits, Stuck and Dropped.
func (m *Member) Report(now clocksync.Instant) *workreport.Report {
	t, c := m.makeTold(), m.Counts()
	r := &workreport.Report{
		Member: m.opts.Self.Name, Phase: t.Phase, Idle: t.Idle, Settled: t.Settled, Drains: m.drains, Slots: len(m.slots),
		Open: t.Open, Blocked: t.Blocked, Missing: t.Missing, Queued: t.Queued, Running: t.Running, Put: c.Put, Moved: t.Moved, Given: t.Given, Redone: t.Redone, Mail: m.Mail(), Holders: m.Holdings(),
	}
	if m.leave.withdrawn {
		r.Withdrawal = &workreport.Withdrawal{Seconds: now.Sub(m.leave.since).Seconds(), Alone: !m.leave.gives, Stay: t.Stay, Objects: m.listStaying(workreport.MaxStaying)}
	}
	m.reportWaiting(r)
	if m.durable != nil {
		r.Log = &workreport.LogReport{Unwritten: t.Unwritten, Accounts: []string{}}
		for _, a := range m.accounts.taken[:min(len(m.accounts.taken), workreport.MaxHolders)] {
			r.Log.Accounts = append(r.Log.Accounts, a.name)
		}
	}
	if len(r.Holders) > workreport.MaxHolders {
		slices.SortStableFunc(r.Holders, func(a, b workreport.Holding) int { return b.Tasks - a.Tasks })
		r.Holders = r.Holders[:workreport.MaxHolders]
	}
	return r
}

// reportWaiting adds the objects with messages that are bound to members none of which is here.
func (m *Member) reportWaiting(r *workreport.Report) {
	r.Waiting = []workreport.Bound{}
	isHere := func(name string) bool {
		return name == m.opts.Self.Name || slices.ContainsFunc(m.peers, func(p peer) bool { return p.Name == name })
	}
	m.accounts.eachStore(func(_ string, s *Store) {
		for id, o := range s.account.objects {
			if at := o.task.Object.At; o.fate == Kept && len(o.box.inbox) > 0 && len(at) > 0 && !slices.ContainsFunc(at, isHere) {
				r.Waiting = append(r.Waiting, workreport.Bound{Object: id, Members: at[:min(len(at), workreport.MaxStaying)]})
			}
		}
	})
	slices.SortFunc(r.Waiting, func(a, b workreport.Bound) int { return strings.Compare(a.Object, b.Object) })
	r.WaitingMore = max(0, len(r.Waiting)-workreport.MaxStaying)
	r.Waiting = r.Waiting[:len(r.Waiting)-r.WaitingMore]
}
