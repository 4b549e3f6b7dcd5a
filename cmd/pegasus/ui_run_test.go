package main

import (
	"io"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/agent"
)

// TestRunWithAPage: a run serves its own page: status, events and reasons of its synchronizers. Without the key there is nothing.
func TestRunWithAPage(t *testing.T) {
	own(t)
	run := launch(t, "run", goodConfig, "--members", "1", "--ui")
	url := run.url()
	line := run.line("the page of this run: http://127.0.0.1:")
	_, page, _ := strings.Cut(line, "the page of this run: ")
	base, key, _ := strings.Cut(page, "/#key=")
	frames := openPageStream(t, base+"/stream?key="+key)
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
	frames.next(`"kind":"event"`, "epoch 1 with 1 member: w1")
	frames.next(`"kind":"event"`, "all-idle fired")
	frames.next(`"kind":"status"`, `"name":"w1"`)
	text, err := io.ReadAll(getPage(t, base+"/why?group=workers&synchronizer=gsync&predicate=all-idle&key="+key))
	if err != nil || !strings.Contains(string(text), `"truth":"true"`) {
		t.Errorf("%s, %v", text, err)
	}
	run.stop()
	want := "pegasus: --ui 0.0.0.0:1: other machines may reach this address, and the page is not encrypted: use 127.0.0.1 and a tunnel such as ssh -L\n"
	if code, _, stderr := execute(t, "run", goodConfig, "--ui=0.0.0.0:1"); code != exitUsage || !strings.HasPrefix(stderr, want) {
		t.Errorf("exit %d, %s", code, stderr)
	}
}
