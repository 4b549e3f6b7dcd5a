package bench

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/synccore"
)

// TestNothingIsAllocated is the promise that bench prints.
func TestNothingIsAllocated(t *testing.T) {
	server, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if n, err := reportAllocs(t.Context(), server.URL()); err != nil || n != 0 {
		t.Errorf("%v allocations a report, %v", n, err)
	}
}

// BenchmarkWay is one report through the machines on both sides.
func BenchmarkWay(b *testing.B) {
	for _, batch := range []int{1, 64} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			w, err := newWay(batch)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				w.report()
			}
			var out synccore.Output
			w.sync.Step(w.now, &synccore.Input{Kind: synccore.InAsk, Ask: &synccore.Question{Counts: true}}, &out)
			if w.err != nil || out.Answer.Counts.Global == 0 {
				b.Fatal(w.err, out.Answer.Counts)
			}
		})
	}
}

// TestWorker asks a worker what it cannot do, and lets it go.
func TestWorker(t *testing.T) {
	in, ask := io.Pipe()
	answers, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Worker(t.Context(), in, out) }()
	lines := bufio.NewScanner(answers)
	for q, want := range map[string]string{
		"{":          `{"Error":"\"\" is no operation"}`,
		`{"Op":"x"}`: `{"Error":"\"x\" is no operation"}`,
		`{"Op":"join","URL":"nats://a b","Group":"g","Members":1}`: `{"Error":"agent: join group \"g\" as \"m0\": there is no connection to the server: bus: connect to NATS: `,
	} {
		if _, err := io.WriteString(ask, q+"\n"); err != nil {
			t.Fatal(err)
		}
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), want) {
			t.Errorf("%s is answered by %s, %v; want %s", q, lines.Text(), lines.Err(), want)
		}
	}
	if err := ask.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestProcessThatEnds: a process that is no worker is reported, and nothing is left of it.
func TestProcessThatEnds(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := Start(t.Context(), []string{program, "-test.list", "^$"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.call(t.Context(), request{Op: "x"}); err == nil || !strings.HasPrefix(err.Error(), "x: the second process ") {
		t.Errorf("call: %v", err)
	}
	if err := p.End(); err != nil {
		t.Errorf("end: %v", err)
	}
	if _, err := Start(t.Context(), []string{program + "-that-is-not-there"}); err == nil || !strings.HasPrefix(err.Error(), "the second process: ") {
		t.Errorf("start: %v", err)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
