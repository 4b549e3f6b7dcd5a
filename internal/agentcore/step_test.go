package agentcore_test

import (
	"reflect"
	"testing"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// TestStateIsAStep: the direct call does what the input does.
func TestStateIsAStep(t *testing.T) {
	var cores [2]*agentcore.Core
	var outs [2]agentcore.Output
	each := func(now clocksync.Instant, in agentcore.Input) {
		for i, c := range cores {
			if c.Step(now, &in, &outs[i]); outs[i].Err != nil {
				t.Fatal(outs[i].Err)
			}
		}
	}
	for i := range cores {
		cores[i] = agentcore.New(agentcore.Options{Hello: wire.Hello{Member: "w", Incarnation: 1, Domain: "d"}})
	}
	each(0, agentcore.Input{Kind: agentcore.InWelcome, Welcome: &wire.Welcome{Synchronizer: "s", Member: "w", Incarnation: 1, Accepted: true, Schema: fields}})
	for now := clocksync.Instant(1); now < 100; now++ {
		row := []scgs.Value{scgs.IntValue(int64(now))}
		cores[0].Step(now, &agentcore.Input{Kind: agentcore.InState, At: stamp(now), Row: row}, &outs[0])
		at := stamp(now)
		due, err := cores[1].State(now, &at, row)
		if err != nil || outs[0].Err != nil || due != outs[0].Due {
			t.Fatalf("state %d: %v, due %+v; the step: %v, due %+v", now, err, due, outs[0].Err, outs[0].Due)
		}
		if now%7 == 0 {
			each(now, agentcore.Input{Kind: agentcore.InTick, At: stamp(now + 1)})
			if !reflect.DeepEqual(outs[0], outs[1]) { //nolint:govet // Both errors are nil by now.
				t.Fatalf("outputs differ: %+v and %+v", outs[0], outs[1])
			}
		}
	}
	at := stamp(5)
	_, err := cores[1].State(100, &at, []scgs.Value{scgs.IntValue(0)})
	cores[0].Step(100, &agentcore.Input{Kind: agentcore.InState, At: stamp(5), Row: []scgs.Value{scgs.IntValue(0)}}, &outs[0])
	if err == nil || outs[0].Err == nil || err.Error() != outs[0].Err.Error() {
		t.Errorf("a clock that ran backwards is refused with %v and %v", err, outs[0].Err)
	}
}

func TestAnInputWithoutAKindPanics(t *testing.T) {
	defer func() {
		if v := recover(); v != "agentcore: input without a kind" {
			t.Errorf("panic %v", v)
		}
	}()
	agentcore.New(agentcore.Options{}).Step(0, &agentcore.Input{}, &agentcore.Output{})
}
