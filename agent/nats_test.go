package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/testnats"
)

const allIdle = `
synchronizers:
  gsync:
    members: {group: g, count: 2}
    state: {phase: {enum: [idle, search]}, load: float}
    predicates:
      all-idle:
        when: all(members, .phase == "idle")
        signal: {kind: cancel, region: search, to: all}
`

// TestOverNATS: two members and a synchronizer's machine on a real server.
func TestOverNATS(t *testing.T) {
	server, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	h := newHub(t, func(o bus.Options) *bus.Bus {
		o.Extra = testnats.Options(t, server.URL())
		b, err := bus.Dial(t.Context(), server.URL(), o)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}, allIdle)
	nc, err := nats.Connect(server.URL(), testnats.Options(t, server.URL())...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)

	left := make(chan error, 2)
	for name, opts := range map[string][]agent.Option{"w1": nil, "w2": {agent.WithConn(nc)}} {
		m, err := agent.Join(t.Context(), server.URL(), agent.Config{Group: "g", Name: name, State: state{}}, opts...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { check(t, m.Close()) })
		go func() {
			left <- m.Region(t.Context(), "search", func(ctx context.Context, r *agent.Region) error {
				if err := m.Set(state{Phase: "search"}); err != nil {
					return err
				}
				if err := m.Set(state{Phase: "idle"}); err != nil {
					return err
				}
				return r.Wait(ctx)
			})
		}()
	}
	for range 2 {
		var c *agent.Canceled
		if err := <-left; !errors.As(err, &c) || c.Predicate != "all-idle" {
			t.Error(err)
		}
	}
	if h.fired("all-idle") == 0 {
		t.Error("the predicate did not fire")
	}
	if !nc.IsConnected() {
		t.Error("the connection that was lent is closed")
	}
	_, err = agent.Join(t.Context(), server.URL(), agent.Config{Group: "g", Name: "w3", State: struct{ Load float64 }{}})
	if err == nil || !strings.Contains(err.Error(), `has no field "phase"`) {
		t.Errorf("a state that does not match: %v", err)
	}
}
