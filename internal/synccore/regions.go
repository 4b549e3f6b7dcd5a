package synccore

import (
	"fmt"
	"slices"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/outbox"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/regions"
	"github.com/gopegasus/pegasus/monitor"
)

// refusal is the newest refusal of a signal of a predicate, by the member that it was for.
type refusal struct{ signal, target, detail string }

// noteRefusal keeps why a signal of a predicate was refused last, until one of its name is applied. The
// predicate has so many signals.
func (p *history) noteRefusal(s *outbox.Settled, signals int) {
	if s.Fate != control.Refused && s.Fate != control.Applied {
		return
	}
	p.refused = slices.DeleteFunc(p.refused, func(r refusal) bool { return r.signal == s.Signal.Name })
	if s.Fate == control.Refused && len(p.refused) < signals {
		target := s.Signal.Target
		if s.Group != "" {
			target = s.Group + "/" + target
		}
		p.refused = append(p.refused, refusal{s.Signal.Name, target, s.Detail})
	}
}

// vainReasons are the reasons for which signals of a predicate have no effect, as far as they are known: their
// kind is the kind of [monitor.Missing].
func (p *history) vainReasons(r *plan.Rule, level *plan.Level, reported *regions.Set) []monitor.Missing {
	var list []monitor.Missing
	for j := range r.Signals {
		o := &r.Signals[j]
		if p.fired == 0 && !reported.Any(o.Group) || level.Reserves(o.Region) {
			continue // A program enters its first region some time after it has joined.
		}
		if text := reported.Lacks(o.Group, o.Region); text != "" {
			list = append(list, monitor.Missing{Kind: "region", Text: fmt.Sprintf("signal %s has no effect: %s", o.Name, text)})
		}
	}
	for _, f := range p.refused {
		list = append(list, monitor.Missing{Kind: "refused", Member: f.target, Text: fmt.Sprintf("the member has refused signal %s: %s", f.signal, f.detail)})
	}
	return list
}
