package synccore

import (
	"strings"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// Sent is a signal that a predicate of a plan sends.
type Sent struct {
	Predicate string
	Name      string
	Kind      control.Kind
	Region    string
	Data      scgs.Schema
}

// Sends lists the signals of the plan's predicates, in the order in which these
// are judged, and that of the section balance.
func (p *Plan) Sends() []Sent {
	var list []Sent
	for _, r := range p.rules {
		for i := range r.signals {
			o := &r.signals[i]
			s := Sent{Predicate: r.name, Name: o.name, Kind: o.kind, Region: o.region}
			for _, d := range o.data {
				field := d.value.Result()
				field.Name = d.name
				s.Data = append(s.Data, field)
			}
			list = append(list, s)
		}
	}
	if p.balance != nil {
		list = append(list, p.balance.sent())
	}
	return list
}

// FromParent lists the signals of the level above that the plan can read.
func (p *Plan) FromParent() []predicates.ParentSignal { return p.env.Parent }

// Memory is the declared memory, in the order of [Core.Memory].
func (p *Plan) Memory() scgs.Schema { return p.env.Memory }

// SummaryFields is the state that the summary makes up at the parent, in the
// order of a [SummaryEvent]; empty if there is no summary.
func (p *Plan) SummaryFields() scgs.Schema { return p.above }

// Memory is what the predicates have set so far: Invalid where nothing is known.
// It is not to be changed, and changes with the next step.
func (c *Core) Memory() []scgs.Value { return c.memory }

// ParseValue reads a value of a field as a configuration file writes it.
func ParseValue(f scgs.Field, text string) (scgs.Value, error) { return parseValue(f, text) }

// String gives the member with its state, as "w1 (phase=idle load=0.5)".
func (p *Part) String() string {
	if p.State.Unknown {
		return p.Name + " (unknown)"
	}
	if len(p.Row) == 0 {
		return p.Name
	}
	values := make([]string, len(p.Row))
	for i, v := range p.Row {
		values[i] = p.Fields[i].Name + "=" + v.String()
	}
	return p.Name + " (" + strings.Join(values, " ") + ")"
}
