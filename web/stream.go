package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gopegasus/pegasus/monitor"
)

const (
	maxBrowsers      = 64      // streams at the same time
	maxWaiting       = 8 << 20 // bytes that may wait for a browser; then it is dropped
	maxSynchronizers = 256     // whose status is kept
	maxHistory       = 2_000   // events that a new browser gets
	maxHistoryBytes  = 2 << 20 // that these have
	maxRecord        = 20_000  // events of a recorded run that a browser gets
	maxRecordBytes   = 16 << 20
	maxText          = 2_000 // bytes of the text of an event
	aliveEvery       = 2 * time.Second
	writeTime        = 10 * time.Second // that a browser has to take a frame
)

// stream shares what the page is given among browsers.
type stream struct {
	mu       sync.Mutex
	browsers map[*browser]struct{}
	latest   map[name]*standing
	history  [][]byte // frames of events, oldest first
	bytes    int      // of history
	number   uint64   // of the newest event
	dropped  uint64   // browsers that read too slowly
	full     bool     // a synchronizer beyond maxSynchronizers was left out
	record   *span    // nil: the run is live
	lanes    liveLanes
	token    string // for changes; empty: the page only reads
}

// span is the time of a recorded run, in milliseconds since 1970.
type span struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// browser is one reader of the stream. The lock of the stream guards its fields.
type browser struct {
	frames  [][]byte      // that it has not taken
	bytes   int           // of frames
	dropped bool          // it gets nothing more
	wake    chan struct{} // has a token if frames wait, or it is dropped
}

// name names a synchronizer.
type name struct{ group, synchronizer string }

// standing is the newest status of a synchronizer.
type standing struct {
	at         time.Time
	view       *statusView
	predicates map[string]bool
	waits      time.Time // since when it was seen without an epoch; zero: it has one
}

// hello is the first frame of a stream.
type hello struct {
	Kind    string `json:"kind"`
	Page    string `json:"page"`    // another one after the page was started again
	Oldest  uint64 `json:"oldest"`  // number of the first event that follows
	Dropped uint64 `json:"dropped"` // browsers that read too slowly, so far
	Record  *span  `json:"record"`  // null: the run is live
	Control string `json:"control"` // the token for changes; empty: the page only reads
}

// eventView is an event as browsers get it.
type eventView struct {
	Kind         string `json:"kind"`
	Number       uint64 `json:"number"` // from 1 without a gap
	Time         int64  `json:"time"`   // in milliseconds since 1970, by the clock of the synchronizer's process
	Synchronizer string `json:"synchronizer"`
	Event        string `json:"event"`
	Lane         string `json:"lane"`            // that it belongs to
	State        string `json:"state,omitempty"` // that begins with it in its lane; empty: it is a mark
	Mark         bool   `json:"mark"`            // it is drawn as a mark
	Ends         bool   `json:"ends,omitempty"`  // from here on nothing is known of the other lanes
	Text         string `json:"text"`
}

// PublishStatus shows the status of a synchronizer from now on. The page keeps nothing of it.
func (p *Page) PublishStatus(s *monitor.Status) {
	if p.stream.setStatus(p.now(), s) {
		return
	}
	p.PublishNotice(p.now(), "", fmt.Sprintf("%d synchronizers are shown, and the others are left out: watch one with --synchronizer", maxSynchronizers))
}

// setStatus returns false when it leaves out a synchronizer for the first time.
func (st *stream) setStatus(now time.Time, s *monitor.Status) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	n := name{s.Group, s.Synchronizer}
	k := st.latest[n]
	if k == nil {
		if len(st.latest) >= maxSynchronizers {
			first := !st.full
			st.full = true
			return !first
		}
		if st.latest == nil {
			st.latest = map[name]*standing{}
		}
		k = &standing{}
		st.latest[n] = k
	}
	switch {
	case s.Epoch > 0:
		k.waits = time.Time{}
	case k.waits.IsZero():
		k.waits = now
	}
	k.at, k.predicates = now, map[string]bool{}
	for i := range s.Predicates {
		k.predicates[s.Predicates[i].Name] = true
	}
	if s.Balance != nil {
		k.predicates[balanceName] = true
	}
	k.view = newStatusView(s, now.Sub(k.waits))
	k.view.Time = now.UnixMilli()
	st.send(encode(k.view))
	if st.record == nil {
		at := s.Time
		if at.IsZero() { // It is of a release before.
			at = now
		}
		if v := st.lanes.note(at, s); v != nil {
			st.send(encode(v))
		}
	}
	return true
}

// PublishEvent shows an event.
func (p *Page) PublishEvent(l *monitor.Line) {
	e := eventView{Time: l.Time.UnixMilli(), Synchronizer: l.Synchronizer, Event: l.Event, Text: l.String()}
	e.Lane, e.State, e.Mark, e.Ends = placeEvent(l)
	p.stream.add(e)
}

// PublishNotice shows what the program that has the values says itself, such as that a
// server is away. From may be empty. The page forgets its knowledge of that synchronizer, or of all, at this notice.
func (p *Page) PublishNotice(at time.Time, from, text string) {
	p.stream.add(eventView{Time: at.UnixMilli(), Synchronizer: from, Event: "notice", Lane: "messages", Mark: true, Ends: true, Text: text})
}

// Dropped is how many browsers were dropped because they read too slowly.
func (p *Page) Dropped() uint64 {
	p.stream.mu.Lock()
	defer p.stream.mu.Unlock()
	return p.stream.dropped
}

func (st *stream) add(e eventView) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.number++
	e.Kind, e.Number = "event", st.number
	if len(e.Text) > maxText {
		e.Text = strings.ToValidUTF8(e.Text[:maxText], "") + "…"
	}
	frame := encode(e)
	st.history = append(st.history, frame)
	st.bytes += len(frame)
	most, mostBytes := maxHistory, maxHistoryBytes
	if st.record != nil {
		most, mostBytes = maxRecord, maxRecordBytes
	}
	for len(st.history) > most || st.bytes > mostBytes {
		st.bytes -= len(st.history[0])
		st.history[0] = nil
		st.history = st.history[1:]
	}
	st.send(frame)
}

// send is called with the lock held. Browsers share the frame.
func (st *stream) send(frame []byte) {
	for b := range st.browsers {
		if b.bytes+len(frame) > maxWaiting {
			st.dropLocked(b)
			continue
		}
		b.frames = append(b.frames, frame)
		b.bytes += len(frame)
		b.rouse()
	}
}

func (b *browser) rouse() {
	select {
	case b.wake <- struct{}{}:
	default: // It is awake already.
	}
}

// drop ends a browser that reads too slowly.
func (st *stream) drop(b *browser) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.dropLocked(b)
}

func (st *stream) dropLocked(b *browser) {
	if _, there := st.browsers[b]; there {
		delete(st.browsers, b)
		b.dropped, b.frames = true, nil
		st.dropped++
		b.rouse()
	}
}

// takeFrames returns the frames that wait for a browser, and false if it is dropped.
func (st *stream) takeFrames(b *browser) ([][]byte, bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	frames := b.frames
	b.frames, b.bytes = nil, 0
	return frames, !b.dropped
}

// check fails if the synchronizer is not known or has no such predicate.
func (st *stream) check(q question) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	k := st.latest[q.name]
	if k == nil {
		return fmt.Errorf("synchronizer %q of group %q: none of that name has answered: choose one of the overview", q.synchronizer, q.group)
	}
	if !k.predicates[q.predicate] {
		return fmt.Errorf("predicate %q: synchronizer %q has none of that name: choose one of the overview", q.predicate, q.synchronizer)
	}
	return nil
}

// open adds a browser, and returns the frames that it gets first. It returns nil if
// there are too many.
func (st *stream) open(now time.Time, page string) (b *browser, first [][]byte) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if len(st.browsers) >= maxBrowsers {
		return nil, nil
	}
	if st.browsers == nil {
		st.browsers = map[*browser]struct{}{}
	}
	b = &browser{wake: make(chan struct{}, 1)}
	st.browsers[b] = struct{}{}
	first = append(first, encode(hello{"hello", page, st.number - uint64(len(st.history)) + 1, st.dropped, st.record, st.token}))
	first = append(first, st.history...)
	for _, k := range st.latest {
		v := *k.view
		v.Age = now.Sub(k.at).Milliseconds()
		first = append(first, encode(v))
	}
	if st.record == nil {
		first = append(first, encode(st.lanes.all(now)))
	}
	return b, first
}

func (st *stream) close(b *browser) {
	st.mu.Lock()
	defer st.mu.Unlock()
	delete(st.browsers, b)
}

// encode makes a frame of a view, which always has a JSON form.
func encode(view any) []byte {
	text, err := json.Marshal(view)
	if err != nil {
		panic(fmt.Sprintf("web: a view without a JSON form: %v", err))
	}
	return slices.Concat([]byte("data: "), text, []byte("\n\n"))
}

// serveStream sends Server-Sent Events until the browser has gone or is dropped.
func (p *Page) serveStream(w http.ResponseWriter, r *http.Request) {
	b, first := p.stream.open(p.now(), p.id)
	if b == nil {
		http.Error(w, fmt.Sprintf("stream: %d browsers read it already: close a tab of this page", maxBrowsers), http.StatusServiceUnavailable)
		return
	}
	defer p.stream.close(b)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // A proxy must not keep it back.
	c := http.NewResponseController(w)
	write := func(frames ...[]byte) bool {
		var err error
		for _, f := range frames {
			if err = c.SetWriteDeadline(p.now().Add(writeTime)); err == nil {
				_, err = w.Write(f)
			}
			if err != nil {
				break
			}
		}
		if err == nil {
			err = c.Flush()
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			p.stream.drop(b)
		}
		return err == nil
	}
	alive := time.NewTicker(aliveEvery)
	defer alive.Stop()
	for ok := write(first...); ok; {
		select {
		case <-b.wake:
			var frames [][]byte
			if frames, ok = p.stream.takeFrames(b); ok {
				ok = write(frames...)
			}
		case <-alive.C:
			ok = write([]byte("data: {\"kind\":\"alive\"}\n\n"))
		case <-r.Context().Done():
			return
		}
	}
}
