package main

import (
	"cmp"
	"errors"
	"math"
	"slices"
)

// piece is a part of the interval with the estimate of its integral, if there is
// one yet.
type piece struct {
	From, To   float64
	Sum, Error float64
	Known      bool
}

// work is what goes from round to round.
type work struct {
	Round      int     `json:"round"`
	Pieces     []piece `json:"pieces"`
	Sum, Error float64
	Used       []use // whose results it is made of
}

// use names a result by what it is of, and by the run of the block that gave it.
type use struct {
	Block string
	Round int
	Part  int
	Run   uint64
}

// limits is the interval to integrate over.
type limits struct{ From, To float64 }

const (
	parts = 4     // of the pieces, one for each process
	bound = 1e-10 // of the errors together
)

// integrand has peaks at 0.3 and 0.7 that are a thousandth wide.
func integrand(x float64) float64 {
	return 1/((x-0.3)*(x-0.3)+1e-6) + 1/((x-0.7)*(x-0.7)+1e-6) + math.Sin(40*x)
}

// The nodes and weights of Gauss (7 points) and Kronrod (15 points) on [-1, 1];
// QUADPACK, routine QK15.
var (
	nodes   = [8]float64{0.991455371120812639206854697526329, 0.949107912342758524526189684047851, 0.864864423359769072789712788640926, 0.741531185599394439863864773280788, 0.586087235467691130294144691693013, 0.405845151377397166906606412076961, 0.207784955007898467600689403773245, 0}
	kronrod = [8]float64{0.022935322010529224963732008058970, 0.063092092629978553290700663189204, 0.104790010322250183839876322541518, 0.140653259715525918745189590510238, 0.169004726639267902826583426598550, 0.190350578064785409913256402421014, 0.204432940075298892414161999234649, 0.209482141084727828012999174891714}
	gauss   = [4]float64{0.129484966168869693270611432679082, 0.279705391489276667901467771423780, 0.381830050505118944950369775488975, 0.417959183673469387755102040816327}
)

// estimate integrates over a piece by both rules: the difference bounds the error of
// the better one.
func estimate(p piece) piece {
	mid, half := (p.From+p.To)/2, (p.To-p.From)/2
	var by15, by7 float64
	for i, x := range nodes {
		y := integrand(mid + half*x)
		if x != 0 {
			y += integrand(mid - half*x)
		}
		by15 += kronrod[i] * y
		if i%2 == 1 {
			by7 += gauss[i/2] * y
		}
	}
	p.Sum, p.Error, p.Known = by15*half, math.Abs(by15-by7)*half, true
	return p
}

// divide begins with one piece for each process.
func divide(l limits) work {
	w := work{Round: 1}
	for i := range parts {
		step := (l.To - l.From) / parts
		w.Pieces = append(w.Pieces, piece{From: l.From + float64(i)*step, To: l.From + float64(i+1)*step})
	}
	return w
}

// integrate does every fourth piece.
func integrate(w work, part int) work {
	mine := work{Round: w.Round}
	for i, p := range w.Pieces {
		if i%parts != part {
			continue
		}
		if !p.Known {
			p = estimate(p)
		}
		mine.Pieces = append(mine.Pieces, p)
		mine.Error += p.Error
	}
	return mine
}

// refine puts the parts of a round together. If the error is too large, it divides
// the pieces that have more than their share of it.
func refine(done []work) (work, error) {
	next := work{}
	for _, w := range done {
		if next.Round > 0 && w.Round != next.Round {
			return next, errors.New("the parts are of several rounds")
		}
		next.Round = w.Round
		next.Pieces = append(next.Pieces, w.Pieces...)
		next.Used = append(next.Used, w.Used...)
	}
	next.Round++
	slices.SortFunc(next.Pieces, func(a, b piece) int { return cmp.Compare(a.From, b.From) })
	// The order of the sum is that of the interval, whoever did which part.
	for _, p := range next.Pieces {
		next.Sum += p.Sum
		next.Error += p.Error
	}
	if next.Error < bound {
		return next, nil
	}
	whole := next.Pieces[len(next.Pieces)-1].To - next.Pieces[0].From
	var divided []piece
	for _, p := range next.Pieces {
		if p.Error <= bound/2*(p.To-p.From)/whole {
			divided = append(divided, p)
			continue
		}
		mid := (p.From + p.To) / 2
		divided = append(divided, piece{From: p.From, To: mid}, piece{From: mid, To: p.To})
	}
	next.Pieces = divided
	return next, nil
}

// alone does all of it in one process.
func alone() (work, error) {
	for w := divide(limits{0, 1}); ; {
		var done []work
		for part := range parts {
			done = append(done, integrate(w, part))
		}
		var err error
		if w, err = refine(done); err != nil || w.Error < bound {
			return w, err
		}
	}
}
