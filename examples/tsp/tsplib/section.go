package tsplib

import (
	"errors"
	"io"
	"math"
	"strconv"
)

const (
	coordSection   = "NODE_COORD_SECTION"
	weightSection  = "EDGE_WEIGHT_SECTION"
	displaySection = "DISPLAY_DATA_SECTION"

	spatial = "EUC_3D" // the type whose coordinates are x, y, z
)

// section reads the section whose keyword the scanner has just passed.
func (p *parser) section(key string) error {
	if old, twice := p.headers[key]; twice {
		return p.errorf("second %s, the first is on line %d: keep one", key, old.line)
	}
	if key == "FIXED_EDGES_SECTION" {
		return p.errorf("%s: the solver cannot keep edges fixed: remove the section to search all tours", key)
	}
	if key != coordSection && key != weightSection && key != displaySection {
		return p.errorf("section %s is not supported: remove it if the instance means the same without it", quote(key))
	}
	if p.n == 0 {
		return p.errorf("%s before DIMENSION: put DIMENSION first", key)
	}
	p.headers[key] = header{line: p.at}
	if err := p.body(key); err != nil {
		return err
	}
	rest, err := p.rest()
	if err != nil {
		return err
	}
	if rest != "" {
		return p.errorf("%s where %s should have ended: it is longer than DIMENSION %d allows", quote(rest), key, p.n)
	}
	return nil
}

func (p *parser) body(key string) (err error) {
	switch key {
	case coordSection:
		p.points, err = p.coordinates(key)
	case displaySection: // checked, not used
		_, err = p.coordinates(key)
	default:
		err = p.matrix()
	}
	return err
}

// coordinates reads n lines of city, x, y, and z in space, in any order of cities.
func (p *parser) coordinates(key string) ([]point, error) {
	pts, seen := make([]point, p.n), make([]bool, p.n)
	for i := range p.n {
		word, err := p.number(key, "lines", i, p.n)
		if err != nil {
			return nil, err
		}
		id, err := strconv.Atoi(word)
		if err != nil || id < 1 || id > p.n {
			return nil, p.errorf("city %s in %s: number the cities from 1 to %d", quote(word), key, p.n)
		}
		if seen[id-1] {
			return nil, p.errorf("city %d twice in %s: give each city from 1 to %d once", id, key, p.n)
		}
		seen[id-1] = true
		axes := []*float64{&pts[id-1].x, &pts[id-1].y, &pts[id-1].z}
		if key == displaySection || p.headers["EDGE_WEIGHT_TYPE"].value != spatial {
			axes = axes[:2]
		}
		for _, xyz := range axes {
			if *xyz, err = p.coordinate(key, i); err != nil {
				return nil, err
			}
		}
	}
	return pts, nil
}

func (p *parser) coordinate(key string, done int) (float64, error) {
	word, err := p.number(key, "lines", done, p.n)
	if err != nil {
		return 0, err
	}
	x, err := strconv.ParseFloat(word, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		return 0, p.errorf("coordinate %s in %s: give a finite number", quote(word), key)
	}
	return x, nil
}

// number returns the next word of a section, which must begin like a number.
func (p *parser) number(key, unit string, done, want int) (string, error) {
	word, err := p.token()
	if errors.Is(err, io.EOF) {
		return "", p.errorf("file ends after %d of %d %s of %s: it is cut short, or DIMENSION %d is wrong", done, want, unit, key, p.n)
	}
	if err != nil {
		return "", err
	}
	if c := word[0]; c >= 'A' && c <= 'Z' && word != "NaN" && word != "Inf" {
		return "", p.errorf("%s after %d of %d %s of %s: the section is short, or DIMENSION %d is wrong", quote(word), done, want, unit, key, p.n)
	}
	return word, nil
}

// matrix reads the numbers of EDGE_WEIGHT_SECTION in file order.
func (p *parser) matrix() error {
	format := p.headers["EDGE_WEIGHT_FORMAT"]
	shape := layouts[format.value]
	if shape == nil {
		return p.errorf("EDGE_WEIGHT_SECTION without a matrix layout before it: put EDGE_WEIGHT_TYPE EXPLICIT and EDGE_WEIGHT_FORMAT first")
	}
	want := shape.size(p.n)
	for i := range p.n {
		for j := shape.from(i, p.n); j < shape.to(i, p.n); j++ {
			word, err := p.number(weightSection, "numbers", len(p.weights), want)
			if err != nil {
				return err
			}
			w, err := weight(word)
			if i == j { // No tour uses it, and some files mark it with a number that is no distance.
				if _, err = strconv.ParseFloat(word, 64); errors.Is(err, strconv.ErrSyntax) {
					return p.errorf("weight %s: give a number", quote(word))
				}
				w, err = 0, nil
			}
			if err != nil {
				return p.errorf("weight %s: %w", quote(word), err)
			}
			p.weights = append(p.weights, w)
		}
	}
	return nil
}

// weight parses one distance; whole numbers may be written as 12.0 or 1.2e1.
func weight(word string) (int32, error) {
	w, err := strconv.ParseFloat(word, 64)
	switch {
	case err != nil || math.IsNaN(w) || w != math.Trunc(w):
		return 0, errors.New("give a whole number")
	case w < 0:
		return 0, errors.New("distances must not be negative: add a constant to all of them")
	case w > MaxWeight:
		return 0, errors.New("distances must not exceed 2147483647: scale them down")
	}
	return int32(w), nil
}

// layout says which entries of the matrix each line of a section holds: for
// row i, columns from to to-1. A column layout of one triangle is the row
// layout of the other, as the matrix is symmetric.
type layout struct{ from, to func(i, n int) int }

var (
	first    = func(_, _ int) int { return 0 }
	last     = func(_, n int) int { return n }
	diagonal = func(i, _ int) int { return i }
	beyond   = func(i, _ int) int { return i + 1 }
)

var layouts = map[string]*layout{
	"FULL_MATRIX":    {first, last},
	"UPPER_ROW":      {beyond, last},
	"LOWER_COL":      {beyond, last},
	"UPPER_DIAG_ROW": {diagonal, last},
	"LOWER_DIAG_COL": {diagonal, last},
	"LOWER_ROW":      {first, diagonal},
	"UPPER_COL":      {first, diagonal},
	"LOWER_DIAG_ROW": {first, beyond},
	"UPPER_DIAG_COL": {first, beyond},
}

func (l *layout) size(n int) int {
	sum := 0
	for i := range n {
		sum += l.to(i, n) - l.from(i, n)
	}
	return sum
}

// place puts the numbers read into the matrix.
func (p *parser) place(in *Instance) error {
	shape, k, n := layouts[p.headers["EDGE_WEIGHT_FORMAT"].value], 0, p.n
	full := shape == layouts["FULL_MATRIX"]
	for i := range n {
		for j := shape.from(i, n); j < shape.to(i, n); j++ {
			w := p.weights[k]
			k++
			if i == j {
				continue
			}
			if full && j < i && in.dist[j*n+i] != w {
				p.at = p.headers[weightSection].line
				return p.errorf("FULL_MATRIX is not symmetric: %d to %d is %d, back it is %d: only symmetric instances are supported", j+1, i+1, in.dist[j*n+i], w)
			}
			in.dist[i*n+j], in.dist[j*n+i] = w, w
		}
	}
	return nil
}
