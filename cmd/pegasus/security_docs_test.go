//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/internal/testwait"
)

// shellLines are those of the sh blocks of a page.
func shellLines(t *testing.T, page string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(text), "```sh\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		lines = append(lines, strings.Split(strings.TrimSpace(block), "\n")...)
	}
	return lines
}

// TestSecurityPage runs the commands of docs/security.md: those of the first host in one directory, and those of
// the second host in another, which has nothing but the files that were copied.
func TestSecurityPage(t *testing.T) {
	own(t)
	lines := shellLines(t, "../../docs/security.md")
	config, err := filepath.Abs(goodConfig)
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(freeAddress(t), ":")
	here, there := t.TempDir(), t.TempDir()
	t.Chdir(here)
	replace := strings.NewReplacer("nats.example", "127.0.0.2", "0.0.0.0", "127.0.0.2", "4222", port, "pegasus.yaml", config)
	var run *process
	var log *recorded
	done := map[string]int{}
	for _, line := range lines {
		words := strings.Fields(replace.Replace(line))
		for _, name := range []string{"NATS_URL", "NATS_CREDS", "NATS_CA"} {
			t.Setenv(name, "")
		}
		for strings.HasPrefix(words[0], "NATS_") {
			name, value, _ := strings.Cut(words[0], "=")
			t.Setenv(name, value)
			words = words[1:]
		}
		what := strings.Join(words[:min(2, len(words))], " ")
		switch {
		case words[0] == "#":
			t.Chdir(there)
			continue
		case what == "pegasus run":
			run = launch(t, words[1:]...)
			run.line("gsync: connected with keys/gsync.creds")
		case words[0] == "pegasus":
			code, stdout, stderr := execute(t, words[1:]...)
			if warns := what == "pegasus keys" && words[2] == "list"; code != exitOK || stdout == "" || stderr != "" && !warns {
				t.Fatalf("%s: exit %d, %s%s", line, code, stdout, stderr)
			}
		case words[0] == "scp":
			for _, file := range words[1 : len(words)-1] {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				writeFile(t, there, filepath.Base(file), string(text))
			}
		case words[0] == "./worker":
			m, err := agent.Join(t.Context(), "", agent.Config{Group: "workers", Name: "w1"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = m.Close() })
			t.Chdir(here)
			_, log = joined(t, "keys", "nats://127.0.0.2:"+port, "w2", "w2")
		case what == "kill -HUP":
			sendHangup(t)
			run.line("keys: keys was read again")
			run.line("gsync: reloaded ")
		default:
			t.Errorf("the test does not know %s", line)
		}
		done[what]++
	}
	if done["pegasus keys"] < 8 || done["pegasus status"] < 1 || done["pegasus reload"] < 1 || done["kill -HUP"] != 1 {
		t.Errorf("the page has %v", done)
	}
	testwait.Until(t, "the end of w2", log.has("the server is away"))
	run.stop()
}
