package work

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/yamlconf"
)

func double(_ context.Context, n int) (int, error) {
	if n < 0 {
		return 0, errors.New("it is negative")
	}
	return 2 * n, nil
}

// TestCalls: calls of a member are served by the others, and by itself.
func TestCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(config.DefaultWork())
		var at [3]atomic.Int32
		server := func(i int) Option {
			return Server("double", func(ctx context.Context, n int) (int, error) { at[i].Add(1); return double(ctx, n) })
		}
		a := g.space(t, "a", server(0))
		g.space(t, "b", server(1))
		g.space(t, "c", server(2))
		synctest.Wait() // All have told what they serve.
		c := Client[int, int](a, "double")
		var list []*Call[int]
		for i := range 300 {
			list = append(list, c.Go(t.Context(), i))
		}
		for i, p := range list {
			if r, err := p.Wait(t.Context()); r != 2*i || err != nil {
				t.Fatal(i, r, err)
			}
		}
		if at[0].Load()+at[1].Load()+at[2].Load() != 300 || at[1].Load() == 0 || at[2].Load() == 0 {
			t.Error(at[0].Load(), at[1].Load(), at[2].Load())
		}
		_, err := c.Go(t.Context(), -1).Wait(t.Context())
		var fault *CallError
		if !errors.As(err, &fault) || fault.Text != "it is negative" || !strings.Contains(err.Error(), `work: call "double": its function has failed at "`) {
			t.Error(err)
		}
	})
}

// TestCallWithoutServer: the error names what is missing; the call is served once there is a server.
func TestCallWithoutServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(config.DefaultWork())
		a := g.space(t, "a")
		p := Client[int, int](a, "double").Go(t.Context(), 4)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `work: call "double": no member is known that serves it: open the space there with work.Server("double", ...)`) {
			t.Error(err)
		}
		g.space(t, "b", Server("double", double))
		if r, err := p.Wait(t.Context()); r != 8 || err != nil {
			t.Error(r, err)
		}
	})
}

// TestCallChain: the result goes on to the next function, and the call before it has no result of its own.
func TestCallChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(config.DefaultWork())
		a := g.space(t, "a")
		g.space(t, "b", Server("double", double))
		g.space(t, "c", Server("text", func(_ context.Context, n int) (string, error) { return strings.Repeat("x", n), nil }))
		first := Client[int, int](a, "double")
		text := Client[int, string](a, "text")
		for range 2 {
			p := first.Go(t.Context(), 3)
			q := text.Then(t.Context(), first.Then(t.Context(), p))
			if r, err := q.Wait(t.Context()); r != strings.Repeat("x", 12) || err != nil {
				t.Error(r, err)
			}
			if _, err := p.Wait(t.Context()); err == nil || err.Error() != `work: call "double": its result goes to the call "double": wait for that one` {
				t.Error(err)
			}
			if _, err := first.Then(t.Context(), p).Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "its result goes to the call") {
				t.Error(err)
			}
			done := first.Go(t.Context(), 5)
			if _, err := done.Wait(t.Context()); err != nil { // It has ended when Then is called.
				t.Error(err)
			}
			if r, err := text.Then(t.Context(), done).Wait(t.Context()); len(r) != 10 || err != nil {
				t.Error(r, err)
			}
		}
		_, err := text.Then(t.Context(), first.Go(t.Context(), -1)).Wait(t.Context())
		var fault *CallError
		if !errors.As(err, &fault) || fault.Name != "double" || fault.Member != "b" {
			t.Error(err)
		}
	})
}

// TestCallsWithinCalls: a function that waits for a call gives up its slot, and circles end.
func TestCallsWithinCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		section := config.DefaultWork()
		section.Slots = 1
		g := newGroup(section)
		fib := func(ctx context.Context, n int) (int, error) {
			if n < 2 {
				return n, nil
			}
			c := Client[int, int](SpaceOf(ctx), "fib")
			x, y := c.Go(ctx, n-1), c.Go(ctx, n-2)
			a, err := x.Wait(ctx)
			if err != nil {
				return 0, err
			}
			b, err := y.Wait(ctx)
			return a + b, err
		}
		round := func(ctx context.Context, n int) (int, error) {
			r, err := Client[int, int](SpaceOf(ctx), "round").Go(ctx, n+1).Wait(ctx)
			if fault, ok := errors.AsType[*CallError](err); ok {
				err = errors.New(fault.Text)
			}
			return r, err
		}
		options := []Option{Server("fib", fib), Server("round", round), Func("task", func(ctx context.Context, n int) (int, error) {
			return Client[int, int](SpaceOf(ctx), "fib").Go(ctx, n).Wait(ctx)
		})}
		a := g.space(t, "a", options...)
		b := g.space(t, "b", options...)
		if r, err := Client[int, int](a, "fib").Go(t.Context(), 12).Wait(t.Context()); r != 144 || err != nil {
			t.Error(r, err)
		}
		if _, err := Client[int, int](a, "round").Go(t.Context(), 0).Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "calls are nested too deep: at most 32 are allowed") {
			t.Error(err)
		}
		go func() { _ = b.Wait(t.Context()) }()
		for range 4 {
			if err := a.Put(t.Context(), "task", 10); err != nil {
				t.Fatal(err)
			}
		}
		sum := 0
		for r, err := range Results[int](t.Context(), a, "task") {
			if err != nil {
				t.Fatal(err)
			}
			sum += r.Value
		}
		if sum != 4*55 {
			t.Error(sum)
		}
	})
}

// TestCallsOfLostServers: calls of a server that is lost run elsewhere, and fail with its name once they were tried often enough.
func TestCallsOfLostServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(config.DefaultWork())
		a := g.space(t, "a")
		hangs := func(ctx context.Context, n int) (int, error) { <-ctx.Done(); return 0, ctx.Err() }
		_, b := g.spaceOf(t, "b", 1, Server("double", hangs))
		c := Client[int, int](a, "double")
		p, q := c.Go(t.Context(), 1), c.Go(t.Context(), 2)
		synctest.Wait()
		g.leave(b)
		g.space(t, "c", Server("double", double))
		for i, p := range []*Call[int]{p, q} {
			if r, err := p.Wait(t.Context()); r != 2*(i+1) || err != nil {
				t.Error(r, err)
			}
		}
		for _, name := range []string{"d", "e", "f"} {
			_, l := g.spaceOf(t, name, 1, Server("hang", hangs))
			if name == "d" {
				p = Client[int, int](a, "hang").Go(t.Context(), 1)
			}
			time.Sleep(time.Second)
			g.leave(l)
		}
		_, err := p.Wait(t.Context())
		if !errors.Is(err, ErrServerLost) || !strings.Contains(err.Error(), `work: call "hang": its server "f" is lost, the last of 3 tries: look at what it does to a process, or raise retry of the call`) {
			t.Error(err)
		}
	})
}

// TestLargeCalls: arguments and results of several MiB travel in pieces.
func TestLargeCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(config.DefaultWork())
		a := g.space(t, "a")
		g.space(t, "b", Server("twice", func(_ context.Context, b []byte) ([]byte, error) { return append(b, b...), nil }))
		c := Client[[]byte, []byte](a, "twice")
		r, err := c.Go(t.Context(), make([]byte, 3<<20)).Wait(t.Context())
		if len(r) != 6<<20 || err != nil {
			t.Error(len(r), err)
		}
		if _, err := c.Go(t.Context(), make([]byte, 16<<20+1)).Wait(t.Context()); err == nil || !strings.Contains(err.Error(), `work: call "twice": the argument has 16777217 bytes, and at most 16777216 are allowed`) {
			t.Error(err)
		}
		if _, err := c.Go(t.Context(), make([]byte, 9<<20)).Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "the result has 18874368 bytes") {
			t.Error(err)
		}
	})
}

// withCalls is a group whose configuration says how calls of a function travel.
func withCalls(name string, c config.WorkCall) *group {
	section := config.DefaultWork()
	section.Slots = 1
	section.Calls = append(section.Calls, yamlconf.Entry[config.WorkCall]{Key: name, Value: c})
	return newGroup(section)
}

// LoadOfCalls is how many calls wait or run at a member.
func LoadOfCalls(s *Space) (load int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls.machine.Report() {
		load += c.Waiting + c.Running
	}
	return load
}

// TestCallStyles: the same program is synchronous, asynchronous or bounded by water marks, by the configuration alone.
func TestCallStyles(t *testing.T) {
	for style, want := range map[string]struct{ atReturn, most int }{
		"sync": {1, 1}, "async": {0, 20}, "async-demand(2:3)": {0, 6}, "async-demand(*:1)": {0, 2}, "async-demand(2:*)": {0, 20},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := withCalls("f", config.WorkCall{Style: style})
			a := g.space(t, "a")
			var ended atomic.Int32
			serve := Server("f", func(_ context.Context, n int) (int, error) { time.Sleep(time.Millisecond); ended.Add(1); return n, nil })
			spaces := []*Space{g.space(t, "b", serve), g.space(t, "c", serve)}
			c := Client[int, int](a, "f")
			first := c.Go(t.Context(), 1)
			if int(ended.Load()) != want.atReturn {
				t.Errorf("%s: Go has returned after %d calls, want %d", style, ended.Load(), want.atReturn)
			}
			_, _ = first.Wait(t.Context())
			most := 0
			for range 20 {
				_ = c.Go(t.Context(), 1)
				synctest.Wait()
				held := 0
				for _, s := range spaces {
					held += LoadOfCalls(s)
				}
				most = max(most, held)
			}
			if style != "sync" && most != want.most || most > want.most {
				t.Errorf("%s: %d calls are at the servers, want %d", style, most, want.most)
			}
		})
	}
}

// TestCallConfiguration: replicas and ratio say who serves a call, and priority which one is next.
func TestCallConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := withCalls("f", config.WorkCall{Replicas: []string{"b", "c"}, Ratio: "1:2", Priority: "-len(arg)", Traffic: config.Bulk})
		var at [4]atomic.Int32
		var order []string
		serve := func(i int) Option {
			return Server("f", func(_ context.Context, text string) (int, error) {
				if at[i].Add(1); i == 1 {
					order = append(order, text)
				}
				time.Sleep(100 * time.Millisecond)
				return 0, nil
			})
		}
		a := g.space(t, "a", serve(0))
		g.space(t, "b", serve(1))
		g.space(t, "c", serve(2))
		g.space(t, "d", serve(3))
		synctest.Wait() // All have told what they serve.
		c := Client[string, int](a, "f")
		var list []*Call[int]
		for i := range 12 {
			list = append(list, c.Go(t.Context(), strings.Repeat("x", i)))
		}
		for _, p := range list {
			if _, err := p.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if got := [4]int32{at[0].Load(), at[1].Load(), at[2].Load(), at[3].Load()}; got != [4]int32{0, 4, 8, 0} {
			t.Error(got)
		}
		if len(order) != 4 || !slices.IsSortedFunc(order[1:], func(a, b string) int { return len(b) - len(a) }) {
			t.Errorf("the server ran %q: the longest first, but for the one that came first", order)
		}
	})
}

// TestDrainServesCalls: a member that drains serves the calls that it has, and gets no more.
func TestDrainServesCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(config.DefaultWork())
		a := g.space(t, "a")
		var ran atomic.Int32
		b := g.space(t, "b", Server("f", func(_ context.Context, n int) (int, error) { time.Sleep(time.Second); ran.Add(1); return n, nil }))
		c := Client[int, int](a, "f")
		p := c.Go(t.Context(), 1)
		synctest.Wait()
		drained := make(chan error)
		go func() { drained <- b.Drain(t.Context()) }()
		synctest.Wait()
		q := c.Go(t.Context(), 2)
		if err := <-drained; err != nil || ran.Load() != 1 {
			t.Errorf("%v after %d calls", err, ran.Load())
		}
		if r, err := p.Wait(t.Context()); r != 1 || err != nil {
			t.Error(r, err)
		}
		g.space(t, "c", Server("f", double))
		if r, err := q.Wait(t.Context()); r != 4 || err != nil {
			t.Error(r, err)
		}
	})
}

// TestCallPriorities is the case cord-priority: the order in which a disk serves its requests.
func TestCallPriorities(t *testing.T) {
	const ahead = "(loc - server.head) * server.dir"
	for priority, want := range map[string][]float64{
		"abs(loc - server.head)":                         {45, 60, 95, 20},
		ahead + " >= 0 ? " + ahead + " : 1e9 - " + ahead: {60, 95, 45, 20},
		"(loc - server.head) % 200":                      {60, 95, 20, 45},
		"(server.head - loc) * 1":                        {95, 60, 45, 20}, // SCAN as printed.
		"loc * 1":                                        {20, 45, 60, 95}, // C-SCAN as printed.
		"":                                               {20, 45, 60, 95},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := withCalls("seek", config.WorkCall{Priority: priority})
			a := g.space(t, "a")
			var order []float64
			g.space(t, "disk", Server("seek", func(_ context.Context, track float64) (bool, error) {
				order = append(order, track)
				time.Sleep(time.Second)
				return true, nil
			}))
			c := Client[float64, bool](a, "seek")
			var list []*Call[bool]
			for _, track := range []float64{50, 20, 45, 60, 95} {
				list = append(list, c.Go(t.Context(), track, Loc(track)))
			}
			for _, p := range list {
				if _, err := p.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(order[1:], want) {
				t.Errorf("%s: %v, want %v", priority, order[1:], want)
			}
		})
	}
}

// deaf is a transport without members.
type deaf struct{ Transport }

func (deaf) Publish(string, []byte) error                 { return nil }
func (deaf) Subscribe(string, func(string, []byte)) error { return nil }
func (deaf) Flush(context.Context) error                  { return nil }
func (deaf) Close() error                                 { return nil }

// TestCallFaultTexts: a fault says what has failed, and what to do.
func TestCallFaultTexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		section := config.DefaultWork()
		section.Calls = append(section.Calls, yamlconf.Entry[config.WorkCall]{Key: "offered", Value: config.WorkCall{Service: true}})
		g := newGroup(section)
		many := make([]Option, 257)
		for i := range many {
			many[i] = Server(strings.Repeat("x", i/100+1)+string(rune('a'+i%100)), double)
		}
		for want, options := range map[string][]Option{
			`work: server "double" is declared twice: keep one`:                                            {Server("double", double), Server("double", double)},
			`work: server "": its name has 0 bytes: give it one of 1 to 128`:                               {Server("", double)},
			`work: server "f": its function is nil`:                                                        {Server[int, int]("f", nil)},
			`256 servers are declared already, and no more are allowed: let one of them do several things`: many,
			`the calls of "offered" are offered as a service of NATS, and the messages of this space travel by a transport of the program: leave service out, or leave Over out`: {Over(deaf{}), Server("offered", double)},
		} {
			l := g.join("x", 1)
			if s, err := open(t.Context(), l, options); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v; want %s", err, want)
				if s != nil {
					_ = s.Close()
				}
			}
			g.leave(l)
		}
		a, err := open(t.Context(), g.join("a", 1), nil)
		if err != nil {
			t.Fatal(err)
		}
		none := Client[int, int](a, "none")
		for want, p := range map[string]*Call[int]{
			`work: call "none": its loc is NaN: it must be a finite number`:                none.Go(t.Context(), 1, Loc(math.NaN())),
			`work: call "none": its weight is +Inf: it must be a finite number`:            none.Then(t.Context(), none.Go(t.Context(), 1), CallWeight(math.Inf(1))),
			`work: call "": the name of its function has 0 bytes: give it one of 1 to 128`: Client[int, int](a, "").Go(t.Context(), 1),
		} {
			if _, err := p.Wait(t.Context()); err == nil || err.Error() != want {
				t.Errorf("%v; want %s", err, want)
			}
		}
		chain := none.Go(t.Context(), 1)
		for range 31 {
			chain = none.Then(t.Context(), chain)
		}
		if _, err := none.Then(t.Context(), chain).Wait(t.Context()); err == nil || err.Error() != `work: call "none": the chain has too many functions: at most 32 are allowed` {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for range 1022 {
			none.Go(ctx, 1)
		}
		if _, err := none.Go(ctx, 1).Wait(t.Context()); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `work: call "none": 1024 calls are open, and no more are allowed`) {
			t.Error(err)
		}
		const full = `work: call "f": its servers are full, the last of them is "b": wait for answers before the next call, or add servers`
		if err := (&CallError{Name: "f", Member: "b", Cause: ErrServersFull}); err.Error() != full || !errors.Is(err, ErrServersFull) {
			t.Error(err)
		}
		waits := make(chan error)
		go func() { _, err := chain.Wait(t.Context()); waits <- err }()
		synctest.Wait()
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		if err := <-waits; !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		if _, err := none.Go(t.Context(), 1).Wait(t.Context()); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
}

// TestCallsOfClosedSpaces: calls of a space that is closed run elsewhere, although its member stays in the group.
func TestCallsOfClosedSpaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(config.DefaultWork())
		a := g.space(t, "a")
		b, err := open(t.Context(), g.join("b", 1), []Option{Server("double", func(ctx context.Context, _ int) (int, error) { <-ctx.Done(); return 0, ctx.Err() })})
		if err != nil {
			t.Fatal(err)
		}
		p := Client[int, int](a, "double").Go(t.Context(), 1)
		synctest.Wait()
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		g.space(t, "c", Server("double", double))
		if r, err := p.Wait(t.Context()); r != 2 || err != nil {
			t.Error(r, err)
		}
	})
}
