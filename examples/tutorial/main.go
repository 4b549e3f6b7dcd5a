// Tutorial is a worker with some jobs left: the program of docs/tutorial.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/gopegasus/pegasus/agent"
)

// State is what a worker reports: the fields that the configuration declares.
type State struct {
	Phase string
	Left  int
}

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: tutorial URL NAME JOBS")
	}
	url, name, jobs := os.Args[1], os.Args[2], os.Args[3]
	left := must(strconv.Atoi(jobs))
	pace := time.Second
	m := must(agent.Join(context.Background(), url, agent.Config{Group: "workers", Name: name, State: State{}}))
	err := m.Region(context.Background(), "work", func(ctx context.Context, r *agent.Region) error {
		for ; left > 0; left-- {
			must(0, m.Set(State{"busy", left}))
			time.Sleep(pace) // The job.
			if err := r.Check(); err != nil {
				return err
			}
		}
		must(0, m.Set(State{"idle", 0}))
		return r.Wait(ctx)
	}, agent.OnActivate("behind", func(_ context.Context, s agent.Signal) error {
		pace /= 100
		fmt.Printf("%s hurries: %d jobs left, others have %d\n", name, left, s.Int("least"))
		return nil
	}))
	var canceled *agent.Canceled
	if !errors.As(err, &canceled) {
		log.Fatal(err)
	}
	fmt.Printf("%s is released by %s\n", name, canceled.Predicate)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	must(0, m.Leave(ctx)) // Leaving ends the epoch, so it waits until the others have been told.
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
