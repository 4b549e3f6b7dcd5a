package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gopegasus/pegasus/balance"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/gostate"
	"github.com/gopegasus/pegasus/internal/link"
	"github.com/gopegasus/pegasus/internal/reading"
	"github.com/gopegasus/pegasus/internal/telemetry"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// linked is what a member knows of the section work and of the others. It is guarded by the lock.
type linked struct {
	told    agentcore.Roster
	section *config.Work  // of told; nil: there is none
	ready   chan struct{} // closed when there was one
	work    filled
	life    uint64    // the first that was taken in
	watcher *watching // nil: nobody watches
}

// Link gives the package work what it needs of the member. It fails with [ErrClosed], or if the
// group's synchronizer has no section work. Programs use the package work instead.
func (m *Member) Link() (link.Link, error) {
	m.mu.Lock()
	closed, works, ready := m.closed, m.hasWork(), m.link.ready
	m.mu.Unlock()
	switch {
	case closed:
		return nil, ErrClosed
	case !works:
		return nil, m.noSection()
	}
	timeout := time.NewTimer(m.cfg.JoinTimeout)
	defer timeout.Stop()
	select { // Usually it came before the welcome.
	case <-ready:
		return linkOf{m}, nil
	case <-m.stop:
		return nil, ErrClosed
	case <-timeout.C:
		return nil, fmt.Errorf("agent: member %q: %w: the section work of group %q did not come within %v; try again", m.cfg.Name, ErrNoSynchronizer, m.cfg.Group, m.cfg.JoinTimeout)
	}
}

func (m *Member) noSection() error {
	return fmt.Errorf("agent: member %q: the synchronizer of group %q shares no tasks: add `work: {}` to its section of the configuration", m.cfg.Name, m.cfg.Group)
}

// hasWork reports whether there is a section work. The lock is held.
func (m *Member) hasWork() bool { return m.link.section != nil || m.core.Works() }

// onPeers takes a piece of the roster.
func (m *Member) onPeers(p *wire.Peers) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.Member != "" && p.Member != m.cfg.Name {
		return &wire.FrameError{Kind: wire.KindPeers, Field: "member", Reason: "the peers are for another member"}
	}
	if s := m.core.Synchronizer(); s != "" && (p.Synchronizer != s || p.Term < m.term) || m.closed {
		return nil
	}
	k := &m.link
	roster, section, lacks := k.told.Take(p)
	var err error
	if section {
		err = m.newSection()
	}
	if roster {
		k.watcher.addCall(linkNews{roster: m.roster()})
	}
	if lacks && m.answered {
		m.stepInput(&agentcore.Input{Kind: agentcore.InGreet})
	}
	return err
}

// newSection takes over the section that the synchronizer sent. The lock is held.
func (m *Member) newSection() error {
	k := &m.link
	var section *config.Work
	if k.told.Hash != 0 {
		section = &config.Work{}
		if err := json.Unmarshal(k.told.Section, section); err != nil {
			return &wire.FrameError{Kind: wire.KindPeers, Field: "section", Reason: err.Error()}
		}
	}
	if k.section = section; section != nil {
		select {
		case <-k.ready:
		default:
			close(k.ready)
		}
	}
	k.watcher.addCall(linkNews{section: section, ofSection: true})
	return nil
}

// linkWelcomed takes the synchronizer's answer to a hello. An answer without a section work removes the
// section. An answer that drops or refuses the member takes it off the roster. The lock is held.
func (m *Member) linkWelcomed(w *wire.Welcome, reception agentcore.Reception) {
	k := &m.link
	switch reception { //nolint:exhaustive // The others change nothing.
	case agentcore.Accepted:
		k.life = cmp.Or(k.life, m.core.Life())
		if w.Work == 0 && k.section != nil {
			k.told.Section, k.told.Hash = nil, 0
			_ = m.newSection() // There is nothing to decode.
		}
	case agentcore.Dropped, agentcore.Refused:
		self := m.self()
		peers := slices.DeleteFunc(slices.Clone(k.told.Told.Peers), func(p wire.Peer) bool { return link.Peer(p) == self })
		if len(peers) < len(k.told.Told.Peers) {
			k.told.Told.Peers = peers
			k.watcher.addCall(linkNews{roster: m.roster()})
		}
	}
}

// self is this life of the member. The lock is held.
func (m *Member) self() link.Peer { return link.Peer{Name: m.cfg.Name, Life: m.link.life} }

// roster is the newest. The lock is held.
func (m *Member) roster() *link.Roster {
	t := &m.link.told.Told
	r := &link.Roster{Epoch: t.Epoch, Phase: max(t.Phase, 1), Peers: make([]link.Peer, len(t.Peers))}
	for i, p := range t.Peers {
		r.Peers[i] = link.Peer(p)
	}
	return r
}

// linkOf is the link of a member.
type linkOf struct{ m *Member }

// Self implements [link.Link].
func (k linkOf) Self() link.Peer {
	k.m.mu.Lock()
	defer k.m.mu.Unlock()
	return k.m.self()
}

// Section implements [link.Link].
func (k linkOf) Section() *config.Work {
	k.m.mu.Lock()
	defer k.m.mu.Unlock()
	return k.m.link.section
}

// Now implements [link.Link].
func (k linkOf) Now() clocksync.Instant {
	var at clocksync.Stamp
	k.m.mu.Lock()
	defer k.m.mu.Unlock()
	k.m.readEventStamp(&at)
	return at.Mono
}

// Log implements [link.Link].
func (k linkOf) Log() *slog.Logger { return k.m.log }

// Subject implements [link.Link].
func (k linkOf) Subject(member string) string { return k.m.subjects.Work(member, k.m.cfg.Name) }

// Own implements [link.Link].
func (k linkOf) Own() string { return k.m.subjects.Work(k.m.cfg.Name, "*") }

// Group implements [link.Link].
func (k linkOf) Group() (tenant, group string) { return k.m.subjects.Tenant, k.m.cfg.Group }

// Status implements [link.Link].
func (k linkOf) Status() (_, _ string) {
	return k.m.subjects.WorkAsk(), k.m.subjects.WorkTold(k.m.cfg.Name)
}

// Await implements [link.Link].
func (k linkOf) Await(ctx context.Context, entered func()) error {
	err := k.m.runRegion(ctx, config.WorkName, func(ctx context.Context, _ *Region) error {
		entered()
		<-ctx.Done()
		return context.Cause(ctx)
	}, nil)
	if _, over := errors.AsType[*Canceled](err); over {
		return nil
	}
	return err
}

// Orders implements [link.Link].
func (k linkOf) Orders(ctx context.Context, handle func(orders string)) error {
	return k.m.runRegion(ctx, config.ObjectsRegion, func(ctx context.Context, r *Region) error {
		for {
			if err := r.Wait(ctx); err != nil {
				return err
			}
		}
	}, []RegionOption{OnActivate(config.BalanceName, func(_ context.Context, s Signal) error {
		handle(s.Text(balance.OrdersDatum))
		return nil
	})})
}

// Connect implements [link.Link].
func (k linkOf) Connect(ctx context.Context) (link.Conn, error) {
	m := k.m
	failed := func(err error) error {
		return fmt.Errorf("agent: member %q: the connection for tasks of group %q: %w: %w", m.cfg.Name, m.cfg.Group, ErrNotConnected, err)
	}
	if ctx == nil {
		return nil, failed(errNilContext)
	}
	server, options, err := m.joined.findServer(m.url)
	if err != nil {
		return nil, failed(err)
	}
	b, err := m.joined.dial(ctx, server.URL, bus.Options{
		Name: "pegasus work " + m.cfg.Group + "/" + m.cfg.Name, Extra: options,
		OnError: func(err error) {
			m.log.Warn("the connection for tasks complains", telemetry.ClassKey, bus.Class(err), "member", m.cfg.Name, "error", err)
		},
	})
	if err != nil {
		return nil, failed(server.Explain(err))
	}
	return workConn{b, m.subjects}, nil
}

// workConn is a [link.Conn].
type workConn struct {
	*bus.Bus
	subjects wire.Subjects
}

// Subscribe implements [link.Conn].
func (c workConn) Subscribe(subject string, handle func(subject string, data []byte)) error {
	return c.Bus.Subscribe(subject, bus.Limits{}, func(m bus.Message) { handle(m.Subject, m.Data) })
}

// Offer implements [link.Offerer].
func (c workConn) Offer(functions []link.Offered) (stop func() error, err error) {
	list := make([]bus.Endpoint, len(functions))
	for i, f := range functions {
		list[i] = bus.Endpoint{Name: f.Name, Subject: c.subjects.Call(f.Name), Handle: f.Handle}
	}
	return c.Bus.Offer("pegasus-"+c.subjects.Group, "functions that members of the group "+c.subjects.Group+" serve", list)
}

// Publish implements [link.Conn].
func (c workConn) Publish(subject string, data []byte) error { return c.Bus.Publish(subject, data) }

// State implements [link.Link].
func (k linkOf) State(row []scgs.Value) (declared scgs.Schema, values []scgs.Value, ok bool) {
	k.m.mu.Lock()
	defer k.m.mu.Unlock()
	return k.m.core.Newest(row)
}

// Host implements [link.Link].
func (k linkOf) Host() string { return k.m.cfg.Host }

// Watch implements [link.Link].
func (k linkOf) Watch(w link.Watcher) (stop func(), err error) {
	if w.Roster == nil || w.Section == nil || w.Closed == nil {
		return nil, errors.New("agent: a watcher of a link lacks a function: give it all three")
	}
	m := k.m
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return nil, ErrClosed
	case m.link.watcher != nil:
		return nil, fmt.Errorf("agent: member %q: it has an open space already: close that one first", m.cfg.Name)
	}
	x := &watching{m: m, watcher: w, wake: make(chan struct{}, 1), over: make(chan struct{}), ended: make(chan struct{})}
	m.link.watcher = x
	x.addCall(linkNews{section: m.link.section, ofSection: true})
	x.addCall(linkNews{roster: m.roster()})
	m.running.Go(x.run)
	return sync.OnceFunc(x.stop), nil
}

// linkNews is one call of a watcher.
type linkNews struct {
	roster    *link.Roster
	section   *config.Work
	ofSection bool
	closed    bool
}

// maxLinkNews is how many calls wait for a watcher that is slow. Beyond it two rosters become one.
const maxLinkNews = 64

// watching calls a watcher.
type watching struct {
	m       *Member
	watcher link.Watcher
	wake    chan struct{} // capacity 1: there is news
	news    []linkNews    // guarded by the lock of the member
	state   bool          // the state has changed since it was reported
	told    uint64        // the number of the transition that state is about
	over    chan struct{} // closed by stop
	ended   chan struct{} // closed when no call comes any more
}

// addCall adds a call. Nil has nobody to call. The lock is held.
func (x *watching) addCall(n linkNews) {
	if x == nil {
		return
	}
	if len(x.news) >= maxLinkNews {
		x.shorten()
	}
	x.news = append(x.news, n)
	notifyChannel(x.wake)
}

// addState has the watcher told that the state has changed, if the number of its newest transition is another one and
// the section has conditions on it. The lock is held.
func (x *watching) addState(newest uint64) {
	if s := x.m.link.section; x.watcher.State == nil || s == nil || s.Withdraw.When == "" || newest == x.told {
		return
	}
	x.told = newest
	if !x.state {
		x.state = true
		notifyChannel(x.wake)
	}
}

// shorten leaves of the calls that wait the last section, and two rosters: one with the peers that
// are on all of them, so that whoever was missing on one is, and the last.
func (x *watching) shorten() {
	var all, last *link.Roster
	section := -1
	for i, n := range x.news {
		switch {
		case n.ofSection:
			section = i
		case n.roster == nil:
		case all == nil:
			all, last = n.roster, n.roster
		default:
			last = n.roster
			all = &link.Roster{Epoch: last.Epoch, Phase: last.Phase, Peers: slices.DeleteFunc(slices.Clone(all.Peers), func(p link.Peer) bool { return !slices.Contains(last.Peers, p) })}
		}
	}
	var news []linkNews
	if section >= 0 {
		news = append(news, x.news[section])
	}
	if last != nil {
		news = append(news, linkNews{roster: all}, linkNews{roster: last})
	}
	x.news = news
}

// run calls the watcher until it is stopped, or the member is closed.
func (x *watching) run() {
	defer close(x.ended)
	for {
		select {
		case <-x.wake:
		case <-x.over:
			return
		}
		for {
			x.m.mu.Lock()
			if changed := x.state; len(x.news) == 0 {
				x.state = false
				x.m.mu.Unlock()
				if !changed {
					break
				}
				x.watcher.State()
				continue
			}
			n := x.news[0]
			x.news = slices.Delete(x.news, 0, 1)
			x.m.mu.Unlock()
			select {
			case <-x.over:
				return
			default:
			}
			switch {
			case n.closed:
				x.watcher.Closed()
				return
			case n.ofSection:
				x.watcher.Section(n.section)
			default:
				x.watcher.Roster(*n.roster)
			}
		}
	}
}

// stop has no call come any more.
func (x *watching) stop() {
	close(x.over)
	<-x.ended
	x.m.mu.Lock()
	defer x.m.mu.Unlock()
	if x.m.link.watcher == x {
		x.m.link.watcher = nil
	}
}

// filled provides the fields that the package work fills. The power and the share of the node come from the observation.
// It is guarded by the lock.
type filled struct {
	reading *reading.Reading // nil: nothing is observed
	fill    link.Fill        // nil: all have their defaults
	wrong   error            // of the values that were asked for last
	hasty   bool             // one of hastyFields was another value than it had
	last    map[string]scgs.Value
}

// hastyFields are reported at once, whatever [Config].BatchAge is: ends of phases wait for
// them.
var hastyFields = []string{gostate.Filled + "idle", gostate.Filled + "settled", gostate.Filled + "awaits", gostate.Filled + "phase"}

// Fills implements [gostate.Provider].
func (w *filled) Fills(f *scgs.Field) bool { return isFilled(f) }

func isFilled(f *scgs.Field) bool {
	return strings.HasPrefix(f.Name, gostate.Filled)
}

// Value implements [gostate.Provider].
func (w *filled) Value(f *scgs.Field) (v scgs.Value, known bool) {
	if w.fill == nil {
		return v, false
	}
	if name := strings.TrimPrefix(f.Name, gostate.Filled); f.Type == scgs.Float && slices.Contains(reading.Fields(), name) {
		if w.reading == nil {
			return v, false
		}
		observed, known := w.reading.Field(name)
		return scgs.FloatValue(observed), known
	}
	if v, known = w.fill(*f); known && !f.Accepts(v) {
		w.wrong = fmt.Errorf("agent: %v is no value of the field %s, which the package work fills", v, f)
		return scgs.Value{}, false
	}
	if known && slices.Contains(hastyFields, f.Name) && w.last[f.Name] != v {
		w.last[f.Name], w.hasty = v, true
	}
	return v, known
}

// Tell implements [link.Link].
func (k linkOf) Tell(fill link.Fill) error {
	m := k.m
	hurry, err := m.tellFilled(fill)
	m.level.runDue()
	hurry.sendDue()
	return err
}

// tellFilled is the part of Tell that runs under the lock.
func (m *Member) tellFilled(fill link.Fill) (hurry *multiplexer, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, ErrClosed
	}
	w := &m.link.work
	w.fill, w.wrong, w.hasty = fill, nil, false
	m.byItself = true
	changed, err := m.refillState()
	if !changed && err == nil {
		changed, err = m.firstFilled()
	}
	if changed && w.hasty && (m.level == nil || !m.level.summary) {
		m.stepInput(&agentcore.Input{Kind: agentcore.InHurry})
	}
	return m.takeHurry(), errors.Join(err, w.wrong)
}

// firstFilled begins the first state of a member whose declared fields are all filled by the package
// work: its program never calls Set. The lock is held.
func (m *Member) firstFilled() (changed bool, err error) {
	if l := m.level; l != nil && (l.summary || onlyFilled(l.plan.Process)) {
		if l.state.Type() != nil || !onlyFilled(l.plan.Process) {
			return false, nil
		}
		return true, l.setProcess(struct{}{})
	}
	if m.state.Type() != nil || !onlyFilled(m.core.Codec().Schema()) {
		return false, nil
	}
	return true, m.beginState(struct{}{})
}

// onlyFilled reports whether a declared state has fields that are filled, and no others.
func onlyFilled(declared scgs.Schema) bool {
	return len(declared) > 0 && !slices.ContainsFunc(declared, func(f scgs.Field) bool { return !isFilled(&f) })
}
