package work

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"

	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/workcore"
)

// Result is what one task has come to.
type Result[R any] struct {
	ID    string // of the task
	Value R      // of the function
}

// results holds the results of a function, of tasks that this member has put.
type results struct {
	lists    [][]workcore.Result // not read yet; none is empty
	total    total               // of a bag, of this phase; nil: there is none
	failures []error             // the first of them, of tasks whose results nobody reads
	failed   int                 // how many
	ended    bool                // what is here is of a phase that is over
	read     bool                // a loop reads it
	newTotal func() total
	missing  error // why there are none of another member
}

// keptErrors is how many errors of failed tasks Wait and Total return in full.
const keptErrors = 16

// listRoom is how many results one list has at most.
const listRoom = 512

func newResults(f *function) *results {
	r := &results{newTotal: f.total}
	r.beginPhase()
	return r
}

// beginPhase forgets what is of a phase before.
func (r *results) beginPhase() {
	r.lists, r.failures, r.failed, r.ended, r.total, r.missing = nil, nil, 0, false, nil, nil
	if r.newTotal != nil {
		r.total = r.newTotal()
	}
}

// keep keeps a result in the last list. None of the lists is ever copied into a larger one.
func (r *results) keep(in *workcore.Result) {
	if last := len(r.lists) - 1; last < 0 || len(r.lists[last]) == cap(r.lists[last]) {
		room := 16 // Few wait where each is read at once.
		if last >= 0 {
			room = min(2*cap(r.lists[last]), listRoom)
		}
		r.lists = append(r.lists, make([]workcore.Result, 0, room))
	}
	last := &r.lists[len(r.lists)-1]
	*last = append(*last, *in)
}

// fail keeps an error, or counts it.
func (r *results) fail(err error) {
	if r.failed++; len(r.failures) < keptErrors {
		r.failures = append(r.failures, err)
	}
}

// err is what has failed.
func (r *results) err() error {
	errs := slices.Clone(r.failures)
	if more := r.failed - len(errs); more > 0 {
		errs = append(errs, fmt.Errorf("work: %d more tasks have failed", more))
	}
	return errors.Join(errs...)
}

// deliverResult keeps a result until it is read. The lock is held.
func (s *Space) deliverResult(in *workcore.Result) {
	r := s.results[in.Func]
	switch {
	case r == nil: // A program before has put it, and this one has no such function.
		return
	case r.ended:
		r.beginPhase() // Nobody has read those of the phase before, and nobody will.
	}
	r.keepResult(in)
}

// keepResult keeps a result.
func (r *results) keepResult(in *workcore.Result) {
	if in.Fate > workcore.Done {
		r.fail(&TaskError{ID: in.ID, Poisoned: in.Fate == workcore.Poisoned, Text: in.Error})
	}
	switch {
	case r.total == nil:
		r.keep(in)
	case in.Fate <= workcore.Done:
		if err := r.total.add(in.Value); err != nil {
			r.fail(fmt.Errorf("work: the result of task %q is left out of the total: %w", in.ID, err))
		}
	}
}

// ResultsOption says more of which results [Results] and [Total] are to return.
type ResultsOption struct{ member string }

// Of asks for the results of the tasks that another member has put, whether it is there still or not. It needs store:
// jetstream. The results come at the end of the phase; they are of that phase alone.
func Of(member string) ResultsOption { return ResultsOption{member} }

// Results returns the results of the tasks that this member puts for a function, as they come. The
// loop ends with the phase. A task that has failed for good has an error, a [*TaskError], and the loop
// continues; any other error ends it: the error of ctx, [*LostError], [ErrDropped], [ErrClosed]. One loop at a
// time reads the results of a function. Results that nobody has read by the end of their phase are kept until
// the next one has a result.
func Results[R any](ctx context.Context, s *Space, name string, options ...ResultsOption) iter.Seq2[Result[R], error] {
	return func(yield func(Result[R], error) bool) {
		r, err := s.open(name, false, options)
		if err != nil {
			yield(Result[R]{}, err)
			return
		}
		defer s.closeResults(r)
		for {
			list, err := s.next(ctx, r)
			for i := range list {
				if !yield(resultOf[R](&list[i])) {
					s.putBack(r, list[i+1:])
					return
				}
			}
			if err != nil {
				yield(Result[R]{}, err)
			}
			if err != nil || list == nil {
				return
			}
		}
	}
}

// putBack keeps for the next loop what a loop that was left has not come to.
func (s *Space) putBack(r *results, rest []workcore.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(rest) > 0 {
		r.lists = slices.Insert(r.lists, 0, rest)
	}
}

func resultOf[R any](in *workcore.Result) (Result[R], error) {
	out := Result[R]{ID: in.ID}
	if in.Fate > workcore.Done {
		return out, &TaskError{ID: in.ID, Poisoned: in.Fate == workcore.Poisoned, Text: in.Error}
	}
	var err error
	if out.Value, err = decodeValue[R]("work: the result of task", in.ID, in.Value); err != nil {
		return out, fmt.Errorf("%w (as %v)", err, reflect.TypeFor[R]())
	}
	return out, nil
}

// open marks the results of a function as read by somebody.
func (s *Space) open(name string, bag bool, options []ResultsOption) (*results, error) {
	f := s.functions[name]
	switch {
	case f == nil:
		return nil, unknownFunc(name, s.functions)
	case f.total != nil && !bag:
		return nil, fmt.Errorf("work: %q is a bag, which has no result for each task: use Total", name)
	case f.total == nil && bag:
		return nil, fmt.Errorf("work: %q is no bag, so there is no total: use Results", name)
	}
	var of string
	for _, o := range options {
		of = o.member
	}
	switch {
	case of != "" && s.logs == nil:
		return nil, fmt.Errorf("work: the results of tasks that %q has put for %q: with store: memory only the member that puts a task gets its result: use store: jetstream", of, name)
	case of == s.link.Self().Name:
		of = ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.results[name]
	if of != "" {
		k := foreign{name, of}
		if r = s.foreign[k]; r == nil {
			r = newResults(f)
			s.foreign[k] = r
		}
	}
	if r.read {
		return nil, fmt.Errorf("work: the results of %q are read already: one loop reads them at a time", name)
	}
	if r.read = true; r.ended && len(r.lists) == 0 && !bag {
		r.beginPhase() // Nothing is left of the phase before: this loop is about the present one.
	}
	s.busy++
	return r, nil
}

func (s *Space) closeResults(r *results) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.read = false
	s.busy--
	s.settle()
	s.tell(s.link.Now())
}

// next waits for results; none and no error: the phase is over.
func (s *Space) next(ctx context.Context, r *results) (list []workcore.Result, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(r.lists) == 0 {
		s.busy--
		err = s.wait(ctx, &waiter{settles: true, awaits: true, busies: true, ready: func() bool { return len(r.lists) > 0 || r.ended }})
	}
	if len(r.lists) > 0 {
		list, r.lists[0] = r.lists[0], nil
		r.lists = r.lists[1:]
	}
	if r.missing != nil && err == nil && list == nil {
		err, r.missing = r.missing, nil
	}
	r.failures, r.failed = nil, 0 // The loop tells of them.
	return list, err
}

// Total waits for the end of the phase, and returns the sum found by the bags of that name that this
// member has put. The error names tasks that have failed; the sum covers the others then.
func Total[R any](ctx context.Context, s *Space, name string, options ...ResultsOption) (sum R, err error) {
	if f := s.functions[name]; f != nil && f.total != nil && f.result != reflect.TypeFor[R]() {
		return sum, fmt.Errorf("work: the total of %q is %v, as this program has declared the bag: ask for that, not for %v", name, f.result, reflect.TypeFor[R]())
	}
	r, err := s.open(name, true, options)
	if err != nil {
		return sum, err
	}
	defer s.closeResults(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy--
	err = s.wait(ctx, &waiter{settles: true, awaits: true, busies: true, ready: func() bool { return r.ended }})
	if err != nil {
		return sum, err
	}
	v, _ := r.total.value().(R) // As it was declared.
	err = errors.Join(r.missing, r.err())
	r.beginPhase()
	return v, err
}

// Found is the sum found so far by the bags of that name that this member has put, as far as
// they are saved or done. It is for showing progress.
func Found[R any](s *Space, name string) (sum R, err error) {
	f, r := s.functions[name], s.results[name]
	switch {
	case f == nil:
		return sum, unknownFunc(name, s.functions)
	case f.total == nil:
		return sum, fmt.Errorf("work: %q is no bag, so there is no total: use Results", name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sum, _ = r.total.value().(R)
	return sum, nil
}

// Wait waits for the end of the phase: every task of every member is done, and every program waits. It
// returns the errors of failed tasks that this member has put and whose results nobody has read.
func (s *Space) Wait(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ends := s.ends
	if err := s.wait(ctx, &waiter{settles: true, awaits: true, ready: func() bool { return s.ends > ends }}); err != nil {
		return err
	}
	var errs []error
	for _, f := range s.functions {
		if r := s.results[f.name]; r.ended && !r.read && r.failed > 0 {
			errs = append(errs, r.err())
			r.beginPhase()
		}
	}
	return errors.Join(errs...)
}

// Serve runs tasks of other members, phase after phase, until ctx ends or the space is over, and
// returns why. It is for programs that put nothing outside of functions. Unlike Wait it does not ask for
// an end: a phase ends only where some member waits for it.
func (s *Space) Serve(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serving++
	defer func() {
		s.serving--
		s.settle()
		s.tell(s.link.Now())
	}()
	return s.wait(ctx, &waiter{serves: true, ready: func() bool { return false }})
}

// waiter is a call that waits.
type waiter struct {
	ready   func() bool
	settles bool       // the program has nothing to put meanwhile
	awaits  bool       // it waits for the end of the phase
	serves  bool       // it settles unless the program puts tasks
	busies  bool       // what follows it is busy until it says otherwise
	lost    *LostError // why it has to return; nil: nothing is lost
	done    chan struct{}
}

// wait waits until w is ready, the space is over, tasks are lost, or ctx ends. The lock is held.
func (s *Space) wait(ctx context.Context, w *waiter) error {
	w.done = make(chan struct{})
	s.waiters = append(s.waiters, w)
	s.releaseCallers()
	if w.awaits {
		failUndeclared(s)
	}
	s.tell(s.link.Now())
	s.mu.Unlock()
	select {
	case <-w.done:
	case <-ctx.Done():
	}
	s.mu.Lock()
	if i := slices.Index(s.waiters, w); i >= 0 { // ctx was first.
		s.waiters = slices.Delete(s.waiters, i, i+1)
		if w.busies {
			s.busy++
		}
		s.settle()
		s.tell(s.link.Now())
	}
	switch {
	case w.lost != nil: // Even if the phase has ended since.
		return w.lost
	case w.ready():
		return nil
	case s.err != nil:
		return s.err
	default:
		return fmt.Errorf("work: wait: %w", context.Cause(ctx))
	}
}

// fails reports whether a waiter has to return since tasks are lost.
func (s *Space) fails(w *waiter) bool {
	if w.awaits && s.lost != nil && s.section.Lost == config.LostFail {
		w.lost = s.lost
	}
	return w.lost != nil
}

// releaseCallers lets those go on whose calls are over. It comes before what the step has changed is told: the
// group must not hear that this program waits when it does not any more. The lock is held.
func (s *Space) releaseCallers() {
	told := false
	s.waiters = slices.DeleteFunc(s.waiters, func(w *waiter) bool {
		over := s.err != nil || w.ready() || s.fails(w)
		if over {
			if close(w.done); w.busies {
				s.busy++
			}
			told = told || w.lost != nil
		}
		return over
	})
	if told { // Once: a program that waits again goes on without them.
		s.lost = nil
	}
	s.settle()
}

// settle tells the machine whether the program waits.
func (s *Space) settle() {
	settled := s.busy == 0 && slices.ContainsFunc(s.waiters, func(w *waiter) bool { return w.settles || w.serves && !s.puts })
	if settled == s.settled || s.err != nil {
		return
	}
	s.settled = settled
	s.advanceMachine(&workcore.Input{Kind: workcore.InSettled, Settled: settled})
	s.carryOut()
}
