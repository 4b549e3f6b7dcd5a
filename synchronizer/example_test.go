package synchronizer_test

import (
	"context"
	"fmt"
	"log"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/embedded"
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

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
