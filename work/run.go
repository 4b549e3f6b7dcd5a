package work

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopegasus/pegasus/internal/workcore"
)

// run is one run of a task in a slot, and the context of its function.
type run struct {
	space  *Space
	slot   int
	id     string
	body   []byte
	f      *function // nil: this member has not declared it
	name   string    // of the function
	remote bool      // another member has put the task
	told   int64     // items, as the machine knows; guarded by the lock of the space
	stuck  bool      // the function was told to return and has not; guarded by that lock, as is:
	timer  *time.Timer

	bag      *openBag      // nil: it is no bag; used by the function's goroutine alone
	recorded chan struct{} // of a bag, capacity 1: what was yielded counts

	items atomic.Int64 // left in the bag, at the last Yield
	asked atomic.Int64 // of them are to be given away
	save  atomic.Bool  // the bag is to be saved
	due   atomic.Bool  // Yield has something to do

	mu       sync.Mutex // guards all below; taken inside the lock of the space
	ended    chan struct{}
	cause    error // why the context has ended; nil: it has not
	children []workcore.Task
	keys     []float64
	warned   bool

	// Of an object, used by the function's goroutine alone:
	reads map[string][]byte // data; nil: the task reads none
	names []string          // of these
	lacks string            // why they are not here; empty: they are

	inbox        []workcore.Message
	fence        uint64
	served       int
	pinned, ends bool
}

var closedChannel = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

type runKey struct{}

// Deadline is for context.Context.
func (r *run) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

// Done is for context.Context.
func (r *run) Done() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended == nil {
		if r.cause != nil {
			r.ended = closedChannel
		} else {
			r.ended = make(chan struct{})
		}
	}
	return r.ended
}

// Err is for context.Context.
func (r *run) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cause != nil {
		return context.Canceled
	}
	return nil
}

// Value is for context.Context.
func (r *run) Value(key any) any {
	if key == (runKey{}) {
		return r
	}
	return nil
}

// cancelRun ends the context.
func (r *run) cancelRun(cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cause != nil {
		return
	}
	if r.cause = cause; r.ended != nil {
		close(r.ended)
	}
	r.due.Store(true) // Yield returns the cause.
}

// whyEnded is the cause of the end of the context, or nil.
func (r *run) whyEnded() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cause
}

// askBag has the function give a part of its bag away, or save it.
func (r *run) askBag(items int) {
	r.asked.Store(int64(items))
	r.save.Store(items == 0)
	r.due.Store(true)
}

// startRun begins a run. The lock of the space is held.
func (s *Space) startRun(in workcore.Run) {
	r := &run{
		space: s, slot: in.Slot, id: in.Task.ID, body: in.Task.Body, f: s.functions[in.Task.Func], name: in.Task.Func,
		inbox: in.Inbox, fence: in.Fence, pinned: in.Pinned,
		remote: in.Account != workcore.Peer(s.link.Self()),
	}
	s.bindData(r, in.Task.Reads)
	if r.f != nil && r.f.total != nil {
		if r.recorded = make(chan struct{}, 1); r.remote {
			s.wakeLoop() // The loop has it saved at a pace.
		}
	}
	for in.Slot >= len(s.runs) { // Functions that wait have left their slots.
		s.runs = append(s.runs, nil)
	}
	s.runs[in.Slot] = r
	switch {
	case r.f != nil && r.f.pulled:
		s.pulled = append(s.pulled, r)
	case s.reuse && s.handed == nil:
		s.handed = r
	default:
		s.running.Go(func() { s.runTasks(r) })
	}
}

// runTasks runs a task, and then what its slot or another one has next.
func (s *Space) runTasks(r *run) {
	for last := new(workcore.Step); r != nil; { // The machine keeps none of it but its bytes.
		*last = r.call()
		s.mu.Lock()
		s.reuse = true
		s.finishRun(r, last)
		s.reuse = false
		r, s.handed = s.handed, nil
		s.mu.Unlock()
	}
}

// finishRun hands the last record of a run to the machine. The lock is held.
func (s *Space) finishRun(r *run, step *workcore.Step) {
	s.runs[r.slot] = nil
	if r.timer != nil {
		r.timer.Stop()
	}
	if r.stuck {
		s.stuck--
	}
	if s.err == nil {
		if err := s.step(&workcore.Input{Kind: workcore.InDone, Slot: r.slot, Step: step}); err != nil {
			s.log.Warn("result of a task was refused", "task", r.id, "error", err)
		}
		s.tell(s.now)
	}
	r.cancelRun(context.Canceled)
}

// call calls the function, and makes the record of what it has come to.
func (r *run) call() workcore.Step {
	result, err := r.guarded()
	if err != nil {
		return workcore.Step{Record: workcore.Record{Fate: workcore.Failed, Error: clip(err.Error())}}
	}
	if r.inbox != nil {
		return r.recordObject(result)
	}
	return r.step(workcore.Done, result, nil)
}

// guarded calls the function; a panic is its error.
func (r *run) guarded() (result []byte, err error) {
	if r.lacks != "" {
		return nil, errors.New(r.lacks)
	}
	if r.f == nil || r.f.remote {
		return nil, fmt.Errorf("member %q has declared no function %q: declare the same functions in every program of the space", r.space.link.Self().Name, r.name)
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			r.space.log.Error("a function of a task has panicked", "task", r.id, "function", r.name, "error", err)
		}
	}()
	if r.space.trace == nil {
		return r.f.run(r, r)
	}
	begun := r.space.link.Now()
	if result, err = r.f.run(r, r); err == nil {
		r.traceRun(begun)
	}
	return result, err
}

func clip(text string) string {
	if len(text) <= workcore.MaxError {
		return text
	}
	return strings.ToValidUTF8(text[:workcore.MaxError], "")
}

// step makes a record with the tasks that the function has put.
func (r *run) step(fate workcore.Fate, result, rest []byte) workcore.Step {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := workcore.Step{Record: workcore.Record{Fate: fate, Result: result, Rest: rest, Children: r.children}, Keys: r.keys}
	r.children, r.keys = nil, nil
	return s
}

// child takes a task that the function puts.
func (r *run) child(t *workcore.Task, key float64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cause != nil {
		return r.cause
	}
	for i := range r.children {
		if r.children[i].ID == t.ID {
			return fmt.Errorf("work: put task %q: %w: its function has put it before", t.ID, ErrDuplicateID)
		}
	}
	if len(r.children) == workcore.MaxChildren {
		return fmt.Errorf("work: put task %q: the function has put %d tasks since its last record, and no more are allowed: call Yield, or put tasks that put more", t.ID, workcore.MaxChildren)
	}
	r.children, r.keys = append(r.children, *t), append(r.keys, key)
	if r.bag != nil && len(r.children) >= workcore.MaxChildren/2 {
		r.due.Store(true)
	}
	return nil
}

// stopRun tells a function to return. The lock of the space is held.
func (s *Space) stopRun(r *run) {
	if r == nil || r.whyEnded() != nil {
		return
	}
	r.cancelRun(ErrTaskGone)
	if i := slices.Index(s.pulled, r); i >= 0 { // Nobody has it yet, so nobody will return.
		s.pulled = slices.Delete(s.pulled, i, i+1)
		s.running.Go(func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.finishRun(r, &workcore.Step{Record: workcore.Record{Fate: workcore.Failed, Error: ErrTaskGone.Error()}})
		})
		return
	}
	if s.section.Stuck > 0 {
		r.timer = time.AfterFunc(s.section.Stuck, func() { s.noteStuck(r) })
	}
}

// noteStuck counts a function that does not return. Its slot runs nothing else.
func (s *Space) noteStuck(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs[r.slot] != r || r.stuck {
		return
	}
	r.stuck = true
	s.stuck++
	s.log.Error("a function continues though its context has ended; its slot runs nothing until it returns", "task", r.id, "function", r.name, "after", s.section.Stuck)
	s.tell(s.link.Now())
}

// runsForeignBag reports whether a bag of another member runs here. The lock is held.
func (s *Space) runsForeignBag() bool {
	return slices.ContainsFunc(s.runs, func(r *run) bool { return r != nil && r.remote && r.recorded != nil })
}

// saveBags has the bags of other members saved at their next Yield. The lock is held.
func (s *Space) saveBags() {
	for _, r := range s.runs {
		if r != nil && r.remote { // An own bag dies with this process, saved or not.
			r.save.Store(true)
			r.due.Store(true)
		}
	}
}

var errNoRun = errors.New("work: Yield needs the context of a function that a space runs")

// Yield is where a bag may be split, saved and interrupted. The function of a bag calls it often, each
// millisecond or so: most calls cost some nanoseconds. It returns an error when the function has to
// return: the task is not this member's any more ([ErrTaskGone]), or the space is closed. Between two calls
// the bag belongs to the function; a call may take items out of it, and sets the sum found so far
// to zero once it is saved. It also commits the tasks that the function has put. In a function that is
// no bag it tells only whether to return.
func Yield(ctx context.Context) error {
	r, _ := ctx.Value(runKey{}).(*run)
	if r == nil {
		return errNoRun
	}
	if r.bag != nil {
		r.items.Store(int64(r.bag.len()))
	}
	if !r.due.Load() {
		return nil
	}
	_, err := r.yield()
	return err
}

// Save is [Yield], and has the bag saved whenever it has items left: once Save returns nil, the sum found so far counts,
// even if this process dies. A bag without items is saved when its function returns.
func Save(ctx context.Context) error {
	r, _ := ctx.Value(runKey{}).(*run)
	if r == nil || r.bag == nil {
		return errNoBag
	}
	r.items.Store(int64(r.bag.len()))
	r.save.Store(true)
	unsaved, err := r.yield()
	return cmp.Or(err, unsaved)
}

var errNoBag = errors.New("work: Save needs the context of the function of a bag that a space runs")

// yield does what is due. Unsaved says why a bag could be neither split nor saved.
func (r *run) yield() (unsaved, err error) {
	if err := r.whyEnded(); err != nil {
		return nil, err
	}
	r.due.Store(false)
	if r.bag == nil {
		return nil, nil
	}
	n := r.bag.len()
	asked := min(int(r.asked.Swap(0)), n-1)
	save := r.save.Swap(false) || r.hasChildren()
	if n == 0 || asked <= 0 && !save {
		return nil, nil // A function that has nothing left returns, and that is a record.
	}
	rest, err := r.bag.rest() // It must fit before it is split: a split cannot be undone.
	if err != nil {
		r.warn(err)
		return err, nil
	}
	if asked > 0 {
		part, err := r.bag.part(asked)
		if err != nil {
			return nil, err
		}
		if err := r.child(&workcore.Task{ID: r.space.ids.nextID(r.id), Func: r.name, Body: part, Part: true, Reads: r.names}, 0); err != nil {
			return nil, err
		}
		if rest, err = r.bag.rest(); err != nil {
			return nil, err
		}
	}
	found, err := r.bag.take()
	if err != nil {
		return nil, err
	}
	step := r.step(workcore.Kept, found, rest)
	return nil, r.record(&step)
}

// reportBag tells how much a bag has before its function works on it, so that others may ask for a part.
func (r *run) reportBag(items int) {
	r.items.Store(int64(items))
	r.space.mu.Lock()
	defer r.space.mu.Unlock()
	if r.space.err == nil {
		r.space.tellItems()
	}
}

func (r *run) hasChildren() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.children) > 0
}

// record hands a step to the machine and waits until it counts.
func (r *run) record(step *workcore.Step) error {
	s := r.space
	s.mu.Lock()
	if s.err != nil || s.runs[r.slot] != r {
		s.mu.Unlock()
		return ErrTaskGone
	}
	r.told = int64(r.bag.len())
	r.items.Store(r.told)
	err := s.step(&workcore.Input{Kind: workcore.InYield, Slot: r.slot, Step: step, Items: int(r.told)})
	s.tell(s.now)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case <-r.recorded:
		return nil
	case <-r.Done():
		return r.whyEnded()
	}
}

// warn tells once for a run that its bag cannot be split.
func (r *run) warn(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.warned {
		r.warned = true
		r.space.log.Warn("a bag can be neither split nor saved now", "task", r.id, "function", r.name, "error", err)
	}
}

// ids makes names that no other member makes.
type ids struct {
	mu     sync.Mutex
	random *rand.ChaCha8
}

func newIDs() *ids {
	var seed [32]byte
	_, _ = crand.Read(seed[:]) // It never fails.
	return &ids{random: rand.NewChaCha8(seed)}
}

// nextID names a part of a task, or a task that has no name of its own.
func (i *ids) nextID(of string) string {
	root, _, _ := strings.Cut(of, "~")
	i.mu.Lock()
	n := i.random.Uint64()
	i.mu.Unlock()
	var digits [16]byte // 2^64 has 13 digits.
	id := strconv.AppendUint(append(digits[:0], '~'), n, 36)
	return root[:min(len(root), workcore.MaxID-len(id))] + string(id)
}
