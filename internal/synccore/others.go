package synccore

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/outbox"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
)

// otherGroup is the record of a group whose members report to another synchronizer: only the
// values that a signal to them has to carry. A signal takes effect in the entry of a region
// that was known when it was decided on, or not at all (PEGASUS paper, section 2.1), so the
// entries have to be known beforehand.
type otherGroup struct {
	name   string
	max    int
	sorted []*otherMember // by name
}

// otherMember is the newest incarnation of a member.
type otherMember struct {
	name        string
	incarnation uint64
	by          string // the multiplexer that speaks for it; empty: it does itself
	causes      bool   // it takes signals with a cause
	over        bool   // it takes signals that are over
	heard       clocksync.Instant
	regions     []wire.Region
}

// listenToGroups makes room for the groups of the plan. A group that no signal goes to any
// more stays known: some may be under way.
func (c *Core) listenToGroups() {
	for _, g := range c.plan.OtherGroups {
		if c.others[g.Name] == nil {
			c.others[g.Name] = &otherGroup{name: g.Name}
		}
		c.others[g.Name].max = g.Max
	}
}

// listening reports whether members of other groups are known, which may have to be
// forgotten.
func (c *Core) listening() bool {
	for _, g := range c.others {
		if len(g.sorted) > 0 {
			return true
		}
	}
	return false
}

func (g *otherGroup) findMember(name string) (int, bool) {
	return slices.BinarySearchFunc(g.sorted, name, func(m *otherMember, name string) int { return cmp.Compare(m.name, name) })
}

// hasNews reports whether an input from another group says anything new. Its lost reports do
// not matter here, nor does a batch that repeats the record of its member if that was heard a
// moment ago.
func (c *Core) hasNews(now clocksync.Instant, in *Input) bool {
	g := c.others[in.Group]
	if g == nil || in.Kind == InGone || in.Kind == InShared && in.Shared.Version == 0 {
		return false
	}
	if in.Kind != InBatch || in.Batch.Leaving || in.Batch.Member != in.From {
		return true
	}
	i, known := g.findMember(in.From)
	if !known && len(g.sorted) >= g.max {
		told, ok := c.strangers[tooMany(in.Group)]
		return !ok || now.Sub(told) >= resendWait
	}
	if !known || in.Batch.Incarnation != g.sorted[i].incarnation || now.Sub(g.sorted[i].heard) >= plan.Heartbeat/2 {
		return true
	}
	return !in.Batch.Again && !slices.Equal(in.Batch.Regions, g.sorted[i].regions)
}

// tooMany is the key among the strangers for the members of a group that are too many;
// it is no name of a member.
func tooMany(group string) string { return group + "/" }

// hearOther takes an input from a member of another group.
func (c *Core) hearOther(in *Input, out *Output) {
	g := c.others[in.Group]
	if g == nil {
		return
	}
	if in.Kind == InShared {
		c.rosterOfOther(g, in, out)
		return
	}
	i, known := g.findMember(in.From)
	if in.By != "" && (known && g.sorted[i].by != in.By || !known && in.Kind != InBatch) {
		return // The next roster tells whose it is.
	}
	var member string
	var incarnation uint64
	switch in.Kind {
	case InHello:
		member, incarnation = in.Hello.Member, in.Hello.Incarnation
	case InBatch:
		member, incarnation = in.Batch.Member, in.Batch.Incarnation
	case InAck:
		if a := in.Ack; !known || a.Member != in.From || a.Incarnation != g.sorted[i].incarnation {
			out.addRefusal(monitor.RejectSender, in.Group+"/"+in.From, "acknowledgement of an unknown incarnation")
			return
		}
		g.sorted[i].heard = c.now
		c.takeAnswers(in.Group, in.From, g.sorted[i].causes, in.Ack, out)
		return
	default:
		panic(fmt.Sprintf("synccore: input of kind %d from another group", in.Kind))
	}
	switch b := in.Batch; {
	case member != in.From:
		out.addRefusal(monitor.RejectSender, in.Group+"/"+in.From, fmt.Sprintf("a frame of %q on the subject of %q", member, in.From))
	case in.Kind == InHello:
		if m := c.meet(g, in, in.From, incarnation, out); m != nil {
			m.by, m.causes, m.over = in.Hello.Multiplexer, in.Hello.Causes, in.Hello.Over
		}
	case !b.Leaving:
		if m := c.meet(g, in, in.From, incarnation, out); m != nil {
			if !known {
				m.by = in.By // No other message names the members that are on no roster.
			}
			if !b.Again {
				m.regions = append(m.regions[:0], b.Regions...)
				c.reports.regions.Note(g.name, b.Regions)
			}
		}
	case known && g.sorted[i].incarnation == incarnation:
		g.sorted = slices.Delete(g.sorted, i, i+1)
		c.outbox.Look()
	}
}

// meet notes that an incarnation of a member is there, and returns nil if it is not
// the newest, or one member too many.
func (c *Core) meet(g *otherGroup, in *Input, name string, incarnation uint64, out *Output) *otherMember {
	i, known := g.findMember(name)
	if !known {
		if len(g.sorted) >= g.max {
			if !c.toldLately(tooMany(in.Group)) {
				out.addRefusal(monitor.RejectFull, in.Group+"/"+name, fmt.Sprintf("it is one too many: %s listens to at most %d members of group %q: raise max beside group", c.plan.Name, g.max, in.Group))
			}
			return nil
		}
		g.sorted = slices.Insert(g.sorted, i, &otherMember{name: name, incarnation: incarnation})
	}
	m := g.sorted[i]
	switch {
	case incarnation < m.incarnation:
		return nil
	case incarnation > m.incarnation:
		m.incarnation, m.regions = incarnation, m.regions[:0]
		c.outbox.Look() // For signals to the old one.
	}
	m.heard = c.now
	return m
}

// rosterOfOther goes by the roster of a multiplexer of another group, whose hellos may not
// have been heard. A member that another one spoke for a moment ago stays with that one.
func (c *Core) rosterOfOther(g *otherGroup, in *Input, out *Output) {
	for i := range in.Shared.Listed {
		l := &in.Shared.Listed[i]
		k, known := g.findMember(l.Member)
		if known && g.sorted[k].by != in.From && g.sorted[k].incarnation == l.Incarnation && c.now.Sub(g.sorted[k].heard) <= otherSilent {
			if from := in.Group + "/" + in.From; !c.toldLately(from) {
				out.addRefusal(monitor.RejectSender, from, fmt.Sprintf("%q is on its roster, and %s", l.Member, spokenBy(g.sorted[k].by)))
			}
			continue
		}
		if m := c.meet(g, in, l.Member, l.Incarnation, out); m != nil {
			m.by, m.regions = in.From, append(m.regions[:0], l.Regions...)
			c.reports.regions.Note(g.name, l.Regions)
		}
	}
}

func spokenBy(multiplexer string) string {
	if multiplexer == "" {
		return "speaks for itself"
	}
	return fmt.Sprintf("%q speaks for it", multiplexer)
}

// forgetOthers forgets those that were not heard for long.
func (c *Core) forgetOthers() {
	for _, g := range c.others {
		known := len(g.sorted)
		g.sorted = slices.DeleteFunc(g.sorted, func(m *otherMember) bool { return c.heardUpTo().Sub(m.heard) > otherSilent })
		if len(g.sorted) < known {
			c.outbox.Look()
		}
	}
}

// targetChanged reports whether the target of a signal is no longer what it was.
func (g *otherGroup) targetChanged(l *outbox.Letter) bool {
	i, known := g.findMember(l.Signal.Target)
	return !known || g.sorted[i].incarnation != l.Incarnation
}

// emitOther sends one signal of a decision to every member of another group that is
// known, in the entry of the region that it told last.
func (c *Core) emitOther(o *plan.Send, signal func(target string, entry uint64) control.Signal, on *occasion, out *Output) {
	g := c.others[o.Group]
	if len(g.sorted) == 0 {
		out.addRefusal(monitor.RejectTarget, c.plan.Name, fmt.Sprintf("signal %s: no member of group %q is known", o.Name, o.Group))
		return
	}
	for _, m := range g.sorted {
		if on.since > 0 && !slices.Contains(on.owed, address{o.Group, m.name}) {
			continue
		}
		entry := plan.EntryAt(m.regions, o.Region, newestState)
		s := signal(m.name, entry)
		if m.causes {
			s.Cause = on.cause
		}
		s.Over = on.over && m.over
		c.postSignal(outbox.Letter{Owner: outbox.Rule, Group: o.Group, Incarnation: m.incarnation, Recalls: m.causes, Signal: &s}, out)
	}
}
