package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/testnats"
	"github.com/gopegasus/pegasus/internal/wire"
)

const (
	goodConfig    = "testdata/configs/good.yaml"
	levelsConfig  = "testdata/configs/levels.yaml"
	fragileConfig = "testdata/configs/fragile.yaml"
)

// state is what good.yaml declares.
type state struct {
	Phase string
	Load  float64
}

func join(t *testing.T, url, name string) *agent.Member {
	t.Helper()
	m, err := agent.Join(t.Context(), url, agent.Config{Group: "workers", Name: name, State: state{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// searcher is a member whose region is left when all are idle.
func searcher(t *testing.T, url, name string) (m *agent.Member, left <-chan error) {
	t.Helper()
	m = join(t, url, name)
	if err := m.Set(state{"search", 0.5}); err != nil {
		t.Fatal(err)
	}
	entered, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- m.Region(t.Context(), "search", func(ctx context.Context, _ *agent.Region) error {
			close(entered)
			<-ctx.Done()
			return nil
		}, agent.OnCancel("all-idle", func(context.Context, agent.Signal) error { return nil }))
	}()
	<-entered
	return m, done
}

func TestRun(t *testing.T) {
	p := launch(t, "run", goodConfig)
	url := p.url()
	p.line("gsync awaits 2 members of group workers; 2 predicates")
	p.line("agent.Join(ctx", url, `Group: "workers"`)

	m1, left1 := searcher(t, url, "w1")
	m2, left2 := searcher(t, url, "w2")
	p.line("gsync: epoch 1 with 2 members: w1, w2")
	for _, m := range []*agent.Member{m1, m2} {
		if err := m.Set(state{"idle", 0.25}); err != nil {
			t.Fatal(err)
		}
	}
	p.line("gsync: all-idle fired (decision gsync/1/1) on w1 (phase=idle load=0.25), w2 (phase=idle load=0.25); held ", "by the same clock")
	p.line("signal all-idle (cancel region search, decision gsync/1/1) to w", ": applied")
	p.line("signal all-idle (cancel region search, decision gsync/1/1) to w", ": applied")
	for _, left := range []<-chan error{left1, left2} {
		if err := <-left; err != nil {
			t.Error(err)
		}
	}
	if err := m2.Close(); err != nil {
		t.Error(err)
	}
	p.line("gsync: lost member w2: left")
	p.line("gsync: epoch 2 with 1 member: w1")
	p.cancel()
	p.line("gsync: stopped after ", "signals: 2 applied")
	p.stop()
}

func TestRunJSON(t *testing.T) {
	srv, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	p := launch(t, "run", goodConfig, "--json", "-v", "--nats", srv.URL(), "--tenant", "blue", "--members", "1")
	ready := p.object("ready")
	if ready["url"] != srv.URL() || ready["tenant"] != "blue" {
		t.Errorf("ready: %v", ready)
	}
	m, err := agent.Join(t.Context(), srv.URL(), agent.Config{Group: "workers", Name: "w1", Tenant: "blue"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	if err := m.Set(state{"search", 2}); err != nil {
		t.Fatal(err)
	}
	if e := p.object("epoch"); e["epoch"] != 1.0 || e["synchronizer"] != "gsync" {
		t.Errorf("epoch: %v", e)
	}
	if v := p.object("verdict"); v["predicate"] != "all-idle" || v["truth"] != "false" {
		t.Errorf("verdict: %v", v)
	}
	fired := p.object("fired")
	if fired["predicate"] != "overload" || fired["decision"] != "gsync/1/1" || fired["same_clock"] != true {
		t.Errorf("fired: %v", fired)
	}
	subjects := wire.Subjects{Tenant: "blue", Group: "workers"}
	for range 2 { // With -v each refusal is printed.
		greet(t, srv.URL(), subjects, "w2", wire.Hello{Member: "w3"})
		if r := p.object("refused"); r["from"] != "w2" || r["reason"] != `hello of "w3" on the subject of "w2"` {
			t.Errorf("refused: %v", r)
		}
	}
	p.cancel()
	if s := p.object("stopped"); s["decisions"] != 1.0 || s["refused"] != 2.0 {
		t.Errorf("stopped: %v", s)
	}
	p.stop()
}

func TestRunTellsOneRefusal(t *testing.T) {
	p := launch(t, "run", goodConfig)
	url := p.url()
	subjects := wire.Subjects{Tenant: "default", Group: "workers"}
	greet(t, url, subjects, "w2", wire.Hello{Member: "w3"})
	p.line(`gsync: refused w2: hello of "w3" on the subject of "w2" (-v shows further refusals)`)
	greet(t, url, subjects, "w2", wire.Hello{Member: "w3"})
	join(t, url, "w1") // Answered after the hello before it.
	p.cancel()
	if last := p.line("gsync: "); !strings.Contains(last, "; 2 refused") {
		t.Errorf("want the counters next, got %s", last)
	}
	p.stop()
}

func TestRunLevels(t *testing.T) {
	p := launch(t, "run", levelsConfig, "--members", "gsync=7,other=2")
	url := p.url()
	p.line("gsync awaits 7 members of group workers; 1 predicate")
	p.line("other awaits 2 members of group watchers; 0 predicates")

	code, _, stderr := execute(t, "run", levelsConfig, "--nats", url, "--name", "other")
	if want := `synchronizer "other": the name is taken: it runs already on this server for tenant "default" and group "watchers": stop it, wait for its end with --standby (Options.Standby), or use another tenant`; code != exitFailure || !strings.Contains(stderr, want) {
		t.Errorf("exit %d, stderr %q, want %q", code, stderr, want)
	}
	alone := launch(t, "run", levelsConfig, "--nats", url, "--name", "other", "--tenant", "blue", "--members", "3")
	alone.url()
	alone.line("other awaits 3 members of group watchers; 0 predicates")
	alone.line(`Tenant: "blue"`)
	alone.stop()
	if text := strings.Join(alone.seen, "\n"); strings.Contains(text, "gsync") {
		t.Errorf("--name other runs gsync too:\n%s", text)
	}
	p.cancel()
	p.line("gsync: stopped after 0 frames and 0 decisions")
	p.line("other: stopped after 0 frames and 0 decisions")
	p.stop()
}

func TestRunEndsWithThePolicy(t *testing.T) {
	p := launch(t, "run", fragileConfig)
	greet(t, p.url(), wire.Subjects{Tenant: "default", Group: "workers"}, "w1", wire.Hello{Member: "w1"})
	p.line("gsync: stopped")
	code, stderr := p.exit()
	if want := "pegasus: synchronizer gsync: member \"w1\" was silent for 200ms, and the policy is to fail\n"; code != exitFailure || stderr != want {
		t.Errorf("exit %d, stderr %q, want %q", code, stderr, want)
	}
}

func TestRunUnreachable(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := execute(t, "run", goodConfig, "--nats", "nats://jo:secret@127.0.0.1:1")
	if code != exitFailure || stdout != "" || strings.Contains(stderr, "secret") ||
		!strings.Contains(stderr, "127.0.0.1:1: no answer for 4s") || !strings.Contains(stderr, "--nats") {
		t.Errorf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

// TestRunEndedBeforeItBegan interrupts the attempt to connect.
func TestRunEndedBeforeItBegan(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	if code := Execute(ctx, []string{"run", goodConfig, "--nats", "127.0.0.1:1"}, strings.NewReader(""), &stdout, &stderr); code != exitOK || stderr.Len() > 0 {
		t.Errorf("exit %d, stderr %q", code, &stderr)
	}
}

// TestRunWithoutItsServer ends while the server is away, after it was away and
// back.
func TestRunWithoutItsServer(t *testing.T) {
	srv, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { srv.Close() }()
	p := launch(t, "run", goodConfig, "--nats", srv.URL())
	p.url()
	srv.Close()
	p.line("gsync: the NATS server is away; nothing is decided until it is back; cause: ")
	if srv, err = embedded.Start(embedded.Options{Port: srv.Port()}); err != nil {
		t.Fatal(err)
	}
	p.line("gsync: the NATS server is back")
	srv.Close()
	p.line("gsync: the NATS server is away")
	p.stop()
}

func TestRunWithCredentials(t *testing.T) {
	const secret = "p@ss,w/rd:"
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(secret+"\r\nnotes\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := launch(t, "run", goodConfig, "--listen", "localhost:0", "--user", "jo", "--password-file", file)
	url := p.line("nats://localhost:")
	p.line("Members put NAME:PASSWORD@ before the host in the URL.")
	if _, err := bus.Dial(t.Context(), url, bus.Options{}); err == nil {
		t.Error("the server takes clients without credentials")
	}
	with := launch(t, "run", goodConfig, "--nats", url, "--user", "jo", "--password-file", file, "--tenant", "blue")
	if shown := with.line(); shown != url {
		t.Errorf("the URL shown is %q, want %q", shown, url)
	}
	for _, run := range []*process{with, p} {
		run.stop()
		if slices.ContainsFunc(run.seen, func(line string) bool { return strings.Contains(line, "p@ss") || strings.Contains(line, "p%40ss") }) {
			t.Errorf("the password is shown:\n%s", strings.Join(run.seen, "\n"))
		}
	}
}

// TestRunJetStream: a second run with the same directory has the stream of the first. A notice says that NATS_URL
// does not count.
func TestRunJetStream(t *testing.T) {
	t.Setenv("NATS_URL", "nats://127.0.0.1:1")
	dir := filepath.Join(t.TempDir(), "js")
	stream := func(do func(jetstream.JetStream) (jetstream.Stream, error)) {
		t.Helper()
		p := launch(t, "run", goodConfig, "--jetstream", dir)
		url := p.url()
		nc, err := nats.Connect(url, testnats.Options(t, url)...)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		js, err := jetstream.New(nc)
		if err == nil {
			_, err = do(js)
		}
		if err != nil {
			t.Error(err)
		}
		p.cancel()
		want := "pegasus: NATS_URL is not used: --listen, --jetstream, --keys and --open start a server inside this process; leave them out to use the server of NATS_URL\n"
		if code, stderr := p.exit(); code != exitOK || stderr != want {
			t.Errorf("exit %d, stderr %q, want %q", code, stderr, want)
		}
	}
	stream(func(js jetstream.JetStream) (jetstream.Stream, error) {
		return js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}})
	})
	stream(func(js jetstream.JetStream) (jetstream.Stream, error) { return js.Stream(t.Context(), "S") })
}

// TestRunUnread ends although nobody reads what it tells.
func TestRunUnread(t *testing.T) {
	r, w := io.Pipe()
	defer r.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stderr bytes.Buffer
	code := make(chan int, 1)
	go func() { code <- Execute(ctx, []string{"run", goodConfig}, strings.NewReader(""), w, &stderr) }()
	if _, err := r.Read(make([]byte, 1)); err != nil { // It tells something, so it runs.
		t.Fatal(err)
	}
	cancel()
	if got := <-code; got != exitOK {
		t.Errorf("exit %d, stderr %q", got, &stderr)
	}
}
