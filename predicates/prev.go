package predicates

import (
	"slices"

	"github.com/gopegasus/pegasus/scgs"
)

// prev keeps the global state before the one in the Scope. It is updated from the changes
// since, not copied whole.
type prev struct {
	kept    bool // some expression reads it
	count   int  // global states of the epoch, up to two
	online  []bool
	rows    []scgs.Value
	dirty   []bool // by member: its present state may differ from that in rows
	changed []int  // the dirty ones
}

// KeepPrev makes the Scope keep the global state before the present one, for
// expressions whose [Uses] say that they read it. It is called before the first
// Reset.
func (s *Scope) KeepPrev() { s.prev.kept = true }

// Next begins the next global state of the epoch: what has been set is that
// before it, for expressions that read prev. It is called once for each global state,
// before its changes are set, and costs as much as the one before changed.
func (s *Scope) Next() {
	p := &s.prev
	if !p.kept {
		return
	}
	s.changed.Prev = true
	p.count = min(p.count+1, 2)
	n := len(s.env.State)
	for _, i := range p.changed {
		p.online[i], p.dirty[i] = s.online[i], false
		copy(p.rows[i*n:(i+1)*n], s.rows[i*n:])
	}
	p.changed = p.changed[:0]
}

// beginEpoch begins an epoch of so many members and values.
func (p *prev) beginEpoch(members, values int) {
	p.count, p.changed = 0, p.changed[:0]
	if !p.kept {
		return
	}
	p.online = slices.Grow(p.online[:0], members)[:members]
	p.dirty = slices.Grow(p.dirty[:0], members)[:members]
	p.rows = slices.Grow(p.rows[:0], values)[:values]
	clear(p.online)
	clear(p.dirty)
	clear(p.rows)
}

// noteChange takes note that a member's state changes.
func (p *prev) noteChange(i int) {
	if p.kept && !p.dirty[i] {
		p.dirty[i] = true
		p.changed = append(p.changed, i)
	}
}

// hasPrevious is whether there is a global state before and the member's state was known
// in it.
func (p *prev) hasPrevious(i int) bool { return p.count > 1 && p.online[i] }

func (s *Scope) prevValue(member, field int) (*scgs.Value, cause) {
	switch p := &s.prev; {
	case p.count < 2:
		return nil, cause{code: prevMissing}
	case !p.online[member]:
		return nil, cause{code: prevUnknown, member: int32(member)}
	}
	missing := cause{code: prevFieldMissing, member: int32(member), field: int32(field)}
	return expectType(&s.prev.rows[member*len(s.env.State)+field], s.env.State[field].Type, missing)
}

// prevMembers is the group of all members as they were in the global state before.
func (c *compiler) prevMembers(n node) (value, error) {
	if !c.env.Prev {
		return value{}, c.errorf(n, "only the predicates of a synchronizer can read it", "the global state before is not kept here")
	}
	c.uses.Prev = true
	v := c.memberGroup()
	v.group.elem.prev = true
	return v, nil
}

// Last is the global state before the next one, or, if inForce, before the present one: a row
// for each member, nil where its state was unknown. It is nil if there was none.
func (s *Scope) Last(inForce bool) (rows [][]scgs.Value) {
	p, from, online := &s.prev, s.rows, s.online
	if inForce {
		from, online = p.rows, p.online
	}
	if !p.kept || p.count == 0 || inForce && p.count < 2 {
		return nil
	}
	n := len(s.env.State)
	rows = make([][]scgs.Value, len(s.members))
	for i := range rows {
		if online[i] {
			rows[i] = slices.Clone(from[i*n : (i+1)*n])
		}
	}
	return rows
}

// SetLast sets what [Scope.Last] returned of another Scope with the same members.
func (s *Scope) SetLast(rows [][]scgs.Value, inForce bool) {
	p, n := &s.prev, len(s.env.State)
	if !p.kept || len(rows) != len(s.members) {
		return
	}
	p.count, s.changed.Prev = 1, true
	if inForce {
		p.count = 2
	}
	for i, row := range rows {
		p.online[i] = len(row) == n
		if p.online[i] {
			copy(p.rows[i*n:(i+1)*n], row)
		}
		if inForce {
			p.noteChange(i)
		}
	}
}
