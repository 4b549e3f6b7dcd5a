package work

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/link"
	"github.com/gopegasus/pegasus/scgs"
)

// group is a group of members without a network: what a synchronizer and a server do for them. It
// declares the end of a phase by the default condition, looked at whenever a member tells something.
type group struct {
	begin time.Time

	mu      sync.Mutex
	section *config.Work
	epoch   uint64
	phase   uint64
	links   []*fakeLink // in the roster, by name
	ends    int
	tells   int
	reports []string             // what members answer who ask how the space stands
	lose    func(to string) bool // drops a message; nil: none
}

func newGroup(section config.Work) *group {
	return &group{begin: time.Now(), section: &section, phase: 1}
}

// fakeLink is one life of a member.
type fakeLink struct {
	g    *group
	self link.Peer

	orders chan string // to move objects
	// Guarded by the lock of the group:
	watcher *link.Watcher
	entered bool
	over    chan struct{}             // closed when the phase is over
	inboxes map[string]chan [2]string // by subject
	told    map[string]scgs.Value
}

// join adds a life of a member to the roster.
func (g *group) join(name string, life uint64) *fakeLink {
	l := &fakeLink{g: g, self: link.Peer{Name: name, Life: life}, orders: make(chan string), over: make(chan struct{}), told: map[string]scgs.Value{}, inboxes: map[string]chan [2]string{}}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.links = append(g.links, l)
	slices.SortFunc(g.links, func(a, b *fakeLink) int { return strings.Compare(a.self.Name, b.self.Name) })
	g.newRoster(nil)
	return l
}

// leave takes a life out of the roster.
func (g *group) leave(l *fakeLink) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.links = slices.DeleteFunc(g.links, func(o *fakeLink) bool { return o == l })
	g.newRoster(l)
	g.judge()
}

func (g *group) newRoster(gone *fakeLink) {
	g.epoch++
	for _, l := range append(slices.Clone(g.links), gone) {
		if l != nil && l.watcher != nil {
			l.watcher.Roster(g.roster())
		}
	}
}

func (g *group) roster() link.Roster {
	r := link.Roster{Epoch: g.epoch, Phase: g.phase}
	for _, l := range g.links {
		r.Peers = append(r.Peers, l.self)
	}
	return r
}

// judge declares the end of a phase.
func (g *group) judge() {
	awaits := false
	for _, l := range g.links {
		if !l.entered || !l.told["work.idle"].Bool() || !l.told["work.settled"].Bool() || uint64(l.told["work.phase"].Int()) != g.phase {
			return
		}
		awaits = awaits || l.told["work.awaits"].Bool()
	}
	if !awaits {
		return
	}
	g.phase++
	g.ends++
	for _, l := range g.links {
		close(l.over)
		l.over, l.entered = make(chan struct{}), false
	}
}

func (l *fakeLink) Self() link.Peer       { return l.self }
func (l *fakeLink) Section() *config.Work { return l.g.section }
func (l *fakeLink) Subject(member string) string {
	return "work." + member + "." + l.self.Name
}
func (l *fakeLink) Own() string                   { return "work." + l.self.Name + ".*" }
func (l *fakeLink) Status() (asked, told string)  { return "asked", "told." + l.self.Name }
func (l *fakeLink) Now() clocksync.Instant        { return clocksync.Instant(time.Since(l.g.begin)) }
func (l *fakeLink) Log() *slog.Logger             { return slog.New(slog.DiscardHandler) }
func (l *fakeLink) Group() (tenant, group string) { return "default", "g" }

func (l *fakeLink) Host() string { return "h" }

func (l *fakeLink) State(row []scgs.Value) (scgs.Schema, []scgs.Value, bool) { return nil, row, false }

func (l *fakeLink) Watch(w link.Watcher) (func(), error) {
	l.g.mu.Lock()
	defer l.g.mu.Unlock()
	l.watcher = &w
	w.Roster(l.g.roster())
	return func() {
		l.g.mu.Lock()
		defer l.g.mu.Unlock()
		l.watcher = nil
	}, nil
}

var fields = []string{"work.idle", "work.settled", "work.awaits", "work.phase", "work.queued", "work.running", "work.open", "work.stuck", "work.objects", "work.slots", "work.moved", "work.calls"}

func (l *fakeLink) Tell(fill link.Fill) error {
	l.g.mu.Lock()
	defer l.g.mu.Unlock()
	for _, name := range fields {
		if v, ok := fill(scgs.Field{Name: name}); ok {
			l.told[name] = v
		}
	}
	l.g.tells++
	l.g.judge()
	return nil
}

func (l *fakeLink) Await(ctx context.Context, entered func()) error {
	l.g.mu.Lock()
	l.entered = true
	over := l.over
	l.g.mu.Unlock()
	entered()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *fakeLink) Orders(ctx context.Context, handle func(orders string)) error {
	for {
		select {
		case text := <-l.orders:
			handle(text)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *fakeLink) Connect(context.Context) (link.Conn, error) {
	return &fakeConn{l: l, done: make(chan struct{})}, nil
}

// fakeConn delivers messages in order.
type fakeConn struct {
	l       *fakeLink
	done    chan struct{}
	running sync.WaitGroup
}

func (c *fakeConn) Publish(subject string, data []byte) error {
	c.l.g.mu.Lock()
	defer c.l.g.mu.Unlock()
	if c.l.g.lose != nil && c.l.g.lose(subject) {
		return nil
	}
	if strings.HasPrefix(subject, "told.") {
		c.l.g.reports = append(c.l.g.reports, string(data))
	}
	for _, l := range c.l.g.links {
		if inbox := cmp.Or(l.inboxes[subject], l.inboxes[subject[:max(strings.LastIndexByte(subject, '.'), 0)]+".*"]); inbox != nil {
			select {
			case inbox <- [2]string{subject, string(data)}:
			default: // It is too slow.
			}
		}
	}
	return nil
}

func (c *fakeConn) Subscribe(subject string, handle func(string, []byte)) error {
	inbox := make(chan [2]string, 1<<16)
	c.l.g.mu.Lock()
	c.l.inboxes[subject] = inbox
	c.l.g.mu.Unlock()
	c.running.Go(func() {
		for {
			select {
			case m := <-inbox:
				handle(m[0], []byte(m[1]))
			case <-c.done:
				return
			}
		}
	})
	return nil
}

func (c *fakeConn) Flush(context.Context) error { return nil }

func (c *fakeConn) Close() error {
	close(c.done)
	c.running.Wait()
	return nil
}

// space opens a space for a new member of the group.
func (g *group) space(t *testing.T, name string, options ...Option) *Space {
	t.Helper()
	s, _ := g.spaceOf(t, name, 1, options...)
	return s
}

func (g *group) spaceOf(t *testing.T, name string, life uint64, options ...Option) (*Space, *fakeLink) {
	t.Helper()
	l := g.join(name, life)
	s, err := open(t.Context(), l, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, l
}
