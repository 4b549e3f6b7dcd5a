package agent

import (
	"errors"
	"reflect"
	"unsafe"

	"github.com/gopegasus/pegasus/internal/gostate"
	"github.com/gopegasus/pegasus/scgs"
)

// Owner is the owner of states: a [*Member], a [*Thread] or a [*BlockThread].
type Owner interface {
	// bind makes what sets states of the type of that value, and checks the type.
	bind(state any) (setter, error)
}

// State sets the states of an [Owner], all of the struct type T. It does the same as the owner's
// Set at less cost, and the compiler refuses other types. Several goroutines may use it at once,
// beside other States of the owner and beside its Set.
type State[T any] struct{ setter }

// StateOf binds a struct type to the declared state of its owner. It fails as the owner's
// Set would: with [ErrClosed], or with a [*StateError] that names the field. In a process
// with threads T may be the state of the process beside these; see [Member.Set].
func StateOf[T any](owner Owner) (*State[T], error) {
	if v := reflect.ValueOf(owner); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, errors.New("agent: the owner of a state is nil: pass the member that Join has returned, or one of its threads")
	}
	if typ := reflect.TypeFor[T](); typ.Kind() == reflect.Interface { // Its zero value has another type: none.
		return nil, gostate.NoStruct(typ)
	}
	var state T
	s, err := owner.bind(state)
	if err != nil {
		return nil, err
	}
	return &State[T]{s}, nil
}

// Set begins a state now and ends the state before it, as [Member.Set], [Thread.Set] or
// [BlockThread.Set] does. If a later synchronizer declares another state, Set binds T to the
// new declaration; if T does not match it, each Set fails with a [*StateError]. After any error
// the state before it remains. If that state does not match the later declaration, it counts
// again as soon as a declaration matches it.
func (s *State[T]) Set(state T) error {
	if s == nil || s.of == nil {
		return errors.New("agent: this State has no owner: make it with StateOf")
	}
	if s.process != nil {
		return s.process.Set(state)
	}
	return s.set(unsafe.Pointer(&state))
}

// setter is what a State of any type consists of.
type setter struct {
	process *Member // that may have threads, so that each state says whose it is; nil: it has none
	of      *participant
	state   any              // one of its type
	bound   *gostate.Encoder // for the declared state; guarded by the lock
}

func (m *Member) bind(state any) (setter, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, declared := setter{of: &m.participant, state: state}, m.core.Codec().Schema()
	if m.level != nil {
		s.process = m
		if m.besideThreads(state) {
			declared = m.level.plan.Process
		}
	}
	err := s.rebind(declared)
	return s, err
}

func (t *Thread) bind(state any) (setter, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := setter{of: &t.participant, state: state}
	err := s.rebind(t.core.Codec().Schema())
	return s, err
}

func (t *BlockThread) bind(state any) (setter, error) { return t.thread.bind(state) }

// rebind binds the type to the declared state. The lock is held.
func (s *setter) rebind(declared scgs.Schema) error {
	if s.of.closed {
		return ErrClosed
	}
	bound, err := s.of.state.Bind(s.state, declared)
	if err == nil {
		s.bound = bound
	}
	return err
}

// set begins the state that lies at an address.
func (s *setter) set(state unsafe.Pointer) error {
	hurry, err := s.locked(state)
	s.of.above.runDue()
	hurry.sendDue()
	return err
}

// locked is set but for calls without the lock.
func (s *setter) locked(state unsafe.Pointer) (hurry *multiplexer, err error) {
	p := s.of
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	if declared := p.core.Codec().Schema(); !s.bound.IsFor(declared) {
		if err := s.rebind(declared); err != nil {
			return nil, err
		}
	}
	if p.owner != nil {
		p.owner.byItself = true
	}
	err = p.beginPlainState(s.bound, state)
	if p.owner != nil && err == nil {
		err = p.owner.replaced
	}
	return p.owner.takeHurry(), err
}
