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

// After has a task run after others: once they are done, with all parts of those that are bags. If one of them
// fails for good, is poisoned or cancelled, the task fails as well, and its [*TaskError] names that one. A
// task may run after 64 others at most. They are tasks of the same member and phase: those that it has put,
// and those that functions of its tasks have put. What the functions of these others put is not waited for,
// unless it is named as well.
//
// A task that was not put yet is waited for. If it never comes, the phase does not end; `pegasus work
// status` tells how many tasks wait, and for how many IDs that no task has. A put that closes a circle is
// refused; if a function closes one, the last of the tasks that it has put fails.
func After(ids ...string) PutOption {
	return func(t *workcore.Task) error {
		t.After = append(t.After, ids...)
		return nil
	}
}

// Put puts a task for the function of that name, with an argument of the function's type. Any member
// may run it; this one keeps its account, and gets its result.
//
// With the context of a function that a space runs, the task is put with the record of that function:
// if the function fails or runs again elsewhere, nothing was put. Otherwise Put returns once the task
// is in the account, with store: jetstream once the log has it, and waits while as many tasks of this member are open as the key open allows. It
// returns an error instead if all of these wait for tasks that were not put ([After]).
func (s *Space) Put(ctx context.Context, name string, arg any, options ...PutOption) error {
	if f := s.functions[name]; f != nil && (f.object != nil || f.kind != "") {
		return fmt.Errorf("work: put: %q is about objects: use Create and Send", name)
	}
	return s.put(ctx, name, arg, options)
}

func (s *Space) put(ctx context.Context, name string, arg any, options []PutOption) error {
	f := s.functions[name]
	if f == nil {
		return unknownFunc(name, s.functions)
	}
	body, err := f.encode(arg)
	if err != nil {
		return fmt.Errorf("work: put: %w", err)
	}
	return s.putBody(ctx, name, body, options)
}

func (s *Space) putBody(ctx context.Context, name string, body []byte, options []PutOption) error {
	t, err := s.makeTask(name, body, options)
	if err != nil {
		return err
	}
	if err := s.checkReads(&t); err != nil {
		return err
	}
	if r, _ := ctx.Value(runKey{}).(*run); r != nil && r.space == s {
		return r.child(&t, s.key(&t))
	}
	if err := s.putTask(ctx, name, &t); err != nil {
		return err
	}
	s.tracePut(&t)
	return nil
}

// putTask puts a task into the account of this member.
func (s *Space) putTask(ctx context.Context, name string, t *workcore.Task) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.puts = true
	if r := s.results[name]; r.ended && !r.read {
		r.beginPhase() // What is left of the phase before is not read any more.
	}
	for {
		if s.err != nil {
			return fmt.Errorf("work: put task %q: %w", t.ID, s.err)
		}
		if s.logs != nil && s.logs.isFull() {
			if err := s.wait(ctx, &waiter{ready: func() bool { return !s.logs.isFull() }}); err != nil {
				return fmt.Errorf("work: put task %q: the log is filled to three quarters of log.most: %w", t.ID, err)
			}
			continue
		}
		if s.section.Open == 0 || s.out.Told.Open < s.section.Open {
			s.putting = *t
			err := s.step(&workcore.Input{Kind: workcore.InPut, Task: &s.putting, Key: s.key(t)})
			if !errors.Is(err, workcore.ErrFull) {
				s.tell(s.now)
				if err != nil {
					return fmt.Errorf("work: put: %w", err)
				}
				return s.logged(ctx, t.ID)
			}
		}
		if s.outOfReach() {
			return fmt.Errorf("work: put task %q: all %d tasks that are open wait for tasks that were not put, and the key open allows no more: put tasks before those that run after them, or raise open", t.ID, s.out.Told.Open)
		}
		if err := s.wait(ctx, &waiter{ready: func() bool { return s.out.Told.Open < s.section.Open || s.outOfReach() }}); err != nil {
			return fmt.Errorf("work: put task %q: %d tasks are open, as many as the key open allows: %w", t.ID, s.section.Open, err)
		}
	}
}

// logged waits until the log has what was put last. The lock is held.
func (s *Space) logged(ctx context.Context, id string) error {
	if s.logs == nil {
		return nil
	}
	ticket := s.machine.Ticket()
	if err := s.wait(ctx, &waiter{ready: func() bool { return s.machine.Written() >= ticket }}); err != nil {
		return fmt.Errorf("work: put task %q: the log has not taken it yet, and may do so: put it again with the same ID: %w", id, err)
	}
	return nil
}

// makeTask makes the task of a put.
func (s *Space) makeTask(name string, body []byte, options []PutOption) (workcore.Task, error) {
	t := workcore.Task{Func: name, Body: body}
	if len(options) > 0 {
		said := t // It escapes to the options, and most puts have none.
		for _, o := range options {
			if err := o(&said); err != nil {
				return t, fmt.Errorf("work: put a task of %q: %w", name, err)
			}
		}
		t = said
	}
	if t.ID == "" {
		t.ID = s.ids.nextID(name)
	}
	if err := t.Check(); err != nil {
		return t, fmt.Errorf("work: put: %w", err)
	}
	return t, nil
}

// outOfReach reports whether no open task can end before another one is put. Circles are refused, so some
// of them wait for an ID that no task has. The lock is held.
func (s *Space) outOfReach() bool {
	t := &s.out.Told
	return t.Blocked > 0 && t.Blocked == t.Open
}

// key is the key by which a task is sorted.
func (s *Space) key(t *workcore.Task) float64 {
	if s.order == nil {
		return 0
	}
	return s.order(t.Weight, s.link.Now().Sub(s.begun).Seconds())
}

// Cancel ends a task that this member has put and that is open: it is reported as failed, and a
// function that runs it gets the order to return.
func (s *Space) Cancel(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	err := s.step(&workcore.Input{Kind: workcore.InCancel, ID: id})
	if s.tell(s.now); err != nil {
		return fmt.Errorf("work: cancel: %w", err)
	}
	return nil
}
