package work

import (
	"cmp"
	"context"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/gopegasus/pegasus/internal/nearest"
	"github.com/gopegasus/pegasus/internal/workcore"
)

// Option of [Open]: a function that this member can run, or a part of the space of its own.
type Option struct {
	f   *function
	err error
	set func(*Space) // f is nil then

	server *callServer // of calls; f is nil then
}

// function is what the space knows of a declared function.
type function struct {
	name string
	// run runs a task and returns its result.
	run func(ctx context.Context, r *run) ([]byte, error)
	// encode is the argument of Put as the body of a task; items is how much a bag has.
	encode func(arg any) ([]byte, error)
	result reflect.Type // nil: not known here
	total  func() total // of a bag, for the results of one phase; else nil
	pulled bool         // tasks are taken by Next
	remote bool         // this program puts tasks of it, and does not run them
	object *objectKind  // the function makes objects of a kind; else nil
	kind   string       // of the objects that it serves; empty: none
	state  reflect.Type // of these
	on     func(ctx context.Context, state any, body []byte) error
}

// total sums up the results of a bag.
type total interface {
	add(data []byte) error
	value() any
}

// Func declares a function of that name. It runs once for each task, in a free slot of any member that
// declares it. Argument and result travel as bytes: by MarshalBinary and UnmarshalBinary if the
// type has them, a []byte as it is, and everything else as JSON; at most 16 MiB each. ctx ends when the
// task is not this member's any more ([ErrTaskGone]), and when the space is closed.
//
// If it returns an error or panics, the task runs again, as often as the key retry says, and is
// reported as failed then ([TaskError]).
func Func[A, R any](name string, f func(ctx context.Context, arg A) (R, error)) Option {
	if f == nil {
		return declare(&function{name: name}, "the Go function is nil")
	}
	return declare(&function{
		name:   name,
		result: reflect.TypeFor[R](),
		encode: encoderOf[A](name),
		run: func(ctx context.Context, r *run) ([]byte, error) {
			arg, err := decodeValue[A]("the argument", "", r.body)
			if err != nil {
				return nil, err
			}
			result, err := f(ctx, arg)
			if err != nil {
				return nil, err
			}
			return encodeResult("the result", "", result)
		},
	}, cmp.Or(mute[A](), mute[R]()))
}

// Pull declares a function of that name whose tasks this program takes by [Space.Next], one after the
// other, instead of having them called. Each Next that waits uses one slot.
func Pull[A any](name string) Option {
	return declare(&function{name: name, encode: encoderOf[A](name), pulled: true}, mute[A]())
}

// Remote declares a function of that name that this program does not run: it puts tasks of it and reads their results, and they
// run at members that declare it by [Func]. A and R are the types there.
//
// A task goes only to members that have declared its function. If only tasks of functions are left that no member has
// declared, and this program waits for the end of the phase ([Space.Wait], [Results], [Total]), they fail, and their error names the
// function. With a topology that is not full, one of the neighbours has to have declared it.
func Remote[A, R any](name string) Option {
	return declare(&function{name: name, encode: encoderOf[A](name), result: reflect.TypeFor[R](), remote: true}, cmp.Or(mute[A](), mute[R]()))
}

// Bag declares a bag of that name: a task that can be split. *B must have
//
//	Len() int       // how many items are left
//	Split(n int) B  // takes n items out, 0 < n < Len(), and returns them; it may return fewer, or *B
//
// and it travels as bytes as with [Func]. The function works on the bag, which nobody else uses
// meanwhile, until nothing is left in it, and adds what it finds to *R, which is zero at first and after
// each [Yield] that saved it. So add has to sum up results in any order; it is used by [Total].
func Bag[B, R any](name string, f func(ctx context.Context, bag *B, found *R) error, add func(a, b R) R) Option {
	split, fault := splitter[B]()
	fault = cmp.Or(fault, mute[B](), mute[R]())
	if f == nil || add == nil {
		fault = "its function or its sum is nil"
	}
	return declare(&function{
		name:   name,
		encode: encoderOf[B](name),
		result: reflect.TypeFor[R](),
		total:  func() total { return &sum[R]{plus: add} },
		run: func(ctx context.Context, r *run) ([]byte, error) {
			bag, err := decodeValue[B]("the bag", "", r.body)
			if err != nil {
				return nil, err
			}
			var found R
			length, _ := any(&bag).(interface{ Len() int })
			r.bag = &openBag{
				len:  length.Len,
				part: func(n int) ([]byte, error) { return encodeValue("a part of the bag", "", new(split(&bag, n))) },
				rest: func() ([]byte, error) { return encodeValue("the bag", "", &bag) },
				take: func() ([]byte, error) {
					data, err := encodeValue("the result", "", &found)
					if err == nil {
						found = *new(R)
					}
					return data, err
				},
			}
			r.reportBag(length.Len())
			if err := f(ctx, &bag, &found); err != nil {
				return nil, err
			}
			if n := length.Len(); n > 0 {
				return nil, fmt.Errorf("the function of the bag has returned nil with %d items left: work until Len is 0", n)
			}
			return encodeValue("the result", "", &found)
		},
	}, fault)
}

// openBag is the bag of a task that runs, for Yield.
type openBag struct {
	len  func() int
	part func(n int) ([]byte, error) // n items as the body of a task
	rest func() ([]byte, error)      // what is left as bytes
	take func() ([]byte, error)      // what was found since the last call
}

// splitter is the method Split of *B.
func splitter[B any]() (split func(*B, int) B, fault string) {
	var none *B
	_, hasLen := any(none).(interface{ Len() int })
	switch any(none).(type) {
	case interface{ Split(int) B }:
		split = func(b *B, n int) B { s, _ := any(b).(interface{ Split(int) B }); return s.Split(n) }
	case interface{ Split(int) *B }:
		split = func(b *B, n int) B { s, _ := any(b).(interface{ Split(int) *B }); return *s.Split(n) }
	}
	if t := reflect.TypeFor[B](); split == nil || !hasLen {
		fault = fmt.Sprintf("*%v is no bag: give it the methods Len() int and Split(n int) %v", t, t)
	}
	return split, fault
}

// sum adds up results of a type.
type sum[R any] struct {
	all  R
	any  bool
	plus func(a, b R) R
}

func (s *sum[R]) add(data []byte) error {
	r, err := decodeValue[R]("the result", "", data)
	switch {
	case err != nil:
		return err
	case s.any:
		s.all = s.plus(s.all, r)
	default:
		s.all, s.any = r, true
	}
	return nil
}

func (s *sum[R]) value() any { return s.all }

// encoderOf makes the body of a task from an argument of Put.
func encoderOf[A any](name string) func(arg any) ([]byte, error) {
	return func(arg any) ([]byte, error) {
		const what = "the argument of"
		if data, ok := arg.([]byte); ok && reflect.TypeFor[A]() == reflect.TypeFor[[]byte]() {
			return checkSize(what, name, data)
		}
		if v, ok := arg.(*A); ok {
			return encodeValue(what, name, v)
		}
		if v, ok := arg.(A); ok {
			return encodeValue(what, name, &v)
		}
		return nil, fmt.Errorf("%s is %T: this program has declared the function with %v", naming(what, name), arg, reflect.TypeFor[A]())
	}
}

// mute says what is wrong with a type of which nothing would travel: it has fields, none is exported, and it has
// no form of its own.
func mute[T any]() string { return muteOf(reflect.TypeFor[T]()) }

func muteOf(t reflect.Type) string {
	switch reflect.Zero(reflect.PointerTo(t)).Interface().(type) {
	case encoding.BinaryMarshaler, json.Marshaler, encoding.TextMarshaler:
		return ""
	}
	if t.Kind() != reflect.Struct || t.NumField() == 0 {
		return ""
	}
	for f := range t.Fields() {
		if f.IsExported() || f.Anonymous {
			return ""
		}
	}
	return fmt.Sprintf("no field of %v is exported, so nothing of it would travel: export its fields, or give it MarshalBinary and UnmarshalBinary", t)
}

// declare checks the name.
func declare(f *function, fault string) Option {
	switch {
	case f.name == "" || len(f.name) > workcore.MaxID:
		fault = fmt.Sprintf("its name has %d bytes: give it one of 1 to %d", len(f.name), workcore.MaxID)
	case fault == "":
		return Option{f: f}
	}
	return Option{err: fmt.Errorf("work: function %.40q: %s", f.name, fault)}
}

// funcsHere are the names of those functions that this program runs.
func funcsHere(functions map[string]*function) []string {
	list := []string{}
	for name, f := range functions {
		if !f.remote {
			list = append(list, name)
		}
	}
	return list
}

// failUndeclared ends tasks of functions that no member has declared, once this program waits for nothing else. The lock is held.
func failUndeclared(s *Space) {
	if s.err == nil && s.out.Told.Open > 0 && slices.ContainsFunc(s.waiters, func(w *waiter) bool { return w.awaits }) && len(s.machine.Undeclared()) > 0 {
		_ = s.step(&workcore.Input{Kind: workcore.InUndeclared}) // It is never refused.
	}
}

// unknownFunc says that a function of that name is not declared, and which are.
func unknownFunc(name string, functions map[string]*function) error {
	known := make([]string, 0, len(functions))
	for n := range functions {
		known = append(known, n)
	}
	slices.Sort(known)
	text := fmt.Sprintf("no function %q is declared by this member, which has %q", name, known)
	if meant := nearest.Name(name, known); meant != "" {
		text += fmt.Sprintf("; did you mean %q?", meant)
	}
	return fmt.Errorf("work: %s: declare it in Open", text)
}
