package workcmd_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/synchronizer"
	"github.com/gopegasus/pegasus/work"
)

var record = flag.Bool("record", false, "run what TestAdvise reads, and write its journals again")

// recording is one run: a section work, how long a call or a task takes at each member, and the program of the first member.
type recording struct {
	name, section string
	pauses        []time.Duration
	run           func(ctx context.Context, s *work.Space) error
}

const ms = time.Millisecond

// calls makes calls of the function row, all at once.
func calls(n int) func(context.Context, *work.Space) error {
	return func(ctx context.Context, s *work.Space) error {
		c := work.Client[int, int](s, "row")
		list := make([]*work.Call[int], n)
		for i := range list {
			list[i] = c.Go(ctx, i)
		}
		for _, p := range list {
			if _, err := p.Wait(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

// parts makes chains of three calls.
func parts(n int) func(context.Context, *work.Space) error {
	return func(ctx context.Context, s *work.Space) error {
		cut, weld, paint := work.Client[int, int](s, "cut"), work.Client[int, int](s, "weld"), work.Client[int, int](s, "paint")
		for i := range n {
			if _, err := paint.Then(ctx, weld.Then(ctx, cut.Go(ctx, i))).Wait(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

// tasks puts tasks and waits for the end of the phase.
func tasks(n int) func(context.Context, *work.Space) error {
	return func(ctx context.Context, s *work.Space) error {
		for i := range n {
			if err := s.Put(ctx, "task", i); err != nil {
				return err
			}
		}
		return s.Flush(ctx)
	}
}

var recordings = []recording{
	{"sync", "calls: {cut: {style: sync, replicas: [w2]}, weld: {style: sync, replicas: [w3]}, paint: {style: sync, replicas: [w4]}}", []time.Duration{0, 8 * ms, 16 * ms, 8 * ms}, parts(60)},
	{"ratio", `calls: {row: {replicas: [w2, w3, w4], ratio: "1:1:1"}}`, []time.Duration{0, 40 * ms, 10 * ms, 8 * ms}, calls(120)},
	{"marks", `calls: {row: {style: "async-demand(*:1)", traffic: incremental}}`, []time.Duration{0, ms, ms}, calls(900)},
	{"chunk", "strategy: {kind: chunk, cut: css(60)}", []time.Duration{8 * ms, 40 * ms, 8 * ms, 8 * ms}, tasks(130)},
	{"replica", "calls: {row: {style: async, replicas: [w2]}}", []time.Duration{0, 10 * ms, 10 * ms, 10 * ms}, calls(150)},
	{"still", `strategy: {kind: links, links: "w1(o=(L>=1000))[1/2]#w2, w1(o=(L>=1000))[1/2]#w3"}`, []time.Duration{10 * ms, 10 * ms, 10 * ms}, tasks(150)},
	{"balanced-calls", `calls: {row: {style: "async-demand(*:2)"}}`, []time.Duration{0, 10 * ms, 20 * ms, 30 * ms}, calls(200)},
	{"balanced-tasks", "strategy: {kind: receiver}", []time.Duration{10 * ms, 10 * ms, 20 * ms}, tasks(300)},
}

// TestRecord makes the runs with real members, a real synchronizer and a real server, if the flag asks for it.
func TestRecord(t *testing.T) {
	if !*record {
		t.Skip("it takes a quarter of a minute, and changes testdata: give -record")
	}
	for i := range recordings {
		t.Run(recordings[i].name, recordings[i].make)
	}
}

func (r *recording) text() string {
	return "synchronizers:\n  farm:\n    members: {group: solvers, count: " + string(rune('0'+len(r.pauses))) + "}\n    state: {}\n    work:\n      slots: 1\n      record: true\n" + r.lines()
}

// lines are the keys of the section, one a line.
func (r *recording) lines() string { return "      " + r.section + "\n" }

func (r *recording) make(t *testing.T) {
	server, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	cfg, err := synchronizer.ParseConfig("farm.yaml", []byte(r.text()))
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join("testdata", r.name+synchronizer.JournalSuffix))
	if err != nil {
		t.Fatal(err)
	}
	s, err := synchronizer.Start(t.Context(), server.URL(), cfg, synchronizer.Options{Journal: file})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	errs := make([]error, len(r.pauses))
	served, done := context.WithCancel(t.Context())
	defer done()
	for i, pause := range r.pauses {
		all.Go(func() { errs[i] = r.member(served, done, server.URL(), i, pause) })
	}
	all.Wait()
	if err := errors.Join(errors.Join(errs...), s.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
}

// member is one process: the first one runs the program, and then ends the others.
func (r *recording) member(ctx context.Context, done func(), url string, i int, pause time.Duration) error {
	m, err := agent.Join(context.WithoutCancel(ctx), url, agent.Config{Group: "solvers", Name: "w" + string(rune('1'+i))}, agent.OwnConn())
	if err != nil {
		return err
	}
	defer m.Close()
	nap := func(ctx context.Context, n int) (int, error) {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C:
			return n, nil
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
	options := []work.Option{work.Func("task", nap)}
	for k, name := range []string{"cut", "weld", "paint"} {
		if strings.Contains(r.section, name) && i == k+1 {
			options = append(options, work.Server(name, nap))
		}
	}
	if strings.Contains(r.section, "row") && i > 0 {
		options = append(options, work.Server("row", nap))
	}
	s, err := work.Open(context.WithoutCancel(ctx), m, options...)
	if err != nil {
		return err
	}
	defer s.Close()
	if i > 0 {
		if err := s.Serve(ctx); !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	}
	defer done()
	return r.run(ctx, s)
}
