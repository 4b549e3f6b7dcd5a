package synchronizer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/testnats"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

var subjects = wire.Subjects{Tenant: "default", Group: "g"}

// ask puts a question over NATS, as the command does.
func ask(t *testing.T, b *bus.Bus, subject, text string, into any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var reply wire.Reply
	var bad error
	err := b.Gather(ctx, subject, []byte(text), func(part []byte) bool {
		var done bool
		done, bad = reply.Add(part)
		return !done && bad == nil
	})
	if err := errors.Join(err, bad); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(reply.Text(), into); err != nil {
		t.Fatalf("%s: %v", reply.Text(), err)
	}
}

func dial(t *testing.T, url string) *bus.Bus {
	t.Helper()
	b, err := bus.Dial(t.Context(), url, bus.Options{Extra: testnats.Options(t, url)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func TestTellsWhereItStandsAndWhy(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	server := serve(t, 0)
	w := newWatch()
	s := start(t, server.URL(), pair, synchronizer.Options{Observe: w.observe})
	a, b := join(t, server.URL(), "a"), join(t, server.URL(), "b")
	set(t, a, state{N: 1, Idle: true})
	set(t, b, state{N: 2, Idle: true})
	w.await(t, 0, "decision", fired)

	local, err := s.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	conn := dial(t, server.URL())
	var remote monitor.Status
	ask(t, conn, subjects.Ask("gsync", wire.VerbStatus), "", &remote)
	for _, st := range []monitor.Status{local, remote} {
		if st.Synchronizer != "gsync" || st.Group != "g" || st.Tenant != "default" || st.Epoch != 1 || len(st.Config) != 16 {
			t.Errorf("status %+v", st)
		}
		if len(st.Members) != 2 || st.Members[1].Name != "b" || st.Members[1].State.String() != "idle=true n=2" || st.Members[1].Clock.Status != "exact" {
			t.Errorf("members %+v", st.Members)
		}
		if p := st.Predicates[0]; p.Name != "all-idle" || p.Truth != "true" || p.Fired != 1 || p.Decision != "gsync/1/1" {
			t.Errorf("predicate %+v", p)
		}
		if st.Counters["decisions"] != 1 || st.Counters["frames"] == 0 {
			t.Errorf("counters %v", st.Counters)
		}
	}
	var e monitor.Explanation
	ask(t, conn, subjects.Ask("gsync", wire.VerbWhy), "all-idle", &e)
	if e.Truth != "true" || e.Last == nil || len(e.Last.Witness) != 2 || e.Last.Witness[0].State.String() != "idle=true n=1" || len(e.Parts) != 1 || e.Parts[0].True.Count != 2 {
		t.Errorf("explanation %+v", e)
	}
	var no struct{ Error string }
	ask(t, conn, subjects.Ask("gsync", wire.VerbWhy), "all-idel", &no)
	want := `no such predicate: synchronizer "gsync" has no predicate "all-idel": did you mean "all-idle"? known predicates: all-idle`
	if _, err := s.Why(t.Context(), "all-idel"); no.Error != want || !errors.Is(err, synchronizer.ErrNoPredicate) || err.Error() != want {
		t.Errorf("got %q and %v", no.Error, err)
	}
	ask(t, conn, subjects.Ask("gsync", "nonsense"), "", &no)
	if want := `synchronizer "gsync" knows no question "nonsense": it may be older than the command that asks`; no.Error != want {
		t.Errorf("got %q", no.Error)
	}
	var who synchronizer.Presence
	ask(t, conn, subjects.Who(), "", &who)
	if who.Synchronizer != "gsync" || who.Group != "g" || who.Term == 0 {
		t.Errorf("presence %+v", who)
	}
	cleanup(t, a, b)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := s.Status(t.Context()); !errors.Is(err, synchronizer.ErrEnded) {
		t.Errorf("after the end: %v", err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	server.Close()
}

// TestTellsOfTheConfigurationInForce: after a reload it is the new one.
func TestTellsOfTheConfigurationInForce(t *testing.T) {
	server := serve(t, 0)
	s := start(t, server.URL(), pair, synchronizer.Options{})
	before, err := s.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := synchronizer.ParseConfig("new.yaml", []byte(strings.Replace(pair, "all-idle:", "calm:", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(cfg); err != nil {
		t.Fatal(err)
	}
	after, err := s.Status(t.Context())
	if err != nil || after.Config != cfg.Hash() || after.Config == before.Config || len(after.Predicates) != 1 || after.Predicates[0].Name != "calm" {
		t.Errorf("before %+v, after %+v, %v", before, after, err)
	}
	if e, err := s.Why(t.Context(), "calm"); err != nil || e.When != "all(members, .idle)" {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := s.Why(t.Context(), "all-idle"); !errors.Is(err, synchronizer.ErrNoPredicate) {
		t.Errorf("got %v", err)
	}
}

// TestTellsOfManyMembers: an answer is as long as it has to be.
func TestTellsOfManyMembers(t *testing.T) {
	const members = 900
	server := serve(t, 0)
	start(t, server.URL(), pair, synchronizer.Options{})
	conn := dial(t, server.URL())
	for i := range members {
		h := wire.Hello{Member: fmt.Sprintf("member-%03d", i), Incarnation: 1, Host: "somewhere", Domain: "d"}
		frame, err := wire.AppendHello(nil, &h)
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Publish(subjects.State(h.Member), frame); err != nil {
			t.Fatal(err)
		}
	}
	var st monitor.Status
	for len(st.Members) < members {
		st = monitor.Status{}
		ask(t, conn, subjects.Ask("gsync", wire.VerbStatus), "", &st)
	}
	if last := st.Members[members-1]; last.Name != "member-899" || last.Standing != "mute" {
		t.Errorf("the last member is %+v", last)
	}
}

// TestTellsWatchers: events are published while a client watches, and not before.
func TestTellsWatchers(t *testing.T) {
	server := serve(t, 0)
	s := start(t, server.URL(), pair, synchronizer.Options{})
	conn := dial(t, server.URL())
	lines := make(chan string, 1000)
	if err := conn.Subscribe(subjects.Events("gsync"), bus.Limits{}, func(m bus.Message) {
		for line := range strings.Lines(string(m.Data)) {
			lines <- line
		}
	}); err != nil {
		t.Fatal(err)
	}
	a := join(t, server.URL(), "a")
	b := join(t, server.URL(), "b")
	set(t, a, state{N: 1})
	set(t, b, state{N: 2})
	for st := (monitor.Status{}); st.State == nil; { // The epoch has begun, and nobody watches.
		var err error
		if st, err = s.Status(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var st monitor.Status
	ask(t, conn, subjects.Ask("gsync", wire.VerbWatch), "", &st)
	set(t, a, state{N: 1, Idle: true})
	set(t, b, state{N: 2, Idle: true})
	var o map[string]any
	for o["event"] != "fired" {
		select {
		case line := <-lines:
			o = nil
			if err := json.Unmarshal([]byte(line), &o); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if o["event"] == "epoch" || o["synchronizer"] != "gsync" || o["time"] == nil {
				t.Errorf("told %s", line)
			}
		case <-time.After(patience):
			t.Fatal("nothing is told")
		}
	}
	if o["predicate"] != "all-idle" || len(o["witness"].([]any)) != 2 {
		t.Errorf("told %v", o)
	}
}

// TestRefusesTooManyQuestions: those that wait are bounded.
func TestRefusesTooManyQuestions(t *testing.T) {
	server := serve(t, 0)
	inside, leave := make(chan struct{}), make(chan struct{})
	s := start(t, server.URL(), pair, synchronizer.Options{Observe: func(monitor.Event) {
		inside <- struct{}{}
		<-leave
	}})
	a, b := join(t, server.URL(), "a"), join(t, server.URL(), "b")
	set(t, a, state{N: 1})
	set(t, b, state{N: 2})
	<-inside // The owner of the core is held up.
	ctx, cancel := context.WithCancel(t.Context())
	answers := make(chan error, 16)
	for range 16 {
		go func() {
			_, err := s.Status(ctx)
			answers <- err
		}()
	}
	var err error
	for !errors.Is(err, synchronizer.ErrBusy) { // Until the 16 wait.
		short, stop := context.WithTimeout(t.Context(), time.Millisecond)
		_, err = s.Status(short)
		stop()
	}
	if err.Error() != "16 questions wait already: ask again" {
		t.Error(err)
	}
	go func() { // Other events are let through.
		for range inside {
			leave <- struct{}{}
		}
	}()
	leave <- struct{}{}
	cancel()
	for range 16 {
		if err := <-answers; err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, synchronizer.ErrBusy) {
			t.Error(err)
		}
	}
	if s.Stats().Busy == 0 {
		t.Error("what was refused is not counted")
	}
	t.Cleanup(func() { close(inside) })
	_ = s.Close()
}
