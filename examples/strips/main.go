// Strips: a matrix in strips of rows that exchange their borders in each iteration (ALDY, section 5). A strip is an object
// that moves only to a member with a neighbour of it, or with nothing. The work of an iteration is calibrated sleep. The
// baseline are strips that are bound to members, measured first in the same run with store: memory.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gopegasus/pegasus/examples/crew"
	"github.com/gopegasus/pegasus/work"
)

const (
	rowsOf  = 2 // a strip
	columns = 16
)

// Strip is the state of a strip.
type Strip struct {
	Kind         string        // strip or fixed
	ID, Strips   int           // its place from 0, and of how many
	Left         int           // iterations
	Cost         time.Duration // of an iteration
	Slow         string        // the process that needs twice as long
	Rows         [][]float64   // its part of the matrix
	Above, Below [][]float64   // borders that have arrived, those of this iteration first
	Trail        []string      // members that it was at, in their order
	Astray       int           // moves to a member that has another strip when this one runs there, and no neighbour
}

// Border is the row of a strip that its neighbour reads.
type Border struct {
	From int       // the strip
	Row  []float64 // that is next to the other strip
}

func newStrip(_ context.Context, st Strip) (*Strip, error) { return &st, nil }

// begin sends the first borders, once all strips are where they begin.
func begin(ctx context.Context, st *Strip, _ int) error { return st.sendBorders(ctx) }

// takeBorder runs an iteration once both borders are there.
func takeBorder(ctx context.Context, st *Strip, b Border) error {
	name, s := crew.Own()
	st.notePlace(name, s)
	if b.From < st.ID {
		st.Above = append(st.Above, b.Row)
	} else {
		st.Below = append(st.Below, b.Row)
	}
	if st.ID > 0 && len(st.Above) == 0 || st.ID < st.Strips-1 && len(st.Below) == 0 {
		return nil
	}
	cost := st.Cost
	if name == st.Slow {
		cost *= 2
	}
	if err := crew.Work(ctx, cost); err != nil {
		return err
	}
	st.step()
	iterations.Add(1)
	if st.Left > 0 {
		return st.sendBorders(ctx)
	}
	work.End(ctx)
	return s.Put(ctx, "told", *st)
}

func told(_ context.Context, st Strip) (Strip, error) { return st, nil }

// iterations is how many have run in this process.
var iterations atomic.Int64

func (st *Strip) sendBorders(ctx context.Context) error {
	_, s := crew.Own()
	for _, to := range []int{st.ID - 1, st.ID + 1} {
		row := st.Rows[0]
		if to > st.ID {
			row = st.Rows[len(st.Rows)-1]
		}
		if to < 0 || to == st.Strips {
			continue
		}
		if err := s.Send(ctx, to, "border "+st.Kind, Border{st.ID, row}); err != nil {
			return err
		}
	}
	return nil
}

// notePlace notes where the strip is.
func (st *Strip) notePlace(name string, s *work.Space) {
	if len(st.Trail) > 0 && st.Trail[len(st.Trail)-1] == name {
		return
	}
	others := slices.DeleteFunc(slices.Collect(s.Locals(st.Kind)), func(id string) bool { return id == strconv.Itoa(st.ID) })
	near := func(id string) bool { return id == strconv.Itoa(st.ID-1) || id == strconv.Itoa(st.ID+1) }
	if len(st.Trail) > 0 && len(others) > 0 && !slices.ContainsFunc(others, near) {
		st.Astray++
	}
	st.Trail = append(st.Trail, name)
}

// step runs an iteration. Beyond the rim of the matrix all is 0.
func (st *Strip) step() {
	above, below := make([]float64, columns), make([]float64, columns)
	if st.ID > 0 {
		above, st.Above = st.Above[0], st.Above[1:]
	}
	if st.ID < st.Strips-1 {
		below, st.Below = st.Below[0], st.Below[1:]
	}
	st.Rows = relax(above, st.Rows, below)
	st.Left--
}

// relax has each cell become the mean of its four neighbours.
func relax(above []float64, rows [][]float64, below []float64) [][]float64 {
	next := make([][]float64, len(rows))
	for r := range rows {
		up, down := above, below
		if r > 0 {
			up = rows[r-1]
		}
		if r < len(rows)-1 {
			down = rows[r+1]
		}
		next[r] = make([]float64, columns)
		for c := range columns {
			left, right := 0.0, 0.0
			if c > 0 {
				left = rows[r][c-1]
			}
			if c < columns-1 {
				right = rows[r][c+1]
			}
			next[r][c] = (up[c] + down[c] + left + right) / 4
		}
	}
	return next
}

// problem is the matrix and what is done with it.
type problem struct {
	strips, iterations int
	cost               time.Duration
	slow               bool // the last process
	rows               [][]float64
	begun              int64 // iterations of this process before
}

func problemOf(strips, iterations int, cost time.Duration, slow bool, seed uint64) (*problem, error) {
	if strips < 2 || strips > 10_000 || iterations < 1 || iterations > 1_000_000 || cost < 0 {
		return nil, fmt.Errorf("-strips %d -iterations %d -cost %v: use 2 to 10000, 1 to 1000000, and no negative time", strips, iterations, cost)
	}
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // It is to be repeatable.
	p := &problem{strips: strips, iterations: iterations, cost: cost, slow: slow, rows: make([][]float64, strips*rowsOf)}
	for r := range p.rows {
		p.rows[r] = make([]float64, columns)
		for c := range p.rows[r] {
			p.rows[r][c] = random.Float64()
		}
	}
	return p, nil
}

// sequential is the matrix at the end, as one process computes it.
func (p *problem) sequential() [][]float64 {
	rows, rim := p.rows, make([]float64, columns)
	for range p.iterations {
		rows = relax(rim, rows, rim)
	}
	return rows
}

// put creates the strips, in blocks of neighbours on the processes, and has them begin. Those that are bound stay there.
func (p *problem) put(ctx context.Context, s *work.Space, kind string, processes int, bound bool) error {
	slow := ""
	if p.slow {
		slow = "w" + strconv.Itoa(processes)
	}
	for i := range p.strips {
		member := "w" + strconv.Itoa(1+i*processes/p.strips)
		place := work.Near(i-1, i+1) // The first and the last one name a strip that never is.
		if bound {
			place = work.At(member)
		}
		st := Strip{Kind: kind, ID: i, Strips: p.strips, Left: p.iterations, Cost: p.cost, Slow: slow, Rows: p.rows[i*rowsOf : (i+1)*rowsOf]}
		if err := s.Create(ctx, kind, i, st, place); err != nil {
			return err
		}
		if !bound {
			if err := s.Move(kind, i, member); err != nil {
				return err
			}
		}
	}
	for i := range p.strips {
		if err := s.Send(ctx, i, "begin "+kind, 0, work.ID("%s/begin/%d", kind, i)); err != nil {
			return err
		}
	}
	p.begun = iterations.Load()
	return nil
}

// outcome is what a run of the strips has come to.
type outcome struct {
	took                   time.Duration
	moves, returns, astray int
}

// read reads the strips at the end, and compares them with the sequential computation.
func (p *problem) read(ctx context.Context, c *crew.Crew, kind string, begun time.Time) (*outcome, error) {
	o, want, seen := &outcome{}, p.sequential(), map[int]bool{}
	for r, err := range work.Results[Strip](ctx, c.Space, "told", c.Of...) {
		if err != nil {
			return nil, err
		}
		st := &r.Value
		if st.ID < 0 || st.ID >= p.strips || st.Kind != kind || seen[st.ID] || st.Left != 0 || !reflect.DeepEqual(st.Rows, want[st.ID*rowsOf:(st.ID+1)*rowsOf]) {
			return nil, fmt.Errorf("strip %d of the kind %s is not what the sequential computation has come to", st.ID, st.Kind)
		}
		o.took = time.Since(begun)
		seen[st.ID] = true
		o.moves += max(0, len(st.Trail)-1)
		o.astray += st.Astray
		for i := range st.Trail {
			if i > 1 && st.Trail[i] == st.Trail[i-2] {
				o.returns++
			}
		}
	}
	if len(seen) != p.strips {
		return nil, fmt.Errorf("%d of %d strips have come to their end", len(seen), p.strips)
	}
	return o, nil
}

func main() {
	strips := flag.Int("strips", 100, "`N` strips")
	count := flag.Int("iterations", 100, "`N` iterations")
	cost := flag.Duration("cost", 10*time.Millisecond, "how long an iteration of a strip takes")
	slow := flag.Bool("slow", false, "the last process needs twice as long")
	var options []work.Option
	for _, kind := range []string{"strip", "fixed"} {
		options = append(options, work.Object(kind, newStrip), work.On(kind, "begin "+kind, begin), work.On(kind, "border "+kind, takeBorder))
	}
	crew.Main(&crew.Program{
		Name: "strips", Processes: 10, Section: section, Functions: append(options, work.Func("told", told)),
		Job: func(seed uint64) (*crew.Job, error) {
			p, err := problemOf(*strips, *count, *cost, *slow, seed)
			if err != nil {
				return nil, err
			}
			return &crew.Job{Put: p.putFirst, Part: p.part, Read: p.run}, nil
		},
	})
}

// flagOf is a flag of package crew.
func flagOf(name string) string { return flag.Lookup(name).Value.String() }

// putFirst puts the strips where another process puts them than the one that reads them, or a log may have them.
func (p *problem) putFirst(ctx context.Context, s *work.Space) error {
	if flagOf("store") == "memory" {
		return nil
	}
	processes, err := strconv.Atoi(flagOf("processes"))
	if err != nil {
		return err
	}
	return p.put(ctx, s, "strip", processes, false)
}

// part is how far this process has come, and so about all of them.
func (p *problem) part(*work.Space) float64 {
	processes, _ := strconv.Atoi(flagOf("processes")) // It is a number.
	return min(float64(iterations.Load()-p.begun)*float64(processes)/float64(p.strips*p.iterations), 0.99)
}

// run measures the strips. With store: memory it measures the baseline before: else a log might have some of it.
func (p *problem) run(ctx context.Context, c *crew.Crew) (*crew.Report, error) {
	var static *outcome
	begun, err := time.Now(), error(nil)
	if flagOf("store") == "memory" {
		if err = p.put(ctx, c.Space, "fixed", c.Processes, true); err != nil {
			return nil, err
		}
		if static, err = p.read(ctx, c, "fixed", begun); err != nil {
			return nil, err
		}
		begun = time.Now()
		if err = p.put(ctx, c.Space, "strip", c.Processes, false); err != nil {
			return nil, err
		}
	}
	stop := c.Watch()
	o, err := p.read(ctx, c, "strip", begun)
	stop()
	if err != nil {
		return nil, err
	}
	speeds := float64(c.Processes)
	if p.slow {
		speeds -= 0.5
	}
	bound := time.Duration(float64(p.cost) * float64(p.strips*p.iterations) / speeds)
	figures := map[string]any{"moves": o.moves, "returns": o.returns, "astray": o.astray}
	text := fmt.Sprintf("%d iterations of %d strips, equal to the sequential computation; %d moves, %d of them back", p.iterations, p.strips, o.moves, o.returns)
	if static != nil {
		figures["static"] = static.took.Seconds()
		text += fmt.Sprintf(" (without moves: %v)", static.took.Round(time.Millisecond))
	}
	return &crew.Report{Took: o.took, Bound: bound, Result: p.strips, Figures: figures, Text: text}, nil
}

// section has a process ask for strips if it had nothing to do for a part of the last 300 ms, and not as soon as it waits for
// a border, and one give a strip if it had.
const section = `{slots: 1, strategy: {kind: receiver, below: "avg(0.9, 300ms)", from: "avg(0.9, 300ms)", share: 0.1, again: 20ms, longest: 100ms}}`
