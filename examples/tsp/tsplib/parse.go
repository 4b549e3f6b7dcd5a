package tsplib

import (
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Parse reads a symmetric instance (TYPE TSP) in the format of TSPLIB95, with
// edge weights of type EUC_2D, EUC_3D, CEIL_2D, MAN_2D, MAX_2D, GEO, ATT, or
// EXPLICIT in any of the nine matrix layouts. A byte order mark is passed over, and so is
// what stands on the diagonal of a matrix. The name is what errors call the file.
//
// Input that is not such an instance is refused whole, with an error that
// names the file and the line, says what is wrong and what to do. Parse reads
// at most 64 MiB.
func Parse(r io.Reader, name string) (*Instance, error) {
	s, err := newScanner(r, name)
	if err != nil {
		return nil, err
	}
	p := &parser{scanner: s, headers: map[string]header{}}
	if err := p.read(); err != nil {
		return nil, err
	}
	return p.instance()
}

// header is the value of a header line and where it stood.
type header struct {
	value string
	line  int
}

type parser struct {
	*scanner
	headers map[string]header // and sections, with their line
	n       int               // DIMENSION, 0 before it
	points  []point           // NODE_COORD_SECTION
	weights []int32           // EDGE_WEIGHT_SECTION, in file order
}

// headerKeys are the header lines understood.
var headerKeys = []string{
	"NAME", "TYPE", "COMMENT", "DIMENSION", "EDGE_WEIGHT_TYPE", "EDGE_WEIGHT_FORMAT", "NODE_COORD_TYPE", "DISPLAY_DATA_TYPE",
}

// read takes the file line by line until EOF.
func (p *parser) read() error {
	for {
		line, err := p.header()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		key, value, colon := strings.Cut(line, ":")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch {
		case key == "EOF" && value == "":
			return nil
		case strings.HasSuffix(key, "_SECTION") && value == "":
			err = p.section(key)
		case !colon:
			err = p.errorf("%s is neither a header nor a section: expected KEYWORD : value", quote(line))
		default:
			err = p.setHeader(key, value)
		}
		if err != nil {
			return err
		}
	}
}

func (p *parser) setHeader(key, value string) error {
	if upper := strings.ToUpper(key); upper != key && slices.Contains(headerKeys, upper) {
		return p.errorf("unknown header %s: keywords of TSPLIB95 are in capitals, write %s", quote(key), upper)
	}
	if !slices.Contains(headerKeys, key) {
		return p.errorf("unknown header %s: remove the line, or use one of TSPLIB95's for symmetric instances", quote(key))
	}
	if key == "COMMENT" { // There may be several.
		return nil
	}
	if old, twice := p.headers[key]; twice {
		return p.errorf("second %s, the first is on line %d: keep one", key, old.line)
	}
	if value == "" {
		return p.errorf("%s has no value: add one after the colon", key)
	}
	p.headers[key] = header{value, p.at}
	return p.checkHeader(key, value)
}

func (p *parser) checkHeader(key, value string) error {
	switch key {
	case "TYPE":
		// Some files name the author behind the type.
		if kind := strings.Fields(value)[0]; kind != "TSP" {
			return p.errorf("TYPE is %s: only TSP (symmetric) is supported", quote(value))
		}
	case "DIMENSION":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > MaxN {
			return p.errorf("DIMENSION is %s: give a whole number of cities from 1 to %d", quote(value), MaxN)
		}
		p.n = n
	case "EDGE_WEIGHT_TYPE":
		if metrics[value] == nil && value != "EXPLICIT" {
			return p.errorf("EDGE_WEIGHT_TYPE is %s: supported are ATT, CEIL_2D, EUC_2D, EUC_3D, EXPLICIT, GEO, MAN_2D and MAX_2D", quote(value))
		}
		if p.headers[coordSection].line > 0 && value == spatial {
			return p.errorf("EDGE_WEIGHT_TYPE %s after NODE_COORD_SECTION: put EDGE_WEIGHT_TYPE first", value)
		}
	case "EDGE_WEIGHT_FORMAT":
		if layouts[value] == nil && value != "FUNCTION" {
			return p.errorf("EDGE_WEIGHT_FORMAT is %s: supported are FUNCTION, FULL_MATRIX and UPPER_ or LOWER_ with ROW, COL, DIAG_ROW or DIAG_COL", quote(value))
		}
	case "NODE_COORD_TYPE":
		if !slices.Contains([]string{"TWOD_COORDS", "THREED_COORDS", "NO_COORDS"}, value) {
			return p.errorf("NODE_COORD_TYPE is %s: supported are TWOD_COORDS, THREED_COORDS and NO_COORDS", quote(value))
		}
	case "DISPLAY_DATA_TYPE":
		if !slices.Contains([]string{"COORD_DISPLAY", "TWOD_DISPLAY", "NO_DISPLAY"}, value) {
			return p.errorf("DISPLAY_DATA_TYPE is %s: supported are COORD_DISPLAY, TWOD_DISPLAY and NO_DISPLAY", quote(value))
		}
	}
	return nil
}

// instance puts together what was read.
func (p *parser) instance() (*Instance, error) {
	for _, key := range []string{"NAME", "TYPE", "DIMENSION", "EDGE_WEIGHT_TYPE"} {
		if p.headers[key].line == 0 {
			return nil, p.errorf("file ends without %s: add the header line %s : value", key, key)
		}
	}
	if err := p.agree(); err != nil {
		return nil, err
	}
	in := newInstance(p.headers["NAME"].value, p.n)
	if d := metrics[p.headers["EDGE_WEIGHT_TYPE"].value]; d != nil {
		if err := in.fill(p.points, d); err != nil {
			p.at = p.headers[coordSection].line
			return nil, p.errorf("%w", err)
		}
		return in, nil
	}
	if err := p.place(in); err != nil {
		return nil, err
	}
	return in, nil
}

// agree checks that headers and sections fit together.
func (p *parser) agree() error {
	kind, format := p.headers["EDGE_WEIGHT_TYPE"], p.headers["EDGE_WEIGHT_FORMAT"]
	explicit := kind.value == "EXPLICIT"
	complain := func(line int, format string, args ...any) error {
		p.at = line
		return p.errorf(format, args...)
	}
	switch {
	case explicit && format.line == 0:
		return complain(kind.line, "EDGE_WEIGHT_TYPE EXPLICIT without EDGE_WEIGHT_FORMAT: name the layout of the matrix")
	case explicit && format.value == "FUNCTION":
		return complain(format.line, "EDGE_WEIGHT_FORMAT FUNCTION contradicts EDGE_WEIGHT_TYPE EXPLICIT: name the layout of the matrix")
	case !explicit && format.line != 0 && format.value != "FUNCTION":
		return complain(format.line, "EDGE_WEIGHT_FORMAT %s contradicts EDGE_WEIGHT_TYPE %s: remove the line", format.value, kind.value)
	case explicit && p.headers[weightSection].line == 0:
		return p.errorf("file ends without EDGE_WEIGHT_SECTION: EDGE_WEIGHT_TYPE EXPLICIT needs it")
	case !explicit && p.headers[weightSection].line != 0:
		return complain(p.headers[weightSection].line, "EDGE_WEIGHT_SECTION contradicts EDGE_WEIGHT_TYPE %s: remove one of them", kind.value)
	case !explicit && p.headers[coordSection].line == 0:
		return p.errorf("file ends without NODE_COORD_SECTION: EDGE_WEIGHT_TYPE %s needs it", kind.value)
	}
	coords := p.headers["NODE_COORD_TYPE"]
	if contradicts := map[string]bool{"NO_COORDS": true, "TWOD_COORDS": kind.value == spatial, "THREED_COORDS": kind.value != spatial}; !explicit && contradicts[coords.value] {
		return complain(coords.line, "NODE_COORD_TYPE %s contradicts EDGE_WEIGHT_TYPE %s: remove the line", coords.value, kind.value)
	}
	return nil
}
