// Mandelbrot: the rows of an image are calls of a function that four unequal processes serve (CORD, section 4.2). The program
// says nothing about distribution: the section work of the configuration does, and -way chooses one. With -table all ways run
// one after the other. A row is calibrated sleep, so that more processes than processors do more; with -compute it computes.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/examples/crew"
	"github.com/gopegasus/pegasus/work"
)

func main() {
	var o options
	flag.IntVar(&o.size, "size", 200, "`N` rows of as many pixels")
	flag.StringVar(&o.way, "way", "demand", "`WAY` of the table whose configuration is used")
	flag.BoolVar(&o.table, "table", false, "run all ways, and print a table")
	flag.BoolVar(&o.compute, "compute", false, "compute the rows, instead of sleeping as long as unequal machines would compute")
	flag.DurationVar(&o.alone, "alone", 20*time.Second, "how long all rows take if the first process is alone, without -compute")
	seconds := flag.String("speeds", "125,59,52,30", "`TIMES` that the processes would take alone, in any unit, without -compute")
	crew.Main(&crew.Program{
		Name: "mandelbrot", Processes: 4,
		Functions: []work.Option{work.Server("row", o.row), work.Func("row", o.row)},
		Job:       func(uint64) (*crew.Job, error) { return o.job(*seconds) },
	})
}

// options are the flags.
type options struct {
	size           int
	way            string
	table, compute bool
	alone          time.Duration
	times          []float64 // that the processes would take alone

	image image
	costs []int // iterations of each row
	cost  int   // of all
}

func (o *options) job(times string) (*crew.Job, error) {
	for text := range strings.SplitSeq(times, ",") {
		t, err := strconv.ParseFloat(text, 64)
		if err != nil || !(t >= 0.01 && t <= 10_000) {
			return nil, fmt.Errorf("-speeds: %q is no time from 0.01 to 10000", text)
		}
		o.times = append(o.times, t)
	}
	if o.size < 1 || o.size > 10_000 || o.alone <= 0 {
		return nil, errors.New("-size, -alone: give 1 to 10000 rows, and a time above 0")
	}
	o.image = image{o.size}
	if o.table {
		return &crew.Job{Compare: o.compare}, nil
	}
	w, err := find(o.ways(), o.way)
	if err != nil {
		return nil, err
	}
	if !o.compute {
		for y := range o.size {
			_, cost := o.image.row(y)
			o.costs = append(o.costs, cost)
			o.cost += cost
		}
	}
	if !w.tasks {
		return &crew.Job{Section: w.section, Least: 4, Read: func(ctx context.Context, c *crew.Crew) (*crew.Report, error) {
			return o.report(c, func() (map[int][]byte, error) { return call(ctx, c.Space, o.size) })
		}}, nil
	}
	return &crew.Job{
		Section: w.section, Least: 4,
		Put: func(ctx context.Context, s *work.Space) error {
			for y := range o.size {
				if err := s.Put(ctx, "row", y, work.ID("row/%d", y)); err != nil {
					return err
				}
			}
			return nil
		},
		Part: func(s *work.Space) float64 { return 1 - float64(s.Stats().Open)/float64(o.size) },
		Read: func(ctx context.Context, c *crew.Crew) (*crew.Report, error) {
			return o.report(c, func() (map[int][]byte, error) { return collect(ctx, c) })
		},
	}, nil
}

// call gets the rows by calls.
func call(ctx context.Context, s *work.Space, size int) (map[int][]byte, error) {
	row := work.Client[int, []byte](s, "row")
	pending := make([]*work.Call[[]byte], size)
	for y := range pending {
		pending[y] = row.Go(ctx, y)
	}
	rows := map[int][]byte{}
	for y, p := range pending {
		pixels, err := p.Wait(ctx)
		if err != nil {
			return nil, err
		}
		rows[y] = pixels
	}
	return rows, nil
}

// collect gets the rows as the results of tasks.
func collect(ctx context.Context, c *crew.Crew) (map[int][]byte, error) {
	defer c.Watch()()
	rows := map[int][]byte{}
	for r, err := range work.Results[[]byte](ctx, c.Space, "row", c.Of...) {
		if err != nil {
			return nil, err
		}
		y, err := strconv.Atoi(strings.TrimPrefix(r.ID, "row/"))
		if err != nil || rows[y] != nil {
			return nil, fmt.Errorf("the result %q is of no row, or comes twice", r.ID)
		}
		rows[y] = r.Value
	}
	return rows, nil
}

// report gets the rows, and compares them with those that this process computes.
func (o *options) report(c *crew.Crew, get func() (map[int][]byte, error)) (*crew.Report, error) {
	rows, err := get()
	if err != nil {
		return nil, err
	}
	took, begun := c.Elapsed(), time.Now()
	result, err := o.image.check(rows)
	if err != nil {
		return nil, err
	}
	bound := time.Since(begun) / time.Duration(min(c.Processes, runtime.NumCPU()))
	if !o.compute {
		bound = o.bound(c.Processes)
	}
	return &crew.Report{Took: took, Bound: bound, Result: result, Text: fmt.Sprintf("%s: %d rows, each of them right", o.way, o.size)}, nil
}

// row is the function that members serve: it computes a row. Without -compute it takes as long as on a machine of its member's speed.
func (o *options) row(ctx context.Context, y int) ([]byte, error) {
	if y < 0 || y >= o.size {
		return nil, fmt.Errorf("row %d: the image has the rows 0 to %d", y, o.size-1)
	}
	pixels, cost := o.image.row(y)
	if o.compute {
		return pixels, nil
	}
	process, err := strconv.Atoi(strings.TrimPrefix(work.SpaceOf(ctx).Member(), "w"))
	if err != nil {
		return nil, err
	}
	part := float64(cost) / float64(o.cost) * o.time(process-1) / o.time(0)
	return pixels, crew.Sleep(ctx, time.Duration(part*float64(o.alone)))
}

// time is what a process takes alone; the first one has the number 0.
func (o *options) time(process int) float64 { return o.times[process%len(o.times)] }

// bound is how long all rows take if each process is busy all the time.
func (o *options) bound(processes int) time.Duration {
	speed := 0.0
	for i := range processes {
		speed += o.time(0) / o.time(i)
	}
	return time.Duration(float64(o.alone) / speed)
}

// image is the Mandelbrot set from -1.8 - 1.2i to 0.5 + 1.2i, in a square of pixels.
type image struct{ size int }

// row computes a row: for each pixel the iterations until it is known to be no part of the set, at most 255. The cost is
// the sum of them.
func (m image) row(y int) (pixels []byte, cost int) {
	pixels = make([]byte, m.size)
	step := 1 / float64(max(1, m.size-1))
	im := -1.2 + 2.4*float64(y)*step
	for x := range pixels {
		n := iterations(-1.8+2.3*float64(x)*step, im)
		pixels[x], cost = byte(n), cost+n
	}
	return pixels, cost
}

// check computes all rows, and returns their digest if the given ones are the same.
func (m image) check(rows map[int][]byte) (digest string, err error) {
	if len(rows) != m.size {
		return "", fmt.Errorf("image: it has %d rows instead of %d", len(rows), m.size)
	}
	hash := sha256.New()
	for y := range m.size {
		right, _ := m.row(y)
		if !bytes.Equal(rows[y], right) {
			return "", fmt.Errorf("image: row %d differs from the row that this process computes", y)
		}
		_, _ = hash.Write(right) // It does not fail.
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

func iterations(cr, ci float64) int {
	var x, y float64
	for n := range 255 {
		xx, yy := x*x, y*y
		if xx+yy > 4 {
			return n
		}
		x, y = xx-yy+cr, 2*x*y+ci
	}
	return 255
}
