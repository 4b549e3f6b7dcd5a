package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func example() *result {
	return &result{
		Instance: "kroA100", N: 3, Length: 21282, LowerBound: 21282, Proven: true, Seconds: 1.234, Search: 1.1, Busy: 6.25, Nodes: 812, Processes: 3, Threads: 2,
		PIDs: []int{7, 8, 9}, Subtasks: 31, Signals: signals{2, 42, 3}, Migrations: 1, LateSignals: 0, Tour: []int{1, 3, 2},
		Clocks:  "the same clock",
		verdict: "Done", migrate: 9,
	}
}

func TestJSON(t *testing.T) {
	var out bytes.Buffer
	if err := example().printJSON(&out); err != nil {
		t.Fatal(err)
	}
	want := `{"instance":"kroA100","n":3,"length":21282,"lower_bound":21282,"proven":true,"interrupted":false,` +
		`"seconds":1.234,"search_seconds":1.1,"busy_seconds":6.25,"nodes":812,"processes":3,"threads":2,"pids":[7,8,9],"subtasks":31,` +
		`"signals":{"new_best":2,"new_subtask":42,"stop":3},"migrations":1,"late_signals":0,"clocks":"the same clock","tour":[1,3,2]}` + "\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestVerdictLine(t *testing.T) {
	for _, c := range []struct {
		change func(*result)
		want   string
	}{
		{func(*result) {}, "kroA100: length 21282, proven optimal by the same clock, 1.23 s (search 1.10 s); 3 processes x 2 threads; 31 subtasks; " +
			"signals: 2 new best, 42 new subtask, 9 migrate, 3 stop; 1 migration, 0 late signals"},
		{func(r *result) { r.Proven, r.LowerBound, r.verdict = false, 21000, "StopIteration" }, "at most 1.34% above the optimum, as asked for with -gap"},
		{func(r *result) { r.Proven, r.LowerBound, r.verdict = false, 21000, "" }, "not proven (lower bound 21000, gap 1.34%)"},
		{func(r *result) { r.Proven, r.LowerBound, r.verdict, r.Interrupted = false, 0, "", true }, "interrupted, not proven (lower bound 0, gap unknown)"},
	} {
		r := example()
		c.change(r)
		if got := r.String(); !strings.Contains(got, c.want) {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
}

func TestExitCode(t *testing.T) {
	open := example()
	open.verdict = ""
	for _, c := range []struct {
		res  *result
		err  error
		want int
		text string
	}{
		{example(), nil, exitGood, ""},
		{open, nil, exitFailed, ""},
		{open, errTime, exitFailed, "tsp: the time limit of -time was reached\n"},
		{nil, errors.New("no server"), exitFailed, "tsp: no server\n"},
		{open, errInterrupted, exitInterrupted, "tsp: interrupted\n"},
		{nil, errInterrupted, exitInterrupted, "tsp: interrupted\n"},
	} {
		var errs bytes.Buffer
		if got := exitCode(c.res, c.err, &errs); got != c.want || errs.String() != c.text {
			t.Errorf("%v: exit code %d %q, want %d %q", c.err, got, &errs, c.want, c.text)
		}
	}
}
