package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// config has texts that would be markup, were they not escaped.
const config = `params: {limit: {type: float, default: 1.5, min: 0, max: 100}}
synchronizers:
  gsync:
    members: {group: workers, count: 2}
    state: {phase: {enum: [idle, search]}, load: float, note: string}
    predicates:
      all-idle:
        when: all(members, .phase == "idle")
        signal: {kind: cancel, region: search, to: all}
      overload:
        when: sum(members, .load) > params.limit
      marked:
        when: any(members, .note == "<script>alert(1)</script>")
`

const (
	nastyNote = "<script>document.title='injected'</script>\"'&amp;\u202eRTL\u202c"
	nastyHost = "<img src=x onerror=\"document.title='injected'\">'\u202e"
	patience  = 20 * time.Second
)

// world is a run with a NATS server and members of its own.
type world struct {
	t        *testing.T
	pegasus  string // the binary
	dir, url string
	in       io.Writer // of the members
	out      *bufio.Reader
}

// built is a directory with the programs of the tests, which are built once.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "pegasus-browser")
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "./cmd/pegasus", "./web/testdata/member", "./examples/tsp") //nolint:noctx // The time of the tests bounds it.
	build.Dir = filepath.Join("..", "..")
	if text, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w: %s", err, text)
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := built(); err == nil {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// newWorld builds the binaries and starts the server.
func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	home := t.TempDir() // Of the key of the server and the terms of runs.
	programs, err := built()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, pegasus: filepath.Join(programs, "pegasus")}
	if err := os.WriteFile(filepath.Join(dir, "pegasus.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"} {
		t.Setenv(name, home)
	}
	members := exec.CommandContext(t.Context(), filepath.Join(programs, "member"))
	members.Stderr = os.Stderr
	in, err := members.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := members.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := members.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = members.Wait()
	})
	w.in, w.out = in, bufio.NewReader(out)
	w.url = w.answer()
	return w
}

func (w *world) answer() string {
	w.t.Helper()
	line, err := w.out.ReadString('\n')
	if err != nil {
		w.t.Fatalf("member: %v", err)
	}
	return strings.TrimSpace(line)
}

// set sets the state of a member, which joins first if it is new.
func (w *world) set(name, phase string, load float64) {
	w.t.Helper()
	w.ask(map[string]any{"name": name, "host": nastyHost, "state": map[string]any{"phase": phase, "load": load, "note": nastyNote}})
}

// launch starts pegasus, waits for a line of its stdout with a text, and returns the line and how to end the process.
func (w *world) launch(text string, args ...string) (line string, stop func()) {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), w.pegasus, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_, _ = io.Copy(io.Discard, out)
		if err := cmd.Wait(); err != nil {
			w.t.Errorf("pegasus %q: %v: %s", args, err, &stderr)
		}
	})
	w.t.Cleanup(stop)
	r := bufio.NewReader(out)
	for !strings.Contains(line, text) {
		if line, err = r.ReadString('\n'); err != nil {
			w.t.Fatalf("pegasus %q ended without %q", args, text)
		}
	}
	go io.Copy(io.Discard, r) //nolint:errcheck // Ends with the process.
	return line, stop
}

// browser is a tab of a headless Chromium. It notes each request that leaves the host, and each complaint.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	outside  []string
	problems []string
	expected []string // texts of problems that are no fault
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	ctx, end := chromedp.NewExecAllocator(t.Context(), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.WindowSize(1280, 900))...)
	t.Cleanup(end)
	quiet := func(string, ...any) {}
	ctx, end = chromedp.NewContext(ctx, chromedp.WithErrorf(quiet), chromedp.WithLogf(quiet))
	t.Cleanup(end)
	b := &browser{t: t, ctx: ctx, expected: []string{"Multiple readback operations"}} // By painted.
	chromedp.ListenTarget(ctx, b.note)
	b.do(network.Enable(), cdplog.Enable(), cdpruntime.Enable())
	return b
}

// note is called for each event of the tab.
func (b *browser) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if u := e.Request.URL; !strings.HasPrefix(u, "http://127.0.0.1:") && !strings.HasPrefix(u, "data:") && !strings.HasPrefix(u, "file:") && !strings.HasPrefix(u, "blob:") {
			b.outside = append(b.outside, u)
		}
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.LevelError || e.Entry.Level == cdplog.LevelWarning {
			b.problems = append(b.problems, e.Entry.Text+" "+e.Entry.URL)
		}
	case *cdpruntime.EventConsoleAPICalled:
		if e.Type == cdpruntime.APITypeError || e.Type == cdpruntime.APITypeWarning || e.Type == cdpruntime.APITypeAssert {
			b.problems = append(b.problems, fmt.Sprintf("console.%s", e.Type))
		}
	case *cdpruntime.EventExceptionThrown:
		b.problems = append(b.problems, e.ExceptionDetails.Error())
	}
}

func (b *browser) do(actions ...chromedp.Action) {
	b.t.Helper()
	// The first call starts the browser, which lives as long as the context of that call.
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// value evaluates an expression.
func (b *browser) value(expression string, result any) {
	b.t.Helper()
	b.do(chromedp.Evaluate(expression, result))
}

// has waits until the page shows all texts.
func (b *browser) has(texts ...string) {
	b.t.Helper()
	for _, text := range texts {
		b.until(fmt.Sprintf("document.body.innerText.includes(%s)", quote(text)), text)
	}
}

// until waits until an expression is true.
func (b *browser) until(expression, what string) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, chromedp.Poll(expression, nil, chromedp.WithPollingInterval(20*time.Millisecond), chromedp.WithPollingTimeout(patience))); err != nil {
		var text string
		b.value("document.body.innerText", &text)
		b.t.Fatalf("%s: %v on the page:\n%.3000s", what, err, text)
	}
}

func quote(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(quoted)
}

// clean fails if the tab has asked another host, complained, or shows elements that a text of the run has made.
func (b *browser) clean() {
	b.t.Helper()
	var injected int
	b.value(`document.querySelectorAll("img, main script, iframe, [onerror], [onclick]").length + (document.title === "Pegasus" ? 0 : 1)`, &injected)
	if injected > 0 {
		b.t.Error("a text of the run became markup")
	}
	for _, scheme := range []string{"light", "dark"} {
		b.do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
		b.accessible(scheme)
	}
	b.do(emulation.SetEmulatedMedia())
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, u := range b.outside {
		b.t.Errorf("a request left the host: %s", u)
	}
next:
	for _, p := range b.problems {
		for _, e := range b.expected {
			if strings.Contains(p, e) {
				continue next
			}
		}
		b.t.Errorf("the browser complains: %s", p)
	}
	b.outside, b.problems = nil, nil
}

// awaited has the value of an expression be that of its promise.
func awaited(p *cdpruntime.EvaluateParams) *cdpruntime.EvaluateParams {
	return p.WithAwaitPromise(true)
}

// accessible fails if axe finds something on the page.
func (b *browser) accessible(scheme string) {
	b.t.Helper()
	axe, err := os.ReadFile(filepath.Join("..", "..", "bin", "page", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		b.t.Fatalf("axe: %v: run this test by make browser", err)
	}
	rules, least := `{}`, 10
	if scheme == "dark" { // Nothing but colours is different.
		rules, least = `{runOnly: ["color-contrast"]}`, 1
	}
	var found []string // The first one is how many rules had something to check.
	b.value(string(axe)+"; 0", nil)
	b.do(chromedp.Evaluate(`axe.run(`+rules+`).then((r) => [String(r.passes.length)].concat(r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + v.help + ": " + n.html + " " + n.failureSummary))))`, &found, awaited))
	if passed, err := strconv.Atoi(found[0]); err != nil || passed < least {
		b.t.Errorf("axe checked %s rules: %v", found[0], err)
	}
	for _, f := range found[1:] {
		b.t.Errorf("axe, %s: %s", scheme, f)
	}
}

// open goes to the page behind a line that pegasus ui has printed.
func (b *browser) open(line string) {
	b.t.Helper()
	url, _, _ := strings.Cut(line, " ")
	b.do(chromedp.Navigate(url), chromedp.WaitVisible("section h2"))
}

// page goes to a page by its address behind #.
func (b *browser) page(hash string) {
	b.t.Helper()
	b.value("location.hash = "+quote(hash)+"; 0", nil)
}

// painted is how many pixels of the timeline have a colour.
const painted = `(() => {
	const c = document.querySelector("canvas");
	const style = getComputedStyle(document.documentElement).getPropertyValue("%s").trim();
	const want = [1, 3, 5].map((i) => parseInt(style.slice(i, i + 2), 16));
	const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
	let n = 0;
	for (let i = 0; i < d.length; i += 4) if (want.every((v, k) => Math.abs(d[i + k] - v) < 3)) n++;
	return n > 20;
})()`

// TestBrowser drives each page of a live run, and of its journal.
func TestBrowser(t *testing.T) {
	w := newWorld(t)
	journal := filepath.Join(w.dir, "journals")
	run := []string{"run", filepath.Join(w.dir, "pegasus.yaml"), "--nats", w.url, "--journal", journal}
	_, stop := w.launch("agent.Join", run...)
	b := newBrowser(t)
	line, stopUI := w.launch("/#key=", "ui", "--nats", w.url, "--allow-control")
	b.open(line)
	b.has("no epoch", "the group has 0 of the 2 members that it waits for")
	w.set("w1", "search", 0.5)
	b.has("the group has 1 of the 2 members that it waits for", "w1")
	w.set("w2", "idle", 1.25)
	b.has("epoch 1", nastyNote, nastyHost, "phase=search load=0.5", "overload", "gsync/1/1", "its condition")
	b.has("Live, ")
	w.set("w1", "idle", 0.25)
	b.has("all-idle", "gsync/1/2")
	b.clean()

	b.do(chromedp.SendKeys(`input[aria-label="New value of limit"]`, "500\r"))
	b.has(`Nothing was changed, as far as is known: synchronizer "gsync": set: params.limit does not take 500: use 0 to 100`)
	b.do(chromedp.SendKeys(`input[aria-label="New value of limit"]`, "\b\b\r"))
	b.has("Changed: params limit: from 1.5 to 5", "parameter limit = 5, set; it was 1.5")
	b.until(`!document.querySelector('button[aria-label="Reset limit"]').disabled`, "the parameter is set")
	b.do(chromedp.Click(`button[aria-label="Reset limit"]`))
	b.has("Changed: params limit: from 5 to 1.5")
	b.do(chromedp.Click(".control button"))
	b.has("Nothing is different.")
	b.expected = append(b.expected, "status of 502")
	b.clean()

	b.value(`document.querySelector(".truth-true a").click(); 0`, nil)
	b.has("Why all-idle", "gsync: all-idle is true", `all(members, .phase == "idle")`, "Last decision gsync/1/2", "Why they held at one instant", "2: w1, w2")
	b.page("why/workers/gsync/marked")
	b.has("gsync: marked is false", `"<script>alert(1)</script>"`, "There is no decision yet.")
	b.page("why/workers/gsync/%3Cimg%20src=x%20onerror=alert(1)%3E")
	b.has("none of that name")
	b.expected = append(b.expected, "status of 404")
	b.clean()
	b.page("work")
	b.has("Work", "As of ", "gsync")
	b.page("timeline")
	b.has("all-idle fired", "overload fired", "epoch 1 with 2 members")
	for _, colour := range []string{"--true", "--false", "--epoch", "--mark"} {
		b.until(fmt.Sprintf(painted, colour), "the timeline has no "+colour)
	}
	b.until(fmt.Sprintf(painted, "--value0"), "the timeline of a live run has no states of members")
	b.has("States of members at the instant", "phase=idle load=0.25 note="+nastyNote)
	b.clean()

	// A synchronizer that goes away, and comes back.
	stop()
	b.page("overview")
	b.has("Old values: gsync has not answered since")
	b.clean()
	b.page("timeline")
	b.has(`synchronizer "gsync" has gone`)
	w.set("w2", "idle", 0.25) // As w1.
	_, stop = w.launch("agent.Join", run...)
	b.page("overview")
	b.until(`!document.body.innerText.includes("Old values")`, "the synchronizer that is back")
	b.has("epoch 1", "phase=idle load=0.25")
	b.clean()
	stopUI()
	b.expected = append(b.expected, "net::ERR_")
	b.has("The stream stopped at ")
	b.clean()
	stop()

	line, stopUI = w.launch("/#key=", "ui", "--journal", journal)
	b.open(line)
	b.has("A recorded run", "epoch 1", "phase=idle load=0.25", nastyNote)
	b.do(chromedp.Click(".cursor button"))
	b.has("gsync/1/")
	b.page("timeline")
	b.has("all-idle fired")
	b.until(fmt.Sprintf(painted, "--true"), "the timeline is empty")
	b.until(fmt.Sprintf(painted, "--value0"), "the timeline has no states of members")
	b.value(`document.querySelectorAll("main input[type=checkbox]")[1].click(); 0`, nil) // Fold.
	b.until(`[...document.querySelectorAll("button")].some((b) => b.textContent === "Open")`, "members alike are not folded")
	b.has("5 lanes")
	b.do(chromedp.Click(".alike button"))
	b.has("Fold", "6 lanes")
	b.value(`document.querySelectorAll("main input[type=checkbox]")[1].click(); 0`, nil)
	b.do(chromedp.SendKeys("#search", "OVERL"))
	b.has("1 lanes")
	b.do(chromedp.SendKeys("#search", "\b\b\b\b\b"))
	b.until(`document.getElementById("search").value === ""`, "the search")
	b.do(chromedp.Focus("canvas"), chromedp.KeyEvent("p")) // The instant is that of the only decision.
	b.has("No decision comes before this instant.")
	b.do(chromedp.KeyEvent("n"))
	b.has("No decision comes after this instant.")
	const atBegin = `location.hash.endsWith("at=" + document.querySelector("input[type=range]").min)`
	b.do(chromedp.Focus("input[type=range]"), chromedp.KeyEvent(kb.Home))
	b.until(atBegin, "the key Home goes to the beginning")
	b.do(chromedp.KeyEvent("n"))
	b.until("!"+atBegin, "the key n goes to the decision")
	b.save("timeline")
	b.picture("timeline", "gsync predicate all-idle", "all-idle fired", "phase=idle load=0.25")
	b.has("States of members at the instant", "phase=idle load=0.25 note="+nastyNote, "States of gsync together: proven: each state began before each other one ended")
	b.page("why/workers/gsync/all-idle")
	b.has("gsync: all-idle is true", "Last decision gsync/1/")
	b.save("why")
	b.picture("why", "gsync: all-idle is true", "Why they held at one instant")
	b.page("overview")
	b.has("phase=idle load=0.25")
	b.save("overview")
	b.picture("overview", "phase=idle load=0.25", "<script>document.title='injected'</script>")
	b.clean()
	stopUI()
}

// externals are what a file may have that leads out of it.
var externals = regexp.MustCompile(`(?i)<script|<link|<iframe|<object|https?:|url\(|@import|\ssrc="(?:[^d]|d[^a])|\shref=|\son[a-z]+=`)

// save saves the view as a file, and opens the file in another tab: it has the same text, and asks for nothing.
func (b *browser) save(name string) {
	b.t.Helper()
	var live, saved string
	file := b.download("#save", "pegasus-"+name+".html")
	text, err := os.ReadFile(file)
	if err != nil {
		b.t.Fatal(err)
	}
	escape := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;") // As a browser writes texts.
	escaped := strings.ReplaceAll(string(text), escape.Replace(nastyHost), "")
	if found := externals.FindString(escaped); found != "" {
		b.t.Errorf("%s: the file has %q", name, found)
	}
	b.value("document.body.innerText", &live)
	tab, end := b.openFile(file)
	defer end()
	tab.value("document.body.innerText", &saved)
	if live != saved {
		b.t.Errorf("%s: the file has another text:\n%s\nwant\n%s", name, saved, live)
	}
	var images, handlers int
	if tab.value(`document.querySelectorAll("[onerror], main script").length`, &handlers); handlers > 0 {
		b.t.Errorf("%s: a text of the run became markup in the file", name)
	}
	tab.value(`[...document.querySelectorAll("img")].filter((i) => i.naturalWidth > 100).length`, &images)
	if want := strings.Count(string(text), "<img"); images != want || name == "timeline" && want != 1 {
		b.t.Errorf("%s: %d pictures are shown, want %d", name, images, want)
	}
	tab.mu.Lock()
	defer tab.mu.Unlock()
	if len(tab.outside)+len(tab.problems) > 0 {
		b.t.Errorf("%s: the file asks for %q; %q", name, tab.outside, tab.problems)
	}
}

// download clicks, and waits for the file.
func (b *browser) download(click, name string) (file string) {
	b.t.Helper()
	dir := b.t.TempDir()
	b.do(cdpbrowser.SetDownloadBehavior(cdpbrowser.SetDownloadBehaviorBehaviorAllow).WithDownloadPath(dir), chromedp.Click(click))
	file = filepath.Join(dir, name)
	for deadline := time.Now().Add(patience); ; {
		if _, err := os.Stat(file); err == nil {
			return file
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("there is no file %s", file)
		}
		b.value("0", nil) // It takes a moment.
	}
}

// openFile opens a file in another tab.
func (b *browser) openFile(file string) (tab *browser, end func()) {
	b.t.Helper()
	tab = &browser{t: b.t}
	tab.ctx, end = chromedp.NewContext(b.ctx)
	chromedp.ListenTarget(tab.ctx, tab.note)
	tab.do(network.Enable(), cdplog.Enable(), cdpruntime.Enable(), chromedp.Navigate("file://"+file))
	return tab, end
}

// picture saves the view as SVG, and opens the file in another tab: it is XML, has the texts, asks for nothing, and no text lies on
// another one.
func (b *browser) picture(name string, texts ...string) {
	b.t.Helper()
	file := b.download("#save-svg", "pegasus-"+name+".svg")
	if keep := os.Getenv("PICTURES"); keep != "" { // To look at.
		text, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(filepath.Join(keep, name+".svg"), text, 0o600)
		}
		if err != nil {
			b.t.Error(err)
		}
	}
	tab, end := b.openFile(file)
	defer end()
	for _, text := range texts {
		var has bool
		if tab.value(`document.documentElement.tagName === "svg" && [...document.querySelectorAll("text")].map((t) => t.textContent).join(" ").includes(`+quote(text)+`)`, &has); !has {
			b.t.Errorf("%s: the picture lacks %q", name, text)
		}
	}
	var strange int
	var over []string
	tab.value(`[...document.querySelectorAll("*")].filter((e) => !["svg", "rect", "text"].includes(e.tagName)).length`, &strange)
	tab.value(`(() => {
		const all = [...document.querySelectorAll("text")].map((t) => ({ text: t.textContent, box: t.getBBox(), size: parseFloat(t.getAttribute("font-size")) }));
		const found = [];
		all.forEach((a, i) => all.slice(i + 1).forEach((b) => {
			const dx = Math.min(a.box.x + a.box.width, b.box.x + b.box.width) - Math.max(a.box.x, b.box.x);
			const dy = Math.abs(a.box.y + a.box.height / 2 - b.box.y - b.box.height / 2);
			if (dx > 1 && dy < 0.7 * Math.min(a.size, b.size)) found.push(a.text + " | " + b.text);
		}));
		return found.slice(0, 5);
	})()`, &over)
	if strange > 0 || len(over) > 0 {
		b.t.Errorf("%s: %d strange elements; texts lie on others: %q", name, strange, over)
	}
	tab.mu.Lock()
	defer tab.mu.Unlock()
	if len(tab.outside)+len(tab.problems) > 0 {
		b.t.Errorf("%s: the picture asks for %q; %q", name, tab.outside, tab.problems)
	}
}

// TestNewcomer counts clicks: from the bare address of a page, a person finds why the predicate Done of a running
// examples/tsp is not yet true. Three clicks are allowed.
func TestNewcomer(t *testing.T) {
	w := newWorld(t)
	run := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(w.pegasus), "tsp"), "-instance", "random:500:7", "-processes", "2", "-threads", "1")
	out, err := run.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = run.Process.Signal(os.Interrupt)
		_, _ = io.Copy(io.Discard, out)
		_ = run.Wait() // It says that it was ended.
	})
	read := bufio.NewReader(out)
	var named []string // random:500:7: 500 cities; 2 processes x 1 thread; run RUN on URL
	for named == nil {
		line, err := read.ReadString('\n')
		if err != nil {
			t.Fatalf("tsp: %v", err)
		}
		named = regexp.MustCompile(`run (\S+) on (nats:\S+)`).FindStringSubmatch(line)
	}
	go io.Copy(io.Discard, read) //nolint:errcheck // Ends with the process.
	at := []string{"--tenant", named[1], "--nats", named[2]}
	w.until(append([]string{"status"}, at...)...)
	b := newBrowser(t)
	line, stop := w.launch("/#key=", append([]string{"ui"}, at...)...)
	defer stop()
	b.open(line)
	clicks := 0
	click := func(selector string) {
		clicks++
		b.do(chromedp.WaitVisible(selector), chromedp.Click(selector))
	}
	click(`a[href="#why/tsp/gsync/Done"]`)
	b.has("Why Done", "gsync: Done is false", "What is missing", "the condition is false", "The condition, part by part", "coordinator")
	b.until(`[...document.querySelectorAll("tr.truth-false")].some((r) => r.textContent.includes("all(members, .work.idle and .work.settled)") && r.cells[3].textContent !== "")`, "the members that are not idle")
	if clicks > 3 {
		t.Errorf("%d clicks", clicks)
	}
}

// until runs pegasus until it succeeds.
func (w *world) until(args ...string) {
	w.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		text, err := exec.CommandContext(w.t.Context(), w.pegasus, args...).CombinedOutput()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("pegasus %q: %v: %s", args, err, text)
		}
	}
}

// TestProgram drives the page of a program, from its wait for processors to its end: the drawing shows where each construct
// stands, and the conditions lead to their explanations.
func TestProgram(t *testing.T) {
	w := newWorld(t)
	file := filepath.Join("..", "..", "configs", "programs", "search.yaml")
	let := filepath.Join(w.dir, "let")
	script := filepath.Join(w.dir, "sample.sh")
	if err := os.WriteFile(script, []byte("while [ ! -e "+let+" ]; do sleep 0.1; done\necho '{\"best\": 0.005}' >&3\necho 0.5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	line, end := w.launch("/#key=", "program", "run", file, "--nats", w.url, "--ui")
	_, url, _ := strings.Cut(line, "page of this run: ")
	b := newBrowser(t)
	b.open(strings.TrimSpace(url))
	b.page("program")
	b.has("search, run by gsync", "The program is running.", "PAR searchers", "climb", "JOIN or gsync.good")
	b.clean()
	const stands = `(path, text, state) => [...document.querySelectorAll(".flow g")].some((g) => g.querySelector("title")?.textContent.startsWith(path + ": ") && g.querySelector("title").textContent.includes(text) && g.querySelector("[data-state]").dataset.state === state)`
	_, stop := w.launch("node n1", "node", "--nats", w.url, "--group", "searchers", "--name", "n1", "--processors", "3", "--block", "sample=sh "+script, "--block", "climb=sh "+script, "--block", "report=sleep 3", "--block", "give-up=true")
	b.until("("+stands+`)("body.seq[0].par[0].par", "3 running on n1-", "running")`, "the samples that run")
	b.has("3 running on n1-")
	b.clean()
	b.shot("program")
	b.value(`document.querySelector(".flow a").dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true })); 0`, nil)
	b.until(`location.hash === "#why/searchers/gsync/good"`, "the condition leads to its explanation")
	b.has("Why good")
	b.page("program")
	if err := os.WriteFile(let, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.until("("+stands+`)("body.seq[1]", "1 running on n1-", "running")`, "the block after the JOIN")
	b.until("("+stands+`)("body.seq[0].par[0].par", "done", "done")`, "the samples that are done")
	b.has("The stream stopped at ") // The run has ended.
	end()
	stop()
}

// shot writes a picture of the page to the directory PEGASUS_SHOTS, for people.
func (b *browser) shot(name string) {
	dir := os.Getenv("PEGASUS_SHOTS")
	if dir == "" {
		return
	}
	for _, scheme := range []string{"light", "dark"} {
		var png []byte
		b.do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}), chromedp.FullScreenshot(&png, 100))
		if err := os.WriteFile(filepath.Join(dir, name+"-"+scheme+".png"), png, 0o600); err != nil {
			b.t.Fatal(err)
		}
	}
	b.do(emulation.SetEmulatedMedia())
}
