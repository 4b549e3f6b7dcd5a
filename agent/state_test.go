package agent_test

import (
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/internal/bus/bustest"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

func TestSetReportsTheDeclaredFields(t *testing.T) {
	joined(t, func(t *testing.T, m *agent.Member, f *fake, _ *bustest.Server) {
		if err := m.Set(state{Load: 0.5, Phase: "search"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		b := f.last(t, "w")
		if len(b.Reports) != 1 || b.Reports[0].Row[0] != scgs.EnumValue("search") || b.Reports[0].Row[1] != scgs.FloatValue(0.5) {
			t.Fatalf("reported %+v", b)
		}
		if b.Evidence.Seq != 1 || b.Evidence.At.Mono <= b.Reports[0].At.Mono {
			t.Errorf("evidence %+v is not above the state's start %v", b.Evidence, b.Reports[0].At)
		}
		before := f.count()
		time.Sleep(3500 * time.Millisecond)
		synctest.Wait()
		if n := f.count() - before; n != 3 {
			t.Errorf("%d heartbeats in 3.5 s", n)
		}
	})
}

func TestSetRefuses(t *testing.T) {
	type named struct {
		P string  `pegasus:"phase"`
		L float32 `pegasus:"load"`
		X int     `pegasus:"-"`
		y int
	}
	tests := []struct {
		name  string
		state any
		want  string // part of the error; "" for none
	}{
		{"tags", named{P: "idle", y: 1}, ""},
		{"a pointer", &state{}, "a state is a struct, not *agent_test.state: pass the struct itself"},
		{"nil", nil, "agent: a state is a struct, not nil: pass the struct itself"},
		{"a word that is not declared", state{Phase: "sleep"}, `agent: field Phase of agent_test.state cannot be told: "sleep" is not one of its words: use idle, search`},
		{"NaN", state{Phase: "idle", Load: math.NaN()}, "field Load of agent_test.state cannot be told"},
		{"infinity", state{Phase: "idle", Load: math.Inf(1)}, "load"},
		{"a field too many", struct {
			Phase string
			Load  float64
			Best  float64
		}{}, `the configuration declares no field "best", but phase, load: declare it`},
		{"a field missing", struct{ Phase string }{}, `agent: struct { Phase string } has no field "load", which the configuration declares without a default: add it, give it one with {type: T, default: V}, or take it out of the declaration`},
		{"a list for a float", struct {
			Phase string
			Load  []float64
		}{}, "field Load of struct { Phase string; Load []float64 }: the configuration declares load: float, the program has list of float: make them the same"},
		{"a list of lists", struct {
			Phase string
			Load  [][]float64
		}{}, "has type [][]float64, which no state field has: use bool, an integer, a float, string, time.Duration or a slice of these"},
		{"another type", struct {
			Phase string
			Load  int
		}{}, "field Load of struct"},
		{"a type no field has", struct {
			Phase *string
			Load  float64
		}{}, "field Phase of struct"},
		{"an embedded struct", struct {
			state
			More int
		}{}, "embeds agent_test.state, whose fields are not looked at: write them out, or leave it out with the tag `pegasus:\"-\"`"},
		{"a reserved name", struct{ Name string }{}, `field "name" is reserved`},
	}
	joined(t, func(t *testing.T, m *agent.Member, f *fake, _ *bustest.Server) {
		for _, c := range tests {
			err := m.Set(c.state)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("%s: %v", c.name, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%s: %v, want %q in it", c.name, err, c.want)
			}
		}
		synctest.Wait()
		if n := len(f.rows()); n != 1 {
			t.Errorf("%d states were told, want the good one only", n)
		}
	})
}

func TestJoinErrors(t *testing.T) {
	good := agent.Config{Group: "g", Name: "w", JoinTimeout: time.Second}
	tests := []struct {
		name   string
		change func(*agent.Config)
		answer func(*wire.Hello) *wire.Welcome
		want   string
	}{
		{"drift", func(c *agent.Config) { c.Drift = -1 }, nil, "agent: join: Config.Drift is -1: it is in parts per million, from 0 to 100000"},
		{"no group", func(c *agent.Config) { c.Group = "" }, nil, "Config.Group is empty"},
		{"bad name", func(c *agent.Config) { c.Name = "a.b" }, nil, `member name "a.b": use letters, digits, - and _, at most 64`},
		{"bad state", func(c *agent.Config) { c.State = struct{ F func() }{} }, nil, "field F of struct { F func() } has type func()"},
		{
			"nobody answers", func(*agent.Config) {},
			func(*wire.Hello) *wire.Welcome { return nil },
			"agent: join group \"g\" as \"w\": no synchronizer answered for group \"g\" of tenant \"default\" within 1s: start one with `pegasus run CONFIG`",
		},
		{
			"refused", func(*agent.Config) {},
			func(h *wire.Hello) *wire.Welcome {
				return &wire.Welcome{Synchronizer: "s", Member: h.Member, Incarnation: h.Incarnation, Refused: true, Reason: "one too many"}
			},
			`refused by synchronizer "s": one too many`,
		},
		{
			"state not as declared", func(c *agent.Config) { c.State = struct{ Load float64 }{} }, nil,
			`agent: join group "g" as "w": agent: struct { Load float64 } has no field "phase", which the configuration declares without a default: add it`,
		},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			bustest.Bubble(t, func(t *testing.T) {
				local := bustest.NewServer(t)
				f := newFake(t, local.Connect)
				if c.answer != nil {
					f.answer = c.answer
				}
				cfg := good
				c.change(&cfg)
				_, err := agent.Join(t.Context(), "", cfg, agent.WithBus(local.Connect))
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %q in it", err, c.want)
				}
			})
		})
	}
}

// TestJoinWithoutServer waits for real: a port where nothing listens.
func TestJoinWithoutServer(t *testing.T) {
	t.Parallel()
	start := time.Now()
	_, err := agent.Join(t.Context(), "nats://127.0.0.1:1", agent.Config{Group: "g", Name: "w"})
	if err == nil || !strings.Contains(err.Error(), "nats://127.0.0.1:1") {
		t.Errorf("%v does not name the server", err)
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("it took %v", d)
	}
}
