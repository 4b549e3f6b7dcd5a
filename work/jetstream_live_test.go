package work_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/synchronizer"
	"github.com/gopegasus/pegasus/work"
)

var durableText = strings.Replace(live, "{slots: 1}", "{slots: 1, store: jetstream}", 1)

// newDurable is newLive with a server that has JetStream in a directory.
func newDurable(t *testing.T, dir string, members int) *liveGroup {
	t.Helper()
	server, err := embedded.Start(embedded.Options{JetStream: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	cfg, err := synchronizer.ParseConfig("test.yaml", []byte(durableText), synchronizer.Members("gsync", members))
	if err != nil {
		t.Fatal(err)
	}
	g := &liveGroup{t: t, server: server, cfg: cfg}
	g.start()
	t.Cleanup(func() { _ = g.sync.Close() })
	return g
}

func putNamed(t *testing.T, s *work.Space, n int) {
	t.Helper()
	for i := range n {
		if err := s.Put(limited(t), "task", i, work.ID("task/%d", i)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDurable: tasks, phases and results are as with store: memory.
func TestDurable(t *testing.T) {
	t.Parallel()
	g := newDurable(t, t.TempDir(), 3)
	gate := newGate()
	close(gate.open)
	list := g.spaces([]string{"a", "b", "c"}, gate.option())
	for _, s := range list[1:] {
		serveLive(t, s)
	}
	for range 3 {
		putNamed(t, list[0], 30)
		collect(t, list[0], 30)
	}
	if s := list[0].Stats(); s.Phase != 4 || s.Redone != 0 {
		t.Errorf("%+v", s)
	}
}

// TestDurableRestart: everything is killed in the middle of a phase, and the same programs on the same directory
// come to the same results, each once.
func TestDurableRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	gate := newGate()
	g := newDurable(t, dir, 2)
	list := g.spaces([]string{"a", "b"}, gate.option())
	serveLive(t, list[1])
	putNamed(t, list[0], 30)
	gate.await(t, 2)
	close(gate.open)
	gate.await(t, 10)
	g.server.Close()
	for _, s := range list {
		_ = s.Close()
	}
	_ = g.sync.Close()
	g = newDurable(t, dir, 2)
	list = g.spaces([]string{"a", "b"}, gate.option())
	serveLive(t, list[1])
	putNamed(t, list[0], 30)
	collect(t, list[0], 30)
	most := 0
	for n := range 30 {
		most = max(most, gate.ran(n))
	}
	fmt.Println("most runs", most)
}

// TestDurableOrphan: the member that has put the tasks is cut off. Another one takes over its account, and a third
// one reads the results.
func TestDurableOrphan(t *testing.T) {
	t.Parallel()
	g := newDurable(t, t.TempDir(), 3)
	proxy := newProxy(t, g.server.URL())
	gate := newGate()
	list := g.spacesBy(proxy.of("b"), []string{"a", "b", "c"}, gate.option())
	serveLive(t, list[0])
	putNamed(t, list[1], 30)
	gate.await(t, 3)
	proxy.hold()
	close(gate.open)
	seen := map[int]int{}
	for r, err := range work.Results[int](limited(t), list[2], "task", work.Of("b")) {
		if err != nil {
			t.Fatal(err)
		}
		seen[r.Value]++
	}
	for n := range 30 {
		if seen[n] != 1 {
			t.Errorf("task %d has %d results", n, seen[n])
		}
	}
	proxy.release()
	if err := list[1].Wait(limited(t)); !errors.Is(err, work.ErrDropped) {
		t.Errorf("the member that was cut off: %v", err)
	}
}
