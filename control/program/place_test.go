package program_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/control/program"
)

// site is a node as a test keeps it.
type site struct {
	program.Node
	present        bool
	blocks, booked int
}

// TestPlacement draws nodes that come and go, and holds every start against the
// rules: the labels are there, reserved cores are free, no node less loaded is
// passed over, nor one of another machine by another attempt, and no block waits while a
// node would do.
func TestPlacement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cores := rapid.IntRange(0, 3).Draw(t, "cores")
		wanted := rapid.IntRange(0, 3).Draw(t, "count")
		p := &program.Program{
			Name:       "place",
			Processors: []program.Processor{{Name: "p", Labels: []string{"fast"}, Cores: cores, Count: wanted}},
			Blocks:     []program.Block{{Name: "b"}},
			Body:       program.Par{Times: 40, Of: []program.Construct{program.Do{Block: "b", On: "p", Retry: program.MaxRetry}}},
		}
		compiled, err := program.Compile(p, &program.Env{})
		if err != nil {
			t.Fatal(err)
		}
		run, out := program.NewRun(compiled), &program.Output{}
		sites := map[string]*site{}
		live := map[uint64]program.Action{}
		before := map[uint64][]string{} // where a block was tried
		number := uint64(0)
		mapped := false
		tried := func(i uint64, s *site) int {
			most := 0
			for _, name := range before[i] {
				if name == s.Name {
					return 2
				}
				if sites[name].Of == s.Of {
					most = 1
				}
			}
			return most
		}
		free := func(s *site) bool { return s.present && s.Cores >= cores && s.Cores-s.booked >= cores }
		step := func(in *program.Input) {
			run.Step(0, in, out)
			for _, a := range out.Actions {
				switch a.Kind {
				case program.ActStart:
					s := sites[a.Node]
					if len(s.Labels) == 0 || !free(s) {
						t.Fatalf("%s on %+v", line(&a), s)
					}
					if live[a.Block.Instance] = a; wanted == 0 && a.Block.Attempt == 1 {
						for name, other := range sites {
							if len(other.Labels) > 0 && free(other) && other.blocks*s.Cores < s.blocks*other.Cores {
								t.Fatalf("%s on %+v, and %s is less loaded: %+v", line(&a), s, name, other)
							}
						}
					}
					for name, other := range sites {
						if i := a.Block.Instance; wanted == 0 && len(other.Labels) > 0 && free(other) && tried(i, other) < tried(i, s) {
							t.Fatalf("%s on %s, tried on %v, and %s is free", line(&a), s.Name, before[i], name)
						}
					}
					before[a.Block.Instance] = append(before[a.Block.Instance], a.Node)
					s.blocks += max(1, cores)
					s.booked += cores
				case program.ActRefuse:
					t.Fatal(a.Reason)
				}
			}
		}
		step(&program.Input{Kind: program.InBegin})
		for range rapid.IntRange(1, 80).Draw(t, "events") {
			if run.Finished() {
				break
			}
			name := fmt.Sprintf("n%d", rapid.IntRange(0, 5).Draw(t, "node"))
			s := sites[name]
			switch what := rapid.IntRange(0, 5).Draw(t, "what"); {
			case s == nil || !s.present:
				s = &site{Node: program.Node{Name: name, Of: "m" + string(name[1]%3+'0'), Cores: rapid.IntRange(1, 4).Draw(t, "has")}, present: true}
				if rapid.Bool().Draw(t, "fast") {
					s.Labels = []string{"fast"}
				}
				sites[name] = s
				step(&program.Input{Kind: program.InJoined, Node: s.Node})
			case what == 0:
				s.present = false
				for i, a := range live {
					if a.Node == name {
						delete(live, i)
					}
				}
				step(&program.Input{Kind: program.InLeft, Node: program.Node{Name: name}})
			default:
				for _, x := range run.Blocks() {
					if x.Node != name {
						continue
					}
					number++
					s.blocks -= max(1, cores)
					s.booked -= cores
					delete(live, x.Block.Instance)
					in := &program.Input{Kind: program.InDone, Block: x.Block, Decision: control.Decision{Synchronizer: "s", Number: number}}
					if what == 1 {
						in = &program.Input{Kind: program.InFailed, Block: x.Block, Reason: "broken"}
					}
					step(in)
					break
				}
			}
			usable, waiting := 0, 0
			for _, s := range sites {
				if s.present && len(s.Labels) > 0 && s.Cores >= cores {
					usable++
				}
			}
			mapped = mapped || usable >= max(1, wanted)
			for _, x := range run.Blocks() {
				if x.Node == "" {
					waiting++
				} else if live[x.Block.Instance].Block != x.Block {
					t.Fatalf("%s runs on %s and never started there", x.Block, x.Node)
				}
			}
			for _, s := range sites {
				if mapped && wanted == 0 && waiting > 0 && len(s.Labels) > 0 && free(s) {
					t.Fatalf("%d blocks wait, and %+v is free", waiting, s)
				}
			}
			if !mapped && len(live) > 0 {
				t.Fatal("something began before the processor was mapped")
			}
		}
	})
}

// TestPlacementOfThreads draws nodes that come and go, with code for blocks that has
// threads or none: a block starts only where its code is as declared, fails for that
// only while no node has such code, and waits only while there is no node.
func TestPlacementOfThreads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := program.Do{Block: "a", Retry: program.MaxRetry, Else: program.Do{Block: "b", Retry: program.MaxRetry}}
		compiled, err := program.Compile(&program.Program{
			Name: "threads", Blocks: []program.Block{{Name: "a", Threads: 2}, {Name: "b"}},
			Body: program.Par{Times: 10, Of: []program.Construct{a}},
		}, &program.Env{})
		if err != nil {
			t.Fatal(err)
		}
		run, out := program.NewRun(compiled), &program.Output{}
		nodes := map[string]program.Node{}
		can := func(n program.Node, block string) bool { return slices.Contains(n.Threaded, block) == (block == "a") }
		number := uint64(0)
		step := func(in *program.Input) {
			run.Step(0, in, out)
			for _, x := range out.Actions {
				switch x.Kind {
				case program.ActStart:
					if n := nodes[x.Node]; !can(n, compiled.Info(x.Construct).Name) {
						t.Fatalf("%s on %+v", line(&x), n)
					}
				case program.ActEnd:
					info := compiled.Info(x.Construct)
					if info.Kind != program.KindDo || x.Outcome != program.Failed || !strings.HasPrefix(x.Reason, "block \""+info.Name+"\" has ") {
						continue
					}
					for _, n := range nodes {
						if can(n, info.Name) {
							t.Fatalf("%s, and %+v could run it", line(&x), n)
						}
					}
				case program.ActRefuse:
					t.Fatal(x.Reason)
				}
			}
			for _, x := range run.Blocks() {
				if x.Node == "" && len(nodes) > 0 {
					t.Fatalf("%s waits, and there are nodes: %+v", x.Block, nodes)
				}
			}
		}
		step(&program.Input{Kind: program.InBegin})
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			if run.Finished() {
				break
			}
			name := fmt.Sprintf("n%d", rapid.IntRange(0, 3).Draw(t, "node"))
			_, present := nodes[name]
			switch {
			case !present:
				n := program.Node{Name: name, Cores: 1, Threaded: rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b"}), 0, 2, rapid.ID).Draw(t, "threaded")}
				nodes[name] = n
				step(&program.Input{Kind: program.InJoined, Node: n})
			case rapid.Bool().Draw(t, "leaves"):
				delete(nodes, name)
				step(&program.Input{Kind: program.InLeft, Node: program.Node{Name: name}})
			default:
				for _, x := range run.Blocks() {
					if x.Node == name {
						number++
						step(&program.Input{Kind: program.InDone, Block: x.Block, Decision: control.Decision{Synchronizer: "s", Number: number}})
						break
					}
				}
			}
		}
	})
}
