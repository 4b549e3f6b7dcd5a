package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/internal/telemetry"
	"github.com/gopegasus/pegasus/internal/testwait"
)

// get reads a page.
func get(t *testing.T, url string) (code int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(raw)
}

// operators is where a run serves metrics and health.
func (p *process) operators() string {
	p.t.Helper()
	_, rest, _ := strings.Cut(p.line("Metrics are at http://127.0.0.1:"), "Metrics are at ")
	url, _, _ := strings.Cut(rest, "/metrics")
	return url
}

func TestHealth(t *testing.T) {
	p := launch(t, "run", goodConfig, "--http", "127.0.0.1:0")
	url := p.url()
	operators := p.operators()
	address := strings.TrimPrefix(operators, "http://")

	const waiting = `[+] gsync loop: running
[+] gsync nats: connected
[-] gsync members: 0 online, 2 needed
[-] gsync epoch: none, nothing is decided
[-] gsync predicates: 0 true, 0 false, 2 unknown; 2 without a global state to judge
[+] gsync clocks: 0 usable
`
	if code, body := get(t, operators+"/readyz?verbose"); code != http.StatusServiceUnavailable || body != waiting {
		t.Errorf("before members: %d\n%s", code, body)
	}
	if code, body := get(t, operators+"/readyz"); code != http.StatusServiceUnavailable || strings.Contains(body, "[+]") || !strings.Contains(body, "[-] gsync epoch: none") {
		t.Errorf("before members: %d\n%s", code, body)
	}
	if code, body := get(t, operators+"/livez"); code != http.StatusOK || body != "ok\n" {
		t.Errorf("livez: %d %q", code, body)
	}
	if code, stdout, stderr := execute(t, "health", "--http", address); code != exitFailure || stdout != waiting || stderr != "" {
		t.Errorf("health: exit %d, %q, %q", code, stdout, stderr)
	}
	if code, stdout, stderr := execute(t, "health", "--live", "--http", address); code != exitOK || stdout != "[+] gsync loop: running\n" || stderr != "" {
		t.Errorf("health --live: exit %d, %q, %q", code, stdout, stderr)
	}

	for _, name := range []string{"w1", "w2"} {
		if err := join(t, url, name).Set(state{"search", 0.5}); err != nil {
			t.Fatal(err)
		}
	}
	p.line("epoch 1")
	testwait.Until(t, "readiness", func() bool {
		code, body := get(t, operators+"/readyz?verbose")
		if code == http.StatusOK && !strings.Contains(body, "[+] gsync members: 2 online, 1 needed\n[+] gsync epoch: 1 active\n") {
			t.Errorf("when ready:\n%s", body)
		}
		return code == http.StatusOK
	})
	if code, _, stderr := execute(t, "health", "--http", address); code != exitOK || stderr != "" {
		t.Errorf("health of a ready run: exit %d, %q", code, stderr)
	}
	if code, _ := get(t, operators+"/"); code != http.StatusNotFound {
		t.Errorf("/ answers %d", code)
	}
	p.stop()
	code, _, stderr := execute(t, "health", "--http", address)
	if code != exitFailure || !strings.HasPrefix(stderr, "pegasus: health: no answer at "+address+": ") || !strings.HasSuffix(stderr, ": is there a run with --http "+address+"?\n") {
		t.Errorf("health of nothing: exit %d, %q", code, stderr)
	}
}

// TestExposition reads the page as Prometheus does: all metrics are there under the
// names of the documentation, and its own linter has no complaint.
func TestExposition(t *testing.T) {
	p := launch(t, "run", goodConfig, "--http", "127.0.0.1:0")
	url := p.url()
	operators := p.operators()
	for _, name := range []string{"w1", "w2"} {
		if err := join(t, url, name).Set(state{"search", 0.5}); err != nil {
			t.Fatal(err)
		}
	}
	page := ""
	testwait.Until(t, "the metrics that are the last to appear", func() bool {
		code := 0
		if code, page = get(t, operators+"/metrics"); code != http.StatusOK {
			t.Fatalf("%d\n%s", code, page)
		}
		return containsAll(page, []string{telemetry.VerdictLatency.Prometheus(), telemetry.MembersBound.Prometheus()})
	})
	problems, err := promlint.New(strings.NewReader(page)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"target_info"}
	types := map[telemetry.Kind]dto.MetricType{
		telemetry.Counter: dto.MetricType_COUNTER, telemetry.Gauge: dto.MetricType_GAUGE, telemetry.Histogram: dto.MetricType_HISTOGRAM,
	}
	for _, m := range telemetry.Synchronizer {
		want = append(want, m.Prometheus())
		if f := families[m.Prometheus()]; f.GetHelp() != m.About || f.GetType() != types[m.Kind] {
			t.Errorf("%s is a %v with the help %q", m.Prometheus(), f.GetType(), f.GetHelp())
		}
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(families)); !slices.Equal(got, want) {
		t.Errorf("the page has %v\nwant %v", got, want)
	}
	p.stop()
}

// TestExpositionOfAnAgent looks for the names of the documentation where an agent
// that measures its clock is shown by the exporter of the command.
func TestExpositionOfAnAgent(t *testing.T) {
	p := launch(t, "run", goodConfig)
	provider, page, err := newMetrics()
	if err != nil {
		t.Fatal(err)
	}
	m, err := agent.Join(t.Context(), p.url(), agent.Config{Group: "workers", Name: "w1", MeterProvider: provider, SeparateClock: true})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	recorder := httptest.NewRecorder()
	page.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	operations, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for line := range strings.Lines(recorder.Body.String()) {
		name, ok := strings.CutPrefix(line, "# TYPE ")
		if !ok {
			continue
		}
		name, _, _ = strings.Cut(name, " ")
		shown[name] = true
		if name != "target_info" && !bytes.Contains(operations, []byte("` | `"+name+"` | ")) {
			t.Errorf("docs/operations.md lacks %s", name)
		}
	}
	for _, m := range telemetry.Agent {
		if !shown[m.Prometheus()] {
			t.Errorf("no %s", m.Prometheus())
		}
	}
	if !shown["pegasus_clock_bound_seconds"] {
		t.Error("the clock is not shown")
	}
}

func TestHTTPAddressInUse(t *testing.T) {
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	address := taken.Addr().String()
	code, stdout, stderr := execute(t, "run", goodConfig, "--http", address)
	if code != exitFailure || stdout != "" || !strings.HasPrefix(stderr, "pegasus: --http "+address+": ") || !strings.HasSuffix(stderr, ": choose another address, or port 0 for any free one\n") {
		t.Errorf("exit %d, %q, %q", code, stdout, stderr)
	}
}

// TestHealthOfAnotherServer asks something that is no run, and something that does
// not answer.
func TestHealthOfAnotherServer(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	hang := make(chan struct{})
	server := http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/livez" {
			<-hang
		}
		http.NotFound(w, r)
	})}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	address := listener.Addr().String()
	if code, _, stderr := execute(t, "health", "--http", address); code != exitFailure || stderr != "pegasus: health: "+address+" answers 404 Not Found: it is no run of pegasus\n" {
		t.Errorf("exit %d, %q", code, stderr)
	}
	if code, _, stderr := execute(t, "health", "--http", address, "--live", "--timeout", "50ms"); code != exitFailure || !strings.Contains(stderr, "deadline exceeded") {
		t.Errorf("exit %d, %q", code, stderr)
	}
	close(hang)
	if err := server.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}

// TestReadyTellsTheAddress looks at the first entry.
func TestReadyTellsTheAddress(t *testing.T) {
	p := launch(t, "run", goodConfig, "--http", "127.0.0.1:0", "--json")
	if o := p.object("ready"); !strings.HasPrefix(o["http"].(string), "http://127.0.0.1:") {
		t.Errorf("ready has http %v", o["http"])
	}
	p.stop()
}
