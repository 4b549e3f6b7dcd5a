package main

import (
	"context"
	"fmt"
	"time"

	"github.com/gopegasus/pegasus/examples/crew"
	"github.com/gopegasus/pegasus/work"
)

// The baseline -pull: the first process puts tasks of some rows each, and a process that has none takes one. A task may
// run anywhere, so in the end each process has read nearly all rows.

// pullParts is how many tasks each process has in an iteration, as a mean. More balance better, and cost more messages.
const pullParts = 8

// Chunk is a task.
type Chunk struct {
	Low, High int // the rows from Low to High-1
	Net       Net // the weights
}

// Done is what it comes to.
type Done struct {
	Grad Grad // of the rows
	Read int  // rows that its process had to read
}

// functions are those of the space of a process.
func (o *options) functions(m *crew.LoopMember) []work.Option {
	if !o.pull {
		return nil
	}
	data := &table{rows: make([][]float64, max(0, o.rows))}
	return []work.Option{work.Func("chunk", func(ctx context.Context, c Chunk) (Done, error) {
		var d Done
		if !m.Leads {
			m.Begins(0)
		}
		for i := c.Low; i < c.High; i++ {
			if data.rows[i] == nil {
				if err := data.read(ctx, i, i+1); err != nil {
					return d, err
				}
				d.Read++
			}
			d.Grad.add(data.rows[i], &c.Net)
			m.Pause(time.Duration(float64(o.sleep) / o.speed(m.Process)))
		}
		return d, nil
	})}
}

// runPull is the program of each process: the first one puts the tasks of each iteration, and the others serve.
func (o *options) runPull(ctx context.Context, m *crew.LoopMember) (*crew.Report, error) {
	if !m.Leads {
		return nil, nil //nolint:nilnil // It serves.
	}
	var net Net
	read, parts := 0, min(o.rows, pullParts*m.Processes)
	for i := 1; i <= o.iterations; i++ {
		m.Begins(i)
		for k := range parts {
			c := Chunk{Low: o.rows * k / parts, High: o.rows * (k + 1) / parts, Net: net}
			if err := m.Space.Put(ctx, "chunk", c, work.ID("%d/%d", i, k)); err != nil {
				return nil, err
			}
		}
		var grad Grad
		n := 0
		for r, err := range work.Results[Done](ctx, m.Space, "chunk") {
			if err != nil {
				return nil, err
			}
			n, read = n+1, read+r.Value.Read
			plus(&grad, &r.Value.Grad)
		}
		if n != parts {
			return nil, fmt.Errorf("iteration %d: %d results of %d tasks", i, n, parts)
		}
		net.step(&grad, o.rows)
	}
	if err := m.Ends(ctx); err != nil {
		return nil, err
	}
	return o.report(ctx, m, &net, fmt.Sprintf("with a pull model; %d rows were read by more than one process", max(0, read-o.rows)), map[string]any{
		"moved_rows": max(0, read-o.rows), "moved_bytes": max(0, read-o.rows) * columns * 8,
	})
}
