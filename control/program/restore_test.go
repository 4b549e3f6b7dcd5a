package program_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/control/program"
)

// TestRestoreStartsNothingTwice stops the interpreter at random: what it asked
// for and did not reach the nodes is lost, and so is what the nodes told it. A
// run rebuilt from the journal and the reports of the nodes goes on as if nothing
// had been: no attempt is started twice, no block whose end was used is started
// again, and the program ends with every result.
func TestRestoreStartsNothingTwice(t *testing.T) {
	p := &program.Program{
		Name:   "restored",
		Blocks: []program.Block{{Name: "b", Output: program.Type{Base: program.Int}}, {Name: "c", Input: program.Type{Base: program.Any}, Output: program.Type{Base: program.Any}}},
		Body: program.Seq{Of: []program.Construct{
			program.Par{Name: "first", Times: 5, Of: []program.Construct{program.Do{Block: "b", Retry: 100}}},
			program.Par{Name: "second", Times: 3, Of: []program.Construct{program.Do{Block: "c", From: "first.result", Retry: 100}}},
		}},
		Result: "second.result",
	}
	plan, err := program.Compile(p, &program.Env{})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		var (
			run     = program.NewRun(plan)
			out     program.Output
			journal []program.Entry
			number  uint64
			wire    []program.Action           // asked for, not there yet
			held    = map[program.ID]*onNode{} // what runs or ran, by all nodes
			used    = map[uint64]bool{}        // instances whose end is in the journal
			result  string
		)
		step := func(in program.Input) {
			journal = append(journal, program.Entry{Input: in})
			run.Step(0, &in, &out)
			for _, a := range out.Actions {
				switch a.Kind {
				case program.ActStart, program.ActCancel:
					wire = append(wire, a)
				case program.ActEnd:
					if a.Block.Instance > 0 {
						used[a.Block.Instance] = true
					}
				case program.ActFinish:
					if result = a.Result; a.Outcome != program.Done {
						t.Fatalf("%v: %s", a.Outcome, a.Reason)
					}
				}
			}
		}
		decide := func() control.Decision {
			number++
			return control.Decision{Synchronizer: "s", Number: number}
		}
		deliver := func() {
			a := wire[0]
			wire = wire[1:]
			switch {
			case a.Kind == program.ActCancel:
				delete(held, a.Block)
			case held[a.Block] != nil:
				t.Fatalf("%s is started twice", a.Block)
			case used[a.Block.Instance]:
				t.Fatalf("%s is started after its end was used", a.Block)
			default:
				held[a.Block] = &onNode{node: a.Node, state: program.InStarted}
			}
		}
		names := []string{"n1", "n2"}
		for _, n := range names {
			step(program.Input{Kind: program.InJoined, Node: program.Node{Name: n, Cores: 1}})
		}
		step(program.Input{Kind: program.InBegin})
		for moves := 0; !run.Finished(); moves++ {
			what := rapid.IntRange(0, 9).Draw(t, "what")
			if moves > 300 {
				what = 4 + moves%2 // The trouble is over.
			}
			switch {
			case what == 0:
				for len(wire) > 0 && rapid.Bool().Draw(t, "arrives") {
					deliver()
				}
				wire = nil
				run = program.Restore(plan, journal)
				asked := run.Steps()
				for _, n := range names {
					in := program.Input{Kind: program.InReport, Node: program.Node{Name: n}, Decision: decide(), Asked: asked}
					for _, id := range sorted(held) {
						if h := held[id]; h.node == n {
							in.Held = append(in.Held, program.Held{Block: id, State: h.state, Result: "7"})
						}
					}
					step(in)
				}
			case what == 1:
				n := rapid.SampledFrom(names).Draw(t, "dies")
				for id, h := range held {
					if h.node == n {
						delete(held, id)
					}
				}
				wire = slices.DeleteFunc(wire, func(a program.Action) bool { return a.Node == n })
				step(program.Input{Kind: program.InLeft, Node: program.Node{Name: n}})
				step(program.Input{Kind: program.InJoined, Node: program.Node{Name: n, Cores: 1}})
			case what < 5 && len(wire) > 0:
				deliver()
			default:
				// A block ends; what it tells may be lost, and is then in the report.
				ids := slices.DeleteFunc(sorted(held), func(id program.ID) bool { return used[id.Instance] })
				if len(ids) == 0 {
					continue
				}
				h := held[ids[0]]
				if h.state = program.InDone; what != 9 || moves > 300 {
					step(program.Input{Kind: program.InDone, Block: ids[0], Result: "7", Decision: decide()})
				}
			}
		}
		if result != "[7,7,7]" || len(used) != 8 {
			t.Fatalf("result %q of %d blocks", result, len(used))
		}
	})
}

// onNode is a block on a node.
type onNode struct {
	node  string
	state program.InKind
}

func sorted(held map[program.ID]*onNode) []program.ID {
	var ids []program.ID
	for id := range held {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b program.ID) int { return int(a.Instance) - int(b.Instance) })
	return ids
}
