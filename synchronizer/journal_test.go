package synchronizer_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/testwait"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

// record runs two members that are idle together, rounds times, and returns the recorder and
// the observer's events.
func record(t *testing.T, rounds int) (journal []byte, told []monitor.Event) {
	t.Helper()
	server := serve(t, 0)
	w := newWatch()
	var text bytes.Buffer
	s := start(t, server.URL(), pair, synchronizer.Options{Observe: w.observe, Journal: &text})
	a, b := join(t, server.URL(), "a"), join(t, server.URL(), "b")
	inA, inB := region(t, a), region(t, b)
	for i := range rounds {
		set(t, a, state{N: i})
		set(t, b, state{N: 2})
		set(t, a, state{Idle: true, N: i})
		set(t, b, state{Idle: true, N: 4})
		receive(t, inA)
		receive(t, inB)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	w.await(t, 0, "epoch without a", func(e monitor.Event) bool {
		epoch, ok := e.(monitor.Epoch)
		return ok && len(epoch.Dropped) > 0
	})
	if parts := s.Readiness(); parts[len(parts)-1].Part != "journal" || !strings.HasSuffix(parts[len(parts)-1].Detail, " bytes") {
		t.Errorf("%+v", parts)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if j := s.Stats().Journal; j.Err != nil || j.Lost > 0 || j.Inputs == 0 || j.Bytes != uint64(text.Len()) {
		t.Errorf("%+v, and the writer has %d bytes", j, text.Len())
	}
	return text.Bytes(), w.events
}

// TestReplay: a replay comes to every event of the run, in order, and to the same
// outputs byte for byte.
func TestReplay(t *testing.T) {
	before := time.Now().Add(-time.Second)
	journal, told := record(t, 20)
	var again []monitor.Event
	var first, last time.Time
	r, err := synchronizer.Replay(bytes.NewReader(journal), synchronizer.ReplayOptions{
		Observe: func(at time.Time, e monitor.Event) {
			if last = at; first.IsZero() {
				first = at
			}
			again = append(again, e)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(fmt.Sprintf("%+v", plainly(told)), fmt.Sprintf("%+v", plainly(again))); d != "" {
		t.Errorf("the replay told other events:\n%s", d)
	}
	if r.FirstDifference != 0 || !r.Complete || r.Why != "" || r.Synchronizer != "gsync" || r.Decisions != 21 { // The last one is on b alone.
		t.Errorf("%+v", r)
	}
	if first.Before(before) || last.Before(first) || last.After(time.Now().Add(time.Second)) {
		t.Errorf("the events are told from %v to %v", first, last)
	}
	// A digit of a state is another one.
	changed := bytes.Replace(journal, []byte("[true,4]"), []byte("[true,5]"), 1)
	r, err = synchronizer.Replay(bytes.NewReader(changed), synchronizer.ReplayOptions{})
	if err != nil || r.FirstDifference < 3 {
		t.Errorf("a journal that was changed: %+v, %v", r, err)
	}
	// A process that was killed.
	half := journal[:len(journal)/2]
	half = half[:bytes.LastIndexByte(half, '\n')+10] // Never at the end of a line.
	r, err = synchronizer.Replay(bytes.NewReader(half), synchronizer.ReplayOptions{})
	if err != nil || r.Complete || r.Why != "the last line was not written to its end: the process was ended" || r.FirstDifference != 0 {
		t.Errorf("half a journal: %+v, %v", r, err)
	}
	half = half[:bytes.LastIndexByte(half, '\n')+1]
	r, err = synchronizer.Replay(bytes.NewReader(half), synchronizer.ReplayOptions{})
	if err != nil || r.Complete || r.Why != "there is no last line that ends it: the process was ended, or still runs" || r.FirstDifference != 0 {
		t.Errorf("half a journal, by lines: %+v, %v", r, err)
	}
}

// plainly takes the signals of fates out of their pointers.
func plainly(events []monitor.Event) []any {
	list := make([]any, len(events))
	for i, e := range events {
		list[i] = e
		if f, ok := e.(monitor.Fate); ok {
			list[i] = []any{*f.Signal, f.Fate, f.Detail}
		}
	}
	return list
}

// TestReplayOfACarriedOnRun: each life of a run has its own times, which continue.
func TestReplayOfACarriedOnRun(t *testing.T) {
	f, err := os.Open("../internal/journal/testdata/format2/program.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var last time.Time
	events := 0
	r, err := synchronizer.Replay(text, synchronizer.ReplayOptions{Observe: func(at time.Time, e monitor.Event) {
		if at.Before(last) {
			t.Errorf("%v at %v, after %v", e, at, last)
		}
		last = at
		events++
	}})
	if err != nil || events == 0 || last.Sub(r.Started) < 500*time.Millisecond {
		t.Errorf("%d events, the last %v after the start: %v", events, last.Sub(r.Started), err)
	}
}

// TestReplayWithAnotherConfiguration tells where that comes to other verdicts.
func TestReplayWithAnotherConfiguration(t *testing.T) {
	journal, _ := record(t, 3)
	differ := func(config string) ([]synchronizer.Difference, *synchronizer.Replayed, error) {
		cfg, err := synchronizer.ParseConfig("changed.yaml", []byte(config))
		if err != nil {
			t.Fatal(err)
		}
		var list []synchronizer.Difference
		r, err := synchronizer.Replay(bytes.NewReader(journal), synchronizer.ReplayOptions{
			Changed: cfg, Differ: func(d synchronizer.Difference) { list = append(list, d) },
		})
		return list, r, err
	}
	list, r, err := differ(pair)
	if err != nil || len(list) > 0 || r.Differences != 0 || r.FirstDifference != 0 {
		t.Errorf("the same configuration: %v, %+v, %v", list, r, err)
	}
	// The fields are declared in another order, and one is left out.
	list, r, err = differ(`
synchronizers:
  another:
    members: {group: h, count: 2}
    state: {n: int}
    predicates:
      all-idle: {when: "all(members, .n == 4 or .n == 1)"}
      large: {when: "any(members, .n == 4)"}
`)
	if err != nil || r.FirstDifference != 0 || r.Differences == 0 || r.Differences > uint64(len(list)) {
		t.Fatalf("%+v, %v", r, err)
	}
	fired := map[string]int{}
	for _, d := range list {
		if d.Line < 2 || d.At.Before(r.Started) || d.Epoch == 0 {
			t.Errorf("%+v", d)
		}
		if d.Recorded.Fired {
			fired[d.Predicate+" recorded"]++
		}
		if d.Changed.Fired {
			fired[d.Predicate+" changed"]++
		}
		if d.Predicate == "large" && !d.Recorded.Absent || d.Predicate == "all-idle" && d.Recorded.Absent {
			t.Errorf("%+v", d)
		}
	}
	// all-idle held with n = 0, 1 and 2, and holds now only with 1, as it did then.
	if fired["all-idle recorded"] != 2 || fired["large changed"] == 0 || fired["large recorded"] > 0 {
		t.Errorf("%v in %+v", fired, list)
	}
	for config, want := range map[string]string{
		"state: {n: int, m: float, idle: string}": `field "m" is not in the recorded states, which have idle, n: leave it out to replay` + "\n" +
			`field "idle" is of type string, and was recorded as bool`,
		"state: {n: float}": `field "n" is of type float, and was recorded as int`,
	} {
		_, _, err := differ("\nsynchronizers:\n  gsync:\n    members: {group: g}\n    " + config + "\n")
		if err == nil || err.Error() != want {
			t.Errorf("%s: got  %v\nwant %s", config, err, want)
		}
	}
	_, _, err = differ("\nsynchronizers:\n  x:\n    members: {group: g}\n  y:\n    members: {group: h}\n")
	if want := `the journal is of synchronizer "gsync": changed.yaml has several synchronizers: name one of x, y`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestStandingText covers the words for what a predicate has come to.
func TestStandingText(t *testing.T) {
	for want, s := range map[string]synchronizer.Judgment{
		"absent":      {Absent: true},
		"none yet":    {},
		"false":       {Judged: true, Truth: 1},
		"true, fired": {Judged: true, Truth: 2, Fired: true},
	} {
		if got := s.String(); got != want {
			t.Errorf("%+v is %q, want %q", s, got, want)
		}
	}
}

// writer is what a journal is written to.
type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

// logged collects log lines.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// runWithout lets two members decide once with a journal that ends before the run.
func runWithout(t *testing.T, w writer) (synchronizer.JournalStats, string) {
	t.Helper()
	server := serve(t, 0)
	log := &logged{}
	s := start(t, server.URL(), pair, synchronizer.Options{
		Journal: w, Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	a, b := join(t, server.URL(), "a"), join(t, server.URL(), "b")
	inA := region(t, a)
	set(t, a, state{Idle: true, N: 1})
	set(t, b, state{Idle: true, N: 2})
	receive(t, inA)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if s.Stats().Decisions != 1 {
		t.Errorf("%+v", s.Stats())
	}
	if part := s.Readiness()[6]; part.Part != "journal" || !part.Ready || !strings.Contains(part.Detail, "ended after ") {
		t.Errorf("%+v", part)
	}
	return s.Stats().Journal, log.String()
}

// TestAJournalThatFails ends, and the run continues.
func TestAJournalThatFails(t *testing.T) {
	t.Parallel()
	full := errors.New("no space left")
	stats, log := runWithout(t, func([]byte) (int, error) { return 0, full })
	if !errors.Is(stats.Err, full) || strings.Count(log, `msg="the journal has ended; the run continues without it" cause="no space left"`) != 1 {
		t.Errorf("%+v, log:\n%s", stats, log)
	}
	// A writer that never returns does not hold up the end of the run.
	forever := make(chan struct{})
	defer close(forever)
	stats, log = runWithout(t, func(b []byte) (int, error) { <-forever; return len(b), nil })
	if stats.Err == nil || stats.Err.Error() != "the writer took nothing at the end of the run" || !strings.Contains(log, "the journal has ended") {
		t.Errorf("%+v, log:\n%s", stats, log)
	}
}

func TestJournalLimit(t *testing.T) {
	cfg, err := synchronizer.ParseConfig("test.yaml", []byte(pair))
	if err != nil {
		t.Fatal(err)
	}
	_, err = synchronizer.Start(t.Context(), "", cfg, synchronizer.Options{JournalLimit: 1})
	if want := "synchronizer: a journal of at most 1 bytes is too short: use at least 4194304"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestAJournalThatIsFull: what no longer fits is lost and counted, and the journal
// says so itself.
func TestAJournalThatIsFull(t *testing.T) {
	t.Parallel()
	large, err := synchronizer.ParseConfig("large.yaml", []byte(pair+strings.Repeat("# a comment\n", 80_000)))
	if err != nil {
		t.Fatal(err)
	}
	fill := func(opt synchronizer.Options, reloads int) synchronizer.JournalStats {
		s := start(t, serve(t, 0).URL(), pair, opt)
		for range reloads {
			if err := s.Reload(large); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		return s.Stats().Journal
	}
	var text bytes.Buffer
	stats := fill(synchronizer.Options{Journal: &text, JournalLimit: synchronizer.MinJournalLimit}, 8)
	const full = "the limit of 4194304 bytes is reached"
	if stats.Err == nil || stats.Err.Error() != full || stats.Inputs+stats.Lost != 8 || stats.Lost != 4 || stats.Bytes > synchronizer.MinJournalLimit {
		t.Errorf("%+v", stats)
	}
	r, err := synchronizer.Replay(&text, synchronizer.ReplayOptions{})
	if err != nil || r.Complete || r.Why != "the journal was ended before the run: "+full || r.Inputs != stats.Inputs || r.FirstDifference != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	wait := make(chan struct{})
	defer close(wait)
	stats = fill(synchronizer.Options{Journal: writer(func(b []byte) (int, error) { <-wait; return len(b), nil })}, 40)
	if stats.Err == nil || !strings.HasPrefix(stats.Err.Error(), "the writer is too slow: ") || stats.Lost == 0 || stats.Inputs+stats.Lost != 40 {
		t.Errorf("%+v", stats)
	}
}

func TestCreateJournal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	start := time.Date(2030, 1, 2, 3, 4, 5, 6000, time.FixedZone("", 3600))
	f, err := synchronizer.CreateJournal(dir, "gsync", start)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if want := filepath.Join(dir, "20300102T020405.000006Z-gsync.journal.jsonl"); f.Name() != want {
		t.Errorf("the file is %s, want %s", f.Name(), want)
	}
	if info, err := f.Stat(); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := synchronizer.CreateJournal(dir, "gsync", start); !errors.Is(err, os.ErrExist) || !strings.HasSuffix(err.Error(), ": give another directory") {
		t.Errorf("a file that is there: %v", err)
	}
	if _, err := synchronizer.CreateJournal(f.Name(), "gsync", start); err == nil {
		t.Error("a file is taken for a directory")
	}
}

// busy decides again and again, and counts what each decision comes to in each
// member.
const busy = `
synchronizers:
  gsync:
    members: {group: g, count: 2}
    state: {idle: bool, n: int}
    memory: {turn: {type: int, initial: -1}}
    predicates:
      once:
        when: max(map(members, .n)) > memory.turn
        every: true
        set: {turn: "max(map(members, .n))"}
        signal: {kind: activate, region: work, data: {total: "max(map(members, .n))"}}
`

// TestReloadWithSignalsUnderWay: while members report and signals fly, reloads
// neither lose a decision nor make one twice, nor is a signal applied twice; and
// the journal replays.
func TestReloadWithSignalsUnderWay(t *testing.T) {
	const turns, reloads = 300, 100
	server := serve(t, 0)
	w := newWatch()
	var journal bytes.Buffer
	s := start(t, server.URL(), busy, synchronizer.Options{Observe: w.observe, Journal: &journal})
	applied := map[string]*sync.Map{"a": {}, "b": {}}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	var handled atomic.Int64
	var members []*agent.Member
	for name, seen := range applied {
		m := join(t, server.URL(), name)
		members = append(members, m)
		inside := make(chan struct{})
		running.Go(func() {
			_ = m.Region(ctx, "work", func(ctx context.Context, r *agent.Region) error {
				close(inside)
				for {
					if err := r.Wait(ctx); err != nil {
						return err
					}
				}
			}, agent.OnActivate("once", func(_ context.Context, sig agent.Signal) error {
				if _, twice := seen.LoadOrStore(sig.Decision, true); twice {
					t.Errorf("%s applied decision %v twice", name, sig.Decision)
				}
				handled.Add(1)
				return nil
			}))
		})
		<-inside
		set(t, m, state{N: -1})
	}
	defer running.Wait()
	defer cancel()
	w.await(t, 0, "epoch", func(e monitor.Event) bool { _, ok := e.(monitor.Epoch); return ok })
	var reloading sync.WaitGroup
	reloading.Go(func() {
		for i := range reloads {
			config := busy
			if i%2 == 0 {
				config = strings.Replace(busy, "predicates:", "predicates:\n      other: {when: \"any(members, .idle)\", priority: 1}", 1)
			}
			cfg, err := synchronizer.ParseConfig("test.yaml", []byte(config))
			if err == nil {
				err = s.Reload(cfg)
			}
			if err != nil {
				t.Error(err)
			}
		}
	})
	for turn := range turns {
		set(t, members[turn%2], state{N: turn})
	}
	w.await(t, 0, "decision on the last turn", func(e monitor.Event) bool {
		v, ok := e.(monitor.Verdict)
		return ok && v.Fired && (v.Witness[0].Row[1].Int() == turns-1 || v.Witness[1].Row[1].Int() == turns-1)
	})
	reloading.Wait()
	testwait.Until(t, "a fate of each signal", func() bool { stats := s.Stats(); return stats.Signals == 2*stats.Decisions })
	stats := s.Stats()
	if stats.Fates[control.Applied] != uint64(handled.Load()) || stats.Decisions == 0 {
		t.Errorf("%d signals were applied by the members; %+v", handled.Load(), stats)
	}
	told, changes := map[int64]bool{}, 0
	w.mu.Lock()
	for _, e := range w.events {
		switch e := e.(type) {
		case monitor.Reload:
			changes += len(e.Changes)
		case monitor.Verdict:
			if n := newest(e); e.Fired {
				if told[n] {
					t.Errorf("there are two decisions on turn %d", n)
				}
				told[n] = true
			}
		}
	}
	w.mu.Unlock()
	if changes != reloads {
		t.Errorf("%d changes were told, want one for each of %d reloads", changes, reloads)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	r, err := synchronizer.Replay(bytes.NewReader(journal.Bytes()), synchronizer.ReplayOptions{})
	if err != nil || r.FirstDifference != 0 || !r.Complete || r.Decisions != stats.Decisions {
		t.Errorf("%+v, %v; want %d decisions", r, err, stats.Decisions)
	}
}

// newest is the highest turn of a witness.
func newest(v monitor.Verdict) int64 {
	n := int64(-1)
	for _, p := range v.Witness {
		n = max(n, p.Row[1].Int())
	}
	return n
}

func TestReloadIsRefused(t *testing.T) {
	server := serve(t, 0)
	w := newWatch()
	s := start(t, server.URL(), pair, synchronizer.Options{Observe: w.observe})
	for _, c := range []struct{ config, want string }{
		{strings.Replace(pair, "n: int", "n: float", 1), `synchronizer "gsync": reload: gsync: the declared state is now {idle: bool, n: float}, and was {idle: bool, n: int}, by which the members report: restart to change that`},
		{strings.Replace(pair, "gsync", "hsync", 1), `synchronizer "gsync": reload: test.yaml has no synchronizer "gsync": it has hsync`},
	} {
		cfg, err := synchronizer.ParseConfig("test.yaml", []byte(c.config))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Reload(cfg); err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
	cfg, err := synchronizer.ParseConfig("test.yaml", []byte(pair))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Reload(cfg); err == nil || err.Error() != `synchronizer "gsync": reload: the synchronizer has ended` {
		t.Errorf("after Close: %v", err)
	}
	if len(w.events) > 0 {
		t.Errorf("%+v", w.events)
	}
}

// TestReloadToAShorterSilence: members that have to show themselves every second are not
// dropped where less than that counts as silence from now on.
func TestReloadToAShorterSilence(t *testing.T) {
	t.Parallel()
	server := serve(t, 0)
	w := newWatch()
	long := silentAfter("9s")
	s := start(t, server.URL(), long, synchronizer.Options{Observe: w.observe})
	for _, name := range []string{"a", "b"} {
		set(t, join(t, server.URL(), name), state{N: 1})
	}
	_, at := w.await(t, 0, "epoch", func(e monitor.Event) bool { _, ok := e.(monitor.Epoch); return ok })
	cfg, err := synchronizer.ParseConfig("test.yaml", []byte(silentAfter("800ms")))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(cfg); err != nil {
		t.Fatal(err)
	}
	e, _ := w.await(t, at, "reload", func(e monitor.Event) bool { _, ok := e.(monitor.Reload); return ok })
	want := []string{"silence: from 9s, drop to 800ms, drop"}
	if d := cmp.Diff(want, e.(monitor.Reload).Changes); d != "" {
		t.Error(d)
	}
	enough := s.Stats().Frames + 10 // Signs of life, of which the members gave two a second.
	testwait.Until(t, "heartbeats", func() bool { return s.Stats().Frames >= enough })
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events[at:] {
		if e, ok := e.(monitor.Epoch); ok {
			t.Errorf("a member was dropped: %+v", e)
		}
	}
}

// TestReplayTellsBeforeItWaits: a replay whose reader waits for more has told all events of the lines before.
func TestReplayTellsBeforeItWaits(t *testing.T) {
	text, _ := record(t, 1)
	last := bytes.LastIndexByte(text[:len(text)-1], '\n') + 1
	r, w := io.Pipe()
	first, done := make(chan struct{}), make(chan error, 1)
	told := sync.OnceFunc(func() { close(first) })
	go func() {
		_, err := synchronizer.Replay(r, synchronizer.ReplayOptions{Observe: func(time.Time, monitor.Event) { told() }})
		done <- err
	}()
	if _, err := w.Write(text[:last]); err != nil {
		t.Fatal(err)
	}
	<-first
	if _, err := w.Write(text[last:]); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
