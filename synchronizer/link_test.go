package synchronizer_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/link"
	"github.com/gopegasus/pegasus/internal/testnats"
	"github.com/gopegasus/pegasus/scgs"
	"github.com/gopegasus/pegasus/synchronizer"
)

const working = `
synchronizers:
  gsync:
    members: {group: g, count: 2, min: 1}
    silence: {after: 1s, then: drop}
    state: {done: bool, work.idle: {type: bool, default: false}}
    work: {slots: 3, end: "count(members, .done) >= 2"}
`

// TestLink goes through what the package work needs, over a server: members that share a
// connection, a member that leaves, a killed member, and a replacement for it; a reload, and a
// synchronizer that is restarted.
func TestLink(t *testing.T) {
	t.Parallel()
	server := serve(t, 0)
	parse := func(text string) *synchronizer.Config {
		cfg, err := synchronizer.ParseConfig("test.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	first, err := synchronizer.Start(t.Context(), server.URL(), parse(working), synchronizer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	type done struct{ Done bool }
	enter := func(name string, opts ...agent.Option) (*agent.Member, link.Link) {
		t.Helper()
		m, err := agent.Join(t.Context(), server.URL(), agent.Config{Group: "g", Name: name}, opts...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		k, err := m.Link()
		if err == nil {
			err = m.Set(done{})
		}
		if err != nil {
			t.Fatal(err)
		}
		return m, k
	}
	a, ka := enter("a")
	told := make(chan string, 100)
	stop, err := ka.Watch(link.Watcher{
		Roster: func(r link.Roster) {
			var names []string
			for _, p := range r.Peers {
				names = append(names, fmt.Sprint(p.Name, ".", p.Life))
			}
			told <- fmt.Sprintf("%d %v", r.Phase, names)
		},
		Section: func(w *config.Work) { told <- fmt.Sprintf("slots=%d", w.Slots) },
		Closed:  func() { told <- "closed" },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	await := func(phase int, members ...link.Link) {
		t.Helper()
		var names []string
		for _, k := range members {
			names = append(names, fmt.Sprint(k.Self().Name, ".", k.Self().Life))
		}
		want := fmt.Sprintf("%d %v", phase, names)
		for limit := time.After(patience); ; {
			select {
			case got := <-told:
				if got == want {
					return
				}
			case <-limit:
				t.Fatalf("%s was not told", want)
			}
		}
	}
	b, kb := enter("b")
	await(1, ka, kb)
	c, kc := enter("c", agent.OwnConn())
	await(1, ka, kb, kc)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	await(1, ka, kb)

	nc, err := nats.Connect(server.URL(), testnats.Options(t, server.URL())...)
	if err != nil {
		t.Fatal(err)
	}
	_, kd := enter("d", agent.WithConn(nc))
	await(1, ka, kb, kd)
	nc.Close() // As if its process were killed.
	await(1, ka, kb)
	_, kd = enter("d", agent.OwnConn())
	await(1, ka, kb, kd)

	conn, err := kb.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 1)
	if err := conn.Subscribe(kb.Own(), func(_ string, data []byte) { got <- string(data) }); err != nil {
		t.Fatal(err)
	}
	if err := conn.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	sender, err := ka.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := sender.Publish(ka.Subject("b"), []byte("x")); err != nil {
		t.Fatal(err)
	}
	if text := <-got; text != "x" {
		t.Errorf("b got %q", text)
	}
	for _, c := range []link.Conn{conn, sender} {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}

	over := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	go func() { over <- ka.Await(ctx, func() {}) }()
	phase := int64(1)
	tell := func() {
		t.Helper()
		now := phase
		for _, k := range []link.Link{ka, kb, kd} {
			if err := k.Tell(func(f scgs.Field) (scgs.Value, bool) { return scgs.IntValue(now), f.Name == "work.phase" }); err != nil {
				t.Fatal(err)
			}
		}
	}
	tell()
	for _, m := range []*agent.Member{a, b} { // It fires in an entry of the region, which may begin later: then the next phase ends it.
		if err := m.Set(done{true}); err != nil {
			t.Fatal(err)
		}
	}
	await(2, ka, kb, kd)
	for ended := false; !ended; {
		select {
		case err := <-over:
			if ended = true; err != nil {
				t.Errorf("the end of a phase: %v", err)
			}
		case <-time.After(100 * time.Millisecond):
			phase++
			tell()
		}
	}

	if err := first.Reload(parse(strings.Replace(working, "slots: 3", "slots: 4", 1))); err != nil {
		t.Fatal(err)
	}
	for got := ""; got != "slots=4"; {
		select {
		case got = <-told:
		case <-time.After(patience):
			t.Fatal("the reload was not told")
		}
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	for _, m := range []*agent.Member{a, b} {
		if err := m.Set(done{}); err != nil {
			t.Fatal(err)
		}
	}
	start(t, server.URL(), strings.Replace(working, "slots: 3", "slots: 5", 1), synchronizer.Options{})
	await(int(phase), ka, kb, kd) // As one: nobody is missing because others were quicker.
	if n := ka.Section().Slots; n != 5 {
		t.Errorf("%d slots after the restart", n)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	last := ""
	for len(told) > 0 {
		last = <-told
	}
	if last != "closed" {
		t.Errorf("told %q last", last)
	}
}
