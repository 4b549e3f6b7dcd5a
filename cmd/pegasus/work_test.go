package main

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/worksim"
)

// TestWorkSimPage runs what docs/cli.md shows of work sim, and wants every key of a scenario there.
func TestWorkSimPage(t *testing.T) {
	raw, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page, _ := strings.Cut(string(raw), "\n## work sim\n")
	page, _, _ = strings.Cut(page, "\n## ")
	_, shown, _ := strings.Cut(page, "\n$ pegasus work sim farm16.yaml\n")
	want, _, ok := strings.Cut(shown, "```\n")
	code, stdout, stderr := execute(t, "work", "sim", filepath.FromSlash("../../internal/worksim/testdata/farm16.yaml"))
	if !ok || code != exitOK || stderr != "" || stdout != want {
		t.Errorf("exit %d, %s\n%s\nthe page has\n%s", code, stderr, stdout, want)
	}
	_, scenario, _ := strings.Cut(page, "```yaml\n")
	scenario, _, _ = strings.Cut(scenario, "```\n")
	if _, err := worksim.Parse("page.yaml", []byte(scenario)); err != nil {
		t.Error(err)
	}
	keys := 0
	var look func(reflect.Type)
	look = func(of reflect.Type) {
		for of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || of == reflect.TypeFor[config.Work]() {
			return
		}
		for f := range of.Fields() {
			if key, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); key != "" {
				if keys++; !regexp.MustCompile("[`.{]" + key + "[`.:]").MatchString(page) {
					t.Errorf("the page has no key %q of %v", key, of)
				}
			}
			look(f.Type)
		}
	}
	look(reflect.TypeFor[worksim.Scenario]())
	if look(reflect.TypeFor[worksim.LoopScenario]()); keys < 40 {
		t.Errorf("only %d keys were looked for", keys)
	}
	_, shown, _ = strings.Cut(page, "\n$ pegasus work sim --loops owners128.yaml\n")
	want, shown, ok = strings.Cut(shown, "```\n")
	code, stdout, stderr = execute(t, "work", "sim", "--loops", filepath.FromSlash("../../internal/worksim/testdata/owners128.yaml"))
	if !ok || code != exitOK || stderr != "" || stdout != want {
		t.Errorf("exit %d, %s\n%s\nthe page has\n%s", code, stderr, stdout, want)
	}
	_, scenario, _ = strings.Cut(shown, "```yaml\n")
	scenario, _, _ = strings.Cut(scenario, "```\n")
	if _, err := worksim.ParseLoops("page.yaml", []byte(scenario)); err != nil {
		t.Error(err)
	}
}

// TestWorkSimLoops: parameters that vary have a row or an object for each combination and seed; and the refusals.
func TestWorkSimLoops(t *testing.T) {
	file := filepath.Join(t.TempDir(), "loops.yaml")
	if err := os.WriteFile(file, []byte("time: 5s\nloops: [{rows: 100}]\nnodes: [{count: 3}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := execute(t, "work", "sim", "--loops", file, "--vary", "rows=100,200", "--vary", "nodes=2,3", "--seeds", "2")
	lines := strings.Split(stdout, "\n")
	if code != exitOK || stderr != "" || len(lines) != 10 || !strings.HasPrefix(lines[0], "SEED  ROWS  NODES  TIME  EFFICIENCY") || !strings.HasPrefix(lines[8], "2     200   3      5s    0.") {
		t.Errorf("exit %d, %s\n%s", code, stderr, stdout)
	}
	code, stdout, stderr = execute(t, "work", "sim", "--loops", file, "--vary", "rows=100,200", "--seed", "7", "--json")
	if code != exitOK || stderr != "" || strings.Count(stdout, "\n") != 2 || !strings.Contains(stdout, `"seed":7,`) || !strings.Contains(stdout, `"vary_rows":"200"`) {
		t.Errorf("exit %d, %s\n%s", code, stderr, stdout)
	}
	for _, c := range []struct {
		want string
		code int
		args []string
	}{
		{"--vary: only loops vary: add --loops, with a scenario of loops", exitUsage, []string{file, "--vary", "rows=1"}},
		{"--strategy: loops have no strategy: leave out --strategy or --loops", exitUsage, []string{file, "--loops", "--strategy", "{kind: market}"}},
		{`--vary: "row" is no parameter: write one of check, cost, nodes, rows, speed, time`, exitUsage, []string{file, "--loops", "--vary", "row=1"}},
		{`missing key "loops"`, exitFailure, []string{filepath.FromSlash("testdata/work/small.yaml"), "--loops"}},
	} {
		code, stdout, stderr := execute(t, append([]string{"work", "sim"}, c.args...)...)
		if code != c.code || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: exit %d, %s%s", c.args, code, stdout, stderr)
		}
	}
}

// TestWorkSimTrace: the tasks of a trace run in place of drawn ones, and faults of the trace are refused.
func TestWorkSimTrace(t *testing.T) {
	dir := t.TempDir()
	file, lines := filepath.Join(dir, "nodes.yaml"), filepath.Join(dir, "tasks.jsonl")
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(file, "nodes: 2\n")
	write(lines, `{"member":"w1","at":1,"put":"a"}`+"\n"+`{"member":"w1","at":3,"ran":"a","seconds":2}`+"\n")
	code, stdout, stderr := execute(t, "work", "sim", file, "--trace", lines)
	if want := "2 nodes, 1 task, 2 units of work, seed 1\ntrace: the real run took 2.000s, and seed 1 takes 1.0000 of it\nstrategy: "; code != exitOK || stderr != "" || !strings.HasPrefix(stdout, want) {
		t.Errorf("exit %d, %s\n%s", code, stderr, stdout)
	}
	if code, stdout, _ := execute(t, "work", "sim", file, "--trace", lines, "--json"); code != exitOK || !strings.Contains(stdout, `"traced_seconds":2,`) {
		t.Errorf("exit %d\n%s", code, stdout)
	}
	if code, _, stderr := execute(t, "work", "sim", file, "--loops", "--trace", lines); code != exitUsage || !strings.Contains(stderr, "--trace: a trace has tasks and no loops: leave out --trace or --loops") {
		t.Errorf("exit %d, %s", code, stderr)
	}
	write(lines, "{}\n")
	if code, _, stderr := execute(t, "work", "sim", file, "--trace", lines); code != exitFailure || !strings.Contains(stderr, lines+":1: line of a trace: it names no member: write member, as a space does") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}
