package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/bench"
	"github.com/gopegasus/pegasus/internal/peers"
	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/internal/version"
)

// short runs say nothing about speed; they go the whole way.
var (
	shortBench = []string{"bench", "--rounds", "1", "--leg", "20ms"}
	shortLoad  = []string{"bench", "load", "--members", "3", "--processes", "2", "--rate", "2000", "--time", "200ms", "--predicates", "6", "--counts", "1", "--least", "2", "--overload", "2", "--overload-time", "200ms"}
)

// positive wants every number of a JSON object above 0, but for those that are
// named, and replaces it by its sign; and no text empty.
func positive(t *testing.T, path string, v any, mayBeZero ...string) any {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			v[key] = positive(t, key, inner, mayBeZero...)
		}
		return v
	case string:
		if v != "" {
			return "text"
		}
	case float64:
		if v > 0 || v == 0 && strings.Contains(strings.Join(mayBeZero, " "), path) {
			return "number"
		}
	}
	t.Errorf("%s is %v", path, v)
	return v
}

// measured is the object of a measurement.
func measured(t *testing.T, args []string) (o map[string]any) {
	t.Helper()
	code, stdout, stderr := execute(t, append(args, "--json")...)
	if code != exitOK || stderr != "" || strings.Count(stdout, "\n") != 1 {
		t.Fatalf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	if err := json.Unmarshal([]byte(stdout), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func shapeOf(t *testing.T, o map[string]any, mayBeZero ...string) string {
	t.Helper()
	shape, err := json.MarshalIndent(positive(t, "", o, mayBeZero...), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(shape), `"number"`, "1")
}

func TestBenchShape(t *testing.T) {
	const ratio = `{
  "bare": 1,
  "bare_cpu_ns": 1,
  "least": 1,
  "most": 1,
  "pegasus": 1,
  "pegasus_cpu_ns": 1,
  "ratio": 1
 }`
	const machine = `{
  "arch": "text",
  "cpu": "text",
  "cpus": 1,
  "go": "text",
  "os": "text"
 }`
	want := strings.ReplaceAll(`{
 "allocs_per_report": 1,
 "atomic_load_ns": 1,
 "batched_ratio": RATIO,
 "batched_states_per_message": 1,
 "check_ns": 1,
 "leg": "text",
 "machine": MACHINE,
 "pegasus": "text",
 "probe_apart_p50_ratio": RATIO,
 "probe_p50_ratio": RATIO,
 "reports_one_connection_ratio": RATIO,
 "reports_ratio": RATIO,
 "reports_states_per_message": 1,
 "rounds": 1,
 "signal_p50_ratio": RATIO,
 "signal_p99_ratio": RATIO,
 "stamp_ns": 1,
 "thread_signal_us": {
  "p50": 1,
  "p99": 1
 }
}`, "RATIO", ratio)
	o := measured(t, shortBench)
	if o["rounds"] != 1.0 || o["leg"] != "20ms" || o["pegasus"] != version.Own().Build() {
		t.Errorf("measured by %v with %v rounds of %v", o["pegasus"], o["rounds"], o["leg"])
	}
	want = strings.ReplaceAll(want, "MACHINE", machine)
	o["machine"].(map[string]any)["cpu"] = "text" // Not every system tells it.
	// A message that has no state says that the newest one still holds.
	if one, ok := o["reports_states_per_message"].(float64); !ok || one > 1 || one < 0.5 {
		t.Errorf("messages of one state have %v", o["reports_states_per_message"])
	}
	if d := cmp.Diff(want, shapeOf(t, o, "allocs_per_report pegasus_cpu_ns bare_cpu_ns")); d != "" {
		t.Errorf("the object is another one (-want +got):\n%s", d)
	}
}

func TestLoadShape(t *testing.T) {
	want := `{
 "asked_per_second": 1,
 "counts": 1,
 "gaps": 1,
 "least": 1,
 "machine": {
  "arch": "text",
  "cpu": "text",
  "cpus": 1,
  "go": "text",
  "os": "text"
 },
 "members": 1,
 "memory_growth_mib": 1,
 "overload": {
  "gaps": 1,
  "memory_growth_mib": 1,
  "prompt_after_seconds": 1,
  "right_after_seconds": 1,
  "shed_unread": 1,
  "taken_per_second": 1,
  "time": "text",
  "times": 1,
  "told_per_second": 1
 },
 "pegasus": "text",
 "predicates": 1,
 "processes": 1,
 "seconds": {
  "gaps": 1,
  "memory_mib": 1,
  "phase": "text",
  "shed_unread": 1,
  "taken_per_second": 1,
  "verdict_p50_us": 1,
  "verdict_p99_us": 1
 },
 "shed": 1,
 "shed_on_connection": 1,
 "shed_unread": 1,
 "taken_per_second": 1,
 "time": "text",
 "told_per_second": 1,
 "verdict_us": {
  "p50": 1,
  "p99": 1
 },
 "verdicts": 1
}`
	o := measured(t, shortLoad)
	if o["time"] != "200ms" || o["counts"] != 1.0 {
		t.Errorf("measured for %v with %v counts", o["time"], o["counts"])
	}
	o["machine"].(map[string]any)["cpu"] = "text" // Not every system tells it.
	lines, _ := o["seconds"].([]any)
	if len(lines) == 0 {
		t.Fatal("no seconds")
	}
	o["seconds"] = lines[0]
	overload, _ := o["overload"].(map[string]any)
	for _, when := range []string{"right_after_seconds", "prompt_after_seconds"} { // Or never, on a machine that is busy.
		overload[when] = 1.0
	}
	if d := cmp.Diff(want, shapeOf(t, o, "shed_unread shed_on_connection gaps memory_growth_mib verdict_p50_us verdict_p99_us")); d != "" {
		t.Errorf("the object is another one (-want +got):\n%s", d)
	}
}

// TestBenchText looks at the tables of results that are known.
func TestBenchText(t *testing.T) {
	ratio := func(pegasus, bare float64) bench.Ratio {
		return bench.Ratio{
			Ratio: pegasus / bare, Least: 0.9 * pegasus / bare, Most: 1.1 * pegasus / bare, Pegasus: pegasus, Bare: bare,
			PegasusCPU: 3290, BareCPU: 1165.4,
		}
	}
	r := &bench.Result{
		Reports: ratio(800_000, 1_000_000), Batched: ratio(5_000_000, 1_000_000),
		OneConnection: ratio(800_000, 1_250_000), ReportsMessage: 0.9996, BatchedMessage: 51.74,
		SignalP50: ratio(25, 20), SignalP99: ratio(60.5, 40), ProbeP50: ratio(50, 20), ApartP50: ratio(60, 20),
		ThreadSignal: bench.Percentiles{P50: 1.5, P99: 12.34}, Check: 0.5, AtomicLoad: 0.25, Stamp: 25,
	}
	want := `figure                        ratio  least-most  pegasus  bare     unit                     pegasus cpu  bare cpu  of
reports_ratio                 0.80   0.72-0.88   800000   1000000  reports/s                3290         1165      ns a state, message
reports_one_connection_ratio  0.64   0.58-0.70   800000   1250000  reports/s                3290         1165      ns a state, message
batched_ratio                 5.00   4.50-5.50   5000000  1000000  reports/s                3290         1165      ns a state, message
signal_p50_ratio              1.25   1.12-1.38   25       20       µs                       3290         1165      ns a round trip
signal_p99_ratio              1.51   1.36-1.66   60.5     40       µs                       3290         1165      ns a round trip
probe_p50_ratio               2.50   2.25-2.75   50       20       µs                       3290         1165      ns a round trip
probe_apart_p50_ratio         3.00   2.70-3.30   60       20       µs                       3290         1165      ns a round trip
reports_states_per_message                       1.00
batched_states_per_message                       51.7
thread_signal_us p50                             1.50              µs
thread_signal_us p99                             12.3              µs
check_ns                      2.00               0.50     0.25     ns, over an atomic load
stamp_ns                                         25                ns
allocs_per_report                                0
`
	if d := cmp.Diff(want, show.Bench(r)); d != "" {
		t.Errorf("bench (-want +got):\n%s", d)
	}
	const hint = "\nthread_signal_us: both threads need a processor of their own, and something else kept one busy\n"
	r.ThreadSignal.P50 = 108
	if text := show.Bench(r); !strings.HasSuffix(text, hint) {
		t.Errorf("no hint that the machine is busy:\n%s", text)
	}
	l := &bench.LoadResult{Asked: 20_000, Told: 19_999.6, Taken: 19_990, Verdicts: 4000, Latency: bench.Percentiles{P50: 150, P99: 1500}, Shed: 3, Unread: 2, Gaps: 1, Growth: 12}
	want = `figure       value  unit
asked        20000  reports/s
told         20000  reports/s
taken in     19990  reports/s
verdicts     4000   timed
verdict p50  150    µs after the change of state
verdict p99  1500   µs, 10.0 times p50
shed         3      states or messages given up: 2 unread, 1 gaps
memory       12     MiB more than at the beginning
`
	if d := cmp.Diff(want, show.Load(l)); d != "" {
		t.Errorf("load (-want +got):\n%s", d)
	}
	l.Overload = &bench.OverloadResult{Times: 3, Time: "10s", Told: 60_000, Taken: 30_000, Unread: 5, Gaps: 7, Growth: 40, Right: 0.75, Prompt: -1}
	want = `told too much  60000  reports/s, for 10s
taken of that  30000  reports/s
shed unread    5      messages
gaps           7
memory then    40     MiB more than at the beginning
right again    0.75   s after that
prompt again   -1.00  s after that: p50 below p99 of before
`
	if text := show.Load(l); !strings.HasSuffix(text, want) {
		t.Errorf("load with an overload:\n%s", text)
	}
}

func TestPeersShape(t *testing.T) {
	t.Parallel()
	const want = `{
 "changes": 1,
 "controller": "text",
 "cpu_us_per_change": 1,
 "false_firings": 1,
 "firings": 1,
 "firings_known_over": 1,
 "late_firings": 1,
 "messages_per_change": 1,
 "missed_over_20ms": 1,
 "missed_over_5ms": 1,
 "p50_ms": 1,
 "p50_over_nats": 1,
 "p99_ms": 1,
 "true_intervals": 1,
 "true_intervals_over_20ms": 1,
 "true_intervals_over_5ms": 1
}`
	o := measured(t, []string{"bench", "peers", "--time", "200ms", "--seed", "7"})
	legs, _ := o["legs"].([]any)
	if len(legs) != 10 || o["time"] != "200ms" || o["seed"] != 7.0 || o["workers"] != 10.0 || o["machine"] == nil || o["pegasus"] != version.Own().Build() {
		t.Fatalf("%v", o)
	}
	for i, l := range legs {
		leg, _ := l.(map[string]any)
		if leg["delayed"] != (i >= 5) {
			t.Errorf("leg %d: %v", i, leg)
		}
		delete(leg, "delayed")
		// So short a run may have no interval in which all are idle.
		mayBeZero := "false_firings firings firings_known_over late_firings missed_over_20ms missed_over_5ms p50_ms p50_over_nats p99_ms true_intervals true_intervals_over_20ms true_intervals_over_5ms"
		if d := cmp.Diff(want, shapeOf(t, leg, mayBeZero)); d != "" {
			t.Errorf("leg %d (-want +got):\n%s", i, d)
		}
	}
}

// TestPeersText looks at the table of a result that is known.
func TestPeersText(t *testing.T) {
	t.Parallel()
	r := &peers.Result{Legs: []peers.Leg{
		{
			Controller: "pegasus", OverBare: 1.5, CPU: 1445.504, Messages: 8.98,
			Judgement: peers.Judgement{Firings: 307, Long: 170, Longer: 20, Late: 30, Over: 12, P50: 1.42, P99: 3.15},
		},
		{
			Controller: "poll-kv", Delayed: true, Messages: 1.1,
			Judgement: peers.Judgement{Firings: 27, False: 3, Long: 175, Missed: 154, Longer: 19, MissedLonger: 7},
		},
	}}
	const want = `controller  delay    false firings  p50 over nats  missed over 5 ms  missed over 20 ms  late firings  known over  p50 ms  p99 ms  cpu µs a change  messages a change
pegasus     none     0 of 307       1.50           0 of 170          0 of 20            30 of 307     12 of 307   1.42    3.15    1446             8.98
poll-kv     0-20 ms  3 of 27        -              154 of 175        7 of 19            0 of 27       0 of 27     -       -       -                1.10
`
	if d := cmp.Diff(want, show.Peers(r)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestLoadOnAServer also looks at the lines above a table: the password of a URL
// is not shown.
func TestLoadOnAServer(t *testing.T) {
	t.Parallel()
	server, err := embedded.Start(embedded.Options{Username: "u", Password: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	withUser := strings.Replace(server.URL(), "//", "//u:secret@", 1)
	code, stdout, stderr := execute(t, "bench", "load", "--nats", withUser, "--members", "2", "--time", "200ms")
	head := regexp.MustCompile(`^.*\d CPUs?, \w+/\w+, go[^\n]*\npegasus bench load --members 2 --nats nats://127\.0\.0\.1:\d+ --time 200ms\n\nfigure `)
	if code != exitOK || !strings.Contains(stderr, "--password-file") || !head.MatchString(stdout) || strings.Contains(stdout, "secret") {
		t.Errorf("exit %d, stderr %q, stdout\n%s", code, stderr, stdout)
	}
	password := writeFile(t, t.TempDir(), "password", "secret")
	o := measured(t, []string{"bench", "load", "--nats", server.URL(), "--user", "u", "--password-file", password, "--members", "2", "--time", "200ms"})
	if o["nats"] != server.URL() {
		t.Errorf("the server is %v", o["nats"])
	}
}

func TestLoadWithoutAServer(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := execute(t, "bench", "load", "--nats", "nats://127.0.0.1:1")
	if code != exitFailure || stdout != "" || !strings.HasPrefix(stderr, "pegasus: synchronizer \"load\": there is no connection to the server: bus: connect to NATS at nats://127.0.0.1:1: no answer for 4s: ") {
		t.Errorf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

// TestBenchEnds: a measurement that is broken off leaves nothing behind, which is
// for TestMain to see.
func TestBenchEnds(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(500*time.Millisecond, func() { cancel(errors.New("enough")) })
	var out, errs bytes.Buffer
	code := Execute(ctx, []string{"bench", "--leg", "1m"}, strings.NewReader(""), &out, &errs)
	if code != exitFailure || out.Len() > 0 || errs.String() != "pegasus: enough\n" {
		t.Errorf("exit %d, stdout %q, stderr %q", code, &out, &errs)
	}
}
