package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/internal/bus/bustest"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/link"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

const working = `
synchronizers:
  gsync:
    members: {group: g, count: 2, min: 1}
    silence: {after: 2s, then: drop}
    state: {done: bool, work.idle: {type: bool, default: false}, work.open: {type: int, default: 0}}
    work: {slots: 3, end: "all(members, .done)"}
`

// tellPhase has a member tell in which phase it is.
func tellPhase(t *testing.T, k link.Link, phase int64) {
	t.Helper()
	check(t, k.Tell(fillOf(map[string]scgs.Value{"work.phase": scgs.IntValue(phase)})))
}

type doneState struct{ Done bool }

// linkLog is a watcher that keeps a list of its calls.
type linkLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *linkLog) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

// take takes the changes reported since the last time: the phase, and the letter of each member with a
// number for each life.
func (l *linkLog) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := strings.Join(l.lines, " ")
	l.lines = nil
	return text
}

// lives numbers the lives of members in the order in which they are seen.
type lives struct {
	mu    sync.Mutex
	known map[link.Peer]int
}

func (n *lives) number(p link.Peer) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known == nil {
		n.known = map[link.Peer]int{}
	}
	if n.known[p] == 0 {
		of := 1
		for q := range n.known {
			if q.Name == p.Name {
				of++
			}
		}
		n.known[p] = of
	}
	return n.known[p]
}

func (l *linkLog) watcher(n *lives) link.Watcher {
	return link.Watcher{
		Roster: func(r link.Roster) {
			var text strings.Builder
			for _, p := range r.Peers {
				fmt.Fprint(&text, p.Name, n.number(p))
			}
			l.add("%d:%s", r.Phase, &text)
		},
		Section: func(w *config.Work) {
			if w == nil {
				l.add("none")
				return
			}
			l.add("slots=%d", w.Slots)
		},
		Closed: func() { l.add("closed") },
	}
}

func linked(t *testing.T, m *agent.Member) link.Link {
	t.Helper()
	k, err := m.Link()
	check(t, err)
	return k
}

// TestLinkTellsWhoIsThere goes through all that changes a roster.
func TestLinkTellsWhoIsThere(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		h := newHub(t, local.Connect, working)
		names, a, b := &lives{}, &linkLog{}, &linkLog{}
		expect := func(l *linkLog, what, want string) {
			t.Helper()
			time.Sleep(5 * time.Second)
			synctest.Wait()
			if got := l.take(); got != want {
				t.Errorf("%s: %q was told, want %q", what, got, want)
			}
		}
		ma := join(t, local, agent.Config{Group: "g", Name: "a"})
		ka := linked(t, ma)
		stop, err := ka.Watch(a.watcher(names))
		check(t, err)
		if _, err := ka.Watch(a.watcher(names)); err == nil || !strings.Contains(err.Error(), "it has an open space already") {
			t.Errorf("a second watcher: %v", err)
		}
		expect(a, "joined", "slots=3 1:")
		mb := join(t, local, agent.Config{Group: "g", Name: "b"})
		kb := linked(t, mb)
		_, err = kb.Watch(b.watcher(names))
		check(t, err)
		check(t, ma.Set(doneState{}))
		check(t, mb.Set(doneState{}))
		expect(a, "epoch", "1:a1b1")
		expect(b, "epoch", "slots=3 1: 1:a1b1")
		if self := ka.Self(); names.number(self) != 1 || self.Name != "a" {
			t.Errorf("a is %v", self)
		}

		tellPhase(t, ka, 1)
		tellPhase(t, kb, 1)
		check(t, ma.Set(doneState{true}))
		check(t, mb.Set(doneState{true}))
		expect(a, "end of a phase", "2:a1b1")
		b.take()

		h.set(func() { h.mute = "b" })
		expect(a, "dropped", "2:a1")
		expect(b, "dropped", "2:a1")
		h.set(func() { h.mute = "" })
		expect(a, "back", "2:a1b1")
		expect(b, "back", "2:a1b1")
		if names.number(kb.Self()) != 1 {
			t.Errorf("b has come back as %v", kb.Self())
		}

		other, err := agent.Join(t.Context(), "", agent.Config{Group: "g", Name: "b"}, agent.WithBus(local.Connect), agent.OwnConn())
		check(t, err)
		check(t, other.Set(doneState{}))
		expect(a, "replaced", "2:a1 2:a1b2")
		if got := b.take(); !strings.HasPrefix(got, "2:a1") || strings.Contains(got, "b1") {
			t.Errorf("who was replaced is told %q", got)
		}
		check(t, ma.Set(doneState{}))
		time.Sleep(time.Second)
		check(t, other.Close())
		expect(a, "left", "2:a1 2:a1b3")

		plans, err := configfile.Parse("other.yaml", []byte(strings.Replace(working, "slots: 3", "slots: 4", 1)))
		check(t, err)
		h.step(synccore.Input{Kind: synccore.InLevel, Level: plans[0]})
		expect(a, "reload", "slots=4 2:a1b3")
		if ka.Section().Slots != 4 {
			t.Errorf("the section is %+v", ka.Section())
		}

		h.set(func() { h.core = synccore.New(plans[0], synccore.Options{Term: 2}) })
		frame, err := wire.AppendWelcome(nil, &wire.Welcome{Synchronizer: "gsync", Term: 2})
		check(t, err)
		check(t, h.bus.Publish(h.subjects.Announce(), frame))
		expect(a, "restart", "1:a1b3")

		plain, err := configfile.Parse("plain.yaml", []byte(strings.Replace(strings.Replace(working, `    work: {slots: 3, end: "all(members, .done)"}`+"\n", "", 1), ", work.idle: {type: bool, default: false}, work.open: {type: int, default: 0}", "", 1)))
		check(t, err)
		h.set(func() {
			h.core, h.codec = synccore.New(plain[0], synccore.Options{Term: 3}), wire.NewBatchCodec(plain[0].State)
		})
		frame, err = wire.AppendWelcome(nil, &wire.Welcome{Synchronizer: "gsync", Term: 3})
		check(t, err)
		check(t, h.bus.Publish(h.subjects.Announce(), frame))
		expect(a, "restart without the section", "none")
		if _, err := ma.Link(); err == nil || err.Error() != "agent: member \"a\": the synchronizer of group \"g\" shares no tasks: add `work: {}` to its section of the configuration" {
			t.Errorf("a link without the section: %v", err)
		}
		stop()
		b.take()
		check(t, mb.Close())
		if got := b.take(); got != "closed" {
			t.Errorf("told %q when it was closed", got)
		}
		if _, err := mb.Link(); !errors.Is(err, agent.ErrClosed) {
			t.Errorf("a link of a closed member: %v", err)
		}
	})
}

// TestALostRosterIsToldAgain loses each piece once, or the section.
func TestALostRosterIsToldAgain(t *testing.T) {
	for name, lose := range map[string]func(*wire.Peers) bool{
		"all":         func(p *wire.Peers) bool { return p.Version == 2 && len(p.Peers) > 0 },
		"first":       func(p *wire.Peers) bool { return p.Version == 2 && p.First == 0 && len(p.Peers) > 0 },
		"last":        func(p *wire.Peers) bool { return p.Version == 2 && p.First == 1 },
		"the section": func(p *wire.Peers) bool { return len(p.Section) > 0 },
	} {
		t.Run(name, func(t *testing.T) {
			bustest.Bubble(t, func(t *testing.T) {
				local := bustest.NewServer(t)
				h := newHub(t, local.Connect, working)
				lost := map[string]int{}
				h.set(func() {
					h.lose = func(p *wire.Peers) bool {
						if key := fmt.Sprint(p.Member, p.First); lose(p) && lost[key] < 2 {
							lost[key]++
							return true
						}
						return false
					}
				})
				log, names := &linkLog{}, &lives{}
				for _, n := range []string{"a", "b"} {
					m := join(t, local, agent.Config{Group: "g", Name: n})
					check(t, m.Set(doneState{}))
					k := linked(t, m)
					if n == "b" {
						_, err := k.Watch(log.watcher(names))
						check(t, err)
					}
				}
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if got := log.take(); !strings.HasSuffix(got, "1:a1b1") || !strings.Contains(got, "slots=3") || len(lost) == 0 {
					t.Errorf("told %q, and %v was lost", got, lost)
				}
			})
		})
	}
}

// fillOf gives values by the names of fields.
func fillOf(values map[string]scgs.Value) link.Fill {
	return func(f scgs.Field) (scgs.Value, bool) { v, ok := values[f.Name]; return v, ok }
}

// filling runs a test with a member whose declared state is this one.
func filling(t *testing.T, schema scgs.Schema, cfg agent.Config, run func(t *testing.T, m *agent.Member, k link.Link, f *fake)) {
	t.Helper()
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		f := newFake(t, local.Connect)
		f.codec = wire.NewBatchCodec(schema)
		text := []byte(`{"Slots":1}`)
		f.answer = func(h *wire.Hello) *wire.Welcome {
			frame, _, err := wire.AppendPeers(nil, &wire.Peers{Synchronizer: "s", Term: 1, Version: 1, Member: h.Member, Phase: 1, SectionHash: 7, Section: text})
			f.publish(f.subjects.Probe(h.Member), frame, err)
			return &wire.Welcome{Synchronizer: "s", Term: 1, Epoch: 1, Member: h.Member, Incarnation: h.Incarnation, Accepted: true, Schema: schema, Work: 7}
		}
		m := join(t, local, cfg)
		run(t, m, linked(t, m), f)
	})
}

var workFields = scgs.Schema{
	{Name: "work.idle", Type: scgs.Bool, Default: scgs.BoolValue(false)},
	{Name: "work.open", Type: scgs.Int, Default: scgs.IntValue(0)},
}

// TestTellAndSet: neither loses the other's part, and a Tell without a change reports nothing.
func TestTellAndSet(t *testing.T) {
	schema := append(scgs.Schema{{Name: "load", Type: scgs.Float}}, workFields...)
	type load struct{ Load float64 }
	filling(t, schema, agent.Config{Group: "g", Name: "m"}, func(t *testing.T, m *agent.Member, k link.Link, f *fake) {
		values := map[string]scgs.Value{"work.idle": scgs.BoolValue(true)}
		check(t, k.Tell(fillOf(values))) // There is no state yet.
		check(t, m.Set(load{1}))
		values["work.open"] = scgs.IntValue(5)
		check(t, k.Tell(fillOf(values)))
		check(t, k.Tell(fillOf(values)))
		check(t, m.Set(load{2}))
		set, err := agent.StateOf[load](m)
		check(t, err)
		values["work.open"] = scgs.IntValue(6)
		check(t, set.Set(load{3}))
		check(t, k.Tell(func(scgs.Field) (scgs.Value, bool) { return scgs.Value{}, false }))
		values["work.open"] = scgs.StringValue("x")
		if err := k.Tell(fillOf(values)); err == nil || err.Error() != `agent: "x" is no value of the field work.open: int, which the package work fills` {
			t.Errorf("a wrong value: %v", err)
		}
		synctest.Wait()
		if got, want := fmt.Sprint(f.rows()), "[[1 true 0] [1 true 5] [2 true 5] [3 true 6] [3 false 0] [3 true 0]]"; got != want {
			t.Errorf("told %s, want %s", got, want)
		}
	})
}

// TestAStateThatIsOnlyFilled begins with the first Tell, as the program has none to set.
func TestAStateThatIsOnlyFilled(t *testing.T) {
	filling(t, workFields, agent.Config{Group: "g", Name: "m", BatchAge: time.Hour}, func(t *testing.T, m *agent.Member, k link.Link, f *fake) {
		check(t, k.Tell(fillOf(map[string]scgs.Value{"work.open": scgs.IntValue(1)})))
		synctest.Wait()
		values := map[string]scgs.Value{"work.open": scgs.IntValue(2)}
		before := f.count()
		check(t, k.Tell(fillOf(values)))
		synctest.Wait()
		if n := f.count(); n != before {
			t.Errorf("%d batches have not waited", n-before)
		}
		values["work.idle"] = scgs.BoolValue(true)
		check(t, k.Tell(fillOf(values)))
		synctest.Wait()
		if got, want := fmt.Sprint(f.rows()), "[[false 1] [false 2] [true 2]]"; got != want {
			t.Errorf("told %s, want %s", got, want)
		}
		type own struct {
			Idle bool `pegasus:"work.idle"`
		}
		if err := m.Set(own{}); err == nil || !strings.Contains(err.Error(), `has the name "work.idle", and the package work fills such fields`) {
			t.Errorf("a program that fills it: %v", err)
		}
	})
}

// TestManyTellAndSet has both at once: each state has the newest of both.
func TestManyTellAndSet(t *testing.T) {
	schema := append(scgs.Schema{{Name: "load", Type: scgs.Float}}, workFields...)
	type load struct{ Load float64 }
	filling(t, schema, agent.Config{Group: "g", Name: "m"}, func(t *testing.T, m *agent.Member, k link.Link, f *fake) {
		var both sync.WaitGroup
		both.Go(func() {
			for i := range 200 {
				if err := m.Set(load{float64(i)}); err != nil {
					t.Error(err)
				}
			}
		})
		both.Go(func() {
			for i := range 200 {
				if err := k.Tell(fillOf(map[string]scgs.Value{"work.open": scgs.IntValue(int64(i))})); err != nil {
					t.Error(err)
				}
			}
		})
		both.Wait()
		synctest.Wait()
		last := [2]float64{}
		for _, row := range f.rows() {
			now := [2]float64{row[0].Float(), float64(row[2].Int())}
			if now[0] < last[0] || now[1] < last[1] {
				t.Fatalf("%v after %v", now, last)
			}
			last = now
		}
		if last != [2]float64{199, 199} {
			t.Errorf("the last state is %v", last)
		}
	})
}

// TestFilledBesideThreads: the row of the process is filled, and goes up with the summary.
func TestFilledBesideThreads(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		h := newHub(t, local.Connect, `
synchronizers:
  gsync:
    members: {group: g, count: 1}
    state: {busy: int, work.open: {type: int, default: 0}}
    work: {}
    predicates: {some: {when: "all(members, .busy == 1)"}}
  tsync:
    parent: gsync
    members: {threads: 1}
    state: {busy: bool}
    process: {work.open: {type: int, default: 0}}
    summary: {busy: "count(members, .busy)"}
`)
		m := join(t, local, agent.Config{Group: "g", Name: "w"})
		k := linked(t, m)
		th, err := m.Thread("t")
		check(t, err)
		check(t, k.Tell(fillOf(map[string]scgs.Value{"work.open": scgs.IntValue(4)})))
		check(t, th.Set(struct{ Busy bool }{true}))
		time.Sleep(50 * time.Millisecond)
		if n := h.fired("some"); n != 1 || len(h.rejected) > 0 {
			t.Errorf("fired %d times; %v", n, h.rejected)
		}
	})
}

// TestAwait ends with a cancellation of the reserved region.
func TestAwait(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		newHub(t, local.Connect, strings.Replace(working, "count: 2", "count: 1", 1))
		m := join(t, local, agent.Config{Group: "g", Name: "a"})
		k := linked(t, m)
		if err := m.Region(t.Context(), "work", func(context.Context, *agent.Region) error { return nil }); err == nil ||
			err.Error() != `agent: region "work": the section work of group "g" uses this name: give the region another name` {
			t.Errorf("a region of that name: %v", err)
		}
		check(t, m.Set(doneState{}))
		awaited := make(chan error)
		tellPhase(t, k, 1)
		go func() { awaited <- k.Await(t.Context(), func() {}) }()
		time.Sleep(time.Second)
		check(t, m.Set(doneState{true}))
		if err := <-awaited; err != nil {
			t.Errorf("the end of a phase: %v", err)
		}
		time.Sleep(time.Second)

		ctx, cancel := context.WithCancel(t.Context()) // The state of before does not end it.
		go func() { awaited <- k.Await(ctx, func() {}) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		cancel()
		if err := <-awaited; !errors.Is(err, context.Canceled) {
			t.Errorf("the end of the context: %v", err)
		}
		go func() { awaited <- k.Await(t.Context(), func() {}) }()
		synctest.Wait()
		check(t, m.Close())
		if err := <-awaited; !errors.Is(err, agent.ErrClosed) {
			t.Errorf("the end of the member: %v", err)
		}
	})
}

// TestConnect has a connection of its own, over which members reach each other.
func TestConnect(t *testing.T) {
	filling(t, workFields, agent.Config{Group: "g", Name: "m"}, func(t *testing.T, m *agent.Member, k link.Link, _ *fake) {
		c, err := k.Connect(t.Context())
		check(t, err)
		got := make(chan string, 1)
		check(t, c.Subscribe(k.Own(), func(subject string, data []byte) { got <- subject + " " + string(data) }))
		check(t, c.Flush(t.Context()))
		d, err := k.Connect(t.Context())
		check(t, err)
		check(t, d.Publish(k.Subject("m"), []byte("hello")))
		if text := <-got; text != "pegasus.v1.default.g.wk.m.m hello" {
			t.Errorf("it got %q", text)
		}
		check(t, c.Close())
		check(t, d.Close())
		if k.Now() <= 0 || k.Log() == nil {
			t.Error("it has no clock or log")
		}
	})
}
