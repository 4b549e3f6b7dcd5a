package synchronizer_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/control/program"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/testwait"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

// verifyNoLeaks holds when all cleanups of the test have run.
func verifyNoLeaks(t *testing.T) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

// searchProgram has two replicas of a block with three threads. Their synchronizer
// spreads the least bound among them, and cancels all when one has found enough.
const searchProgram = `
synchronizers:
  gsync:
    members: {group: g, count: 2}
    state: {best: {type: float, default: 100.0}, seen: {type: int, default: 0}}
    predicates:
      both: {when: "all(members, .best == 1.0 and .seen == 3)"}
  tsync:
    parent: gsync
    members: {threads: {min: 1, max: 8}}
    state: {best: float, seen: float}
    memory: {bound: {type: float, initial: +inf}}
    predicates:
      better:
        when: min(map(members, .best)) < memory.bound
        set: {bound: "min(map(members, .best))"}
        every: true
        signal: {kind: activate, region: search, to: all, data: {bound: "min(map(members, .best))"}}
      enough:
        when: any(members, .best <= 1.0) and all(members, .seen <= 1.0)
        signal: {kind: cancel, region: search, to: all}
    summary:
      best: min(map(members, .best))
      seen: count(members, .seen <= 1.0)
program:
  name: search
  processors: {p: {count: 2}}
  blocks: {search: {group: g, input: float, output: [float], threads: 3, synchronizer: tsync}, yes: {output: any}}
  body:
    seq:
      - {name: pair, par: {do: search, on: p, input: 1.0}, times: 2}
      - {if: both, then: {do: search, on: p, input: 1.0}, else: yes, name: again}
  result: again.result
`

// bound is the state of the threads of the tests: their best value, and the bound that
// they received.
type bound struct{ Best, Seen float64 }

// improve waits for the bound that another thread has found.
func improve(ctx context.Context, t *agent.BlockThread, best float64) (float64, error) {
	mine := bound{Best: best + float64(t.Count()-1-t.Index()), Seen: 50}
	state, err := agent.StateOf[bound](t)
	if err != nil {
		return 0, err
	}
	return mine.Best, t.Region(ctx, "search", func(ctx context.Context, r *agent.Region) error {
		if err := state.Set(mine); err != nil {
			return err
		}
		for {
			if err := r.Wait(ctx); err != nil {
				return err
			}
		}
	}, agent.OnActivate("better", func(_ context.Context, s agent.Signal) error {
		mine.Seen = s.Float("bound")
		return t.Set(mine)
	}))
}

func all(_ context.Context, _ *agent.Run, _ float64, parts []float64) ([]float64, error) {
	return parts, nil
}

// TestThreadBlocks: the threads of a block hear of each other's bound and are
// cancelled by their own synchronizer; what that sums up is the state of the
// processor, on which the program decides; and the next run begins again.
func TestThreadBlocks(t *testing.T) {
	verifyNoLeaks(t)
	url, w := runProgram(t, searchProgram)
	joinNode(t, url, "g", "n", 2,
		agent.ThreadBlock("search", improve, all, agent.ThreadState(bound{})),
		agent.Block("yes", func(context.Context, *agent.Run, any) (any, error) { return "else", nil }))
	end := w.end(t)
	if end.Outcome != program.Done || end.Result != "[3,2,1]" {
		t.Errorf("%v, %s, %s", end.Outcome, end.Result, end.Reason)
	}
	if n := w.count(monitor.ProgramRefuse); n > 0 {
		t.Errorf("the interpreter refused %d inputs", n)
	}
}

// threadProgram has one block with threads, beside which another one may run.
const threadProgram = `
synchronizers:
  gsync:
    members: {group: g, count: 1}
    state: {left: {type: int, default: 9}}
    predicates:
      few: {when: "all(members, .left <= 1)", signal: {kind: activate, region: a, to: all, data: {left: "min(map(members, .left))"}}}
  tsync:
    parent: gsync
    members: {threads: {min: 1, max: 8}}
    state: {left: int}
    process: {open: bool}
    predicates:
      empty:
        when: all(members, .left == 0) and not process.open
        signal: {kind: cancel, region: work, to: all}
      heard:
        when: from_parent.few.left == 1
        signal: {kind: activate, region: work, to: [t0]}
    summary: {left: "sum(members, .left)"}
  other:
    parent: gsync
    members: {threads: 2}
    state: {ready: bool}
    predicates:
      all-ready: {when: "all(members, .ready)", signal: {kind: cancel, region: start, to: all}}
program:
  name: threads
  blocks:
`

// The declarations of blocks in the program.
const (
	blockA = "    a: {group: g, input: int, output: any, threads: 3, synchronizer: tsync}\n"
	blockB = "    b: {group: g, input: any, output: any, threads: 2, synchronizer: other}\n"
	blockC = "    c: {input: any, output: any, threads: 4}\n"

	onlyA = threadProgram + blockA + "  body: {do: a, input: 0}"
	onlyB = threadProgram + blockB + "  body: {do: b, input: 0}"
)

type left struct{ Left int }

// TestThreadLevels: blocks of a program have thread-level synchronizers of their
// own, or none; their predicates read what the process says beside its threads, and
// signals of the level above.
func TestThreadLevels(t *testing.T) {
	verifyNoLeaks(t)
	url, w := runProgram(t, threadProgram+blockA+blockB+blockC+`
  body: {seq: [{do: a, input: 2}, {do: b, input: 0}, {do: c, input: 0}]}
  result: c.result
`)
	joinNode(t, url, "g", "n", 1,
		agent.ThreadBlock("a", func(ctx context.Context, t *agent.BlockThread, n int) (heard int, err error) {
			return heard, t.Region(ctx, "work", func(ctx context.Context, r *agent.Region) error {
				if err := t.SetProcess(struct{ Open bool }{true}); err != nil {
					return err
				}
				if t.Index() > 0 {
					n = 0
				}
				for {
					if err := t.Set(left{n}); err != nil {
						return err
					}
					if n == 2 { // So that the process is below few only once, with one.
						n--
						continue
					}
					if err := r.Wait(ctx); err != nil {
						return err
					}
					heard++
					n--
					if err := t.SetProcess(struct{ Open bool }{false}); err != nil {
						return err
					}
				}
			}, agent.OnActivate("heard", func(context.Context, agent.Signal) error { return nil }))
		}, func(_ context.Context, r *agent.Run, _ int, parts []int) (any, error) {
			if parts[0] != 1 || parts[1] != 0 || parts[2] != 0 {
				return nil, fmt.Errorf("the threads heard %v", parts)
			}
			return nil, r.Set(left{7})
		}),
		agent.ThreadBlock("b", func(ctx context.Context, t *agent.BlockThread, _ any) (any, error) {
			return nil, t.Region(ctx, "start", func(ctx context.Context, r *agent.Region) error {
				if err := t.SetProcess(struct{}{}); err == nil || !strings.Contains(err.Error(), `the state of this process is the summary of its threads: set theirs, or declare one beside them under process: in section "other"`) {
					return fmt.Errorf("a state beside the threads that is not declared: %w", err)
				}
				if err := t.Set(struct{ Ready bool }{true}); err != nil {
					return err
				}
				return r.Wait(ctx)
			})
		}, func(context.Context, *agent.Run, any, []any) (any, error) { return nil, nil }),
		agent.ThreadBlock("c", func(_ context.Context, t *agent.BlockThread, _ any) (string, error) {
			return fmt.Sprint(t.Run().Block(), t.Index(), t.Count()), t.Set(struct{}{})
		}, func(_ context.Context, _ *agent.Run, _ any, parts []string) ([]string, error) { return parts, nil }))
	if end := w.end(t); end.Outcome != program.Done || end.Result != `["c0 4","c1 4","c2 4","c3 4"]` {
		t.Errorf("%v, %s, %s", end.Outcome, end.Result, end.Reason)
	}
}

// TestThreadsFail: why a block with threads fails, and that the others are left then.
func TestThreadsFail(t *testing.T) {
	verifyNoLeaks(t)
	none := func(context.Context, *agent.Run, any, []any) (any, error) { return 1, nil }
	one := func(what func() (any, error), others chan error) agent.BlockCode {
		return agent.ThreadBlock("b", func(ctx context.Context, t *agent.BlockThread, _ any) (any, error) {
			if t.Index() == 1 {
				return what()
			}
			return nil, t.Region(ctx, "start", func(ctx context.Context, r *agent.Region) error {
				err := r.Wait(ctx)
				others <- err
				return err
			})
		}, none)
	}
	for name, c := range map[string]struct {
		what func() (any, error)
		want string
	}{
		"error":  {func() (any, error) { return nil, errors.New("no disk") }, `block "b": thread 1: no disk`},
		"panic":  {func() (any, error) { panic("oh") }, `block "b": thread 1: panicked: oh`},
		"goexit": {func() (any, error) { runtime.Goexit(); return nil, nil }, `block "b": thread 1: ended without returning`},
	} {
		t.Run(name, func(t *testing.T) {
			url, w := runProgram(t, onlyB)
			others := make(chan error, 1)
			joinNode(t, url, "g", "n", 1, one(c.what, others))
			if end := w.end(t); end.Outcome != program.Failed || !strings.HasPrefix(end.Reason, c.want) {
				t.Errorf("%v, %.200s; want %s", end.Outcome, end.Reason, c.want)
			}
			if err := <-others; err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("the other thread was left by %v", err)
			}
		})
	}
}

// TestThreadsMisfit: a start is refused if the code on the node, or the state of its
// threads, differs from the declaration of the program.
func TestThreadsMisfit(t *testing.T) {
	verifyNoLeaks(t)
	join := func(context.Context, *agent.Run, any, []any) (any, error) { return nil, errors.New("no parts") }
	threads := func(name string, opts ...agent.ThreadOption) agent.BlockCode {
		return agent.ThreadBlock(name, func(_ context.Context, t *agent.BlockThread, _ any) (any, error) {
			if t.Index() > 0 {
				return 1, nil
			}
			return 1, t.Set(struct{ Ready bool }{})
		}, join, opts...)
	}
	plain := agent.Block("b", func(context.Context, *agent.Run, any) (any, error) { return 1, nil })
	for name, c := range map[string]struct {
		program, want string
		code          agent.BlockCode
	}{
		"plain code":    {onlyB, `block "b" has 2 threads, and its code on node n-0 has none: an executable cannot have them, and a Go node needs agent.ThreadBlock; keep it off other nodes by a label`, plain},
		"other threads": {onlyA, `block "a": thread 0: agent: field Ready of struct { Ready bool }: the configuration declares no field "ready", but left: declare it, or leave it out with the tag ` + "`pegasus:\"-\"`" + `; struct { Ready bool } has no field "left", which the configuration declares without a default: add it, give it one with {type: T, default: V}, or take it out of the declaration`, threads("a")},
		"join":          {onlyB, "no parts", threads("b")},
	} {
		t.Run(name, func(t *testing.T) {
			url, w := runProgram(t, c.program)
			joinNode(t, url, "g", "n", 1, c.code)
			if end := w.end(t); end.Outcome != program.Failed || end.Reason != c.want {
				t.Errorf("%v, %s; want %s", end.Outcome, end.Reason, c.want)
			}
		})
	}
	t.Run("no threads", func(t *testing.T) {
		url, w := runProgram(t, "program: {name: p, blocks: {b: {output: any}}, body: b}")
		joinNode(t, url, "processors", "n", 1, threads("b"))
		want := `block "b" has no threads, and its code on node n-0 is for threads: declare threads: N for it`
		if end := w.end(t); end.Outcome != program.Failed || end.Reason != want {
			t.Errorf("%v, %s; want %s", end.Outcome, end.Reason, want)
		}
	})
	t.Run("state", func(t *testing.T) {
		url, _ := runProgram(t, onlyB)
		_, err := agent.JoinNode(t.Context(), url, agent.NodeConfig{Group: "g", Name: "n"}, threads("b", agent.ThreadState(left{})))
		want := `agent: node "n": block "b": its threads do not fit the thread-level synchronizer "other" of the program: field "left" of the program's state is not declared: declared are ready`
		if err == nil || err.Error() != want {
			t.Errorf("%v; want %s", err, want)
		}
	})
	t.Run("names", func(t *testing.T) {
		_, err := agent.JoinNode(t.Context(), "nats://127.0.0.1:1", agent.NodeConfig{Group: "g", Name: "n"},
			threads(strings.Repeat("a", 64)), threads(strings.Repeat("b", 64)), threads(strings.Repeat("c", 64)), threads(strings.Repeat("d", 64)), threads("e"))
		want := `agent: node "n": 5 blocks with threads, with 257 bytes of names: at most 64 blocks, with 256 bytes of names together, can be reported`
		if err == nil || err.Error() != want {
			t.Errorf("%v; want %s", err, want)
		}
	})
}

// TestThreadsAreCanceled: a JOIN that passes by a predicate, and a node that is closed,
// end all threads of a block.
func TestThreadsAreCanceled(t *testing.T) {
	verifyNoLeaks(t)
	url, w := runProgram(t, `
synchronizers:
  gsync:
    members: {group: g, count: 2}
    state: {good: {type: int, default: 0}}
    predicates: {good: {when: "any(members, .good == 2)"}}
  tsync:
    parent: gsync
    members: {threads: 2}
    state: {waits: bool}
    summary: {good: "count(members, .waits)"}
program:
  name: cancel
  blocks:
    hang: {group: g, output: any, threads: 2, synchronizer: tsync}
    late: {output: any, threads: 3}
  body:
    seq:
      - {par: hang, times: 2, join: good}
      - {do: late}
`)
	causes, late := make(chan error, 4), make(chan error, 3)
	inside := make(chan struct{}, 3)
	n, err := agent.JoinNode(t.Context(), url, agent.NodeConfig{Group: "g", Name: "n", Processors: 2},
		agent.ThreadBlock("hang", func(ctx context.Context, t *agent.BlockThread, _ any) (any, error) {
			err := t.Region(ctx, "wait", func(ctx context.Context, r *agent.Region) error {
				if err := t.Set(struct{ Waits bool }{t.Run().Replicas()[0] == 1}); err != nil {
					return err
				}
				return r.Wait(ctx)
			})
			causes <- err
			return nil, err
		}, func(context.Context, *agent.Run, any, []any) (any, error) {
			return nil, errors.New("it was not cancelled")
		}),
		agent.ThreadBlock("late", func(ctx context.Context, _ *agent.BlockThread, _ any) (any, error) {
			inside <- struct{}{}
			<-ctx.Done()
			late <- context.Cause(ctx)
			return nil, nil
		}, func(context.Context, *agent.Run, any, []any) (any, error) { return nil, nil }))
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		var c *agent.Canceled
		if err := <-causes; !errors.As(err, &c) || c.Region != "hang" || c.Predicate != "program" {
			t.Errorf("a thread ended by %v", err)
		}
	}
	for range 3 {
		<-inside
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	for range 3 {
		if err := <-late; !errors.Is(err, agent.ErrClosed) {
			t.Errorf("a thread of a closed node ended by %v", err)
		}
	}
	if end := w.end(t); end.Outcome != program.Failed || !strings.HasSuffix(end.Reason, " was lost") {
		t.Errorf("%v, %s", end.Outcome, end.Reason)
	}
}

// TestNextThreads runs a second program on a node of a first one, whose blocks have
// other threads.
func TestNextThreads(t *testing.T) {
	verifyNoLeaks(t)
	server, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	const text = `
synchronizers:
  gsync: {members: {group: g, count: 1}}
  tsync: {parent: gsync, members: {threads: %[1]d}, state: {n: %[2]s}}
program: {name: next, blocks: {b: {output: int, threads: %[1]d, synchronizer: tsync}}, body: b, result: b.result}
`
	for i, c := range []struct {
		threads int
		state   string
		want    string
	}{{2, "int", "2"}, {3, "int", "3"}, {3, "string", ""}} {
		cfg, err := synchronizer.ParseProgram("test.yaml", fmt.Appendf(nil, text, c.threads, c.state))
		if err != nil {
			t.Fatal(err)
		}
		w := watchProgram()
		s, err := synchronizer.Start(t.Context(), server.URL(), cfg, synchronizer.Options{Observe: w.observe})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			joinNode(t, server.URL(), "g", "n", 1, agent.ThreadBlock("b", func(_ context.Context, t *agent.BlockThread, _ any) (int, error) {
				return 1, t.Set(struct{ N int }{t.Index()})
			}, func(_ context.Context, _ *agent.Run, _ any, parts []int) (n int, err error) {
				for _, p := range parts {
					n += p
				}
				return n, nil
			}, agent.ThreadState(struct{ N int }{})))
		}
		end := w.end(t)
		if end.Result != c.want {
			t.Errorf("program %d: %v, %s, %s; want %s", i, end.Outcome, end.Result, end.Reason, c.want)
		}
		want := `block "b": agent: thread "t0": refused by synchronizer "tsync": member "t0": field "n" is declared as string, the program's state has int`
		if c.want == "" && end.Reason != want {
			t.Errorf("program %d: %s; want %s", i, end.Reason, want)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestThreadsOutliveTheSynchronizer ends the synchronizer of a program while a block
// has threads, and continues from its journal: they are not run again.
func TestThreadsOutliveTheSynchronizer(t *testing.T) {
	verifyNoLeaks(t)
	server, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	cfg, err := synchronizer.ParseProgram("test.yaml", []byte(onlyB))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "journal")
	open := func() *os.File {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		return file
	}
	w := watchProgram()
	s, err := synchronizer.Start(t.Context(), server.URL(), cfg, synchronizer.Options{Observe: w.observe, Journal: open()})
	if err != nil {
		t.Fatal(err)
	}
	inside, goOn := make(chan struct{}, 4), make(chan struct{})
	joinNode(t, server.URL(), "g", "n", 1, agent.ThreadBlock("b",
		func(ctx context.Context, t *agent.BlockThread, _ any) (int, error) {
			return t.Index(), t.Region(ctx, "start", func(ctx context.Context, r *agent.Region) error {
				inside <- struct{}{}
				<-goOn
				if err := t.Set(struct{ Ready bool }{true}); err != nil {
					return err
				}
				return r.Wait(ctx) // Until all are ready.
			})
		},
		func(_ context.Context, _ *agent.Run, _ any, parts []int) ([]int, error) { return parts, nil }))
	<-inside
	<-inside
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = synchronizer.Start(t.Context(), server.URL(), cfg, synchronizer.Options{Observe: w.observe, Resume: open()}); err != nil {
		t.Fatal(err)
	}
	close(goOn)
	if end := w.end(t); end.Outcome != program.Done || len(inside) > 0 {
		t.Errorf("%v, %s, and %d threads again", end.Outcome, end.Reason, len(inside))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	replayed, err := synchronizer.Replay(open(), synchronizer.ReplayOptions{})
	if err != nil || replayed.FirstDifference != 0 || !replayed.Complete {
		t.Errorf("the journal of both replays to %+v, %v", replayed, err)
	}
}

// TestReturnedThreadsStay: the last state of a thread that has returned is in the
// global states of the others until they have, too.
func TestReturnedThreadsStay(t *testing.T) {
	verifyNoLeaks(t)
	url, w := runProgram(t, onlyB)
	first := make(chan struct{})
	joinNode(t, url, "g", "n", 1, agent.ThreadBlock("b",
		func(ctx context.Context, t *agent.BlockThread, _ any) (string, error) {
			ready := struct{ Ready bool }{true}
			if t.Index() == 1 {
				defer close(first)
				return "returned", t.Set(ready)
			}
			return "cancelled", t.Region(ctx, "start", func(ctx context.Context, r *agent.Region) error {
				<-first
				testwait.Elapse(20 * time.Millisecond) // So that it has returned, which no event shows.
				if err := t.Set(ready); err != nil {
					return err
				}
				return r.Wait(ctx)
			})
		},
		func(_ context.Context, _ *agent.Run, _ any, parts []string) (any, error) {
			if parts[0] != "cancelled" || parts[1] != "returned" {
				return nil, fmt.Errorf("the threads came to %q", parts)
			}
			return nil, nil
		}))
	if end := w.end(t); end.Outcome != program.Done {
		t.Errorf("%v, %s", end.Outcome, end.Reason)
	}
}
