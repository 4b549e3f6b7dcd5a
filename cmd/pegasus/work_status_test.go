package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/work"
)

// TestWorkStatus asks the members of a run how their tasks stand, one of which has not opened the space.
func TestWorkStatus(t *testing.T) {
	dir := own(t)
	file := filepath.Join(filepath.Dir(dir), "work.yaml")
	if err := os.WriteFile(file, []byte("synchronizers:\n  gsync:\n    members: {group: solvers, count: {min: 1, max: 2}}\n    work: {slots: 1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := launch(t, "run", file)
	url := p.url()
	code, _, stderr := execute(t, "work", "status")
	if want := `pegasus: synchronizer "gsync": group "solvers" has no members, so it has no tasks: start its programs`; code != exitFailure || !containsAll(stderr, []string{want}) {
		t.Errorf("nobody is there: exit %d, %s\nwant %s", code, stderr, want)
	}
	member := func(name string) *agent.Member {
		m, err := agent.Join(t.Context(), url, agent.Config{Group: "solvers", Name: name})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		return m
	}
	s, err := work.Open(t.Context(), member("w1"), work.Func("block", func(ctx context.Context, _ int) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	for i := range 3 {
		if err := s.Put(t.Context(), "block", i); err != nil {
			t.Fatal(err)
		}
	}
	member("w2")
	until(t, "work status", "gsync: group solvers, epoch 1; 3 tasks open, 0 blocked, 2 queued, 1 running", "w1      1      may put tasks  3     0        2       1 of 1", "w1 1",
		"w2: no answer: it has not opened the space, has died, or cannot be reached; pegasus why end says whether the phase waits for it")
	until(t, "why end", "missing", "w1  the member has tasks, or has put tasks that are open: pegasus work status counts them, and the tasks that wait for other tasks", "w1  its program may put more tasks",
		"-   no member waits for the end", "w2  the member has joined and has no state: its program has to call work.Open")
	var got struct {
		Members []struct {
			Member string
			Open   int
		}
		Silent []string
	}
	if err := json.Unmarshal([]byte(until(t, "work status --json")), &got); err != nil || len(got.Members) != 1 || got.Members[0].Open != 3 || len(got.Silent) != 1 {
		t.Errorf("%v: %+v", err, got)
	}
}

// TestWorkRemove: the output names the stream with the tasks. The stream stays while a member has it open, and is then removed.
func TestWorkRemove(t *testing.T) {
	dir := own(t)
	file := filepath.Join(filepath.Dir(dir), "work.yaml")
	if err := os.WriteFile(file, []byte("synchronizers:\n  gsync:\n    members: {group: solvers}\n    work: {slots: 1, store: jetstream}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := launch(t, "run", "--jetstream", t.TempDir(), file)
	m, err := agent.Join(t.Context(), p.url(), agent.Config{Group: "solvers", Name: "w1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	s, err := work.Open(t.Context(), m, work.Func("double", func(_ context.Context, n int) (int, error) { return 2 * n, nil }))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), "double", 1); err != nil {
		t.Fatal(err)
	}
	const stream = "pegasus+default+solvers"
	until(t, "work status", "stream "+stream+": ", "MiB")
	refuse := func(want string) {
		t.Helper()
		if code, _, stderr := execute(t, "work", "remove", stream); code != exitFailure || !containsAll(stderr, []string{want}) {
			t.Errorf("exit %d, %s\nwant %s", code, stderr, want)
		}
	}
	refuse("pegasus: stream " + stream + ": member w1 of group solvers has it open: stop the members first")
	if err := errors.Join(s.Wait(t.Context()), s.Close(), m.Leave(t.Context())); err != nil {
		t.Fatal(err)
	}
	until(t, "work remove "+stream, "stream "+stream+" is removed, with ", "messages")
	refuse(`pegasus: work: there is no stream "` + stream + `"`)
}
