package agent_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/internal/testnats"
	"github.com/gopegasus/pegasus/internal/testwait"
	"github.com/gopegasus/pegasus/synchronizer"
)

const securedConfig = `
synchronizers:
  s:
    members: {group: workers, count: 1}
    state: {n: int}
    predicates:
      p: {when: "any(members, .n > 0)"}
`

const securedProgram = `
program: {name: one, blocks: {b: {}}, body: b}
`

// securedNode are a synchronizer's program and what a node of it needs.
func securedNode(t *testing.T) (*synchronizer.Config, agent.NodeConfig, agent.BlockCode) {
	t.Helper()
	cfg, err := synchronizer.ParseProgram("program", []byte(securedProgram))
	if err != nil {
		t.Fatal(err)
	}
	hangs := func(ctx context.Context, _ *agent.Run, _ int) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	return cfg, agent.NodeConfig{Group: "processors", Name: "n"}, agent.Block("b", hangs)
}

// TestJoinSecuredServer starts a synchronizer and joins a member and is refused without
// credentials, on a server of each kind, by the environment alone.
func TestJoinSecuredServer(t *testing.T) {
	cfg, err := synchronizer.ParseConfig("secured", []byte(securedConfig))
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range testnats.Kinds() {
		t.Run(kind, func(t *testing.T) {
			server := testnats.Start(t, kind)
			worker := agent.Config{Group: "workers", Name: "w"}
			if _, err := agent.Join(t.Context(), server.URL, worker); !errors.Is(err, agent.ErrNotConnected) {
				t.Errorf("Join without credentials: %v", err)
			}
			if _, err := synchronizer.Start(t.Context(), server.URL, cfg, synchronizer.Options{}); !errors.Is(err, synchronizer.ErrNotConnected) {
				t.Errorf("Start without credentials: %v", err)
			}
			program, node, block := securedNode(t)
			if _, err := agent.JoinNode(t.Context(), server.URL, node, block); !errors.Is(err, agent.ErrNotConnected) {
				t.Errorf("JoinNode without credentials: %v", err)
			}
			server.Setenv(t)
			t.Setenv("NATS_URL", server.URL)
			s, err := synchronizer.Start(t.Context(), "", cfg, synchronizer.Options{})
			if err != nil {
				t.Fatal(err)
			}
			m, err := agent.Join(t.Context(), "", worker)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(m.Close(), s.Close()); err != nil {
				t.Error(err)
			}
			p, err := synchronizer.Start(t.Context(), "", program, synchronizer.Options{})
			if err != nil {
				t.Fatal(err)
			}
			n, err := agent.JoinNode(t.Context(), "", node, block)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(n.Close(), p.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// logged is a log that tests read while it is written.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), part)
}

// TestExpiredCredentials: a JWT expires while a member, a node and synchronizers are connected. Each
// tells once which file it is and what to do, and comes back when the file was renewed.
func TestExpiredCredentials(t *testing.T) {
	cfg, err := synchronizer.ParseConfig("secured", []byte(securedConfig))
	if err != nil {
		t.Fatal(err)
	}
	server := testnats.Start(t, "creds")
	server.Setenv(t)
	server.Renew(time.Now().Add(3 * time.Second))
	var member, leader, nodes logged
	s, err := synchronizer.Start(t.Context(), server.URL, cfg, synchronizer.Options{Logger: slog.New(slog.NewTextHandler(&leader, nil))})
	if err != nil {
		t.Fatal(err)
	}
	m, err := agent.Join(t.Context(), server.URL, agent.Config{Group: "workers", Name: "w", Logger: slog.New(slog.NewTextHandler(&member, nil))})
	if err != nil {
		t.Fatal(err)
	}
	program, node, block := securedNode(t)
	node.Logger = slog.New(slog.NewTextHandler(&nodes, nil))
	p, err := synchronizer.Start(t.Context(), server.URL, program, synchronizer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n, err := agent.JoinNode(t.Context(), server.URL, node, block)
	if err != nil {
		t.Fatal(err)
	}
	begun := server.Attempts()
	want := "the server refused the credentials file " + server.Env["NATS_CREDS"] + " of NATS_CREDS: renew the credentials; the connection tries again, each 30s at the latest"
	testwait.Until(t, "several refusals of both", func() bool {
		return server.Attempts() >= begun+5 && member.count(want) > 0 && leader.count(want) > 0 && nodes.count(want) > 0
	})
	server.Renew(time.Time{})
	testwait.Until(t, "both to come back", func() bool {
		back := func(l *logged) bool { return l.count("server is away") == l.count("server is back") }
		return server.Connections() == 5 && back(&leader) && back(&member)
	})
	for who, log := range map[string]*logged{"member": &member, "synchronizer": &leader, "node": &nodes} {
		if log.count(want) != 1 || log.count("renew the credentials") != 1 || log.count("uthorization") > 0 {
			t.Errorf("the log of the %s:\n%s", who, &log.text)
		}
	}
	if err := errors.Join(m.Close(), s.Close(), n.Close(), p.Close()); err != nil {
		t.Error(err)
	}
}

// TestWithNATS overrules the environment, and its options are not shared with members
// that have others.
func TestWithNATS(t *testing.T) {
	cfg, err := synchronizer.ParseConfig("secured", []byte(securedConfig))
	if err != nil {
		t.Fatal(err)
	}
	server := testnats.Start(t, "password")
	t.Setenv("NATS_TOKEN", "n0t-it")
	_, err = agent.Join(t.Context(), server.URL, agent.Config{Group: "workers", Name: "w"})
	if want := "; the server refused the token of NATS_TOKEN"; err == nil || !strings.HasSuffix(err.Error(), want) || strings.Contains(err.Error(), "n0t-it") {
		t.Errorf("got %v\nwant ...%s", err, want)
	}
	_, err = agent.JoinNode(t.Context(), server.URL, agent.NodeConfig{Group: "workers", Name: "n"}, agent.Block("b", func(context.Context, *agent.Run, int) (int, error) { return 0, nil }))
	if want := "; the server refused the token of NATS_TOKEN"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v\nwant ...%s", err, want)
	}
	right := nats.UserInfo("jo", testnats.Secret)
	s, err := synchronizer.Start(t.Context(), server.URL, cfg, synchronizer.Options{NATS: []nats.Option{right}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	same := agent.WithNATS(right)
	join := func(name string, with agent.Option) error {
		m, err := agent.Join(t.Context(), server.URL, agent.Config{Group: "workers", Name: name}, with)
		if err == nil {
			t.Cleanup(func() { _ = m.Close() })
		}
		return err
	}
	if err := errors.Join(join("w1", same), join("w2", same)); err != nil {
		t.Fatal(err)
	}
	if err := join("w3", agent.WithNATS(nats.UserInfo("jo", "n0t-it"))); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("a member with wrong credentials beside one with right ones: %v", err)
	}
	if err := join("w4", agent.WithNATS()); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("a member without credentials beside one with right ones: %v", err)
	}
	if !testwait.Within(10*time.Second, func() bool { return server.Connections() == 2 }) { // Those that were refused may end a little later.
		t.Errorf("%d connections of a synchronizer and two members with the same options, want 2", server.Connections())
	}
}
