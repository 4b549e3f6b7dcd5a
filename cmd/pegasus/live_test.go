package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/monitor"
)

// own gives a test a directory of its own for the notes of runs.
func own(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	return filepath.Join(dir, "pegasus")
}

// until runs a command again until its output contains all the texts: what a member
// reports takes a moment to become certain.
func until(t *testing.T, args string, texts ...string) string {
	t.Helper()
	limit := time.Now().Add(patience)
	for {
		code, stdout, stderr := execute(t, strings.Fields(args)...)
		if code == exitOK && containsAll(stdout, texts) {
			return stdout
		}
		if time.Now().After(limit) {
			t.Fatalf("pegasus %s: exit %d, no output with %q:\n%s%s", args, code, texts, stdout, stderr)
		}
	}
}

// TestLive asks a run where it stands and why, without saying where it is.
func TestLive(t *testing.T) {
	dir := own(t)
	p := launch(t, "run", goodConfig)
	url := p.url()
	p.line("agent.Join(ctx")

	out := until(t, "status", "gsync: no epoch: 2 members awaited; group workers, tenant default", "no global state yet", "no members", "signals   none")
	if strings.Contains(out, "memory") {
		t.Errorf("there is no memory:\n%s", out)
	}
	until(t, "why all-idle", "gsync: all-idle is unknown; never fired", "0 of the 2 members that are awaited have a state")

	m1, _ := searcher(t, url, "w1")
	m2, _ := searcher(t, url, "w2")
	until(t, "why all-idle", "is false for ", "holds for 0 of 2 members", "condition  -", "the condition is false")
	for _, m := range []interface{ Set(any) error }{m1, m2} {
		if err := m.Set(state{"idle", 0.25}); err != nil {
			t.Fatal(err)
		}
	}
	p.line("all-idle fired")
	until(t, "why all-idle",
		"is true for ", "fired once", "armed", "decision gsync/1/1", "by the same clock", "^ 0: from here on all certainly held",
		"core  ", "phase=idle load=0.25", "holds for 2 of 2 members")
	svg := filepath.Join(t.TempDir(), "why.svg")
	until(t, "why all-idle --svg "+svg, "fired once")
	if picture, err := os.ReadFile(svg); err != nil || !containsAll(string(picture), []string{"gsync: all-idle is true for ", "from here on all certainly held together", ">w1<", "phase=idle load=0.25"}) {
		t.Errorf("%v: %s", err, picture)
	}
	if code, stdout, stderr := execute(t, "why", "all-idle", "--svg", svg+"/x"); code != exitFailure || !strings.Contains(stdout, "fired once") || stderr != "pegasus: --svg: open "+svg+"/x: not a directory: give the path of a file that can be written\n" {
		t.Errorf("exit %d, %s%s", code, stdout, stderr)
	}
	if code, _, stderr := execute(t, "why", "overload", "--svg", svg); code != exitFailure || stderr != "pegasus: --svg: predicate overload of gsync has not fired: there is no decision to draw yet\n" {
		t.Errorf("exit %d, %s", code, stderr)
	}
	until(t, "status --synchronizer gsync", "gsync: epoch 1;", "in force", "phase=idle load=0.25", "exact", "all-idle", "gsync/1/1, ", "2 applied")

	var e struct {
		Name    string
		Missing []struct{ Kind string }
		Last    struct {
			Witness []struct{ Start, End []int64 }
		} `json:"last_decision"`
	}
	if err := json.Unmarshal([]byte(until(t, "why all-idle --json --nats "+url)), &e); err != nil || e.Name != "all-idle" || len(e.Last.Witness) != 2 || e.Missing[0].Kind != "armed" {
		t.Errorf("%+v, %v", e, err)
	}
	for args, want := range map[string]string{
		"why all-idel":                        `no such predicate: synchronizer "gsync" has no predicate "all-idel": did you mean "all-idle"? known predicates: all-idle, overload`,
		"why x --synchronizer gsinc":          `no synchronizer "gsinc" of tenant "default" runs on the NATS server at ` + url + `: did you mean "gsync"? there run gsync`,
		"status --tenant blue":                `no synchronizer of tenant "blue" runs on the NATS server at ` + url + `: check --nats and --tenant`,
		"watch --predicate all-idel":          `--predicate "all-idel": no synchronizer of this run has a predicate of that name: did you mean "all-idle"? there are all-idle, overload`,
		"watch --nats " + url + " --tenant b": `no synchronizer of tenant "b" runs on the NATS server at ` + url,
	} {
		if code, stdout, stderr := execute(t, strings.Fields(args)...); code != exitFailure || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("pegasus %s: exit %d, stdout %q, stderr %q, want %q", args, code, stdout, stderr, want)
		}
	}
	p.stop()
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("the run has left %v, %v", files, err)
	}
	if code, _, stderr := execute(t, "status"); code != exitFailure || !strings.Contains(stderr, "no local run found, none is noted in "+dir) {
		t.Errorf("exit %d, stderr %q", code, stderr)
	}
}

// TestLiveLevels asks several synchronizers at once.
func TestLiveLevels(t *testing.T) {
	own(t)
	p := launch(t, "run", levelsConfig)
	p.url()
	p.line("agent.Join(ctx")
	until(t, "status", "gsync: no epoch: 1 member awaited; group workers", "\n\nother: no epoch: 5 members awaited; group watchers")
	if out := until(t, "status --synchronizer other", "other: no epoch"); strings.Contains(out, "gsync") {
		t.Errorf("gsync was not asked for:\n%s", out)
	}
	if out := until(t, "why quiet", "gsync: quiet is unknown"); strings.Contains(out, "other") {
		t.Errorf("other has no such predicate:\n%s", out)
	}
	code, _, stderr := execute(t, "why", "quit")
	if code != exitFailure || !containsAll(stderr, []string{`"gsync" has no predicate "quit": did you mean "quiet"? known predicates: quiet`, `"other" has no predicate "quit": there are no predicates`}) {
		t.Errorf("exit %d, stderr %q", code, stderr)
	}
	p.stop()
}

// TestWhyGroups: the name of a predicate with by has all its groups explained.
func TestWhyGroups(t *testing.T) {
	own(t)
	file := filepath.Join(t.TempDir(), "by.yaml")
	if err := os.WriteFile(file, []byte("synchronizers:\n  s:\n    members: {group: g}\n    state: {zone: {enum: [east, west]}, n: int}\n    predicates:\n"+
		"      hot: {by: .zone, when: \"sum(members, .n) > 4\", signal: []}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := launch(t, "run", file)
	p.url()
	until(t, "why hot", "s: hot-east is unknown", "\n\ns: hot-west is unknown")
	if out := until(t, "why hot --json", `"name":"hot-east"`, "\n"+`{"synchronizer":"s","name":"hot-west"`); strings.Count(out, "\n") != 2 {
		t.Errorf("no line for each group:\n%s", out)
	}
	if code, _, stderr := execute(t, "why", "hot", "--svg", "x.svg"); code != exitFailure || stderr != "pegasus: --svg: one predicate fits a picture, and 2 answer, hot-east of s, hot-west of s: name a single group, or give --synchronizer\n" {
		t.Errorf("exit %d, %s", code, stderr)
	}
	if out := until(t, "why hot-west", "s: hot-west is unknown"); strings.Contains(out, "hot-east") {
		t.Errorf("the other group was not asked for:\n%s", out)
	}
	p.stop()
}

// TestNotesOfRuns: notes are for this user alone, the newest counts, and notes of
// dead processes are reported and removed.
func TestNotesOfRuns(t *testing.T) {
	dir := own(t)
	begun := time.Date(2030, 1, 2, 3, 4, 5, 0, time.Local)
	for i, r := range []localRun{
		{URL: "nats://127.0.0.1:1", Tenant: "old", PID: os.Getpid(), Started: begun},
		{URL: "nats://127.0.0.1:2", Tenant: "new", PID: os.Getpid(), Started: begun.Add(time.Hour)},
		{URL: "nats://127.0.0.1:3", Tenant: "dead", PID: 1 << 30, Started: begun.Add(2 * time.Hour)},
	} {
		if _, err := noteRun(&r); err != nil {
			t.Fatal(i, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "run-bad.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 4 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info.Mode(), err)
		}
	}
	r, notes, err := lastRun()
	if err != nil || r.Tenant != "new" {
		t.Fatalf("%+v, %v", r, err)
	}
	all := strings.Join(notes, "\n")
	if len(notes) != 2 || !containsAll(all, []string{
		"the run of process 1073741824 at nats://127.0.0.1:3, begun 2030-01-02 05:04:05, has ended without a word; its note ",
		"run-bad.json is not the note of a run and is passed over: key url or pid is missing",
	}) {
		t.Errorf("notes %s", all)
	}
	if _, notes, _ = lastRun(); len(notes) != 1 {
		t.Errorf("again: %v", notes)
	}
	// Nobody listens where the newest run should be.
	code, _, stderr := execute(t, "status")
	if want := fmt.Sprintf("(that is the run of process %d, noted in %s", os.Getpid(), dir); code != exitFailure || !strings.Contains(stderr, want) {
		t.Errorf("exit %d, stderr %q, want %q", code, stderr, want)
	}
}

// TestARunThatCannotBeNoted: a run whose note cannot be written continues if its server needs no key.
func TestARunThatCannotBeNoted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_RUNTIME_DIR", file)
	p := launch(t, "run", goodConfig, "--open")
	url := p.url()
	p.cancel()
	code, stderr := p.exit()
	if want := "pegasus: this run is not noted, so status, why and watch need --nats " + url + ": "; code != exitOK || !strings.Contains(stderr, want) {
		t.Errorf("exit %d, stderr %q", code, stderr)
	}
}

func TestLiveWithCredentials(t *testing.T) {
	dir := own(t)
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := launch(t, "run", goodConfig, "--listen", "127.0.0.1:0", "--user", "jo", "--password-file", file)
	url := p.url()
	p.line("agent.Join(ctx")
	notes, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(notes) != 1 {
		t.Fatal(notes, err)
	}
	if text, err := os.ReadFile(notes[0]); err != nil || bytes.Contains(text, []byte("secret")) || bytes.Contains(text, []byte("jo")) {
		t.Errorf("the note has credentials: %s, %v", text, err)
	}
	until(t, "status --user jo --password-file "+file, "gsync: no epoch")
	code, _, stderr := execute(t, "status")
	if want := fmt.Sprintf("the run of process %d at %s wants credentials: give --user and --password-file", os.Getpid(), url); code != exitFailure || !strings.Contains(stderr, want) {
		t.Errorf("exit %d, stderr %q", code, stderr)
	}
	p.stop()
}

// TestWatchLines follows a run, also over an absence of its server.
func TestWatchLines(t *testing.T) {
	own(t)
	srv, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { srv.Close() }()
	p := launch(t, "run", goodConfig, "--nats", srv.URL(), "--members", "1")
	p.line("agent.Join(ctx")
	w := launch(t, "watch")
	w.line("watching gsync at " + srv.URL() + ", tenant default")
	w.line("gsync: no global state yet: 0 of 1 awaited member have a state")
	m, _ := searcher(t, srv.URL(), "w1")
	w.line("gsync: epoch 1 with 1 member: w1")
	w.line("gsync: global state 1 of epoch 1 (in force, certainly held for ", "w1 (phase=search load=0.5)")
	if err := m.Set(state{"idle", 0.25}); err != nil {
		t.Fatal(err)
	}
	w.line("gsync: all-idle fired (decision gsync/1/1) on w1 (phase=idle load=0.25); held ", "by the same clock")
	w.line("gsync: signal all-idle (cancel region search, decision gsync/1/1) to w1: applied")
	srv.Close()
	w.line("the NATS server is away: ")
	if srv, err = embedded.Start(embedded.Options{Port: srv.Port()}); err != nil {
		t.Fatal(err)
	}
	w.line("the NATS server is back")
	if err := m.Set(state{"search", 9}); err != nil {
		t.Fatal(err)
	}
	w.line("gsync: overload fired ")
	p.stop()
	w.line(`gsync: synchronizer "gsync" has gone`)
	again := launch(t, "run", goodConfig, "--nats", srv.URL())
	again.line("agent.Join(ctx")
	w.line("gsync: the synchronizer is online")
	again.stop()
	w.stop()
}

func TestWatchJSON(t *testing.T) {
	own(t)
	p := launch(t, "run", goodConfig, "--members", "1")
	url := p.url()
	p.line("agent.Join(ctx")
	w := launch(t, "watch", "--json")
	if o := w.object("watching"); o["url"] != url || o["tenant"] != "default" {
		t.Errorf("watching: %v", o)
	}
	w.object("status")
	join(t, url, "w1")
	m := join(t, url, "w2")
	if err := m.Set(state{"search", 2}); err != nil {
		t.Fatal(err)
	}
	fired := w.object("fired")
	if fired["predicate"] != "overload" || fired["synchronizer"] != "gsync" || fired["same_clock"] != true {
		t.Errorf("fired: %v", fired)
	}
	for {
		o := w.object("status")
		if s := o["status"].(map[string]any); s["state"] != nil {
			if s["epoch"] != 1.0 || len(s["members"].([]any)) != 2 {
				t.Errorf("status: %v", s)
			}
			break
		}
	}
	w.stop()
	p.stop()
}

// TestWatchScreen drives the program on no terminal: it draws, and q ends it.
// Without colour there is none.
func TestWatchScreen(t *testing.T) {
	for _, env := range [][]string{{"TERM=xterm-256color", "COLORTERM=truecolor", "TTY_FORCE=1"}, {"TERM=xterm-256color", "NO_COLOR=1", "TTY_FORCE=1"}} {
		r, w := newInput(t)
		var out bytes.Buffer
		p, f := newScreen(r, &out, tea.WithEnvironment(env), tea.WithWindowSize(80, 24))
		f.put(show.Entry{At: time.Now(), From: "gsync", Event: show.Standing{Status: &monitor.Status{
			Synchronizer: "gsync", Members: []monitor.MemberStatus{{Name: "w1", Silent: true}}, Predicates: []monitor.PredicateStatus{{Name: "all-idle"}},
		}}})
		f.begin(show.Watching{Names: []string{"gsync"}})
		drawn := make(chan error, 1)
		go func() { drawn <- runScreen(t.Context(), p) }()
		if err := f.finishFeed(t.Context()); err != nil { // All is taken.
			t.Error(err)
		}
		if _, err := w.Write([]byte("q")); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-drawn:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(patience):
			t.Fatal("q does not end it")
		}
		text := out.String()
		if !strings.Contains(text, "MEMBER") || !strings.Contains(text, "all-idle") {
			t.Errorf("%v: drawn %q", env, text)
		}
		if colored := strings.Contains(text, "\x1b[31m"); colored != (env[1] != "NO_COLOR=1") {
			t.Errorf("%v: colour %t: %q", env, colored, text)
		}
	}
}

// TestWatchScreenEndsWithTheContext as a signal ends it.
func TestWatchScreenEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r, _ := newInput(t)
	cancel()
	var out bytes.Buffer
	p, _ := newScreen(r, &out, tea.WithWindowSize(80, 24))
	if err := runScreen(ctx, p); err != nil {
		t.Error(err)
	}
}

// newInput is what a person types.
func newInput(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return r, w
}

// TestNobodyAnswers: where a process of this host is noted to run a synchronizer that does not answer, that is said.
func TestNobodyAnswers(t *testing.T) {
	own(t)
	srv, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	if _, err := noteRun(&localRun{URL: srv.URL(), Tenant: "default", PID: os.Getpid(), Started: time.Now()}); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"status --nats " + srv.URL(): fmt.Sprintf(`no synchronizer of tenant "default" answers on the NATS server at %s, though process %d of this host is noted to run one there`, srv.URL(), os.Getpid()),
		"status":                     "is noted to run one there",
		"status --nats " + srv.URL() + " --tenant b": `no synchronizer of tenant "b" runs on the NATS server`,
	} {
		if code, _, stderr := execute(t, strings.Fields(args)...); code != exitFailure || !strings.Contains(stderr, want) {
			t.Errorf("pegasus %s: exit %d, stderr %q, want %q", args, code, stderr, want)
		}
	}
}
