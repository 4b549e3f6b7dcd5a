package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/internal/sim"
)

// TestSim tries a good configuration, twice.
func TestSim(t *testing.T) {
	args := []string{"sim", goodConfig, "--faults", "--trials", "20", "--time", "2s"}
	code, stdout, stderr := execute(t, args...)
	if code != exitOK || stderr != "" {
		t.Fatalf("exit %d, %s%s", code, stdout, stderr)
	}
	for _, want := range []string{"gsync: 20 trials of 2s from seed 1, ", "faults: clock ", "\npredicate  true ", "\nall-idle ", "\noverload ", " applied", "no promise was broken\n"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("there is no %q in\n%s", want, stdout)
		}
	}
	if _, again, _ := execute(t, args...); again != stdout {
		t.Errorf("the same command once more tells\n%s", again)
	}
	code, stdout, _ = execute(t, append(args, "--json", "--faults=drop,crash")...)
	var r struct {
		Synchronizer string
		OK           bool
		Trials       int
		Faults       map[string]int
		Predicates   []struct {
			Name  string
			Fired int
		}
	}
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != exitOK {
		t.Fatalf("exit %d, %v: %s", code, err, stdout)
	}
	if !r.OK || r.Synchronizer != "gsync" || r.Trials != 20 || len(r.Faults) != 2 || r.Faults["drop"] == 0 || len(r.Predicates) != 2 || r.Predicates[0].Fired == 0 {
		t.Errorf("%+v", r)
	}
}

// TestSimTwoSynchronizers tries each synchronizer that is not thread-level, or only the named one.
func TestSimTwoSynchronizers(t *testing.T) {
	_, stdout, _ := execute(t, "sim", levelsConfig, "--trials", "1")
	if !strings.Contains(stdout, "gsync: 1 trial ") || !strings.Contains(stdout, "other: 1 trial ") || strings.Contains(stdout, "tsync: ") {
		t.Error(stdout)
	}
	if !strings.Contains(stdout, "not tried: the threads below") {
		t.Error(stdout)
	}
	if _, stdout, _ = execute(t, "sim", levelsConfig, "--trials", "1", "--name", "other"); strings.Contains(stdout, "gsync: ") {
		t.Error(stdout)
	}
}

// TestSimRecipes: each rule of the recipes fires.
func TestSimRecipes(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../configs/recipes/*[a-z].yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.yaml") {
			continue
		}
		if code, stdout, stderr := execute(t, "sim", file); code != exitOK || !strings.HasSuffix(stdout, "\nno promise was broken\n") {
			t.Errorf("%s: exit %d\n%s%s", file, code, stdout, stderr)
		}
	}
}

// TestSimUntried: a rule that never fires has an exit code of its own, unless that is accepted; --set decides the drawn values.
func TestSimUntried(t *testing.T) {
	file := filepath.Join(t.TempDir(), "try.yaml")
	if err := os.WriteFile(file, []byte(`
params:
  limit: {type: int, default: 70000}
  part: {type: float, default: 0, min: 0, max: 1}
synchronizers:
  s:
    members: {group: g, count: 2}
    state: {n: int, word: string}
    predicates:
      over: {when: 'all(members, .n > params.limit)'}
      never: {when: 'any(members, .n < 0 and .n > 0)'}
      least: {when: 'params.part > 0 and any(members, .n == params.limit)'}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	const line = "no promise was broken, but what never fired was not tried: "
	for _, one := range []struct {
		code int
		end  string
		args []string
	}{
		{exitUntried, line + "least, never\n", nil},
		{exitUntried, line + "never\n", []string{"--set", "part=0.5", "--set", "params.limit=-70000"}},
		{exitOK, line + "least, never\n", []string{"--allow-untried"}},
	} {
		code, stdout, stderr := execute(t, append([]string{"sim", file, "--trials", "20"}, one.args...)...)
		if code != one.code || !strings.HasSuffix(stdout, "\n"+one.end) || stderr != "" {
			t.Errorf("%v: exit %d\n%s%s", one.args, code, stdout, stderr)
		}
	}
	if code, stdout, _ := execute(t, "sim", file, "--trials", "20", "--json"); code != exitUntried || !strings.Contains(stdout, `"unfired":["least","never"]`) || !strings.Contains(stdout, `"ok":false`) {
		t.Errorf("exit %d: %s", code, stdout)
	}
	for arg, want := range map[string]string{"part": "--set \"part\" is no assignment", "part=2": "params.part does not take 2", "other=1": "declares no parameter"} {
		if code, _, stderr := execute(t, "sim", file, "--set", arg); code == exitOK || !strings.Contains(stderr, want) {
			t.Errorf("--set %s: exit %d, %s", arg, code, stderr)
		}
	}
	for arg, want := range map[string]int{"part=2": exitFailure, "part=x": exitFailure, "part=": exitFailure, "other=1": exitFailure, "part": exitUsage, "=1": exitUsage} {
		if code, stdout, _ := execute(t, "sim", file, "--set", arg); code != want || stdout != "" {
			t.Errorf("--set %s: exit %d, want %d: %s", arg, code, want, stdout)
		}
	}
	flags := trialFlags{file: "a.yaml", set: []string{"part=0.5", "word=it's so"}}
	if got, want := flags.command("s", &sim.Options{}), `pegasus sim a.yaml --name s --set part=0.5 --set 'word=it'\''s so' --faults=none `; !strings.HasPrefix(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestSetTwice: a parameter that is given twice is refused, by every command with --set.
func TestSetTwice(t *testing.T) {
	file := filepath.Join(t.TempDir(), "twice.yaml")
	if err := os.WriteFile(file, []byte("params: {limit: {type: int, default: 1}}\nsynchronizers: {s: {members: {group: g, count: 1}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"sim", file}, {"run", file}, {"program", "run", file}} {
		for _, second := range []string{"limit=3", "params.limit=2"} {
			code, stdout, stderr := execute(t, append(command, "--set", "limit=2", "--set", "other=1", "--set", second)...)
			_, value, _ := strings.Cut(second, "=")
			want := "--set limit=" + value + `: limit is given twice, as "2" and as "` + value + `": give it one value` + "\n"
			if code != exitUsage || stdout != "" || !strings.Contains(stderr, want) {
				t.Errorf("%v, %s: exit %d\n%s%s", command, second, code, stdout, stderr)
			}
		}
	}
}

// TestSimWithoutFaults tells of no fault where there was none.
func TestSimWithoutFaults(t *testing.T) {
	for _, one := range []struct{ faults, want string }{
		{"none", " after the end of the trial time, without a fault, at the latest\n"},
		{"all", " after the last fault at the latest\n"},
	} {
		if _, stdout, _ := execute(t, "sim", goodConfig, "--trials", "3", "--faults="+one.faults); !strings.Contains(stdout, one.want) {
			t.Errorf("there is no %q in\n%s", one.want, stdout)
		}
	}
}

// TestSimThreads: predicates of threads are not tried, and count as such.
func TestSimThreads(t *testing.T) {
	file := filepath.Join(t.TempDir(), "threads.yaml")
	if err := os.WriteFile(file, []byte(`
synchronizers:
  g:
    members: {group: workers, count: 2}
    state: {busy: int}
    predicates:
      quiet: {when: 'all(members, .busy == 0)'}
  t:
    parent: g
    members: {threads: 2}
    state: {busy: bool}
    summary: {busy: 'count(members, .busy)'}
    predicates:
      idle: {when: 'none(members, .busy)'}
      full: {when: 'all(members, .busy)'}
  other:
    members: {group: watchers, count: 2}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	const line = "\nnot tried: the threads below (t): a process has states as a whole\nno promise was broken, but what never fired was not tried: t.full, t.idle\n"
	for _, one := range []struct {
		code int
		args []string
	}{{exitUntried, nil}, {exitOK, []string{"--allow-untried"}}} {
		code, stdout, stderr := execute(t, append([]string{"sim", file, "--trials", "5"}, one.args...)...)
		if code != one.code || !strings.Contains(stdout, line) || stderr != "" {
			t.Errorf("%v: exit %d\n%s%s", one.args, code, stdout, stderr)
		}
	}
	if code, stdout, _ := execute(t, "sim", file, "--trials", "5", "--name", "g", "--json"); code != exitUntried || !strings.Contains(stdout, `"unfired":["t.full","t.idle"]`) || !strings.Contains(stdout, `"ok":false`) {
		t.Errorf("exit %d: %s", code, stdout)
	}
	if code, stdout, _ := execute(t, "sim", file, "--trials", "5", "--name", "other"); code != exitOK {
		t.Errorf("exit %d: %s", code, stdout)
	}
}

// TestSimTellsWhatWasBroken, and the command that repeats it.
func TestSimTellsWhatWasBroken(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		flags := trialFlags{file: goodConfig, faults: "all", json: asJSON, try: func(o sim.Options, _ func() error) (*sim.Report, error) {
			least := o
			least.Faults, _ = sim.ParseFaults("drop,crash")
			least.Seed, least.Time, least.Members = 17, minTrial, 3
			found := o
			found.Seed, found.Trials, found.Time, found.Members = 17, 1, 2*time.Second, 4
			return &sim.Report{
				Synchronizer: o.Level.Name, Trials: 17, Asked: 20, Time: o.Time, Never: []string{"overload has not fired"},
				Breaches: []string{"S at 5ms: all-idle fired, and it is false"}, Promises: []string{"S: a predicate that fired was true"}, Least: &least, Found: &found,
			}, nil
		}}
		flags.Trials = 20
		cmd := newSim()
		var stdout strings.Builder
		cmd.SetOut(&stdout)
		if err := tryRules(cmd, &flags); !errors.Is(err, errTold) {
			t.Errorf("got %v", err)
		}
		least := "pegasus sim " + goodConfig + " --name gsync --faults=drop,crash --seed 17 --trials 1 --time 50ms --members 3"
		found := "pegasus sim " + goodConfig + " --name gsync --faults=" + strings.Join(sim.FaultNames(), ",") + " --seed 17 --trials 1 --time 2s --members 4"
		wants := []string{
			"gsync: 17 of 20 trials, up to the first that broke a promise, of ", "never: overload has not fired\n", "broken: S at 5ms: all-idle fired, and it is false\npromise S: a predicate that fired was true\n" +
				"repeat it, in the smallest trial that breaks it: " + least + "\nrepeat it, as it was found with seed 17: " + found + "\n",
		}
		if asJSON {
			wants = []string{`"repeat":"` + least + `"`, `"found":"` + found + `"`, `"trials":17,"asked":20`, `"never":["overload has not fired"]`, `"promises":["S: a predicate that fired was true"]`}
		}
		for _, want := range wants {
			if got := stdout.String(); !strings.Contains(got, want) || strings.Contains(got, "no promise") {
				t.Errorf("there is no %q in\n%s", want, got)
			}
		}
	}
}
