package predicates

import "github.com/gopegasus/pegasus/scgs"

// Member tells who member i is and whether its state is known.
func (s *Scope) Member(i int) (m Member, online bool) { return s.members[i], s.online[i] }

// Value is the field of that number in member i's state, Invalid where it is not
// known.
func (s *Scope) Value(i, field int) scgs.Value {
	if v, why := s.stateValue(i, field); !why.set() {
		return *v
	}
	return scgs.Value{}
}

// Memory is the variable of that number, Invalid where it is not known.
func (s *Scope) Memory(i int) scgs.Value {
	if v, why := s.memoryValue(i); !why.set() {
		return *v
	}
	return scgs.Value{}
}
