package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gopegasus/pegasus/configs"
	"github.com/gopegasus/pegasus/examples/tsp/bnb"
	"github.com/gopegasus/pegasus/examples/tsp/tsplib"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

// envMain makes the test binary the program, as envName makes it a worker.
const envMain = "PEGASUS_TSP_MAIN"

// envKicks lowers the budget of the local search in the program and its workers.
const envKicks = "PEGASUS_TSP_KICKS"

func TestMain(m *testing.M) {
	kicks, _ = strconv.Atoi(os.Getenv(envKicks))
	if os.Getenv(envMain) != "" || os.Getenv(envName) != "" {
		os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// safety is far above what any run of a test takes.
const safety = 5 * time.Minute

// program is a run of the program as a process of its own.
type program struct {
	cmd            *exec.Cmd
	stdout, stderr *output
	done           chan struct{}
}

// begin starts the program.
func begin(tb testing.TB, args ...string) *program {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), safety)
	p := &program{cmd: exec.CommandContext(ctx, os.Args[0], args...), stdout: newOutput(), stderr: newOutput(), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), envMain+"=1")
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	if err := p.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	go func() {
		defer close(p.done)
		defer cancel()
		_ = p.cmd.Wait() // The exit code tells.
	}()
	tb.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
	})
	return p
}

// end waits for the program and returns its exit code.
func (p *program) end(tb testing.TB) int {
	tb.Helper()
	<-p.done
	code := p.cmd.ProcessState.ExitCode()
	if code < 0 {
		tb.Logf("stdout:\n%s\nstderr:\n%s", p.stdout, p.stderr)
	}
	return code
}

// finish waits for the program and reads the object of -json.
func (p *program) finish(t *testing.T) (int, *result) {
	t.Helper()
	code := p.end(t)
	return code, decodeResult(t, p)
}

func decodeResult(t *testing.T, p *program) *result {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(p.stdout.String()))
	d.DisallowUnknownFields()
	var r result
	if err := d.Decode(&r); err != nil {
		t.Fatalf("no object on stdout: %v\nstdout:\n%s\nstderr:\n%s", err, p.stdout, p.stderr)
	}
	if rest := new(bytes.Buffer); d.More() {
		_, _ = rest.ReadFrom(d.Buffered())
		t.Errorf("more than one object on stdout: %s", rest)
	}
	return &r
}

// checkProven checks that a result is right: the tour is one, of that length,
// and the length is the optimum; 0 if that is not known.
func checkProven(t *testing.T, code int, r *result, spec string, optimum int) {
	t.Helper()
	in, err := tsplib.Load(spec)
	if err != nil {
		t.Fatal(err)
	}
	tour := make([]int, len(r.Tour))
	for i, city := range r.Tour {
		tour[i] = city - 1
	}
	if err := bnb.Verify(in, tour, r.Length); err != nil {
		t.Error(err)
	}
	if code != exitGood || !r.Proven || r.LowerBound != r.Length || r.Interrupted || optimum > 0 && r.Length != optimum {
		t.Errorf("exit code %d, %v, want length %d proven", code, r, optimum)
	}
}

// TestRun solves an instance with real worker processes.
func TestRun(t *testing.T) {
	for _, kind := range []string{"edges", "prefix"} {
		t.Run(kind, func(t *testing.T) {
			p := begin(t, "-instance", "burma14", "-processes", "2", "-threads", "2", "-subtasks", kind, "-json")
			code, r := p.finish(t)
			checkProven(t, code, r, "burma14", 3323)
			if r.Clocks != "the same clock" {
				t.Errorf("decided by %s", r.Clocks)
			}
			if r.Instance != "burma14" || r.N != 14 || r.Processes != 2 || r.Threads != 2 || len(r.PIDs) != 2 || r.Signals.Stop != 2 {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestRunSearches solves an instance that the root bound does not prove, from a
// file that the workers are sent.
func TestRunSearches(t *testing.T) {
	journal := t.TempDir()
	file := writeMatrix(t, "st70")
	p := begin(t, "-instance", file, "-processes", "2", "-threads", "1", "-json", "-journal", journal)
	code, r := p.finish(t)
	checkProven(t, code, r, file, 675)
	if r.Subtasks == 0 || r.Signals.NewSubtask == 0 || r.Instance != "matrix" {
		t.Errorf("%+v", r)
	}
	checkReplay(t, journal, checkJournal(t, journal, r))
}

// writeMatrix writes an instance as a file with a matrix.
func writeMatrix(t *testing.T, spec string) string {
	t.Helper()
	in, err := tsplib.Load(spec)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "NAME: matrix\nTYPE: TSP\nDIMENSION: %d\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: FULL_MATRIX\nEDGE_WEIGHT_SECTION\n", in.N)
	for i := range in.N {
		for j := range in.N {
			b.WriteString(" " + strconv.Itoa(in.Dist(i, j)))
		}
		b.WriteString("\n")
	}
	b.WriteString("EOF\n")
	file := filepath.Join(t.TempDir(), "matrix.tsp")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// checkReplay steps through the run once more: everything that the synchronizer
// put out is the same, byte for byte, and so are its decisions.
func checkReplay(t *testing.T, dir string, decisions []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"+synchronizer.JournalSuffix))
	if err != nil || len(files) != 1 {
		t.Fatalf("journals %v, %v", files, err)
	}
	f, err := os.Open(files[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var again []string
	r, err := synchronizer.Replay(f, synchronizer.ReplayOptions{Observe: func(_ time.Time, e monitor.Event) {
		if v, ok := e.(monitor.Verdict); ok && v.Fired {
			again = append(again, v.Predicate+" "+v.Decision.String())
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if r.FirstDifference != 0 || !r.Complete || r.Inputs == 0 {
		t.Errorf("%+v", r)
	}
	if d := cmp.Diff(decisions, again); d != "" || len(decisions) == 0 {
		t.Errorf("%d decisions of the run (-) and of the replay (+) differ: %s", len(decisions), d)
	}
}

// checkJournal checks that the record agrees with the result, and returns the decisions.
func checkJournal(t *testing.T, dir string, r *result) (decisions []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "tsp-*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("journal files %v, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	count, best := map[string]int{}, 0
	for line := range strings.Lines(string(data)) {
		var e struct {
			Event  string
			At     float64
			Length int

			Predicate, Decision string
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if count[e.Event]++; e.Event == "best" {
			best = e.Length
		}
		if e.Event == "decision" {
			decisions = append(decisions, e.Predicate+" "+e.Decision)
		}
	}
	if best != r.Length || count["split"] != 1 || count["end"] != 1 || count["hello"] != 2 {
		t.Errorf("journal has %v and the best tour %d, the result %+v", count, best, r)
	}
	return decisions
}

func TestList(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"-instance", "list"}, &out, &errs); code != exitGood || errs.Len() > 0 {
		t.Errorf("exit code %d, %s", code, &errs)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != len(tsplib.Embedded())+1 {
		t.Fatalf("%d lines", len(lines))
	}
	if diff := cmp.Diff([]string{"kroA100", "100", "21282"}, strings.Fields(lines[len(lines)-1])[:3]); diff != "" {
		t.Error(diff)
	}
}

func TestBadInstance(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ text, want string }{
		"empty.tsp":  {"", "empty.tsp:"},
		"words.tsp":  {"NAME: x\nTYPE: TSP\nDIMENSION: 3\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n1 0 0\n2 zero 1\n3 1 1\nEOF\n", "words.tsp:7:"},
		"zero.tsp":   {"NAME: x\nTYPE: TSP\nDIMENSION: 0\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\nEOF\n", "zero.tsp:3:"},
		"large.tsp":  {"NAME: x\nTYPE: TSP\nDIMENSION: 2001\n", "large.tsp:3:"},
		"short.tsp":  {"NAME: x\nTYPE: TSP\nDIMENSION: 3\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n1 0 0\n2 0 1\nEOF\n", "short.tsp:"},
		"absent.tsp": {"-", `no instance "`},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(dir, name)
			if c.text != "-" {
				if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var out, errs bytes.Buffer
			code := run([]string{"-instance", file}, &out, &errs)
			if code != exitFailed || !strings.Contains(errs.String(), c.want) || out.Len() > 0 {
				t.Errorf("exit code %d, want %d and an error with %q:\n%s%s", code, exitFailed, c.want, &out, &errs)
			}
		})
	}
}

// TestBadConfig: a configuration is refused with every fault and its place.
func TestBadConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bad.yaml")
	src, err := configs.Files.ReadFile("tsp.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(src), ".want > 0", ".wants > 0", 1)
	text = strings.Replace(text, "kind: cancel", "kind: kill", 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code := run([]string{"-instance", "burma14", "-config", file}, &out, &errs)
	for _, want := range []string{"bad.yaml:", `did you mean "want"`, `"kill" is no kind of signal`} {
		if code != exitFailed || !strings.Contains(errs.String(), want) {
			t.Errorf("exit code %d, want %d and %s:\n%s", code, exitFailed, want, &errs)
		}
	}
	if code := run([]string{"-config", file + "x"}, &out, &errs); code != exitFailed || out.Len() > 0 {
		t.Errorf("exit code %d with no configuration:\n%s", code, &out)
	}
}

// TestSeparateClocks: where each process is a clock domain of its own, they
// measure themselves against the synchronizer, and the optimum is proven all the
// same.
func TestSeparateClocks(t *testing.T) {
	for spec, optimum := range map[string]int{"berlin52": 7542, "random:30:3": 0} {
		journal := t.TempDir()
		code, r := begin(t, "-instance", spec, "-processes", "2", "-threads", "2", "-separate-clocks", "-json", "-journal", journal).finish(t)
		checkProven(t, code, r, spec, optimum)
		checkReplay(t, journal, checkJournal(t, journal, r))
		if !strings.HasPrefix(r.Clocks, "clocks within ") || !strings.HasSuffix(r.Clocks, "s (peer)") || r.Processes != 2 {
			t.Errorf("decided by %s; want a bound that was measured", r.Clocks)
		}
	}
}
