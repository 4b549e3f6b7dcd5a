package work_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/gopegasus/pegasus/balance/local"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/testwait"
	"github.com/gopegasus/pegasus/work"
)

// exchange is a transport inside the process: a queue and a goroutine for each subscription.
type exchange struct {
	mu   sync.Mutex
	subs []*sub
	sent int
}

type sub struct {
	prefix string
	queue  chan message
}

type message struct {
	subject string
	data    []byte
}

// port is the transport of one space.
type port struct {
	*exchange
	own  []*sub
	done sync.WaitGroup
}

func (p *port) Publish(subject string, data []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent++
	for _, s := range p.subs {
		if strings.HasPrefix(subject, s.prefix) {
			select {
			case s.queue <- message{subject, slices.Clone(data)}:
			default: // The space sends again what matters.
			}
		}
	}
	return nil
}

func (p *port) Subscribe(subject string, handle func(string, []byte)) error {
	s := &sub{strings.TrimSuffix(subject, "*"), make(chan message, 256)}
	p.mu.Lock()
	p.subs, p.own = append(p.subs, s), append(p.own, s)
	p.mu.Unlock()
	p.done.Go(func() {
		for m := range s.queue {
			handle(m.subject, m.data)
		}
	})
	return nil
}

func (p *port) Flush(context.Context) error { return nil }

func (p *port) Close() error {
	p.mu.Lock()
	p.subs = slices.DeleteFunc(p.subs, func(s *sub) bool { return slices.Contains(p.own, s) })
	for _, s := range p.own {
		close(s.queue)
	}
	p.mu.Unlock()
	p.done.Wait()
	return nil
}

// TestTransport: tasks and a large argument travel by a transport of the program's own, and the phase ends.
func TestTransport(t *testing.T) {
	t.Parallel()
	g := newLive(t, live, 2)
	x := &exchange{}
	there := make(chan struct{}) // Closed once a task runs at the other member.
	var once sync.Once
	options := func(name string) []work.Option {
		return []work.Option{work.Over(&port{exchange: x}), work.Func("length", func(ctx context.Context, data []byte) (int, error) {
			if name == "b" {
				once.Do(func() { close(there) })
			}
			select {
			case <-there:
				return len(data), nil
			case <-ctx.Done():
				return 0, context.Cause(ctx)
			}
		})}
	}
	list, _ := g.estateOf(options, g.direct, "a", "b")
	serveLive(t, list[1])
	sum := 0
	for i := range 20 {
		if err := list[0].Put(limited(t), "length", make([]byte, i*10_000)); err != nil {
			t.Fatal(err)
		}
	}
	for r, err := range work.Results[int](limited(t), list[0], "length") {
		if err != nil {
			t.Fatal(err)
		}
		sum += r.Value
	}
	if x.mu.Lock(); sum != 1_900_000 || x.sent == 0 || list[1].Stats().Moved == 0 {
		t.Errorf("the lengths sum up to %d, %d messages, %d tasks moved", sum, x.sent, list[1].Stats().Moved)
	}
	x.mu.Unlock()
}

// TestTransportRefused: JetStream needs NATS, and nil is neither a transport nor a strategy.
func TestTransportRefused(t *testing.T) {
	t.Parallel()
	g := newLiveStore(t, "jetstream", 1)
	m := g.join("a", g.server.URL())
	for want, o := range map[string]work.Option{
		"work: open the space as \"a\": the connection has no JetStream: use store: memory": work.Over(&port{exchange: &exchange{}}),
		"work: the transport is nil: leave Over out":                                        work.Over(nil),
		"work: the strategy is nil: leave Strategy out":                                     work.Strategy(nil),
	} {
		if _, err := work.Open(limited(t), m, o); err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

// hoarder is a strategy that asks a certain member whenever it looks, and gives nothing.
type hoarder struct {
	from  string
	asked chan string
}

func (h *hoarder) Look(now clocksync.Instant, v *local.View, demands []local.Demand) ([]local.Demand, clocksync.Instant) {
	if v.Waiting > 0 {
		return demands, clocksync.MaxInstant
	}
	for _, n := range v.Neighbours {
		if n.Name == h.from && !n.Pending && n.Load > 0 {
			select {
			case h.asked <- n.Name:
			default:
			}
			return append(demands, local.Demand{Member: n.Name, Tasks: 2}), clocksync.MaxInstant
		}
	}
	return demands, clocksync.MaxInstant
}

func (h *hoarder) Answer(clocksync.Instant, *local.View, local.Demand) local.Share {
	return local.Share{}
}

// TestOwnStrategy: a member decides by a strategy of its program.
func TestOwnStrategy(t *testing.T) {
	t.Parallel()
	g := newLive(t, live, 2)
	gate := newGate()
	h := &hoarder{from: "a", asked: make(chan string, 1)}
	options := func(name string) []work.Option {
		if name == "b" {
			return []work.Option{gate.option(), work.Strategy(h)}
		}
		return []work.Option{gate.option()}
	}
	list, _ := g.estateOf(options, g.direct, "a", "b")
	serveLive(t, list[1])
	putAll(t, list[0], 12)
	gate.await(t, 2)
	if from := <-h.asked; from != "a" {
		t.Errorf("it asked %s", from)
	}
	if s := list[1].Stats(); s.Queued+s.Running != 2 {
		t.Errorf("it has %d tasks, and its strategy asks for 2", s.Queued+s.Running)
	}
	close(gate.open)
	collect(t, list[0], 12)
}

// TestActive: a function that waits leaves its slot to others, and goes on when it works again.
func TestActive(t *testing.T) {
	t.Parallel()
	g := newLive(t, live, 1) // One slot.
	waits, open := make(chan string, 64), make(chan struct{})
	list, _ := g.estateOf(func(string) []work.Option {
		return []work.Option{
			work.Func("wait", func(ctx context.Context, n int) (int, error) {
				work.Active(ctx, false)
				defer work.Active(ctx, true)
				waits <- fmt.Sprint("wait ", n)
				<-open
				return n, nil
			}),
			work.Func("work", func(_ context.Context, n int) (int, error) { waits <- fmt.Sprint("work ", n); return n, nil }),
		}
	}, g.direct, "a")
	work.Active(t.Context(), false) // No function of a space: it does nothing.
	for i := range 3 {
		if err := errors.Join(list[0].Put(limited(t), "wait", i), list[0].Put(limited(t), "work", i)); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	for range 6 {
		seen[<-waits] = true
	}
	if s := list[0].Stats(); len(seen) != 6 || s.Open != 3 {
		t.Errorf("%v ran, and %d tasks are open", seen, s.Open)
	}
	close(open)
	if err := list[0].Wait(limited(t)); err != nil {
		t.Error(err)
	}
}

// TestActiveIsBounded: no more than 32 functions wait beside the one that works.
func TestActiveIsBounded(t *testing.T) {
	t.Parallel()
	g := newLive(t, live, 1)
	began, open := make(chan int, 64), make(chan struct{})
	list, _ := g.estateOf(func(string) []work.Option {
		return []work.Option{work.Func("wait", func(ctx context.Context, n int) (int, error) {
			work.Active(ctx, false)
			began <- n
			<-open
			return n, nil
		})}
	}, g.direct, "a")
	for i := range 40 {
		if err := list[0].Put(limited(t), "wait", i); err != nil {
			t.Fatal(err)
		}
	}
	for range 33 {
		<-began
	}
	if s := list[0].Stats(); s.Running != 33 || s.Queued != 7 {
		t.Errorf("%d run and %d wait", s.Running, s.Queued)
	}
	close(open)
	if err := list[0].Wait(limited(t)); err != nil {
		t.Error(err)
	}
}

// TestLocals: a member lists the objects that it ran last, and a program waits for one.
func TestLocals(t *testing.T) {
	t.Parallel()
	g := newLive(t, live, 2)
	w := newWitness()
	list, _ := g.estate(w, g.direct, "a", "b")
	a, b := list[0], list[1]
	arrived := make(chan error, 1)
	go func() { arrived <- b.Await(limited(t), "tally", 1) }()
	for i := range 3 {
		if err := a.Create(limited(t), "tally", i, i, work.At([]string{"a", "b", "a"}[i])); err != nil {
			t.Fatal(err)
		}
		if err := a.Send(limited(t), i, "note", note{strconv.Itoa(i), "a", "", 0}); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-arrived; err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the objects", func() bool {
		return slices.Equal(slices.Collect(a.Locals("tally")), []string{"0", "2"}) && slices.Equal(slices.Collect(b.Locals("tally")), []string{"1"})
	})
	if other := slices.Collect(a.Locals("tall")); len(other) > 0 {
		t.Errorf("objects of another kind: %v", other)
	}
	if err := a.Send(limited(t), 0, "note", note{"0", "a", "end", 1}); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the end of an object", func() bool { return slices.Equal(slices.Collect(a.Locals("tally")), []string{"2"}) })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Await(ctx, "tally", 9); err == nil || err.Error() != `work: await object "tally/9": work: wait: context canceled` {
		t.Error(err)
	}
}

// TestNextOfAName: a program asks for a certain task; others stay where they are.
func TestNextOfAName(t *testing.T) {
	t.Parallel()
	g := newLive(t, strings.Replace(live, "slots: 1", "slots: 3", 1), 1)
	m := g.join("a", g.server.URL())
	s, err := work.Open(limited(t), m, work.Pull[int]("step"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	for i := range 3 {
		if err := s.Put(limited(t), "step", i, work.ID("%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	for _, ids := range [][]string{{"2"}, {"9", "1"}, nil} {
		p, err := s.Next(limited(t), ids...)
		if err != nil {
			t.Fatal(err)
		}
		if want := slices.Concat(ids, []string{"0"}); !slices.Contains(want, p.ID()) {
			t.Errorf("asked for %v, and got %s", ids, p.ID())
		}
		if err := work.Done(p, 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Next(limited(t), "0"); !errors.Is(err, work.ErrPhaseOver) {
		t.Errorf("after the last task: %v", err)
	}
}

// TestMailClasses: messages to objects are counted by what they cost.
func TestMailClasses(t *testing.T) {
	t.Parallel()
	g := newLive(t, live, 2)
	list, _ := g.estate(newWitness(), g.direct, "a", "b")
	a, b := list[0], list[1]
	if err := a.Create(limited(t), "tally", 1, 1); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if err := a.Send(limited(t), 1, "note", note{"1", "a", "", i}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		if err := b.Send(limited(t), 1, "note", note{"1", "b", "", i}); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error, 2)
	for _, s := range list {
		go func() { ended <- s.Wait(limited(t)) }()
	}
	if err := errors.Join(<-ended, <-ended); err != nil {
		t.Fatal(err)
	}
	if s := a.Stats(); s.Local != 5 || s.Directed+s.Undirected != 0 {
		t.Errorf("the creator has sent %d here, %d to others, and asked %d times", s.Local, s.Directed, s.Undirected)
	}
	if s := b.Stats(); s.Local != 0 || s.Directed == 0 || s.Directed > 3 || s.Undirected == 0 {
		t.Errorf("the other member has sent %d here, %d posts, and asked %d times", s.Local, s.Directed, s.Undirected)
	}
}
