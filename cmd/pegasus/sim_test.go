package main

import (
	"encoding/json"
	"errors"
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

// TestSimTwoSynchronizers tries each that is not thread-level, or the one that is named.
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
