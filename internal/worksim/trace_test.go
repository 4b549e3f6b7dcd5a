package worksim

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// replay runs a trace in a scenario.
func replay(tb testing.TB, scenario, lines string) *Result {
	tb.Helper()
	trace, err := ParseTrace("t.jsonl", []byte(lines))
	if err != nil {
		tb.Fatal(err)
	}
	s, err := ParseTraced("s.yaml", []byte(scenario), trace)
	if err != nil {
		tb.Fatal(err)
	}
	return mustRun(tb, s)
}

// TestTrace: exactly the tasks of a trace run, each as long as it took, when and where it was put, with its data.
func TestTrace(t *testing.T) {
	const scenario = "nodes: 2\nwork: {slots: 1, strategy: {kind: chunk, cut: ss}}"
	const tasks = `{"member":"b","at":100,"data":"y","bytes":5000000}
{"member":"b","at":100.5,"data":"x","bytes":1000000}
{"member":"a","at":101,"put":"first","weight":1,"bytes":9}

{"member":"a","at":101,"put":"second","weight":1,"bytes":9}
{"member":"a","at":104,"put":"third","reads":["x","y"]}
{"member":"b","at":102,"ran":"second","seconds":0.5}
{"member":"b","at":103,"ran":"second","seconds":1.5}
{"member":"a","at":103,"ran":"first","seconds":2}
{"member":"b","at":105.25,"ran":"third","seconds":1.25}
`
	r := replay(t, scenario, tasks)
	if r.Tasks != 3 || r.Items != 3 || r.Work != 4.75 || r.Traced != 4250*time.Millisecond || r.Classes != 1 || r.Oracle != nil {
		t.Errorf("%+v", r)
	}
	if late := r.Time - 4250*time.Millisecond; late < 0 || late > 20*time.Millisecond {
		t.Errorf("the third task is put after 3 s and takes 1.25 s, and the end comes after %v", r.Time)
	}
	// The third task waits for data that are written after it was put.
	slow := replay(t, scenario, strings.Replace(tasks, `"at":100,`, `"at":105,`, 1))
	if late := slow.Time - 5250*time.Millisecond; late < 0 || late > 200*time.Millisecond || slow.Objects == 0 && slow.Moved < 2 {
		t.Errorf("%d objects and %d tasks moved, and the end comes after %v", slow.Objects, slow.Moved, slow.Time)
	}
	// The key order reads the weights of the trace: the longest tasks first, and the shortest ones first.
	for weight, want := range map[string]time.Duration{"1": 28 * time.Second, "-1": 30 * time.Second} {
		var b strings.Builder
		for i := range 10 {
			w := 1 + i
			if weight == "-1" {
				w = 10 - i
			}
			_, _ = fmt.Fprintf(&b, "{\"member\":\"a\",\"at\":1,\"put\":\"%d\",\"weight\":%d}\n{\"member\":\"a\",\"at\":9,\"ran\":\"%d\",\"seconds\":%d}\n", i, w, i, 1+i)
		}
		r := replay(t, "nodes: 2\nwork: {slots: 1, order: -weight, strategy: {kind: chunk, cut: ss}}", b.String())
		if late := r.Time - want; late < 0 || late > 50*time.Millisecond {
			t.Errorf("weights of %s: %v, want %v", weight, r.Time, want)
		}
	}
}

// TestTrickle: a node puts few tasks, one after the other, and the others refuse each other meanwhile. No node waits for the next
// report of all loads.
func TestTrickle(t *testing.T) {
	for _, strategy := range []string{"kind: receiver", "kind: diffusion", "kind: chunk, cut: ss"} {
		for _, begin := range []time.Duration{450 * time.Millisecond, time.Second, 2370 * time.Millisecond, 9 * time.Second} {
			var b strings.Builder
			line := func(at time.Duration, id string, took float64) {
				_, _ = fmt.Fprintf(&b, "{\"member\":\"a\",\"at\":%v,\"put\":%q}\n{\"member\":\"a\",\"at\":%v,\"ran\":%q,\"seconds\":%v}\n", at.Seconds(), id, at.Seconds(), id, took)
			}
			line(0, "first", 0.001)
			for i := range 12 {
				line(begin+time.Duration(i)*20*time.Millisecond, strconv.Itoa(i), 0.1)
			}
			r := replay(t, "nodes: 4\nwork: {slots: 1, strategy: {"+strategy+"}}", b.String())
			if took := r.Time - begin; took > 400*time.Millisecond {
				t.Errorf("%s: 12 tasks of 100 ms on 4 nodes, the last one put after 220 ms, take %v", strategy, took)
			}
		}
	}
}

// TestTraceFaults: each fault of a trace has its line.
func TestTraceFaults(t *testing.T) {
	const put, ran = `{"member":"a","at":1,"put":"t"}` + "\n", `{"member":"a","at":2,"ran":"t","seconds":1}` + "\n"
	for lines, want := range map[string]string{
		"":              "t.jsonl: the trace puts no task: give the lines that members with work.Trace have written",
		put + "\nx\n":   "t.jsonl:3: line of a trace: invalid character 'x' looking for beginning of value: write one JSON object a line, as a space writes them",
		put + ran + put: `t.jsonl:3: task "t" is put once more: give all tasks of a trace different IDs`,
		put:             `t.jsonl:1: task "t" is put, and no line says how long it ran: trace all members, up to the end of the run`,
		put + strings.ReplaceAll(ran, `"t"`, `"u"`) + ran:                      `t.jsonl:2: task "u" ran, and no line puts it: trace all members; bags, objects, tasks that run after others and tasks that functions put are not simulated`,
		strings.Replace(put, `"t"`, `"t","reads":["x"]`, 1) + ran:              `t.jsonl:1: task "t" reads data "x", and no line writes them: trace the member that writes them`,
		strings.Replace(put, `"t"`, `"t","bytes":50000`, 1) + ran:              `t.jsonl:1: task "t": its argument, its data or its weight is too large: at most 49136 bytes, 64 data and a weight of 1e+12 are simulated`,
		put + ran + `{"member":"a","at":1,"data":"x","bytes":33554433}`:        `t.jsonl:3: data "x": they have 33554433 bytes, and 0 data come before: at most 10000 data of 33554432 bytes are simulated: trace a run with fewer or smaller data`,
		put + strings.Replace(ran, `"at":2`, `"at":1e300`, 1):                  `t.jsonl:2: the line is 1e+300 s after the first put, and its run takes 1 s: a trace has at most 24h0m0s`,
		strings.Replace(put, `"t"`, `"`+strings.Repeat("t", 300)+`"`, 1) + ran: `t.jsonl:1: task "` + strings.Repeat("t", 40) + `"...: its ID has 300 bytes, and at most 128 are allowed`,
	} {
		if _, err := ParseTrace("t.jsonl", []byte(lines)); err == nil || err.Error() != want {
			t.Errorf("%v; want %s", err, want)
		}
	}
	big := strings.Replace(put, `"t"`, `"t","reads":["x"]`, 1) + ran + `{"member":"b","at":1,"data":"x","bytes":2000000}`
	for scenario, want := range map[string]string{
		"nodes: 1":                           "t.jsonl: the trace has 2 members, and the scenario 1 nodes: write as many nodes at least",
		"nodes: 2\nwork: {data: {cache: 1}}": `t.jsonl:1: task "t": its data have 2000000 bytes together, and work.data.cache of the scenario allows 1048576: raise data.cache`,
		"nodes: 2\ntasks: [{}]":              "s.yaml:2:8: tasks: the trace has tasks and data already: leave out tasks and data, or --trace",
		"nodes: 2\nkills: {count: 1}":        "kills.count: 1 is out of range: write 0 to 0, since 0 nodes put no tasks: tasks are lost with the node that has put them",
	} {
		trace, err := ParseTrace("t.jsonl", []byte(big))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseTraced("s.yaml", []byte(scenario), trace); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", scenario, err, want)
		}
	}
	trace, err := ParseTrace("t.jsonl", []byte(big))
	if err != nil {
		t.Fatal(err)
	}
	s, err := ParseTraced("s.yaml", []byte("nodes: 2"), trace)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Resize(4); err != nil || mustRun(t, s).Nodes != 4 {
		t.Error(err)
	}
	if err := s.Resize(1); err == nil || err.Error() != "1 nodes: use 2 to 1024 nodes, since the trace has 2 members, and a scenario with one group of them" {
		t.Error(err)
	}
}
