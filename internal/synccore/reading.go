package synccore

import (
	"fmt"

	"github.com/gopegasus/pegasus/balance"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// Reading is what one member's state says to the section balance.
type Reading struct {
	Node    balance.Node // with a Note if the state cannot be read
	Loads   []string
	Weights []float64
	Rest    float64
}

// Reader reads states as the section balance of a plan does, if there is one, and
// judges conditions, apart from a machine. It is not safe for concurrent use.
type Reader struct {
	plan    *Plan
	planner planner
	alone   *predicates.Scope
	all     *predicates.Scope
}

// Reader returns a reader.
func (p *Plan) Reader() *Reader {
	return &Reader{plan: p, planner: planner{Balancing: p.balance}, alone: predicates.NewScope(p.env), all: predicates.NewScope(p.env)}
}

// Read reads a member's state. Without a section balance nothing is in it.
func (r *Reader) Read(name string, row []scgs.Value) Reading {
	if r.plan.balance == nil {
		return Reading{Node: balance.Node{Name: name}}
	}
	r.alone.Reset([]predicates.Member{{Name: name}})
	r.alone.Set(0, row)
	var one reading
	note := r.planner.read(&one, r.alone, 0)
	return Reading{
		Node:  balance.Node{Name: name, Power: one.power, Share: one.share, Note: note},
		Loads: one.names, Weights: one.weights, Rest: one.rest,
	}
}

// Condition compiles a condition on global states. It may not read memory, the
// global state before, or signals from above: there are none apart from a machine.
func (r *Reader) Condition(src string) (*predicates.Expression, error) {
	p, err := r.plan.env.Bool(src)
	if err != nil {
		return nil, err
	}
	if u := p.Uses(); u.Memory != 0 || u.Prev || u.Process != 0 || len(u.Parent) > 0 {
		return nil, fmt.Errorf("the condition %q reads more than the states of members", src)
	}
	return p, nil
}

// Holds judges a condition on states, in the order of the names.
func (r *Reader) Holds(p *predicates.Expression, names []string, rows [][]scgs.Value) bool {
	members := make([]predicates.Member, len(names))
	for i, name := range names {
		members[i].Name = name
	}
	r.all.Reset(members)
	for i, row := range rows {
		r.all.Set(i, row)
	}
	return p.Eval(r.all).Truth == predicates.True
}

// InForce gives the global state that the machine has opened last, if it is still
// open: its number within the epoch, and the states that held together, by name. What
// it returns is for the caller to keep.
func (c *Core) InForce() (epoch, index uint64, parts []Part, ok bool) {
	if !c.tuple || c.paused || len(c.removing) > 0 {
		return 0, 0, nil, false
	}
	c.parts = c.det.Witness(c.parts[:0])
	return c.ev.Epoch, c.ev.Index, c.witness(nil), true
}
