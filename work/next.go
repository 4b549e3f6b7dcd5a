package work

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gopegasus/pegasus/internal/workcore"
)

// ErrPhaseOver says that the phase is over, so there is no next task in it.
var ErrPhaseOver = errors.New("the phase is over")

// Pulled is a task that [Space.Next] has given to the program.
type Pulled struct {
	run *run
}

// Next waits for a task of a function that was declared with [Pull], and returns it. With ids it waits for one of these
// tasks; another task stays in its slot until Next asks for it, so have enough slots. It returns
// [ErrPhaseOver] once the phase is over; a program that continues with the next phase calls it again. The task is
// the caller's until it calls [Done] or [Pulled.Fail], which it has to do for each.
func (s *Space) Next(ctx context.Context, ids ...string) (*Pulled, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ends := s.ends
	place := func() int {
		return slices.IndexFunc(s.pulled, func(r *run) bool { return len(ids) == 0 || slices.Contains(ids, r.id) })
	}
	if err := s.wait(ctx, &waiter{settles: true, awaits: true, ready: func() bool { return place() >= 0 || s.ends > ends }}); err != nil {
		return nil, err
	}
	i := place()
	if i < 0 {
		return nil, ErrPhaseOver
	}
	r := s.pulled[i]
	s.pulled = slices.Delete(s.pulled, i, i+1)
	return &Pulled{r}, nil
}

// ID is the name of the task.
func (p *Pulled) ID() string { return p.run.id }

// Func is the function that the task is for.
func (p *Pulled) Func() string { return p.run.name }

// Context ends when the task is not this member's any more. Tasks that are put with it count with the
// task's record.
func (p *Pulled) Context() context.Context { return p.run }

// Argument reads the argument of a task.
func Argument[A any](p *Pulled) (A, error) {
	return decodeValue[A]("work: the argument of task", p.run.id, p.run.body)
}

// Done records the task with its result.
func Done[R any](p *Pulled, result R) error {
	data, err := encodeResult("work: the result of task", p.run.id, result)
	if err != nil {
		return err
	}
	step := p.run.step(workcore.Done, data, nil)
	return p.end(&step)
}

// Fail reports that the task has failed. It runs again, as often as the key retry says.
func (p *Pulled) Fail(err error) error {
	return p.end(&workcore.Step{Record: workcore.Record{Fate: workcore.Failed, Error: clip(err.Error())}})
}

func (p *Pulled) end(step *workcore.Step) error {
	s := p.run.space
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs[p.run.slot] != p.run {
		return fmt.Errorf("work: task %q: it is done, or not here any more", p.run.id)
	}
	err := p.run.whyEnded()
	if s.finishRun(p.run, step); err != nil {
		return fmt.Errorf("work: task %q: %w", p.run.id, err)
	}
	return s.err
}
