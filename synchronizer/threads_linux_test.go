package synchronizer_test

import (
	"context"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/control/program"
)

// TestThreadsArePinned: the threads of a block on a pinned processor run on its cores.
func TestThreadsArePinned(t *testing.T) {
	verifyNoLeaks(t)
	url, w := runProgram(t, "program: {name: p, blocks: {b: {output: [int], threads: 3}}, body: b, result: b.result}")
	n, err := agent.JoinNode(t.Context(), url, agent.NodeConfig{Group: "processors", Name: "n", Cores: 1, Pin: true},
		agent.ThreadBlock("b", func(context.Context, *agent.BlockThread, any) (int, error) {
			var set unix.CPUSet
			if err := unix.SchedGetaffinity(0, &set); err != nil {
				return 0, fmt.Errorf("affinity: %w", err)
			}
			return set.Count(), nil
		}, func(_ context.Context, _ *agent.Run, _ any, parts []int) ([]int, error) { return parts, nil }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	if end := w.end(t); end.Outcome != program.Done || end.Result != "[1,1,1]" {
		t.Errorf("%v, cores %s, %s", end.Outcome, end.Result, end.Reason)
	}
}
