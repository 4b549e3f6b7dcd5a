package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/gopegasus/pegasus/examples/tsp/bnb"
)

// What is wanted of the figures.
const (
	mostCost     = 1.05 // seconds of the search under global control over those of the bare one, one thread each
	leastSpeedUp = 1.85 // of two worker processes over the bare search
	mostSeconds  = 5.0  // of a whole program
	leastSearch  = 3.0  // seconds of the bare search, below which ratios say little
)

// verdict is the last column.
func verdict(good bool) string {
	if good {
		return "good"
	}
	return "NOT"
}

// rows prints a row for every instance as rowOf measures it, and whether all are as
// wanted.
func rows(w io.Writer, list []task, title, head string, rowOf func(*program, task) (cells string, good bool, err error)) (err error) {
	prog, err := builder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, prog.remove()) }()
	say(w, "%s\n\n%s | verdict\n", title, head)
	all := true
	for _, t := range list {
		cells, good, err := rowOf(prog, t)
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		all = all && good
		say(w, "%s | %s\n", cells, verdict(good))
	}
	say(w, "\nall as wanted: %s\n", verdict(all))
	return nil
}

// bare is a search in this goroutine, and what it took with bnb.Prepare.
type bare struct {
	search, whole, processor float64 // seconds
	nodes                    int64
	length                   int
}

var errLate = errors.New("not proven within the cap")

// searchBare makes an instance ready and searches it.
func searchBare(t task, tour []int, o options) (bare, error) {
	runtime.GC() // what the run before has left
	start, before := time.Now(), used()
	p, err := bnb.Prepare(t.in, bnb.Options{Tour: tour})
	if err != nil {
		return bare{}, err
	}
	begun := time.Now()
	var incumbent atomic.Int64
	incumbent.Store(int64(p.Length()))
	s, err := bnb.NewSearch(p, bnb.Root(bnb.Edges), &incumbent)
	if err != nil {
		return bare{}, err
	}
	for s.Step() != bnb.Done {
		if time.Since(start) > o.limit {
			return bare{}, errLate
		}
	}
	return bare{time.Since(begun).Seconds(), time.Since(start).Seconds(), (used() - before).Seconds(), s.Nodes(), s.Bound()}, nil
}

// comparison is the bare search in one thread beside the search by worker processes of
// one thread each.
type comparison struct {
	processes int
	title     string
	head      string // of cells
	cells     func(bare, controlled) string
	good      func(bare, controlled) bool
}

var cost = comparison{
	1,
	fmt.Sprintf("1 process x 1 thread under global control against the bare search; wanted: at most %g times its seconds, if these are %g", mostCost, leastSearch),
	fmt.Sprintf("%6s %6s", "ratio", "proc."),
	func(b bare, c controlled) string {
		return fmt.Sprintf("%6.3f %6.3f", c.Search/b.search, c.processor/b.processor)
	},
	func(b bare, c controlled) bool { return c.Search <= mostCost*b.search && b.search >= leastSearch },
}

var speed = comparison{
	2,
	fmt.Sprintf("2 processes x 1 thread under global control against the bare search; wanted: a speed-up of %g, if that takes %g s", leastSpeedUp, leastSearch),
	fmt.Sprintf("%6s %6s %8s", "moved", "busy", "speed-up"),
	func(b bare, c controlled) string {
		return fmt.Sprintf("%6d %6.2f %8.2f", c.Migrations, c.Busy/c.Search, b.search/c.Search)
	},
	func(b bare, c controlled) bool { return b.search >= leastSpeedUp*c.Search && b.search >= leastSearch },
}

// measure prints a row for each instance.
func (x *comparison) measure(w io.Writer, list []task, o options) error {
	head := fmt.Sprintf("%-14s %5s %8s | %8s %8s %8s %8s | %8s %8s %8s %8s | %s", "instance", "n", "length",
		"nodes", "bare s", "whole s", "proc. s", "nodes", "contr. s", "whole s", "proc. s", x.head)
	return rows(w, list, x.title, head, func(p *program, t task) (string, bool, error) {
		b, c, err := x.compare(p, t, o)
		if err != nil {
			return "", false, err
		}
		return fmt.Sprintf("%-14s %5d %8d | %8d %8.3f %8.3f %8.3f | %8d %8.3f %8.3f %8.3f | %s", t.name, t.in.N, b.length,
			b.nodes, b.search, b.whole, b.processor, c.Nodes, c.Search, c.whole, c.processor, x.cells(b, c)), x.good(b, c), nil
	})
}

// compare measures both in turn, which begin with the same tour, and keeps the quickest
// of each.
func (x *comparison) compare(p *program, t task, o options) (least bare, quickest controlled, err error) {
	tour := longLook(t, o)
	for i := range o.runs {
		b, err := searchBare(t, tour, o)
		if err != nil {
			return b, quickest, err
		}
		c, err := p.run(t, x.processes, tour, o)
		switch {
		case err != nil:
			return b, c, err
		case !c.Proven:
			return b, c, errLate
		case c.Search <= 0:
			return b, c, errors.New("the first cut proves it: take a harder instance")
		case c.Length != b.length:
			return b, c, fmt.Errorf("%d is said to be optimal, the bare search proves %d: one of the two is wrong", c.Length, b.length)
		}
		if i == 0 || b.search < least.search {
			least = b
		}
		if i == 0 || c.Search < quickest.Search {
			quickest = c
		}
	}
	return least, quickest, nil
}

// control proves every instance with two worker processes of one thread each, from
// nothing.
func control(w io.Writer, list []task, o options) error {
	title := fmt.Sprintf("2 processes x 1 thread under global control, from nothing; wanted: proven, the whole program within %g s", mostSeconds)
	head := fmt.Sprintf("%-14s %5s %8s %8s %8s | %8s %8s %8s %8s %6s", "instance", "n", "optimum",
		"length", "bound", "nodes", "contr. s", "whole s", "proc. s", "moved")
	return rows(w, list, title, head, func(p *program, t task) (string, bool, error) {
		var least controlled
		for i := range o.runs {
			c, err := p.run(t, 2, nil, o)
			if err != nil {
				return "", false, err
			}
			if i == 0 || c.Proven && (!least.Proven || c.whole < least.whole) {
				least = c
			}
		}
		return fmt.Sprintf("%-14s %5d %8s %8d %8d | %8d %8.3f %8.3f %8.3f %6d", t.name, t.in.N, t.published(),
			least.Length, least.LowerBound, least.Nodes, least.Search, least.whole, least.processor, least.Migrations), least.good(), nil
	})
}

func (c *controlled) good() bool { return c.Proven && c.whole <= mostSeconds }
