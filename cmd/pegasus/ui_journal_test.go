package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/agent"
)

// TestUIOfAJournal shows a recorded run: its time, its events, and where it stood at its end and at its beginning.
func TestUIOfAJournal(t *testing.T) {
	own(t)
	dir := filepath.Join(t.TempDir(), "journals")
	run := launch(t, "run", goodConfig, "--members", "1", "--journal", dir)
	url := run.url()
	m, err := agent.Join(t.Context(), url, agent.Config{Group: "workers", Name: "w1"})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := m.Set(struct {
		Phase string
		Load  float64
	}{"idle", 1}); err != nil {
		t.Fatal(err)
	}
	run.line("epoch 1")
	run.stop()
	ui := launch(t, "ui", "--journal", dir)
	first := ui.line("/#key=")
	page, _, _ := strings.Cut(first, " ")
	base, key, _ := strings.Cut(page, "/#key=")
	if !regexp.MustCompile(` shows \S+, \S+s of 1 synchronizer; Ctrl-C ends it$`).MatchString(first) {
		t.Error(first)
	}
	frames := openPageStream(t, base+"/stream?key="+key)
	hello := frames.next(`"kind":"hello"`)
	record, _ := hello["record"].(map[string]any)
	if from, to := record["from"].(float64), record["to"].(float64); from < 1e12 || to < from {
		t.Errorf("%v", hello)
	}
	frames.next(`"kind":"event"`, "epoch 1 with 1 member: w1")
	frames.next(`"kind":"status"`)
	at := func(field string) string {
		text, err := io.ReadAll(getPage(t, base+"/status?key="+key+"&at="+strconv.FormatInt(int64(record[field].(float64)), 10)))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if text := at("from"); !strings.Contains(text, `"epoch":"no epoch"`) {
		t.Errorf("at the beginning: %s", text)
	}
	if text := at("to"); !strings.Contains(text, `"name":"w1"`) {
		t.Errorf("at the end: %s", text)
	}
	ui.stop()
}

// TestUIOfAJournalRefused: an unusable journal is refused, with advice.
func TestUIOfAJournalRefused(t *testing.T) {
	dir := t.TempDir()
	broken := writeFile(t, dir, "x.journal.jsonl", "{}\n")
	for args, want := range map[string]string{
		"--allow-control --journal " + dir:           "--journal shows a run that is over, without a server: leave out --allow-control",
		"--nats nats://127.0.0.1:1 --journal " + dir: "--journal shows a run that is over, without a server: leave out --nats",
		"--journal " + filepath.Join(dir, "none"):    "stat " + filepath.Join(dir, "none") + ": no such file or directory: give a journal, or a directory that run --journal has written to",
		"--journal " + broken:                        broken + ": line 1: the first line is no header of a journal, as run --journal writes it",
		"--listen 0.0.0.0:1 --journal " + broken:     "--listen 0.0.0.0:1: other machines may reach this address",
	} {
		code, stdout, stderr := execute(t, append([]string{"ui"}, strings.Fields(args)...)...)
		if code == exitOK || stdout != "" || !strings.HasPrefix(stderr, "pegasus: "+want) {
			t.Errorf("%s: exit %d, %s%swant %s", args, code, stdout, stderr, want)
		}
	}
	if _, err := os.Stat(broken); err != nil {
		t.Error(err)
	}
}

// TestUIOfAJournalThatWasCut: a journal that ends in half a line is shown up to the line before, and stderr says so.
func TestUIOfAJournalThatWasCut(t *testing.T) {
	own(t)
	dir := filepath.Join(t.TempDir(), "journals")
	run := launch(t, "run", goodConfig, "--members", "1", "--journal", dir)
	m, err := agent.Join(t.Context(), run.url(), agent.Config{Group: "workers", Name: "w1"})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := m.Set(state{"idle", 1}); err != nil {
		t.Fatal(err)
	}
	run.line("all-idle fired")
	run.stop()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	last := lines[len(lines)-2]
	cut := strings.Join(lines[:len(lines)-2], "") + last[:len(last)/2]
	if err := os.WriteFile(files[0], []byte(cut), 0o600); err != nil {
		t.Fatal(err)
	}
	ui := launch(t, "ui", "--journal", dir)
	page, _, _ := strings.Cut(ui.line("/#key="), " ")
	base, key, _ := strings.Cut(page, "/#key=")
	frames := openPageStream(t, base+"/stream?key="+key)
	frames.next(`"kind":"event"`, "epoch 1 with 1 member: w1")
	frames.next(`"kind":"event"`, "all-idle fired")
	ui.cancel()
	if code, stderr := ui.exit(); code != exitOK || stderr != "pegasus: "+files[0]+": the last line was not written to its end: the process was ended\n" {
		t.Errorf("exit %d, %s", code, stderr)
	}
}
