package tsplib

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// matrix4 is what every layout below writes: 4 cities.
var matrix4 = [4][4]int{{0, 1, 2, 3}, {1, 0, 4, 5}, {2, 4, 0, 6}, {3, 5, 6, 0}}

func TestEveryLayout(t *testing.T) {
	for format, numbers := range map[string]string{
		"FULL_MATRIX":    "0 1 2 3 1 0 4 5 2 4 0 6 3 5 6 0",
		"UPPER_ROW":      "1 2 3 4 5 6",
		"LOWER_ROW":      "1 2 4 3 5 6",
		"UPPER_DIAG_ROW": "0 1 2 3 0 4 5 0 6 0",
		"LOWER_DIAG_ROW": "0 1 0 2 4 0 3 5 6 0",
		"UPPER_COL":      "1 2 4 3 5 6",
		"LOWER_COL":      "1 2 3 4 5 6",
		"UPPER_DIAG_COL": "0 1 0 2 4 0 3 5 6 0",
		"LOWER_DIAG_COL": "0 1 2 3 0 4 5 0 6 0",
	} {
		for _, gap := range []string{" ", "\n", "\r\n\t "} { // wrapped anywhere
			text := explicit(4, format, strings.ReplaceAll(numbers, " ", gap))
			in, err := Parse(strings.NewReader(text), "f")
			if err != nil {
				t.Fatal(err)
			}
			for i, row := range matrix4 {
				for j, want := range row {
					if got := in.Dist(i, j); got != want {
						t.Errorf("%s: distance %d,%d is %d, want %d", format, i, j, got, want)
					}
				}
			}
		}
	}
}

func explicit(n int, format, numbers string) string {
	return fmt.Sprintf("NAME: x\nTYPE: TSP\nDIMENSION: %d\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: %s\nEDGE_WEIGHT_SECTION\n%s\nEOF\n", n, format, numbers)
}

func planar(kind, cities string) string {
	n := strings.Count(cities, "\n")
	return fmt.Sprintf("NAME : x\nTYPE : TSP\nDIMENSION : %d\nEDGE_WEIGHT_TYPE : %s\nNODE_COORD_SECTION\n%s", n, kind, cities)
}

// The distances of each type where rounding matters.
func TestEdgeWeightTypes(t *testing.T) {
	for _, c := range []struct {
		kind, cities string
		want         int
	}{
		{"EUC_2D", "1 0 0\n2 1 1\n", 1},          // 1.41
		{"EUC_2D", "1 0 0\n2 0 2.5\n", 3},        // half up
		{"EUC_2D", "1 -1e1 0\n2 2.0E+1 0\n", 30}, // exponents
		{"CEIL_2D", "1 0 0\n2 1 1\n", 2},
		{"CEIL_2D", "1 0 0\n2 3 4\n", 5},
		{"MAN_2D", "1 0 0\n2 -1.3 2.1\n", 3},  // 3.4
		{"MAN_2D", "1 0 0\n2 1.25 1.25\n", 3}, // half up
		{"MAX_2D", "1 0 0\n2 -3 2.4\n", 3},
		{"MAX_2D", "1 0 0\n2 2.4 2.5\n", 3}, // each is rounded
		{"EUC_3D", "1 0 0 0\n2 1 1 1\n", 2}, // 1.73
		{"EUC_3D", "1 0 0 5\n2 0 0 -5\n", 10},
		{"ATT", "1 0 0\n2 10 0\n", 4}, // 3.16 rounds to 3, which is less
		{"ATT", "1 0 0\n2 11 0\n", 4}, // 3.48
		{"ATT", "1 0 0\n2 12 0\n", 4}, // 3.79
		{"GEO", "1 16.47 96.10\n2 16.47 94.44\n", 153},
		{"GEO", "1 0 0\n2 0 0\n", 1}, // cities at one place are 1 apart
		{"GEO", "2 0 180\n1 0 0\n", 20039},
	} {
		in, err := Parse(strings.NewReader(planar(c.kind, c.cities)), "f")
		if err != nil {
			t.Fatal(err)
		}
		if got := in.Dist(0, 1); got != c.want || in.Dist(1, 0) != got || in.Dist(0, 0) != 0 {
			t.Errorf("%s %q: %d, want %d", c.kind, c.cities, got, c.want)
		}
	}
}

// The tour through the cities in file order is known for some instances.
func TestCanonicalTours(t *testing.T) {
	for name, want := range map[string]int{"burma14": 4562, "att48": 49840, "berlin52": 22205, "bayg29": 4625, "kroA100": 191387} {
		in, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		tour := make([]int, in.N)
		for i := range tour {
			tour[i] = i
		}
		if got := in.TourLength(tour); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

func TestTolerated(t *testing.T) {
	for name, text := range map[string]string{
		"no EOF":              planar("EUC_2D", "1 0 0\n2 3 4\n3 0 9\n"),
		"no final newline":    strings.TrimSuffix(planar("EUC_2D", "1 0 0\n2 3 4\n3 0 9\n"), "\n"),
		"carriage returns":    strings.ReplaceAll(planar("EUC_2D", "1 0 0\n2 3 4\n3 0 9\n"), "\n", "\r\n"),
		"text after EOF":      planar("EUC_2D", "1 0 0\n2 3 4\n3 0 9\n") + "EOF\nanything",
		"format FUNCTION":     "EDGE_WEIGHT_FORMAT: FUNCTION\n" + planar("EUC_2D", "1 0 0\n2 3 4\n3 0 9\n"),
		"author behind type":  strings.Replace(planar("EUC_2D", "1 0 0\n2 3 4\n3 0 9\n"), "TSP", "TSP (A. Nonym)", 1),
		"two comments":        "COMMENT: a\nCOMMENT: b\n" + planar("EUC_2D", "1 0 0\n2 3 4\n3 0 9\n"),
		"colon after section": strings.Replace(planar("EUC_2D", "1 0 0\n2 3 4\n3 0 9\n"), "SECTION", "SECTION:", 1),
		"display data":        explicit(3, "UPPER_ROW", "5 9 6\nDISPLAY_DATA_SECTION\n1 0 0\n2 1 1\n3 2 2"),
		"any order of cities": planar("EUC_2D", "3 0 9\n1 0 0\n2 3 4\n"),
		"whole as fraction":   explicit(3, "UPPER_ROW", "5.0 9 0.6e1"),
		"marked diagonal":     explicit(3, "FULL_MATRIX", "999999 5 9 5 -0 6 9 6 2147483647"),
		"negative diagonal":   explicit(3, "FULL_MATRIX", "-1 5 9 5 -1 6 9 6 -1"),
		"huge diagonal":       explicit(3, "LOWER_DIAG_ROW", "9999999999 5 1e300 9 6 0.5"),
		"EOF with a colon":    planar("EUC_2D", "1 0 0\n2 3 4\n3 0 9\n") + "EOF:\nanything",
		"EOF, blank, colon":   planar("EUC_2D", "1 0 0\n2 3 4\n3 0 9\n") + "EOF :\n",
		"tab behind type":     strings.Replace(planar("EUC_2D", "1 0 0\n2 3 4\n3 0 9\n"), "TSP", "TSP\t(A. Nonym)", 1),
		"byte order mark":     "\ufeff" + planar("EUC_2D", "1 0 0\n2 3 4\n3 0 9\n"),
		"three dimensions":    strings.Replace(planar("EUC_3D", "1 0 0 0\n2 0 3 4\n3 0 0 9\n"), "NODE", "NODE_COORD_TYPE: THREED_COORDS\nNODE", 1),
	} {
		in, err := Parse(strings.NewReader(text), "f")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if in.N != 3 || in.Dist(0, 1) != 5 || in.Dist(0, 2) != 9 || in.Dist(1, 2) != 6 {
			t.Errorf("%s: wrong distances", name)
		}
	}
}

func TestOneCity(t *testing.T) {
	for _, text := range []string{planar("GEO", "1 5 5\n"), explicit(1, "UPPER_ROW", ""), explicit(1, "FULL_MATRIX", "0")} {
		in, err := Parse(strings.NewReader(text), "f")
		if err != nil || in.N != 1 || in.TourLength([]int{0}) != 0 {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestRefused(t *testing.T) {
	two := planar("EUC_2D", "1 0 0\n2 3 4\n")
	swap := func(old, with string) string { return strings.Replace(two, old, with, 1) }
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "f:1: file ends without NAME: add the header line NAME : value"},
		{"no name", swap("NAME : x\n", ""), "f:7: file ends without NAME: add the header line NAME : value"},
		{"no type", swap("TYPE : TSP\n", ""), "f:7: file ends without TYPE: add the header line TYPE : value"},
		{"no dimension", swap("DIMENSION : 2\n", ""), "f:4: NODE_COORD_SECTION before DIMENSION: put DIMENSION first"},
		{"no dimension nor section", "NAME:x\nTYPE:TSP\n", "f:3: file ends without DIMENSION: add the header line DIMENSION : value"},
		{"no weight type", swap("EDGE_WEIGHT_TYPE : EUC_2D\n", ""), "f:7: file ends without EDGE_WEIGHT_TYPE: add the header line EDGE_WEIGHT_TYPE : value"},
		{"no coordinates", "NAME:x\nTYPE:TSP\nDIMENSION:2\nEDGE_WEIGHT_TYPE:GEO\n", "f:5: file ends without NODE_COORD_SECTION: EDGE_WEIGHT_TYPE GEO needs it"},
		{"no matrix", "NAME:x\nTYPE:TSP\nDIMENSION:2\nEDGE_WEIGHT_TYPE:EXPLICIT\nEDGE_WEIGHT_FORMAT:UPPER_ROW\n", "f:6: file ends without EDGE_WEIGHT_SECTION: EDGE_WEIGHT_TYPE EXPLICIT needs it"},
		{"no format", "NAME:x\nTYPE:TSP\nDIMENSION:2\nEDGE_WEIGHT_TYPE:EXPLICIT\nEDGE_WEIGHT_SECTION\n1\n", "f:5: EDGE_WEIGHT_SECTION without a matrix layout before it: put EDGE_WEIGHT_TYPE EXPLICIT and EDGE_WEIGHT_FORMAT first"},
		{"no format nor section", "NAME:x\nTYPE:TSP\nDIMENSION:2\nEDGE_WEIGHT_TYPE:EXPLICIT\n", "f:4: EDGE_WEIGHT_TYPE EXPLICIT without EDGE_WEIGHT_FORMAT: name the layout of the matrix"},
		{"explicit function", "NAME:x\nTYPE:TSP\nDIMENSION:2\nEDGE_WEIGHT_TYPE:EXPLICIT\nEDGE_WEIGHT_FORMAT:FUNCTION\n", "f:5: EDGE_WEIGHT_FORMAT FUNCTION contradicts EDGE_WEIGHT_TYPE EXPLICIT: name the layout of the matrix"},
		{"planar with layout", swap("NODE", "EDGE_WEIGHT_FORMAT: UPPER_ROW\nNODE"), "f:5: EDGE_WEIGHT_FORMAT UPPER_ROW contradicts EDGE_WEIGHT_TYPE EUC_2D: remove the line"},
		{"planar with matrix", strings.Replace(explicit(2, "UPPER_ROW", "1"), "EXPLICIT", "ATT", 1), "f:5: EDGE_WEIGHT_FORMAT UPPER_ROW contradicts EDGE_WEIGHT_TYPE ATT: remove the line"},
		{"planar without coordinates", swap("NODE", "NODE_COORD_TYPE: NO_COORDS\nNODE"), "f:5: NODE_COORD_TYPE NO_COORDS contradicts EDGE_WEIGHT_TYPE EUC_2D: remove the line"},
		{"small letters", swap("DIMENSION", "dimension"), `f:3: unknown header "dimension": keywords of TSPLIB95 are in capitals, write DIMENSION`},
		{"other type", swap(": TSP", ": ATSP"), `f:2: TYPE is "ATSP": only TSP (symmetric) is supported`},
		{"dimension 0", swap(": 2", ": 0"), `f:3: DIMENSION is "0": give a whole number of cities from 1 to 2000`},
		{"dimension 2001", swap(": 2", ": 2001"), `f:3: DIMENSION is "2001": give a whole number of cities from 1 to 2000`},
		{"dimension negative", swap(": 2", ": -2"), `f:3: DIMENSION is "-2": give a whole number of cities from 1 to 2000`},
		{"dimension huge", swap(": 2", ": 99999999999999999999"), `f:3: DIMENSION is "99999999999999999999": give a whole number of cities from 1 to 2000`},
		{"dimension word", swap(": 2", ": two"), `f:3: DIMENSION is "two": give a whole number of cities from 1 to 2000`},
		{"weight type", swap("EUC_2D", "XRAY1"), `f:4: EDGE_WEIGHT_TYPE is "XRAY1": supported are ATT, CEIL_2D, EUC_2D, EUC_3D, EXPLICIT, GEO, MAN_2D and MAX_2D`},
		{"plane in space", swap("NODE", "NODE_COORD_TYPE: THREED_COORDS\nNODE"), "f:5: NODE_COORD_TYPE THREED_COORDS contradicts EDGE_WEIGHT_TYPE EUC_2D: remove the line"},
		{"space in the plane", strings.Replace(planar("EUC_3D", "1 0 0 0\n2 3 4 0\n"), "NODE", "NODE_COORD_TYPE: TWOD_COORDS\nNODE", 1), "f:5: NODE_COORD_TYPE TWOD_COORDS contradicts EDGE_WEIGHT_TYPE EUC_3D: remove the line"},
		{"two coordinates in space", swap("EUC_2D", "EUC_3D"), `f:7: city "3" in NODE_COORD_SECTION: number the cities from 1 to 2`},
		{"coordinates before their type", "NAME:x\nTYPE:TSP\nDIMENSION:1\nNODE_COORD_SECTION\n1 0 0\nEDGE_WEIGHT_TYPE:EUC_3D\n", "f:6: EDGE_WEIGHT_TYPE EUC_3D after NODE_COORD_SECTION: put EDGE_WEIGHT_TYPE first"},
		{"off the diagonal", explicit(2, "FULL_MATRIX", "-1 -1 -1 -1"), `f:7: weight "-1": distances must not be negative: add a constant to all of them`},
		{"word on the diagonal", explicit(2, "FULL_MATRIX", "far 1 1 0"), `f:7: weight "far": give a number`},
		{"format", explicit(2, "SPIRAL", "1"), `f:5: EDGE_WEIGHT_FORMAT is "SPIRAL": supported are FUNCTION, FULL_MATRIX and UPPER_ or LOWER_ with ROW, COL, DIAG_ROW or DIAG_COL`},
		{"coord type", swap("NODE", "NODE_COORD_TYPE: FOURD_COORDS\nNODE"), `f:5: NODE_COORD_TYPE is "FOURD_COORDS": supported are TWOD_COORDS, THREED_COORDS and NO_COORDS`},
		{"display type", swap("NODE", "DISPLAY_DATA_TYPE: SMELL\nNODE"), `f:5: DISPLAY_DATA_TYPE is "SMELL": supported are COORD_DISPLAY, TWOD_DISPLAY and NO_DISPLAY`},
		{"twice", swap("NODE", "DIMENSION: 2\nNODE"), "f:5: second DIMENSION, the first is on line 3: keep one"},
		{"section twice", two + "NODE_COORD_SECTION\n1 0 0\n2 0 0\n", "f:8: second NODE_COORD_SECTION, the first is on line 5: keep one"},
		{"empty value", swap("NAME : x", "NAME :"), "f:1: NAME has no value: add one after the colon"},
		{"unknown header", "CAPACITY : 5\n" + two, `f:1: unknown header "CAPACITY": remove the line, or use one of TSPLIB95's for symmetric instances`},
		{"unknown section", two + "TOUR_SECTION\n1 2\n-1\n", `f:8: section "TOUR_SECTION" is not supported: remove it if the instance means the same without it`},
		{"fixed edges", two + "FIXED_EDGES_SECTION\n1 2\n-1\n", "f:8: FIXED_EDGES_SECTION: the solver cannot keep edges fixed: remove the section to search all tours"},
		{"no header at all", "hello world\n", `f:1: "hello world" is neither a header nor a section: expected KEYWORD : value`},
		{"short, then EOF word", swap("2 3 4\n", "EOF\n"), `f:7: "EOF" after 1 of 2 lines of NODE_COORD_SECTION: the section is short, or DIMENSION 2 is wrong`},
		{"truncated", swap("3 4\n", "3"), "f:7: file ends after 1 of 2 lines of NODE_COORD_SECTION: it is cut short, or DIMENSION 2 is wrong"},
		{"long", two + "3 5 6\n", `f:8: "3 5 6" is neither a header nor a section: expected KEYWORD : value`},
		{"long line", swap("2 3 4\n", "2 3 4 5\n"), `f:7: "5" where NODE_COORD_SECTION should have ended: it is longer than DIMENSION 2 allows`},
		{"short matrix", explicit(3, "UPPER_ROW", "1 2"), `f:8: "EOF" after 2 of 3 numbers of EDGE_WEIGHT_SECTION: the section is short, or DIMENSION 3 is wrong`},
		{"long matrix", explicit(3, "UPPER_ROW", "1 2 3\n4"), `f:8: "4" is neither a header nor a section: expected KEYWORD : value`},
		{"city 0", swap("1 0 0", "0 0 0"), `f:6: city "0" in NODE_COORD_SECTION: number the cities from 1 to 2`},
		{"city 3", swap("2 3 4", "3 3 4"), `f:7: city "3" in NODE_COORD_SECTION: number the cities from 1 to 2`},
		{"city 1.5", swap("2 3 4", "1.5 3 4"), `f:7: city "1.5" in NODE_COORD_SECTION: number the cities from 1 to 2`},
		{"city twice", swap("2 3 4", "1 3 4"), "f:7: city 1 twice in NODE_COORD_SECTION: give each city from 1 to 2 once"},
		{"coordinate word", swap("3 4", "3 y"), `f:7: coordinate "y" in NODE_COORD_SECTION: give a finite number`},
		{"coordinate NaN", swap("3 4", "3 NaN"), `f:7: coordinate "NaN" in NODE_COORD_SECTION: give a finite number`},
		{"coordinate inf", swap("3 4", "-inf 4"), `f:7: coordinate "-inf" in NODE_COORD_SECTION: give a finite number`},
		{"coordinate overflow", swap("3 4", "1e400 4"), `f:7: coordinate "1e400" in NODE_COORD_SECTION: give a finite number`},
		{"distance overflow", swap("3 4", "3e9 4"), "f:5: distance between cities 1 and 2 exceeds 2147483647: scale the coordinates down"},
		{"distance not finite", swap("3 4", "1e308 4"), "f:5: distance between cities 1 and 2 exceeds 2147483647: scale the coordinates down"},
		{"weight word", explicit(2, "UPPER_ROW", "far"), `f:7: weight "far": give a whole number`},
		{"weight fraction", explicit(2, "UPPER_ROW", "1.5"), `f:7: weight "1.5": give a whole number`},
		{"weight NaN", explicit(2, "UPPER_ROW", "NaN"), `f:7: weight "NaN": give a whole number`},
		{"weight negative", explicit(2, "UPPER_ROW", "-1"), `f:7: weight "-1": distances must not be negative: add a constant to all of them`},
		{"weight overflow", explicit(2, "UPPER_ROW", "2147483648"), `f:7: weight "2147483648": distances must not exceed 2147483647: scale them down`},
		{"weight infinite", explicit(2, "UPPER_ROW", "Inf"), `f:7: weight "Inf": distances must not exceed 2147483647: scale them down`},
		{"asymmetric", explicit(2, "FULL_MATRIX", "0 1\n2 0"), "f:6: FULL_MATRIX is not symmetric: 1 to 2 is 1, back it is 2: only symmetric instances are supported"},
		{"giant line", "COMMENT: " + strings.Repeat("x", 1<<20), "f:1: line is longer than 4096 bytes: only numbers of a section may be longer"},
		{"giant number", swap("3 4", strings.Repeat("1", 1000)), `f:7: "11111111111111111111111111111111..."... is longer than 64 bytes: give a plain number`},
		{"binary", "\x7fELF\x02\x01\x01\x00", "f:1: control byte 0x02: this is not a TSPLIB text file"},
		{"binary in section", swap("3 4", "\x003 4"), "f:7: control byte 0x00: this is not a TSPLIB text file"},
	} {
		in, err := Parse(strings.NewReader(c.text), "f")
		if err == nil || in != nil || err.Error() != "tsplib: "+c.want {
			t.Errorf("%s:\n got %v\nwant tsplib: %s", c.name, err, c.want)
		}
	}
}

// A planar instance with a stray matrix has no layout to read it by.
func TestMatrixOfPlanar(t *testing.T) {
	text := planar("EUC_2D", "1 0 0\n2 3 4\n") + "EDGE_WEIGHT_SECTION\n5\n"
	_, err := Parse(strings.NewReader(text), "f")
	if want := "tsplib: f:8: EDGE_WEIGHT_SECTION without a matrix layout before it"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s...", err, want)
	}
}

func TestReadErrorIsKept(t *testing.T) {
	broken := errors.New("disk on fire")
	_, err := Parse(io.MultiReader(strings.NewReader("NAME : x\n"), iotest.ErrReader(broken)), "f")
	if want := "tsplib: f:2: cannot read: disk on fire"; !errors.Is(err, broken) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// endless repeats a text for ever.
type endless struct {
	text string
	at   int
}

func (e *endless) Read(b []byte) (int, error) {
	n := copy(b, e.text[e.at:])
	e.at = (e.at + n) % len(e.text)
	return n, nil
}

func TestEndlessFile(t *testing.T) {
	want := "tsplib: f:67108866: file is larger than 64 MiB: no instance of up to 2000 cities needs that"
	if _, err := Parse(&endless{text: strings.Repeat("\n", 1<<20)}, "f"); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// What is written from random coordinates reads back.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "n")
		var text strings.Builder
		rows := make([][]int, n)
		for i := range rows {
			rows[i] = make([]int, n)
			for j := range i {
				rows[i][j] = rapid.IntRange(0, MaxWeight).Draw(t, "w")
				rows[j][i] = rows[i][j]
				text.WriteString(strconv.Itoa(rows[i][j]) + rapid.SampledFrom([]string{" ", "\n", "\t", "\r\n"}).Draw(t, "gap"))
			}
		}
		in, err := Parse(strings.NewReader(explicit(n, "LOWER_ROW", text.String())), "f")
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			for j := range n {
				if in.Dist(i, j) != rows[i][j] {
					t.Fatalf("distance %d,%d is %d, want %d", i, j, in.Dist(i, j), rows[i][j])
				}
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(planar("EUC_2D", "1 0 0\n2 3 4\n3 0 9\n")))
	f.Add([]byte(planar("GEO", "1 16.47 96.10\n2 16.47 94.44\n")))
	f.Add([]byte(explicit(3, "UPPER_ROW", "5 9 6\nDISPLAY_DATA_SECTION\n1 0 0\n2 1 1\n3 2 2")))
	f.Add([]byte(explicit(2, "FULL_MATRIX", "0 1 1 0")))
	f.Add([]byte("\x00\xff:"))
	f.Fuzz(func(t *testing.T, b []byte) {
		in, err := Parse(strings.NewReader(string(b)), "f")
		if (in == nil) == (err == nil) {
			t.Fatalf("instance %v, error %v", in, err)
		}
		if err != nil {
			if !strings.HasPrefix(err.Error(), "tsplib: f:") {
				t.Fatalf("error without position: %v", err)
			}
			return
		}
		for i := range in.N {
			for j, d := range in.Row(i) {
				if d < 0 || d != in.Row(j)[i] {
					t.Fatalf("distance %d,%d is %d, back %d", i, j, d, in.Row(j)[i])
				}
			}
		}
	})
}
