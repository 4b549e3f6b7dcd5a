package synchronizer_test

import (
	"context"
	"fmt"
	"log"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/synchronizer"
)

// A fault in a configuration is told with its place and what to do.
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

// An observer is told what was decided, and on what.
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
	decided := make(chan synchronizer.Verdict, 1)
	s, err := synchronizer.Start(context.Background(), server.URL(), cfg, synchronizer.Options{
		Observe: func(e synchronizer.Event) {
			if v, ok := e.(synchronizer.Verdict); ok && v.Fired {
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

// A predicate written in Go stands beside those of the configuration.
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
	decided := make(chan synchronizer.Verdict, 1)
	s, err := synchronizer.Start(context.Background(), server.URL(), cfg, synchronizer.Options{
		Predicates: []synchronizer.Predicate{{
			Name: "twice-as-busy",
			Judge: func(g synchronizer.GlobalState) (predicates.Truth, string) {
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
		Observe: func(e synchronizer.Event) {
			if v, ok := e.(synchronizer.Verdict); ok && v.Fired {
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
