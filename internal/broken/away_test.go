//go:build broken && linux

package broken

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

//go:embed grind.yaml
var grinding []byte

// rateEvery is how often a block writes down how much it has done.
const rateEvery = 200 * time.Millisecond

// work is a node, whose blocks work until SIGUSR1.
func (r *role) work(ctx context.Context, w *writer, logger *slog.Logger) error {
	enough, stop := signal.NotifyContext(ctx, syscall.SIGUSR1)
	defer stop()
	grind := agent.Block("grind", func(ctx context.Context, run *agent.Run, _ struct{}) (float64, error) {
		units, cpu, told := 0.0, used(), clock()
		now := struct {
			Serial int64 `pegasus:"serial"`
			Lit    bool  `pegasus:"lit"`
		}{Serial: int64(r.Life) * serialsOfLife}
		var sum [sha256.Size]byte
		block := make([]byte, 64<<10)
		for enough.Err() == nil && ctx.Err() == nil {
			for range 4 { // About half a millisecond.
				sum = sha256.Sum256(block)
				copy(block, sum[:])
			}
			units++
			now.Serial++
			now.Lit = !now.Lit
			w.put(&record{Kind: kindSet, At: clock(), By: run.Processor(), State: &state{Serial: now.Serial, Lit: now.Lit}})
			if err := run.Set(now); err != nil {
				return 0, err
			}
			w.put(&record{Kind: kindDid, At: clock(), By: run.Processor(), State: &state{Serial: now.Serial}})
			elapse(4 * time.Millisecond)
			if at := clock(); at-told >= int64(rateEvery) {
				cpuNow := used()
				w.put(&record{Kind: kindRate, At: at, By: run.Processor(), Count: units * 1e9 / float64(at-told), CPU: (cpuNow - cpu) / units})
				units, told, cpu = 0, at, cpuNow
			}
		}
		return units, context.Cause(ctx)
	})
	n, err := persist(ctx, func() (*agent.Node, error) {
		return agent.JoinNode(ctx, r.URL, agent.NodeConfig{Group: "grinders", Name: r.Name, JoinTimeout: time.Hour, Logger: logger}, grind)
	})
	if err != nil {
		return err
	}
	<-ctx.Done()
	return n.Close()
}

// used is the processor time of this process so far, in seconds.
func used() float64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// runProgram is the synchronizer of the program.
func (r *role) runProgram(ctx context.Context, w *writer, logger *slog.Logger) error {
	cfg, err := synchronizer.ParseProgram("grind.yaml", grinding)
	if err != nil {
		return err
	}
	journal, err := os.Create(r.path("journal"))
	if err != nil {
		return err
	}
	defer journal.Close()
	return r.oversee(ctx, w, cfg, synchronizer.Options{
		Observe: func(e monitor.Event) {
			if p, ok := e.(monitor.ProgramEvent); ok {
				l := p.Line()
				w.put(&record{Kind: kindLog, At: clock(), Text: "program: " + l.String()})
			}
			w.event(e)
		},
		Logger: logger, Journal: journal, State: filepath.Join(r.Dir, "state"),
	})
}

// TestServerGoneBesideProgram takes the server away for long from a program that runs: its
// blocks continue as fast as they did, and the state is right soon after it is back.
func TestServerGoneBesideProgram(t *testing.T) {
	t.Parallel()
	long := 20 * time.Second
	if counts() == "nightly" {
		long = 10 * time.Minute
	}
	p := newPart(t, 1)
	w := newWorld(t, 0)
	w.ownFirst = true
	w.server()
	w.start(role{Kind: aProgram, Name: "s0"})
	nodes := []*process{w.start(role{Kind: aNode, Name: "na"}), w.start(role{Kind: aNode, Name: "nb"})}
	for _, n := range nodes {
		n.Members = []string{n.Name + "-0"}
	}
	since := clock()
	w.until("both blocks to run", func() bool { return w.right(since) && len(w.truth) == 2 })
	began := clock()
	elapse(min(long, time.Minute) / 2)
	w.kill(w.running["nats"])
	gone := clock()
	elapse(long)
	back := w.server()
	p.took("the server is back: the truth is shown", "p99 1 s", w.shownSince(back))
	healed := clock()
	elapse(min(long, time.Minute) / 2)
	end := clock()
	w.look()
	with, cpuWith := w.rate(func(at int64) bool { return at > began && at < gone || at > healed && at < end })
	without, cpuWithout := w.rate(func(at int64) bool { return at > gone && at < back })
	p.add("work of the blocks without the server, of that with it", "0.99 to 1.01", "", without/with)
	p.add("processor time of it, likewise", "", "", cpuWithout/cpuWith)
	if without < with/2 {
		t.Errorf("the blocks came to %.1f units/s without the server, and to %.1f with it", without, with)
	}
	for _, n := range nodes {
		w.send(n, syscall.SIGUSR1)
	}
	w.until("the program to end", func() bool {
		for _, l := range w.logs {
			if strings.HasPrefix(l.text, "program: the program is done") {
				return true
			}
		}
		return false
	})
	w.endAll()
	p.judged(t, w, "states", "firings", "fates")
	p.loss(t, w)
}

// rate is the mean of the units that blocks do in a second, and of the processor time for a unit.
func (w *world) rate(in func(at int64) bool) (units, cpu float64) {
	n := 0.0
	for _, r := range w.rates {
		if in(r.At) && in(r.At-int64(rateEvery)) {
			n, units, cpu = n+1, units+r.Count, cpu+r.CPU
		}
	}
	return units / max(n, 1), cpu / max(n, 1)
}
