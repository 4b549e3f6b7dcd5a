package web

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/monitor"
)

// Source answers the questions of a page.
type Source interface {
	// Explain explains a predicate of the synchronizer with that name and group: as it is now, or as it was at an instant
	// of a recorded run. The page calls it on one goroutine at a time.
	Explain(ctx context.Context, synchronizer, group, predicate string, at time.Time) (*monitor.Explanation, error)
}

// Recorded is a run that is over.
type Recorded struct {
	From, To time.Time // by the wall clock of the recording host
	// Status tells where each synchronizer stood at an instant. The page calls it on one goroutine at a time, and not beside
	// Explain.
	Status func(ctx context.Context, at time.Time) ([]*monitor.Status, error)
	// States come from the members, each after the states that ended before it. The page shows the last 100,000. New reads them.
	States []*monitor.MemberState
}

// Options configure a page.
type Options struct {
	Source Source           // required
	Now    func() time.Time // reads the wall clock; required
	// Key is what a browser needs to get values of the run, behind #key= in the URL that it opens;
	// empty: nothing.
	Key string
	// Prefix is the path that the page lies under, such as "/pegasus"; empty for "/".
	Prefix string
	// Work tells how the tasks of the groups stand, as text; nil: the page does not say. The page calls it on one goroutine at
	// a time, and not beside Explain.
	Work func(ctx context.Context) (string, error)
	// Control carries out a change of the run, and returns a text for each difference. Nil: the page only reads. The page calls it
	// on one goroutine at a time, and not beside Explain. Anyone with the key can call it.
	Control func(ctx context.Context, c *Change) ([]string, error)
	// Recorded is set if the run is over: browsers choose an instant of it. Nil: it is live.
	Recorded *Recorded
	// Reading is set if the run is over and not read yet: until [Page.Open], browsers show its text, which says how far
	// reading is. It is called on any goroutine.
	Reading func() string
}

const (
	policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	maxQuestions = 16               // explanations that may be waited for at the same time
	maxAnswers   = 256              // that are kept
	explainedFor = time.Second      // how long browsers share an explanation
	answerTime   = 30 * time.Second // that a browser has to take an answer; a stream sets its own
	explainTime  = 8 * time.Second  // how long one may take
	recordTime   = 2 * time.Minute  // the same, if a run has to be stepped through again
)

//go:embed page
var files embed.FS

// types are the kinds of the files; the tables of the system may have others.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
}

// Page shows a run. Its methods may be called on any goroutine.
type Page struct {
	source Source
	record *Recorded // nil: the run is live
	work   func(ctx context.Context) (string, error)
	// control is nil if the page only reads. Requests for it need the token.
	control func(ctx context.Context, c *Change) ([]string, error)
	token   string
	now     func() time.Time
	states  []byte // of members, for browsers; nil: the run is live
	key     string // empty: none
	id      string // of this life of the page
	routes  http.Handler
	reading func() string // see Options
	opened  chan struct{} // closed when values of the run can be shown

	stream stream
	turn   chan struct{} // holds a token while Source is asked
	asked  chan struct{} // holds a token for each question that waits or is asked

	explained map[question]explained // guarded by turn
}

// question asks why of a predicate. Without a predicate it asks for the status of all synchronizers at an instant, and for that
// of the work now.
type question struct {
	name

	predicate string
	at        int64 // in milliseconds since 1970; 0: now
}

type explained struct {
	at   time.Time
	text []byte
}

// New returns a page without values. It fails if the prefix is no path.
func New(o Options) (*Page, error) {
	prefix := strings.TrimSuffix(o.Prefix, "/")
	if prefix != "" && (prefix[0] != '/' || prefix == "/" || path.Clean(prefix) != prefix || strings.ContainsAny(prefix, "{}?#% ")) {
		return nil, fmt.Errorf("prefix %q: the page cannot lie there: give a path such as /pegasus", o.Prefix)
	}
	p := &Page{
		source: o.Source, work: o.Work, now: o.Now, key: o.Key, id: rand.Text(), turn: make(chan struct{}, 1), asked: make(chan struct{}, maxQuestions),
		explained: map[question]explained{}, reading: o.Reading, opened: make(chan struct{}),
	}
	if o.Control != nil {
		p.control, p.token = o.Control, rand.Text()
		p.stream.token = p.token
	}
	switch {
	case o.Recorded != nil:
		if err := p.Open(o.Recorded); err != nil {
			return nil, err
		}
	case o.Reading == nil:
		close(p.opened)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /stream", p.needKey(p.serveStream))
	mux.HandleFunc("GET /why", p.needKey(p.serveWhy))
	mux.HandleFunc("GET /status", p.needKey(p.serveStatus))
	mux.HandleFunc("GET /states", p.needKey(p.serveStates))
	mux.HandleFunc("GET /work", p.needKey(p.serveWork))
	mux.HandleFunc("POST /control", p.needKey(p.serveControl))
	mux.HandleFunc("GET /{$}", serveFile("index.html"))
	entries, err := files.ReadDir("page")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		mux.HandleFunc("GET /"+e.Name(), serveFile(e.Name()))
	}
	p.routes = mux
	if prefix != "" {
		outer := http.NewServeMux()
		outer.Handle(prefix+"/", http.StripPrefix(prefix, mux))
		p.routes = outer // Which redirects from the prefix without a slash.
	}
	return p, nil
}

// Open shows a run that has been read, on a page with [Options.Reading]. It is called once, before the other methods.
func (p *Page) Open(recorded *Recorded) error {
	r := *recorded
	r.From, r.To = r.From.Truncate(time.Millisecond), r.To.Add(time.Millisecond-1).Truncate(time.Millisecond) // Browsers choose milliseconds.
	var err error
	if p.states, err = encodeStates(&r); err != nil {
		return err
	}
	r.States = nil
	p.record, p.stream.record = &r, &span{r.From.UnixMilli(), r.To.UnixMilli()}
	close(p.opened)
	return nil
}

// needKey guards values of the run; the files of the page are no secret.
func (p *Page) needKey(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if p.key != "" && subtle.ConstantTimeCompare([]byte(r.URL.Query().Get("key")), []byte(p.key)) == 0 {
			http.Error(w, "key: it is missing or wrong: open the URL that was printed when the page was started", http.StatusForbidden)
			return
		}
		select {
		case <-p.opened:
			serve(w, r)
		default:
			p.serveReading(w, r)
		}
	}
}

// readingAgain is after how many milliseconds a browser asks again how far reading is.
const readingAgain = 500

// serveReading says how far reading is: a stream has one frame and ends, and the browser opens it again.
func (p *Page) serveReading(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/stream" {
		http.Error(w, p.reading()+": wait until it is done", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = fmt.Fprintf(w, "retry: %d\n%s", readingAgain, encode(struct { // The browser may be gone.
		Kind string `json:"kind"`
		Text string `json:"text"`
	}{"reading", p.reading()}))
}

func serveFile(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", types[path.Ext(name)])
		http.ServeFileFS(w, r, files, "page/"+name)
	}
}

// ServeHTTP implements http.Handler.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	_ = http.NewResponseController(w).SetWriteDeadline(p.now().Add(answerTime)) // A writer without deadlines has no slow reader.
	if err := checkOrigin(r); err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	p.routes.ServeHTTP(w, r)
}

// checkOrigin refuses names that are not of the loopback interface, so that no name of
// another site can be made to lead here, and requests that pages of other sites make. A
// link on another site may still lead to the page itself.
func checkOrigin(r *http.Request) error {
	if !isLoopback(r.Host) {
		return fmt.Errorf("host %q: the page answers to names of the loopback interface alone: open it as 127.0.0.1 or localhost", r.Host)
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		if u, err := url.Parse(origin); err != nil || u.Scheme == "" || u.Host != r.Host {
			return fmt.Errorf("origin %q: the page answers its own requests alone: open it in a tab of its own", origin)
		}
	}
	site := r.Header.Get("Sec-Fetch-Site")
	if site != "" && site != "same-origin" && site != "none" && r.Header.Get("Sec-Fetch-Mode") != "navigate" {
		return fmt.Errorf("request of another page (Sec-Fetch-Site: %s): the page answers its own requests alone: open it in a tab of its own", site)
	}
	return nil
}

func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// serveWhy answers with a whyView.
func (p *Page) serveWhy(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	q := question{name: name{query.Get("group"), query.Get("synchronizer")}, predicate: query.Get("predicate")}
	if err := p.stream.check(q); err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	p.serveAnswer(w, r, q)
}

// serveStatus answers with the statuses at an instant of a recorded run.
func (p *Page) serveStatus(w http.ResponseWriter, r *http.Request) {
	if p.record == nil {
		http.Error(w, "status: the run is live: its status comes with the stream", http.StatusNotFound)
		return
	}
	p.serveAnswer(w, r, question{})
}

// serveWork answers with a text, as JSON.
func (p *Page) serveWork(w http.ResponseWriter, r *http.Request) {
	if p.work == nil {
		http.Error(w, "work: this page does not ask the members: open the page of pegasus ui for a live run, or use pegasus work status", http.StatusNotFound)
		return
	}
	p.serveAnswer(w, r, question{})
}

// serveAnswer answers a question about now, or about the instant that the request names.
func (p *Page) serveAnswer(w http.ResponseWriter, r *http.Request, q question) {
	var err error
	if q.at, err = p.instant(r.URL.Query().Get("at")); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	select {
	case p.asked <- struct{}{}:
		defer func() { <-p.asked }()
	default:
		http.Error(w, fmt.Sprintf("explanations: %d are waited for already: ask again in a second", maxQuestions), http.StatusServiceUnavailable)
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(p.now().Add(p.patience() + answerTime)) // As above.
	text, err := p.answer(r.Context(), q)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // The browser may be gone.
}

// patience is how long an answer may take.
func (p *Page) patience() time.Duration {
	if p.record != nil {
		return recordTime
	}
	return explainTime
}

// instant reads an instant of a recorded run. It is the end of the run if the text is empty, and 0 if the run is live.
func (p *Page) instant(text string) (int64, error) {
	switch {
	case p.record == nil && text == "":
		return 0, nil
	case p.record == nil:
		return 0, errors.New("at: the run is live: leave it out")
	case text == "":
		return p.record.To.UnixMilli(), nil
	}
	at, err := strconv.ParseInt(text, 10, 64)
	if from, to := p.record.From.UnixMilli(), p.record.To.UnixMilli(); err != nil || at < from || at > to {
		return 0, fmt.Errorf("at %.40q: it is no instant of the run: give milliseconds since 1970, %d to %d", text, from, to)
	}
	return at, nil
}

// answer asks the source, unless it has just answered the same question. Answers about a recorded run do not grow old.
func (p *Page) answer(ctx context.Context, q question) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, p.patience())
	defer cancel()
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return nil, errors.New("explanation: other questions took too long: ask again in a second")
	}
	for old, e := range p.explained {
		if q.at == 0 && p.now().Sub(e.at) > explainedFor || len(p.explained) >= maxAnswers {
			delete(p.explained, old)
		}
	}
	e, ok := p.explained[q]
	if ok {
		return e.text, nil
	}
	view, err := p.view(ctx, q)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(view)
	if err != nil {
		return nil, err
	}
	p.explained[q] = explained{p.now(), text}
	return text, nil
}

// view is the answer to a question.
func (p *Page) view(ctx context.Context, q question) (any, error) {
	at := time.Time{}
	if q.at != 0 {
		at = time.UnixMilli(q.at)
	}
	if q.predicate != "" {
		answer, err := p.source.Explain(ctx, q.synchronizer, q.group, q.predicate, at)
		if err != nil {
			return nil, err
		}
		return newWhyView(answer), nil
	}
	if q.at == 0 {
		return p.work(ctx)
	}
	list, err := p.record.Status(ctx, at)
	if err != nil {
		return nil, err
	}
	views := []*statusView{}
	for _, s := range list {
		v := newStatusView(s, 0)
		v.Time = q.at
		views = append(views, v)
	}
	return views, nil
}
