package work

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/callcore"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/link"
	"github.com/gopegasus/pegasus/internal/workcore"
	"github.com/gopegasus/pegasus/predicates"
)

// The causes of a [*CallError].
var (
	// ErrServerLost says that all servers which had the call are lost.
	ErrServerLost = errors.New("its servers are lost")
	// ErrServersFull says that all servers refused the call.
	ErrServersFull = errors.New("its servers are full")
)

// CallError is a call without a result.
type CallError struct {
	Name   string // of the function
	Member string // the server that has answered, was lost or refused last
	Tries  int    // how often the call has begun
	Text   string // the error of the function; empty: Cause is set
	Cause  error  // ErrServerLost or ErrServersFull
}

// Error names the function and the member, and tells why.
func (e *CallError) Error() string {
	switch {
	case errors.Is(e.Cause, ErrServerLost):
		return fmt.Sprintf("work: call %q: its server %q is lost, the last of %d tries: look at what it does to a process, or raise retry of the call", e.Name, e.Member, e.Tries)
	case errors.Is(e.Cause, ErrServersFull):
		return fmt.Sprintf("work: call %q: its servers are full, the last of them is %q: wait for answers before the next call, or add servers", e.Name, e.Member)
	}
	return fmt.Sprintf("work: call %q: its function has failed at %q: %s", e.Name, e.Member, e.Text)
}

// Unwrap returns the cause.
func (e *CallError) Unwrap() error { return e.Cause }

// callServer is a function that serves calls.
type callServer struct {
	name string
	run  func(ctx context.Context, body []byte) ([]byte, error)
}

// Server declares a function that serves calls of that name. Any member of the group may call it with [Client]. Argument
// and result travel as with [Func]. A member runs as many calls of a function at a time as the key slots says.
//
// A call is not a task: it goes to one server, the answer goes to the caller, and nobody keeps it. If the function returns
// an error or panics, the caller gets a [*CallError]. If the member is lost, another one runs the call again, so the
// function must bear to run twice. ctx ends when nobody waits for the answer, and when the space is closed.
func Server[A, R any](name string, f func(ctx context.Context, arg A) (R, error)) Option {
	fault := cmp.Or(mute[A](), mute[R]())
	switch {
	case name == "" || len(name) > callcore.MaxName:
		fault = fmt.Sprintf("its name has %d bytes: give it one of 1 to %d", len(name), callcore.MaxName)
	case f == nil:
		fault = "its function is nil"
	}
	if fault != "" {
		return Option{err: fmt.Errorf("work: server %.40q: %s", name, fault)}
	}
	return Option{server: &callServer{name, func(ctx context.Context, body []byte) ([]byte, error) {
		arg, err := decodeValue[A]("the argument", "", body)
		if err != nil {
			return nil, err
		}
		result, err := f(ctx, arg)
		if err != nil {
			return nil, err
		}
		return encodeResult("the result", "", result)
	}}}
}

// Calls is one function that other members serve. [Client] makes it.
type Calls[A, R any] struct {
	space *Space
	name  string
}

// Client returns the calls of a function with that name. The members that have opened the space with a [Server] of that
// name serve them, this one as well if it has. A and R are the types of the server.
func Client[A, R any](s *Space, name string) *Calls[A, R] { return &Calls[A, R]{s, name} }

// CallOption says more of a call.
type CallOption func(*callcore.Stage) error

// CallWeight says how long a call will take, in a unit of the program. The key priority of the configuration may read it.
func CallWeight(w float64) CallOption {
	return func(s *callcore.Stage) error {
		s.Weight = w
		return finite("weight", w)
	}
}

// Loc says where a call works, such as the track of a disk. The key priority of the configuration may read it.
func Loc(x float64) CallOption {
	return func(s *callcore.Stage) error {
		s.Loc = x
		return finite("loc", x)
	}
}

func finite(what string, x float64) error {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return fmt.Errorf("its %s is %v: it must be a finite number", what, x)
	}
	return nil
}

// Call is a call that was made.
type Call[R any] struct {
	space *Space
	name  string // of the function whose result it has
	call  *openCall
	place int // among the functions of the chain
}

// openCall is one call, or a chain of them.
type openCall struct {
	number uint64
	names  []string // functions of the chain; guarded by the lock of the space
	done   chan struct{}
	body   []byte // all below is written before done is closed
	err    error
}

// calls are the calls of a space. They are guarded by the lock of the space.
type calls struct {
	machine *callcore.Machine
	servers map[string]*callServer
	open    map[uint64]*openCall
	running map[uint64]*served
	room    chan struct{} // closed when a call has ended; nil: nobody waits
	names   callcore.Names
	wake    clocksync.Instant

	stopOffer func() error // of the service of NATS; nil: there is none
}

// served is a call that runs here.
type served struct {
	run // its context; no task

	call  uint64
	depth int
	waits int // for something
}

// Value is for context.Context.
func (r *served) Value(key any) any {
	if key == (servedKey{}) {
		return r
	}
	return nil
}

type servedKey struct{}

// errAnswerUnneeded is the cause of the context of a call that nobody waits for.
var errAnswerUnneeded = errors.New("the caller does not wait for the answer any more: return")

// openCalls makes the machine of calls.
func (s *Space) openCalls() {
	names := make([]string, 0, len(s.calls.servers))
	for name := range s.calls.servers {
		names = append(names, name)
	}
	slices.Sort(names)
	s.calls.open, s.calls.running, s.calls.wake = map[uint64]*openCall{}, map[uint64]*served{}, clocksync.MaxInstant
	s.calls.names = callcore.Names{}
	s.calls.machine = callcore.New(callcore.Options{
		Self: callcore.Peer(s.link.Self()), First: uint64(max(0, s.begun)), //nolint:gosec // It is not negative.
		Served: names, Slots: len(s.runs), Rule: s.callRule,
	})
}

// Go makes a call. It returns at once, but waits for a place while 1024 calls of the function are open, and
// with style: sync it returns after the answer. A fault is the error of [Call.Wait].
func (c *Calls[A, R]) Go(ctx context.Context, arg A, options ...CallOption) *Call[R] {
	stage, err := c.stage(options)
	var body []byte
	if err == nil {
		if body, err = encodeValue("the argument", "", &arg); err != nil {
			err = fmt.Errorf("work: call %q: %w", c.name, err)
		}
	}
	if err != nil {
		return failedCall[R](c.space, c.name, err)
	}
	p := c.space.makeCall(ctx, stage, body)
	return &Call[R]{space: c.space, name: c.name, call: p}
}

// Then calls the function with the result of another call, as its argument. The result goes straight from server to server.
// From then on the other call has no result of its own: wait for the call that Then returns.
func (c *Calls[A, R]) Then(ctx context.Context, arg *Call[A], options ...CallOption) *Call[R] {
	stage, err := c.stage(options)
	if err != nil {
		return failedCall[R](c.space, c.name, err)
	}
	s := c.space
	s.mu.Lock()
	p := arg.call
	if next := arg.next(); next != "" {
		s.mu.Unlock()
		return failedCall[R](s, c.name, arg.passed(next))
	}
	sync := false
	if err = callcore.ErrEnded; s.err == nil {
		err = s.calls.machine.Then(s.link.Now(), p.number, stage)
		sync = s.calls.machine.StyleOf(c.name) == callcore.Sync
		s.carryCalls()
	}
	if err == nil {
		p.names = append(p.names, c.name)
	}
	s.mu.Unlock()
	switch {
	case err == nil:
		if sync {
			_ = s.await(ctx, p) // Wait returns the error.
		}
		return &Call[R]{space: s, name: c.name, call: p, place: arg.place + 1}
	case !errors.Is(err, callcore.ErrEnded):
		return failedCall[R](s, c.name, fmt.Errorf("work: call %q: %w: at most %d are allowed", c.name, err, callcore.MaxStages))
	}
	if <-p.done; p.err != nil {
		return failedCall[R](s, c.name, p.err)
	}
	return &Call[R]{space: s, name: c.name, call: s.makeCall(ctx, stage, p.body)}
}

// stage is the call of a function, without its argument.
func (c *Calls[A, R]) stage(options []CallOption) (callcore.Stage, error) {
	stage := callcore.Stage{Name: c.name}
	if c.name == "" || len(c.name) > callcore.MaxName {
		return stage, fmt.Errorf("work: call %.40q: the name of its function has %d bytes: give it one of 1 to %d", c.name, len(c.name), callcore.MaxName)
	}
	for _, o := range options {
		if err := o(&stage); err != nil {
			return stage, fmt.Errorf("work: call %q: %w", c.name, err)
		}
	}
	return stage, nil
}

func failedCall[R any](s *Space, name string, err error) *Call[R] {
	return &Call[R]{space: s, name: name, call: &openCall{names: []string{name}, done: closedChannel, err: err}}
}

// next is the function that the result goes to, or empty. The lock is held.
func (c *Call[R]) next() string {
	if c.place+1 < len(c.call.names) {
		return c.call.names[c.place+1]
	}
	return ""
}

func (c *Call[R]) passed(next string) error {
	return fmt.Errorf("work: call %q: its result goes to the call %q: wait for that one", c.name, next)
}

// Wait waits for the answer, or until ctx ends; the call continues then, and Wait may be called again. In a function that the
// space runs, the function gives up its slot meanwhile, as with [Active].
func (c *Call[R]) Wait(ctx context.Context) (result R, err error) {
	c.space.mu.Lock()
	next := c.next()
	c.space.mu.Unlock()
	if next != "" {
		return result, c.passed(next)
	}
	if err := c.space.await(ctx, c.call); err != nil {
		return result, fmt.Errorf("work: call %q: %w", c.name, err)
	}
	if c.call.err != nil {
		return result, c.call.err
	}
	return decodeValue[R]("work: the result of call", c.name, c.call.body)
}

// await waits for the end of a call.
func (s *Space) await(ctx context.Context, p *openCall) error {
	select {
	case <-p.done:
		return nil
	default:
	}
	defer s.giveUpSlot(ctx)()
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err := context.Cause(ctx)
	if name := p.names[0]; len(s.calls.machine.Known(name)) == 0 {
		return fmt.Errorf("no member is known that serves it: open the space there with work.Server(%q, ...), and look at replicas of the call: %w", name, err)
	}
	return err
}

// giveUpSlot frees the slot of the function of ctx until the returned function is called.
func (s *Space) giveUpSlot(ctx context.Context) (back func()) {
	if r, _ := ctx.Value(servedKey{}).(*served); r != nil {
		r.wait(1)
		return func() { r.wait(-1) }
	}
	Active(ctx, false)
	return func() { Active(ctx, true) }
}

// wait counts what the function of a call waits for.
func (r *served) wait(n int) {
	s := r.space
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.waits += n; s.err == nil {
		s.calls.machine.SetPassive(s.link.Now(), r.call, r.waits > 0)
		s.carryCalls()
	}
}

// makeCall makes a call once there is a place for it.
func (s *Space) makeCall(ctx context.Context, stage callcore.Stage, body []byte) *openCall {
	p := &openCall{names: []string{stage.Name}, done: make(chan struct{})}
	fail := func(err error) *openCall {
		p.err = fmt.Errorf("work: call %q: %w", stage.Name, err)
		close(p.done)
		return p
	}
	depth := 1
	if r, _ := ctx.Value(servedKey{}).(*served); r != nil {
		depth = r.depth + 1
	}
	s.mu.Lock()
	for s.err == nil && !s.calls.machine.HasRoom(stage.Name) {
		if s.calls.room == nil {
			s.calls.room = make(chan struct{})
		}
		room := s.calls.room
		s.mu.Unlock()
		back := s.giveUpSlot(ctx)
		select {
		case <-room:
			back()
		case <-ctx.Done():
			back()
			return fail(fmt.Errorf("%d calls are open, and no more are allowed: %w", callcore.MaxOpen, context.Cause(ctx)))
		}
		s.mu.Lock()
	}
	if s.err != nil {
		defer s.mu.Unlock()
		return fail(s.err)
	}
	number, err := s.calls.machine.Call(s.link.Now(), stage, depth, body)
	if err != nil {
		defer s.mu.Unlock()
		return fail(fmt.Errorf("%w: at most %d are allowed, let functions that serve calls not call each other in a circle", err, callcore.MaxDepth))
	}
	p.number = number
	s.calls.open[number] = p
	direct := s.carryCallsDirect()
	style := s.calls.machine.StyleOf(stage.Name)
	s.mu.Unlock()
	if direct {
		s.sender.publishQueued()
	}
	if style == callcore.Sync {
		_ = s.await(ctx, p) // Wait returns the error.
	}
	return p
}

// carryCalls carries out what the machine of calls asks for. The lock is held.
func (s *Space) carryCalls() { s.carryOutput(false) }

// carryCallsDirect is carryCalls for those who publish once they have freed the lock, if it returns true.
func (s *Space) carryCallsDirect() bool { return s.carryOutput(true) }

func (s *Space) carryOutput(direct bool) (publish bool) {
	out := s.calls.machine.Output()
	if len(out.Messages) > 0 {
		publish = s.sender.addCalls(s.link.Now(), out.Messages, direct)
	}
	for _, id := range out.Stops {
		if r := s.calls.running[id]; r != nil {
			r.cancelRun(errAnswerUnneeded)
		}
	}
	for i := range out.Runs {
		s.serve(&out.Runs[i])
	}
	for i := range out.Outcomes {
		s.endCall(&out.Outcomes[i])
	}
	if wake := s.calls.machine.Wake(); wake < s.calls.wake || s.section.Record {
		s.wakeLoop()
	}
	s.calls.wake = s.calls.machine.Wake()
	if s.drains {
		s.releaseCallers() // Drain waits for the last call.
	}
	return publish
}

// serve runs a call.
func (s *Space) serve(in *callcore.Run) {
	f := s.calls.servers[in.Name]
	r := &served{run: run{space: s, name: in.Name}, call: in.ID, depth: in.Depth}
	s.calls.running[in.ID] = r
	body := in.Body
	s.running.Go(func() {
		result, err := r.guard(f, body)
		if err != nil {
			result = []byte(clip(err.Error()))
		}
		if s.endServed(r, err != nil, result) {
			s.sender.publishQueued()
		}
	})
}

// endServed has the answer of a call sent. If it returns true, the caller publishes.
func (s *Space) endServed(r *served, failed bool, result []byte) (publish bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.cancelRun(context.Canceled)
	delete(s.calls.running, r.call)
	if s.err != nil {
		return false
	}
	s.calls.machine.Ended(s.link.Now(), r.call, failed, result)
	return s.carryCallsDirect()
}

// guard calls the function; a panic is its error.
//
//nolint:contextcheck,nolintlint // Its context is r.
func (r *served) guard(f *callServer, body []byte) (result []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			r.space.log.Error("a function that serves calls has panicked", "function", r.name, "error", err)
		}
	}()
	return f.run(r, body)
}

// endCall hands an outcome to who waits for it.
func (s *Space) endCall(o *callcore.Outcome) {
	p := s.calls.open[o.Number]
	delete(s.calls.open, o.Number)
	fault := &CallError{Name: o.Name, Member: o.Server, Tries: o.Tries}
	switch p.body = o.Body; o.Fault {
	case callcore.None:
	case callcore.Failed:
		fault.Text, p.err = o.Text, fault
	case callcore.Lost:
		fault.Cause, p.err = ErrServerLost, fault
	case callcore.Overfull:
		fault.Cause, p.err = ErrServersFull, fault
	}
	close(p.done)
	s.wakeCallers()
}

func (s *Space) wakeCallers() {
	if s.calls.room != nil {
		close(s.calls.room)
		s.calls.room = nil
	}
}

// finishCalls ends all calls as the space is over. The lock is held.
func (s *Space) finishCalls() {
	for _, r := range s.calls.running {
		r.cancelRun(s.err)
	}
	for number, p := range s.calls.open {
		p.err = fmt.Errorf("work: call %q: %w", p.names[0], s.err)
		close(p.done)
		delete(s.calls.open, number)
	}
	s.wakeCallers()
}

// leaveCalls tells the callers that this member serves nothing more, as the member may stay in the group. The lock is held.
func (s *Space) leaveCalls() {
	if s.err != nil || len(s.calls.servers) == 0 {
		return
	}
	for _, m := range s.calls.machine.GiveUp(s.link.Now()) {
		frame := m.Append([]byte{callsForm})
		message := append(binary.AppendUvarint(nil, uint64(len(frame))), frame...)
		if len(message) <= messageBytes { // What the caller does not get it finds out when the member is gone.
			_ = s.conn.Publish(s.link.Subject(m.To.Name), message)
		}
	}
}

// takeCall takes a message about calls. A member speaks for itself alone.
func (s *Space) takeCall(from string, data []byte) error {
	m, err := s.calls.names.Read(data)
	switch {
	case err != nil:
		return err
	case m.From.Name != from:
		return fmt.Errorf("a message about calls of %q on the subject of %q", m.From.Name, from)
	}
	m.Body = slices.Clone(m.Body) // It is a part of a larger message.
	s.calls.machine.Take(s.link.Now(), &m)
	s.carryCalls()
	return nil
}

// takeCallRoster tells the machine of calls who is in the group. The lock is held.
func (s *Space) takeCallRoster(peers []workcore.Peer) {
	list := make([]callcore.Peer, len(peers))
	for i, p := range peers {
		list[i] = callcore.Peer(p)
	}
	s.calls.machine.TakeRoster(s.link.Now(), list)
	s.carryCalls()
}

// tickCalls does what is due. The lock is held.
func (s *Space) tickCalls(now clocksync.Instant) {
	if now >= s.calls.wake {
		s.calls.machine.Tick(now)
		s.carryCalls()
	}
}

// offerCalls offers the functions as a service of NATS of which the section says so.
func (s *Space) offerCalls() error {
	var list []link.Offered
	for name := range s.calls.servers {
		if c, _ := s.section.Calls.Get(name); c.Service {
			list = append(list, link.Offered{Name: name, Handle: func(data []byte, answer func([]byte, error)) { s.answerRequest(name, data, answer) }})
		}
	}
	if len(list) == 0 {
		return nil
	}
	slices.SortFunc(list, func(a, b link.Offered) int { return cmp.Compare(a.Name, b.Name) })
	conn, ok := s.conn.(link.Offerer)
	if !ok {
		return fmt.Errorf("the calls of %q are offered as a service of NATS, and the messages of this space travel by a transport of the program: leave service out, or leave Over out", list[0].Name)
	}
	stop, err := conn.Offer(list)
	if err != nil {
		return err
	}
	s.calls.stopOffer = stop
	return nil
}

// answerRequest makes the call that a program asks for which is no member.
func (s *Space) answerRequest(name string, data []byte, answer func([]byte, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		answer(nil, s.err)
	case !s.calls.machine.HasRoom(name):
		answer(nil, fmt.Errorf("work: call %q: %d calls of member %q are open, and no more are allowed: ask again later", name, callcore.MaxOpen, s.link.Self().Name))
	default:
		s.running.Go(func() {
			p := s.makeCall(context.Background(), callcore.Stage{Name: name}, slices.Clone(data))
			<-p.done
			answer(p.body, p.err)
		})
	}
}

// withdrawCalls has the others send their calls elsewhere while this member takes no work.
func (s *Space) withdrawCalls() {
	s.calls.machine.SetAway(s.link.Now(), s.drains || s.rule.state.Away)
	s.carryCalls()
}

// servesCalls reports whether a call is here, or an answer that its caller has not taken.
func (s *Space) servesCalls() bool {
	held, _ := s.calls.machine.Held()
	return held > 0
}

// callRule is what the configuration says about the calls of a function.
func (s *Space) callRule(name string) callcore.Rule {
	c, _ := s.section.Calls.Get(name)
	rule := callcore.Rule{Retry: cmp.Or(c.Retry, s.section.Retry), Replicas: c.Replicas}
	rule.Batch, rule.Linger = c.BatchOf()
	sync, demand, low, high, err := config.ParseStyle(c.Style)
	switch {
	case err != nil: // The synchronizer has checked it.
	case sync:
		rule.Style = callcore.Sync
	case demand:
		rule.Style, rule.Low, rule.High = callcore.Demand, low, high
	}
	if shares, err := config.ParseRatio(c.Ratio); err == nil && len(shares) == len(c.Replicas) {
		rule.Ratio = shares
	}
	if c.Priority == "" {
		return rule
	}
	if p, err := predicates.CompilePriority(c.Priority); err == nil {
		rule.Order = func(w callcore.Waiting) float64 {
			return p.Value(func(name string) float64 { return waitingField(&w, name) })
		}
	}
	return rule
}

// waitingField is a field that a priority reads.
func waitingField(w *callcore.Waiting, name string) float64 {
	switch name {
	case "weight":
		return w.Weight
	case "size":
		return float64(w.Size)
	case "age":
		return w.Age
	case "number":
		return float64(w.Number)
	case "loc":
		return w.Loc
	case "server.head":
		return w.Head
	default: // server.dir
		return w.Dir
	}
}

// addServer declares a server.
func (s *Space) addServer(f *callServer) error {
	if s.calls.servers == nil {
		s.calls.servers = map[string]*callServer{}
	}
	switch {
	case s.calls.servers[f.name] != nil:
		return fmt.Errorf("work: server %q is declared twice: keep one", f.name)
	case len(s.calls.servers) == callcore.MaxServed:
		return fmt.Errorf("work: server %q: %d servers are declared already, and no more are allowed: let one of them do several things", f.name, callcore.MaxServed)
	}
	s.calls.servers[f.name] = f
	return nil
}
