package workcmd_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/workplan"
	"github.com/gopegasus/pegasus/synchronizer"
)

// TestAdvise: of each recorded run with a planted bottleneck the line of the configuration is named, and of balanced runs none (C14).
func TestAdvise(t *testing.T) {
	for name, want := range map[string]struct{ key, change string }{
		"sync":           {"calls.weld.style", "style: async for cut, weld, paint"},
		"ratio":          {"calls.row.ratio", `ratio: "10:`},
		"marks":          {"calls.row.style", `style: "async-demand(`},
		"chunk":          {"strategy.cut", "cut: gss"},
		"replica":        {"calls.row.replicas", "replicas: [w2, ...] with a further member"},
		"still":          {"strategy.links", "links with a lower o"},
		"balanced-calls": {}, "balanced-tasks": {},
	} {
		text, err := os.ReadFile(filepath.Join("testdata", name+synchronizer.JournalSuffix))
		if err != nil {
			t.Fatal(err)
		}
		a, err := workplan.Read(bytes.NewReader(text), "", nil)
		if err != nil {
			t.Fatal(err)
		}
		if a.Synchronizer != "farm" || a.Members < 3 || a.Seconds < 0.5 || !a.Figures {
			t.Errorf("%s: %+v", name, a)
		}
		if want.key == "" {
			if len(a.Advice) > 0 {
				t.Errorf("%s: %+v, want no advice", name, a.Advice)
			}
			continue
		}
		if len(a.Advice) != 1 {
			t.Fatalf("%s: %+v, want one line", name, a.Advice)
		}
		p := a.Advice[0]
		if p.Key != want.key || p.Path != "synchronizers.farm.work."+want.key || p.File != "farm.yaml" || p.Line != 8 || p.Lost < 0.15 || p.Lost > 1 || !strings.Contains(p.Change, want.change) {
			t.Errorf("%s: %+v, want %s and %s", name, p, want.key, want.change)
		}
	}
}

// TestAdviseOnOtherFiles: lines are those of the file that is given, and of what is no run of it nothing is said.
func TestAdviseOnOtherFiles(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "ratio"+synchronizer.JournalSuffix))
	if err != nil {
		t.Fatal(err)
	}
	read := func(journal, config string) (*workplan.Advised, error) {
		return workplan.Read(strings.NewReader(journal), "other.yaml", []byte(config))
	}
	a, err := read(string(text), "# A comment.\nsynchronizers: {farm: {members: {group: solvers, count: 4}, state: {},\n  work: {slots: 1}}}\n")
	if err != nil || len(a.Advice) != 1 || a.Advice[0].File != "other.yaml" || a.Advice[0].Line != 3 || a.Advice[0].Column != 3 {
		t.Errorf("%+v, %v: want the place of the section", a, err)
	}
	bare := "synchronizers: {farm: {members: {group: solvers, count: 4}, state: {x: int}, predicates: {p: {when: 'any(members, .x > 1)', signal: {kind: cancel, region: r}}}}}\n"
	for config, want := range map[string]string{
		bare: "other.yaml: it has no section work of the synchronizer farm, which the journal is of: give the configuration of that run",
		"x":  "other.yaml:1:1: ",
	} {
		if _, err := read(string(text), config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for journal, want := range map[string]string{
		"":     "the journal is empty",
		"{}":   "the journal is empty", // It does not end with the line.
		"{}\n": "the first line is no header of a journal",
		strings.Replace(string(text), `nap\n`, "", 1) + "{\n":         "line ",
		strings.Replace(string(text), `0/0/37/1/2/`, `0/0/x/1/2/`, 1): "figures of calls: the text is damaged",
	} {
		if _, err := workplan.Read(strings.NewReader(journal), "", nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %s", journal, err, want)
		}
	}
}
