package agent

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"

	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/scgs"
)

// BlockThread is one thread of a block on a processor. Its methods may be called from
// any goroutine until the block has ended; after that Set and Region answer
// [ErrClosed].
type BlockThread struct {
	thread *Thread
	run    *Run
	index  int
	count  int
}

// Index is the number of the thread, from 0; predicates of the thread-level
// synchronizer know it as the member t0, t1 and so on.
func (t *BlockThread) Index() int { return t.index }

// Count is how many threads the program gives the block.
func (t *BlockThread) Count() int { return t.count }

// Run is the run of the block that the thread belongs to.
func (t *BlockThread) Run() *Run { return t.run }

// Set begins a new state of the thread now, as [Member.Set] does for a member. The
// thread-level synchronizer knows of the threads together once each has set one. Set may
// take a turn of it on the caller's goroutine; see [Thread.Set].
func (t *BlockThread) Set(state any) error { return t.thread.Set(state) }

// SetProcess begins a new state of the process beside the threads, which the
// thread-level synchronizer declares under process. Where it does, it knows of the
// threads together only once there is one.
func (t *BlockThread) SetProcess(state any) error {
	defer t.thread.above.runDue()
	t.thread.mu.Lock()
	defer t.thread.mu.Unlock()
	if t.thread.closed {
		return ErrClosed
	}
	return t.thread.above.setProcess(state)
}

// Region runs work inside a region of the thread, which the predicates of the
// thread-level synchronizer can signal; see [Member.Region].
func (t *BlockThread) Region(ctx context.Context, name string, work Work, opts ...RegionOption) error {
	return t.thread.Region(ctx, name, work, opts...)
}

// ThreadBlock names a function as a block with threads: the terminal block of the PEGASUS
// paper's figure 2.5. It is for blocks to which a program gives threads, and only for these.
// The function thread is called once for each thread, side by side and with the same input, and
// takes its part by [BlockThread.Index]. When all calls have returned, join makes the result of
// the block from their results, in the order of the threads' numbers.
//
// The threads report to the thread-level synchronizer that the program names for the block. It
// runs inside the process from before the first call until the last call has returned. Each run
// of the block has a synchronizer of its own, with memory as declared. A thread that has
// returned remains in its global states with its last state: the epoch does not change before
// the end.
//
// A cancellation of the block ends the context of all its threads. Otherwise a thread is done
// if it returns no error, or an error that is or wraps the [Canceled] of its synchronizer's
// predicate; its other result counts. With any other error, or a panic, the context of the
// other threads ends with that cause. When all have returned, the block fails with it; join is
// not called.
//
// [ThreadState] has [JoinNode] compare the type of the threads' state with the
// declaration of the program, if there is a program by then. Input and result are as for
// [Block].
func ThreadBlock[In, Part, Out any](
	name string,
	thread func(ctx context.Context, t *BlockThread, input In) (Part, error),
	join func(ctx context.Context, r *Run, input In, parts []Part) (Out, error),
	opts ...ThreadOption,
) BlockCode {
	b := Block(name, func(ctx context.Context, r *Run, input In) (out Out, err error) {
		c, err := r.p.crew(r, opts)
		if err != nil {
			return out, err
		}
		parts := make([]Part, len(c.threads))
		if err := c.work(ctx, func(ctx context.Context, t *BlockThread) (err error) {
			parts[t.index], err = thread(ctx, t, input)
			return err
		}); err != nil {
			return out, err
		}
		return join(ctx, r, input, parts)
	})
	b.threaded, b.opts = true, opts
	return b
}

// crew is the threads of a single run of a block, and the level above them.
type crew struct {
	p       *processor
	run     *Run
	level   *level
	stop    chan struct{}
	running sync.WaitGroup // of the level
	threads []*BlockThread

	once   sync.Once
	failed error
}

// crew makes the threads that the program gives the block of a run.
func (p *processor) crew(r *Run, opts []ThreadOption) (*crew, error) {
	m := p.m
	m.mu.Lock()
	plan := p.levels[r.block]
	if plan == nil {
		m.mu.Unlock()
		return nil, fmt.Errorf("block %q: its code is for threads, and the program gives it none that this node can run: declare threads: N for it", r.block)
	}
	c := &crew{p: p, run: r, stop: make(chan struct{}), threads: make([]*BlockThread, plan.Members.Count)}
	c.level = newLevel(m, plan, c.stop)
	c.level.told = func(row []scgs.Value) { p.summarized(plan, row) }
	m.level = c.level
	m.mu.Unlock()
	c.running.Go(c.level.runTurns)
	if err := c.open(opts); err != nil {
		c.end()
		return nil, fmt.Errorf("block %q: %w", r.block, err)
	}
	return c, nil
}

// open adds the threads to the level, all before any is awaited.
func (c *crew) open(opts []ThreadOption) error {
	for i := range c.threads {
		t, err := c.level.openThread("t"+strconv.Itoa(i), opts)
		if err != nil {
			return err
		}
		c.threads[i] = &BlockThread{t, c.run, i, len(c.threads)}
	}
	for _, t := range c.threads {
		if err := t.thread.awaitAnswer(); err != nil {
			return err
		}
	}
	return nil
}

// work runs the threads until all have returned, and ends the level.
func (c *crew) work(ctx context.Context, do func(context.Context, *BlockThread) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var threads sync.WaitGroup
	for _, t := range c.threads {
		threads.Go(func() {
			err := errors.New("ended without returning")
			defer func() {
				if v := recover(); v != nil {
					err = fmt.Errorf("panicked: %v\n\n%s", v, debug.Stack())
				}
				c.returned(t, err, cancel)
			}()
			defer c.p.pinThread()()
			err = do(ctx, t)
		})
	}
	threads.Wait()
	c.end()
	return c.failed
}

// returned takes the end of a thread. The first that fails ends the others.
func (c *crew) returned(t *BlockThread, err error, cancel context.CancelCauseFunc) {
	canceled, ok := errors.AsType[*Canceled](err)
	if err == nil || ok && canceled.Decision.Synchronizer == c.level.plan.Name {
		return
	}
	c.once.Do(func() {
		c.failed = fmt.Errorf("block %q: thread %d: %w", c.run.block, t.index, err)
		cancel(c.failed)
	})
}

// end ends the level when it has seen the last states of the threads.
func (c *crew) end() {
	close(c.stop)
	c.running.Wait()
	m := c.p.m
	m.mu.Lock()
	defer m.mu.Unlock()
	c.level.takeLastTurns()
	c.level.shutThreads()
	m.gone = m.gone.add(c.level.signalStats())
	m.level = nil
}

// summarized takes what the summary of a block's threads says of the fields that are
// declared for blocks. The lock is held.
func (p *processor) summarized(plan *plan.Level, row []scgs.Value) {
	if len(row) != len(p.row) {
		return // It is of the program before.
	}
	next := slices.Clone(p.row)
	for i := range row {
		if plan.Summarizes(i) {
			next[i] = row[i]
		}
	}
	if slices.Equal(next, p.row) {
		return
	}
	if err := p.setRow(next); err != nil && !errors.Is(err, ErrClosed) {
		p.m.log.Warn("the summary of a block's threads cannot be told", "member", p.m.cfg.Name, "error", err)
	}
}
