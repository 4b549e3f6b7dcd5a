package local_test

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/gopegasus/pegasus/balance/local"
)

// TestScenarios shows what New says about a configuration: its values with the defaults,
// or every fault. "topology" does the same for the name of a topology.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/configs", func(t *testing.T, path string) {
		t.Helper()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			var err error
			shown := "good\n"
			switch d.Cmd {
			case "strategy":
				var c local.Config
				for line := range strings.Lines(d.Input) {
					key, value, _ := strings.Cut(strings.TrimRight(line, "\n"), ": ")
					set(t, &c, key, value)
				}
				_, err = local.New(c)
				if faults := c.Faults(); (err == nil) != (len(faults) == 0) {
					t.Errorf("New says %v, and there are the faults %v", err, faults)
				}
				c = c.WithDefaults()
				shown = values(c)
			case "topology":
				_, err = local.ParseTopology(strings.TrimSpace(d.Input))
			default:
				d.Fatalf(t, "unknown command %s", d.Cmd)
			}
			if err != nil {
				return err.Error() + "\n"
			}
			return shown
		})
	})
}

// values are the fields that are not zero.
func values(c local.Config) string {
	var list []string
	for f, v := range reflect.ValueOf(c).Fields() {
		if !v.IsZero() {
			list = append(list, fmt.Sprintf("%s:%v", f.Name, v))
		}
	}
	return strings.Join(list, " ") + "\n"
}

func set(t *testing.T, c *local.Config, key, value string) {
	t.Helper()
	var err error
	switch key {
	case "kind":
		c.Kind = value
	case "below":
		c.Below = value
	case "from":
		c.From = value
	case "cut":
		c.Cut = value
	case "again":
		c.Again, err = time.ParseDuration(value)
	case "longest":
		c.Longest, err = time.ParseDuration(value)
	case "speeds":
		c.Speeds = value
	case "links":
		c.Links = value
	case "latency":
		c.Latency, err = time.ParseDuration(value)
	case "share":
		c.Share, err = strconv.ParseFloat(value, 64)
	case "factor":
		c.Factor, err = strconv.ParseFloat(value, 64)
	case "alpha":
		c.Alpha, err = strconv.ParseFloat(value, 64)
	case "beta":
		c.Beta, err = strconv.ParseFloat(value, 64)
	case "gamma":
		c.Gamma, err = strconv.ParseFloat(value, 64)
	case "start":
		c.Start, err = strconv.Atoi(value)
	default:
		t.Fatalf("unknown key %q", key)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// FuzzWords reads what nobody should write: there is a value or a fault with a place
// inside the text.
func FuzzWords(f *testing.F) {
	for _, text := range []string{"", "idle(1.5)", "avg(0.6, 5)", "avg(NaN, -1)", "tss(3, 9)", "css(99999999999999999999)", "ä(ö", "gss()", "free(1h) x", "idle(1e300)"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, c := range []local.Config{{Below: text}, {From: text}, {Kind: local.Chunk, Cut: text}} {
			strategy, err := local.New(c)
			if (strategy == nil) != (err != nil) {
				t.Fatalf("%q: %v and %v", text, strategy, err)
			}
			for _, fault := range c.Faults() {
				if fault.Key == "" || fault.Message == "" || fault.Column < 0 || fault.Column > len([]rune(text))+1 {
					t.Fatalf("%q: %+v", text, fault)
				}
			}
			if strategy != nil {
				v := crowd(3)
				strategy.Look(0, v, nil)
				strategy.Answer(0, v, local.Demand{Member: "m1"})
			}
		}
	})
}
