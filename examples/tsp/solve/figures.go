package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// What is wanted of the figures.
const (
	mostCost     = 1.05 // seconds of the search under global control over those of the bare one, one thread each
	leastSpeedUp = 1.85 // of two worker processes over the bare search
	mostBehind   = 1.05 // seconds of the search by two worker processes over those of a peer
	mostSeconds  = 5.0  // of a whole program
	leastSearch  = 3.0  // seconds of the bare search, below which ratios say little
)

// figure is one table: a row for each instance.
type figure[R row] struct {
	Machine string `json:"machine"`
	Show    string `json:"show"`
	Runs    int    `json:"runs"`
	Rows    []R    `json:"rows"`
	Good    bool   `json:"good"` // all rows are as wanted
}

// row is one line of a table, which knows whether it is as wanted.
type row interface {
	cells() string
	good() bool
}

// verdict is the last column.
func verdict(good bool) string {
	if good {
		return "good"
	}
	return "NOT"
}

// measure makes the row of every instance and prints each when it is there, or
// all as one JSON object.
func measure[R row](w io.Writer, list []task, o options, title, head string, rowOf func(*program, task) (R, error)) (err error) {
	prog, err := builder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, prog.remove()) }()
	f := figure[R]{Machine: machine(), Show: o.show, Runs: o.runs, Rows: []R{}, Good: true}
	p := printer{w: w}
	if o.json {
		p.w = io.Discard
	}
	p.say("%s; best of %d; %s\n\n%s | verdict\n", f.Machine, o.runs, title, head)
	for _, t := range list {
		r, err := rowOf(prog, t)
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		f.Rows, f.Good = append(f.Rows, r), f.Good && r.good()
		p.say("%s | %s\n", r.cells(), verdict(r.good()))
	}
	p.say("\nall as wanted: %s\n", verdict(f.Good))
	if o.json {
		return json.NewEncoder(w).Encode(f)
	}
	return p.err
}

// sides are the two that most figures compare: the bare search in one thread,
// and the search by worker processes, which begin with the same tour.
type sides struct {
	Instance string     `json:"instance"`
	N        int        `json:"n"`
	Length   int        `json:"length"` // proven by both
	Bare     bare       `json:"bare"`
	Control  controlled `json:"control"`
}

// compare measures both in turn, and in each turn what else there is, and keeps
// the quickest of each.
func compare(p *program, t task, processes int, o options, more func(tour []int, length int) error) (s sides, err error) {
	s.Instance, s.N = t.name, t.in.N
	tour := longLook(t, o)
	for range o.runs {
		b, err := searchBare(t, tour, plan{1, true}, o)
		if err != nil {
			return s, err
		}
		c, err := p.run(t, processes, tour, o)
		switch {
		case err != nil:
			return s, err
		case !c.Proven:
			return s, errLate
		case c.Search <= 0:
			return s, errors.New("the first cut proves it: take a harder instance")
		}
		if err := same(c.Length, b.length); err != nil {
			return s, err
		}
		if more != nil {
			if err := more(tour, b.length); err != nil {
				return s, err
			}
		}
		s.Length, s.Bare, s.Control = b.length, quicker(s.Bare, b), quicker(s.Control, c)
	}
	return s, nil
}

// same refuses a proof that contradicts the bare search.
func same(length, bare int) error {
	if length != bare {
		return fmt.Errorf("%d is said to be optimal, the bare search proves %d: one of the two is wrong", length, bare)
	}
	return nil
}

func (s *sides) cells() string {
	return fmt.Sprintf("%-14s %5d %8d | %8d %8.3f %8.3f %8.3f | %8d %8.3f %8.3f %8.3f", s.Instance, s.N, s.Length,
		s.Bare.Nodes, s.Bare.Search, s.Bare.Whole, s.Bare.Processor,
		s.Control.Nodes, s.Control.Search, s.Control.Whole, s.Control.Processor)
}

// sidesHead is above the cells of sides.
var sidesHead = fmt.Sprintf("%-14s %5s %8s | %8s %8s %8s %8s | %8s %8s %8s %8s", "instance", "n", "length",
	"nodes", "bare s", "whole s", "proc. s", "nodes", "contr. s", "whole s", "proc. s")

// costRow is what global control costs one thread.
type costRow struct {
	sides
	Ratio      float64 `json:"ratio"`           // of the searches' seconds
	Processors float64 `json:"processor_ratio"` // of the processor seconds in all
}

func (r *costRow) good() bool { return r.Ratio <= mostCost && r.Bare.Search >= leastSearch }

func (r *costRow) cells() string {
	return fmt.Sprintf("%s | %6.3f %6.3f", r.sides.cells(), r.Ratio, r.Processors)
}

// cost compares one worker process of one thread to the bare search.
func cost(w io.Writer, list []task, o options) error {
	title := fmt.Sprintf("1 process x 1 thread under global control against the bare search; wanted: at most %g times its seconds, if these are %g", mostCost, leastSearch)
	head := fmt.Sprintf("%s | %6s %6s", sidesHead, "ratio", "proc.")
	return measure(w, list, o, title, head, func(p *program, t task) (*costRow, error) {
		s, err := compare(p, t, 1, o, nil)
		return &costRow{s, s.Control.Search / s.Bare.Search, s.Control.Processor / s.Bare.Processor}, err
	})
}

// speedRow is what two worker processes gain on the bare search.
type speedRow struct {
	sides
	SpeedUp  float64 `json:"speed_up"`
	Static   bare    `json:"static"`
	StaticUp float64 `json:"static_speed_up"`
}

func (r *speedRow) good() bool { return r.SpeedUp >= leastSpeedUp && r.Bare.Search >= leastSearch }

func (r *speedRow) cells() string {
	return fmt.Sprintf("%s %6d %6.2f %8.2f | %8.3f %8.2f", r.sides.cells(), r.Control.Migrations, r.Control.Busy/r.Control.Search, r.SpeedUp, r.Static.Search, r.StaticUp)
}

// speed compares two worker processes of one thread each to the bare search,
// and beside them two goroutines that keep to an equal split.
func speed(w io.Writer, list []task, o options) error {
	title := fmt.Sprintf("2 processes x 1 thread under global control against the bare search; wanted: a speed-up of %g, if that takes %g s", leastSpeedUp, leastSearch)
	head := fmt.Sprintf("%s %6s %6s %8s | %8s %8s", sidesHead, "moved", "busy", "speed-up", "static s", "speed-up")
	return measure(w, list, o, title, head, func(p *program, t task) (*speedRow, error) {
		var static bare
		s, err := compare(p, t, 2, o, func(tour []int, length int) error {
			b, err := searchBare(t, tour, plan{2, false}, o)
			if err == nil {
				err = same(b.length, length)
			}
			static = quicker(static, b)
			return err
		})
		return &speedRow{s, s.Bare.Search / s.Control.Search, static, s.Bare.Search / static.Search}, err
	})
}

// controlRow is the proof of an instance by two worker processes, from nothing.
type controlRow struct {
	Instance string     `json:"instance"`
	N        int        `json:"n"`
	Optimum  int        `json:"optimum"` // as published, -1 if not known
	Control  controlled `json:"control"`
}

func (r *controlRow) good() bool { return r.Control.Proven && r.Control.Whole <= mostSeconds }

func (r *controlRow) cells() string {
	c := &r.Control
	return fmt.Sprintf("%-14s %5d %s %8d %8d | %8d %8.3f %8.3f %8.3f %6d", r.Instance, r.N, published(r.Optimum),
		c.Length, c.LowerBound, c.Nodes, c.Search, c.Whole, c.Processor, c.Migrations)
}

// control proves every instance with two worker processes of one thread each.
func control(w io.Writer, list []task, o options) error {
	title := fmt.Sprintf("2 processes x 1 thread under global control, from nothing; wanted: proven, the whole program within %g s", mostSeconds)
	head := fmt.Sprintf("%-14s %5s %8s %8s %8s | %8s %8s %8s %8s %6s", "instance", "n", "optimum",
		"length", "bound", "nodes", "contr. s", "whole s", "proc. s", "moved")
	return measure(w, list, o, title, head, func(p *program, t task) (*controlRow, error) {
		r := &controlRow{Instance: t.name, N: t.in.N, Optimum: t.optimum}
		for i := range o.runs {
			c, err := p.run(t, 2, nil, o)
			if err != nil {
				return r, err
			}
			if i == 0 || c.Proven && (!r.Control.Proven || c.Whole < r.Control.Whole) {
				r.Control = c
			}
		}
		return r, nil
	})
}

// peerRow compares ways of sharing one search out.
type peerRow struct {
	sides
	Peers []peerShare `json:"peers"`
}

// peerShare is the search by a peer that was given some parts.
type peerShare struct {
	Peer  string `json:"peer"`
	Parts int    `json:"parts"`
	bare
}

func (r *peerRow) good() bool {
	for _, b := range r.Peers {
		if r.Control.Search > mostBehind*b.Search {
			return false
		}
	}
	return true
}

// cells are a line for each way, global control last.
func (r *peerRow) cells() string {
	var b strings.Builder
	way := func(name string, nodes int64, search, whole, processor, busy float64) {
		fmt.Fprintf(&b, "%-14s %5d %8d %-14s %8d %8.3f %8.3f %8.3f %6.2f %8.2f", r.Instance, r.N, r.Length,
			name, nodes, search, whole, processor, busy/search, r.Bare.Search/search)
	}
	way("bare", r.Bare.Nodes, r.Bare.Search, r.Bare.Whole, r.Bare.Processor, r.Bare.Busy)
	for _, p := range r.Peers {
		b.WriteByte('\n')
		way(fmt.Sprintf("%s, %d", p.Peer, p.Parts), p.Nodes, p.Search, p.Whole, p.Processor, p.Busy)
	}
	b.WriteByte('\n')
	way("control", r.Control.Nodes, r.Control.Search, r.Control.Whole, r.Control.Processor, r.Control.Busy)
	return b.String()
}

// versus compares two worker processes of one thread each to peers of two
// workers.
func versus(w io.Writer, list []task, o options) error {
	title := fmt.Sprintf("2 processes x 1 thread under global control against peers of 2 workers; wanted: at most %g times the seconds of any", mostBehind)
	head := fmt.Sprintf("%-14s %5s %8s %-14s %8s %8s %8s %8s %6s %8s", "instance", "n", "length", "way and parts",
		"nodes", "search s", "whole s", "proc. s", "busy", "speed-up")
	return measure(w, list, o, title, head, func(p *program, t task) (*peerRow, error) {
		var least []peerShare
		for _, p := range peers {
			for _, parts := range peerParts {
				least = append(least, peerShare{Peer: p.name, Parts: parts})
			}
		}
		s, err := compare(p, t, 2, o, func(tour []int, length int) error {
			for i := range least {
				b, err := peers[i/len(peerParts)].share(t, tour, least[i].Parts, length, o)
				if err != nil {
					return fmt.Errorf("%s: %w", least[i].Peer, err)
				}
				least[i].bare = quicker(least[i].bare, b)
			}
			return nil
		})
		return &peerRow{s, least}, err
	})
}
