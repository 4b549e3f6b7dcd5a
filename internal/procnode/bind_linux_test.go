package procnode_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/internal/procnode"
)

// TestBound: processes run on the cores of their processor each, where the processors
// of a node offer all cores, and on all where they offer fewer or are unbound.
func TestBound(t *testing.T) {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	cores := all.Count()
	for name, c := range map[string]struct {
		cfg agent.NodeConfig
		own bool // each process has cores of its own
	}{
		"all":     {agent.NodeConfig{Processors: cores, Cores: 1}, true},
		"pinned":  {agent.NodeConfig{Processors: cores, Cores: 1, Pin: true}, true},
		"unbound": {agent.NodeConfig{Processors: cores, Cores: 1, Unbound: true}, false},
		"more":    {agent.NodeConfig{Processors: cores + 1, Cores: 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t, fmt.Sprintf(`
synchronizers: {gsync: {members: {group: processors, count: %d}, state: {}}}
program:
  name: bound
  blocks: {b: {output: any}}
  body: {par: b, times: %[1]d, name: all}
  result: all.result
`, c.cfg.Processors))
			block, err := procnode.Block("b", []string{"sh", "-c", `cat /proc/self/status | sed -n 's/^Cpus_allowed_list:[[:space:]]*\(.*\)/"\1"/p'`}, 0)
			if err != nil {
				t.Fatal(err)
			}
			c.cfg.Group, c.cfg.Name = "processors", "a"
			n, err := agent.JoinNode(t.Context(), w.url, c.cfg, block)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = n.Close() })
			p := w.end(t)
			var lists []string
			if err := json.Unmarshal([]byte(p.Result), &lists); err != nil {
				t.Fatal(err, p)
			}
			slices.Sort(lists)
			want := 1
			if c.own {
				want = c.cfg.Processors
			}
			if different := len(slices.Compact(lists)); different != want {
				t.Errorf("%d processes on %d cores have %d different sets of cores, such as %s; want %d", c.cfg.Processors, cores, different, lists[0], want)
			}
		})
	}
}
