package work

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gopegasus/pegasus/internal/config"
)

func square(_ context.Context, n int) (int, error) { return n * n, nil }

// serve runs a member that only works, until the test ends.
func serve(t *testing.T, s *Space) {
	t.Helper()
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(done)
		_ = s.Serve(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
}

func TestResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(config.DefaultWork())
		a := g.space(t, "a", Func("square", square))
		for _, name := range []string{"b", "c"} {
			serve(t, g.space(t, name, Func("square", square)))
		}
		for phase := range 3 {
			sum, n := 0, 0
			for i := range 100 {
				if err := a.Put(t.Context(), "square", i); err != nil {
					t.Fatal(err)
				}
			}
			for r, err := range Results[int](t.Context(), a, "square") {
				if err != nil {
					t.Fatal(err)
				}
				sum += r.Value
				n++
			}
			if n != 100 || sum != 328350 || g.ends != phase+1 {
				t.Fatalf("phase %d: %d results, their sum is %d, %d ends", phase, n, sum, g.ends)
			}
		}
		if err := a.Wait(t.Context()); err != nil || g.ends != 4 {
			t.Errorf("a phase without a task: %v, %d ends", err, g.ends)
		}
	})
}

// interval is a bag of numbers.
type interval struct{ Low, High int }

func (b *interval) Len() int { return b.High - b.Low }

func (b *interval) Split(n int) interval {
	b.High -= n
	return interval{b.High, b.High + n}
}

func count(ctx context.Context, b *interval, sum *int) error {
	for b.Len() > 0 {
		time.Sleep(time.Millisecond)
		*sum += b.Low
		b.Low++
		if err := Yield(ctx); err != nil {
			return err
		}
	}
	return nil
}

func plus(a, b int) int { return a + b }

func TestTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		section := config.DefaultWork()
		section.Slots = 2
		g := newGroup(section)
		a := g.space(t, "a", Bag("count", count, plus))
		for _, name := range []string{"b", "c"} {
			serve(t, g.space(t, name, Bag("count", count, plus)))
		}
		began := time.Now()
		if err := a.Put(t.Context(), "count", interval{0, 6000}); err != nil {
			t.Fatal(err)
		}
		sum, err := Total[int](t.Context(), a, "count")
		if took := time.Since(began); err != nil || sum != 6000*5999/2 || took > 1100*time.Millisecond {
			t.Errorf("the sum is %d, %v, after %v; want %d after 1s, 6 slots", sum, err, took, 6000*5999/2)
		}
	})
}

// A worker that is gone loses nothing: what it ran runs again.
func TestWorkerDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		section := config.DefaultWork()
		section.Slots = 1
		g := newGroup(section)
		a := g.space(t, "a", Bag("count", count, plus))
		b, link := g.spaceOf(t, "b", 1, Bag("count", count, plus))
		serve(t, b)
		if err := a.Put(t.Context(), "count", interval{0, 4000}); err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(1300 * time.Millisecond)
			g.leave(link)
		}()
		sum, err := Total[int](t.Context(), a, "count")
		if err != nil || sum != 4000*3999/2 {
			t.Errorf("the sum is %d, %v", sum, err)
		}
		if s := a.Stats(); s.Redone == 0 {
			t.Errorf("nothing was done again: %+v", s)
		}
		if err := b.Put(t.Context(), "count", interval{}); !errors.Is(err, ErrDropped) {
			t.Errorf("a dropped member puts a task: %v", err)
		}
	})
}

// Tasks of a member that is gone are lost, and the others hear of it.
func TestCreatorDies(t *testing.T) {
	for lost, want := range map[string]string{
		config.LostFail: "work: 20 tasks of a are lost: with store: memory they die with the member that has put them; with lost: go on the others continue",
		config.LostGoOn: "<nil>",
	} {
		synctest.Test(t, func(t *testing.T) {
			section := config.DefaultWork()
			section.Lost, section.Slots = lost, 2
			g := newGroup(section)
			slow := Func("slow", func(context.Context, int) (int, error) { time.Sleep(time.Minute); return 0, nil })
			a, link := g.spaceOf(t, "a", 1, slow)
			b := g.space(t, "b", slow)
			for i := range 20 {
				if err := a.Put(t.Context(), "slow", i); err != nil {
					t.Fatal(err)
				}
			}
			go func() {
				time.Sleep(10 * time.Second)
				g.leave(link)
			}()
			if err := b.Wait(t.Context()); fmt.Sprint(err) != want {
				t.Errorf("lost: %s: %v; want %s", lost, err, want)
			}
			if _, isLost := errors.AsType[*LostError](a.Wait(t.Context())); isLost {
				t.Error("the lost member is told of its own tasks as of another's")
			}
			time.Sleep(time.Minute) // The functions return.
		})
	}
}

// What a function puts is put with its record, and counts for the end.
func TestChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(config.DefaultWork())
		var leaves atomic.Int64
		var failed sync.Map
		tree := func(s **Space) Option {
			return Func("tree", func(ctx context.Context, depth int) (int, error) {
				time.Sleep(5 * time.Millisecond)
				if depth == 0 {
					leaves.Add(1)
					return 1, nil
				}
				for range 3 {
					if err := (*s).Put(ctx, "tree", depth-1); err != nil {
						return 0, err
					}
				}
				if _, again := failed.LoadOrStore(depth, true); !again { // One task of each depth fails at first.
					return 0, errors.New("what was put before does not count")
				}
				return 0, nil
			})
		}
		var a, b *Space
		a = g.space(t, "a", tree(&a))
		b = g.space(t, "b", tree(&b))
		serve(t, b)
		if err := a.Put(t.Context(), "tree", 5); err != nil {
			t.Fatal(err)
		}
		n := 0
		for r, err := range Results[int](t.Context(), a, "tree") {
			if err != nil {
				t.Fatal(err)
			}
			n += r.Value
		}
		if n != 243 || leaves.Load() != 243 {
			t.Errorf("%d leaves were found and %d visited, want 243", n, leaves.Load())
		}
	})
}

func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(config.DefaultWork())
		runs := 0
		a := g.space(t, "a",
			Func("bad", func(context.Context, int) (int, error) {
				time.Sleep(time.Millisecond)
				runs++
				return 0, errors.New("no such file")
			}),
			Func("panics", func(context.Context, int) (int, error) { panic("lost its head") }),
			Bag("lazy", func(context.Context, *interval, *int) error { return nil }, plus))
		for _, name := range []string{"bad", "panics"} {
			if err := a.Put(t.Context(), name, 1, ID("t")); err != nil && name == "bad" {
				t.Fatal(err)
			} else if name == "panics" && !errors.Is(err, ErrDuplicateID) {
				t.Errorf("two tasks of one ID: %v", err)
			}
		}
		if err := a.Put(t.Context(), "lazy", interval{0, 7}, ID("l")); err != nil {
			t.Fatal(err)
		}
		for _, err := range Results[int](t.Context(), a, "bad") {
			if fmt.Sprint(err) != `work: task "t" has failed: no such file` || runs != 3 {
				t.Errorf("after %d runs: %v", runs, err)
			}
		}
		if _, err := Total[int](t.Context(), a, "lazy"); fmt.Sprint(err) != `work: task "l" has failed: the function of the bag has returned nil with 7 items left: work until Len is 0` {
			t.Error(err)
		}
		if err := a.Put(t.Context(), "panics", 1, ID("p")); err != nil {
			t.Fatal(err)
		}
		if err := a.Wait(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "work: task \"p\" has failed: panic: lost its head\ngoroutine ") {
			t.Errorf("%v", err)
		}
	})
}

func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		section := config.DefaultWork()
		section.Slots = 1
		g := newGroup(section)
		var visited atomic.Int64
		visit := func(ctx context.Context, b *interval, sum *int) error {
			for b.Len() > 0 {
				time.Sleep(time.Millisecond)
				visited.Add(1)
				*sum++
				b.Low++
				if err := Yield(ctx); err != nil {
					return err
				}
			}
			return nil
		}
		a := g.space(t, "a", Bag("visit", visit, plus))
		b, link := g.spaceOf(t, "b", 1, Bag("visit", visit, plus))
		serve(t, b)
		if err := a.Put(t.Context(), "visit", interval{0, 3000}); err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(700 * time.Millisecond)
			if err := b.Drain(t.Context()); err != nil {
				t.Error(err)
			}
			g.leave(link)
		}()
		if sum, err := Total[int](t.Context(), a, "visit"); err != nil || sum != 3000 || visited.Load() != 3000 {
			t.Errorf("%d of 3000 counted, %d visited, %v", sum, visited.Load(), err)
		}
	})
}

func TestNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(config.DefaultWork())
		a, b := g.space(t, "a", Pull[string]("word")), g.space(t, "b", Pull[string]("word"))
		for _, w := range []string{"one", "three", "seven", "eleven"} {
			if err := a.Put(t.Context(), "word", w, ID("%s", w)); err != nil {
				t.Fatal(err)
			}
		}
		pull := func(s *Space) error {
			for {
				p, err := s.Next(t.Context())
				if err != nil {
					return err
				}
				w, err := Argument[string](p)
				if err != nil || w != p.ID() || p.Func() != "word" || p.Context().Err() != nil {
					t.Errorf("%q, %v, for %s of %s", w, err, p.ID(), p.Func())
				}
				time.Sleep(time.Second)
				if err := Done(p, len(w)); err != nil {
					t.Error(err)
				}
				if err := Done(p, 9); err == nil {
					t.Error("a task is done twice")
				}
			}
		}
		errs := make(chan error, 2)
		go func() { errs <- pull(a) }()
		go func() { errs <- pull(b) }()
		sum := 0
		for r, err := range Results[int](t.Context(), a, "word") {
			if sum += r.Value; err != nil {
				t.Error(err)
			}
		}
		if e, f := <-errs, <-errs; !errors.Is(e, ErrPhaseOver) || !errors.Is(f, ErrPhaseOver) || sum != 19 {
			t.Errorf("the sum is %d, and Next ends with %v and %v", sum, e, f)
		}
	})
}

// Put waits while as many tasks are open as may be.
func TestOpenTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		section := config.DefaultWork()
		section.Slots, section.Open = 1, 2
		g := newGroup(section)
		a := g.space(t, "a", Func("wait", func(context.Context, int) (int, error) { time.Sleep(time.Second); return 0, nil }))
		began := time.Now()
		for i := range 6 {
			if err := a.Put(t.Context(), "wait", i); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != 4*time.Second {
			t.Errorf("six tasks of a second were put within %v, two open at a time", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := a.Put(ctx, "wait", 7, ID("x")); fmt.Sprint(err) != `work: put task "x": 2 tasks are open, as many as the key open allows: work: wait: context deadline exceeded` {
			t.Error(err)
		}
		if err := a.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A function that ignores its context loses its slot, and is told.
func TestStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		section := config.DefaultWork()
		section.Slots = 2
		g := newGroup(section)
		a := g.space(t, "a", Func("deaf", func(context.Context, int) (int, error) { time.Sleep(time.Minute); return 0, nil }), Func("square", square))
		if err := a.Put(t.Context(), "deaf", 0, ID("d")); err != nil {
			t.Fatal(err)
		}
		if err := a.Cancel("d"); err != nil {
			t.Fatal(err)
		}
		if err := a.Cancel("d"); fmt.Sprint(err) != `work: cancel: task "d": it is not open here: a task is cancelled by the member that has put it` {
			t.Error(err)
		}
		time.Sleep(11 * time.Second)
		if s := a.Stats(); s.Stuck != 1 {
			t.Errorf("%d functions are stuck", s.Stuck)
		}
		if err := a.Put(t.Context(), "square", 3); err != nil {
			t.Fatal(err)
		}
		for r, err := range Results[int](t.Context(), a, "square") {
			if r.Value != 9 || err != nil {
				t.Error(r, err)
			}
		}
		time.Sleep(time.Minute)
		if s := a.Stats(); s.Stuck != 0 {
			t.Errorf("%d functions are stuck after all have returned", s.Stuck)
		}
	})
}

// Messages between members may be lost.
func TestLostMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		section := config.DefaultWork()
		section.Slots = 2
		g := newGroup(section)
		n := 0
		g.lose = func(string) bool { n++; return n%3 == 0 }
		a := g.space(t, "a", Bag("count", count, plus))
		for _, name := range []string{"b", "c", "d"} {
			serve(t, g.space(t, name, Bag("count", count, plus)))
		}
		for range 3 {
			if err := a.Put(t.Context(), "count", interval{0, 3000}); err != nil {
				t.Fatal(err)
			}
			if sum, err := Total[int](t.Context(), a, "count"); err != nil || sum != 3000*2999/2 {
				t.Errorf("the sum is %d, %v", sum, err)
			}
		}
	})
}

func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(config.DefaultWork())
		type flat struct{}
		a := g.space(t, "a", Func("square", square), Bag("count", count, plus))
		ctx := t.Context()
		for want, err := range map[string]error{
			`work: no function "sqare" is declared by this member, which has ["count" "square"]; did you mean "square"?: declare it in Open`:                                     a.Put(ctx, "sqare", 1),
			`work: put: the argument of "square" is string: this program has declared the function with int`:                                                                     a.Put(ctx, "square", "1"),
			`work: put a task of "square": its weight is -1: it must be a finite number of at least 0`:                                                                           a.Put(ctx, "square", 1, Weight(-1)),
			`work: put a task of "square": its ID is empty`:                                                                                                                      a.Put(ctx, "square", 1, ID("")),
			`work: "count" is a bag, which has no result for each task: use Total`:                                                                                               first(Results[int](ctx, a, "count")),
			`work: the total of "count" is int, as this program has declared the bag: ask for that, not for string`:                                                              second(Total[string](ctx, a, "count")),
			`work: function "m": no field of work.silent is exported, so nothing of it would travel: export its fields, or give it MarshalBinary and UnmarshalBinary`:            second(open(ctx, g.links[0], []Option{Pull[silent]("m")})),
			`work: "square" is no bag, so there is no total: use Results`:                                                                                                        second(Total[int](ctx, a, "square")),
			`work: Yield needs the context of a function that a space runs`:                                                                                                      Yield(ctx),
			`work: function "x": *work.flat is no bag: give it the methods Len() int and Split(n int) work.flat`:                                                                 second(open(ctx, g.links[0], []Option{Bag("x", func(context.Context, *flat, *int) error { return nil }, plus)})),
			"work: function \"\": its name has 0 bytes: give it one of 1 to 128\nwork: function \"f\": the Go function is nil\nwork: function \"s\" is declared twice: keep one": second(open(ctx, g.links[0], []Option{Func("", square), Func[int, int]("f", nil), Func("s", square), Func("s", square)})),
		} {
			if fmt.Sprint(err) != want {
				t.Errorf("%v; want %s", err, want)
			}
		}
		bytes := g.space(t, "b", Func("bytes", func(context.Context, []byte) ([]byte, error) { return nil, nil }))
		if err := bytes.Put(ctx, "bytes", make([]byte, 17<<20)); fmt.Sprint(err) != `work: put: the argument of "bytes" has 17825792 bytes, and at most 16777216 are allowed: let it name the data instead, or have less in each task` {
			t.Error(err)
		}
		g.section = nil
		if _, err := open(ctx, g.links[0], nil); fmt.Sprint(err) != "work: the synchronizer of the group has no section work: add one to its configuration, such as work: {store: memory}" {
			t.Error(err)
		}
	})
}

// silent has nothing that JSON writes.
type silent struct{ _ int }

func first[R any](seq func(func(Result[R], error) bool)) (err error) {
	for _, err = range seq {
		break
	}
	return err
}

func second[T any](_ T, err error) error { return err }

// TestDroppedAndBack: a member that was off the roster, and is on the next one before its space has looked, was
// dropped. So it is however many rosters wait.
func TestDroppedAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for i, times := range []int{1, maxRosters, 2 * maxRosters} {
			g := newGroup(config.DefaultWork())
			s := g.space(t, strconv.Itoa(i), Func("square", square))
			g.mu.Lock()
			l := g.links[0]
			g.mu.Unlock()
			s.mu.Lock()
			for range times {
				g.leave(l)
				g.mu.Lock()
				g.links = append(g.links, l)
				g.newRoster(nil)
				g.mu.Unlock()
			}
			s.mu.Unlock()
			synctest.Wait()
			if err := s.Put(t.Context(), "square", 1); !errors.Is(err, ErrDropped) {
				t.Errorf("%d times: %v", times, err)
			}
		}
	})
}
