// UTS: the Unbalanced Tree Search benchmark. Nobody knows how large a subtree is before it is searched, so the
// work has to be split where it turns out to be. The baseline is one process that searches alone.
package main

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"time"

	"github.com/gopegasus/pegasus/examples/crew"
	"github.com/gopegasus/pegasus/work"
)

func main() {
	tree := flag.String("tree", "T1", "search the tree `NAME`: T1, T2, T3 (4.1 million nodes each), T1L (102 million)")
	strategy := flag.String("strategy", "receiver", "move work by `STRATEGY`: receiver or diffusion")
	crew.Main(&crew.Program{
		Name: "uts", Processes: 2,
		Functions: []work.Option{work.Bag("uts", search, func(a, b int64) int64 { return a + b })},
		Job: func(uint64) (*crew.Job, error) {
			shape, err := shapeOf(*tree)
			if err != nil {
				return nil, fmt.Errorf("-tree: %w", err)
			}
			if *strategy != "receiver" && *strategy != "diffusion" {
				return nil, fmt.Errorf("-strategy %s: use receiver or diffusion", *strategy)
			}
			return &crew.Job{
				Section: "{slots: 1, strategy: {kind: " + *strategy + "}}",
				Put: func(ctx context.Context, s *work.Space) error {
					return s.Put(ctx, "uts", whole(shape), work.ID("root"))
				},
				Part: func(s *work.Space) float64 {
					found, _ := work.Found[int64](s, "uts")
					return float64(found) / float64(shape.nodes)
				},
				Read:  func(ctx context.Context, c *crew.Crew) (*crew.Report, error) { return read(ctx, c, shape) },
				Alone: func() (any, time.Duration, error) { nodes, took := count(shape); return nodes, took, nil },
			}, nil
		},
	})
}

// search visits nodes until none is left here.
func search(ctx context.Context, b *Stack, found *int64) error {
	for b.Len() > 0 {
		b.Visit(1000, found)
		if err := work.Yield(ctx); err != nil {
			return err
		}
	}
	return nil
}

func read(ctx context.Context, c *crew.Crew, shape *shape) (*crew.Report, error) {
	stop := c.Watch()
	nodes, err := work.Total[int64](ctx, c.Space, "uts", c.Of...)
	took := stop()
	if err != nil {
		return nil, err
	}
	if nodes++; nodes != shape.nodes { // The root was visited here.
		return nil, fmt.Errorf("%s has %d nodes, and %d were counted", shape.name, shape.nodes, nodes)
	}
	_, one := count(shape)
	return &crew.Report{
		Took: took, Bound: one / time.Duration(min(c.Processes, runtime.NumCPU())), Result: nodes,
		Text: fmt.Sprintf("%s has %d nodes, as one process alone counts in %v", shape.name, nodes, one.Round(time.Millisecond)),
	}, nil
}

// count visits all nodes of a tree in this process.
func count(s *shape) (nodes int64, took time.Duration) {
	begun := time.Now()
	nodes = 1
	for b := whole(s); b.Len() > 0; {
		b.Visit(1<<20, &nodes)
	}
	return nodes, time.Since(begun)
}

// whole is all of a tree but its root.
func whole(s *shape) *Stack {
	root := rootOf(s.seed)
	return &Stack{s, []siblings{{root, 1, 0, int32(s.children(&root, 0))}}} //nolint:gosec // At most 2,000.
}
