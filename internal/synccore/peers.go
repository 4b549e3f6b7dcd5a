package synccore

import (
	"cmp"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// peersAgain is after what time members are told again which roster is in force. One that lacks it
// says hello, which is answered with all of it.
const peersAgain = time.Second

// peers is the roster that members of a level with a section work are told.
type peers struct {
	is      roster
	version uint64 // of that; 0: there was none
	list    []wire.Peer
	told    uint64            // the version that all were told
	again   clocksync.Instant // when they are told of it again
	hold    clocksync.Instant // until then members that knew an earlier term may come back, and nobody counts as gone
}

// roster is what makes another version of the roster.
type roster struct {
	term, epoch, phase, hash uint64 // Epoch 0: none is told, only the section
}

// recalls notes a hello of a member that an earlier term has taken in, before the first epoch of
// this one: the others are given time to come back.
func (c *Core) recalls(h *wire.Hello) {
	if c.plan.Work != nil && c.epoch == 0 && c.peers.hold == clocksync.MinInstant && h.Leader == c.plan.Name && h.Term > 0 && h.Term < c.opt.Term {
		c.peers.hold = c.now.Add(c.plan.Silence.After)
	}
}

// renewPeers brings the roster up to date, and reports whether there is one to tell.
func (c *Core) renewPeers() bool {
	p := &c.peers
	if c.opt.Local || c.plan.Work == nil && p.version == 0 {
		return false
	}
	is := roster{term: c.opt.Term, phase: c.phase(), hash: c.plan.WorkHash}
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

// tellPeers tells all members a new roster, and from time to time which one is in force.
func (c *Core) tellPeers(out *Output) {
	p := &c.peers
	switch {
	case !c.renewPeers():
		return
	case p.told != p.version:
		c.peersTo("", true, out)
	case c.now >= p.again:
		c.peersTo("", false, out)
	default:
		return
	}
	p.told, p.again = p.version, c.now.Add(peersAgain)
}

// peersTo tells one member, or all, the whole roster, or which one is in force.
func (c *Core) peersTo(member string, whole bool, out *Output) {
	p := &c.peers
	m := wire.Peers{
		Synchronizer: c.plan.Name, Term: p.is.term, Version: p.version, Member: member,
		Epoch: p.is.epoch, Phase: p.is.phase, SectionHash: p.is.hash, Total: uint64(len(p.list)),
	}
	if whole {
		m.Section, m.Peers = c.plan.WorkText, p.list
	}
	out.Peers = append(out.Peers, wire.Addressed[wire.Peers]{To: member, Msg: m})
}

// phase is the one that the members are in.
func (c *Core) phase() uint64 {
	if c.plan.Work == nil {
		return 1
	}
	return uint64(max(c.memory[c.plan.Ended].Int(), 0)) + 1
}

// recallPhase learns from the members which phases are over, after a start with nothing in memory: one
// that is in a phase was told that those before it are.
func (c *Core) recallPhase() {
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
