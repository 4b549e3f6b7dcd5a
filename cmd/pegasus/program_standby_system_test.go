//go:build system && linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/testnats"
	"github.com/gopegasus/pegasus/internal/testwait"
)

const killedProgram = `
synchronizers:
  gsync: {members: {group: parts, count: 3}, silence: {after: 2s}, state: {n: {type: int, default: 0}}}
program:
  name: killed
  blocks: {split: {output: int}, work: {input: int, output: int}, sum: {input: [int], output: int}}
  body:
    seq:
      - {name: a, do: split}
      - {name: b, par: {do: work, from: a.result}, times: 9}
      - {name: c, do: sum, from: b.result}
      - {name: d, par: {do: work, from: c.result}, times: 9}
      - {name: e, do: sum, from: d.result}
  result: e.result
`

// TestLeadersOfAProgramAreKilled kills whoever runs a program again and again: who stood by
// continues with it, no block runs twice, and the result is the same as without kills.
func TestLeadersOfAProgramAreKilled(t *testing.T) {
	srv, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	dir := t.TempDir()
	file := filepath.Join(dir, "program.yaml")
	if err := os.WriteFile(file, []byte(killedProgram), 0o600); err != nil {
		t.Fatal(err)
	}
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	type process struct {
		*exec.Cmd
		out bytes.Buffer
	}
	processes := map[int]*process{}
	launch := func(more ...string) {
		t.Helper()
		p := &process{}
		p.Cmd = exec.CommandContext(t.Context(), binary, append([]string{"program", "run", file, "--nats", srv.URL(), "--state", dir}, more...)...)
		p.Env = append(os.Environ(), commandEnv+"=1")
		p.Stderr, p.Stdout = os.Stderr, &p.out
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		processes[p.Process.Pid] = p
	}
	t.Cleanup(func() {
		for _, p := range processes {
			_ = p.Process.Kill()
			_ = p.Wait()
		}
	})
	nc, err := nats.Connect(srv.URL(), testnats.Options(t, srv.URL())...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	var mu sync.Mutex
	var leader leaderBeat
	warm := map[int]bool{}
	if _, err := nc.Subscribe("pegasus.v1.default.parts.bt.gsync", func(m *nats.Msg) {
		var b leaderBeat
		if json.Unmarshal(m.Data, &b) != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if b.Standby {
			warm[b.Process] = b.Follows != nil && b.Follows.Warm
		} else if b.Term > leader.Term {
			leader = b
		}
	}); err != nil {
		t.Fatal(err)
	}
	now := func() leaderBeat {
		mu.Lock()
		defer mu.Unlock()
		return leader
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
	testwait.Until(t, "a leader", func() bool { return now().Term > 0 })
	launch("--standby")

	var ran atomic.Int64
	goOn := make(chan struct{}, 64)
	slow := func(ctx context.Context) {
		ran.Add(1)
		select {
		case <-goOn:
		case <-ctx.Done():
		}
	}
	node, err := agent.JoinNode(t.Context(), srv.URL(), agent.NodeConfig{Group: "parts", Name: "n", Processors: 3},
		agent.Block("split", func(ctx context.Context, _ *agent.Run, _ any) (int, error) { slow(ctx); return 1, nil }),
		agent.Block("work", func(ctx context.Context, _ *agent.Run, n int) (int, error) { slow(ctx); return n + 1, nil }),
		agent.Block("sum", func(ctx context.Context, _ *agent.Run, list []int) (int, error) {
			slow(ctx)
			sum := 0
			for _, n := range list {
				sum += n
			}
			return sum, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = node.Close() })
	for i := range 3 {
		testwait.Until(t, "a warm standby", isWarm)
		for range 3 { // Blocks end before the kill, about at it, and after it.
			goOn <- struct{}{}
		}
		before := now()
		killed := processes[before.Process]
		time.AfterFunc(time.Duration(i)*3*time.Millisecond, func() { _ = killed.Process.Kill() }) // Any point will do.
		_ = killed.Wait()
		delete(processes, before.Process)
		launch("--standby")
		for range 2 {
			goOn <- struct{}{}
		}
		testwait.Until(t, "another leader", func() bool { return now().Term > before.Term })
	}
	testwait.Until(t, "a warm standby", isWarm) // Else the program may be done before the newest standby has heard of it.
	close(goOn)
	for _, p := range processes {
		if err := p.Wait(); err != nil {
			var exit *exec.ExitError
			t.Errorf("a process that ran or stood by at the end: %v, exit code %t\n%s", err, errors.As(err, &exit), p.out.String())
		} else if want := fmt.Sprint("the program is done: ", 9*(9*2+1)); !strings.Contains(p.out.String(), want) {
			t.Errorf("it does not tell %q:\n%s", want, p.out.String())
		}
	}
	clear(processes)
	if n := ran.Load(); n != 21 {
		t.Errorf("%d runs of blocks, and 21 are in the program", n)
	}
}
