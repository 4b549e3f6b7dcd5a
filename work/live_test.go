package work_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/link"
	"github.com/gopegasus/pegasus/internal/testnats"
	"github.com/gopegasus/pegasus/internal/testwait"
	"github.com/gopegasus/pegasus/synchronizer"
	"github.com/gopegasus/pegasus/work"
)

// patience is how long a test waits for what has to come.
const patience = 30 * time.Second

const live = `
synchronizers:
  gsync:
    members: {group: g, count: {min: 1, max: 64}}
    silence: {after: 500ms}
    work: {slots: 1}
`

// liveGroup is a group on a real server, with a real synchronizer.
type liveGroup struct {
	t      *testing.T
	server *embedded.Server
	cfg    *synchronizer.Config
	sync   *synchronizer.Synchronizer
	group  string // of the members; empty: g
	log    *slog.Logger
}

func newLive(t *testing.T, text string, members int) *liveGroup {
	t.Helper()
	server, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	cfg, err := synchronizer.ParseConfig("test.yaml", []byte(text), synchronizer.Members("gsync", members))
	if err != nil {
		t.Fatal(err)
	}
	g := &liveGroup{t: t, server: server, cfg: cfg}
	g.start()
	t.Cleanup(func() { _ = g.sync.Close() })
	return g
}

func (g *liveGroup) start() {
	g.t.Helper()
	s, err := synchronizer.Start(g.t.Context(), g.server.URL(), g.cfg, synchronizer.Options{})
	if err != nil {
		g.t.Fatal(err)
	}
	g.sync = s
}

func (g *liveGroup) restart() {
	g.t.Helper()
	if err := g.sync.Close(); err != nil {
		g.t.Fatal(err)
	}
	g.start()
}

// join joins a member that has a connection of its own. Its space is opened by open.
func (g *liveGroup) join(name, url string) *agent.Member {
	g.t.Helper()
	m, err := agent.Join(g.t.Context(), url, agent.Config{Group: cmp.Or(g.group, "g"), Name: name, Logger: g.log}, agent.OwnConn())
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = m.Close() })
	return m
}

// spaces opens the spaces of several members together, as the first epoch needs all of them.
func (g *liveGroup) spaces(names []string, options ...work.Option) []*work.Space {
	g.t.Helper()
	return g.spacesBy(func(string) string { return g.server.URL() }, names, options...)
}

// spacesBy is spaces for members that reach the server by other addresses.
func (g *liveGroup) spacesBy(url func(name string) string, names []string, options ...work.Option) []*work.Space {
	g.t.Helper()
	list := make([]*work.Space, len(names))
	errs := make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() {
			m, err := agent.Join(g.t.Context(), url(name), agent.Config{Group: cmp.Or(g.group, "g"), Name: name, Logger: g.log}, agent.OwnConn())
			if errs[i] = err; err != nil {
				return
			}
			g.t.Cleanup(func() { _ = m.Close() })
			list[i], errs[i] = work.Open(g.t.Context(), m, options...)
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		g.t.Fatal(err)
	}
	for _, s := range list {
		g.t.Cleanup(func() { _ = s.Close() })
	}
	return list
}

// limited ends with the test's patience.
func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// until waits for what has to come.
func until(t *testing.T, holds func() bool) {
	t.Helper()
	testwait.Until(t, "what has to come", holds)
}

// serveLive serves until the test ends, and tells why Serve returned.
func serveLive(t *testing.T, s *work.Space) <-chan error {
	t.Helper()
	over := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { over <- s.Serve(ctx) }()
	t.Cleanup(cancel)
	return over
}

// gate is a function whose runs wait until the test lets them go. It counts the runs of each number.
type gate struct {
	began chan int
	open  chan struct{} // closed: all go through
	mu    sync.Mutex
	runs  map[int]int
}

func newGate() *gate {
	return &gate{began: make(chan int, 1024), open: make(chan struct{}), runs: map[int]int{}}
}

func (g *gate) option() work.Option {
	return work.Func("task", func(ctx context.Context, n int) (int, error) {
		g.began <- n
		select {
		case <-g.open:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
		g.mu.Lock()
		g.runs[n]++
		g.mu.Unlock()
		return n, nil
	})
}

func (g *gate) await(t *testing.T, n int) {
	t.Helper()
	for range n {
		select {
		case <-g.began:
		case <-time.After(patience):
			t.Fatal("no task has begun")
		}
	}
}

// ran is how often a number has run to the end.
func (g *gate) ran(n int) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.runs[n]
}

func putAll(t *testing.T, s *work.Space, n int) {
	t.Helper()
	for i := range n {
		if err := s.Put(limited(t), "task", i); err != nil {
			t.Fatal(err)
		}
	}
}

// collect reads the results of n tasks, each exactly once.
func collect(t *testing.T, s *work.Space, n int) {
	t.Helper()
	seen := map[int]int{}
	for r, err := range work.Results[int](limited(t), s, "task") {
		if err != nil {
			t.Fatal(err)
		}
		seen[r.Value]++
	}
	for i := range n {
		if seen[i] != 1 {
			t.Errorf("task %d has %d results", i, seen[i])
		}
	}
	if len(seen) != n {
		t.Errorf("%d tasks have results, want %d", len(seen), n)
	}
}

// TestLiveRestart: tasks go on while the synchronizer is away, and each phase ends once, whether it is
// restarted in the middle of a phase or between two.
func TestLiveRestart(t *testing.T) {
	t.Parallel()
	g := newLive(t, live, 3)
	gate := newGate()
	list := g.spaces([]string{"a", "b", "c"}, gate.option())
	for _, s := range list[1:] {
		serveLive(t, s)
	}
	a := list[0]
	putAll(t, a, 30)
	gate.await(t, 3)
	if err := g.sync.Close(); err != nil { // In the middle of the phase.
		t.Fatal(err)
	}
	close(gate.open)
	gate.await(t, 27) // They go on without it.
	g.start()
	collect(t, a, 30)
	if s := a.Stats(); s.Phase != 2 || s.Redone != 0 {
		t.Errorf("after a restart in the middle of a phase: %+v", s)
	}
	g.restart() // Between two phases.
	for phase := range 3 {
		putAll(t, a, 10)
		if phase == 1 {
			g.restart()
		}
		collect(t, a, 10)
	}
	if s := a.Stats(); s.Phase != 5 || s.Redone != 0 {
		t.Errorf("after a restart between phases: %+v", s)
	}
	for _, s := range list {
		if st := s.Stats(); st.Phase != 5 && st.Phase != 4 { // It may hear of the last end a little later.
			t.Errorf("%+v", st)
		}
	}
	g.restart() // While all only wait.
	if err := a.Wait(limited(t)); err != nil {
		t.Error(err)
	}
}

// TestLiveRestartIdle: the synchronizer comes back while the last member waits for the end.
func TestLiveRestartIdle(t *testing.T) {
	t.Parallel()
	g := newLive(t, live, 2)
	gate := newGate()
	close(gate.open)
	list := g.spaces([]string{"a", "b"}, gate.option())
	serveLive(t, list[1])
	for range 5 {
		putAll(t, list[0], 4)
		if err := g.sync.Close(); err != nil {
			t.Fatal(err)
		}
		over := make(chan struct{})
		go func() { defer close(over); collect(t, list[0], 4) }()
		gate.await(t, 4)
		g.start()
		<-over
	}
}

// TestLiveServerAway: the NATS server is away for longer than members may be silent. Those run what they have, and
// one may put more. Once it is back no task was lost, none is done again, and nobody was dropped.
func TestLiveServerAway(t *testing.T) {
	t.Parallel()
	const silence = 2 * time.Second
	g := newLive(t, strings.Replace(live, "500ms", silence.String(), 1), 3)
	gate := newGate()
	list := g.spaces([]string{"a", "b", "c"}, gate.option())
	for _, s := range list[1:] {
		serveLive(t, s)
	}
	a := list[0]
	putAll(t, a, 30)
	gate.await(t, 3)
	g.server.Close()
	away := time.Now()
	close(gate.open)
	for i := range 10 {
		if err := a.Put(limited(t), "task", 30+i); err != nil {
			t.Fatal(err)
		}
	}
	short, cancel := context.WithTimeout(t.Context(), silence+silence/4)
	defer cancel()
	if err := a.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the end of the phase while the server is away: %v", err)
	}
	if s := a.Stats(); time.Since(away) < silence || s.Phase != 1 || s.Open == 0 || s.Running+s.Queued > 0 {
		t.Errorf("a has not done all that it can, or the others have told what they did: %+v", s)
	}
	server, err := embedded.Start(embedded.Options{Port: g.server.Port()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	collect(t, a, 40)
	if s := a.Stats(); s.Redone != 0 || s.Phase != 2 {
		t.Errorf("%+v", s)
	}
	for n := range 40 {
		if gate.ran(n) != 1 {
			t.Errorf("task %d has run %d times", n, gate.ran(n))
		}
	}
}

// TestLiveJoin: a member that joins in the middle of a phase takes part.
func TestLiveJoin(t *testing.T) {
	t.Parallel()
	g := newLive(t, live, 1)
	gate := newGate()
	a := g.spaces([]string{"a"}, gate.option())[0]
	putAll(t, a, 12)
	gate.await(t, 1)
	late := g.spaces([]string{"b"}, gate.option())[0] // The phase goes on.
	serveLive(t, late)
	gate.await(t, 1) // At the new member: the slot of the other is taken.
	close(gate.open)
	collect(t, a, 12)
	if s := late.Stats(); s.Moved == 0 || s.Phase > 2 {
		t.Errorf("the member that has joined late: %+v", s)
	}
}

// TestLiveCreator: the others hear how many tasks died with the member that had put them.
func TestLiveCreator(t *testing.T) {
	t.Parallel()
	g := newLive(t, live, 2)
	gate := newGate()
	proxy := newProxy(t, g.server.URL())
	list := g.spacesBy(proxy.of("a"), []string{"a", "b"}, gate.option())
	a, b := list[0], list[1]
	putAll(t, a, 20)
	gate.await(t, 2)
	over := make(chan error, 1)
	go func() { over <- b.Wait(limited(t)) }()
	proxy.hold()
	err := <-over
	if lost, is := errors.AsType[*work.LostError](err); !is || lost.Tasks < 1 || lost.Tasks > 20 || // As many as it has told of.
		fmt.Sprint(lost.Members) != "[a]" {
		t.Errorf("the creator is gone: %v", err)
	}
	if err := b.Wait(limited(t)); err != nil { // The loss was of that phase.
		t.Errorf("the next phase: %v", err)
	}
	proxy.release()
	if err := a.Wait(limited(t)); !errors.Is(err, work.ErrDropped) {
		t.Errorf("the creator that is back: %v", err)
	}
}

// TestLiveStopped: a member that was silent for too long and comes back hears that it was dropped. Its
// tasks were done by others, once.
func TestLiveStopped(t *testing.T) {
	t.Parallel()
	g := newLive(t, live, 2)
	gate := newGate()
	proxy := newProxy(t, g.server.URL())
	list := g.spacesBy(proxy.of("b"), []string{"a", "b"}, gate.option())
	a, b := list[0], list[1]
	served := serveLive(t, b)
	putAll(t, a, 8)
	gate.await(t, 2)
	until(t, func() bool { // It has told that it runs a task.
		return slices.ContainsFunc(a.Holdings(), func(h work.Holding) bool { return h.Member == "b" && h.Runs > 0 })
	})
	proxy.hold()
	until(t, func() bool { return a.Stats().Redone > 0 })
	close(gate.open)
	collect(t, a, 8)
	proxy.release()
	select {
	case err := <-served:
		if !errors.Is(err, work.ErrDropped) {
			t.Errorf("the member that is back serves: %v", err)
		}
	case <-time.After(patience):
		t.Fatal("the member that is back hears nothing")
	}
	if err := b.Put(limited(t), "task", 1); !errors.Is(err, work.ErrDropped) {
		t.Errorf("it puts: %v", err)
	}
}

// TestLiveObserver: a member that has a state and never opens the space blocks the end, until it is gone. One
// that has set no state is in no epoch, and blocks nothing.
func TestLiveObserver(t *testing.T) {
	t.Parallel()
	g := newLive(t, strings.Replace(live, "    work:", "    state: {done: bool}\n    work:", 1), 1)
	gate := newGate()
	close(gate.open)
	type state struct{ Done bool }
	m := g.join("a", g.server.URL())
	if err := m.Set(state{}); err != nil {
		t.Fatal(err)
	}
	a, err := work.Open(limited(t), m, gate.option())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	observer := g.join("observer", g.server.URL())
	putAll(t, a, 3)
	collect(t, a, 3)
	roster := make(chan int, 64)
	k, err := observer.Link()
	if err != nil {
		t.Fatal(err)
	}
	stop, err := k.Watch(link.Watcher{
		Roster: func(r link.Roster) { roster <- len(r.Peers) }, Section: func(*config.Work) {}, Closed: func() {},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if err := observer.Set(state{}); err != nil {
		t.Fatal(err)
	}
	for n := 0; n < 2; {
		select {
		case n = <-roster:
		case <-time.After(patience):
			t.Fatal("the member that observes is in no epoch")
		}
	}
	putAll(t, a, 3)
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := a.Wait(short); !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), "work: wait: ") {
		t.Errorf("with a member that has not opened the space: %v", err)
	}
	if err := observer.Close(); err != nil {
		t.Fatal(err)
	}
	collect(t, a, 3)
}

// TestLiveTwice: a member has one open space at a time, and may open another one after Close, in the
// same epoch.
func TestLiveTwice(t *testing.T) {
	t.Parallel()
	g := newLive(t, live, 1)
	gate := newGate()
	close(gate.open)
	m := g.join("a", g.server.URL())
	for round := range 3 {
		s, err := work.Open(limited(t), m, gate.option())
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		_, err = work.Open(limited(t), m, gate.option())
		const want = `work: open the space as "a": agent: member "a": it has an open space already: close that one first`
		if err == nil || err.Error() != want {
			t.Errorf("a second space: %v; want %s", err, want)
		}
		putAll(t, s, 5)
		collect(t, s, 5)
		putAll(t, s, 2)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := s.Put(t.Context(), "task", 1); !errors.Is(err, work.ErrClosed) {
			t.Errorf("Put after Close: %v", err)
		}
		if err := s.Wait(t.Context()); !errors.Is(err, work.ErrClosed) {
			t.Errorf("Wait after Close: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("Close once more: %v", err)
		}
	}
}

// TestLiveReopened: others go on in the meantime with a member that closes its space and opens it again.
func TestLiveReopened(t *testing.T) {
	t.Parallel()
	g := newLive(t, live, 1)
	gate := newGate()
	a := g.spaces([]string{"a"}, gate.option())[0]
	second := g.join("b", g.server.URL())
	b, err := work.Open(limited(t), second, gate.option())
	if err != nil {
		t.Fatal(err)
	}
	serveLive(t, b)
	putAll(t, a, 10)
	gate.await(t, 2)
	if err := b.Close(); err != nil { // With a task that runs.
		t.Fatal(err)
	}
	if b, err = work.Open(limited(t), second, gate.option()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	serveLive(t, b)
	gate.await(t, 1)
	close(gate.open)
	collect(t, a, 10)
}

// TestLiveBreak: a loop over Results may be left and another one begun. No result is lost.
func TestLiveBreak(t *testing.T) {
	t.Parallel()
	g := newLive(t, live, 2)
	gate := newGate()
	close(gate.open)
	list := g.spaces([]string{"a", "b"}, gate.option())
	serveLive(t, list[1])
	a := list[0]
	putAll(t, a, 50)
	seen := map[int]int{}
	for len(seen) < 50 {
		for r, err := range work.Results[int](limited(t), a, "task") {
			if err != nil {
				t.Fatal(err)
			}
			if seen[r.Value]++; seen[r.Value] > 1 {
				t.Errorf("task %d twice", r.Value)
			}
			if len(seen)%3 == 0 {
				break
			}
		}
	}
	if err := a.Wait(limited(t)); err != nil {
		t.Error(err)
	}
	putAll(t, a, 5)
	collect(t, a, 5)
}

// TestLiveEnded: a call whose context ends returns, and nothing is lost by that.
func TestLiveEnded(t *testing.T) {
	t.Parallel()
	g := newLive(t, strings.Replace(live, "slots: 1", "slots: 1, open: 4", 1), 1)
	gate := newGate()
	a := g.spaces([]string{"a"}, gate.option())[0]
	putAll(t, a, 4)
	ended, cancel := context.WithCancelCause(t.Context())
	why := errors.New("it has to go home")
	cancel(why)
	_, err := work.Total[int](ended, a, "task")
	if err == nil {
		t.Error("Total of a function")
	}
	for name, err := range map[string]error{"Put": a.Put(ended, "task", 9), "Wait": a.Wait(ended), "Serve": a.Serve(ended)} {
		if !errors.Is(err, why) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, err := range work.Results[int](ended, a, "task") {
		if !errors.Is(err, why) {
			t.Errorf("Results: %v", err)
		}
	}
	close(gate.open)
	collect(t, a, 4)
}

// TestLiveContext: a function that puts with another context than its own puts outside of its record: at
// once, even if it fails then.
func TestLiveContext(t *testing.T) {
	t.Parallel()
	g := newLive(t, live, 1)
	var space atomic.Pointer[work.Space]
	var tries atomic.Int64
	options := []work.Option{
		work.Func("task", func(_ context.Context, n int) (int, error) { return n, nil }),
		work.Func("outer", func(context.Context, int) (int, error) {
			if err := space.Load().Put(context.Background(), "task", 0, work.ID("inner")); err != nil { //nolint:contextcheck // It is the wrong one.
				return 0, err
			}
			if tries.Add(1) == 1 {
				return 0, errors.New("once")
			}
			return 0, nil
		}),
	}
	a := g.spaces([]string{"a"}, options...)[0]
	space.Store(a)
	if err := a.Put(limited(t), "outer", 0); err != nil {
		t.Fatal(err)
	}
	collect(t, a, 1)
	if tries.Load() != 2 {
		t.Errorf("%d tries", tries.Load())
	}
}

// TestLiveStuck: a function that does not return when it is told to counts as stuck, and Close names
// its task.
func TestLiveStuck(t *testing.T) {
	t.Parallel()
	g := newLive(t, strings.Replace(live, "slots: 1", "slots: 1, stuck: 200ms", 1), 1)
	began, end := make(chan struct{}, 8), make(chan struct{})
	a := g.spaces([]string{"a"}, work.Func("deaf", func(context.Context, int) (int, error) {
		began <- struct{}{}
		<-end
		return 0, nil
	}))[0]
	if err := a.Put(limited(t), "deaf", 0, work.ID("deaf/0")); err != nil {
		t.Fatal(err)
	}
	<-began
	if err := a.Cancel("deaf/0"); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return a.Stats().Stuck == 1 })
	if err := a.Wait(limited(t)); err == nil || !strings.Contains(err.Error(), "cancelled") {
		t.Errorf("the phase with a task that was cancelled: %v", err)
	}
	err := a.Close()
	const want = `work: the functions of tasks ["deaf/0"] have not returned 200ms after their contexts ended: have them look at ctx`
	if err == nil || err.Error() != want {
		t.Errorf("Close: %v; want %s", err, want)
	}
	close(end)
}

// proxy passes bytes between a client and the server, and can hold them: as if the process of the
// client was stopped.
type proxy struct {
	t        *testing.T
	listener net.Listener
	server   string

	mu   sync.Mutex
	held chan struct{} // nil: nothing is held
}

func newProxy(t *testing.T, url string) *proxy {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, listener: l, server: strings.TrimPrefix(url, "nats://")}
	t.Cleanup(func() { p.release(); _ = l.Close() })
	testnats.ShareKey(t, url, p.url())
	go p.accept()
	return p
}

// of is the addresses of members of which one comes through the proxy.
func (p *proxy) of(name string) func(string) string {
	return func(n string) string {
		if n == name {
			return p.url()
		}
		return "nats://" + p.server
	}
}

func (p *proxy) url() string { return "nats://" + p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.server)
		if err != nil {
			_ = in.Close()
			continue
		}
		go p.pass(in, out)
		go p.pass(out, in)
	}
}

func (p *proxy) pass(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		held := p.held
		p.mu.Unlock()
		if held != nil {
			<-held
		}
		if _, werr := to.Write(buffer[:n]); err != nil || werr != nil {
			return
		}
	}
}

func (p *proxy) hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = make(chan struct{})
}

func (p *proxy) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held != nil {
		close(p.held)
		p.held = nil
	}
}

// TestCallsLive: members call each other over a real server, and a chain goes from server to server.
func TestCallsLive(t *testing.T) {
	g := newLive(t, live, 3)
	half := func(_ context.Context, b []byte) ([]byte, error) { return b[:len(b)/2], nil }
	size := func(_ context.Context, b []byte) (int, error) { return len(b), nil }
	s := g.spaces([]string{"a", "b", "c"}, work.Server("half", half), work.Server("size", size))
	ctx := limited(t)
	halves, sizes := work.Client[[]byte, []byte](s[0], "half"), work.Client[[]byte, int](s[0], "size")
	list := map[int]*work.Call[int]{}
	for i := range 200 {
		list[2*i] = sizes.Then(ctx, halves.Go(ctx, make([]byte, 4*i)))
	}
	list[1<<20] = sizes.Then(ctx, halves.Go(ctx, make([]byte, 2<<20)))
	for want, p := range list {
		if n, err := p.Wait(ctx); n != want || err != nil {
			t.Fatal(want, n, err)
		}
	}
}

// TestCallsAsService: a program that is no member calls a function by a request of NATS.
func TestCallsAsService(t *testing.T) {
	g := newLive(t, strings.Replace(live, "work: {slots: 1}", "work: {slots: 1, calls: {double: {service: true}}}", 1), 2)
	double := func(_ context.Context, n int) (int, error) {
		if n < 0 {
			return 0, errors.New("it is negative")
		}
		return 2 * n, nil
	}
	s := g.spaces([]string{"a", "b"}, work.Server("double", double), work.Server("hidden", double))
	nc := testnats.Connect(t, g.server.URL())
	for i := range 20 {
		r, err := nc.RequestWithContext(limited(t), "pegasus.v1.default.g.call.double", []byte(strconv.Itoa(i)))
		if err != nil || string(r.Data) != strconv.Itoa(2*i) {
			t.Fatal(r, err)
		}
	}
	r, err := nc.RequestWithContext(limited(t), "pegasus.v1.default.g.call.double", []byte("-1"))
	if err != nil || !strings.Contains(r.Header.Get("Nats-Service-Error"), "it is negative") || r.Header.Get("Nats-Service-Error-Code") != "500" {
		t.Error(r, err)
	}
	r, err = nc.RequestWithContext(limited(t), "pegasus.v1.default.g.call.double", []byte("{no number"))
	if err != nil || !strings.Contains(r.Header.Get("Nats-Service-Error"), "the argument cannot be read from its bytes") {
		t.Error(r, err)
	}
	if r, err := nc.RequestWithContext(limited(t), "$SRV.INFO.pegasus-g", nil); err != nil || !strings.Contains(string(r.Data), "pegasus.v1.default.g.call.double") || strings.Contains(string(r.Data), "hidden") {
		t.Error(string(r.Data), err)
	}
	for _, s := range s {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := nc.RequestWithContext(limited(t), "pegasus.v1.default.g.call.double", []byte("1")); err == nil {
		t.Error("a service is there after its members have closed their spaces")
	}
}

// TestMarksOfAllCallersLive: three callers share a server. It never has more of their calls than the upper mark, and each call ends.
func TestMarksOfAllCallersLive(t *testing.T) {
	g := newLive(t, strings.Replace(live, "work: {slots: 1}", `work: {slots: 1, calls: {f: {style: "async-demand(1:3)", replicas: [d]}}}`, 1), 4)
	begun, open := make(chan struct{}, 256), make(chan struct{})
	s := g.spaces([]string{"a", "b", "c", "d"}, work.Server("f", func(ctx context.Context, n int) (int, error) {
		begun <- struct{}{}
		select {
		case <-open:
			return 2 * n, nil
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}))
	var calls []*work.Call[int]
	for i := range 60 {
		calls = append(calls, work.Client[int, int](s[i%3], "f").Go(limited(t), i))
	}
	<-begun
	until(t, func() bool { return work.LoadOfCalls(s[3]) == 3 })
	for range 57 {
		open <- struct{}{}
		<-begun
		if n := work.LoadOfCalls(s[3]); n > 3 {
			t.Fatalf("the server has %d calls, and the upper mark is 3", n)
		}
	}
	close(open)
	for i, c := range calls {
		if r, err := c.Wait(limited(t)); r != 2*i || err != nil {
			t.Fatal(i, r, err)
		}
	}
}

// TestCallsOfLostServersLive: a call of a server that leaves in the middle of it runs at another one.
func TestCallsOfLostServersLive(t *testing.T) {
	g := newLive(t, live, 2)
	ctx := limited(t)
	began := make(chan struct{})
	hang := work.Server("f", func(ctx context.Context, _ int) (int, error) { close(began); <-ctx.Done(); return 0, ctx.Err() })
	ma, mb := g.join("a", g.server.URL()), g.join("b", g.server.URL())
	opened := make(chan *work.Space, 1)
	go func() {
		s, err := work.Open(ctx, mb, hang)
		if err != nil {
			t.Error(err)
		}
		opened <- s
	}()
	a, err := work.Open(ctx, ma)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close() }()
	b := <-opened
	p := work.Client[int, int](a, "f").Go(ctx, 21)
	<-began
	if err := errors.Join(mb.Close(), b.Close()); err != nil {
		t.Error(err)
	}
	c, err := work.Open(ctx, g.join("c", g.server.URL()), work.Server("f", func(_ context.Context, n int) (int, error) { return 2 * n, nil }))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if r, err := p.Wait(ctx); r != 42 || err != nil {
		t.Error(r, err)
	}
}
