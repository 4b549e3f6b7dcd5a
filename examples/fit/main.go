// Fit: a least-squares fit by gradient over rows that unequal processes share (ADM, section 6). Processes are
// withdrawn, return, are killed, and join while it runs. With -sleep a row is calibrated sleep, so that more processes than
// processors do more; without, it computes. The baselines are one process alone, a static split into equal parts, and with -pull tasks of some rows.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/examples/crew"
	"github.com/gopegasus/pegasus/work"
)

// options are the flags of the fit.
type options struct {
	rows, iterations int
	sleep            time.Duration
	speeds           []float64
	pull             bool
}

func main() {
	var o options
	flag.IntVar(&o.rows, "rows", 20_000, "`N` rows of 64 numbers; 80,000 are 40 MB")
	flag.IntVar(&o.iterations, "iterations", 20, "`N` iterations")
	flag.DurationVar(&o.sleep, "sleep", 0, "how long a row takes at speed 1, as sleep; 0: it computes")
	speeds := flag.String("speeds", "1,2,3,4", "of the processes, again and again, with -sleep")
	flag.BoolVar(&o.pull, "pull", false, "the baseline: tasks of some rows, which each process takes when it has none")
	crew.MainLoop(&crew.LoopProgram{
		Name: "fit", Processes: 4, Section: "{slots: 1, withdraw: {when: .away, back: not .away}}",
		Check:     func() (err error) { return o.check(*speeds) },
		Run:       o.run,
		Functions: o.functions,
	})
}

func (o *options) check(speeds string) error {
	for text := range strings.SplitSeq(speeds, ",") {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(v >= 0.01 && v <= 100) {
			return fmt.Errorf("-speeds: %q is no speed from 0.01 to 100", text)
		}
		o.speeds = append(o.speeds, v)
	}
	if o.rows < 0 || o.rows > 1_000_000 || o.iterations < 3 || o.sleep < 0 {
		return errors.New("-rows, -iterations, -sleep: give 0 to 1000000 rows, at least 3 iterations, and no negative time")
	}
	return nil
}

// speed is that of a process; the first one has the number 0.
func (o *options) speed(process int) float64 { return o.speeds[process%len(o.speeds)] }

// run is the program of each process.
func (o *options) run(ctx context.Context, m *crew.LoopMember) (*crew.Report, error) {
	if o.pull {
		return o.runPull(ctx, m)
	}
	data := &table{rows: make([][]float64, o.rows)}
	var net Net
	l := work.Loop(m.Space, "rows", o.rows, data.read, m.Options...)
	m.Loop = l
	for it, err := range l.Iterations(ctx) {
		if err != nil {
			return nil, err
		}
		it.Carry(&net)
		m.Begins(it.Number)
		grad, done := new(Grad), 0
		for i := range it.Mine() {
			grad.add(data.rows[i], &net)
			done++
			m.Pause(time.Duration(float64(o.sleep) / o.speed(m.Process)))
		}
		sum, err := work.Reduce(ctx, it, grad, plus)
		if err != nil {
			return nil, err
		}
		if net.step(sum, o.rows); it.Number == o.iterations {
			break
		}
	}
	if !m.Leads {
		return nil, nil //nolint:nilnil // The first process reports.
	}
	if err := m.Ends(ctx); err != nil {
		return nil, err
	}
	stats := l.Stats()
	return o.report(ctx, m, &net, fmt.Sprintf("%.2f of the possible speed of the processes while they were there; %d rows moved, %d of them of processes that left, %d were redone", stats.Overall, stats.Moved, stats.Released, stats.Redone), map[string]any{
		"moved_rows": stats.Moved, "released_rows": stats.Released, "redone_rows": stats.Redone, "moved_bytes": stats.Moved * columns * 8,
		"loop_efficiency": stats.Overall, "speeds": l.Speeds(),
	})
}

// report compares the result with that of one process alone, which has to be the same to the bit.
func (o *options) report(ctx context.Context, m *crew.LoopMember, net *Net, text string, more map[string]any) (*crew.Report, error) {
	all := &table{rows: make([][]float64, o.rows)}
	if err := all.read(ctx, 0, o.rows); err != nil {
		return nil, err
	}
	var alone Net
	begun := time.Now()
	for range o.iterations {
		grad := new(Grad)
		for _, row := range all.rows {
			grad.add(row, &alone)
		}
		alone.step(grad, o.rows)
	}
	one := time.Since(begun)
	if *net != alone {
		return nil, fmt.Errorf("the fit has the weights %v, and one process alone finds %v", net.Weights[:4], alone.Weights[:4])
	}
	sum, slowest := 0.0, o.speed(0)
	for i := range m.Processes {
		sum += o.speed(i)
		slowest = min(slowest, o.speed(i))
	}
	bound, static := one/time.Duration(m.Processors()), one/time.Duration(m.Processors())
	if o.sleep > 0 {
		work := float64(o.sleep) * float64(o.rows) * float64(o.iterations)
		bound, static = time.Duration(work/sum), time.Duration(work/float64(m.Processes)/slowest)
	}
	more["static"] = static.Seconds()
	return &crew.Report{
		Bound: bound, Result: net.Weights[0],
		Text: fmt.Sprintf("%d iterations over %d rows have bit for bit the weights of a single process, %s; a static split takes %v", o.iterations, o.rows, text, static.Round(time.Millisecond)),
		More: more,
	}, nil
}

// columns of a row; the last one is the value that the others explain.
const columns = 64

// Net is the weights of the fit, in units of 2^-20. They are whole numbers, so that sums are the same in any order.
type Net struct {
	Weights [columns - 1]int64 // one for each column but the last
}

// Grad is the gradient, in the same unit.
type Grad struct {
	Sum [columns - 1]int64 // over the rows
}

const unit = 1 << 20

// add adds the gradient of a row.
func (g *Grad) add(row []float64, net *Net) {
	off := row[columns-1]
	for i, w := range net.Weights {
		off -= float64(float64(w) / unit * row[i])
	}
	for i := range g.Sum {
		g.Sum[i] += int64(float64(off*row[i]) * unit)
	}
}

func plus(a, b *Grad) *Grad {
	for i := range a.Sum {
		a.Sum[i] += b.Sum[i]
	}
	return a
}

// step moves the weights along the gradient.
func (n *Net) step(g *Grad, rows int) {
	for i := range n.Weights {
		n.Weights[i] += g.Sum[i] / int64(max(1, rows))
	}
}

// table is the rows that this process has. A file of data would be read here; the rows follow from their numbers.
type table struct{ rows [][]float64 }

func (t *table) read(_ context.Context, low, high int) error {
	for i := low; i < high; i++ {
		row, state := make([]float64, columns), uint64(i)*0x9e3779b97f4a7c15+1 //nolint:gosec // Not negative.
		for k := range row {
			state ^= state << 13
			state ^= state >> 7
			state ^= state << 17
			row[k] = float64(state>>40) / (1 << 24) / 8
		}
		row[columns-1] = 0
		for k, v := range row[:columns-1] {
			row[columns-1] += v * float64(k%7) / 7
		}
		t.rows[i] = row
	}
	return nil
}
