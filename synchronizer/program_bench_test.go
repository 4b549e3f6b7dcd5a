package synchronizer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/testnats"
	"github.com/gopegasus/pegasus/internal/testwait"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

const benchProgram = `
synchronizers:
  gsync:
    members: {group: g, count: %[1]d}
    state: {round: {type: int, default: 0}, ready: {type: int, default: 0}}
    predicates:
      enough: {when: "max(map(members, .round)) >= %[2]d"}
      told: {when: "min(map(members, .ready)) == max(map(members, .round))"}
program:
  name: bench
  blocks:
    work: {group: g, input: any, output: any}
    uneven: {group: g, input: any, output: any}
    wait: {group: g, input: any, output: any}
  body:
    name: rounds
    do:
      seq:
        - {name: short, par: {do: work}, times: %[1]d}
        - {name: spread, par: {do: uneven}, times: %[1]d}
        - {name: long, par: {do: wait}, times: %[1]d, join: told}
    until: enough
`

// BenchmarkProgram measures rounds of PARs of blocks on 4 nodes: from the first start
// to the last block that runs (start); from the end of the last block to the JOIN, of
// blocks that do nothing and so end all at once (join), and of those that run for 5 to
// 25 ms (spread); and from the decision of a JOIN that cancels its blocks to the last
// one that is told (cancel). Beside it, the round trip of a bare NATS echo, one after
// the other (echo) and every 10 ms (cold).
func BenchmarkProgram(b *testing.B) {
	for _, blocks := range []int{4, 100} {
		b.Run(fmt.Sprintf("blocks=%d", blocks), func(b *testing.B) { benchRounds(b, blocks) })
	}
}

// rounds are the instants of a benchmark.
type rounds struct {
	mu                  sync.Mutex
	started, ran, ended time.Time // of the round: first start, last block that runs, last end
	decided, told       time.Time
	spread              []time.Duration
	start, join, cancel []time.Duration
	finished            chan struct{}
}

func benchRounds(b *testing.B, blocks int) {
	b.Helper()
	n := max(b.N, 100)
	server, err := embedded.Start(embedded.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer server.Close()
	cfg, err := synchronizer.ParseProgram("bench.yaml", fmt.Appendf(nil, benchProgram, blocks, n))
	if err != nil {
		b.Fatal(err)
	}
	r := &rounds{finished: make(chan struct{})}
	s, err := synchronizer.Start(b.Context(), server.URL(), cfg, synchronizer.Options{Observe: r.observe})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	var counts sync.Map
	state := func(processor string, add int) int {
		v, _ := counts.LoadOrStore(processor, new(int))
		p := v.(*int)
		*p += add
		return *p
	}
	work := agent.Block("work", func(_ context.Context, run *agent.Run, _ any) (any, error) {
		now := time.Now()
		r.mu.Lock()
		r.ran = now
		r.mu.Unlock()
		err := run.Set(struct{ Round int }{state(run.Processor(), 1)})
		r.mu.Lock()
		r.ended = time.Now()
		r.mu.Unlock()
		return nil, err
	})
	uneven := agent.Block("uneven", func(_ context.Context, run *agent.Run, _ any) (any, error) {
		long := rand.New(rand.NewPCG(run.Number(), 0)).IntN(20_000)
		testwait.Elapse(5*time.Millisecond + time.Duration(long)*time.Microsecond)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ended = time.Now()
		return nil, nil
	})
	wait := agent.Block("wait", func(ctx context.Context, run *agent.Run, _ any) (any, error) {
		if err := run.Set(struct{ Ready int }{state(run.Processor(), 0)}); err != nil {
			return nil, err
		}
		<-ctx.Done()
		r.mu.Lock()
		r.told = time.Now()
		r.mu.Unlock()
		return nil, context.Cause(ctx)
	})
	for i := range 4 {
		node, err := agent.JoinNode(b.Context(), server.URL(), agent.NodeConfig{Group: "g", Name: fmt.Sprintf("n%d", i), Processors: blocks / 4}, work, uneven, wait)
		if err != nil {
			b.Fatal(err)
		}
		defer node.Close()
	}
	select {
	case <-r.finished:
	case <-time.After(5 * time.Minute):
		b.Fatal("the program does not end")
	}
	b.ReportMetric(0, "ns/op")
	raw, cold := echo(b, server.URL(), 1000, 0), echo(b, server.URL(), 100, 10*time.Millisecond)
	report := func(name string, d []time.Duration) {
		slices.Sort(d)
		b.ReportMetric(float64(d[len(d)/2].Microseconds()), name+"-p50-us")
		b.ReportMetric(float64(d[(99*len(d)-1)/100].Microseconds()), name+"-p99-us")
	}
	report("echo", raw)
	report("cold", cold)
	report("start", r.start)
	report("join", r.join)
	report("spread", r.spread)
	report("cancel", r.cancel)
	ratio := func(name string, d, to []time.Duration) {
		b.ReportMetric(float64(d[len(d)/2])/float64(to[len(to)/2]), name)
	}
	ratio("join/echo", r.join, raw)
	ratio("spread/echo", r.spread, raw)
	ratio("spread/cold", r.spread, cold)
}

func (r *rounds) observe(e monitor.Event) {
	p, ok := e.(monitor.ProgramEvent)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	switch {
	case p.Kind == monitor.ProgramStart && p.Name == "work" && r.started.IsZero():
		r.started = now
	case p.Kind == monitor.ProgramCancel && r.decided.IsZero():
		r.decided = now
	case p.Kind == monitor.ProgramPass && p.Name == "short":
		r.join = append(r.join, now.Sub(r.ended))
		r.start = append(r.start, r.ran.Sub(r.started))
		r.started = time.Time{}
	case p.Kind == monitor.ProgramPass && p.Name == "spread":
		r.spread = append(r.spread, now.Sub(r.ended))
	case p.Kind == monitor.ProgramPass && p.Name == "long":
		r.cancel = append(r.cancel, r.told.Sub(r.decided))
		r.decided = time.Time{}
	case p.Kind == monitor.ProgramFinish:
		close(r.finished)
	}
}

// echo measures round trips through the server between two connections, with a pause
// before each.
func echo(b *testing.B, url string, n int, pause time.Duration) []time.Duration {
	b.Helper()
	var conns [2]*nats.Conn
	for i := range conns {
		nc, err := nats.Connect(url, testnats.Options(b, url)...)
		if err != nil {
			b.Fatal(err)
		}
		defer nc.Close()
		conns[i] = nc
	}
	back := make(chan struct{}, 1)
	if _, err := conns[0].Subscribe("there", func(m *nats.Msg) { _ = conns[0].Publish("back", m.Data) }); err != nil {
		b.Fatal(err)
	}
	if _, err := conns[1].Subscribe("back", func(*nats.Msg) { back <- struct{}{} }); err != nil {
		b.Fatal(err)
	}
	for _, nc := range conns {
		if err := nc.Flush(); err != nil {
			b.Fatal(err)
		}
	}
	var times []time.Duration
	for range n {
		testwait.Elapse(pause)
		start := time.Now()
		if err := conns[1].Publish("there", []byte("x")); err != nil {
			b.Fatal(err)
		}
		<-back
		times = append(times, time.Since(start))
	}
	return times
}

// BenchmarkThreadBlock measures an iteration of a loop with one block, without threads
// and with so many, each of which sets a state: their synchronizer included.
func BenchmarkThreadBlock(b *testing.B) {
	for _, threads := range []int{0, 4, 64} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) { benchThreads(b, threads) })
	}
}

func benchThreads(b *testing.B, threads int) {
	b.Helper()
	server, err := embedded.Start(embedded.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer server.Close()
	declared := ""
	if threads > 0 {
		declared = fmt.Sprintf(", threads: %d, synchronizer: tsync", threads)
	}
	cfg, err := synchronizer.ParseProgram("bench.yaml", fmt.Appendf(nil, `
synchronizers:
  gsync:
    members: {group: g, count: 1}
    state: {round: {type: int, default: 0}}
    predicates: {enough: {when: "all(members, .round >= %d)"}}
  tsync:
    parent: gsync
    members: {threads: {min: 1, max: 64}}
    state: {done: bool}
    predicates: {all-done: {when: "all(members, .done)", signal: {kind: cancel, region: work, to: all}}}
program:
  name: bench
  blocks: {work: {group: g, input: any, output: any%s}}
  body: {do: work, until: enough}
`, b.N, declared))
	if err != nil {
		b.Fatal(err)
	}
	finished := make(chan struct{})
	s, err := synchronizer.Start(b.Context(), server.URL(), cfg, synchronizer.Options{Observe: func(e monitor.Event) {
		if p, ok := e.(monitor.ProgramEvent); ok && p.Kind == monitor.ProgramFinish {
			close(finished)
		}
	}})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	rounds := 0
	next := func(r *agent.Run) error {
		rounds++
		return r.Set(struct{ Round int }{rounds})
	}
	code := agent.Block("work", func(_ context.Context, r *agent.Run, _ any) (any, error) { return nil, next(r) })
	if threads > 0 {
		code = agent.ThreadBlock("work", func(_ context.Context, t *agent.BlockThread, _ any) (any, error) {
			return nil, t.Set(struct{ Done bool }{true})
		}, func(_ context.Context, r *agent.Run, _ any, _ []any) (any, error) { return nil, next(r) })
	}
	n, err := agent.JoinNode(b.Context(), server.URL(), agent.NodeConfig{Group: "g", Name: "n"}, code)
	if err != nil {
		b.Fatal(err)
	}
	defer n.Close()
	b.ResetTimer()
	<-finished
	if b.StopTimer(); rounds != b.N {
		b.Errorf("%d rounds, want %d", rounds, b.N)
	}
}
