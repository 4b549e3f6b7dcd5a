//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestRunReloads: SIGHUP has the file read again, and a faulty file changes
// nothing.
func TestRunReloads(t *testing.T) {
	src, err := os.ReadFile(levelsConfig)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "pegasus.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hangup := func() {
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	text := string(src)
	alone, _, _ := strings.Cut(text, "  other:")
	write(text)
	p := launch(t, "run", file, "--members", "gsync=2", "--journal", dir)
	p.url()
	hangup()
	p.line("gsync: reloaded " + file + ": nothing is different")
	p.line("other: reloaded " + file + ": nothing is different")

	write(strings.Replace(text, ".busy == 0", ".busy == 1", 1))
	hangup()
	p.line("gsync: reloaded "+file, "predicate quiet: another when")
	p.line("other: reloaded " + file + ": nothing is different")

	const kept = "reload refused, the old configuration is kept: "
	for want, text := range map[string]string{
		file + " has faults, which stderr tells": strings.Replace(text, ".busy == 0", ".bussy == 0", 1),
		`gsync: the declared state is now {busy: float}, and was {busy: int}, by which the members report: restart to change that; ` +
			`gsync: the thread-level section below it, or what that sees of its state and signals, is another one, and the members run the old one: restart to change that; ` +
			`other: its group is now "listeners", and was "watchers": restart to change that`: strings.NewReplacer("int", "float", "watchers", "listeners", "busy: 'count(members, .busy)'", "busy: 'float(count(members, .busy))'").Replace(text),
		file + " has 3 synchronizers to run, and 2 run: restart to change that": text + "  third:\n    members: {group: more}\n",
		file + ` has no synchronizer "other": it has gsync`:                     alone,
	} {
		write(text)
		hangup()
		if line := p.line(kept); !strings.HasSuffix(line, kept+want) {
			t.Errorf("got  %s\nwant %s", line, want)
		}
	}
	write(strings.Replace(text, ".busy == 0", ".busy == 2", 1))
	hangup()
	p.line("gsync: reloaded "+file, "predicate quiet: another when")
	p.cancel()
	code, stderr := p.exit()
	if code != exitOK || !strings.Contains(stderr, `pegasus.yaml:7:29: synchronizers.gsync.predicates.quiet.when: unknown field "bussy"`) || strings.Count(stderr, "pegasus.yaml:") != 1 {
		t.Errorf("exit %d, stderr:\n%s", code, stderr)
	}
	code, stdout, stderr := execute(t, "replay", dir)
	if code != exitOK || stderr != "" || strings.Count(stdout, "reloaded") != 6 || strings.Count(stdout, "all as recorded\n") != 2 {
		t.Errorf("exit %d, stderr %q:\n%s", code, stderr, stdout)
	}
}

// TestProgramRunReloads: SIGHUP has the file of a program read again while it runs.
func TestProgramRunReloads(t *testing.T) {
	file, command := pair(t, "0.95")
	write := func(old, text string) {
		if err := os.WriteFile(file, []byte(strings.Replace(pairProgram, old, text, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	run := launch(t, "program", "run", file)
	url := run.url()
	run.line("pair: gsync awaits 2 processors of group pairs.")
	const kept = "reload refused, the old configuration is kept: "
	write("times: 2", "times: 3")
	run.line(kept + `synchronizer "gsync": reload: gsync: the file has another program now, and the running program continues unchanged: restart to change that`)
	write("{high:", "{higher:")
	run.line(kept, `program.body.seq[1].if: there is no predicate "high"`)
	write("> 0.9", "> 0.99")
	run.line("gsync: reloaded "+file, "predicate high: another when")
	node := startNode(t, url, command)
	run.line("passed if which by gsync.high (decision gsync/1/") // With the 0.9 of before it would be branch 0.
	run.cancel()
	run.line("the program is cancelled: the run was ended by a signal")
	if code, stderr := run.exit(); code != exitFailure {
		t.Errorf("exit %d, %s", code, stderr)
	}
	endNode(t, node)
}
