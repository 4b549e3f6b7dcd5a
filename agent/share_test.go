package agent_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/testnats"
	"github.com/gopegasus/pegasus/internal/testwait"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// greeter is a synchronizer played by a test, which welcomes all members and keeps their
// reports.
type greeter struct {
	t        *testing.T
	bus      *bus.Bus
	subjects wire.Subjects
	codec    *wire.BatchCodec

	mu      sync.Mutex
	hellos  map[string]wire.Hello // the newest of each member
	bundles []wire.Bundle
	alone   map[string]int // batches that came on the subject of their member
	told    map[string]int64
}

var greeted = scgs.Schema{{Name: "n", Type: scgs.Int}}

func greet(t *testing.T, options embedded.Options) (g *greeter, url string) {
	t.Helper()
	s, err := embedded.Start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return greetOn(t, s.URL()), s.URL()
}

// greetOn is greet on a server that runs.
func greetOn(t *testing.T, url string) *greeter {
	t.Helper()
	b, err := bus.Dial(t.Context(), url, bus.Options{Extra: testnats.Options(t, url)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	g := &greeter{
		t: t, bus: b, subjects: wire.Subjects{Tenant: "default", Group: "g"}, codec: wire.NewBatchCodec(greeted),
		hellos: map[string]wire.Hello{}, alone: map[string]int{}, told: map[string]int64{},
	}
	if err := b.Subscribe(g.subjects.StateAll(), bus.Limits{}, g.hear); err != nil {
		t.Fatal(err)
	}
	if err := b.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *greeter) hear(m bus.Message) {
	g.mu.Lock()
	defer g.mu.Unlock()
	from, _ := g.subjects.ParseState(m.Subject)
	switch kind, _ := wire.KindOf(m.Data); kind {
	case wire.KindBundle:
		var b wire.Bundle
		if err := wire.DecodeBundle(m.Data, &b); err != nil {
			g.t.Error(err)
		}
		for _, p := range b.Parts {
			g.batch(p.Member, p.Frame)
		}
		g.bundles = append(g.bundles, b)
	case wire.KindBatch:
		g.alone[from]++
		g.batch(from, m.Data)
	case wire.KindHello:
		h, err := wire.DecodeHello(m.Data)
		if err != nil || h.Member != from {
			g.t.Errorf("hello %+v from %s: %v", h, from, err)
		}
		g.hellos[from] = h
		frame, err := wire.AppendWelcome(nil, &wire.Welcome{
			Synchronizer: "s", Term: 1, Member: h.Member, Incarnation: h.Incarnation, Accepted: true,
			Schema: greeted, Heartbeat: int64(100 * time.Millisecond), Timeline: h.Quality.Timeline,
		})
		to := h.Member
		if h.Multiplexer != "" && err == nil {
			to = h.Multiplexer
			frame, _, err = wire.AppendBundle(nil, &wire.Bundle{Parts: []wire.Part{{Member: h.Member, Frame: frame}}})
		}
		if err == nil {
			err = g.bus.Publish(g.subjects.Probe(to), frame)
		}
		if err != nil {
			g.t.Error(err)
		}
	}
}

func (g *greeter) batch(member string, frame []byte) {
	if kind, _ := wire.KindOf(frame); kind != wire.KindBatch {
		return
	}
	b := wire.Batch{Member: member}
	if err := g.codec.Decode(frame, "d", &b); err != nil {
		g.t.Error(err)
	}
	for _, r := range b.Reports {
		g.told[member] = max(g.told[member], r.Row[0].Int()) // What a new synchronizer lacks comes after the newest.
	}
}

// is reports on the kept frames.
func (g *greeter) is(f func() bool) func() bool {
	return func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return f()
	}
}

type greetedState struct{ N int64 }

func enter(t *testing.T, url, name string, options ...agent.Option) *agent.Member {
	t.Helper()
	m, err := agent.Join(t.Context(), url, agent.Config{Group: "g", Name: name}, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func tell(t *testing.T, m *agent.Member, n int64) {
	t.Helper()
	if err := m.Set(greetedState{N: n}); err != nil {
		t.Fatal(err)
	}
}

// TestMembersShareAConnection: the first member speaks for itself. From the second one on
// one message has what all of them say, and evidence of all, and says once a heartbeat whose
// it is; a member that wants a connection of its own stays out of it.
func TestMembersShareAConnection(t *testing.T) {
	t.Parallel()
	g, url := greet(t, embedded.Options{})
	a := enter(t, url, "a")
	tell(t, a, 1)
	testwait.Until(t, "the first state", g.is(func() bool { return g.told["a"] == 1 && g.hellos["a"].Multiplexer == "" && g.alone["a"] > 0 }))

	b, own := enter(t, url, "b"), enter(t, url, "own", agent.OwnConn())
	tell(t, b, 2)
	tell(t, own, 3)
	var name string
	testwait.Until(t, "a roster of two", g.is(func() bool {
		name = g.hellos["a"].Multiplexer
		last := len(g.bundles) - 1
		return name != "" && g.hellos["b"].Multiplexer == name && last >= 0 && g.bundles[last].Of > 0 && len(g.bundles[last].Listed) == 2
	}))
	testwait.Until(t, "the third member", g.is(func() bool { return g.told["own"] == 3 && g.alone["own"] > 0 && g.hellos["own"].Multiplexer == "" }))

	tell(t, a, 10)
	testwait.Until(t, "a state of one with evidence of both", g.is(func() bool {
		for _, b := range g.bundles {
			if len(b.Parts) == 1 && b.Parts[0].Member == "a" && b.Of > 0 && g.told["a"] == 10 {
				return true
			}
		}
		return false
	}))

	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	tell(t, b, 20)
	testwait.Until(t, "the other one, after the first has left", g.is(func() bool {
		last := g.bundles[len(g.bundles)-1]
		return g.told["b"] == 20 && len(last.Listed) == 1 && last.Listed[0].Member == "b"
	}))
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	c := enter(t, url, "c")
	tell(t, c, 30)
	testwait.Until(t, "a member after the last has left", g.is(func() bool { return g.told["c"] == 30 && g.hellos["c"].Multiplexer == "" }))
}

// TestManyJoinAtOnce: whoever comes while the connection is made waits for it; the states of
// all arrive whatever they do at the same time.
func TestManyJoinAtOnce(t *testing.T) {
	t.Parallel()
	g, url := greet(t, embedded.Options{})
	const members, states = 600, 20 // A server in a process permits 1,024 subscriptions of a connection.
	var joining sync.WaitGroup
	for i := range members {
		joining.Go(func() {
			m, err := agent.Join(t.Context(), url, agent.Config{Group: "g", Name: fmt.Sprint("m", i), BatchSize: 1 + i%3*20, BatchAge: time.Duration(i%2) * time.Millisecond})
			if err != nil {
				t.Error(err)
				return
			}
			for n := range int64(states) {
				if err := m.Set(greetedState{N: n}); err != nil {
					t.Error(err)
				}
			}
			testwait.Until(t, "the last state", g.is(func() bool { return g.told[fmt.Sprint("m", i)] == states-1 }))
			if i%2 == 0 {
				if err := m.Close(); err != nil {
					t.Error(err)
				}
			} else {
				t.Cleanup(func() { _ = m.Close() })
			}
		})
	}
	joining.Wait()
}

// TestLateStateOfABatch: a state that comes long after the time of the batch before it is
// sent after its own time, not with the next heartbeat.
func TestLateStateOfABatch(t *testing.T) {
	t.Parallel()
	g, url := greet(t, embedded.Options{})
	var members []*agent.Member
	for _, name := range []string{"a", "b"} {
		m, err := agent.Join(t.Context(), url, agent.Config{Group: "g", Name: name, BatchAge: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		tell(t, m, 0)
		members = append(members, m)
	}
	early := 0
	for n := int64(1); n <= 6; n++ {
		var before int
		testwait.Until(t, "a heartbeat, with nothing else in it", g.is(func() bool {
			before = len(g.bundles)
			return before > 0 && len(g.bundles[before-1].Parts) == 0 && g.bundles[before-1].Version > 0
		}))
		tell(t, members[n%2], n)
		testwait.Until(t, "the state", g.is(func() bool {
			for _, b := range g.bundles[before:] {
				if len(b.Parts) > 0 && b.Version == 0 {
					early++
				}
			}
			return g.told[[]string{"a", "b"}[n%2]] == n
		}))
	}
	if early == 0 {
		t.Error("every state came with a heartbeat")
	}
}

// TestClocksAreNotMixed: members whose stamps are of different clocks do not share evidence.
func TestClocksAreNotMixed(t *testing.T) {
	t.Parallel()
	g, url := greet(t, embedded.Options{})
	a := enter(t, url, "a")
	m, err := agent.Join(t.Context(), url, agent.Config{Group: "g", Name: "b", Clock: given{}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s, err := agent.Join(t.Context(), url, agent.Config{Group: "g", Name: "c", SeparateClock: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i, m := range []*agent.Member{a, m, s} {
		tell(t, m, int64(i))
	}
	testwait.Until(t, "all states", g.is(func() bool { return g.told["b"] == 1 && g.told["c"] == 2 }))
	if g.is(func() bool { return len(g.bundles) > 0 })() {
		t.Error("they have one connection")
	}
}

// given is a clock of a program, which cannot be compared with another one.
type given struct{ _ []int }

func (given) Domain() clocksync.Domain { return "given" }

func (given) Now() clocksync.Stamp {
	return clocksync.Stamp{Domain: "given", Mono: clocksync.Instant(time.Now().UnixNano()), Within: clocksync.Unbounded}
}

func (given) Quality() clocksync.Quality { return clocksync.Quality{Source: "given"} }

// TestJoinGivesUpWhileAnotherConnects: a Join that ends does not end another Join that
// waits for the same connection.
func TestJoinGivesUpWhileAnotherConnects(t *testing.T) {
	t.Parallel()
	g, url := greet(t, embedded.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var joining sync.WaitGroup
	for range 5 {
		joining.Go(func() {
			if _, err := agent.Join(ctx, url, agent.Config{Group: "g", Name: "gone"}); err == nil {
				t.Error("joined after the end")
			}
		})
	}
	a := enter(t, url, "a")
	joining.Wait()
	tell(t, a, 1)
	testwait.Until(t, "its state", g.is(func() bool { return g.told["a"] == 1 }))
}

// TestNameTaken: a second member with the same name on a connection is refused at once, and
// harms no other.
func TestNameTaken(t *testing.T) {
	t.Parallel()
	g, url := greet(t, embedded.Options{})
	a := enter(t, url, "a")
	b := enter(t, url, "b")
	_, err := agent.Join(t.Context(), url, agent.Config{Group: "g", Name: "a"})
	const want = `agent: join group "g" as "a": member name already used in this process, on this connection: close it first, or give this one another name`
	if !errors.Is(err, agent.ErrNameTaken) || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	var joining sync.WaitGroup
	var taken atomic.Int64
	for range 5 {
		joining.Go(func() {
			m, err := agent.Join(t.Context(), url, agent.Config{Group: "g", Name: "c"})
			switch {
			case err == nil:
				t.Cleanup(func() { _ = m.Close() })
			case errors.Is(err, agent.ErrNameTaken):
				taken.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	joining.Wait()
	if taken.Load() != 4 {
		t.Errorf("%d of 5 were refused", taken.Load())
	}
	tell(t, a, 1)
	tell(t, b, 2)
	testwait.Until(t, "their states", g.is(func() bool { return g.told["a"] == 1 && g.told["b"] == 2 }))
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	tell(t, enter(t, url, "a"), 3)
	testwait.Until(t, "the state of the next one", g.is(func() bool { return g.told["a"] == 3 }))
}

// TestNotPermittedToJoin: the error says what the server has refused.
func TestNotPermittedToJoin(t *testing.T) {
	t.Parallel()
	s := permitting(t, &server.Permissions{Publish: &server.SubjectPermission{Deny: []string{">"}}})
	_, err := agent.Join(t.Context(), s, agent.Config{Group: "g", Name: "a", JoinTimeout: time.Hour})
	if want := `and the server does not permit a subject that this takes: bus: the server does not permit it to this user: nats: permissions violation: Permissions Violation for Publish to "pegasus.v1.default.g.st.a"`; !errors.Is(err, agent.ErrNoSynchronizer) || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(want)) {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestJoinWhileTheServerIsAway: a second member gets the same error as the first one.
func TestJoinWhileTheServerIsAway(t *testing.T) {
	t.Parallel()
	s, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	greetOn(t, s.URL())
	enter(t, s.URL(), "a")
	s.Close()
	_, err = agent.Join(t.Context(), s.URL(), agent.Config{Group: "g", Name: "b", JoinTimeout: 300 * time.Millisecond})
	if want := "there is no connection to the server: the shared connection of the members in this process is interrupted"; !errors.Is(err, agent.ErrNotConnected) || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}

// lines is a log that is read while it is written.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestNotPermittedToSpeak: where the server does not permit the subject of a multiplexer,
// each member sends for itself, and the log says what to permit.
func TestNotPermittedToSpeak(t *testing.T) {
	t.Parallel()
	t.Run("to send or to hear", func(t *testing.T) {
		t.Parallel()
		notPermitted(t, false, "pegasus.v1.default.g.st.a", "pegasus.v1.default.g.st.b")
	})
	t.Run("to hear", func(t *testing.T) {
		t.Parallel()
		notPermitted(t, false, "pegasus.v1.default.g.st.*", "pegasus.v1.default.g.st.p.a.*")
	})
	t.Run("to hear on a connection that is given", func(t *testing.T) {
		t.Parallel()
		notPermitted(t, true, "pegasus.v1.default.g.st.*", "pegasus.v1.default.g.st.p.a.*")
	})
}

// permitting starts a server that permits user m some subjects and user s all of them, and
// returns its url for m.
func permitting(t *testing.T, to *server.Permissions) string {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
		Users: []*server.User{{Username: "s", Password: "s"}, {Username: "m", Password: "m", Permissions: to}},
	})
	if err != nil {
		t.Fatal(err)
	}
	go s.Start()
	t.Cleanup(s.Shutdown)
	if !s.ReadyForConnections(20 * time.Second) {
		t.Fatal("the server does not start")
	}
	return strings.Replace(s.ClientURL(), "nats://", "nats://m:m@", 1)
}

func notPermitted(t *testing.T, given bool, publish ...string) {
	t.Helper()
	allow := func(subjects ...string) *server.SubjectPermission { return &server.SubjectPermission{Allow: subjects} }
	url := permitting(t, &server.Permissions{
		Publish:   allow(publish...),
		Subscribe: allow("pegasus.v1.default.g.pr.a", "pegasus.v1.default.g.pr.b", "pegasus.v1.default.g.sg.a", "pegasus.v1.default.g.sg.b", "pegasus.v1.default.g.sga"),
	})
	g := greetOn(t, strings.Replace(url, "m:m@", "s:s@", 1))
	var options []agent.Option
	if given {
		nc, err := nats.Connect(url, nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		options = append(options, agent.WithConn(nc))
	}
	var log lines
	join := func(name string) *agent.Member {
		m, err := agent.Join(t.Context(), url, agent.Config{Group: "g", Name: name, Logger: slog.New(slog.NewTextHandler(&log, nil))}, options...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		return m
	}
	a := join("a")
	tell(t, a, 1)
	b := join("b")
	tell(t, b, 2)
	testwait.Until(t, "members that speak for themselves", g.is(func() bool {
		return g.hellos["a"].Multiplexer == "" && g.hellos["b"].Multiplexer == "" && g.told["a"] == 1 && g.told["b"] == 2
	}))
	tell(t, a, 3)
	testwait.Until(t, "a later state", g.is(func() bool { return g.told["a"] == 3 }))
	const want = "so each sends for itself; permit pegasus.v1.TENANT.GROUP.{st,pr,sg}.p.MEMBER.* for that"
	testwait.Until(t, "the log line", func() bool { return strings.Contains(log.String(), want) })
}

// TestOneMemberSeesTheClockChange: all members learn of a change of the shared clock, also
// if a state of a single member has shown it first.
func TestOneMemberSeesTheClockChange(t *testing.T) {
	t.Parallel()
	_, url := greet(t, embedded.Options{})
	clock := &toldClock{quality: clocksync.Quality{Source: "told", Timeline: "utc", Status: clocksync.Synchronized}}
	join := func(name string) *agent.Member {
		m, err := agent.Join(t.Context(), url, agent.Config{Group: "g", Name: name, Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		return m
	}
	a, b := join("a"), join("b")
	tell(t, a, 1)
	tell(t, b, 1)
	for i, status := range []clocksync.Status{clocksync.Degraded, clocksync.Synchronized, clocksync.Degraded} {
		clock.tell(status, 0)
		tell(t, a, int64(2+i))
		testwait.Until(t, "the other member", func() bool { return b.Clock().Status == status })
	}
}
