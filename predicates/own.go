package predicates

import "github.com/gopegasus/pegasus/scgs"

// Local is a condition that a member judges on its own state. It is not safe for concurrent use.
type Local struct {
	cond  *Expression
	scope *Scope
}

// MemberEnv declares what a condition on one member may read where no global state is: the fields of its state, its
// .name and .host. Filled are the names that may follow .work.
func MemberEnv(state scgs.Schema, filled []string) *Env {
	return &Env{State: state, Filled: filled, MaxMembers: 1}
}

// NewLocal compiles a condition on one member, such as .load > 2, with the Env of [MemberEnv]. The error is an *[Error].
func NewLocal(e *Env, src string) (*Local, error) {
	_, local, err := e.Each(src)
	if err != nil {
		return nil, err
	}
	l := &Local{local, NewScope(e)}
	l.scope.Reset([]Member{{}})
	return l, nil
}

// Holds judges the condition on the state of the member, a value for each field of the schema.
// An unknown condition does not hold.
func (l *Local) Holds(of Member, row []scgs.Value) bool {
	if was, _ := l.scope.Member(0); was != of {
		l.scope.Reset([]Member{of})
	}
	l.scope.Set(0, row)
	holds := l.cond.Eval(l.scope).Truth == True
	l.scope.Settle()
	return holds
}
