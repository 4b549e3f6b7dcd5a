package synchronizer_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/control/program"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

// TestProgramIsTakenUp ends the synchronizer of a program again and again, and continues
// from its journal: no block runs twice, and the result is the same as in an undisturbed
// run. The time of silence is longer than any machine stands still: after it a run of an earlier
// life whose result has not come is run again.
func TestProgramIsTakenUp(t *testing.T) {
	t.Parallel()
	server, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	cfg, err := synchronizer.ParseProgram("test.yaml", []byte(strings.Replace(roundsProgram, "state:", "silence: {after: 1h}\n    state:", 1)))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "journal")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	w := watchProgram()
	s, err := synchronizer.Start(t.Context(), server.URL(), cfg, synchronizer.Options{Observe: w.observe, Journal: file})
	if err != nil {
		t.Fatal(err)
	}
	var ran atomic.Int64
	began := make(chan chan struct{})
	slow := func(ctx context.Context) { // Until the test lets it end.
		end := make(chan struct{})
		select {
		case began <- end:
			<-end
		case <-ctx.Done():
		}
		ran.Add(1)
	}
	blocks := []agent.BlockCode{
		agent.Block("split", func(ctx context.Context, _ *agent.Run, n int) (int, error) { slow(ctx); return n, nil }),
		agent.Block("work", func(ctx context.Context, r *agent.Run, n int) (int, error) {
			slow(ctx)
			return n, r.Set(errorState{1 / float64(n)})
		}),
		agent.Block("next", func(ctx context.Context, _ *agent.Run, parts []int) (int, error) { slow(ctx); return 2 * parts[0], nil }),
	}
	joinNode(t, server.URL(), "parts", "a", 2, blocks...)
	joinNode(t, server.URL(), "parts", "b", 2, blocks...)
	lives := 1
	var end monitor.ProgramEvent
	for end.Kind == 0 {
		for n := 1; n <= 3 && end.Kind == 0; n++ {
			select {
			case ends := <-began:
				if n == 3 { // The end of the synchronizer meets a block that runs.
					err = s.Close()
				}
				close(ends)
			case end = <-w.finished:
				err = s.Close()
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		if end.Kind != 0 {
			continue
		}
		if lives%2 == 0 { // As after a kill: without an end, and in the middle of a line.
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			at := strings.LastIndex(string(text), `{"end"`)
			if err := os.WriteFile(path, append(text[:at], `{"now":1,"bat`...), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		again, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = again.Close() })
		if s, err = synchronizer.Start(t.Context(), server.URL(), cfg, synchronizer.Options{Observe: w.observe, Resume: again}); err != nil {
			t.Fatal(err)
		}
		lives++
	}
	if end.Outcome != program.Done || end.Result != "128" {
		t.Errorf("after %d lives: %v, %q, %s", lives, end.Outcome, end.Result, end.Reason)
	}
	if n := ran.Load(); n != 36 {
		t.Errorf("after %d lives: %d runs of blocks, and 36 are in the program; %d perhaps ran twice", lives, n, w.count(monitor.ProgramTwice))
	}
	if lives < 2 {
		t.Errorf("the synchronizer had %d lives only", lives)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	replayed, err := synchronizer.Replay(strings.NewReader(string(text)), synchronizer.ReplayOptions{})
	if err != nil || replayed.FirstDifference != 0 || !replayed.Complete {
		t.Errorf("the journal of all lives replays to %+v, %v", replayed, err)
	}
	finished, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = finished.Close() })
	s, err = synchronizer.Start(t.Context(), server.URL(), cfg, synchronizer.Options{Observe: w.observe, Resume: finished})
	if err != nil {
		t.Fatal(err)
	}
	if again := w.end(t); again.Result != end.Result {
		t.Errorf("a program that has ended is resumed: %v, %q, %s", again.Outcome, again.Result, again.Reason)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestTakenUpAfterAReload: the run continues with the configuration that it had last.
func TestTakenUpAfterAReload(t *testing.T) {
	server, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "journal")
	start := func(text string, resume bool) (*synchronizer.Synchronizer, error) {
		t.Helper()
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		cfg, err := synchronizer.ParseProgram("test.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		opt := synchronizer.Options{Journal: file}
		if resume {
			opt = synchronizer.Options{Resume: file}
		}
		return synchronizer.Start(t.Context(), server.URL(), cfg, opt)
	}
	s, err := start(roundsProgram, false)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(roundsProgram, "< 0.1", "< 0.2", 1)
	cfg, err := synchronizer.ParseProgram("test.yaml", []byte(changed))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(cfg); err != nil {
		t.Fatal(err)
	}
	plain, err := synchronizer.ParseConfig("plain.yaml", []byte("synchronizers: {gsync: {members: {group: parts, count: 4}, state: {error: float}}}"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(plain); err == nil || !strings.Contains(err.Error(), "gsync: the file has no program any more, and one runs: restart to change that") {
		t.Errorf("a configuration without a program: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	const want = "the journal is of another program or configuration, or the file was changed since: resume the configuration that was active last, or start again"
	if _, err := start(roundsProgram, true); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("the text of before: %v\nwant %s", err, want)
	}
	if s, err = start(changed, true); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestTakenUpWithoutTheTail: the journal lacks what came after the first start, as after a loss
// of power on a disk that had not written it, and the node has continued. The program ends all
// the same, whether the second block runs, has run, or the end of the first one is lost.
func TestTakenUpWithoutTheTail(t *testing.T) {
	t.Parallel()
	const done, text = program.Done, `
synchronizers:
  gsync:
    members: {group: g, count: 1}
    silence: {after: 300ms}
    state: {x: {type: int, default: 0}}
program:
  name: tail
  blocks: {one: {output: int}, two: {input: int, output: int}}
  body: {seq: [{name: first, do: one}, {name: second, do: two, from: first.result}]}
  result: second.result
`
	for name, at := range map[string]struct{ ended, twoEnded bool }{
		"one has ended": {true, false}, "two has ended": {true, true}, "one runs": {},
	} {
		t.Run(name, func(t *testing.T) {
			server := serve(t, 0)
			path := filepath.Join(t.TempDir(), "journal")
			cfg, err := synchronizer.ParseProgram("test.yaml", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			start := func(resume bool, w *programWatch) *synchronizer.Synchronizer {
				file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = file.Close() })
				opt := synchronizer.Options{Observe: w.observe, Journal: file}
				if resume {
					opt.Journal, opt.Resume = nil, file
				}
				s, err := synchronizer.Start(t.Context(), server.URL(), cfg, opt)
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			began, goOn := make(chan string, 16), make(chan struct{}, 16)
			hold := func(ctx context.Context, block string) {
				began <- block
				select {
				case <-goOn:
				case <-ctx.Done():
				}
			}
			w := watchProgram()
			s := start(false, w)
			joinNode(t, server.URL(), "g", "a", 1,
				agent.Block("one", func(ctx context.Context, _ *agent.Run, _ any) (int, error) { hold(ctx, "one"); return 20, nil }),
				agent.Block("two", func(ctx context.Context, _ *agent.Run, n int) (int, error) { hold(ctx, "two"); return n + 1, nil }))
			if b := <-began; b != "one" {
				t.Fatal(b)
			}
			kept, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if at.ended {
				goOn <- struct{}{}
				if b := <-began; b != "two" {
					t.Fatal(b)
				}
			}
			if at.twoEnded {
				goOn <- struct{}{}
				w.end(t)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(path, kept.Size()); err != nil {
				t.Fatal(err)
			}
			w = watchProgram()
			s = start(true, w)
			t.Cleanup(func() { _ = s.Close() })
			close(goOn)
			if end := w.end(t); end.Outcome != done || end.Result != "21" {
				t.Errorf("%v, %q, %s", end.Outcome, end.Result, end.Reason)
			}
		})
	}
}
