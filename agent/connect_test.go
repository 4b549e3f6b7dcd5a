package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/internal/testnats"
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
		})
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
	if n := server.Connections(); n != 2 {
		t.Errorf("%d connections of a synchronizer and two members with the same options, want 2", n)
	}
}
