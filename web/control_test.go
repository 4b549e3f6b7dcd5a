package web_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/web"
)

// post sends a change. An empty header is left out.
func post(t *testing.T, url, body string, header map[string]string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range header {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	return send(t, r)
}

// token reads the token of the stream.
func token(t *testing.T, url string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	first := make([]byte, 512)
	n, err := resp.Body.Read(first)
	found := regexp.MustCompile(`"control":"([^"]*)"`).FindSubmatch(first[:n])
	if err != nil || found == nil {
		t.Fatalf("%v: %s", err, first[:n])
	}
	return string(found[1])
}

// TestControl attacks it: each request that a page of another site, or somebody without the key or the token, can make is refused,
// and carries nothing out. So is each change that is not whole.
func TestControl(t *testing.T) {
	var got []*web.Change
	p, err := web.New(web.Options{Source: &source{}, Now: time.Now, Key: "k", Control: func(_ context.Context, c *web.Change) ([]string, error) {
		if got = append(got, c); c.Values["limit"] == "5000" {
			return nil, errors.New(`synchronizer "g": set: params.limit does not take 5000: use 0 to 1000`)
		} else if c.Reload {
			return nil, nil
		}
		return []string{"params limit: from 1 to <2>"}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	p.PublishStatus(&monitor.Status{Synchronizer: "g", Group: "workers", Params: []monitor.ParamStatus{{Name: "limit", Value: "1", Type: "float", Range: "0 to 1000"}}})
	server := httptest.NewServer(p)
	defer server.Close()
	secret := token(t, server.URL+"/stream?key=k")
	if len(secret) < 20 {
		t.Fatalf("token %q", secret)
	}
	good := map[string]string{"Origin": server.URL, "Sec-Fetch-Site": "same-origin", "Content-Type": "application/json; charset=utf-8", "Pegasus-Token": secret}
	const change = `{"synchronizer":"g","group":"workers","values":{"limit":"2"}}`
	const notHere = "change: the request does not say that it comes from this page: use the buttons of the page\n"
	const object = ": send an object with synchronizer, group, and values, reset or reload\n"
	const what = "change: it has to set parameters or to reload the configuration: send values and reset, or reload alone\n"
	for name, c := range map[string]struct {
		path   string
		header map[string]string
		body   string
		code   int
		text   string
	}{
		"no key":               {"/control", nil, change, 403, "key: it is missing or wrong: open the URL that was printed when the page was started\n"},
		"another key":          {"/control?key=K", nil, change, 403, "key: it is missing or wrong: open the URL that was printed when the page was started\n"},
		"no token":             {"", map[string]string{"Pegasus-Token": ""}, change, 403, "change: the token is missing or old: load the page again\n"},
		"the key as token":     {"", map[string]string{"Pegasus-Token": "k"}, change, 403, "change: the token is missing or old: load the page again\n"},
		"a token of before":    {"", map[string]string{"Pegasus-Token": secret[:len(secret)-1] + "="}, change, 403, "change: the token is missing or old: load the page again\n"},
		"another site":         {"", map[string]string{"Origin": "http://evil.example"}, change, 403, `origin "http://evil.example": the page answers its own requests alone: open it in a tab of its own` + "\n"},
		"another port":         {"", map[string]string{"Origin": "http://127.0.0.1:1"}, change, 403, `origin "http://127.0.0.1:1": the page answers its own requests alone: open it in a tab of its own` + "\n"},
		"a frame in a sandbox": {"", map[string]string{"Origin": "null"}, change, 403, `origin "null": the page answers its own requests alone: open it in a tab of its own` + "\n"},
		"another name":         {"", map[string]string{"Host": "evil.example", "Origin": "http://evil.example"}, change, 403, `host "evil.example": the page answers to names of the loopback interface alone: open it as 127.0.0.1 or localhost` + "\n"},
		"no origin":            {"", map[string]string{"Origin": ""}, change, 403, notHere},
		"a form":               {"", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, change, 403, notHere},
		"another subdomain":    {"", map[string]string{"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate"}, change, 403, notHere},
		"a form's type":        {"", map[string]string{"Content-Type": "text/plain"}, change, 415, `change: its type is "text/plain": send application/json` + "\n"},
		"no type":              {"", map[string]string{"Content-Type": ""}, change, 415, `change: its type is "": send application/json` + "\n"},
		"no JSON":              {"", nil, "limit=2", 400, "change: at byte 0: invalid character 'l' looking for beginning of value" + object},
		"half":                 {"", nil, change[:20], 400, "change: at byte 0: unexpected EOF" + object},
		"two":                  {"", nil, change + change, 400, "change: at byte 62: there is text behind the object: send one object\n"},
		"an unknown key":       {"", nil, `{"verb":"stop"}`, 400, `change: at byte 15: json: unknown field "verb"` + object},
		"nothing":              {"", nil, `{"synchronizer":"g","group":"workers"}`, 400, what},
		"both":                 {"", nil, `{"synchronizer":"g","group":"workers","reset":["limit"],"reload":true}`, 400, what},
		"a large one":          {"", nil, `{"synchronizer":"` + strings.Repeat("x", 1<<17) + `"}`, 400, "change: at byte 0: http: request body too large" + object},
		"nobody":               {"", nil, `{"synchronizer":"<b>","group":"workers","reload":true}`, 404, `synchronizer "<b>" of group "workers": none of that name has answered: choose one of the overview` + "\n"},
	} {
		header := maps.Clone(good)
		maps.Copy(header, c.header)
		path := c.path
		if path == "" {
			path = "/control?key=k"
		}
		if a := post(t, server.URL+path, c.body, header); a.code != c.code || a.text != c.text {
			t.Errorf("%s: %d %swant %d %s", name, a.code, a.text, c.code, c.text)
		}
	}
	if len(got) > 0 {
		t.Fatalf("%d changes were carried out", len(got))
	}
	if a := get(t, server.URL+"/control?key=k", "Pegasus-Token", secret); a.code != http.StatusMethodNotAllowed {
		t.Errorf("a request to read: %d", a.code)
	}
	if a := do(t, http.MethodOptions, server.URL+"/control?key=k", "Origin", "http://evil.example"); a.code != http.StatusForbidden || a.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("another site asks first: %d %v", a.code, a.header)
	}
	for body, want := range map[string]string{
		change: `["params limit: from 1 to \u003c2\u003e"]` + "\n",
		`{"synchronizer":"g","group":"workers","reload":true}`:             "[]\n",
		`{"synchronizer":"g","group":"workers","values":{"limit":"5000"}}`: `synchronizer "g": set: params.limit does not take 5000: use 0 to 1000` + "\n",
	} {
		if a := post(t, server.URL+"/control?key=k", body, good); a.text != want {
			t.Errorf("%s: %d %swant %s", body, a.code, a.text, want)
		}
	}
	if len(got) != 3 {
		t.Errorf("%d changes were carried out", len(got))
	}
}

// TestNoControl: without the option the page only reads. It has no token.
func TestNoControl(t *testing.T) {
	p, server := serve(t, "", &source{})
	p.PublishStatus(&monitor.Status{Synchronizer: "g", Group: "workers"})
	if text := token(t, server.URL+"/stream"); text != "" {
		t.Errorf("token %q", text)
	}
	a := post(t, server.URL+"/control", `{"synchronizer":"g","group":"workers","reload":true}`, map[string]string{"Origin": server.URL, "Content-Type": "application/json"})
	if want := "change: the page only reads: start pegasus ui with --allow-control\n"; a.code != http.StatusForbidden || a.text != want {
		t.Errorf("%d %swant %s", a.code, a.text, want)
	}
}

// TestControlOfOneAtATime: a change waits for a question that is asked.
func TestControlOfOneAtATime(t *testing.T) {
	var asked int
	s := &source{asked: make(chan string, 1), hold: make(chan struct{})}
	p, err := web.New(web.Options{Source: s, Now: time.Now, Control: func(context.Context, *web.Change) ([]string, error) {
		asked++
		return nil, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	p.PublishStatus(&monitor.Status{Synchronizer: "g", Group: "workers", Predicates: []monitor.PredicateStatus{{Name: "p"}}})
	server := httptest.NewServer(p)
	defer server.Close()
	secret := token(t, server.URL+"/stream")
	why := make(chan answer, 1)
	go func() { why <- get(t, server.URL+"/why?group=workers&synchronizer=g&predicate=p") }()
	<-s.asked
	done := make(chan answer, 1)
	go func() {
		done <- post(t, server.URL+"/control", `{"synchronizer":"g","group":"workers","reload":true}`, map[string]string{"Origin": server.URL, "Content-Type": "application/json", "Pegasus-Token": secret})
	}()
	select {
	case a := <-done:
		t.Errorf("%+v beside a question", a)
	default:
	}
	close(s.hold)
	if a := <-why; a.code != http.StatusOK {
		t.Errorf("%+v", a)
	}
	if a := <-done; a.code != http.StatusOK || asked != 1 {
		t.Errorf("%+v, asked %d times", a, asked)
	}
}
