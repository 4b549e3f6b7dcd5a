package work

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/internal/workcore"
)

// Object declares a kind of objects. Its function makes the state of an object from the argument of
// [Space.Create]; it may send messages. The state travels as bytes as with [Func].
func Object[S, A any](kind string, create func(ctx context.Context, arg A) (*S, error)) Option {
	if create == nil {
		return declare(&function{name: kind}, "the Go function is nil")
	}
	o := &objectKind{
		create: func(ctx context.Context, body []byte) (any, error) {
			arg, err := decodeValue[A]("the argument", "", body)
			if err != nil {
				return nil, err
			}
			state, err := create(ctx, arg)
			if err == nil && state == nil {
				err = errors.New("the function that makes the object has returned no state")
			}
			return state, err
		},
		load: func(data []byte) (any, error) {
			s, err := decodeValue[S]("the state", "", data)
			return &s, err
		},
		save: func(state any) ([]byte, error) {
			s, ok := state.(*S)
			if !ok {
				return nil, fmt.Errorf("the state is %T, and not %v", state, reflect.TypeFor[*S]())
			}
			return encodeValue("the state", "", s)
		},
		state: reflect.TypeFor[*S](),
	}
	f := &function{name: kind, object: o, encode: encoderOf[A](kind)}
	f.run = func(ctx context.Context, r *run) ([]byte, error) { return r.serve(ctx, o) }
	fault := mute[A]()
	if fault == "" {
		fault = mute[S]()
	}
	return declare(f, fault)
}

// On declares a function of that name that serves messages to objects of a kind, which it changes. An object
// serves one message at a time. What the function puts and sends counts with the save of the object. If it
// returns an error or panics, the object goes back to its last save and serves the message again, as often
// as the key retry says; then it continues without it, and the member that has created the object reports that
// ([TaskError]).
func On[S, A any](kind, name string, serve func(ctx context.Context, state *S, arg A) error) Option {
	if serve == nil {
		return declare(&function{name: name}, "the Go function is nil")
	}
	return declare(&function{
		name: name, kind: kind, state: reflect.TypeFor[*S](), encode: encoderOf[A](name),
		run: func(context.Context, *run) ([]byte, error) {
			return nil, fmt.Errorf("function %q serves objects of the kind %q, and this is none", name, kind)
		},
		on: func(ctx context.Context, state any, body []byte) error {
			arg, err := decodeValue[A]("the message", "", body)
			if err != nil {
				return err
			}
			s, ok := state.(*S)
			if !ok {
				return fmt.Errorf("the state is %T, and function %q serves %v", state, name, reflect.TypeFor[*S]())
			}
			return serve(ctx, s, arg)
		},
	}, mute[A]())
}

// objectKind is what the space knows of a kind of objects.
type objectKind struct {
	create func(ctx context.Context, body []byte) (any, error)
	load   func(data []byte) (any, error)
	save   func(state any) ([]byte, error)
	state  reflect.Type
}

// checkObjects returns what is wrong with the functions of objects.
func checkObjects(functions map[string]*function) (faults []error) {
	for _, f := range functions {
		if f.kind == "" {
			continue
		}
		switch k := functions[f.kind]; {
		case k == nil || k.object == nil:
			faults = append(faults, fmt.Errorf("work: function %q serves objects of the kind %q, which is not declared: declare it by Object", f.name, f.kind))
		case k.object.state != f.state:
			faults = append(faults, fmt.Errorf("work: function %q serves %v, and the state of the kind %q is %v", f.name, f.state, f.kind, k.object.state))
		}
	}
	return faults
}

// objectID is the ID of an object in its account.
func objectID(kind string, id any) string {
	if g, ok := id.(anyOf); ok {
		return workcore.GroupOf(string(g))
	}
	return fmt.Sprintf("%s/%v", kind, id)
}

type anyOf string

// Any stands for an object of a group in [Space.Send]: the one with the fewest messages gets it.
func Any(group string) any { return anyOf(group) }

// Create creates an object of a kind. Its ID is unique among all objects of that kind in the space, of
// whichever member. The object outlives phases, and is lost with this process (store: memory) or adopted with
// its account (store: jetstream). Creating the same object twice creates it once. With the context of a
// function that a space runs, it is created with the record of that function.
func (s *Space) Create(ctx context.Context, kind string, id, arg any, options ...PutOption) error {
	if f := s.functions[kind]; f != nil && f.object == nil {
		return fmt.Errorf("work: create: %q is no kind of objects: declare it by Object", kind)
	}
	return s.put(ctx, kind, arg, append([]PutOption{asObject(objectID(kind, id))}, options...))
}

// Send sends a message to an object, for the function of that name, which [On] has declared. The object may be
// anywhere, may move, and may be created later. It serves the messages of each member, and of each object, in
// the order in which they were sent, each once. The phase does not end before it has. Send returns as [Space.Put] does.
func (s *Space) Send(ctx context.Context, id any, name string, arg any, options ...PutOption) error {
	f := s.functions[name]
	if f != nil && f.kind == "" {
		return fmt.Errorf("work: send: function %q serves no objects: declare it by On", name)
	}
	if f == nil {
		return unknownFunc(name, s.functions)
	}
	to := objectID(f.kind, id)
	return s.put(ctx, name, arg, append([]PutOption{func(t *workcore.Task) error {
		t.For = to
		return nil
	}}, options...))
}

var errNoObject = errors.New("the option is for objects: give it to Create")

// ofObject says something of an object.
func ofObject(say func(t *workcore.Task)) PutOption {
	return func(t *workcore.Task) error {
		if t.Object == nil {
			return errNoObject
		}
		say(t)
		return nil
	}
}

// Near names neighbours of an object, of the same kind: a strategy moves it only to a member that has one of them, or
// no object. They need not exist. The rule does not say where the object begins.
func Near(ids ...any) PutOption {
	return ofObject(func(t *workcore.Task) {
		for _, id := range ids {
			t.Object.Near = append(t.Object.Near, objectID(t.Func, id))
		}
	})
}

// NearBy is [Near] for neighbours that attract the object by a weight, a finite number of at least 0; neighbours of Near have
// 1. Of several objects that may move to a member, the one moves first whose neighbours there have the largest sum.
func NearBy(weight float64, ids ...any) PutOption {
	return ofObject(func(t *workcore.Task) {
		for o := t.Object; len(o.Pull) < len(o.Near); {
			o.Pull = append(o.Pull, 1)
		}
		for _, id := range ids {
			t.Object.Near = append(t.Object.Near, objectID(t.Func, id))
			t.Object.Pull = append(t.Object.Pull, weight)
		}
	})
}

// At binds an object to members: it is at the first of them that is in the group, and waits while none is.
func At(members ...string) PutOption {
	return ofObject(func(t *workcore.Task) { t.Object.At = append(t.Object.At, members...) })
}

// Group makes an object one of a group, for [Any].
func Group(name string) PutOption {
	return ofObject(func(t *workcore.Task) { t.Object.Group = name })
}

// Move has an object that this member has created be at another member from its next message on. It is not
// interrupted. A pinned object, and an object that is bound to members, does not move.
func (s *Space) Move(kind string, id any, member string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	err := s.step(&workcore.Input{Kind: workcore.InMove, ID: objectID(kind, id), To: member})
	if s.tell(s.now); err != nil {
		return fmt.Errorf("work: move: %w", err)
	}
	return nil
}

// Locals ranges over the IDs of the objects of a kind that this member ran last. It hears when it gives one away itself or
// its creator is lost, and not when the creator has moved one. What has run nowhere yet is not in it.
func (s *Space) Locals(kind string) iter.Seq[string] {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	if s.machine != nil {
		for _, name := range s.machine.Objects() {
			if id, is := strings.CutPrefix(name, kind+"/"); is {
				ids = append(ids, id)
			}
		}
	}
	return slices.Values(ids)
}

// Await waits until an object has run here, or ctx ends.
func (s *Space) Await(ctx context.Context, kind string, id any) error {
	name := objectID(kind, id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.wait(ctx, &waiter{settles: true, ready: func() bool { return s.machine.HasObject(name) }}); err != nil {
		return fmt.Errorf("work: await object %q: %w", name, err)
	}
	return nil
}

// ofRun is the run of an object.
func ofRun(ctx context.Context) *run {
	r, _ := ctx.Value(runKey{}).(*run)
	if r == nil || len(r.inbox) == 0 {
		panic("work: this needs the context of a function that serves an object")
	}
	return r
}

// SpaceOf returns the space that runs the function of ctx, to put and send with, and nil for any other context.
func SpaceOf(ctx context.Context) *Space {
	if r, _ := ctx.Value(runKey{}).(*run); r != nil {
		return r.space
	}
	if r, _ := ctx.Value(servedKey{}).(*served); r != nil {
		return r.space
	}
	return nil
}

// Member returns the name of the member that has opened the space.
func (s *Space) Member() string { return s.link.Self().Name }

// Fence is a number that rises each time another process may run the object, and with each save. A store outside that refuses
// what has a smaller one than it has seen takes nothing of a process that has lost the object. It panics
// where ctx does not belong to a function that serves an object, as Pin, Unpin and End do.
func Fence(ctx context.Context) uint64 { return ofRun(ctx).fence }

// Pin keeps the object where it is from here on, until [Unpin] or the end of its process.
func Pin(ctx context.Context) { ofRun(ctx).pinned = true }

// Unpin lets the object move again.
func Unpin(ctx context.Context) { ofRun(ctx).pinned = false }

// End ends the object once the function has returned. Messages that it has not served fail.
func End(ctx context.Context) { ofRun(ctx).ends = true }

// serve serves messages, and returns the state of the object.
func (r *run) serve(ctx context.Context, o *objectKind) ([]byte, error) {
	var state any
	begun := r.space.link.Now()
	every := r.space.saveEvery
	for i := range r.inbox {
		m := &r.inbox[i]
		var err error
		switch f := r.space.functions[m.Func]; {
		case f == r.f:
			state, err = o.create(ctx, m.Body)
		case f == nil || f.on == nil || f.kind != r.f.name:
			err = fmt.Errorf("member %q has declared no function %q for objects of the kind %q: declare the same functions in every program of the space", r.space.link.Self().Name, m.Func, r.f.name)
		default:
			if state == nil {
				state, err = o.load(r.body)
			}
			if err == nil {
				err = f.on(ctx, state, m.Body)
			}
		}
		if err != nil {
			return nil, err
		}
		r.served++
		if r.ends || r.childCount() >= workcore.MaxChildren/2 || r.whyEnded() != nil || r.space.link.Now().Sub(begun) >= every {
			break
		}
	}
	if r.ends {
		return nil, nil
	}
	return o.save(state)
}

func (r *run) childCount() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.children)
}

// recordObject returns the record of an object.
func (r *run) recordObject(state []byte) workcore.Step {
	fate := workcore.Kept
	if r.ends {
		fate = workcore.Done
	}
	step := r.step(fate, nil, state)
	step.Record.Served, step.Record.Pinned = r.served, r.pinned
	return step
}
