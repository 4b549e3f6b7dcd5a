package synchronizer_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/control/program"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/synchronizer"
)

// A fault in a configuration is reported with its place and what to do.
func ExampleParseConfig() {
	_, err := synchronizer.ParseConfig("pegasus.yaml", []byte(`synchronizers:
  gsync:
    members: {group: workers, count: 3}
    state: {load: float}
    predicates:
      busy: {when: "sum(members, .laod) > 2"}
`))
	fmt.Println(err)
	// Output:
	// pegasus.yaml:6:35: synchronizers.gsync.predicates.busy.when: unknown field "laod": did you mean "load"? declared fields: load, name, host, online
	//   |       busy: {when: "sum(members, .laod) > 2"}
	//   |                                   ^
}

// A program may be a Go value. Written as a file it can be read, drawn and run.
func ExampleFormatProgram() {
	p := &program.Program{
		Name:   "solve",
		Blocks: []program.Block{{Name: "step", Group: "parts", Input: program.Type{Base: program.Any}, Output: program.Type{Base: program.Any}}},
		Body: program.DoUntil{
			Name: "rounds", Until: "precise", Input: "[0,0]",
			Do: program.Par{Times: 2, Of: []program.Construct{program.Do{Block: "step", From: "rounds.previous", Retry: 3}}},
		},
		Result: "rounds.result",
	}
	text, err := synchronizer.FormatProgram("solve.yaml", []byte(`synchronizers:
  gsync:
    members: {group: parts, count: 2}
    state: {error: float}
    predicates: {precise: {when: "sum(members, .error) < 1e-9"}}
`), p)
	check(err)
	cfg, err := synchronizer.ParseProgram("solve.yaml", text)
	check(err)
	_, section, _ := strings.Cut(string(text), "program:")
	fmt.Println("program:" + section + cfg.Program().Text())
	// Output:
	// program:
	//   name: solve
	//   blocks: {step: {group: parts, input: any, output: any}}
	//   body:
	//     do: {par: {do: step, from: rounds.previous, retry: 3}, times: 2}
	//     until: precise
	//     input: [0, 0]
	//     name: rounds
	//   result: rounds.result
	// UNTIL rounds, gsync.precise
	// └─ PAR x2
	//    ├─ DO step, from rounds.previous, retry 3
	//    └─ JOIN
}

// An observer receives each decision with its witness.
func ExampleStart() {
	server, err := embedded.Start(embedded.Options{})
	check(err)
	defer server.Close()
	cfg, err := synchronizer.ParseConfig("pegasus.yaml", []byte(`
synchronizers:
  gsync:
    members: {group: workers}
    state: {load: float}
    predicates:
      busy: {when: "sum(members, .load) > 2"}
`))
	check(err)
	decided := make(chan monitor.Verdict, 1)
	s, err := synchronizer.Start(context.Background(), server.URL(), cfg, synchronizer.Options{
		Observe: func(e monitor.Event) {
			if v, ok := e.(monitor.Verdict); ok && v.Fired {
				decided <- v
			}
		},
	})
	check(err)
	defer s.Close()
	m, err := agent.Join(context.Background(), server.URL(), agent.Config{Group: "workers", Name: "w1"})
	check(err)
	defer m.Close()
	check(m.Set(struct{ Load float64 }{2.5}))
	v := <-decided
	fmt.Println(v.Predicate, "on", v.Witness[0].Name, v.Witness[0].Row, "same clock:", v.Span.SameClock)
	// Output: busy on w1 [2.5] same clock: true
}

// A predicate written in Go stands beside the configuration's.
func ExamplePredicate() {
	server, err := embedded.Start(embedded.Options{})
	check(err)
	defer server.Close()
	cfg, err := synchronizer.ParseConfig("pegasus.yaml", []byte(`
synchronizers:
  gsync:
    members: {group: workers, count: 2}
    state: {load: float}
`))
	check(err)
	decided := make(chan monitor.Verdict, 1)
	s, err := synchronizer.Start(context.Background(), server.URL(), cfg, synchronizer.Options{
		Predicates: []synchronizer.Predicate{{
			Name: "twice-as-busy",
			Judge: func(g monitor.GlobalState) (predicates.Truth, string) {
				if g.Partial {
					return predicates.Unknown, "a member's load is not known"
				}
				a, b := g.Value(0, "load").Float(), g.Value(1, "load").Float()
				if a > 2*b || b > 2*a {
					return predicates.True, ""
				}
				return predicates.False, ""
			},
		}},
		Observe: func(e monitor.Event) {
			if v, ok := e.(monitor.Verdict); ok && v.Fired {
				decided <- v
			}
		},
	})
	check(err)
	defer s.Close()
	for i, name := range []string{"w1", "w2"} {
		m, err := agent.Join(context.Background(), server.URL(), agent.Config{Group: "workers", Name: name})
		check(err)
		defer m.Close()
		check(m.Set(struct{ Load float64 }{1 + 2*float64(i)}))
	}
	v := <-decided
	fmt.Println(v.Predicate, "on", v.Witness[0].Row, "and", v.Witness[1].Row)
	// Output: twice-as-busy on [1] and [3]
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
