package web_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/internal/testwait"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/web"
)

// source answers with the predicate it is asked for.
type source struct {
	asked chan string   // what was asked
	hold  chan struct{} // not nil: answers wait until it is closed
}

func (s *source) Explain(ctx context.Context, synchronizer, group, predicate string, _ time.Time) (*monitor.Explanation, error) {
	s.asked <- synchronizer + "/" + group + "/" + predicate
	if s.hold != nil {
		select {
		case <-s.hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if predicate == "mute" {
		return nil, errors.New(`synchronizer "g" has gone`)
	}
	return &monitor.Explanation{Synchronizer: synchronizer, PredicateStatus: monitor.PredicateStatus{Name: predicate, Truth: "true"}}, nil
}

// serve serves a page with a status of the synchronizer g.
func serve(t *testing.T, prefix string, s *source) (*web.Page, *httptest.Server) {
	t.Helper()
	s.asked = make(chan string, 100)
	p, err := web.New(web.Options{Source: s, Now: time.Now, Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	p.PublishStatus(&monitor.Status{Synchronizer: "g", Group: "workers", Predicates: []monitor.PredicateStatus{{Name: "a/1"}, {Name: "mute"}, {Name: nasty}}})
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	return p, server
}

const nasty = "<img src=x onerror=alert(1)>\"'\u2028\n\x00"

// answer is a response whose body is read.
type answer struct {
	code   int
	header http.Header
	text   string
}

func get(t *testing.T, url string, header ...string) answer {
	t.Helper()
	return do(t, http.MethodGet, url, header...)
}

func do(t *testing.T, method, url string, header ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return send(t, r)
}

// send sends a request, to the host of its header if there is one.
func send(t *testing.T, r *http.Request) answer {
	t.Helper()
	if host := r.Header.Get("Host"); host != "" {
		r.Host = host
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(text)}
}

// TestFiles fetches the page and all that it refers to, with and without a prefix.
func TestFiles(t *testing.T) {
	for _, prefix := range []string{"", "/runs/blue"} {
		_, server := serve(t, prefix, &source{})
		for name, kind := range map[string]string{
			"": "text/html", "style.css": "text/css", "app.js": "text/javascript", "model.js": "text/javascript", "dom.js": "text/javascript",
			"overview.js": "text/javascript", "why.js": "text/javascript", "timeline.js": "text/javascript", "states.js": "text/javascript", "save.js": "text/javascript",
		} {
			a := get(t, server.URL+prefix+"/"+name)
			if a.code != http.StatusOK || !strings.HasPrefix(a.header.Get("Content-Type"), kind) || len(a.text) < 100 {
				t.Errorf("%s/%s: %d, %v", prefix, name, a.code, a.header)
			}
			const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
			if got := a.header.Get("Content-Security-Policy"); got != policy || a.header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s/%s: policy %q", prefix, name, got)
			}
			for _, absolute := range []string{`="/`, `fetch("/`, "fetch(`/", `Source("/`, `from "/`, "http://", "https://", "innerHTML", "style=", "eval("} {
				if strings.Contains(a.text, absolute) {
					t.Errorf("%s has %s: it has to work under a prefix and with the policy", name, absolute)
				}
			}
		}
		if a := get(t, server.URL+prefix+"/page.go"); a.code != http.StatusNotFound {
			t.Errorf("a file that is not of the page: %d", a.code)
		}
	}
	_, server := serve(t, "/runs", &source{})
	if a := get(t, server.URL+"/runs"); a.code != http.StatusOK || !strings.Contains(a.text, "<title>") {
		t.Errorf("the prefix without a slash: %d", a.code)
	}
	if a := get(t, server.URL+"/"); a.code != http.StatusNotFound {
		t.Errorf("outside of the prefix: %d", a.code)
	}
	for _, prefix := range []string{"runs", "/a/../b", "/{x}", "/a b", "//"} {
		want := fmt.Sprintf("prefix %q: the page cannot lie there: give a path such as /pegasus", prefix)
		if _, err := web.New(web.Options{Prefix: prefix}); err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

// TestRefused: other names, other sites and other methods.
func TestRefused(t *testing.T) {
	_, server := serve(t, "", &source{})
	const host = ": the page answers to names of the loopback interface alone: open it as 127.0.0.1 or localhost\n"
	const own = ": the page answers its own requests alone: open it in a tab of its own\n"
	here := strings.TrimPrefix(server.URL, "http://")
	for _, c := range []struct {
		header []string
		want   string // empty: it is answered
	}{
		{[]string{"Host", "localhost:1"}, ""},
		{[]string{"Host", "LOCALHOST"}, ""},
		{[]string{"Host", "127.8.9.1:80"}, ""},
		{[]string{"Host", "[::1]:80"}, ""},
		{[]string{"Host", "evil.example"}, `host "evil.example"` + host},
		{[]string{"Host", "127.0.0.1.evil.example:80"}, `host "127.0.0.1.evil.example:80"` + host},
		{[]string{"Host", "localhost.evil.example"}, `host "localhost.evil.example"` + host},
		{[]string{"Host", "10.0.0.1"}, `host "10.0.0.1"` + host},
		{[]string{"Host", "[::]"}, `host "[::]"` + host},
		{[]string{"Origin", server.URL}, ""},
		{[]string{"Origin", "http://evil.example"}, `origin "http://evil.example"` + own},
		{[]string{"Origin", "null"}, `origin "null"` + own},
		{[]string{"Origin", "http://127.0.0.1:1"}, `origin "http://127.0.0.1:1"` + own},
		{[]string{"Origin", "//" + here}, `origin "//` + here + `"` + own},
		{[]string{"Sec-Fetch-Site", "same-origin"}, ""},
		{[]string{"Sec-Fetch-Site", "none"}, ""},
		{[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, ""}, // A link.
		{[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, "request of another page (Sec-Fetch-Site: cross-site)" + own},
		{[]string{"Sec-Fetch-Site", "same-site"}, "request of another page (Sec-Fetch-Site: same-site)" + own},
	} {
		for _, path := range []string{"/", "/why?group=workers&synchronizer=g&predicate=a/1"} {
			a := get(t, server.URL+path, c.header...)
			if c.want == "" && a.code != http.StatusOK || c.want != "" && (a.code != http.StatusForbidden || a.text != c.want) {
				t.Errorf("%s %q: %d %s\nwant %s", path, c.header, a.code, a.text, c.want)
			}
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		for _, path := range []string{"/", "/stream", "/why?group=workers&synchronizer=g&predicate=a/1"} {
			if a := do(t, method, server.URL+path); a.code != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: %d", method, path, a.code)
			}
		}
	}
}

// frames reads a stream.
type frames struct {
	t    *testing.T
	scan *bufio.Scanner
}

func openStream(t *testing.T, url string) *frames {
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
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s: %d %v", url, resp.StatusCode, resp.Header)
	}
	s := bufio.NewScanner(resp.Body)
	s.Buffer(nil, 16<<20)
	return &frames{t, s}
}

// next is the next frame of a kind, passing over others.
func (f *frames) next(kind string) map[string]any {
	f.t.Helper()
	for f.scan.Scan() {
		text, ok := strings.CutPrefix(f.scan.Text(), "data: ")
		if !ok {
			continue
		}
		var frame map[string]any
		if err := json.Unmarshal([]byte(text), &frame); err != nil {
			f.t.Fatalf("%s: %v", text, err)
		}
		if frame["kind"] == kind {
			return frame
		}
	}
	f.t.Fatalf("the stream ended without a frame %s: %v", kind, f.scan.Err())
	return nil
}

func verdict(predicate, truth string) *monitor.Line {
	return &monitor.Line{Event: "verdict", Time: time.UnixMilli(5000), Synchronizer: "g", Body: &monitor.VerdictLine{Predicate: predicate, Truth: truth}}
}

// TestStream: browsers get what was before and what comes, each the same.
func TestStream(t *testing.T) {
	p, server := serve(t, "/x", &source{})
	p.PublishEvent(verdict("before", "true"))
	a, b := openStream(t, server.URL+"/x/stream"), openStream(t, server.URL+"/x/stream")
	for _, f := range []*frames{a, b} {
		if h := f.next("hello"); h["oldest"] != 1.0 || h["page"] == "" || h["dropped"] != 0.0 {
			t.Errorf("%v", h)
		}
		if e := f.next("event"); e["number"] != 1.0 || e["lane"] != "predicate before" || e["state"] != "true" || e["time"] != 5000.0 || e["text"] != "before is true" {
			t.Errorf("%v", e)
		}
		if s := f.next("status"); s["synchronizer"] != "g" || s["epoch"] != "no epoch" {
			t.Errorf("%v", s)
		}
	}
	p.PublishEvent(verdict(nasty, "false"))
	p.PublishNotice(time.UnixMilli(6000), "", strings.Repeat("é", 3000))
	p.PublishStatus(&monitor.Status{Synchronizer: "g", Epoch: 7})
	for _, f := range []*frames{a, b} {
		if e := f.next("event"); e["number"] != 2.0 || e["lane"] != "predicate "+nasty {
			t.Errorf("%v", e)
		}
		if e := f.next("event"); e["ends"] != true || e["text"] != strings.Repeat("é", 1000)+"…" {
			t.Errorf("%v", e)
		}
		if s := f.next("status"); s["epoch"] != "epoch 7" {
			t.Errorf("%v", s)
		}
		f.next("alive") // It comes where nothing else does.
	}
}

// TestHistory: a new browser gets the newest 2,000 events.
func TestHistory(t *testing.T) {
	p, server := serve(t, "", &source{})
	for range 2100 {
		p.PublishEvent(verdict("p", "true"))
	}
	f := openStream(t, server.URL+"/stream")
	if h := f.next("hello"); h["oldest"] != 101.0 {
		t.Errorf("%v", h)
	}
	if e := f.next("event"); e["number"] != 101.0 {
		t.Errorf("%v", e)
	}
	for range 3000 {
		p.PublishNotice(time.Now(), "g", strings.Repeat("x", 2000))
	}
	if e := openStream(t, server.URL+"/stream").next("event"); e["number"].(float64) < 4000 {
		t.Errorf("the history is not bounded in bytes: %v", e["number"])
	}
}

// TestSlowBrowser: a browser that reads nothing is dropped and counted, and holds up no other.
func TestSlowBrowser(t *testing.T) {
	p, server := serve(t, "", &source{})
	conn, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReaderSize(conn, 16).ReadByte(); err != nil { // The stream is open.
		t.Fatal(err)
	}
	large := &monitor.Status{Synchronizer: "g", Epoch: 1}
	for i := range 500 {
		large.Members = append(large.Members, monitor.MemberStatus{Name: strconv.Itoa(i), Why: strings.Repeat("w", 100)})
	}
	testwait.Until(t, "a browser that reads nothing to be dropped", func() bool {
		p.PublishStatus(large)
		return p.Dropped() == 1
	})
	f := openStream(t, server.URL+"/stream")
	if h := f.next("hello"); h["dropped"] != 1.0 {
		t.Errorf("%v", h)
	}
	f.next("status")
}

// TestBurst: a browser that reads gets each of many events that come at once.
func TestBurst(t *testing.T) {
	p, server := serve(t, "", &source{})
	f := openStream(t, server.URL+"/stream")
	f.next("status")
	const events = 20_000 // Some 4 MB.
	for range events {
		p.PublishEvent(verdict("p", "true"))
	}
	for i := range events {
		if e := f.next("event"); e["number"] != float64(i+1) {
			t.Fatalf("event %d is %v", i+1, e)
		}
	}
	if n := p.Dropped(); n != 0 {
		t.Errorf("%d browsers were dropped", n)
	}
}

// TestManyBrowsers: there is a limit, and a browser that has gone counts no more.
func TestManyBrowsers(t *testing.T) {
	p, server := serve(t, "", &source{})
	var bodies []io.Closer
	for range 64 {
		resp, err := http.Get(server.URL + "/stream") //nolint:noctx // Closed below.
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		bodies = append(bodies, resp.Body)
	}
	const want = "stream: 64 browsers read it already: close a tab of this page\n"
	if a := get(t, server.URL+"/stream"); a.code != http.StatusServiceUnavailable || a.text != want {
		t.Errorf("%d %s", a.code, a.text)
	}
	_ = bodies[0].Close()
	testwait.Until(t, "room for another browser", func() bool {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/stream", nil)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	if n := p.Dropped(); n != 0 {
		t.Errorf("%d that have gone count as dropped", n)
	}
}

// TestManySynchronizers: 256 are kept, and the page says so once.
func TestManySynchronizers(t *testing.T) {
	p, server := serve(t, "", &source{})
	for i := range 300 {
		p.PublishStatus(&monitor.Status{Synchronizer: fmt.Sprint("s", i)})
	}
	f := openStream(t, server.URL+"/stream")
	if e := f.next("event"); e["text"] != "256 synchronizers are shown, and the others are left out: watch one with --synchronizer" {
		t.Errorf("%v", e)
	}
	for range 256 {
		f.next("status")
	}
	p.PublishNotice(time.Now(), "", "last")
	if e := f.next("event"); e["text"] != "last" {
		t.Errorf("%v", e)
	}
}

// TestWhy asks the source for what the overview shows, and for nothing else.
func TestWhy(t *testing.T) {
	s := &source{}
	p, server := serve(t, "", s)
	p.PublishStatus(&monitor.Status{Synchronizer: "g", Group: "others", Predicates: []monitor.PredicateStatus{{Name: "b"}}})
	ask := func(synchronizer, predicate string) answer {
		r, _ := http.NewRequest(http.MethodGet, server.URL+"/why", nil) //nolint:noctx // Only for its URL.
		q := r.URL.Query()
		q.Set("group", "workers")
		q.Set("synchronizer", synchronizer)
		q.Set("predicate", predicate)
		return get(t, server.URL+"/why?"+q.Encode())
	}
	a := ask("g", "a/1")
	if a.code != http.StatusOK || !strings.Contains(a.text, `"name":"a/1"`) || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("%d %s", a.code, a.text)
	}
	if got := <-s.asked; got != "g/workers/a/1" {
		t.Errorf("asked %s", got)
	}
	if a := ask("g", nasty); a.code != http.StatusOK || strings.Contains(a.text, "<img") {
		t.Errorf("%d %s", a.code, a.text)
	}
	<-s.asked
	for _, c := range []struct {
		synchronizer, predicate string
		code                    int
		want                    string
	}{
		{"x", "a/1", http.StatusNotFound, `synchronizer "x" of group "workers": none of that name has answered: choose one of the overview`},
		{"g", "b", http.StatusNotFound, `predicate "b": synchronizer "g" has none of that name: choose one of the overview`},
		{"", "", http.StatusNotFound, `synchronizer "" of group "workers": none of that name has answered: choose one of the overview`},
		{"g", "mute", http.StatusBadGateway, `synchronizer "g" has gone`},
	} {
		if a := ask(c.synchronizer, c.predicate); a.code != c.code || a.text != c.want+"\n" {
			t.Errorf("%d %s\nwant %d %s", a.code, a.text, c.code, c.want)
		}
	}
	if got := <-s.asked; got != "g/workers/mute" || len(s.asked) > 0 {
		t.Errorf("asked %s and %d more", got, len(s.asked))
	}
}

// TestKey: values of the run need it, the files of the page do not.
func TestKey(t *testing.T) {
	s := &source{asked: make(chan string, 10)}
	p, err := web.New(web.Options{Source: s, Now: time.Now, Key: "k3y"})
	if err != nil {
		t.Fatal(err)
	}
	p.PublishStatus(&monitor.Status{Synchronizer: "g", Group: "w", Predicates: []monitor.PredicateStatus{{Name: "p"}}})
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	const want = "key: it is missing or wrong: open the URL that was printed when the page was started\n"
	for _, query := range []string{"", "?key=", "?key=k3", "?key=k3yy", "?KEY=k3y", "?key=wrong&key=k3y"} {
		for _, path := range []string{"/stream", "/why"} {
			if a := get(t, server.URL+path+query); a.code != http.StatusForbidden || a.text != want {
				t.Errorf("%s%s: %d %s", path, query, a.code, a.text)
			}
		}
	}
	if a := get(t, server.URL+"/why?group=w&synchronizer=g&predicate=p&key=k3y"); a.code != http.StatusOK {
		t.Errorf("%d %s", a.code, a.text)
	}
	openStream(t, server.URL+"/stream?key=k3y").next("status")
	if a := get(t, server.URL+"/app.js"); a.code != http.StatusOK || strings.Contains(a.text, "k3y") {
		t.Errorf("%d", a.code)
	}
}

// TestManyQuestions: browsers share an answer, and more than 16 do not wait.
func TestManyQuestions(t *testing.T) {
	s := &source{hold: make(chan struct{})}
	_, server := serve(t, "", s)
	url := server.URL + "/why?group=workers&synchronizer=g&predicate=a/1"
	codes := make(chan int, 40)
	for range 40 {
		go func() {
			resp, err := http.Get(url) //nolint:noctx // It ends with the server.
			if err != nil {
				codes <- 0
				return
			}
			_ = resp.Body.Close()
			codes <- resp.StatusCode
		}()
	}
	for range 24 {
		if code := <-codes; code != http.StatusServiceUnavailable {
			t.Errorf("more than 16 wait: %d", code)
		}
	}
	const want = "explanations: 16 are waited for already: ask again in a second\n"
	if a := get(t, url); a.text != want {
		t.Errorf("%s", a.text)
	}
	close(s.hold)
	for range 16 {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("%d", code)
		}
	}
	if n := len(s.asked); n > 15 {
		t.Errorf("16 browsers had the source asked %d times", n)
	}
}

// TestScripts has node check each script, and run the tests of the model.
func TestScripts(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node")
	}
	scripts, err := filepath.Glob("page/*.js")
	if err != nil || len(scripts) < 6 {
		t.Fatalf("%v, %v", scripts, err)
	}
	for _, s := range scripts {
		if out, err := exec.CommandContext(t.Context(), node, "--check", s).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", s, err, out)
		}
	}
	if out, err := exec.CommandContext(t.Context(), node, "testdata/model_test.mjs", "page/model.js").CombinedOutput(); err != nil || !strings.Contains(string(out), "ok") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestSize: all files of the page have at most 150 KB, compressed.
func TestSize(t *testing.T) {
	names, err := filepath.Glob("page/*")
	if err != nil || len(names) < 10 {
		t.Fatalf("%v, %v", names, err)
	}
	var packed bytes.Buffer
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		z := gzip.NewWriter(&packed)
		if _, err := z.Write(text); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if t.Logf("%d bytes", packed.Len()); packed.Len() > 150_000 {
		t.Errorf("the files of the page have %d bytes, compressed; at most 150,000 are allowed", packed.Len())
	}
}

// memberStates are two states of a member.
func memberStates(from time.Time) []*monitor.MemberState {
	ms := func(a, b int) [2]time.Time {
		return [2]time.Time{from.Add(time.Duration(a) * time.Millisecond), from.Add(time.Duration(b) * time.Millisecond)}
	}
	values := func(phase, note string) monitor.Values {
		return monitor.Values{{Name: "phase", Value: phase}, {Name: "note", Value: note}}
	}
	return []*monitor.MemberState{
		{Synchronizer: "g", Host: "h", Member: "a", Start: ms(-1, 2), End: ms(5, 6), State: values("idle", "")},
		{Synchronizer: "g", Host: "h", Member: "a", Start: ms(5, 6), End: ms(9, 9), Open: true, State: values("busy", "<b>")},
	}
}

// TestRecorded: of a run that is over a browser gets its time, all events, and the status and reasons of an instant of it.
func TestRecorded(t *testing.T) {
	from := time.UnixMilli(1_000)
	var asked []time.Time
	record := &web.Recorded{From: from, To: from.Add(time.Minute), Status: func(_ context.Context, at time.Time) ([]*monitor.Status, error) {
		asked = append(asked, at)
		if at.Equal(from) {
			return nil, errors.New("journal x: line 3: it is damaged")
		}
		return []*monitor.Status{{Synchronizer: "g", Group: "workers", Epoch: 7}}, nil
	}, States: memberStates(from)}
	p, err := web.New(web.Options{Source: &source{}, Now: time.Now, Recorded: record})
	if err != nil {
		t.Fatal(err)
	}
	p.PublishStatus(&monitor.Status{Synchronizer: "g", Group: "workers", Predicates: []monitor.PredicateStatus{{Name: "p"}}})
	server := httptest.NewServer(p)
	defer server.Close()
	get := func(path string) (int, string) {
		t.Helper()
		a := get(t, server.URL+path)
		return a.code, a.text
	}
	const states = `{"lanes":[{"synchronizer":"g","host":"h","member":"a","states":[0,2000,5000,6000,0,1,5000,6000,9000,9000,1,0]}],` +
		`"rows":[{"names":["phase","note"],"values":["busy","\u003cb\u003e"]},{"names":["phase","note"],"values":["idle",""]}],"left_out":0}`
	if code, text := get("/states"); code != http.StatusOK || text != states {
		t.Errorf("%d %s\nwant %s", code, text, states)
	}
	for range 2 { // The second answer is kept.
		if code, text := get("/status?at=31000"); code != http.StatusOK || !strings.Contains(text, `"epoch":"epoch 7"`) || !strings.Contains(text, `"time":31000`) {
			t.Errorf("%d %s", code, text)
		}
	}
	if code, text := get("/status"); code != http.StatusOK || len(asked) != 2 || !asked[0].Equal(time.UnixMilli(31_000)) || !asked[1].Equal(record.To) {
		t.Errorf("%d %s, asked %v", code, text, asked)
	}
	if code, text := get("/status?at=1000"); code != http.StatusBadGateway || text != "journal x: line 3: it is damaged\n" {
		t.Errorf("%d %s", code, text)
	}
	for _, at := range []string{"999", "61001", "-1", "1e4", "now", "31000;", "99999999999999999999", strings.Repeat("1", 100)} {
		code, text := get("/why?group=workers&synchronizer=g&predicate=p&at=" + url.QueryEscape(at))
		if want := fmt.Sprintf("at %.40q: it is no instant of the run: give milliseconds since 1970, 1000 to 61000\n", at); code != http.StatusBadRequest || text != want {
			t.Errorf("%d %swant %s", code, text, want)
		}
	}
	_, server = serve(t, "", &source{})
	if code, text := get("/states"); code != http.StatusNotFound || text != "states: the run is live: its states of members come with the stream\n" {
		t.Errorf("%d %s", code, text)
	}
	if code, text := get("/status?at=1"); code != http.StatusNotFound || text != "status: the run is live: its status comes with the stream\n" {
		t.Errorf("%d %s", code, text)
	}
	if code, text := get("/why?group=workers&synchronizer=g&predicate=mute&at=1"); code != http.StatusBadRequest || text != "at: the run is live: leave it out\n" {
		t.Errorf("%d %s", code, text)
	}
}

// TestWork: the text of the tasks is asked for once a second at most; a page that does not ask the members says what does.
func TestWork(t *testing.T) {
	asked := 0
	p, err := web.New(web.Options{Source: &source{}, Now: time.Now, Key: "k", Work: func(context.Context) (string, error) {
		if asked++; asked == 1 {
			return "", errors.New("nobody answers")
		}
		return "g: <b>3</b> tasks", nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(p)
	defer server.Close()
	if a := get(t, server.URL+"/work?key=k"); a.code != http.StatusBadGateway || a.text != "nobody answers\n" {
		t.Errorf("%+v", a)
	}
	for range 3 {
		if a := get(t, server.URL+"/work?key=k"); a.code != http.StatusOK || a.text != `"g: \u003cb\u003e3\u003c/b\u003e tasks"` {
			t.Errorf("%+v", a)
		}
	}
	if a := get(t, server.URL+"/work"); a.code != http.StatusForbidden || asked > 3 {
		t.Errorf("%+v, asked %d times", a, asked)
	}
	_, bare := serve(t, "", &source{})
	if a := get(t, bare.URL+"/work"); a.code != http.StatusNotFound || !strings.HasSuffix(a.text, "or use pegasus work status\n") {
		t.Errorf("%+v", a)
	}
}

// TestManyPredicates: of 10,000 predicates the page shows 1,000 and counts the others. Each of them can be explained, and its
// events are shown. Nothing waits for a browser.
func TestManyPredicates(t *testing.T) {
	s := &source{}
	p, server := serve(t, "", s)
	f := openStream(t, server.URL+"/stream")
	status := &monitor.Status{Synchronizer: "g", Group: "workers", Epoch: 1}
	for i := range 10_000 {
		status.Predicates = append(status.Predicates, monitor.PredicateStatus{Name: fmt.Sprintf("p%05d", i), Truth: "true", Since: new(1.0), Decision: "g/1/1", Ago: float64(10_000 - i)})
	}
	p.PublishStatus(status)
	for i := range 10_000 {
		p.PublishEvent(&monitor.Line{Synchronizer: "g", Event: "fired", Body: &monitor.VerdictLine{Predicate: status.Predicates[i].Name, Truth: "true", Firing: &monitor.Firing{}}})
	}
	f.next("status") // The empty one of serve.
	v := f.next("status")
	if shown, ok := v["predicates"].([]any); !ok || len(shown) != 1000 || v["predicates_more"] != 9000.0 {
		t.Errorf("%d predicates, and %v more", len(shown), v["predicates_more"])
	}
	if last, ok := v["decisions"].([]any); !ok || len(last) != 10 || !strings.Contains(fmt.Sprint(last[0]), "p09999") {
		t.Errorf("decisions %v", v["decisions"])
	}
	for i := range 10_000 {
		if e := f.next("event"); e["lane"] != "predicate "+status.Predicates[i].Name {
			t.Fatalf("event %d is %v", i, e)
		}
	}
	if a := get(t, server.URL+"/why?group=workers&synchronizer=g&predicate=p09999"); a.code != http.StatusOK || p.Dropped() > 0 {
		t.Errorf("%d %s, %d browsers were dropped", a.code, a.text, p.Dropped())
	}
}
