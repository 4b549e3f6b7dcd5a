package synchronizer_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/control/program"
	"github.com/gopegasus/pegasus/internal/testwait"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

// twoGroups has a synchronizer that cancels what the members of another group do.
const twoGroups = `
synchronizers:
  async:
    members: {group: g}
    state: {idle: bool, n: int}
    predicates:
      stop:
        when: sum(members, .n) > 0
        signal: {kind: cancel, region: search, to: {group: workers}, data: {n: "sum(members, .n)"}}
  bsync:
    members: {group: workers}
    state: {phase: {enum: [rest, search]}}
`

// joinWorker lets a member of the other group in.
func joinWorker(t *testing.T, url, name string) *agent.Member {
	t.Helper()
	m, err := agent.Join(t.Context(), url, agent.Config{Group: "workers", Name: name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// search is in the region until it is cancelled, and tells by what.
func search(t *testing.T, m *agent.Member) <-chan error {
	t.Helper()
	inside, result := make(chan struct{}), make(chan error, 1)
	if err := m.Set(struct{ Phase string }{"search"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		result <- m.Region(ctx, "search", func(ctx context.Context, r *agent.Region) error {
			close(inside)
			for {
				if err := r.Wait(ctx); err != nil {
					return err
				}
			}
		})
		close(result)
	}()
	t.Cleanup(func() {
		cancel()
		for range result { // Until it has ended.
		}
	})
	<-inside
	return result
}

// awaitHeard waits until the synchronizer knows of a member of another group what
// the test wants.
func awaitHeard(t *testing.T, s *synchronizer.Synchronizer, name string, want func(*monitor.HeardMember) bool) (heard monitor.HeardMember) {
	t.Helper()
	testwait.Until(t, "word of "+name, func() bool {
		status, err := s.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range status.Groups {
			for i := range g.Members {
				if m := &g.Members[i]; g.Group == "workers" && m.Name == name && want(m) {
					heard = *m
					return true
				}
			}
		}
		return false
	})
	return heard
}

func searching(m *monitor.HeardMember) bool { return slices.Contains(m.Regions, "search") }

// canceled waits until a region was cancelled, and returns the datum of the signal.
func canceled(t *testing.T, result <-chan error) int64 {
	t.Helper()
	select {
	case err := <-result:
		c, ok := errors.AsType[*agent.Canceled](err)
		if !ok || c.Predicate != "stop" || c.Decision.Synchronizer != "async" {
			t.Fatalf("the region ended by %v", err)
		}
		return c.Int("n")
	case <-time.After(patience):
		t.Fatalf("not cancelled within %v", patience)
	}
	return 0
}

func fateOf(group, target string, fate control.Fate) func(monitor.Event) bool {
	return func(e monitor.Event) bool {
		f, ok := e.(monitor.Fate)
		return ok && f.Group == group && f.Signal.Target == target && f.Fate == fate
	}
}

// TestSignalsToAnotherGroup: a predicate of group g cancels regions of the members of group
// workers, which report to a synchronizer of their own; a member that restarts is found again,
// and the journal replays.
func TestSignalsToAnotherGroup(t *testing.T) {
	server, w := serve(t, 0), newWatch()
	var journal bytes.Buffer
	a := start(t, server.URL(), twoGroups, synchronizer.Options{Name: "async", Observe: w.observe, Journal: &journal})
	b := start(t, server.URL(), twoGroups, synchronizer.Options{Name: "bsync"})
	one := join(t, server.URL(), "w1") // A name that a worker has as well.
	set(t, one, state{})
	w1, w2 := joinWorker(t, server.URL(), "w1"), joinWorker(t, server.URL(), "w2")
	result := search(t, w1)
	first := awaitHeard(t, a, "w1", searching)
	awaitHeard(t, a, "w2", func(*monitor.HeardMember) bool { return true })
	set(t, one, state{N: 3})
	if n := canceled(t, result); n != 3 {
		t.Errorf("the signal carries %d, want the sum 3", n)
	}
	_, next := w.await(t, 0, "fate of a member outside of the region", fateOf("workers", "w2", control.NoSuchEntry))
	_, next = w.await(t, next, "fate of the cancellation", fateOf("workers", "w1", control.Applied))

	if err := w1.Close(); err != nil {
		t.Fatal(err)
	}
	w1 = joinWorker(t, server.URL(), "w1")
	result = search(t, w1)
	again := awaitHeard(t, a, "w1", searching)
	if again.Incarnation <= first.Incarnation {
		t.Errorf("incarnation %d after %d", again.Incarnation, first.Incarnation)
	}
	set(t, one, state{})
	set(t, one, state{N: 4})
	if n := canceled(t, result); n != 4 {
		t.Errorf("the signal carries %d, want the sum 4", n)
	}
	w.await(t, next, "fate of the second cancellation", fateOf("workers", "w1", control.Applied))

	if stats := b.Stats(); stats.Rejected+stats.Malformed+stats.Signals != 0 {
		t.Errorf("the workers' own synchronizer was disturbed: %+v", stats)
	}
	cleanup(t, one, w1, w2)
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	stats := a.Stats()
	if stats.Rejected+stats.Malformed != 0 || stats.Fates[control.Applied] != 2 {
		t.Errorf("%+v", stats)
	}
	r, err := synchronizer.Replay(bytes.NewReader(journal.Bytes()), synchronizer.ReplayOptions{})
	if err != nil || r.FirstDifference != 0 || !r.Complete || r.Decisions != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestSignalsToBlocks: a predicate of group g cancels blocks that run on nodes of
// group workers. One message names and reaches all processors of a node.
func TestSignalsToBlocks(t *testing.T) {
	url, w := runProgram(t, `
synchronizers:
  psync:
    members: {group: workers, count: 2}
program:
  name: two
  blocks: {search: {group: workers, input: any, output: int}}
  body: {par: {do: search}, times: 2, name: both}
  result: both.result
`)
	a := start(t, url, twoGroups, synchronizer.Options{Name: "async"})
	joinNode(t, url, "workers", "n", 2, agent.Block("search", func(ctx context.Context, _ *agent.Run, _ any) (int64, error) {
		<-ctx.Done()
		c, _ := errors.AsType[*agent.Canceled](context.Cause(ctx))
		return c.Int("n"), nil
	}))
	one := join(t, url, "w1")
	set(t, one, state{})
	for _, name := range []string{"n-0", "n-1"} {
		awaitHeard(t, a, name, searching)
	}
	set(t, one, state{N: 3})
	if end := w.end(t); end.Outcome != program.Done || end.Result != "[3,3]" {
		t.Errorf("%v, %q, %s", end.Outcome, end.Result, end.Reason)
	}
	if stats := a.Stats(); stats.Rejected+stats.Malformed != 0 {
		t.Errorf("%+v", stats)
	}
	cleanup(t, one)
}

// TestListensToAnotherGroupAfterReload: a configuration that is followed while the
// synchronizer runs may name groups that it did not before.
func TestListensToAnotherGroupAfterReload(t *testing.T) {
	t.Parallel()
	server := serve(t, 0)
	before := strings.Replace(twoGroups, "to: {group: workers}", "to: all", 1)
	a := start(t, server.URL(), before, synchronizer.Options{Name: "async"})
	start(t, server.URL(), before, synchronizer.Options{Name: "bsync"})
	one, w1 := join(t, server.URL(), "a1"), joinWorker(t, server.URL(), "w1")
	set(t, one, state{})
	result := search(t, w1)
	cfg, err := synchronizer.ParseConfig("test.yaml", []byte(twoGroups))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Reload(cfg); err != nil {
		t.Fatal(err)
	}
	awaitHeard(t, a, "w1", searching) // By its next heartbeat.
	set(t, one, state{N: 5})
	if n := canceled(t, result); n != 5 {
		t.Errorf("the signal carries %d, want the sum 5", n)
	}
	cleanup(t, one, w1)
}

// TestSynchronizersOfTwoGroupsNeedTwoNames: members of the other group keep
// synchronizers apart by their names.
func TestSynchronizersOfTwoGroupsNeedTwoNames(t *testing.T) {
	server := serve(t, 0)
	start(t, server.URL(), "synchronizers: {async: {members: {group: workers}}}", synchronizer.Options{})
	const reason = `the name is taken: signals go to group "workers", whose own synchronizer has the name "async" as well: its members could not tell the two apart; give one of them another name`
	cfg, err := synchronizer.ParseConfig("test.yaml", []byte(twoGroups))
	if err != nil {
		t.Fatal(err)
	}
	s, err := synchronizer.Start(t.Context(), server.URL(), cfg, synchronizer.Options{Name: "async"})
	if err == nil {
		_ = s.Close()
	}
	if want := `synchronizer "async": ` + reason; !errors.Is(err, synchronizer.ErrNameTaken) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	before := start(t, server.URL(), strings.Replace(twoGroups, "to: {group: workers}", "to: all", 1), synchronizer.Options{Name: "async"})
	if err, want := before.Reload(cfg), `synchronizer "async": reload: `+reason; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
