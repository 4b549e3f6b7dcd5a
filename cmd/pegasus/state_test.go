package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/testwait"
)

// TestRunKeepsTheTerm: the term is in the directory of --state, or in the state folder of
// this user, and a damaged file is not passed over.
func TestRunKeepsTheTerm(t *testing.T) {
	own, given := t.TempDir(), filepath.Join(t.TempDir(), "given")
	t.Setenv("XDG_STATE_HOME", own)
	const name = "synchronizer.default.workers.gsync.json"
	for _, c := range []struct {
		dir  string
		args []string
	}{{filepath.Join(own, "pegasus"), nil}, {given, []string{"--state", given}}, {"", []string{"--state", "none"}}, {"", []string{"--state="}}} {
		p := launch(t, append([]string{"run", goodConfig}, c.args...)...)
		p.url()
		if c.dir != "" {
			if text, err := os.ReadFile(filepath.Join(c.dir, name)); err != nil || !strings.Contains(string(text), `"term":`) {
				t.Errorf("%v: %s, %v", c.args, text, err)
			}
		}
		p.stop()
	}
	if _, err := os.Stat("none"); err == nil {
		t.Error("none is a directory")
	}
	file := filepath.Join(given, name)
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := execute(t, "run", goodConfig, "--state", given)
	if code != exitFailure || !strings.Contains(stderr, file+" is damaged: unexpected end of JSON input: put back a copy of it") {
		t.Errorf("exit %d, %s", code, stderr)
	}
	t.Setenv("XDG_STATE_HOME", file) // No directory.
	p := launch(t, "run", goodConfig)
	p.url()
	p.cancel()
	if code, stderr := p.exit(); code != exitOK || !strings.Contains(stderr, "pegasus: the term of this run is not kept, so give --state DIR, or --state none: mkdir "+file) {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

// TestRunStandsBy: a second run waits for the end of the first, and continues.
func TestRunStandsBy(t *testing.T) {
	code, _, stderr := execute(t, "run", goodConfig, "--standby")
	if want := "--standby waits for another process on the same server: give that with --nats"; code != exitUsage || !strings.Contains(stderr, want) {
		t.Errorf("exit %d, %s", code, stderr)
	}
	srv, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	first := launch(t, "run", goodConfig, "--nats", srv.URL())
	first.url()
	second := launch(t, "run", goodConfig, "--nats", srv.URL(), "--standby")
	second.line("gsync: standing by: another process leads group workers")
	second.line("stands by until the process that leads has ended")
	third := launch(t, "run", goodConfig, "--nats", srv.URL(), "--standby", "--json")
	third.object("standby")
	testwait.Until(t, "word of it in the status", func() bool {
		code, stdout, _ := execute(t, "status", "--nats", srv.URL())
		return code == exitOK && strings.Contains(stdout, "\nstandby   process ")
	})
	for _, p := range []*process{second, third} {
		if text := strings.Join(p.seen, "\n"); strings.Contains(text, "awaits") || strings.Contains(text, `"ready"`) {
			t.Errorf("it stands by, and says\n%s", text)
		}
	}
	third.stop()
	if text := strings.Join(third.seen, "\n"); strings.Contains(text, `"ready"`) {
		t.Errorf("it never led, and says\n%s", text)
	}
	first.stop()
	second.line("; this one ")
	second.line("gsync awaits 2 members")
	second.stop()
}
