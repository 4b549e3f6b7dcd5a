package agent_test

import (
	"context"
	"fmt"
	"log"

	"github.com/gopegasus/pegasus/agent"
)

// A member searches until the synchronizer finds that everyone is idle. It adopts
// a better result of another member on the way.
func Example() {
	type State struct {
		Phase string
		Load  float64
	}
	ctx := context.Background()
	m, err := agent.Join(ctx, "nats://127.0.0.1:4222", agent.Config{Group: "workers", Name: "w3"})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()

	best := 100.0
	adopt := func(_ context.Context, s agent.Signal) error {
		best = min(best, s.Float("best"))
		return nil
	}
	save := func(context.Context, agent.Signal) error {
		fmt.Println("everyone is idle; the best is", best)
		return nil
	}
	work := func(ctx context.Context, r *agent.Region) error {
		for load := 1.0; load > 0; load -= 0.1 {
			if err := r.Check(); err != nil {
				return err
			}
			if err := m.Set(State{Phase: "search", Load: load}); err != nil {
				return err
			}
		}
		if err := m.Set(State{Phase: "idle"}); err != nil {
			return err
		}
		for { // Idle: wait for what comes.
			if err := r.Wait(ctx); err != nil {
				return err
			}
		}
	}
	err = m.Region(ctx, "search", work, agent.OnActivate("new-best", adopt), agent.OnCancel("all-idle", save))
	if err != nil {
		log.Print(err)
	}
}

// A member that has a new state every few microseconds binds its type once.
func ExampleStateOf() {
	type Load struct {
		Queue int
		Share float64
	}
	m, err := agent.Join(context.Background(), "nats://127.0.0.1:4222", agent.Config{Group: "workers", Name: "w3"})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()

	load, err := agent.StateOf[Load](m) // Load is compared with the state that the configuration declares.
	if err != nil {
		log.Print(err)
		return
	}
	for queue := 1000; queue > 0; queue-- {
		if err := load.Set(Load{Queue: queue, Share: float64(queue) / 1000}); err != nil {
			log.Print(err)
		}
	}
}
