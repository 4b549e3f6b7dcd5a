package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/web"
)

// pageFrames reads the stream of a page.
type pageFrames struct {
	t    *testing.T
	scan *bufio.Scanner
}

// getPage is the body of a response whose status is good.
func getPage(t *testing.T, url string) io.Reader {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		t.Fatalf("%s: %d %s", url, resp.StatusCode, text)
	}
	return resp.Body
}

func openPageStream(t *testing.T, url string) *pageFrames {
	t.Helper()
	s := bufio.NewScanner(getPage(t, url))
	s.Buffer(nil, 1<<20)
	return &pageFrames{t, s}
}

// next waits for a frame that contains all the texts, passing over others.
func (f *pageFrames) next(texts ...string) map[string]any {
	f.t.Helper()
	for f.scan.Scan() {
		text, ok := strings.CutPrefix(f.scan.Text(), "data: ")
		if !ok || !containsAll(text, texts) {
			continue
		}
		var frame map[string]any
		if err := json.Unmarshal([]byte(text), &frame); err != nil {
			f.t.Fatalf("%s: %v", text, err)
		}
		return frame
	}
	f.t.Fatalf("the stream ended without a frame with %q: %v", texts, f.scan.Err())
	return nil
}

// TestUI shows a run in a page, also over an absence of its server and its synchronizer.
func TestUI(t *testing.T) {
	own(t)
	srv, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { srv.Close() }()
	run := launch(t, "run", goodConfig, "--nats", srv.URL(), "--members", "1")
	run.line("agent.Join(ctx")
	ui := launch(t, "ui", "--prefix", "/blue")
	line := ui.line("shows gsync at "+srv.URL(), ", tenant default; Ctrl-C ends it")
	parts := regexp.MustCompile(`^(http://127\.0\.0\.1:[0-9]+/blue/)#key=([A-Z0-9]{20,}) shows`).FindStringSubmatch(line)
	if parts == nil {
		t.Fatalf("no URL: %s", line)
	}
	url, key := parts[1], "key="+parts[2]
	text, err := io.ReadAll(getPage(t, url))
	if err != nil || !strings.Contains(string(text), `src="app.js"`) {
		t.Errorf("%v: %s", err, text)
	}
	f := openPageStream(t, url+"stream?"+key)
	s := f.next(`"kind":"status"`, "no epoch")
	if waits := fmt.Sprint(s["waits"]); !strings.Contains(waits, "the group has 0 of the 1 members that it waits for; this page has seen that for ") {
		t.Errorf("waits: %s", waits)
	}
	m, _ := searcher(t, srv.URL(), "w1")
	f.next(`"kind":"event"`, `"lane":"epoch"`, "epoch 1 with 1 member: w1")
	if err := m.Set(state{"idle", 0.25}); err != nil {
		t.Fatal(err)
	}
	e := f.next(`"event":"fired"`, `"lane":"predicate all-idle"`)
	if e["mark"] != true || e["state"] != "true" || e["synchronizer"] != "gsync" {
		t.Errorf("%v", e)
	}
	f.next(`"event":"signal"`, `"lane":"member w1"`, "applied")
	f.next(`"kind":"status"`, `"name":"w1"`, "phase=idle load=0.25", `"id":"gsync/1/1"`)
	why, err := io.ReadAll(getPage(t, url+"why?group=workers&synchronizer=gsync&predicate=all-idle&"+key))
	if err != nil || !containsAll(string(why), []string{`"truth":"true"`, `"id":"gsync/1/1"`, `"kind":"armed"`, `"member":"w1"`}) {
		t.Errorf("%v: %s", err, why)
	}
	srv.Close()
	if e := f.next("the NATS server is away: "); e["ends"] != true {
		t.Errorf("%v", e)
	}
	if srv, err = embedded.Start(embedded.Options{Port: srv.Port()}); err != nil {
		t.Fatal(err)
	}
	f.next("the NATS server is back")
	if err := m.Set(state{"search", 9}); err != nil {
		t.Fatal(err)
	}
	f.next(`"event":"fired"`, `"lane":"predicate overload"`)
	run.stop()
	f.next(`synchronizer \"gsync\" has gone`)
	ui.stop()
	for f.scan.Scan() { // Frames on their way, and then the end.
	}
}

// TestUIJSON: scripts read the URL.
func TestUIJSON(t *testing.T) {
	own(t)
	run := launch(t, "run", goodConfig)
	run.line("agent.Join(ctx")
	ui := launch(t, "ui", "--json", "--listen", "localhost:0")
	var o struct {
		URL, Tenant   string
		Synchronizers []string
	}
	if line := ui.line(); json.Unmarshal([]byte(line), &o) != nil || !strings.HasPrefix(o.URL, "http://127.0.0.1:") || o.Tenant != "default" || len(o.Synchronizers) != 1 {
		t.Errorf("%s", line)
	}
	ui.stop()
	run.stop()
}

// TestUIListen: other machines cannot reach the page.
func TestUIListen(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for address, want := range map[string]string{
		"0.0.0.0:1":           "--listen 0.0.0.0:1: other machines may reach this address, and the page is not encrypted: use 127.0.0.1 and a tunnel such as ssh -L",
		"[::]:0":              "--listen [::]:0: other machines may reach this address, and the page is not encrypted: use 127.0.0.1 and a tunnel such as ssh -L",
		"10.0.0.1:1":          "--listen 10.0.0.1:1: other machines may reach this address, and the page is not encrypted: use 127.0.0.1 and a tunnel such as ssh -L",
		"127.0.0.1":           "--listen 127.0.0.1: give HOST:PORT, such as 127.0.0.1:8233; port 0 is any free one",
		":80":                 "--listen :80: give HOST:PORT, such as 127.0.0.1:8233; port 0 is any free one",
		taken.Addr().String(): "--listen " + taken.Addr().String() + ": listen tcp " + taken.Addr().String() + ": bind: address already in use: choose another address, or port 0 for any free one",
	} {
		code, _, stderr := execute(t, "ui", "--listen", address)
		wantCode := exitUsage
		if address == taken.Addr().String() {
			wantCode = exitFailure
		}
		if code != wantCode || !strings.HasPrefix(stderr, "pegasus: "+want+"\n") {
			t.Errorf("exit %d, %s\nwant %s", code, stderr, want)
		}
	}
	const want = `--prefix "blue": the page cannot lie there: give a path such as /pegasus`
	if code, _, stderr := execute(t, "ui", "--prefix", "blue"); code != exitUsage || !strings.Contains(stderr, want) {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

// TestPublish: each kind of entry reaches the page.
func TestPublish(t *testing.T) {
	page, err := web.New(web.Options{Source: &explainer{}, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	publishEntry(page, show.Entry{Event: show.Skipped(7)})
	publishEntry(page, show.Entry{From: "gsync", Event: show.Notice("a notice")})
	publishEntry(page, show.Entry{Event: &monitor.Line{Event: "unheard-of", Synchronizer: "gsync"}})
	publishEntry(page, show.Entry{Event: show.Standing{Status: &monitor.Status{Synchronizer: "gsync"}}})
	l, err := listenOnLoopback("listen", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- servePages(t.Context(), l, page) }()
	f := openPageStream(t, "http://"+l.Addr().String()+"/stream")
	f.next("7 events are missing here: too many came at once", `"ends":true`)
	f.next("a notice", `"synchronizer":"gsync"`)
	f.next("unheard-of", `"lane":"messages"`)
	f.next(`"kind":"status"`)
	_ = l.Close()
	if err := <-served; err == nil {
		t.Error("the end of the listener is no fault")
	}
}

// TestUIControl: with --allow-control the page sets a parameter of a run, and has the run read its file again.
func TestUIControl(t *testing.T) {
	own(t)
	file := filepath.Join(t.TempDir(), "c.yaml")
	text := "params: {limit: {type: int, default: 1, min: 0, max: 9}}\nsynchronizers:\n  g:\n    members: {group: workers}\n    state: {n: int}\n    predicates:\n      high: {when: 'any(members, .n > params.limit)', signal: []}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run := launch(t, "run", file)
	run.line("agent.Join(ctx")
	ui := launch(t, "ui", "--allow-control")
	line, _, _ := strings.Cut(ui.line("shows g at "), " ")
	base, key, _ := strings.Cut(line, "#key=")
	f := openPageStream(t, base+"stream?key="+key)
	token, _ := f.next(`"kind":"hello"`)["control"].(string)
	f.next(`"kind":"status"`, `"params":[{"name":"limit","value":"1","takes":"int 0 to 9","initial":"1","set":false}]`)
	change := func(body string) string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"control?key="+key, strings.NewReader(`{"synchronizer":"g","group":"workers",`+body+`}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Origin", strings.TrimSuffix(base, "/"))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Pegasus-Token", token)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(answer)
	}
	for _, c := range [][2]string{
		{`"values":{"limit":"5"}`, `["params limit: from 1 to 5"]` + "\n"},
		{`"values":{"limit":"50"}`, `synchronizer "g": set: params.limit does not take 50: use 0 to 9` + "\n"},
		{`"reset":["limit"]`, `["params limit: from 5 to 1"]` + "\n"},
		{`"reload":true`, "[]\n"},
	} {
		if got := change(c[0]); got != c[1] {
			t.Errorf("%s: %swant %s", c[0], got, c[1])
		}
	}
	if err := os.WriteFile(file, []byte(text+"      more: {when: 'any(members, .n > 7)', signal: []}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := change(`"reload":true`); !strings.Contains(got, "more") {
		t.Errorf("a changed file: %s", got)
	}
	f.next(`"kind":"status"`, `"name":"more"`)
	ui.stop()
	run.stop()
}

// TestUITakeover: a process that takes over while the page is open continues its sections and its lanes.
func TestUITakeover(t *testing.T) {
	own(t)
	srv, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	first := launch(t, "run", goodConfig, "--nats", srv.URL(), "--members", "1")
	first.url()
	m, _ := searcher(t, srv.URL(), "w1")
	second := launch(t, "run", goodConfig, "--nats", srv.URL(), "--members", "1", "--standby")
	second.line("stands by until the process that leads has ended")
	ui := launch(t, "ui", "--nats", srv.URL())
	line, _, _ := strings.Cut(ui.line("shows gsync at "), " ")
	base, key, _ := strings.Cut(line, "#key=")
	f := openPageStream(t, base+"stream?key="+key)
	f.next(`"kind":"status"`, `"standbys":["process `, `"epoch":"epoch 1"`)
	f.next(`"kind":"states"`, `"member":"w1"`, `"known":true`)
	first.stop()
	f.next(`"kind":"status"`, `"leader":"its only process"`, `"epoch":"epoch `, `"name":"w1"`)
	if err := m.Set(state{"search", 9}); err != nil {
		t.Fatal(err)
	}
	f.next(`"event":"fired"`, `"lane":"predicate overload"`)
	f.next(`"kind":"states"`, `"member":"w1"`, `"known":true`, `"values":["search","9"]`)
	if why := getPage(t, base+"why?group=workers&synchronizer=gsync&predicate=overload&key="+key); why == nil {
		t.Error("no explanation")
	}
	ui.stop()
	second.stop()
}
