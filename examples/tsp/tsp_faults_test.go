//go:build system && unix

package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/configs"
	"github.com/gopegasus/pegasus/examples/tsp/bnb"
	"github.com/gopegasus/pegasus/examples/tsp/tsplib"
	"github.com/gopegasus/pegasus/internal/testcount"
	"github.com/gopegasus/pegasus/internal/testwait"
)

// moment waits until the synchronizer has decided n times about subtasks, or for a
// second: a search may need few decisions.
func (p *program) moment(n int) {
	enough := time.After(time.Second)
	for {
		text, more := p.stderr.sofar()
		if strings.Count(text, decided) >= n {
			return
		}
		select {
		case <-more:
		case <-p.done:
			return
		case <-enough:
			return
		}
	}
}

// TestKilledWorker kills one of three workers at a random moment of the search.
func TestKilledWorker(t *testing.T) {
	for i := range kills {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			seed := rand.Uint64() //nolint:forbidigo // It is told, and only chooses the moment.
			rnd := rand.New(rand.NewPCG(seed, 0))
			victim, moment := fmt.Sprintf("w%d", 1+rnd.IntN(3)), 1+rnd.IntN(25)
			t.Logf("killing %s after %d decisions, or a second (seed %d)", victim, moment, seed)
			p := begin(t, "-instance", hard, "-json", "-v")
			pids := p.workers(t, p.stderr)
			p.moment(moment)
			if err := syscall.Kill(pids[victim], syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			code, r := p.finish(t)
			checkProven(t, code, r, hard, optimumOfHard())
			if text := p.stderr.String(); !strings.Contains(text, victim+" is lost (silent for 2s): ") {
				t.Errorf("no word of the loss:\n%s", text)
			}
			goneBy(t, safety, pids)
		})
	}
}

// TestStoppedWorker stops a worker for longer than it may be silent: it comes
// back, and what it held is searched nevertheless.
func TestStoppedWorker(t *testing.T) {
	p := begin(t, "-instance", hard, "-json", "-v")
	pids := p.workers(t, p.stderr)
	p.decisions(t, p.stderr, 2)
	if err := syscall.Kill(pids["w2"], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	p.await(t, p.stderr, contains("w2 is lost"))
	if err := syscall.Kill(pids["w2"], syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	code, r := p.finish(t)
	checkProven(t, code, r, hard, optimumOfHard())
	goneBy(t, safety, pids)
}

// TestKilledNode kills one of the three nodes of a program: its blocks start again on
// the others, and the optimum is proven.
func TestKilledNode(t *testing.T) {
	p := begin(t, "-program", "-instance", "kroA100", "-v")
	text := p.await(t, p.stdout, contains("search [2] starts on"))
	pids := map[string]int{}
	for _, m := range workerLine.FindAllStringSubmatch(text, -1) {
		pids[m[1]], _ = strconv.Atoi(m[2])
	}
	if err := syscall.Kill(pids["w2"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	checkProgram(t, p, "kroA100", 21282)
	if text := p.stdout.String(); !strings.Contains(text, "w2-0 is lost with search") {
		t.Errorf("no word of the loss:\n%s", text)
	}
	goneBy(t, safety, pids)
}

func TestAllWorkersKilled(t *testing.T) {
	p := begin(t, "-instance", endless, "-v", "-processes", "2")
	for _, pid := range p.workers(t, p.stdout) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	want := "tsp: all workers have ended, the last one with signal: killed: nobody is left to search"
	if code := p.end(t); code != exitFailed || !strings.Contains(p.stderr.String(), want) {
		t.Errorf("exit code %d, %s", code, p.stderr)
	}
}

func TestKilledParent(t *testing.T) {
	p := begin(t, "-instance", endless, "-v")
	pids := p.workers(t, p.stdout)
	if err := p.cmd.Process.Kill(); err != nil || len(pids) != 3 {
		t.Fatal(err, pids)
	}
	goneBy(t, safety, pids)
}

// soon is how soon an interrupted program ends.
const soon = 2 * time.Second

func TestInterrupt(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			p := begin(t, "-instance", endless, "-v")
			pids := p.workers(t, p.stdout)
			p.decisions(t, p.stdout, 1)
			if err := p.cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if code := p.endWithin(t, soon); code != exitInterrupted {
				t.Errorf("exit code %d", code)
			}
			goneBy(t, 0, pids)
			text := p.stdout.String()
			if !regexp.MustCompile(`(?m)^tour( \d+){300}$`).MatchString(text) || !strings.Contains(text, "interrupted, not proven") {
				t.Errorf("no tour, or no verdict:\n%s", text)
			}
		})
	}
}

// TestInterruptLarge interrupts what is not looked at for many seconds, in the
// run and in a worker that has joined it. The worker comes first: it ends with
// the run by itself.
func TestInterruptLarge(t *testing.T) {
	srv := serve(t, 0)
	p := begin(t, "-instance", "random:2000:1", "-nats", srv.URL(), "-processes", "1", "-json", "-v")
	p.workers(t, p.stderr)
	w := begin(t, "-worker", "-nats", srv.URL())
	p.await(t, p.stderr, contains("epoch 2:"))
	p.await(t, p.stderr, func(text string) bool { return strings.Count(text, "NewBest holds") > 20 })
	for _, one := range []struct {
		name string
		*program
	}{{"the worker", w}, {"the run", p}} {
		if err := one.cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatalf("%s: %v", one.name, err)
		}
		if code := one.endWithin(t, soon); code != exitInterrupted {
			t.Errorf("%s: exit code %d", one.name, code)
		}
	}
	if r := decodeResult(t, p); !r.Interrupted || len(r.Tour) != 2000 {
		t.Errorf("%+v", r)
	}
}

func TestInterruptedJSON(t *testing.T) {
	p := begin(t, "-instance", endless, "-v", "-json")
	p.workers(t, p.stderr)
	p.decisions(t, p.stderr, 1)
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code, r := p.finish(t); code != exitInterrupted || !r.Interrupted || r.Proven || len(r.Tour) != 300 {
		t.Errorf("exit code %d, %+v", code, r)
	}
}

// TestInterruptWithoutServer: an absent server holds up nothing.
func TestInterruptWithoutServer(t *testing.T) {
	srv := serve(t, 0)
	p := begin(t, "-instance", endless, "-nats", srv.URL(), "-v")
	pids := p.workers(t, p.stdout)
	srv.Close()
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := p.endWithin(t, soon); code != exitInterrupted {
		t.Errorf("exit code %d:\n%s", code, p.stderr)
	}
	goneBy(t, 0, pids)
}

// TestServerRestarts takes the server away for longer than a member may be
// silent.
func TestServerRestarts(t *testing.T) {
	srv := serve(t, 0)
	p := begin(t, "-instance", hard, "-nats", srv.URL(), "-json", "-v")
	p.workers(t, p.stderr)
	p.decisions(t, p.stderr, 3)
	srv.Close()
	testwait.Elapse(3 * time.Second) // The outage.
	serve(t, srv.Port())
	code, r := p.finish(t)
	checkProven(t, code, r, hard, optimumOfHard())
}

// shortSilence writes configs/tsp.yaml with a silence of half a second, so that a killed process is missed soon.
func shortSilence(t *testing.T) string {
	t.Helper()
	src, err := configs.Files.ReadFile("tsp.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(src), "silence: {after: 2s,", "silence: {after: 500ms,", 1)
	file := filepath.Join(t.TempDir(), "tsp.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil || text == string(src) {
		t.Fatal(err)
	}
	return file
}

// reached waits until the program has written something that matches, and reports whether it did before it ended.
func (p *program) reached(o *output, matches func(string) bool) bool {
	for {
		text, more := o.sofar()
		if matches(text) {
			return true
		}
		select {
		case <-more:
		case <-p.done:
			return matches(o.String())
		}
	}
}

// nearOptimum writes a tour that a double bridge makes a little longer than the optimum. Local search does not undo it, so
// the search finds better tours.
func nearOptimum(t *testing.T, spec string) (string, int) {
	t.Helper()
	in, err := tsplib.Load(spec)
	if err != nil {
		t.Fatal(err)
	}
	r, err := bnb.Solve(in, bnb.SolveOptions{Seed: 1})
	if err != nil || !r.Proven {
		t.Fatal(r, err)
	}
	near, least := []int(nil), math.MaxInt
	for i := 1; i < in.N-2; i++ {
		for j := i + 3; j < in.N-2; j++ {
			for k := j + 3; k < in.N; k++ {
				tour := slices.Concat(r.Tour[:i], r.Tour[j:k], r.Tour[i:j], r.Tour[k:])
				length := 0
				for n, city := range tour {
					length += in.Dist(city, tour[(n+1)%in.N])
				}
				if length > r.Length && length < least {
					near, least = tour, length
				}
			}
		}
	}
	var b strings.Builder
	for _, city := range near {
		fmt.Fprintf(&b, "%d ", city+1)
	}
	file := filepath.Join(t.TempDir(), "near.tour")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, r.Length
}

// TestKilledAfterNewBest (P36) kills a worker at once after the first NewBest of the search. The others prune by a recorded tour, so
// the optimum is proven.
func TestKilledAfterNewBest(t *testing.T) {
	t.Setenv(envKicks, "1")
	const spec = "random:80:7"
	tour, optimum := nearOptimum(t, spec)
	config, killed := shortSilence(t), 0
	n := testcount.Of(t, "TSP_BEST_KILLS", 3)
	for i := range n {
		victim := fmt.Sprintf("w%d", 1+i%2)
		p := begin(t, "-instance", spec, "-processes", "2", "-threads", "1", "-json", "-v", "-config", config, "-tour", tour)
		pids := p.workers(t, p.stderr)
		found := p.reached(p.stderr, func(text string) bool {
			_, search, _ := strings.Cut(text, decided)
			return strings.Contains(search, "NewBest holds")
		})
		if err := syscall.Kill(pids[victim], syscall.SIGKILL); err != nil {
			t.Logf("%s had ended: %v", victim, err)
		} else if found {
			killed++
		}
		code, r := p.finish(t)
		checkProven(t, code, r, spec, optimum)
		goneBy(t, safety, pids)
	}
	if t.Logf("%d of %d runs lost a worker after a tour of a bag", killed, n); killed == 0 {
		t.Error("no worker was killed after a tour of a bag")
	}
}

// envShared names a directory of TSPLIB files with INDEX.csv, which has their optima: name, cities, two columns, optimum.
const envShared = "PEGASUS_TSP_SHARED"

// TestSharedInstances proves 20 shared instances, and kills a worker in each run: once the search has begun, or at the start of a small
// instance, which needs no search. An instance that is not proven within a minute does not count, nor one that ends before the kill.
func TestSharedInstances(t *testing.T) {
	dir := os.Getenv(envShared)
	if dir == "" {
		t.Skip("set " + envShared + " to a directory of TSPLIB files with INDEX.csv")
	}
	t.Setenv(envKicks, "1")
	file, err := os.Open(filepath.Join(dir, "INDEX.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	const wanted, small = 20, 48 // instances, and cities
	config, proven := shortSilence(t), 0
	for i := 1; i < len(rows) && proven < wanted; i++ {
		name, spec := rows[i][0], filepath.Join(dir, rows[i][0]+".tsp")
		cities, err := strconv.Atoi(rows[i][1])
		optimum, wrong := strconv.Atoi(rows[i][4])
		if err = errors.Join(err, wrong); err != nil {
			t.Fatalf("INDEX.csv: %s: %v", name, err)
		}
		victim := fmt.Sprintf("w%d", 1+i%3)
		p := begin(t, "-instance", spec, "-threads", "1", "-time", "1m", "-json", "-v", "-config", config)
		pids := p.workers(t, p.stderr)
		when := "at the start"
		if cities >= small {
			when = "in the search"
			if !p.reached(p.stderr, contains(decided)) {
				when = "none"
			}
		}
		if syscall.Kill(pids[victim], syscall.SIGKILL) != nil {
			when = "none"
		}
		code, r := p.finish(t)
		t.Logf("%-10s optimum %-6d length %-6d proven %-5v kill %-13s %6.2f s %6d nodes", name, optimum, r.Length, r.Proven, when, r.Seconds, r.Nodes)
		if when == "none" || !r.Proven {
			continue
		}
		checkProven(t, code, r, spec, optimum)
		proven++
	}
	if proven < wanted {
		t.Errorf("%d instances are proven with a kill, want %d", proven, wanted)
	}
}
