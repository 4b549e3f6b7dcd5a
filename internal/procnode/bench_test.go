//go:build linux || darwin

package procnode_test

import (
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/procnode"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

// BenchmarkPar runs a PAR of 100 executables on 4 nodes, from the start to the JOIN,
// and in turns the same 100 commands by os/exec, as many at once.
func BenchmarkPar(b *testing.B) {
	for _, pin := range []bool{false, true} {
		b.Run(fmt.Sprintf("blocks=100/pin=%t", pin), func(b *testing.B) {
			var par, plain []time.Duration
			for range max(b.N, 5) {
				par = append(par, onePar(b, pin))
				plain = append(plain, onePlain(b))
			}
			slices.Sort(par)
			slices.Sort(plain)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(par[len(par)/2].Microseconds())/1e3, "par-p50-ms")
			b.ReportMetric(float64(plain[len(plain)/2].Microseconds())/1e3, "exec-p50-ms")
			b.ReportMetric(float64(par[len(par)/2])/float64(plain[len(plain)/2]), "par/exec")
		})
	}
}

func onePlain(b *testing.B) time.Duration {
	b.Helper()
	start := time.Now()
	var running sync.WaitGroup
	for range 100 {
		running.Go(func() {
			if err := exec.Command("true").Run(); err != nil {
				b.Error(err)
			}
		})
	}
	running.Wait()
	return time.Since(start)
}

func onePar(b *testing.B, pin bool) time.Duration {
	b.Helper()
	server, err := embedded.Start(embedded.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer server.Close()
	processors := 100
	if pin {
		processors = 2
	}
	cfg, err := synchronizer.ParseProgram("bench.yaml", []byte(`
synchronizers: {processors: {members: {group: processors, count: `+strconv.Itoa(processors)+`}}}
program:
  name: bench
  blocks: {b: {output: any}}
  body: {par: b, times: 100}
`))
	if err != nil {
		b.Fatal(err)
	}
	var start time.Time
	took := make(chan time.Duration, 1)
	s, err := synchronizer.Start(b.Context(), server.URL(), cfg, synchronizer.Options{Observe: func(e monitor.Event) {
		p, ok := e.(monitor.ProgramEvent)
		switch {
		case ok && p.Kind == monitor.ProgramStart && start.IsZero():
			start = time.Now()
		case ok && p.Kind == monitor.ProgramFinish:
			took <- time.Since(start)
		}
	}})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	block, err := procnode.Block("b", []string{"true"}, 0)
	if err != nil {
		b.Fatal(err)
	}
	nodes := 4
	if pin {
		nodes = 1
	}
	for i := range nodes {
		n, err := agent.JoinNode(b.Context(), server.URL(), agent.NodeConfig{
			Group: "processors", Name: "n" + strconv.Itoa(i), Processors: processors / nodes, Pin: pin,
		}, block)
		if err != nil {
			b.Fatal(err)
		}
		defer n.Close()
	}
	select {
	case d := <-took:
		return d
	case <-time.After(time.Minute):
		b.Fatal("the program does not end")
		return 0
	}
}
