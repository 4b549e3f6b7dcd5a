package work

import (
	"cmp"
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/loopcore"
	"github.com/gopegasus/pegasus/internal/workcore"
)

// ElasticLoop is one program's part in a data-parallel loop. [Loop] makes it.
type ElasticLoop struct {
	space *Space
	name  string
	total int
	home  bool
	like  string // the loop whose speeds it begins with
	read  func(ctx context.Context, low, high int) error
	have  []workcore.Span // rows that were read; used by the goroutine of the loop alone
	due   atomic.Bool     // Mine has to look between two rows

	machine    *loopcore.Loop // nil before Iterations; guarded by the lock of the space, as is:
	computing  bool           // the body runs rows
	gives      bool           // this member drains
	pauses     bool           // this member takes no work, and takes part again once it does
	withdrawal loopWithdrawal // of this member
}

// LoopOption says more of a loop.
type LoopOption func(*ElasticLoop)

// Home makes this member the home of the loop: it divides the rows, and what the loop has found lies in its process.
// One member says so. The home takes part in the loop, and it never gives its rows back.
func Home() LoopOption { return func(l *ElasticLoop) { l.home = true } }

// SpeedsOf has the home divide the first iteration by the speeds that members had in another loop, whose body costs about
// as much for each row. It is a loop of this space that runs, or is over. The default is an earlier loop of the same name.
func SpeedsOf(name string) LoopOption { return func(l *ElasticLoop) { l.like = name } }

// Loop makes a loop over the rows 0 to total-1, which the members of the space share. Each member makes it with the
// same name and total, and one of them is its [Home]. The function read is called before this member works on
// rows for the first time, with low <= row < high; nil: each process has all rows. It needs store: memory.
func Loop(s *Space, name string, total int, read func(ctx context.Context, low, high int) error, options ...LoopOption) *ElasticLoop {
	l := &ElasticLoop{space: s, name: name, total: total, read: read}
	for _, o := range options {
		o(l)
	}
	return l
}

// Iteration is one iteration of a loop at one member. It is used by the body of the loop alone.
type Iteration struct {
	Number int // from 1

	loop    *ElasticLoop
	ctx     context.Context //nolint:containedctx // That of Iterations; Mine has no other.
	carry   []byte
	opened  bool // the home has begun it
	mined   bool // Mine has ended
	reduced bool
	pos     int           // rows done
	spent   time.Duration // on them
	err     error         // why the iteration has failed here
}

// Iterations returns the iterations of the loop. The first one begins once all members of the group have called
// it. A member that comes later takes part from the next iteration on.
//
// The loop ends for all members when the body at the home is left. A body that is left at another member takes
// that member out of the loop. The loop also ends, with an error, if ctx ends, if the space is over, or if the
// home is lost. A member that drains ([Space.Drain]) gives its rows back at once, and its loop ends after
// the iteration. Iterations is called once for each loop and phase.
func (l *ElasticLoop) Iterations(ctx context.Context) iter.Seq2[*Iteration, error] {
	return func(yield func(*Iteration, error) bool) {
		if err := l.begin(); err != nil {
			yield(nil, err)
			return
		}
		why := "the body of its home has panicked"
		defer func() { l.leave(why) }()
		for {
			it, err := l.next(ctx)
			if err == nil && it == nil {
				why = ""
				return
			}
			if err != nil {
				why = err.Error()
				yield(nil, err)
				return
			}
			goesOn := yield(it, nil)
			if goesOn && it.err == nil && !it.reduced {
				it.fail(errors.New("its body has not called Reduce: call it in each iteration"))
			}
			if why = ""; it.err != nil {
				why = it.err.Error()
			}
			if goesOn && it.err != nil {
				yield(nil, it.err)
			}
			if !goesOn || it.err != nil {
				return
			}
			why = "the body of its home has panicked"
		}
	}
}

// begin makes the machine.
func (l *ElasticLoop) begin() error {
	s := l.space
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return fmt.Errorf("work: loop %q: %w", l.name, s.err)
	case s.logs != nil:
		return fmt.Errorf("work: loop %q: store: jetstream has no loops: use store: memory", l.name)
	case s.loops[l.name] != nil:
		return fmt.Errorf("work: loop %q: Iterations was called before in this phase: give another loop another name", l.name)
	}
	machine, err := loopcore.New(loopcore.Options{Name: l.name, Self: workcore.Peer(s.link.Self()), Home: l.home, Total: l.total, Speeds: l.knownSpeeds(cmp.Or(l.like, l.name))})
	if err != nil {
		return fmt.Errorf("work: %w", err)
	}
	if l.machine = machine; s.loops == nil {
		s.loops = map[string]*ElasticLoop{}
	}
	s.loops[l.name] = l
	l.gives = s.drains && !l.home
	if l.pauses = s.rule.state.Away && !l.home; l.gives || l.pauses {
		machine.GiveBack()
		l.noteWithdrawal(s.link.Now())
	}
	machine.TakeRoster(s.link.Now(), s.peers())
	s.loopChanged()
	return nil
}

// leave ends the loop here. At the home it ends for all, as failed if why is not empty.
func (l *ElasticLoop) leave(why string) {
	s := l.space
	s.mu.Lock()
	defer s.mu.Unlock()
	l.noteIdle(s.link.Now())
	if _, ended := l.machine.Ended(); !ended {
		if l.home && why != "" {
			why = fmt.Sprintf("its home, member %q, has failed: %s", s.link.Self().Name, strings.TrimPrefix(why, fmt.Sprintf("work: loop %q: ", l.name)))
		}
		l.machine.Leave(why)
		s.loopChanged()
	}
}

// over is why the loop has ended here, or nil if it goes on. The lock is held.
func (l *ElasticLoop) over() error {
	why, ended := l.machine.Ended()
	switch {
	case l.space.err != nil:
		return fmt.Errorf("work: loop %q: %w", l.name, l.space.err)
	case !ended:
		return nil
	case why == "":
		return errLoopOver
	default:
		return fmt.Errorf("work: loop %q: %s", l.name, why)
	}
}

var errLoopOver = errors.New("the home has ended the loop before the iteration was over")

// wait waits until ready, or the loop has ended. The lock is held.
func (l *ElasticLoop) wait(ctx context.Context, ready func() bool) error {
	err := l.space.wait(ctx, &waiter{ready: func() bool { return l.over() != nil || ready() }})
	if err != nil && l.space.err == nil {
		return fmt.Errorf("work: loop %q: wait: %w", l.name, context.Cause(ctx))
	}
	if l.space.err == nil && ready() { // Even if the loop has ended since.
		return nil
	}
	return l.over()
}

// next waits for the next iteration; nil: there is none.
func (l *ElasticLoop) next(ctx context.Context) (*Iteration, error) {
	s := l.space
	s.mu.Lock()
	defer s.mu.Unlock()
	err := l.wait(ctx, func() bool {
		number, _, begun := l.machine.Begun()
		return begun || l.gives || l.home && (number > 0 || len(l.machine.Missing()) == 0)
	})
	number, carry, _ := l.machine.Begun()
	switch waits := err != nil && l.over() == nil && number == 0; {
	case errors.Is(err, errLoopOver), err == nil && l.gives:
		return nil, nil //nolint:nilnil // The loop is over, which is no fault.
	case waits && l.home:
		return nil, fmt.Errorf("%w: members %q have not called Iterations", err, l.machine.Missing())
	case waits:
		return nil, fmt.Errorf("%w: no iteration has begun: one member makes the loop with the option Home, and all call Iterations", err)
	case err != nil:
		return nil, err
	case l.home:
		number++
	}
	l.withdrawal.busy = true
	return &Iteration{Number: number, loop: l, ctx: ctx, carry: carry}, nil
}

// fail keeps the first fault of the iteration, and has this member leave the loop.
func (it *Iteration) fail(err error) {
	if it.err == nil {
		if !strings.HasPrefix(err.Error(), "work: ") {
			err = fmt.Errorf("work: loop %q: iteration %d: %w", it.loop.name, it.Number, err)
		}
		it.err = err
		it.loop.leave(err.Error())
	}
}

// begin begins the iteration at the home.
func (it *Iteration) begin() {
	if !it.loop.home || it.opened || it.err != nil {
		return
	}
	s := it.loop.space
	s.mu.Lock()
	it.opened = true
	err := it.loop.machine.Open(s.link.Now(), it.carry)
	s.loopChanged()
	s.mu.Unlock()
	if err != nil {
		it.fail(fmt.Errorf("work: %w", err))
	}
}

// Carry carries a value from the home to all members: v points to it. At the home it is read, and at the others it
// is set. Each body calls it once, before Mine. Its fault is returned by [Reduce]. The value travels as bytes as
// with [Func].
func (it *Iteration) Carry(v any) {
	p := reflect.ValueOf(v)
	switch {
	case it.err != nil:
	case p.Kind() != reflect.Pointer || p.IsNil():
		it.fail(fmt.Errorf("the carried value is %T: give Carry a pointer", v))
	case it.loop.home && it.opened:
		it.fail(errors.New("the rows are handed out already: call Carry once, before Mine"))
	case it.loop.home:
		data, err := encodeAny(v)
		if it.carry = data; err != nil {
			it.fail(fmt.Errorf("the carried value cannot be written as bytes: %w", err))
		}
		it.begin()
	case len(it.carry) == 0:
		it.fail(errors.New("the home has carried no value: call Carry in the body of every program"))
	default:
		if err := decodeAny(it.carry, v); err != nil {
			it.fail(fmt.Errorf("the carried value cannot be read as %v: %w: let all members run the same version", p.Type().Elem(), err))
		}
	}
}

// Mine returns the rows that this member has in the iteration. It gets more if another member gives rows back or is
// lost, so Mine ends when all rows of all members are done. It ends early if this member drains: the others
// get the rest. A body that leaves Mine has the loop fail.
func (it *Iteration) Mine() iter.Seq[int] {
	return func(yield func(row int) bool) {
		if it.mined || it.err != nil {
			it.fail(errors.New("Mine has ended: range over it once in each iteration"))
		}
		it.begin()
		l := it.loop
		for it.err == nil {
			part, more := it.take()
			if !more {
				break
			}
			began := l.space.link.Now()
			for row := part.Low; row < part.High; row++ {
				if l.due.Load() && it.interrupted() {
					break
				}
				if !yield(row) {
					it.fail(fmt.Errorf("its body has left Mine at row %d: let it range over all rows", row))
					return
				}
				it.pos++
			}
			it.spent += l.space.link.Now().Sub(began)
		}
		it.mined = true
	}
}

// interrupted reports whether the iteration has ended here, or its rows are to be given back.
func (it *Iteration) interrupted() bool {
	s := it.loop.space
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err != nil || it.loop.gives || it.loop.pauses || it.loop.over() != nil
}

// take waits for rows that are not done, and reads them if they are new here.
func (it *Iteration) take() (part workcore.Span, more bool) {
	part, more, err := it.assigned()
	if err == nil && more && it.loop.read != nil {
		for _, gap := range unread(it.loop.have, part) {
			if err = it.loop.read(it.ctx, gap.Low, gap.High); err != nil {
				err = fmt.Errorf("rows %d to %d cannot be read: %w", gap.Low, gap.High-1, err)
				break
			}
			it.loop.have = append(it.loop.have, gap)
		}
		slices.SortFunc(it.loop.have, func(a, b workcore.Span) int { return cmp.Compare(a.Low, b.Low) })
	}
	if err != nil {
		it.fail(err)
		return part, false
	}
	return part, more
}

// unread returns the rows of a span that a sorted list does not have.
func unread(have []workcore.Span, s workcore.Span) (gaps []workcore.Span) {
	for _, h := range have {
		if h.High <= s.Low || h.Low >= s.High {
			continue
		}
		if h.Low > s.Low {
			gaps = append(gaps, workcore.Span{Low: s.Low, High: h.Low})
		}
		s.Low = h.High
	}
	if s.Len() > 0 {
		gaps = append(gaps, s)
	}
	return gaps
}

// assigned waits for rows that are not done; none: no more follow.
func (it *Iteration) assigned() (part workcore.Span, more bool, err error) {
	l := it.loop
	s := l.space
	s.mu.Lock()
	defer s.mu.Unlock()
	l.computing = false
	speed := 0.0
	if it.spent > 0 {
		speed = float64(it.pos) / it.spent.Seconds()
	}
	rest := func() (workcore.Span, bool) {
		list, _ := l.machine.Assigned()
		n := it.pos
		for _, p := range list {
			if n < p.Len() {
				return workcore.Span{Low: p.Low + n, High: p.High}, true
			}
			n -= p.Len()
		}
		return workcore.Span{}, false
	}
	if _, has := rest(); !has || l.gives || l.pauses {
		l.machine.SetDone(it.pos, speed)
		if l.gives || l.pauses {
			l.machine.GiveBack()
		}
		s.loopChanged()
	}
	given := func() bool { _, closed := l.machine.Assigned(); return closed }
	err = l.wait(it.ctx, func() bool {
		_, has := rest()
		return has || given() || l.gives || l.pauses
	})
	if err == nil {
		err = l.over()
	}
	if err != nil || l.gives || l.pauses {
		return part, false, err
	}
	part, l.computing = rest()
	return part, l.computing, nil
}

// Reduce ends the iteration at this member with its partial result, and returns what the partial results of all
// members come to by add. At the home add is called with them in the order of their first rows. Which rows are in
// which partial result depends on speeds and faults: the value is the same to the bit if add gives the same in any
// order, as sums of integers do. Partial results without rows are left out.
//
// Each body calls it once, after Mine. It returns the first fault of the iteration at this member. A partial result
// travels as bytes as with [Func].
func Reduce[T any](ctx context.Context, it *Iteration, partial T, add func(a, b T) T) (T, error) {
	if !it.mined || it.reduced {
		it.fail(errors.New("Reduce comes once in each iteration, after Mine has ended"))
	}
	typ := reflect.TypeFor[T]().String()
	data, err := encodeAny(&partial)
	if err != nil {
		it.fail(fmt.Errorf("its partial result cannot be written as bytes: %w", err))
	}
	parts, data := it.exchange(ctx, data, typ)
	var sum T
	switch {
	case it.err != nil:
	case it.loop.home:
		if sum, err = fold(parts, typ, add); err == nil {
			data, err = encodeAny(&sum)
		}
		if err != nil {
			it.fail(err)
		}
		it.share(data)
	default:
		if err := decodeAny(data, &sum); err != nil {
			it.fail(fmt.Errorf("the reduced value cannot be read as %s: %w: let all programs reduce the same type", typ, err))
		}
	}
	if it.err != nil {
		return *new(T), it.err
	}
	it.reduced = true
	return sum, nil
}

// fold adds up partial results in their order.
func fold[T any](parts []loopcore.Part, typ string, add func(a, b T) T) (sum T, err error) {
	for i, p := range parts {
		var v T
		if p.Type != typ {
			return sum, fmt.Errorf("the partial result of member %q is %s, and its home reduces %s: let all programs reduce the same type", p.Member, p.Type, typ)
		}
		if err := decodeAny(p.Value, &v); err != nil {
			return sum, fmt.Errorf("the partial result of member %q cannot be read as %s: %w: let all members run the same version", p.Member, typ, err)
		}
		if i == 0 {
			sum = v
		} else {
			sum = add(sum, v)
		}
	}
	return sum, nil
}

// exchange gives the partial result of this member, and waits for those of all, at the home, or for the reduced value.
func (it *Iteration) exchange(ctx context.Context, data []byte, typ string) (parts []loopcore.Part, value []byte) {
	if it.err != nil {
		return nil, nil
	}
	l := it.loop
	s := l.space
	s.mu.Lock()
	err := l.over()
	if err == nil {
		err = l.machine.SetPartial(data, typ)
	}
	if err == nil {
		l.noteIdle(s.link.Now())
		s.loopChanged()
		ready := false
		err = l.wait(ctx, func() bool {
			if l.home {
				parts, ready = l.machine.Parts()
			} else {
				value, ready = l.machine.Value(it.Number)
			}
			return ready
		})
	}
	s.mu.Unlock()
	if err != nil {
		it.fail(err)
	}
	return parts, value
}

// share sends the reduced value to all.
func (it *Iteration) share(data []byte) {
	if it.err != nil {
		return
	}
	s := it.loop.space
	s.mu.Lock()
	err := it.loop.over()
	if err == nil {
		err = it.loop.machine.Reduced(s.link.Now(), data)
	}
	s.loopChanged()
	s.mu.Unlock()
	if err != nil {
		it.fail(err)
	}
}

// encodeAny is a value as bytes, as encode has them; v points to it, or to a pointer to it.
func encodeAny(v any) (data []byte, err error) {
	p := reflect.ValueOf(v)
	for p.Elem().Kind() == reflect.Pointer && !p.Elem().IsNil() {
		p = p.Elem()
	}
	if fault := muteOf(p.Type().Elem()); fault != "" {
		return nil, errors.New(fault)
	}
	switch v := p.Interface().(type) {
	case encoding.BinaryMarshaler:
		return v.MarshalBinary()
	case *[]byte:
		return *v, nil
	default:
		return json.Marshal(v)
	}
}

// decodeAny reads what encodeAny has written; v points to a value, or to a pointer to it, which is replaced.
func decodeAny(data []byte, v any) error {
	p := reflect.ValueOf(v)
	for p.Elem().SetZero(); p.Elem().Kind() == reflect.Pointer; p = p.Elem() {
		p.Elem().Set(reflect.New(p.Elem().Type().Elem()))
	}
	switch v := p.Interface().(type) {
	case encoding.BinaryUnmarshaler:
		return v.UnmarshalBinary(data)
	case *[]byte:
		*v = slices.Clone(data)
		return nil
	default:
		return json.Unmarshal(data, v)
	}
}

// peers are the lives of the roster, in a fixed order. The lock is held.
func (s *Space) peers() []workcore.Peer {
	list := make([]workcore.Peer, 0, len(s.roster))
	for p := range s.roster {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b workcore.Peer) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.Life, b.Life))
	})
	return list
}

// loopChanged sends what loops have to send, and looks whether calls are over. The lock is held.
func (s *Space) loopChanged() {
	s.sendLoops()
	for _, l := range s.loops {
		_, ended := l.machine.Ended()
		l.due.Store(ended || l.gives || l.pauses || s.err != nil)
	}
	s.releaseCallers()
	if s.err == nil {
		s.tell(s.link.Now())
	}
}

// sendLoops sends what is due. The lock is held.
func (s *Space) sendLoops() {
	if s.err != nil {
		return
	}
	now, wake := s.link.Now(), clocksync.MaxInstant
	for _, l := range s.loops {
		for _, f := range l.machine.Frames(now, nil) {
			f.Phase = s.phase
			s.sender.add(now, &f)
		}
		wake = min(wake, l.machine.Wake())
	}
	if wake < s.loopWake {
		s.wakeLoop()
	}
	s.loopWake = wake
}

// takeLoopFrame takes a frame of a member of a loop. Without a loop of that name here it is dropped: the other one sends it
// again. The lock is held.
func (s *Space) takeLoopFrame(f *workcore.Frame) {
	l := s.loops[f.Loop.Name]
	if l == nil || f.Phase != s.phase || f.To != workcore.Peer(s.link.Self()) {
		return
	}
	frame := *f.Loop
	frame.Spans = slices.Clone(frame.Spans) // The reader fills it again.
	l.machine.TakeFrame(s.link.Now(), f.From, &frame)
	s.loopChanged()
}

// takeLoopRoster has the loops hear of a new roster. The lock is held.
func (s *Space) takeLoopRoster() {
	if len(s.loops) == 0 || s.err != nil {
		return
	}
	for _, l := range s.loops {
		l.machine.TakeRoster(s.link.Now(), s.peers())
	}
	s.loopChanged()
}

// withdrawLoops has this member give back its rows of loops while it drains or takes no work, and take rows again after
// that. The lock is held.
func (s *Space) withdrawLoops() {
	for _, l := range s.loops {
		l.gives, l.pauses = s.drains && !l.home, s.rule.state.Away && !l.home
		l.noteWithdrawal(s.link.Now())
		switch {
		case !l.gives && !l.pauses:
			l.machine.TakeBack()
		case !l.computing: // Else Mine tells which rows are done.
			l.machine.GiveBack()
		}
	}
	s.loopChanged()
}

// forgetLoops forgets the loops that are over: their names may be used again. The lock is held.
func (s *Space) forgetLoops() {
	maps.DeleteFunc(s.loops, func(_ string, l *ElasticLoop) bool {
		_, ended := l.machine.Ended()
		if ended {
			s.keepSpeeds(l)
		}
		return ended
	})
}

// inLoop reports whether this member is in a loop that goes on. No phase ends meanwhile. The lock is held.
func (s *Space) inLoop() bool {
	for _, l := range s.loops {
		if _, ended := l.machine.Ended(); !ended {
			return true
		}
	}
	return false
}
