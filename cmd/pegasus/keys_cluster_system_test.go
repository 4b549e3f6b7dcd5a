//go:build system && linux

package main

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/internal/testnats"
)

const clusterConfig = `
synchronizers:
  gsync:
    members: {group: workers, count: 3}
    silence: {after: 10s, then: drop}
    state: {on: bool}
    predicates:
      all-on: {when: 'all(members, .on)', signal: {kind: activate, region: r, expires: 1m}}
`

// TestKeysCluster: three servers with keys and TLS, the leader of a group at the first, its standby at the second. Members at
// all three come to a state again and again. The first server is killed, and later the leader ends: each time
// each member gets one signal a round. The test logs the longest time between two rounds.
func TestKeysCluster(t *testing.T) {
	dir := keysDir(t, "--group workers --tls", "synchronizer gsync", "member w0", "member w1", "member w2", "viewer vic")
	cluster := testnats.StartSecuredCluster(t, filepath.Join(dir, "server.conf"))
	urls := strings.Split(cluster.URL, ",")
	file := writeFile(t, t.TempDir(), "pegasus.yaml", clusterConfig)
	state := t.TempDir()
	run := func(i int) *process {
		return launch(t, "run", file, "--nats", urls[i], "--creds", filepath.Join(dir, "gsync.creds"), "--tlsca", filepath.Join(dir, "ca.pem"), "--standby", "--state", state)
	}
	leader := run(0)
	leader.line("gsync awaits 3 members")
	standby := run(1)
	standby.line("stands by until the process that leads has ended")

	told := make(chan string, 1024)
	ctx, cancel := context.WithCancel(t.Context())
	var inside sync.WaitGroup
	t.Cleanup(func() { cancel(); inside.Wait() })
	var all []*agent.Member
	for i, name := range []string{"w0", "w1", "w2"} {
		m, err := joined(t, urls[i], dir, name+".creds", name)
		if err != nil {
			t.Fatal(err)
		}
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
			}, agent.OnActivate("all-on", func(context.Context, agent.Signal) error { told <- name; return nil }))
		})
		<-in
	}
	var last time.Time
	var longest time.Duration
	round := func() {
		t.Helper()
		for _, on := range []bool{true, false} {
			for _, m := range all {
				if err := m.Set(struct{ On bool }{on}); err != nil {
					t.Fatal(err)
				}
			}
			heard := map[string]bool{}
			for limit := time.After(patience); on && len(heard) < len(all); {
				select {
				case name := <-told:
					if heard[name] {
						t.Errorf("%s was told twice in one round", name)
					}
					heard[name] = true
				case <-limit:
					t.Fatalf("a decision is lost: of three members %v were told within %v", heard, patience)
				}
			}
		}
		now := time.Now()
		if !last.IsZero() {
			longest = max(longest, now.Sub(last))
		}
		last = now
	}
	for range 50 {
		round()
	}
	quiet := longest
	longest = 0
	cluster.Kill(0)
	for range 50 {
		round()
	}
	t.Logf("longest time between two rounds: %v before, %v when the server of the leader was killed", quiet, longest)
	cluster.Restart(0)
	longest = 0
	leader.stop()
	for range 50 {
		round()
	}
	t.Logf("and %v when the leader ended", longest)
	code, stdout, stderr := execute(t, "status", "--nats", urls[2], "--creds", filepath.Join(dir, "vic.creds"), "--tlsca", filepath.Join(dir, "ca.pem"))
	if code != exitOK || !containsAll(stdout, []string{"w0", "w1", "w2"}) {
		t.Errorf("status: exit %d, %s%s", code, stdout, stderr)
	}
	standby.stop()
}
