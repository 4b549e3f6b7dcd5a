package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/cdproto/systeminfo"
	"github.com/chromedp/chromedp"
)

const (
	loadMembers = 100
	loadRate    = 20_000 // changes a second
	loadWindows = 8      // pairs of windows with and without the page
	mostMemory  = 250    // MiB of the tab
	mostLoss    = 0.02   // of the throughput
)

// loadConfig has a condition that changes once a second, and one that every report changes.
var loadConfig = fmt.Sprintf(`
synchronizers:
  gsync:
    members: {group: workers, count: %d}
    state: {phase: {enum: [idle, search]}, load: float, note: string}
    predicates:
      all-idle: {when: 'all(members, .phase == "idle")', signal: []}
      newest: {when: "max(map(members, .load)) > 1e9", signal: []}
`, loadMembers)

// TestLoad shows the timeline of a run with 20,000 changes a second. The tab has a bound on its memory, and the synchronizer
// accepts as many reports as without the page. PEGASUS_LOAD says how long, such as 2m; without it the test takes a
// few seconds, in which only the memory is judged. PEGASUS_LOAD_RATE is another rate.
func TestLoad(t *testing.T) {
	whole, rate, window, windows := 3*time.Second, loadRate, time.Second, 1
	if text := os.Getenv("PEGASUS_LOAD"); text != "" {
		var err error
		if whole, err = time.ParseDuration(text); err != nil {
			t.Fatalf("PEGASUS_LOAD: %v", err)
		}
		window, windows = whole/20, loadWindows
	}
	if text := os.Getenv("PEGASUS_LOAD_RATE"); text != "" {
		var err error
		if rate, err = strconv.Atoi(text); err != nil {
			t.Fatalf("PEGASUS_LOAD_RATE: %v", err)
		}
	}
	w := newWorld(t)
	file := filepath.Join(w.dir, "load.yaml")
	if err := os.WriteFile(file, []byte(loadConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	metrics := freeAddress(t)
	_, stop := w.launch("agent.Join", "run", file, "--nats", w.url, "--http", metrics)
	w.ask(map[string]any{"rate": rate, "members": loadMembers})
	b := newBrowser(t)
	b.do(performance.Enable())
	show := func() (end func()) {
		line, end := w.launch("/#key=", "ui", "--nats", w.url)
		b.open(line)
		b.page("timeline")
		b.until(fmt.Sprintf(painted, "--value0"), "the timeline has no states of members")
		return end
	}
	end := show()
	var heap, private float64
	for stopAt := time.Now().Add(whole); time.Now().Before(stopAt); pause(t, window) {
		heap, private = max(heap, b.heap()), max(private, b.private())
	}
	var note string
	b.value(`document.querySelector("section > .more").textContent`, &note)
	var frames []float64
	b.do(chromedp.Evaluate(frameTimes, &frames, awaited))
	end()
	slices.Sort(frames)
	t.Logf("%v at %d changes/s: heap %.0f MiB, tab %.0f MiB; frames p50 %.0f ms, p95 %.0f ms; %s", whole, rate, heap, private, frames[len(frames)/2], frames[len(frames)*95/100], note)
	if private > mostMemory {
		t.Errorf("the tab has %.0f MiB, more than %d", private, mostMemory)
	}
	var ratios, with, without []float64
	for i := range windows {
		measure := func(shown bool) float64 {
			if shown {
				end = show()
				defer end()
			} else {
				b.do(chromedp.Navigate("about:blank"))
			}
			return reportRate(t, metrics, window)
		}
		first := measure(i%2 == 0) // The order alternates as well, since the machine has other things to do.
		second := measure(i%2 != 0)
		if i%2 != 0 {
			first, second = second, first
		}
		with, without, ratios = append(with, first), append(without, second), append(ratios, first/second)
	}
	for _, list := range [][]float64{ratios, with, without} {
		slices.Sort(list)
	}
	middle := len(ratios) / 2
	t.Logf("%d pairs of windows of %v: %.0f reports/s with the page, %.0f without; ratio %.3f, %.3f to %.3f", windows, window, with[middle], without[middle], ratios[middle], ratios[0], ratios[len(ratios)-1])
	if os.Getenv("PEGASUS_LOAD") != "" && ratios[middle] < 1-mostLoss {
		t.Errorf("with the page the synchronizer accepts %.3f of the reports", ratios[middle])
	}
	w.set("w0", "idle", 0) // Ends the load.
	b.expected = append(b.expected, "net::ERR_")
	stop()
}

// frameTimes is how long each of the next 100 frames took, in milliseconds.
const frameTimes = `new Promise((resolve) => {
	const times = [];
	let last = performance.now();
	requestAnimationFrame(function next(now) {
		times.push(Math.max(0, now - last));
		last = now;
		if (times.length < 100) requestAnimationFrame(next);
		else resolve(times);
	});
})`

// pause waits under load.
func pause(t *testing.T, d time.Duration) {
	t.Helper()
	ctx, end := context.WithTimeout(t.Context(), d)
	defer end()
	<-ctx.Done()
}

// ask sends a line to the members.
func (w *world) ask(line any) {
	w.t.Helper()
	text, err := json.Marshal(line)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(w.in, "%s\n", text); err != nil {
		w.t.Fatal(err)
	}
	if a := w.answer(); a != "ok" {
		w.t.Fatalf("member: %s", a)
	}
}

// freeAddress is an address of the loopback interface on which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // Nothing is lost by it.
	return l.Addr().String()
}

// reportRate is how many reports a second a synchronizer accepts within a time.
func reportRate(t *testing.T, metrics string, within time.Duration) float64 {
	t.Helper()
	began, before := time.Now(), reports(t, metrics)
	pause(t, within)
	return (reports(t, metrics) - before) / time.Since(began).Seconds()
}

// reports is how many reports a synchronizer has accepted, by its metrics.
func reports(t *testing.T, metrics string) float64 {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+metrics+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // Nothing is lost by it.
	for in := bufio.NewScanner(answer.Body); in.Scan(); {
		if name, value, _ := strings.Cut(in.Text(), " "); strings.HasPrefix(name, "pegasus_reports_total") {
			n, err := strconv.ParseFloat(value[strings.LastIndexByte(value, ' ')+1:], 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("the metrics have no pegasus_reports_total")
	return 0
}

// heap is how much of the heap of scripts is used, in MiB.
func (b *browser) heap() float64 {
	b.t.Helper()
	var list []*performance.Metric
	b.do(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		list, err = performance.GetMetrics().Do(ctx)
		return err
	}))
	for _, m := range list {
		if m.Name == "JSHeapUsedSize" {
			return m.Value / (1 << 20)
		}
	}
	b.t.Fatal("the browser does not tell JSHeapUsedSize")
	return 0
}

// private is how much memory the process of the tab shares with no other process, in MiB. The browser may have a spare process for
// tabs, which is smaller.
func (b *browser) private() (most float64) {
	b.t.Helper()
	b.do(chromedp.ActionFunc(func(ctx context.Context) error {
		list, err := systeminfo.GetProcessInfo().Do(cdp.WithExecutor(ctx, chromedp.FromContext(ctx).Browser))
		if err != nil {
			return err
		}
		for _, p := range list {
			if p.Type != "renderer" {
				continue
			}
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.ID))
			if err != nil {
				return err
			}
			sum := 0.0
			for line := range strings.Lines(string(text)) {
				if f := strings.Fields(line); len(f) == 3 && strings.HasPrefix(f[0], "Private_") {
					kib, err := strconv.ParseFloat(f[1], 64)
					if err != nil {
						return err
					}
					sum += kib / 1024
				}
			}
			most = max(most, sum)
		}
		return nil
	}))
	if most == 0 {
		b.t.Fatal("the browser names no process of a tab")
	}
	return most
}
