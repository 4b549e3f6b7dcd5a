package agent_test

import (
	"context"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/internal/bus/bustest"
	"github.com/gopegasus/pegasus/internal/wire"
)

// failToJoin joins a synchronizer that gives that answer, nil for its usual one.
func failToJoin(t *testing.T, cfg agent.Config, answer func(*wire.Hello) *wire.Welcome, check func(error)) {
	t.Helper()
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		f := newFake(t, local.Connect)
		if answer != nil {
			f.answer = answer
		}
		_, err := agent.Join(t.Context(), "", cfg, agent.WithBus(local.Connect))
		if err == nil {
			t.Fatal("the member has joined")
		}
		check(err)
	})
}

func wantText(t *testing.T, err error, want string) {
	t.Helper()
	if !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v\nwant %s", err, want)
	}
}

func TestRefusedError(t *testing.T) {
	refuse := func(h *wire.Hello) *wire.Welcome {
		return &wire.Welcome{Synchronizer: "s", Member: h.Member, Incarnation: h.Incarnation, Refused: true, Reason: "one too many"}
	}
	failToJoin(t, agent.Config{Group: "g", Name: "w"}, refuse, func(err error) {
		wantText(t, err, `agent: join group "g" as "w": refused by synchronizer "s": one too many`)
		e, ok := errors.AsType[*agent.RefusedError](err)
		if want := (agent.RefusedError{Synchronizer: "s", Member: "w", Reason: "one too many"}); !ok || *e != want {
			t.Errorf("%+v, want %+v", e, want)
		}
		if errors.Is(err, agent.ErrNoSynchronizer) || errors.Is(err, agent.ErrNotConnected) {
			t.Errorf("%v is another error as well", err)
		}
	})
}

func TestErrNoSynchronizer(t *testing.T) {
	silent := func(*wire.Hello) *wire.Welcome { return nil }
	failToJoin(t, agent.Config{Group: "g", Name: "w", JoinTimeout: time.Second}, silent, func(err error) {
		wantText(t, err, "agent: join group \"g\" as \"w\": no synchronizer answered for group \"g\" of tenant \"default\" within 1s: start one with `pegasus run CONFIG`")
		if !errors.Is(err, agent.ErrNoSynchronizer) {
			t.Errorf("%v is not ErrNoSynchronizer", err)
		}
	})
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		newFake(t, local.Connect).answer = silent
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := agent.Join(ctx, "", agent.Config{Group: "g", Name: "w"}, agent.WithBus(local.Connect))
		if !errors.Is(err, agent.ErrNoSynchronizer) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%v", err)
		}
		wantText(t, err, `agent: join group "g" as "w": no synchronizer answered for group "g" so far: context deadline exceeded`)
	})
}

func TestStateError(t *testing.T) {
	for want, c := range map[string]struct {
		state any
		field string
	}{
		`has no field "phase", which the configuration declares without a default: add it`:   {struct{ Load float64 }{}, "phase"},
		`the configuration declares no field "other", but phase, load`:                       {struct{ Other int }{}, "Other"},
		`field F of struct { F func() } has type func(), which no state field has: use bool`: {struct{ F func() }{}, "F"},
		"a state is a struct, not *int: pass the struct itself, not a pointer to it":         {new(int), ""},
		`field Load of struct { Phase string; Load bool }: the configuration declares load: float, the`: {struct {
			Phase string
			Load  bool
		}{}, "Load"},
	} {
		failToJoin(t, agent.Config{Group: "g", Name: "w", State: c.state}, nil, func(err error) {
			e, ok := errors.AsType[*agent.StateError](err)
			if !ok || e.Type != reflect.TypeOf(c.state) || e.Field != c.field || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %+v\nwant field %q and %s", err, e, c.field, want)
			}
		})
	}
}

func TestErrNotConnected(t *testing.T) {
	_, err := agent.Join(t.Context(), "nats://127.0.0.1:port", agent.Config{Group: "g", Name: "w"})
	if !errors.Is(err, agent.ErrNotConnected) {
		t.Fatalf("%v is not ErrNotConnected", err)
	}
	wantText(t, err, `agent: join group "g" as "w": there is no connection to the server: bus: connect to NATS: address "nats://127.0.0.1:port"`)
	_, err = agent.JoinNode(t.Context(), "nats://127.0.0.1:port", agent.NodeConfig{Group: "g", Name: "n"}, nothing)
	if !errors.Is(err, agent.ErrNotConnected) {
		t.Fatalf("%v is not ErrNotConnected", err)
	}
	wantText(t, err, `agent: node "n": there is no connection to the server: bus: connect to NATS: address "nats://127.0.0.1:port"`)
	_, err = agent.Join(t.Context(), "", agent.Config{Group: "g", Name: "w"}, agent.WithConn(nil))
	if !errors.Is(err, agent.ErrNotConnected) {
		t.Fatalf("%v is not ErrNotConnected", err)
	}
	wantText(t, err, `agent: join group "g" as "w": there is no connection to the server: WithConn has a nil connection: pass the connection that nats.Connect returned, or leave WithConn out`)
}

var nothing = agent.Block("b", func(context.Context, *agent.Run, struct{}) (struct{}, error) { return struct{}{}, nil })

// TestErrClosed: what a member answers that has joined and was closed.
func TestErrClosed(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		newFake(t, local.Connect)
		m := join(t, local, agent.Config{Group: "g", Name: "w"})
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		err := m.Set(state{})
		if !errors.Is(err, agent.ErrClosed) {
			t.Fatalf("%v is not ErrClosed", err)
		}
		wantText(t, err, "agent: the member or thread was closed")
	})
}

// TestAllFaultsOfAConfig: they are named at once.
func TestAllFaultsOfAConfig(t *testing.T) {
	var noContext context.Context
	_, err := agent.Join(noContext, "", agent.Config{Name: "a.b", Host: strings.Repeat("h", 1000), Drift: math.NaN(), State: 1, BatchSize: -1, BatchAge: -time.Second, JoinTimeout: -1}, nil)
	if err == nil {
		t.Fatal("the member has joined")
	}
	want := `agent: join: Config.Group is empty: it is the group that the synchronizer's configuration names
agent: join: member name "a.b": use letters, digits, - and _, at most 64
agent: join: Config.Host has 1000 bytes, at most 255 are allowed
agent: join: Config.Drift is NaN: it is in parts per million, from 0 to 100000
agent: join: Config.BatchSize is -1: it is 1 or more, or 0 for 64
agent: join: Config.BatchAge is -1s: it is 0 or more
agent: join: Config.JoinTimeout is -1ns: it is more than 0, or 0 for 5s
agent: a state is a struct, not int: pass the struct itself, not a pointer to it
agent: join: the context is nil: pass context.Background(), or a context with a deadline
agent: join: an option is nil: leave it out`
	if err.Error() != want {
		t.Errorf("%v\nwant\n%s", err, want)
	}
	_, err = agent.JoinNode(noContext, "", agent.NodeConfig{Group: "g", Name: "n", Processors: 2000, Cores: -1, Pin: true, Unbound: true, JoinTimeout: -1}, nothing)
	if err == nil {
		t.Fatal("the node has joined")
	}
	for _, want := range []string{"2000 processors: use 1 to 1024", "-1 cores a processor: use 1 or more", "its Pin and Unbound exclude each other: leave out one", "its JoinTimeout is -1ns: it is more than 0, or 0 for 5s", "the context is nil: pass context.Background(), or a context with a deadline"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %s", err, want)
		}
	}
}
