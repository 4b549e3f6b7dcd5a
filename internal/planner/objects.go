package planner

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/gopegasus/pegasus/balance"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
)

// objects is what a member tells of its objects beside their names and weights.
type objects struct {
	labels   map[string]string // by name: what people call it
	traffic  []balance.Traffic
	declined map[string]string // by name: why the member did not move it
}

// readObjects reads what a member tells of its objects. The note names the fault in it.
func (p *Planner) readObjects(r *reading, s *predicates.Scope, i int) (note string) {
	r.objects = objects{labels: map[string]string{}, declined: map[string]string{}}
	read := func(key string, of *predicates.MemberExpression) {
		var reason string
		if p.values, reason = of.Eval(p.values[:0], s, i); reason != "" && note == "" {
			note = key + " is unknown: " + reason
		}
	}
	texts := func(key string, of *predicates.MemberExpression) []string {
		read(key, of)
		return loadNames(nil, p.values)
	}
	o := p.Objects
	for j, label := range texts("names", o.Labels) {
		if j < len(r.names) && label != "" && strconv.Quote(label) == `"`+label+`"` {
			r.labels[r.names[j]] = label
		}
	}
	from, to := texts("senders", o.Senders), texts("receivers", o.Receivers)
	read("volumes", o.Volumes)
	if n := len(p.values); note == "" && (len(from) != n || len(to) != n) {
		note = fmt.Sprintf("its senders are %d, its receivers %d and its volumes %d", len(from), len(to), n)
	}
	for j := 0; j < len(from) && note == ""; j++ {
		t := balance.Traffic{From: from[j], To: to[j], Volume: p.values[j].Float()}
		if !slices.Contains(r.names, t.From) {
			note = fmt.Sprintf("it tells what %s sends, which is not one of its loads", t.From)
		} else if fault := (&balance.Load{Name: t.From, Weight: t.Volume}).Fault(); fault != "" {
			note = "of what is sent: " + fault
		}
		r.traffic = append(r.traffic, t)
	}
	refused, reasons := texts("refused", o.Refused), texts("reasons", o.Reasons)
	for j, name := range refused {
		if r.declined[name] = "no reason is told"; j < len(reasons) && strconv.Quote(reasons[j]) == `"`+reasons[j]+`"` {
			r.declined[name] = reasons[j]
		}
	}
	return note
}

// endDeclined takes out the flights of loads that their members have refused to move, and counts them.
func (p *Planner) endDeclined() {
	p.flights = slices.DeleteFunc(p.flights, func(f *flight) bool {
		i, found := p.placeOf(f.from)
		if !found || p.members[i].Unknown {
			return false
		}
		_, declined := p.readings[i].declined[f.load]
		if declined {
			p.declined++
		}
		return declined
	})
}

// explainObjects adds what members have refused to a plan, and names the objects in it as people do.
func (p *Planner) explainObjects(one *monitor.Plan) {
	if p.Objects == nil {
		return
	}
	for i := range p.members {
		r := &p.readings[i]
		for _, name := range slices.Sorted(maps.Keys(r.declined)) {
			one.Plan.Refused = append(one.Plan.Refused, balance.Refusal{Load: name, From: r.name, Reason: balance.Declined, Detail: r.declined[name]})
		}
	}
	for i := range one.Plan.Moves {
		one.Plan.Moves[i].Load = p.label(one.Plan.Moves[i].Load)
	}
	for i := range one.Plan.Refused {
		one.Plan.Refused[i].Load = p.label(one.Plan.Refused[i].Load)
	}
}

// label is what people call a load.
func (p *Planner) label(load string) string {
	for i := range p.readings {
		if label := p.readings[i].labels[load]; label != "" {
			return label
		}
	}
	return load
}
