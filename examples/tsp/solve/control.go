package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/examples/tsp/bnb"
)

// program is examples/tsp as an executable: the search by worker processes under
// global control.
type program struct {
	dir string // of its own
	exe string
}

// builder is build, which tests do once.
var builder = build

// build makes the executable in a directory of its own, which remove takes away.
func build() (*program, error) {
	dir, err := os.MkdirTemp("", "tsp-solve-")
	if err != nil {
		return nil, err
	}
	p := &program{dir: dir, exe: filepath.Join(dir, "tsp")}
	out, err := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "github.com/gopegasus/pegasus/examples/tsp").CombinedOutput()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot build examples/tsp: %w: run this inside the module, with go in the path\n%s", err, out), p.remove())
	}
	return p, nil
}

func (p *program) remove() error { return os.RemoveAll(p.dir) }

// controlled is what a run under global control came to: what it says itself of
// the search, which begins with the first lease, and what it took as a whole.
type controlled struct {
	Length     int     `json:"length"`
	LowerBound int     `json:"lower_bound"`
	Proven     bool    `json:"proven"`
	Search     float64 `json:"search_seconds"`
	Busy       float64 `json:"busy_seconds"` // that threads had something to search, added up
	Nodes      int64   `json:"nodes"`
	Migrations int     `json:"migrations"`

	whole, processor float64 // seconds; the latter of all its processes
}

// run solves an instance with worker processes of one thread each. A run that
// does not prove within the limit is no error.
func (p *program) run(t task, processes int, tour []int, o options) (controlled, error) {
	args := []string{
		"-instance", t.spec, "-processes", strconv.Itoa(processes), "-threads", "1", "-json",
		"-time", o.limit.String(), "-seed", strconv.FormatUint(o.seed, 10),
	}
	if tour != nil {
		file := filepath.Join(p.dir, "tour")
		if err := os.WriteFile(file, []byte(numbered(tour)), 0o600); err != nil {
			return controlled{}, err
		}
		args = append(args, "-tour", file)
	}
	// The program keeps to the limit itself; it is helped only if it hangs.
	ctx, cancel := context.WithTimeout(context.Background(), o.limit+time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.exe, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	start := time.Now()
	err := cmd.Run()
	whole := time.Since(start)
	var r controlled
	if failed := json.Unmarshal(out.Bytes(), &r); failed != nil {
		return r, fmt.Errorf("tsp %s gives no result: %w\n%s", strings.Join(args, " "), errors.Join(err, failed), &errs)
	}
	r.whole, r.processor = whole.Seconds(), (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	if r.Proven && t.optimum >= 0 && r.Length != t.optimum {
		return r, fmt.Errorf("%d is said to be optimal, published is %d: the index or the program is wrong", r.Length, t.optimum)
	}
	return r, nil
}

// numbered lists the cities of a tour, counted from 1.
func numbered(tour []int) string {
	var b strings.Builder
	for _, city := range tour {
		b.WriteString(strconv.Itoa(city + 1))
		b.WriteByte('\n')
	}
	return b.String()
}

// longLook finds a tour that is seldom not a shortest one: all that are compared
// begin with it, so that luck in finding tours does not count.
func longLook(t task, o options) []int {
	im := bnb.NewImprover(t.in, bnb.ImproverOptions{Seed: o.seed, Kicks: 250 * t.in.N, Runs: 10})
	for done := false; !done; {
		_, done = im.Step()
	}
	tour, _ := im.Best()
	return tour
}
