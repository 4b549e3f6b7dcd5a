package work

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/gopegasus/pegasus/internal/workcore"
)

// PutOption says more of a task.
type PutOption func(*workcore.Task) error

// ID names a task. No other task of the same phase has that name; without it the space makes one. Putting the
// same task twice puts it once, so a program may put again what it is not sure of.
func ID(format string, args ...any) PutOption {
	return func(t *workcore.Task) error {
		t.ID = fmt.Sprintf(format, args...)
		if t.ID == "" {
			return errors.New("its ID is empty")
		}
		return nil
	}
}

// Weight says how long a task will take, in a unit of the program. The key order of the configuration
// may read it.
func Weight(w float64) PutOption {
	return func(t *workcore.Task) error {
		if math.IsNaN(w) || math.IsInf(w, 0) || w < 0 {
			return fmt.Errorf("its weight is %v: it must be a finite number of at least 0", w)
		}
		t.Weight = w
		return nil
	}
}

// Put puts a task for the function of that name, with an argument of the function's type. Any member
// may run it; this one keeps its account, and gets its result.
//
// With the context of a function that a space runs, the task is put with the record of that function:
// if the function fails or runs again elsewhere, nothing was put. Otherwise Put returns once the task
// is in the account, and waits while as many tasks of this member are open as the key open allows.
func (s *Space) Put(ctx context.Context, name string, arg any, options ...PutOption) error {
	f := s.functions[name]
	if f == nil {
		return unknown(name, s.functions)
	}
	body, err := f.encode(arg)
	if err != nil {
		return fmt.Errorf("work: put: %w", err)
	}
	t := &workcore.Task{Func: name, Body: body}
	for _, o := range options {
		if err := o(t); err != nil {
			return fmt.Errorf("work: put a task of %q: %w", name, err)
		}
	}
	if t.ID == "" {
		t.ID = s.ids.next(name)
	}
	if err := t.Check(); err != nil {
		return fmt.Errorf("work: put: %w", err)
	}
	if r, _ := ctx.Value(runKey{}).(*run); r != nil && r.space == s {
		return r.child(t, s.key(t))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.puts = true
	if r := s.results[name]; r.ended && !r.read {
		r.begin() // What is left of the phase before is not read any more.
	}
	for {
		if s.err != nil {
			return fmt.Errorf("work: put task %q: %w", t.ID, s.err)
		}
		if s.section.Open == 0 || s.out.Told.Open < s.section.Open {
			err := s.step(&workcore.Input{Kind: workcore.InPut, Task: t, Key: s.key(t)})
			if !errors.Is(err, workcore.ErrFull) {
				s.tell()
				if err != nil {
					return fmt.Errorf("work: put: %w", err)
				}
				return nil
			}
		}
		if err := s.wait(ctx, &waiter{ready: func() bool { return s.out.Told.Open < s.section.Open }}); err != nil {
			return fmt.Errorf("work: put task %q: %d tasks are open, as many as the key open allows: %w", t.ID, s.section.Open, err)
		}
	}
}

// key is the key by which a task is sorted.
func (s *Space) key(t *workcore.Task) float64 {
	if s.order == nil {
		return 0
	}
	return s.order(t.Weight, s.link.Now().Sub(s.begun).Seconds())
}

// Cancel ends a task that this member has put and that is open: it is reported as failed, and a
// function that runs it is told to return.
func (s *Space) Cancel(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	err := s.step(&workcore.Input{Kind: workcore.InCancel, ID: id})
	if s.tell(); err != nil {
		return fmt.Errorf("work: cancel: %w", err)
	}
	return nil
}
