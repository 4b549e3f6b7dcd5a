//go:build system && linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/testcount"
	"github.com/gopegasus/pegasus/internal/testnats"
	"github.com/gopegasus/pegasus/internal/testwait"
)

const killedConfig = `
synchronizers:
  gsync:
    members: {group: workers, count: 10}
    silence: {after: 10s, then: drop}
    state: {on: bool, n: int}
    memory: {rounds: {type: int, initial: 0}}
    predicates:
      all-on:
        when: all(members, .on)
        set: {rounds: memory.rounds + 1}
        signal: {kind: activate, region: r, expires: 1m}
`

// leaderBeat is what a leader says of itself.
type leaderBeat struct {
	Term    uint64
	Process int
	Standby bool
	Follows *struct{ Warm bool }
}

// TestLeadersAreKilled kills the leader again and again, at any point, while ten members
// come to a state and go from it: each time every member gets one signal, from whoever leads,
// the memory counts each time once, and another process leads within two seconds.
func TestLeadersAreKilled(t *testing.T) {
	kills := testcount.Of(t, "KILLS", 3)
	srv, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	dir := t.TempDir()
	file := filepath.Join(dir, "pegasus.yaml")
	if err := os.WriteFile(file, []byte(killedConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	processes := map[int]*exec.Cmd{}
	launch := func() {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), binary, "run", file, "--nats", srv.URL(), "--standby", "--state", dir, "--journal", filepath.Join(dir, "journals"))
		cmd.Env = append(os.Environ(), commandEnv+"=1")
		cmd.Stderr, cmd.Stdout = os.Stderr, os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		processes[cmd.Process.Pid] = cmd
	}
	t.Cleanup(func() {
		for _, cmd := range processes {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	nc, err := nats.Connect(srv.URL(), testnats.Options(t, srv.URL())...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	var mu sync.Mutex
	var leader leaderBeat
	var since time.Time
	warm := map[int]bool{}
	terms := 0
	if _, err := nc.Subscribe("pegasus.v1.default.workers.bt.gsync", func(m *nats.Msg) {
		var b leaderBeat
		if err := json.Unmarshal(m.Data, &b); err != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case b.Standby:
			warm[b.Process] = b.Follows != nil && b.Follows.Warm
		case b.Term > leader.Term:
			leader, since = b, time.Now()
			terms++
		}
	}); err != nil {
		t.Fatal(err)
	}
	now := func() (leaderBeat, time.Time) {
		mu.Lock()
		defer mu.Unlock()
		return leader, since
	}
	isWarm := func() bool {
		mu.Lock()
		defer mu.Unlock()
		for p := range processes {
			if p != leader.Process && warm[p] {
				return true
			}
		}
		return false
	}
	launch()
	testwait.Until(t, "a leader", func() bool { b, _ := now(); return b.Term > 0 })
	launch()

	const members = 10
	told := make(chan string, 1024)
	ctx, cancel := context.WithCancel(t.Context())
	var inside sync.WaitGroup
	t.Cleanup(func() { cancel(); inside.Wait() })
	var all []*agent.Member
	for i := range members {
		name := fmt.Sprintf("m%d", i)
		m, err := agent.Join(t.Context(), srv.URL(), agent.Config{Group: "workers", Name: name})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		all = append(all, m)
		in := make(chan struct{})
		inside.Go(func() {
			_ = m.Region(ctx, "r", func(ctx context.Context, r *agent.Region) error {
				close(in)
				for {
					if err := r.Wait(ctx); err != nil {
						return err
					}
				}
			},
				agent.OnActivate("all-on", func(context.Context, agent.Signal) error { told <- name; return nil }))
		})
		<-in
	}
	n := 0
	set := func(on bool) {
		for _, m := range all {
			n++
			if err := m.Set(struct {
				On bool
				N  int
			}{on, n}); err != nil {
				t.Fatal(err)
			}
		}
	}
	rounds := 0
	round := func() {
		t.Helper()
		set(true)
		heard := map[string]int{}
		for limit := time.After(patience); len(heard) < members; {
			select {
			case name := <-told:
				heard[name]++
			case <-limit:
				t.Fatalf("round %d: a decision is lost: %d of %d members were told", rounds, len(heard), members)
			}
		}
		rounds++
		for name, times := range heard {
			if times != 1 {
				t.Errorf("round %d: %s was told %d times", rounds, name, times)
			}
		}
		set(false)
	}
	round()
	var took []time.Duration
	for i := range kills {
		testwait.Until(t, "a warm standby", isWarm)
		before, _ := now()
		at, killed := make(chan time.Time, 1), processes[before.Process]
		time.AfterFunc(time.Duration(i*37%100)*time.Millisecond, func() { // While rounds continue.
			_ = killed.Process.Kill()
			at <- time.Now()
		})
		for b, _ := now(); b.Term == before.Term; b, _ = now() {
			round()
		}
		_ = killed.Wait()
		delete(processes, before.Process)
		_, led := now()
		took = append(took, led.Sub(<-at))
		launch()
	}
	round()
	code, stdout, stderr := execute(t, "status", "--nats", srv.URL(), "--json")
	var status struct {
		Memory map[string]any `json:"memory"`
	}
	if err := json.Unmarshal([]byte(stdout), &status); code != exitOK || err != nil || fmt.Sprint(status.Memory["rounds"]) != strconv.Itoa(rounds) {
		t.Errorf("the memory has counted %v of %d rounds; exit %d, %v, %s", status.Memory["rounds"], rounds, code, err, stderr)
	}
	if len(told) > 0 {
		t.Errorf("%s was told once more", <-told)
	}
	slices.Sort(took)
	t.Logf("%d leaders killed in %d rounds, %d terms; another one led after %v", len(took), rounds, terms, took)
	for _, cmd := range processes {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	clear(processes)
	journals, err := filepath.Glob(filepath.Join(dir, "journals", "*"))
	if err != nil || len(journals) < 2+kills {
		t.Fatalf("%d journals of %d processes, %v", len(journals), 2+kills, err)
	}
	for _, file := range journals {
		if code, stdout, stderr := execute(t, "replay", file); code != exitOK {
			t.Errorf("replay %s: exit %d: %s%s", file, code, stdout, stderr)
		}
	}
}
