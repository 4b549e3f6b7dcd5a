package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReload: a command has the synchronizers of a run read their file again, all or one,
// and gets what has changed or why not, with its place.
func TestReload(t *testing.T) {
	own(t)
	src, err := os.ReadFile(levelsConfig)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "pegasus.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text := string(src)
	write(text)
	p := launch(t, "run", file, "--members", "gsync=2")
	p.url()
	until(t, "status", "gsync: no epoch", "other: no epoch")
	for _, c := range []struct {
		text, args   string
		code         int
		stdout       string
		stderr, told []string
	}{
		{text, "reload", exitOK, "gsync: reloaded: nothing is different\n\nother: reloaded: nothing is different\n", nil, []string{"other: reloaded " + file + ": nothing is different"}},
		{strings.Replace(text, ".busy == 0", ".busy == 1", 1), "reload other", exitOK, "other: reloaded: nothing is different\n", nil, nil},
		{strings.Replace(text, ".busy == 0", ".busy == 1", 1), "reload gsync --json", exitOK, `{"synchronizer":"gsync","changes":["predicate quiet: another when"]}` + "\n", nil, []string{"gsync: reloaded " + file, "predicate quiet: another when"}},
		{
			strings.Replace(text, ".busy == 0", ".bussy == 0", 1), "reload gsync", exitFailure, "",
			[]string{`pegasus: synchronizer "gsync": reload: refused, the old configuration is kept: ` + file + `:7:29: synchronizers.gsync.predicates.quiet.when: unknown field "bussy"`},
			[]string{"reload refused, the old configuration is kept: " + file + `:7:29: synchronizers.gsync.predicates.quiet.when: unknown field "bussy": did you mean "busy"?`},
		},
		{
			strings.Replace(text, "watchers", "listeners", 1), "reload", exitFailure, "",
			[]string{
				`synchronizer "gsync": reload: refused, the old configuration is kept: other: its group is now "listeners", and was "watchers": restart to change that`,
				`synchronizer "other": reload: refused`,
			},
			[]string{"reload refused"},
		},
		{
			strings.Replace(text, "\n  gsync:", "\n  first: 1\n    gsync:", 1), "reload gsync", exitFailure, "",
			[]string{"= check the indentation here and on the lines below: "},
			[]string{"reload refused, ", ": check the indentation here and on the lines below: "},
		},
		{text, "reload gsinc", exitFailure, "", []string{`did you mean "gsync"?`}, nil},
		{text, "reload gsync other", exitUsage, "", []string{"reload takes one synchronizer, or none for all: pegasus reload gsync"}, nil},
		{text, "reload gsync --synchronizer other", exitUsage, "", []string{"reload takes one synchronizer: leave out gsync or --synchronizer other"}, nil},
	} {
		write(c.text)
		code, stdout, stderr := execute(t, strings.Fields(c.args)...)
		if code != c.code || stdout != c.stdout || !containsAll(stderr, c.stderr) || len(c.stderr) == 0 && stderr != "" {
			t.Errorf("pegasus %s: exit %d\n%s%s", c.args, code, stdout, stderr)
		}
		if len(c.told) > 0 {
			if line := p.line(c.told...); strings.Contains(line, "|") || strings.Contains(line, "^") {
				t.Errorf("a picture of several lines is on one: %s", line)
			}
		}
	}
	p.stop()
}
