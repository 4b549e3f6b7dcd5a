// Squares shares calls of one function among processes: the first program of docs/work.md.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/work"
)

func square(_ context.Context, n int) (int, error) { return n * n, nil }

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: squares URL NAME lead|help")
	}
	ctx, sum := context.Background(), 0
	m := must(agent.Join(ctx, os.Args[1], agent.Config{Group: "crew", Name: os.Args[2]}))
	s := must(work.Open(ctx, m, work.Func("square", square)))
	if os.Args[3] == "lead" {
		for i := range 100 {
			must(0, s.Put(ctx, "square", i))
		}
		for r, err := range work.Results[int](ctx, s, "square") {
			sum += must(r, err).Value
		}
		fmt.Println("the sum of 100 squares is", sum)
	} else {
		must(0, s.Wait(ctx)) // It runs tasks until the phase is over.
		fmt.Println("the phase is over")
	}
	must(0, s.Close())
	must(0, m.Close())
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
