package agent_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/internal/bus/bustest"
	"github.com/gopegasus/pegasus/internal/wire"
)

// TestClockThatWentBack: a process whose clock is behind the clock of its earlier life takes an
// incarnation above the received number, and joins.
func TestClockThatWentBack(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		f := newFake(t, local.Connect)
		const known = 1 << 61
		welcome := f.answer
		f.answer = func(h *wire.Hello) *wire.Welcome {
			if h.Incarnation > known {
				return welcome(h)
			}
			return &wire.Welcome{Synchronizer: "s", Term: 1, Member: h.Member, Incarnation: h.Incarnation, Refused: true, Reason: "a newer one is here", NextSeq: known}
		}
		begun := time.Now()
		m := join(t, local, agent.Config{Group: "g", Name: "w"})
		if took := time.Since(begun); took > time.Second {
			t.Errorf("Join took %v", took)
		}
		check(t, m.Set(state{Phase: "idle"}))
		synctest.Wait()
		if b := f.last(t, "w"); b.Incarnation <= known || len(b.Reports) != 1 {
			t.Errorf("it tells %+v", b)
		}
	})
}

// TestTwoOfOneName: of two living processes, the last to come has the name. They do
// not contend for it, and when it leaves the other comes back, with its state.
func TestTwoOfOneName(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		h := newHub(t, local.Connect, `synchronizers:
  s:
    members: {group: g, count: 1}
    state: {phase: {enum: [idle, search]}, load: float}
    predicates:
      two: {when: "any(members, .load == 2)"}
      three: {when: "any(members, .load == 3)"}
`)
		first := join(t, local, agent.Config{Group: "g", Name: "w"})
		check(t, first.Set(state{Load: 1, Phase: "idle"}))
		time.Sleep(time.Second)
		second := join(t, local, agent.Config{Group: "g", Name: "w"})
		check(t, second.Set(state{Load: 2, Phase: "idle"}))
		check(t, first.Set(state{Load: 3, Phase: "idle"})) // By which it learns of the other.
		time.Sleep(time.Minute)
		if h.fired("two") != 1 || h.fired("three") != 0 || second.Stats().Rejoins != 0 || first.Stats().Rejoins != 1 {
			t.Errorf("the last one has come back %d times, the other %d times", second.Stats().Rejoins, first.Stats().Rejoins)
		}
		check(t, second.Close())
		time.Sleep(3 * time.Second)
		if h.fired("three") != 1 {
			t.Error("the other does not come back")
		}
	})
}
