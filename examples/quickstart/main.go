// Quickstart: three workers, one predicate that interrupts them and one that
// ends their work, over a NATS server inside this process.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/synchronizer"
)

const config = `
synchronizers:
  gsync:
    members: {group: workers, count: 3}
    state: {phase: {enum: [search, idle]}, best: int}
    predicates:
      new-best:
        when: min(map(members, .best)) < max(map(members, .best))
        signal: {kind: activate, region: search, data: {best: "min(map(members, .best))"}}
      all-idle:
        when: all(members, .phase == "idle")
        signal: {kind: cancel, region: search}
`

// State is what a worker reports: the fields that the configuration declares.
type State struct {
	Phase string
	Best  int
}

func main() {
	server := must(embedded.Start(embedded.Options{}))
	cfg := must(synchronizer.ParseConfig("quickstart", []byte(config)))
	gsync := must(synchronizer.Start(context.Background(), server.URL(), cfg, synchronizer.Options{}))
	var workers sync.WaitGroup
	for name, best := range map[string]int{"w1": 30, "w2": 20, "w3": 10} {
		workers.Go(func() { work(server.URL(), name, best) })
	}
	workers.Wait()
	must(0, gsync.Close())
	server.Close()
	fmt.Println("ok: at one instant all three knew the best result and were idle")
}

func work(url, name string, best int) {
	m := must(agent.Join(context.Background(), url, agent.Config{Group: "workers", Name: name, State: State{}}))
	err := m.Region(context.Background(), "search", func(ctx context.Context, r *agent.Region) error {
		for {
			phase := map[bool]string{false: "search", true: "idle"}[best == 10]
			must(0, m.Set(State{phase, best}))
			if err := r.Wait(ctx); err != nil {
				return err
			}
		}
	}, agent.OnActivate("new-best", func(_ context.Context, s agent.Signal) error {
		best = int(s.Int("best"))
		return nil
	}))
	var canceled *agent.Canceled
	if !errors.As(err, &canceled) {
		log.Fatalf("%s: the search ended without a signal: %v", name, err)
	}
	fmt.Printf("%s: best %d, cancelled by %s\n", name, best, canceled.Predicate)
	must(0, m.Close())
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
