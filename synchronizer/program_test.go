package synchronizer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	neturl "net/url"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/control/program"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/testnats"
	"github.com/gopegasus/pegasus/internal/testwait"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

// programWatch keeps the events of a program.
type programWatch struct {
	mu       sync.Mutex
	events   []monitor.ProgramEvent
	s        *synchronizer.Synchronizer
	finished chan monitor.ProgramEvent
}

func watchProgram() *programWatch { return &programWatch{finished: make(chan monitor.ProgramEvent, 1)} }

func (w *programWatch) observe(e monitor.Event) {
	p, ok := e.(monitor.ProgramEvent)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, p)
	if p.Kind == monitor.ProgramFinish {
		w.finished <- p
	}
}

func (w *programWatch) count(kind monitor.ProgramKind) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, e := range w.events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// end waits for the end of the program.
func (w *programWatch) end(t *testing.T) monitor.ProgramEvent {
	t.Helper()
	select {
	case p := <-w.finished:
		return p
	case <-time.After(time.Minute):
		t.Fatal("the program does not end")
		return monitor.ProgramEvent{}
	}
}

// runProgram starts a server and a synchronizer that runs a program.
func runProgram(t *testing.T, text string) (url string, w *programWatch) {
	t.Helper()
	return meterProgram(t, text, nil)
}

func meterProgram(t *testing.T, text string, meters metric.MeterProvider) (url string, w *programWatch) {
	t.Helper()
	server, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	cfg, err := synchronizer.ParseProgram("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	w = watchProgram()
	s, err := synchronizer.Start(t.Context(), server.URL(), cfg, synchronizer.Options{Observe: w.observe, MeterProvider: meters})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	w.s = s
	return server.URL(), w
}

func joinNode(t *testing.T, url, group, name string, processors int, blocks ...agent.BlockCode) {
	t.Helper()
	n, err := agent.JoinNode(t.Context(), url, agent.NodeConfig{Group: group, Name: name, Processors: processors}, blocks...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
}

const roundsProgram = `
synchronizers:
  gsync:
    members: {group: parts, count: 4}
    state: {error: float}
    predicates:
      precise: {when: "sum(members, .error) < 0.1"}
program:
  name: rounds
  processors: {p: {count: 4}}
  blocks:
    split: {input: int, output: int}
    work: {group: parts, input: int, output: int}
    next: {input: [int], output: int}
  body:
    seq:
      - {do: split, input: 1}
      - name: rounds
        from: split.result
        do:
          seq:
            - {par: {do: work, on: p, from: rounds.previous}, times: 4, name: workers}
            - {do: next, from: workers.result}
        until: precise
  result: rounds.result
`

type errorState struct{ Error float64 }

// TestProgramLoops runs blocks on two nodes until a predicate holds at the JOIN. The
// first node's clock is measured against the synchronizer's, so that evidence is late
// enough only some time after it was asked for.
func TestProgramLoops(t *testing.T) {
	url, w := runProgram(t, roundsProgram)
	blocks := []agent.BlockCode{
		agent.Block("split", func(_ context.Context, _ *agent.Run, n int) (int, error) { return n, nil }),
		agent.Block("work", func(_ context.Context, r *agent.Run, n int) (int, error) {
			return n, r.Set(errorState{1 / float64(n)})
		}),
		agent.Block("next", func(_ context.Context, _ *agent.Run, parts []int) (int, error) { return 2 * parts[0], nil }),
	}
	joinNode(t, url, "parts", "a", 2, blocks...)
	b, err := agent.JoinNode(t.Context(), url, agent.NodeConfig{Group: "parts", Name: "b", Processors: 2, SeparateClock: true}, blocks...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	end := w.end(t)
	// Four errors of 1/n are below 0.1 for n = 64.
	if end.Outcome != program.Done || end.Result != "128" {
		t.Fatalf("the program ended with %v, result %q, %s", end.Outcome, end.Result, end.Reason)
	}
	if n := w.count(monitor.ProgramStart); n != 1+7*5 {
		t.Errorf("%d blocks were started, and 36 are in the program", n)
	}
	if n := w.count(monitor.ProgramRefuse); n > 0 {
		t.Errorf("the interpreter refused %d inputs", n)
	}
}

// TestBodiesInPieces hands a megabyte from one block to the next, and counts it.
func TestBodiesInPieces(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	url, w := meterProgram(t, `
program:
  name: large
  blocks: {make: {input: int, output: string}, size: {input: string, output: int}}
  body:
    seq: [{do: make, input: 1000000}, {do: size, from: make.result}]
  result: size.result
`, sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	joinNode(t, url, "processors", "a", 2,
		agent.Block("make", func(_ context.Context, _ *agent.Run, n int) (string, error) { return strings.Repeat("x", n), nil }),
		agent.Block("size", func(_ context.Context, _ *agent.Run, s string) (int, error) { return len(s), nil }))
	if end := w.end(t); end.Outcome != program.Done || end.Result != "1000000" {
		t.Fatalf("%v, result %.100q, %s", end.Outcome, end.Result, end.Reason)
	}
	points, _ := collected(t, reader)
	testwait.Until(t, "the last run to be counted", func() bool { // The end is reported in the step that counts it.
		points, _ = collected(t, reader)
		return valueOf(t, points, "pegasus.program.runs", "event", "done") >= 2
	})
	for _, c := range []struct {
		name string
		with []string
		want float64
	}{
		{"pegasus.program.runs", []string{"event", "started"}, 2},
		{"pegasus.program.runs", []string{"event", "done"}, 2},
		{"pegasus.program.runs", []string{"event", "failed"}, 0},
		{"pegasus.program.runs", []string{"event", "canceled"}, 0},
		{"pegasus.program.runs", []string{"event", "lost"}, 0},
		{"pegasus.bodies", []string{"kind", "input", "fate", "taken"}, 1}, // The other one came with the signal.
		{"pegasus.bodies", []string{"kind", "result", "fate", "taken"}, 2},
		{"pegasus.bodies", []string{"kind", "failure", "fate", "taken"}, 0},
		{"pegasus.bodies", []string{"kind", "input", "fate", "refused"}, 0},
		{"pegasus.bodies.bytes", []string{"kind", "input"}, 1_000_002},
		{"pegasus.bodies.bytes", []string{"kind", "result"}, 1_000_009},
	} {
		if got := valueOf(t, points, c.name, c.with...); got != c.want {
			t.Errorf("%s %v is %v, want %v", c.name, c.with, got, c.want)
		}
	}
}

// TestBlocksFail tells why blocks fail: by an error, a panic, a result or an input
// that does not fit, or because no node has their code.
func TestBlocksFail(t *testing.T) {
	blocks := []agent.BlockCode{
		agent.Block("error", func(context.Context, *agent.Run, any) (int, error) { return 0, errors.New("no disk") }),
		agent.Block("panic", func(context.Context, *agent.Run, any) (int, error) { panic("oh") }),
		agent.Block("large", func(context.Context, *agent.Run, any) (string, error) { return strings.Repeat("x", agent.MaxBody), nil }),
		agent.Block("strict", func(context.Context, *agent.Run, struct{ Y string }) (int, error) { return 0, nil }),
	}
	for block, want := range map[string]string{
		"error":  "no disk",
		"panic":  `block "panic" panicked: oh`,
		"large":  `block "large": its result has 1048578 bytes of JSON, at most 1048576 are handed over: give a reference to it instead`,
		"strict": `block "strict": its input is no struct { Y string }: json: cannot unmarshal number into Go struct field .Y of type string`,
		"absent": `node "a" has no block "absent": start it with one, or give the block a label that only nodes with it have`,
	} {
		t.Run(block, func(t *testing.T) {
			url, w := runProgram(t, fmt.Sprintf(`
program:
  name: failing
  blocks: {%[1]s: {input: any, output: any}}
  body: {do: %[1]s, input: {y: 1}, retry: 1}
`, block))
			joinNode(t, url, "processors", "a", 2, blocks...)
			if end := w.end(t); end.Outcome != program.Failed || !strings.HasPrefix(end.Reason, want) {
				t.Errorf("%v, %.200s; want %s", end.Outcome, end.Reason, want)
			}
			if n := w.count(monitor.ProgramStart); n != 2 {
				t.Errorf("%d starts, want 2", n)
			}
			if n := w.count(monitor.ProgramFail); n != 1 { // The second is reported as the end.
				t.Errorf("%d failed attempts were told, want 1", n)
			}
		})
	}
}

// TestBlocksTakeWhatTheyDeclare: a block is given what the program declares for it, by
// the names there, whatever else comes from where it is fed.
func TestBlocksTakeWhatTheyDeclare(t *testing.T) {
	url, w := runProgram(t, `
program:
  name: taking
  blocks: {make: {output: {sum: int, parts: [int]}}, take: {input: {sum: int}, output: int}, show: {input: {parts: [int], sum: int}, output: any}}
  body: {seq: [make, {name: both, par: [{do: take, from: make.result}, {do: show, from: make.result}]}]}
  result: both.result
`)
	type made struct {
		Sum, Other int
		Parts      []int
	}
	joinNode(t, url, "processors", "a", 2,
		agent.Block("make", func(context.Context, *agent.Run, any) (made, error) { return made{Sum: 3, Other: 4}, nil }),
		agent.Block("take", func(_ context.Context, _ *agent.Run, in struct{ Sum int }) (int, error) { return in.Sum, nil }),
		agent.Block("show", func(_ context.Context, _ *agent.Run, in json.RawMessage) (json.RawMessage, error) { return in, nil }))
	if end := w.end(t); end.Result != `{"take":3,"show":{"Other":4,"parts":null,"sum":3}}` {
		t.Errorf("%v: %s%s", end.Outcome, end.Result, end.Reason)
	}
}

// TestBlockEndsItsGoroutine: a block that does so fails, and its processor continues.
func TestBlockEndsItsGoroutine(t *testing.T) {
	url, w := runProgram(t, `
program:
  name: leaving
  blocks: {b: {output: int}}
  body: {do: b, retry: 2}
  result: b.result
`)
	runs := 0
	joinNode(t, url, "processors", "a", 1, agent.Block("b", func(context.Context, *agent.Run, any) (int, error) {
		if runs++; runs < 3 {
			runtime.Goexit()
		}
		return runs, nil
	}))
	if end := w.end(t); end.Outcome != program.Done || end.Result != "3" {
		t.Errorf("%v, result %s, %s", end.Outcome, end.Result, end.Reason)
	}
	url, w = runProgram(t, "program: {name: leaving, blocks: {b: {}}, body: b}")
	joinNode(t, url, "processors", "a", 1, agent.Block("b", func(context.Context, *agent.Run, any) (int, error) {
		runtime.Goexit()
		return 0, nil
	}))
	if end := w.end(t); end.Outcome != program.Failed || end.Reason != `block "b" ended its goroutine without returning` {
		t.Errorf("%v, %s", end.Outcome, end.Reason)
	}
}

// TestJoinCancels ends a PAR at a predicate: the block that still runs is left by
// the ordinary cancellation.
func TestJoinCancels(t *testing.T) {
	url, w := runProgram(t, `
synchronizers:
  gsync:
    members: {group: g, count: 3}
    state: {best: {type: float, default: 100.0}}
    predicates: {good: {when: "min(map(members, .best)) < 1"}}
program:
  name: search
  blocks: {sample: {group: g, input: int, output: float}}
  body:
    par: [{do: sample, input: 0}, {do: sample, input: 1}, {do: sample, input: 2}]
    join: good
`)
	canceled := make(chan error, 2)
	joinNode(t, url, "g", "a", 3, agent.Block("sample", func(ctx context.Context, r *agent.Run, n int) (float64, error) {
		if n == 0 {
			return 0.5, r.Set(struct{ Best float64 }{0.5})
		}
		<-ctx.Done()
		canceled <- context.Cause(ctx)
		return 0, context.Cause(ctx)
	}))
	if end := w.end(t); end.Outcome != program.Done {
		t.Fatalf("%v, %s", end.Outcome, end.Reason)
	}
	for range 2 {
		var c *agent.Canceled
		if err := <-canceled; !errors.As(err, &c) || c.Region != "sample" {
			t.Errorf("the block ended by %v", err)
		}
	}
}

// TestProgramOutlivesTheServer takes the server away while blocks run: they end
// meanwhile, nothing is run again, and the program continues when it is back.
func TestProgramOutlivesTheServer(t *testing.T) {
	server, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	url := server.URL()
	cfg, err := synchronizer.ParseProgram("test.yaml", []byte(roundsProgram))
	if err != nil {
		t.Fatal(err)
	}
	w := watchProgram()
	s, err := synchronizer.Start(t.Context(), url, cfg, synchronizer.Options{Observe: w.observe})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	var ran atomic.Int64
	running, goOn := make(chan struct{}, 100), make(chan struct{})
	joinNode(t, url, "parts", "a", 4,
		agent.Block("split", func(_ context.Context, _ *agent.Run, n int) (int, error) { return n, nil }),
		agent.Block("work", func(_ context.Context, r *agent.Run, n int) (int, error) {
			ran.Add(1)
			running <- struct{}{}
			<-goOn
			return n, r.Set(errorState{1 / float64(n)})
		}),
		agent.Block("next", func(_ context.Context, _ *agent.Run, parts []int) (int, error) { return 64 * parts[0], nil }))
	for range 4 {
		<-running
	}
	server.Close()
	close(goOn)
	testwait.Elapse(50 * time.Millisecond) // For the ends of the blocks to meet no server.
	address, err := neturl.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(address.Port())
	if err != nil {
		t.Fatal(err)
	}
	server, err = embedded.Start(embedded.Options{Port: port})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	if end := w.end(t); end.Outcome != program.Done || end.Result != "4096" {
		t.Errorf("%v, %q, %s", end.Outcome, end.Result, end.Reason)
	}
	if n := ran.Load(); n != 8 {
		t.Errorf("%d runs of work, want 8", n)
	}
}

// TestNextProgram ends a synchronizer while its blocks hang, and runs another
// program, of another state, on the same nodes: they cancel what they run of the
// first one.
func TestNextProgram(t *testing.T) {
	server, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	run := func(text string) (*synchronizer.Synchronizer, *programWatch) {
		t.Helper()
		cfg, err := synchronizer.ParseProgram("test.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		w := watchProgram()
		s, err := synchronizer.Start(t.Context(), server.URL(), cfg, synchronizer.Options{Observe: w.observe})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s, w
	}
	first, _ := run(`
synchronizers: {gsync: {members: {group: g, count: 2}, state: {a: {type: int, default: 1}}}}
program: {name: first, blocks: {hang: {output: any}}, body: {par: hang, times: 2}}
`)
	hanging, ended := make(chan struct{}, 2), make(chan error, 2)
	joinNode(t, server.URL(), "g", "n", 2,
		agent.Block("hang", func(ctx context.Context, _ *agent.Run, _ any) (any, error) {
			hanging <- struct{}{}
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return nil, context.Cause(ctx)
		}),
		agent.Block("work", func(_ context.Context, r *agent.Run, n int) (int, error) {
			return n + 1, r.Set(struct{ B string }{"x"})
		}))
	for range 2 {
		<-hanging
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	_, w := run(`
synchronizers:
  gsync:
    members: {group: g, count: 2}
    state: {b: {type: string, default: ""}}
    predicates: {all: {when: 'all(members, .b == "x")'}}
program:
  name: second
  blocks: {work: {group: g, input: int, output: int}}
  body:
    seq:
      - {name: both, par: {do: work, input: 1}, times: 2}
      - {name: again, if: all, then: {do: work, input: 2}, else: {do: work, input: 3}}
  result: again.result
`)
	if end := w.end(t); end.Outcome != program.Done || end.Result != "3" {
		t.Errorf("%v, %q, %s", end.Outcome, end.Result, end.Reason)
	}
	for range 2 {
		var c *agent.Canceled
		if err := <-ended; !errors.As(err, &c) || c.Region != "hang" {
			t.Errorf("a block of the first program ended by %v", err)
		}
	}
}

// TestBodiesOfStrangers: a result of a run that never was is refused; of two results of a
// run the first counts.
func TestBodiesOfStrangers(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	url, w := meterProgram(t, `
program: {name: one, blocks: {b: {output: int}}, body: b, result: b.result}
`, sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	runs, goOn := make(chan uint64, 1), make(chan struct{})
	joinNode(t, url, "processors", "a", 1, agent.Block("b", func(_ context.Context, r *agent.Run, _ any) (int, error) {
		runs <- r.Number()
		<-goOn
		return 7, nil
	}))
	run := <-runs
	b, err := bus.Dial(t.Context(), url, bus.Options{Extra: testnats.Options(t, url), Name: "stranger"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	subject := wire.Subjects{Tenant: "default", Group: "processors"}.Data("a-0")
	hand := func(execution, number uint64) (refused string) {
		t.Helper()
		frame, err := wire.AppendBody(nil, &wire.Body{Member: "a-0", Program: execution, Run: number, Kind: wire.BodyResult, Size: 1, Piece: []byte("5")})
		if err != nil {
			t.Fatal(err)
		}
		if frame, err = b.Request(t.Context(), subject, frame); err != nil {
			t.Fatal(err)
		}
		answer, err := wire.DecodeBody(frame)
		if err != nil {
			t.Fatal(err)
		}
		return answer.Reason
	}
	execution := uint64(0)
	testwait.Until(t, "the state of the processor", func() bool {
		status, err := w.s.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range status.Members[0].State {
			if v.Name == "program" {
				execution = uint64(v.Value.(int64))
			}
		}
		return execution > 0
	})
	if why := hand(execution, 99); !strings.HasPrefix(why, "run 99 was not started on ") {
		t.Errorf("run 99: %q", why)
	}
	if why := hand(execution+1, run); why == "" {
		t.Error("a run of another execution is taken")
	}
	for range 2 {
		if why := hand(execution, run); why != "" {
			t.Errorf("run %d: %q", run, why)
		}
	}
	points, _ := collected(t, reader)
	for fate, want := range map[string]float64{"taken": 1, "refused": 2, "repeated": 1} {
		if got := valueOf(t, points, "pegasus.bodies", "kind", "result", "fate", fate); got != want {
			t.Errorf("%s: %v results, want %v", fate, got, want)
		}
	}
	close(goOn)
	if end := w.end(t); end.Result != "5" {
		t.Errorf("%v, result %q, %s", end.Outcome, end.Result, end.Reason)
	}
}
