// Factors: the least prime factors of some numbers by a nested PAR of blocks with
// threads on four processes (PEGASUS paper, section 2.2, figures 2.4 and 2.5). What
// another thread or process has made needless is cancelled, by the synchronizer of the
// threads or that of the processes.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/examples/nodes"
	"github.com/gopegasus/pegasus/monitor"
)

//go:embed program.yaml
var config []byte

// numbers are those of the program. The least divisor of the first is in the share of
// the first thread, that of the second in the share of the third; the last is prime.
var numbers = []int64{100000150042000063, 100650022967500459, 1000000000000037}

const processes = 4

func main() { nodes.Main("factors", lead, node) }

// node is a process that runs blocks.
func node(url, name string) error {
	n, err := agent.JoinNode(context.Background(), url, agent.NodeConfig{Group: "parts", Name: name, JoinTimeout: time.Minute},
		agent.ThreadBlock("divide", divide, joined, agent.ThreadState(state{})),
		agent.Block("collect", collect))
	if err != nil {
		return err
	}
	nodes.Wait()
	return n.Close()
}

// lead runs the program on processes that it starts, and compares the result with
// what one loop comes to.
func lead(ctx context.Context) error {
	var all total
	if _, err := nodes.Run(ctx, config, processes, func(monitor.ProgramEvent) {}, &all); err != nil {
		return err
	}
	var want []int64
	for _, n := range numbers {
		want = append(want, alone(n))
	}
	if !slices.Equal(all.Factors, want) {
		return fmt.Errorf("the least factors are %v, and one loop finds %v", all.Factors, want)
	}
	for i, n := range numbers {
		if d := want[i]; d != none {
			fmt.Printf("%d = %d x %d\n", n, d, n/d)
		} else {
			fmt.Printf("%d is prime\n", n)
		}
	}
	fmt.Printf("cancelled as needless: %d threads by their synchronizer, %d blocks by the synchronizer of the processes\n",
		all.Needless, all.Canceled)
	fmt.Println("ok: one loop finds the same")
	return nil
}
