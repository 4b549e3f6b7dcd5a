package tracefile_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/tracefile"
	"github.com/gopegasus/pegasus/scgs"
)

// samples are the lines of testdata/lines.
func samples(tb testing.TB) []string {
	tb.Helper()
	file, err := os.ReadFile("testdata/lines")
	if err != nil {
		tb.Fatal(err)
	}
	var list []string
	for part := range strings.SplitSeq(string(file), "\n----\n") {
		if _, line, ok := strings.Cut(part, "scan\n"); ok {
			list = append(list, line)
		}
	}
	return list
}

// TestScanner reads the lines of testdata/lines, each the whole input of a scan
// or of a quoted, which is a Go string.
func TestScanner(t *testing.T) {
	s := tracefile.NewScanner(wanted)
	var l tracefile.Line
	datadriven.RunTest(t, "testdata/lines", func(t *testing.T, d *datadriven.TestData) string {
		t.Helper()
		line := d.Input
		if d.Cmd == "quoted" {
			if _, err := fmt.Sscanf(d.Input, "%q", &line); err != nil {
				d.Fatalf(t, "%v", err)
			}
		}
		if err := s.Scan([]byte(line), &l); err != nil {
			return err.Error() + "\n"
		}
		p := plainOf(&l)
		out := fmt.Appendf(nil, "%s %q/%d seq %d, %s@%v%v", p.Type, p.Participant, p.Incarnation, p.Seq, p.Domain, p.Mono, p.Within)
		for i, kind := range p.Kinds {
			if kind != tracefile.Missing {
				out = fmt.Appendf(out, " %q=%s%q", wanted[i], kindNames[kind], p.Texts[i])
			}
		}
		return string(out) + "\n"
	})
}

var kindNames = []string{"missing", "null", "true", "false", "number", "text", "nested", "array"}

func TestLimits(t *testing.T) {
	line := func(state string) string {
		return `{"participant":"p","domain":"d","mono":1,"earliest":1,"latest":1,"type":"state","seq":1,"state":` + state + `}`
	}
	fields := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf(`"f%d":%d`, i, i)
		}
		return "{" + strings.Join(list, ",") + "}"
	}
	nested := func(n int) string {
		return `{"role":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`
	}
	for name, c := range map[string]struct{ state, want string }{
		"fields":       {fields(tracefile.MaxFields), ""},
		"fields more":  {fields(tracefile.MaxFields + 1), "2694: a state has at most 256 fields"},
		"nesting":      {nested(tracefile.MaxNesting), ""},
		"nesting more": {nested(tracefile.MaxNesting + 1), "169: values are nested deeper than 64"},
		"nesting wild": {strings.Replace(nested(1), "[]", strings.Repeat("[", 100_000), 1), "169: values are nested deeper than 64"},
	} {
		t.Run(name, func(t *testing.T) {
			var l tracefile.Line
			err := tracefile.NewScanner(nil).Scan([]byte(line(c.state)), &l)
			if got := fmt.Sprint(err); got != c.want && (err != nil || c.want != "") {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestColumns has each type of field and each kind of value.
func TestColumns(t *testing.T) {
	schema := scgs.Schema{
		{Name: "b", Type: scgs.Bool},
		{Name: "i", Type: scgs.Int},
		{Name: "f", Type: scgs.Float},
		{Name: "s", Type: scgs.String},
		{Name: "d", Type: scgs.Duration},
		{Name: "e", Type: scgs.Enum, Words: []string{"idle", "busy"}},
		{Name: "x"},
		{Name: "li", Type: scgs.ListOf(scgs.Int), Default: scgs.ListValue(scgs.Int, scgs.IntValue(7))},
		{Name: "ls", Type: scgs.ListOf(scgs.String)},
	}
	c := tracefile.NewColumns(schema)
	row := make([]scgs.Value, len(schema))
	number := func(s string) tracefile.Datum { return tracefile.Datum{Kind: tracefile.Number, Text: []byte(s)} }
	word := func(s string) tracefile.Datum { return tracefile.Datum{Kind: tracefile.Text, Text: []byte(s)} }
	array := func(s string) tracefile.Datum { return tracefile.Datum{Kind: tracefile.Array, Text: []byte(s)} }
	for _, step := range []struct {
		datum tracefile.Datum
		want  string
	}{
		{tracefile.Datum{}, "none none none none none none none [7] none"},
		{tracefile.Datum{Kind: tracefile.Null}, "none none none none none none none none none"},
		{tracefile.Datum{Kind: tracefile.Nested}, "none none none none none none none none none"},
		{number("1e999"), "none none none none none none none none none"}, // x is a float from here on
		{number("-0"), "none 0 -0 none none none -0 none none"},
		{number("7"), "none 7 7 none none none 7 none none"},
		{number("-1234567890123456789"), "none -1234567890123456789 none none none none none none none"},
		{number("-1234567890123456768"), "none -1234567890123456768 -1.2345678901234568e+18 none none none -1.2345678901234568e+18 none none"},
		{number("-1234567890123456789.0"), "none none -1.2345678901234568e+18 none none none -1.2345678901234568e+18 none none"},
		{number("9007199254740993"), "none 9007199254740993 none none none none none none none"},
		{number("9007199254740994"), "none 9007199254740994 9.007199254740994e+15 none none none 9.007199254740994e+15 none none"},
		{number("18446744073709551615"), "none none none none none none none none none"},
		{number("1" + strings.Repeat("0", 22)), "none none 1e+22 none none none 1e+22 none none"},
		{number("1" + strings.Repeat("0", 400)), "none none none none none none none none none"},
		{number("9223372036854775808"), "none none 9.223372036854776e+18 none none none 9.223372036854776e+18 none none"},
		{number("0.5"), "none none 0.5 none none none 0.5 none none"},
		{number("1e2"), "none none 100 none none none 100 none none"},
		{tracefile.Datum{Kind: tracefile.True}, "true none none none none none none none none"},
		{tracefile.Datum{Kind: tracefile.False}, "false none none none none none none none none"},
		{word("busy"), `none none none "busy" none busy none none none`},
		{word("200ms"), `none none none "200ms" 200ms none none none none`},
		{array("[ ]"), "none none none none none none none [] []"},
		{array("[1, -2 ,3]"), "none none none none none none none [1, -2, 3] none"},
		{array(`["a","\u0062 ]"]`), `none none none none none none none none ["a", "b ]"]`},
		{array("[1,null]"), "none none none none none none none none none"},
		{array("[1,[2]]"), "none none none none none none none none none"},
		{array("[1" + strings.Repeat(",1", scgs.MaxElements) + "]"), "none none none none none none none none none"},
		{array(`["` + strings.Repeat("x", scgs.MaxTextBytes) + `","y"]`), "none none none none none none none none none"},
	} {
		state := make([]tracefile.Datum, len(schema))
		for i := range state {
			state[i] = step.datum
		}
		c.Row(state, row)
		if got := strings.TrimSuffix(fmt.Sprint(row)[1:], "]"); got != step.want {
			t.Errorf("%d %q: got %s, want %s", step.datum.Kind, step.datum.Text, got, step.want)
		}
	}
	if got := strings.Join(c.Rounded(), " "); got != "f x" {
		t.Errorf("rounded: %s", got)
	}
	if schema[6].Type != scgs.Invalid || c.Schema()[6].Type != scgs.Float {
		t.Errorf("the last field is %v, and %v for the caller", c.Schema()[6], schema[6])
	}
}

// TestColumnsHoldFewTexts gives them more than they keep.
func TestColumnsHoldFewTexts(t *testing.T) {
	c := tracefile.NewColumns(scgs.Schema{{Name: "s"}})
	row := make([]scgs.Value, 1)
	for i := range 20_000 {
		want := fmt.Sprint("text", i)
		c.Row([]tracefile.Datum{{Kind: tracefile.Text, Text: []byte(want)}}, row)
		if row[0].Text() != want {
			t.Fatalf("got %v, want %s", row[0], want)
		}
	}
}

func TestScannerAllocatesNothing(t *testing.T) {
	input := lines(3)
	s, c := tracefile.NewScanner([]string{"role", "load", "busy"}), tracefile.NewColumns(scgs.Schema{{Name: "role"}, {Name: "load"}, {Name: "busy"}})
	var l tracefile.Line
	row := make([]scgs.Value, 3)
	allocs := testing.AllocsPerRun(10, func() {
		for _, line := range input {
			if err := s.Scan(line, &l); err != nil {
				t.Fatal(err)
			}
			c.Row(l.State, row)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations for %d lines", allocs, len(input))
	}
	if l.Within.Width() != clocksync.Instant(500_000).Sub(0) {
		t.Errorf("the last line is within %v", l.Within)
	}
}
