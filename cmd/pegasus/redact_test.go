package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

// secretConfig redacts a text, a number, a list and a variable; ordinary values stand beside them.
const secretConfig = `synchronizers:
  gsync:
    members: {group: workers, count: 2}
    silence: {after: 30s}
    state:
      token: {type: string, redact: true}
      pin: {type: int, redact: true}
      keys: {type: {list: string}, redact: true}
      mark: string
      ready: bool
    memory:
      last: {type: string, redact: true}
      seen: string
    predicates:
      secret:
        when: let t = find(members, .ready).token; all(members, .ready) and t != "" and max(map(members, .pin)) > 5 and any(members, "k" in .keys or .token == t)
        set: {last: "find(members, .ready).token", seen: "find(members, .ready).mark"}
        signal:
          kind: activate
          region: work
          data: {token: "find(members, .ready).token", pin: "max(map(members, .pin))", mark: "find(members, .ready).mark"}
      plain:
        when: all(members, .ready and .mark != "")
        signal: []
`

const (
	secretToken = "q7\"Zx-unguessable-9f3kd"
	secretPin   = 730246801357
	secretKey   = "list-entry-7h2mw0qp"
	openMark    = "ordinary-mark-55c1"
)

// safeBuffer collects what several goroutines write.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// formsOf are a value as it is, quoted, in base64 at each offset, and in hexadecimal.
func formsOf(value string) []string {
	quoted := strconv.Quote(value)
	forms := []string{value, quoted[1 : len(quoted)-1], hex.EncodeToString([]byte(value)), strings.ToUpper(hex.EncodeToString([]byte(value)))}
	for offset := range 3 {
		text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", offset) + value))
		forms = append(forms, text[4:len(text)-4]) // Without what the neighbours change.
	}
	if n, err := strconv.ParseInt(value, 10, 64); err == nil {
		forms = append(forms, strconv.FormatInt(n, 16), strconv.FormatFloat(float64(n), 'g', -1, 64), fmt.Sprintf("%.3g", float64(n)))
	}
	return forms
}

// finds names the places whose text has one of the forms of a value.
func finds(places map[string]string, value string) (found []string) {
	for place, text := range places {
		for _, form := range formsOf(value) {
			if strings.Contains(text, form) {
				found = append(found, place+": "+form)
			}
		}
	}
	return found
}

// secretMember joins, reports the values and has a handler that fails; leave ends its region.
func secretMember(t *testing.T, url, tenant, name string, logs io.Writer, tracer *sdktrace.TracerProvider) (leave func()) {
	t.Helper()
	type state struct {
		Token string
		Pin   int
		Keys  []string
		Mark  string
		Ready bool
	}
	m, err := agent.Join(t.Context(), url, agent.Config{
		Group: "workers", Tenant: tenant, Name: name, TracerProvider: tracer,
		Logger: slog.New(slog.NewJSONHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	left := make(chan struct{})
	entered := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	leave = func() { cancel(); <-left }
	t.Cleanup(leave)
	if err := m.Set(state{Mark: openMark}); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(left)
		err := m.Region(ctx, "work", func(ctx context.Context, _ *agent.Region) error {
			close(entered)
			<-ctx.Done()
			return nil
		}, agent.OnActivateNow("secret", func(_ context.Context, s agent.Signal) error {
			if s.Text("token") != secretToken || s.Int("pin") != secretPin { // Members do get the values.
				t.Errorf("the signal carries %q and %d", s.Text("token"), s.Int("pin"))
			}
			return errors.New("the handler fails")
		}))
		_, _ = fmt.Fprintf(logs, "%s left: %v\n", name, err)
	}()
	<-entered
	if err := m.Set(state{secretToken, secretPin, []string{secretKey, "k"}, openMark, true}); err != nil {
		t.Fatal(err)
	}
	type long struct {
		Token string
		Pin   int
		Keys  []string
		Mark  string
		Ready bool
	}
	if err := m.Set(long{strings.Repeat(secretToken, 20), secretPin, []string{secretKey}, openMark, true}); err == nil {
		t.Error("a text that is too long is taken")
	} else {
		_, _ = fmt.Fprintln(logs, err)
	}
	return leave
}

// TestRedactedValuesAppearNowhere runs a group with redacted fields and searches all that
// comes out for their values.
func TestRedactedValuesAppearNowhere(t *testing.T) {
	own(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "secret.yaml")
	if err := os.WriteFile(file, []byte(secretConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	journals := filepath.Join(dir, "journals")
	p := launch(t, "run", file, "--journal", journals, "-v", "--json", "--http", "127.0.0.1:0", "--state", filepath.Join(dir, "state"))
	start := p.object("ready")
	url, _ := start["url"].(string)
	page, _ := start["http"].(string)

	// The same configuration in a process of its own, with logs and spans.
	var logs, spansText safeBuffer
	spans := tracetest.NewInMemoryExporter()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	cfg, err := synchronizer.LoadConfig(file)
	if err != nil {
		t.Fatal(err)
	}
	var events safeBuffer
	var second safeBuffer
	fired := make(chan struct{}, 100)
	s, err := synchronizer.Start(t.Context(), url, cfg, synchronizer.Options{
		Tenant: "second", Journal: &second, TracerProvider: tracer,
		Logger: slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Observe: func(e monitor.Event) {
			line := e.Line()
			text, _ := line.MarshalJSON()
			_, _ = fmt.Fprintf(&events, "%s\n%s\n", text, line.String())
			if line.Event == "signal" {
				fired <- struct{}{}
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var leave []func()
	for _, tenant := range []string{"default", "second"} {
		for _, name := range []string{"w1", "w2"} {
			leave = append(leave, secretMember(t, url, tenant, name, &logs, tracer))
		}
	}
	p.line(`"event":"fired"`, `"predicate":"secret"`)
	p.line(`"event":"signal"`)
	<-fired

	places := map[string]string{}
	ask := func(args string, texts ...string) {
		t.Helper()
		places[args] = until(t, args+" --nats "+url, texts...)
	}
	for _, tenant := range []string{"default", "second"} {
		ask("status --tenant "+tenant, "token=(redacted)", "mark="+openMark, "last=(redacted)")
		ask("status --json --tenant "+tenant, `"token":"(redacted)"`)
		ask("why secret --tenant "+tenant, "(redacted)", "fired once")
		ask("why secret --json --tenant "+tenant, `"(redacted)"`)
		ask("why plain --tenant "+tenant, "holds for 2 of 2 members", "token=(redacted)")
	}
	watched := launch(t, "watch", "--json", "--nats", url)
	watched.object("status")
	response, err := http.Get(page + "/metrics") //nolint:noctx // The test's own server.
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := io.ReadAll(response.Body)
	if err != nil || response.Body.Close() != nil {
		t.Fatal(err)
	}
	places["metrics"] = string(metrics)
	watched.cancel()
	<-watched.code
	places["watch"] = strings.Join(watched.seen, "\n")
	for _, f := range leave {
		f()
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	p.cancel()
	_, stderr := p.exit()
	for line := range p.lines {
		p.seen = append(p.seen, line)
	}
	for _, span := range spans.GetSpans() {
		_, _ = fmt.Fprintf(&spansText, "%+v\n", span)
	}
	places["run"], places["stderr"], places["logs"], places["events"] = strings.Join(p.seen, "\n"), stderr, logs.String(), events.String()
	places["journal of the second"], places["spans"] = second.String(), spansText.String()
	for _, args := range []string{"replay " + journals, "replay -v " + journals, "replay -v --json " + journals, "config show " + file, "check " + file} {
		code, stdout, stderr := execute(t, strings.Fields(args)...)
		if code != exitOK {
			t.Errorf("pegasus %s: exit %d, %s", args, code, stderr)
		}
		places[args] = stdout + stderr
	}
	for _, text := range []string{"not compared: secret is not judged: the predicate reads the redacted .token, whose values are not recorded", "plain fired"} {
		if !strings.Contains(places["replay -v "+journals], text) {
			t.Errorf("no %q in the replay:\n%s", text, places["replay -v "+journals])
		}
	}
	for place, text := range map[string]string{
		"config show " + file: "token: {type: string, redact: true}", "check " + file: "; redacted: token, pin, keys, memory.last)",
	} {
		if !strings.Contains(places[place], text) {
			t.Errorf("pegasus %s does not say %q:\n%s", place, text, places[place])
		}
	}
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		places[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{secretToken, strconv.Itoa(secretPin), secretKey} {
		for _, place := range finds(places, value) {
			t.Errorf("the value %q appears in %s", value, place)
		}
	}
	found := strings.Join(finds(places, openMark), "\n")
	for _, place := range []string{"run", "journal of the second", "events", "status --tenant default", "why plain --tenant second", journals} {
		if !strings.Contains(found, place) {
			t.Errorf("the search does not find the ordinary value in %s, only in\n%s", place, found)
		}
	}
	for place, text := range map[string]string{"logs": "the handler fails", "spans": "secret"} {
		if !strings.Contains(places[place], text) {
			t.Errorf("no %q in %s:\n%s", text, place, places[place])
		}
	}
}

// TestFindsForms wants the search to find a value in each form that it looks for.
func TestFindsForms(t *testing.T) {
	for place, text := range map[string]string{
		"plain": "a " + secretToken, "quoted": fmt.Sprintf("%q", "a "+secretToken), "hex": hex.EncodeToString([]byte("ab" + secretToken)),
		"base64": base64.StdEncoding.EncodeToString([]byte("ab" + secretToken + "cde")), "base64 again": base64.StdEncoding.EncodeToString([]byte("abc" + secretToken + "c")),
	} {
		if finds(map[string]string{place: text}, secretToken) == nil {
			t.Errorf("%s is not found in %s", secretToken, text)
		}
	}
}
