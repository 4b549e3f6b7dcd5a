package bnb_test

import (
	"fmt"

	"github.com/gopegasus/pegasus/examples/tsp/bnb"
	"github.com/gopegasus/pegasus/examples/tsp/tsplib"
)

func ExampleSolve() {
	in, err := tsplib.Load("gr17")
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := bnb.Solve(in, bnb.SolveOptions{Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Length, r.LowerBound, r.Proven, bnb.Verify(in, r.Tour, r.Length))
	// Output: 2085 2085 true <nil>
}
