package synccore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/outbox"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
)

// maxEntered is how many names of regions are kept of a group: names come from members, and can be
// invented. If there are more, nothing is said of a region whose name is not kept, because members may
// have been in it.
const maxEntered = 64

// maxListedRegions is how many names a text lists.
const maxListedRegions = 8

// entered has the names of the regions that members of a group have reported, from the first report on.
// A region that is left before its member reports again is not among them.
type entered struct {
	names []string // in order
	more  bool     // there were more than maxEntered
}

// KeptEntered are the regions that members of a group have reported.
type KeptEntered struct {
	Group string   `json:"group,omitempty"` // empty: the synchronizer's own
	Names []string `json:"names"`           // in order
	More  bool     `json:"more,omitempty"`  // there were more
}

// note notes the regions that a member is in.
func (e *entered) note(regions []wire.Region) {
	for i := range regions {
		e.add(regions[i].Name)
	}
}

func (e *entered) add(name string) {
	i, known := slices.BinarySearch(e.names, name)
	switch {
	case known:
	case len(e.names) == maxEntered:
		e.more = true
	default:
		e.names = slices.Insert(e.names, i, name)
	}
}

// lacks says that no member has reported a region, and which ones members have reported; "" if a
// member has, or if that is not known.
func (e *entered) lacks(region, group string) string {
	if _, known := slices.BinarySearch(e.names, region); known || e.more {
		return ""
	}
	of := ""
	if group != "" {
		of = fmt.Sprintf(" of group %q", group)
	}
	return fmt.Sprintf("no member%s has ever reported region %q; members have reported: %s", of, region, listed(e.names))
}

// listed is the first of some names, and how many more there are.
func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	text := strings.Join(names[:min(len(names), maxListedRegions)], ", ")
	if more := len(names) - maxListedRegions; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// enteredOf are the regions that members of a group have reported.
func (c *Core) enteredOf(group string) *entered {
	if group == "" {
		return &c.entered
	}
	return &c.others[group].entered
}

// hint says why a signal has no effect in any member, if that is so.
func (c *Core) hint(s *outbox.Settled) string {
	if s.Fate != control.NoSuchEntry || s.Owner == outbox.Program || c.awaitsWork(s.Signal.Region) {
		return ""
	}
	return c.enteredOf(s.Group).lacks(s.Signal.Region, s.Group)
}

// awaitsWork reports whether a region is that of the section work, which only a member that waits for
// the end of a phase is in.
func (c *Core) awaitsWork(region string) bool {
	return c.plan.Work != nil && region == config.WorkName
}

// refusal is the newest refusal of a signal of a predicate, by the member that it was for.
type refusal struct{ signal, target, detail string }

// noteRefusal keeps why a signal of a predicate was refused last, until one of its name is applied.
func (c *Core) noteRefusal(s *outbox.Settled) {
	if s.Fate != control.Refused && s.Fate != control.Applied {
		return
	}
	i := c.ruleIndex(s.Signal.Predicate)
	if i < 0 {
		return
	}
	p := c.states[i].past
	p.refused = slices.DeleteFunc(p.refused, func(r refusal) bool { return r.signal == s.Signal.Name })
	if s.Fate == control.Refused && len(p.refused) < len(c.plan.Rules[i].Signals) {
		target := s.Signal.Target
		if s.Group != "" {
			target = s.Group + "/" + target
		}
		p.refused = append(p.refused, refusal{s.Signal.Name, target, s.Detail})
	}
}

// vain are the reasons for which signals of a predicate have no effect, as far as they are known: their
// kind is that of [monitor.Missing].
func (c *Core) vain(i int) []monitor.Missing {
	var list []monitor.Missing
	r, p := c.plan.Rules[i], c.states[i].past
	for j := range r.Signals {
		o := &r.Signals[j]
		if text := c.regionLacks(o, p.fired > 0); text != "" && !c.awaitsWork(o.Region) {
			list = append(list, monitor.Missing{Kind: "region", Text: fmt.Sprintf("signal %s has no effect: %s", o.Name, text)})
		}
	}
	for _, f := range p.refused {
		list = append(list, monitor.Missing{Kind: "refused", Member: f.target, Text: fmt.Sprintf("it has refused signal %s: %s", f.signal, f.detail)})
	}
	return list
}

// regionLacks says that no member has reported the region of a signal. Before the predicate has fired it
// says so only if members have reported others: a program enters its first region some time after it has joined.
func (c *Core) regionLacks(o *plan.Send, fired bool) string {
	if e := c.enteredOf(o.Group); fired || len(e.names) > 0 {
		return e.lacks(o.Region, o.Group)
	}
	return ""
}

// keptEntered are the regions that members have reported, by group.
func (c *Core) keptEntered() []KeptEntered {
	var list []KeptEntered
	add := func(group string, e *entered) {
		if len(e.names) > 0 {
			list = append(list, KeptEntered{group, slices.Clone(e.names), e.more})
		}
	}
	add("", &c.entered)
	for _, o := range c.plan.OtherGroups {
		add(o.Name, &c.others[o.Name].entered)
	}
	return list
}

// inheritEntered takes over what another machine knows of regions.
func (c *Core) inheritEntered(list []KeptEntered) {
	for _, k := range list {
		if k.Group != "" && c.others[k.Group] == nil {
			continue // No signal goes there any more.
		}
		e := c.enteredOf(k.Group)
		for _, name := range k.Names {
			e.add(name)
		}
		e.more = e.more || k.More
	}
}

// unfitEntered says why a list is none.
func unfitEntered(list []KeptEntered) string {
	for _, k := range list {
		if len(k.Names) > maxEntered {
			return fmt.Sprintf("it has %d names of regions of a group, at most %d are kept", len(k.Names), maxEntered)
		}
		for _, name := range k.Names {
			if err := wire.CheckToken("region", name); err != nil {
				return err.Error()
			}
		}
	}
	return ""
}
