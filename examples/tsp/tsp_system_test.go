//go:build system && unix

package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/examples/tsp/bnb"
	"github.com/gopegasus/pegasus/examples/tsp/tsplib"
	"github.com/gopegasus/pegasus/internal/testwait"
)

// shape is a number of worker processes and of threads of each.
type shape struct{ processes, threads int }

// What the tests do more of with the tag nightly.
var (
	shapes = []shape{{3, 2}, {1, 3}}
	kills  = 1
)

const (
	// hard is an instance that takes the bare solver some seconds.
	hard = "random:150:1"
	// endless is one that nobody solves while a test lasts.
	endless = "random:300:1"
)

// optimumOfHard is the length that the bare solver proves.
var optimumOfHard = sync.OnceValue(func() int { return optimumOf(hard) })

func optimumOf(spec string) int {
	in, err := tsplib.Load(spec)
	if err != nil {
		panic(err)
	}
	r, err := bnb.Solve(in, bnb.SolveOptions{Seed: 1})
	if err != nil || !r.Proven {
		panic(fmt.Sprint(r, err))
	}
	return r.Length
}

func TestInstances(t *testing.T) {
	for _, s := range shapes {
		for _, i := range tsplib.Embedded() {
			t.Run(fmt.Sprintf("%s/%dx%d", i.Name, s.processes, s.threads), func(t *testing.T) {
				p := begin(t, "-instance", i.Name, "-processes", strconv.Itoa(s.processes), "-threads", strconv.Itoa(s.threads), "-json")
				code, r := p.finish(t)
				checkProven(t, code, r, i.Name, i.Optimum)
				if len(r.PIDs) != s.processes || r.Signals.Stop != s.processes {
					t.Errorf("%+v", r)
				}
				t.Log(p.lastLine())
			})
		}
	}
}

// TestSignals: a search of some seconds needs all of them.
func TestSignals(t *testing.T) {
	p := begin(t, "-instance", hard, "-processes", "2", "-threads", "1", "-json")
	code, r := p.finish(t)
	checkProven(t, code, r, hard, optimumOfHard())
	if r.Signals.NewBest == 0 || r.Signals.NewSubtask == 0 || r.Signals.Stop != 2 || r.Migrations == 0 {
		t.Errorf("%v", r)
	}
	t.Log(p.lastLine())
}

// TestProgramSignals: in a search of some seconds the predicates of the program act
// inside the searchers. In a shorter one all may be ready before anybody has to share.
func TestProgramSignals(t *testing.T) {
	got := checkProgram(t, begin(t, "-program", "-instance", "kroA100"), "kroA100", 21282)
	if nodes, best, share := got[1], got[2], got[3]; nodes == 0 || best == 0 || share == 0 {
		t.Errorf("%d nodes, signals: %d new best, %d share", nodes, best, share)
	}
}

// lastLine is the verdict line.
func (p *program) lastLine() string {
	lines := strings.Split(strings.TrimSpace(p.stderr.String()), "\n")
	return lines[len(lines)-1]
}

var workerLine = regexp.MustCompile(`(w\d+) is process (\d+)`)

// workers waits for the first epoch and returns the worker processes by name.
func (p *program) workers(t *testing.T, o *output) map[string]int {
	t.Helper()
	text := p.await(t, o, contains("epoch 1:"))
	pids := map[string]int{}
	for _, m := range workerLine.FindAllStringSubmatch(text, -1) {
		pids[m[1]], _ = strconv.Atoi(m[2])
	}
	return pids
}

// decided is in each line that tells of a decision about subtasks.
const decided = "NewSubtask holds"

// decisions waits until the synchronizer has decided n times about subtasks.
func (p *program) decisions(t *testing.T, o *output, n int) {
	t.Helper()
	p.await(t, o, func(text string) bool { return strings.Count(text, decided) >= n })
}

// endWithin wants the program to end soon. What counts is time in which this test runs
// too: on a machine that has stopped for a while, or is that busy, nobody gets on.
func (p *program) endWithin(t *testing.T, limit time.Duration) int {
	t.Helper()
	const step = 10 * time.Millisecond
	tick := time.NewTicker(step)
	defer tick.Stop()
	for passed := time.Duration(0); passed < limit; passed += step {
		select {
		case <-p.done:
			return p.end(t)
		case <-tick.C:
		}
	}
	t.Errorf("it goes on after %v", limit)
	return p.end(t)
}

func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return syscall.Kill(pid, 0) == nil && !os.IsNotExist(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// goneBy waits until none of the processes lives.
func goneBy(t *testing.T, limit time.Duration, pids map[string]int) {
	t.Helper()
	for name, pid := range pids {
		if !testwait.Within(limit, func() bool { return !alive(pid) }) {
			t.Fatalf("%s, process %d, lives on", name, pid)
		}
	}
}

func TestTimeLimit(t *testing.T) {
	p := begin(t, "-instance", endless, "-time", "2s", "-json")
	code, r := p.finish(t)
	if code != exitFailed || r.Proven || r.Interrupted || r.LowerBound >= r.Length || len(r.Tour) != 300 {
		t.Errorf("exit code %d, %+v", code, r)
	}
	if !strings.HasSuffix(p.stderr.String(), "tsp: the time limit of -time was reached\n") {
		t.Errorf("%s", p.stderr)
	}
}

func TestGap(t *testing.T) {
	p := begin(t, "-instance", "random:200:1", "-gap", "0.05", "-json")
	code, r := p.finish(t)
	if code != exitGood || float64(r.Length) > 1.05*float64(r.LowerBound) || r.Signals.Stop != 3 {
		t.Errorf("exit code %d, %+v", code, r)
	}
}

func serve(t *testing.T, port int) *embedded.Server {
	t.Helper()
	srv, err := embedded.Start(embedded.Options{Port: port})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	return srv
}

func TestTwoRunsOnOneServer(t *testing.T) {
	srv := serve(t, 0)
	var runs []*program
	for _, name := range []string{"kroA100", "st70"} {
		runs = append(runs, begin(t, "-instance", name, "-nats", srv.URL(), "-processes", "2", "-json"))
	}
	for i, c := range []struct {
		name    string
		optimum int
	}{{"kroA100", 21282}, {"st70", 675}} {
		code, r := runs[i].finish(t)
		checkProven(t, code, r, c.name, c.optimum)
	}
}

// TestOutsideWorkers: a run without workers of its own waits for those that
// join from elsewhere, and is sent its instance. One worker alone is not through with
// it before the other has joined.
func TestOutsideWorkers(t *testing.T) {
	srv := serve(t, 0)
	file := writeMatrix(t, hard)
	p := begin(t, "-instance", file, "-nats", srv.URL(), "-processes", "0", "-json")
	p.await(t, p.stderr, contains("run tsp-"))
	var workers []*program
	for range 2 {
		workers = append(workers, begin(t, "-worker", "-nats", srv.URL()))
	}
	code, r := p.finish(t)
	checkProven(t, code, r, file, optimumOfHard())
	for _, w := range workers {
		if code := w.end(t); code != exitGood || w.stderr.String() != "" {
			t.Errorf("a worker ended with %d: %s", code, w.stderr)
		}
		if !slices.Contains(r.PIDs, w.cmd.Process.Pid) {
			t.Errorf("%+v", r)
		}
	}
}

// TestOutsideWorkerTakesOver: when the only worker of the run is killed, the run
// waits for another one, which proves the optimum.
func TestOutsideWorkerTakesOver(t *testing.T) {
	srv := serve(t, 0)
	p := begin(t, "-instance", hard, "-nats", srv.URL(), "-processes", "1", "-json", "-v")
	pids := p.workers(t, p.stderr)
	if err := syscall.Kill(pids["w1"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.await(t, p.stderr, contains("waiting for workers: go run ./examples/tsp -worker -nats "+srv.URL()))
	w := begin(t, "-worker", "-nats", srv.URL())
	code, r := p.finish(t)
	checkProven(t, code, r, hard, optimumOfHard())
	if code := w.end(t); code != exitGood {
		t.Errorf("the worker ended with %d: %s", code, w.stderr)
	}
}

func TestNoServerOrRun(t *testing.T) {
	srv := serve(t, 0)
	for want, args := range map[string][]string{
		"does not answer: start one, or correct -nats": {"-nats", "nats://127.0.0.1:1"},
		"no run on the NATS server at " + srv.URL():    {"-worker", "-nats", srv.URL()},
	} {
		p := begin(t, args...)
		if code := p.endWithin(t, 5*time.Second); code != exitFailed || !strings.Contains(p.stderr.String(), want) {
			t.Errorf("exit code %d, %s, want %s", code, p.stderr, want)
		}
	}
}
