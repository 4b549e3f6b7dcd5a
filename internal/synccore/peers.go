package synccore

import (
	"cmp"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// peersAgain is after what time members learn again which roster is current. A member that lacks
// it says hello, and the answer has all of it.
const peersAgain = time.Second

// peers is the roster that members of a level with a section work receive.
type peers struct {
	is      roster
	version uint64 // of that; 0: there was none
	list    []wire.Peer
	told    uint64            // the version that all have received
	again   clocksync.Instant // when it is repeated to them
	hold    clocksync.Instant // until then members that knew an earlier term may come back, and nobody counts as gone
}

// roster is what makes another version of the roster.
type roster struct {
	term, epoch, phase, hash uint64 // Epoch 0: no roster, only the section
}

// noteRecalled notes a hello of a member that an earlier term has taken in, before the first epoch of
// this one: the others are given time to come back.
func (p *peers) noteRecalled(c *Core, h *wire.Hello) {
	if c.plan.Work != nil && c.epoch == 0 && p.hold == clocksync.MinInstant && h.Leader == c.plan.Name && h.Term > 0 && h.Term < c.opt.Term {
		p.hold = c.now.Add(c.plan.Silence.After)
	}
}

// renewRoster brings the roster up to date, and reports whether there is one to tell.
func (p *peers) renewRoster(c *Core) bool {
	if c.opt.Local || c.plan.Work == nil && p.version == 0 {
		return false
	}
	is := roster{term: c.opt.Term, phase: phaseOf(c.plan, c.memory), hash: c.plan.WorkHash}
	if c.now >= p.hold {
		is.epoch = c.epoch
	}
	if is == p.is && p.version > 0 {
		return true
	}
	if is.epoch != p.is.epoch || is.term != p.is.term {
		p.list = nil // Outputs have the old one.
		if is.epoch > 0 {
			p.list = make([]wire.Peer, len(c.inEpoch))
		}
		for i := range p.list {
			p.list[i] = wire.Peer{Name: c.inEpoch[i].name, Life: c.inEpoch[i].life}
		}
	}
	p.is = is
	p.version++
	return true
}

// tellRoster tells all members a new roster, and from time to time which one is current.
func (p *peers) tellRoster(c *Core, out *Output) {
	switch {
	case !p.renewRoster(c):
		return
	case p.told != p.version:
		p.tellTo("", true, c, out)
	case c.now >= p.again:
		p.tellTo("", false, c, out)
	default:
		return
	}
	p.told, p.again = p.version, c.now.Add(peersAgain)
}

// tellTo tells one member, or all, the whole roster, or which one is current.
func (p *peers) tellTo(member string, whole bool, c *Core, out *Output) {
	m := wire.Peers{
		Synchronizer: c.plan.Name, Term: p.is.term, Version: p.version, Member: member,
		Epoch: p.is.epoch, Phase: p.is.phase, SectionHash: p.is.hash, Total: uint64(len(p.list)),
	}
	if whole {
		m.Section, m.Peers = c.plan.WorkText, p.list
	}
	out.Peers = append(out.Peers, wire.Addressed[wire.Peers]{To: member, Msg: m})
}

// phaseOf is the phase that the members are in.
func phaseOf(p *plan.Level, memory []scgs.Value) uint64 {
	if p.Work == nil {
		return 1
	}
	return uint64(max(memory[p.Ended].Int(), 0)) + 1
}

// recallPhase learns from the members which phases are over, after a start with nothing in memory: a
// member in a phase has learned that the phases before it are over.
func recallPhase(c *Core) {
	p := c.plan.Newest
	if p == nil || !c.scope.Affects(p) {
		return
	}
	newest, reason := p.EvalValue(c.scope)
	if reason == "" && newest.Int()-1 > c.memory[c.plan.Ended].Int() {
		c.setMemory(c.plan.Ended, scgs.IntValue(newest.Int()-1))
		c.noteChange()
	}
}

// lifeOf is the life of a process that says hello in the name that old had: what it says, unless
// that is over.
func lifeOf(h *wire.Hello, old *member) uint64 {
	if life := cmp.Or(h.Life, h.Incarnation); life >= old.life {
		return life
	}
	return h.Incarnation
}
