package yamlconf_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gopegasus/pegasus/internal/yamlconf"
)

func TestDecode(t *testing.T) {
	var got config
	doc, err := yamlconf.Decode("good.yaml", []byte(good), &got)
	if err != nil {
		t.Fatal(err)
	}
	want := synchronizer{
		Members: members{Group: "workers", Count: 3},
		Silence: &silence{After: 2 * time.Second, Then: "drop"},
		State: yamlconf.Map[stateType]{
			{Key: "phase", Value: stateType{"enum", []string{"idle", "search"}}, Pos: yamlconf.Pos{Line: 6, Column: 13}},
			{Key: "load", Value: stateType{Name: "float"}, Pos: yamlconf.Pos{Line: 6, Column: 44}},
			{Key: "best", Value: stateType{Name: "float"}, Pos: yamlconf.Pos{Line: 6, Column: 57}},
		},
		Memory: yamlconf.Map[variable]{
			{Key: "best", Value: variable{stateType{Name: "float"}, math.Inf(1)}, Pos: yamlconf.Pos{Line: 7, Column: 14}},
		},
		Predicates: yamlconf.Map[predicate]{
			{
				Key:   "all-idle",
				Value: predicate{When: `all(members, .phase == "idle")`, Modality: "inst", For: 200 * time.Millisecond},
				Pos:   yamlconf.Pos{Line: 9, Column: 7},
			},
			{
				Key:   "low.load",
				Value: predicate{When: "sum(members, .load) < 2 &&\n  any(members, .phase == 'search')\n", Every: true},
				Pos:   yamlconf.Pos{Line: 13, Column: 7},
			},
		},
		Limits: limits{Small: -5, Count: 16, Ratio: 0.5, Number: 12},
		Tags:   []string{"one", "two é"},
		Matrix: [][]int{{1, 2}, {}, {3}},
	}
	gsync, ok := got.Synchronizers.Get("gsync")
	if !ok {
		t.Fatal("no gsync")
	}
	if diff := cmp.Diff(want, gsync, cmpopts.IgnoreFields(synchronizer{}, "Extra")); diff != "" {
		t.Error(diff)
	}
	if _, ok := got.Synchronizers.Get("none"); ok {
		t.Error("found a synchronizer that is not there")
	}
	var extra struct {
		A []string `yaml:"a"`
	}
	if err := gsync.Extra.Decode(&extra); err != nil || len(extra.A) != 1 || extra.A[0] != "b" {
		t.Errorf("late decoding: %v, %v", extra, err)
	}
	if got := doc.Root().Items()[0].Items()[1].Path(); got != "synchronizers.lower" {
		t.Errorf("path %q", got)
	}
}

func TestDefaultsStay(t *testing.T) {
	got := silence{After: time.Minute}
	if _, err := yamlconf.Decode("c", []byte("then: drop"), &got); err != nil || got.After != time.Minute {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestPositions(t *testing.T) {
	doc, err := yamlconf.Decode("good.yaml", []byte(good), &config{})
	if err != nil {
		t.Fatal(err)
	}
	low := yamlconf.Path("synchronizers", "gsync", "predicates", "low.load")
	for path, want := range map[string][2]string{
		"":                                   {"2:1", "2:1"},
		"synchronizers":                      {"3:3", "2:1"},
		"synchronizers.gsync.members":        {"4:14", "4:5"},
		"synchronizers.gsync.members.count":  {"4:38", "4:31"},
		"synchronizers.gsync.state.phase":    {"6:20", "6:13"},
		low:                                  {"14:9", "13:7"},
		low + ".when":                        {"14:15", "14:9"},
		"synchronizers.gsync.tags[1]":        {"20:9", "20:9"},
		"synchronizers.gsync.tags":           {"19:7", "18:5"},
		"synchronizers.gsync.tags[2]":        {"0:0", "0:0"},
		"synchronizers.gsync.tags[x]":        {"0:0", "0:0"},
		"synchronizers.gsync.matrix[2][0]":   {"22:27", "22:27"},
		"synchronizers.gsync.members[0]":     {"0:0", "0:0"},
		"synchronizers.gsync.members.group.": {"0:0", "0:0"},
		"nowhere":                            {"0:0", "0:0"},
	} {
		if got := [2]string{doc.Pos(path).String(), doc.KeyPos(path).String()}; got != want {
			t.Errorf("%s: value and key at %v, want %v", path, got, want)
		}
	}
	if got := doc.PosIn("nowhere", 3); got != (yamlconf.Pos{}) {
		t.Errorf("offset in nothing: %v", got)
	}
}

// TestFaults holds the text of every fault. "escaped" input is in the syntax of
// a Go string, "repeat" input is a list of such strings and counts.
func TestFaults(t *testing.T) {
	datadriven.Walk(t, "testdata/faults", func(t *testing.T, path string) {
		t.Helper()
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			t.Helper()
			src := td.Input
			if td.HasArg("escaped") || td.HasArg("repeat") {
				src = expand(t, td.Input)
			}
			var c config
			doc, err := yamlconf.Decode("pegasus.yaml", []byte(src), &c)
			if doc != nil {
				err = c.check(doc)
			}
			if err == nil {
				return "ok\n"
			}
			if td.Cmd == "count" {
				lines := strings.Split(err.Error(), "\n")
				return lines[0] + "\n" + lines[len(lines)-1] + "\n"
			}
			return err.Error() + "\n"
		})
	})
}

// expand reads lines of a Go string, each with an optional count before it.
func expand(t *testing.T, input string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(input) {
		count, quoted, ok := strings.Cut(strings.TrimSpace(line), " * ")
		n := 1
		if ok {
			n, _ = strconv.Atoi(count)
		} else {
			quoted = count
		}
		s, err := strconv.Unquote(quoted)
		if err != nil {
			t.Fatalf("%s: %v", quoted, err)
		}
		b.WriteString(strings.Repeat(s, n))
	}
	return b.String()
}

func TestParseFloat(t *testing.T) {
	for text, want := range map[string]float64{
		"1": 1, "-2.5e3": -2500, "+7": 7, "0x1f": 31, "0o17": 15, "010": 10, ".5": 0.5, "5.": 5,
		"123456789012345678901234567890": 123456789012345678901234567890,
		"+inf":                           math.Inf(1), "-inf": math.Inf(-1), ".inf": math.Inf(1), "+.INF": math.Inf(1), "-.Inf": math.Inf(-1),
	} {
		if got, err := yamlconf.ParseFloat(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "inf", "1_000", "--inf", "0x", "1e", "e1", "1 2"} {
		if got, err := yamlconf.ParseFloat(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
	if _, err := yamlconf.ParseFloat("two"); fmt.Sprint(err) != `yamlconf: "two" is not a number` {
		t.Error(err)
	}
}

func TestProgramMistakes(t *testing.T) {
	for name, into := range map[string]any{
		`yamlconf: decoding "" into yamlconf_test.config, not a pointer`: config{},
		`yamlconf: "a": cannot decode into map[string]int; use Map for a map`: &struct {
			A map[string]int `yaml:"a"`
		}{},
		`yamlconf: decoding "" into *yamlconf_test.config, not a pointer`: (*config)(nil),
		`yamlconf: "a": cannot decode into chan int; use Map for a map`: &struct {
			A chan int `yaml:"a"`
		}{},
	} {
		func() {
			defer func() {
				if got := recover(); got != name {
					t.Errorf("panic %v, want %s", got, name)
				}
			}()
			_, _ = yamlconf.Decode("c", []byte("a: {b: 1}"), into)
		}()
	}
}
