package balancesim

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/balance"
)

// TestSlowLinks: messages that take longer than any run are no reason to move.
func TestSlowLinks(t *testing.T) {
	for _, view := range []string{Consistent, Latest} {
		s := Default()
		s.Nodes = Nodes{Powers: []float64{1, 2}}
		s.Tasks.Count, s.Tasks.Size, s.Tasks.Groups, s.Tasks.Traffic = 8, maxValue, 4, maxValue
		s.Links.Startup, s.Links.PerKilobyte, s.Links.Topology = maxTime, maxTime, "ring"
		s.Plans.View = view
		r, err := Run(Generate(&s), Settings{Scenario: &s})
		if err != nil || r.Units > 0 || r.Time < 0 || r.Idle < 0 || r.Talk < 0 {
			t.Errorf("%s: %+v, %v", view, r, err)
		}
	}
}

// TestTooLong: work that would take more plans than anybody waits for is refused.
func TestTooLong(t *testing.T) {
	s := Default()
	s.Nodes = Nodes{Powers: []float64{1, 1}}
	s.Changes.Every = 0
	s.Tasks.Count, s.Tasks.Shape, s.Tasks.Mean = 2, "equal", maxValue
	_, err := Run(Generate(&s), Settings{Scenario: &s})
	const want = "the work takes at least 1e+12s, in which there are 4e+12 times plans.every, 250ms, and 10000000 are the most: give it less work, or plan less often"
	if err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}

// TestStop ends a run before its end.
func TestStop(t *testing.T) {
	s := Default()
	set, asked, enough := Settings{Scenario: &s}, 0, errors.New("enough")
	set.Stop = func() error {
		if asked++; asked < 3 {
			return nil
		}
		return enough
	}
	if r, err := Run(Generate(&s), set); !errors.Is(err, enough) || r != nil || asked != 3 {
		t.Errorf("%v after %d: %+v", err, asked, r)
	}
}

// TestNodeThatReturns: loads that left a node because it was withdrawn go back to it when it
// returns, also those that had left before, and no other load goes back.
func TestNodeThatReturns(t *testing.T) {
	const withdrawn = `{"node":"b","at":2,"power":1,"share":0}
{"node":"b","at":8,"power":1,"share":1}
`
	for name, c := range map[string]struct {
		changes string
		time    float64 // at most
		back    bool
	}{
		"returns":       {withdrawn, 14, true},
		"returns twice": {withdrawn + `{"node":"b","at":9,"power":1,"share":0}` + "\n" + `{"node":"b","at":12,"power":1,"share":1}`, 15.1, true},
		"slower":        {`{"node":"b","at":2,"power":1,"share":0.5}` + "\n" + `{"node":"b","at":4,"power":1,"share":1}`, 14, false},
		"steady":        {"", 11, false},
	} {
		var trace strings.Builder
		trace.WriteString(`{"node":"a","at":0,"power":1}` + "\n" + `{"node":"b","at":0,"power":1}` + "\n" + c.changes)
		for i := range 20 {
			fmt.Fprintf(&trace, "\n"+`{"task":"t%d","at":0,"on":"b","work":1}`, i)
		}
		in, err := ReadTrace("x", strings.NewReader(trace.String()))
		if err != nil {
			t.Fatal(err)
		}
		for _, strategy := range []string{balance.Pegasus, balance.Greedy, balance.Largest} {
			for _, order := range []string{"arrival", "largest"} {
				s := Default()
				s.Balance.Strategy, s.Tasks.Order = strategy, order
				r, err := Run(in, Settings{Scenario: &s})
				if err != nil || r.Time > c.time || r.Unfinished > 0 || (r.Returned > 0) != c.back {
					t.Errorf("%s, %s, %s: %.2f s, %d went back, %v", name, strategy, order, r.Time, r.Returned, err)
				}
			}
		}
	}
}

// TestWithdrawnNode: moves away from a node that has nothing left are no wrong ones,
// however many, and one to such a node is.
func TestWithdrawnNode(t *testing.T) {
	in, err := ReadTrace("x", strings.NewReader(`{"node":"a","at":0,"power":1,"share":0}
{"node":"b","at":0,"power":1}
{"task":"t1","on":"a","work":1}
{"task":"t2","on":"a","work":1}
{"task":"t3","on":"a","work":1}
`))
	if err != nil {
		t.Fatal(err)
	}
	queues := []float64{math.Inf(1), 0}
	r := run{in: in, nodes: []node{{power: 1}, {power: 1, share: 1}}, state: []task{{left: 1}, {left: 1}, {left: 1, at: 1}}}
	r.judge(0, 0, 1, queues)
	r.judge(1, 0, 1, queues)
	if r.result.WrongMoves != 0 || !math.IsInf(queues[0], 1) || queues[1] != 2 {
		t.Errorf("%d wrong moves, queues %v", r.result.WrongMoves, queues)
	}
	if r.judge(2, 1, 0, queues); r.result.WrongMoves != 1 {
		t.Error("a move to a node that has nothing left is no wrong one")
	}
	s := Default()
	s.Plans.Every = 100 * time.Millisecond
	s.Balance.Strategy = balance.Greedy
	got, err := Run(in, Settings{Scenario: &s})
	if err != nil || got.Units != 2 || got.WrongMoves != 0 || got.Unfinished != 1 { // The one that had begun stays.
		t.Errorf("%+v, %v", got, err)
	}
}

// TestNothing: no work is done at once.
func TestNothing(t *testing.T) {
	s := Default()
	s.Tasks.Count = 0
	r, err := Run(Generate(&s), Settings{Scenario: &s})
	if err != nil || r.Time != 0 || r.Efficiency != 1 || r.Idle != 0 || r.Plans != 0 || r.Unfinished != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}
