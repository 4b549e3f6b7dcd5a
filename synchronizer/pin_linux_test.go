package synchronizer_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

const pinProgram = `
program:
  name: pins
  blocks: {touch: {output: int}, compute: {output: int}, stream: {output: int}}
  body:
    seq: [%s]
`

// pinLeg are the times of a program: from the order to start a block to its first
// line, and of blocks that compute, or stream through memory, one on each core.
type pinLeg struct {
	mu      sync.Mutex
	ordered time.Time
	times   map[string][]time.Duration
}

// BenchmarkPin runs the same blocks on a node whose processors are pinned to one core
// each, and on a node without pinning, in turns. The ratios are pinned to not pinned.
func BenchmarkPin(b *testing.B) {
	legs := map[bool]*pinLeg{}
	for _, pin := range []bool{false, true} {
		legs[pin] = &pinLeg{times: map[string][]time.Duration{}}
	}
	for range max(b.N, 3) {
		for _, pin := range []bool{false, true} {
			legs[pin].run(b, pin)
		}
	}
	b.ReportMetric(0, "ns/op")
	for _, name := range []string{"start", "compute", "stream"} {
		at := func(pin bool, percent int) float64 {
			d := legs[pin].times[name]
			slices.Sort(d)
			return float64(d[(percent*len(d)-1)/100].Microseconds())
		}
		b.ReportMetric(at(false, 50), name+"-free-us")
		b.ReportMetric(at(true, 50)/at(false, 50), name+"-p50-ratio")
		b.ReportMetric(at(true, 95)/at(false, 95), name+"-p95-ratio")
	}
}

func (l *pinLeg) run(b *testing.B, pin bool) {
	b.Helper()
	server, err := embedded.Start(embedded.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer server.Close()
	cores := runtime.NumCPU()
	var body []string
	for _, block := range []string{"touch", "compute", "stream"} {
		times := cores
		if block == "touch" {
			times = 1
		}
		for range 15 {
			body = append(body, fmt.Sprintf("{par: {do: %s}, times: %d}", block, times))
		}
	}
	cfg, err := synchronizer.ParseProgram("pins.yaml", fmt.Appendf(nil, pinProgram, strings.Join(body, ", ")))
	if err != nil {
		b.Fatal(err)
	}
	finished := make(chan struct{})
	s, err := synchronizer.Start(b.Context(), server.URL(), cfg, synchronizer.Options{Observe: func(e monitor.Event) {
		switch p, _ := e.(monitor.ProgramEvent); p.Kind {
		case monitor.ProgramStart:
			l.mu.Lock()
			l.ordered = time.Now()
			l.mu.Unlock()
		case monitor.ProgramFinish:
			close(finished)
		default:
		}
	}})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	note := func(name string, d time.Duration) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.times[name] = append(l.times[name], d)
	}
	timed := func(name string, work func() int) agent.BlockCode {
		return agent.Block(name, func(context.Context, *agent.Run, any) (int, error) {
			began := time.Now()
			sum := work()
			note(name, time.Since(began))
			return sum, nil
		})
	}
	node, err := agent.JoinNode(b.Context(), server.URL(), agent.NodeConfig{Group: "processors", Name: "n", Processors: cores, Cores: 1, Pin: pin},
		agent.Block("touch", func(context.Context, *agent.Run, any) (int, error) {
			now := time.Now()
			l.mu.Lock()
			since := now.Sub(l.ordered)
			l.mu.Unlock()
			note("start", since)
			return 0, nil
		}),
		timed("compute", func() int {
			x := uint32(1)
			for range 10_000_000 {
				x ^= x << 13
				x ^= x >> 17
				x ^= x << 5
			}
			return int(x)
		}),
		timed("stream", func() int {
			words := make([]int, 4<<20) // 32 MiB: more than caches hold
			sum := 0
			for range 3 {
				for i := range words {
					words[i] += i
					sum += words[i]
				}
			}
			return sum
		}))
	if err != nil {
		b.Fatal(err)
	}
	defer node.Close()
	select {
	case <-finished:
	case <-time.After(5 * time.Minute):
		b.Fatal("the program does not end")
	}
}
