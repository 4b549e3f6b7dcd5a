package synchronizer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/clocksync/source"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/testwait"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
)

const warmConfig = `
synchronizers:
  gsync:
    members: {group: g, count: 2}
    silence: {after: 1h, then: drop}
    state: {on: bool, n: int}
    memory: {seen: {type: int, initial: 0}}
    predicates:
      edge:
        when: sum(members, .n) > 5
        set: {seen: memory.seen + 1}
        signal: {kind: activate, region: r, expires: 1h}
      long:
        when: any(members, .on)
        for: 1h
      cool:
        when: sum(members, .n) > 3
        every: true
        cooldown: 1h
      grown:
        when: sum(members, .n) > sum(prev, .n) + 100
`

type warmState struct {
	On bool
	N  int
}

// told are the events of a synchronizer.
type told struct {
	mu     sync.Mutex
	events []monitor.Event
}

func (o *told) observe(e monitor.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events = append(o.events, e)
}

// fired is how often a predicate has.
func (o *told) fired(predicate string) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.events {
		if v, ok := e.(monitor.Verdict); ok && v.Fired && v.Predicate == predicate {
			n++
		}
	}
	return n
}

// warm is a group of two agents with those that would be its synchronizer.
type warm struct {
	t       *testing.T
	url     string
	members []*agent.Member
	applied chan string
}

func newWarm(t *testing.T) *warm {
	t.Helper()
	server, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return &warm{t: t, url: server.URL(), applied: make(chan string, 16)}
}

func (w *warm) run(config string, opt Options) (*Synchronizer, *told, *lines) {
	w.t.Helper()
	cfg, err := ParseConfig("test.yaml", []byte(config))
	if err != nil {
		w.t.Fatal(err)
	}
	o, log := &told{}, &lines{}
	opt.Observe, opt.Logger = o.observe, log.logger()
	s, err := Start(w.t.Context(), w.url, cfg, opt)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = s.Close() })
	return s, o, log
}

func (w *warm) join(name string) *agent.Member {
	w.t.Helper()
	m, err := agent.Join(w.t.Context(), w.url, agent.Config{Group: "g", Name: name})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = m.Close() })
	w.members = append(w.members, m)
	return m
}

func (w *warm) set(m *agent.Member, s warmState) {
	w.t.Helper()
	if err := m.Set(s); err != nil {
		w.t.Fatal(err)
	}
}

// enter has a member be in region r, whose signals take their time.
func (w *warm) enter(m *agent.Member, may <-chan struct{}) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	in, out := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(out)
		_ = m.Region(ctx, "r", func(ctx context.Context, r *agent.Region) error {
			close(in)
			select {
			case <-may:
			case <-ctx.Done(): // The test has failed.
			}
			for {
				if err := r.Wait(ctx); err != nil {
					return err
				}
			}
		}, agent.OnActivate("edge", func(_ context.Context, s agent.Signal) error { w.applied <- s.Decision.String(); return nil }))
	}()
	w.t.Cleanup(func() { cancel(); <-out })
	<-in
}

// isWarm waits until a leader says that so many that stand by are.
func (w *warm) isWarm(leader *Synchronizer, n int) {
	w.t.Helper()
	testwait.Until(w.t, "a warm standby", func() bool {
		status, err := leader.Status(w.t.Context())
		if err != nil {
			w.t.Fatal(err)
		}
		warm := 0
		for _, s := range status.Standbys {
			if strings.HasSuffix(s, ", warm, 0 messages behind") {
				warm++
			}
		}
		return warm == n
	})
}

func (w *warm) predicate(s *Synchronizer, name string) monitor.PredicateStatus {
	w.t.Helper()
	status, err := s.Status(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, p := range status.Predicates {
		if p.Name == name {
			return p
		}
	}
	w.t.Fatalf("no predicate %s", name)
	return monitor.PredicateStatus{}
}

// TestWarmStandby: a process that stands by, whether it came before the members or long
// after, continues with memory, edges, hold times, cooldowns, prev and signals under way when
// the leader is gone without a word; so does the next one. Its journal replays.
func TestWarmStandby(t *testing.T) {
	w := newWarm(t)
	first, events, _ := w.run(warmConfig, Options{})
	second, next, _ := w.run(warmConfig, Options{Standby: true})
	a, b := w.join("a"), w.join("b")
	may := make(chan struct{})
	w.set(a, warmState{true, 1})
	w.set(b, warmState{false, 1})
	w.enter(a, may)
	w.enter(b, may)
	w.set(a, warmState{true, 4})
	w.set(a, warmState{true, 8})
	testwait.Until(t, "both predicates to fire, and the hold time to run", func() bool {
		return events.fired("edge") == 1 && events.fired("cool") == 1 && w.predicate(first, "long").Hold != nil
	})
	var text bytes.Buffer
	third, last, _ := w.run(warmConfig, Options{Standby: true, Journal: &text})
	w.isWarm(first, 2)
	before := w.predicate(first, "long").Hold.Certain

	if err := first.bus.Close(); err != nil { // As if it were killed.
		t.Fatal(err)
	}
	testwait.Until(t, "one to lead", func() bool { return second.leads.Load() || third.leads.Load() })
	leader := second
	if third.leads.Load() {
		leader, third, next, last = third, second, last, next
	}
	w.isWarm(leader, 1)
	goesOn := func(s *Synchronizer, o *told) {
		t.Helper()
		testwait.Until(t, "the hold time to go on", func() bool {
			h := w.predicate(s, "long").Hold
			return h != nil && h.Certain > before
		})
		status, err := s.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if v, _ := status.Memory[0].Value.(int64); v != 1 {
			t.Errorf("memory is %v", status.Memory)
		}
		for _, p := range []string{"edge", "cool", "grown"} {
			if n := o.fired(p); n != 0 {
				t.Errorf("%s has fired again, %d times", p, n)
			}
		}
	}
	goesOn(leader, next)
	w.set(b, warmState{false, 105}) // 8 and 1 are the global state before.
	testwait.Until(t, "prev", func() bool { return next.fired("grown") == 1 })

	if err := leader.bus.Close(); err != nil {
		t.Fatal(err)
	}
	leads(t, "the last one", third)
	goesOn(third, last)
	close(may) // Now the signals of the first term take effect, once each.
	for range w.members {
		<-w.applied
	}
	testwait.Until(t, "both fates", func() bool { return third.Stats().Fates[control.Applied] == 2 })
	if err := third.Close(); err != nil {
		t.Fatal(err)
	}
	if len(w.applied) > 0 {
		t.Errorf("applied once more, of %s", <-w.applied)
	}
	if err := leader.Close(); err != nil {
		t.Log(err)
	}
	replayed, err := Replay(&text, ReplayOptions{})
	if err != nil || replayed.FirstDifference != 0 || !replayed.Complete {
		t.Errorf("the journal of a process that stood by replays to %+v, %v", replayed, err)
	}
}

// TestStandbyOnAnotherClock: what rests on the leader's clock begins again; memory and
// cooldowns continue, and no signal is obeyed twice for the same states.
func TestStandbyOnAnotherClock(t *testing.T) {
	w := newWarm(t)
	first, events, _ := w.run(warmConfig, Options{})
	a, b := w.join("a"), w.join("b")
	may := make(chan struct{})
	close(may)
	w.set(a, warmState{true, 1})
	w.set(b, warmState{false, 1})
	w.enter(a, may)
	w.enter(b, may)
	w.set(a, warmState{true, 8})
	testwait.Until(t, "both predicates to fire", func() bool { return events.fired("edge") == 1 && events.fired("cool") == 1 })
	for range w.members {
		<-w.applied
	}
	ahead := func() clocksync.Instant { return source.Monotonic().Add(time.Hour) }
	second, next, log := w.run(warmConfig, Options{Standby: true, SeparateClock: true, now: ahead})
	w.isWarm(first, 1)
	if err := first.bus.Close(); err != nil {
		t.Fatal(err)
	}
	leads(t, "the other one", second)
	testwait.Until(t, "the edge to fire again", func() bool { return next.fired("edge") == 1 })
	testwait.Until(t, "its fates", func() bool { return second.Stats().Signals >= 2 })
	status, err := second.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := status.Memory[0].Value.(int64); v != 2 || next.fired("cool") != 0 || !log.has("memory and cooldowns continue; hold times, edges and prev begin again") {
		t.Errorf("memory %v, cool has fired %d times; %s", status.Memory, next.fired("cool"), log.string())
	}
	if len(w.applied) > 0 {
		t.Errorf("the same firing was applied again, as %s", <-w.applied)
	}
	why, err := second.Why(t.Context(), "cool")
	if err != nil {
		t.Fatal(err)
	}
	if last := why.Last; last == nil || !last.Inherited || last.Ago > time.Hour.Seconds()/2 || len(last.Witness) > 0 {
		t.Errorf("its last decision, which the first process has made: %+v", last)
	}
}

// TestMuchIsRetold, and told as it happens, in messages that a server with the limit of [embedded] takes.
func TestMuchIsRetold(t *testing.T) {
	const members = 80
	w := newWarm(t)
	config := strings.NewReplacer("count: 2", fmt.Sprint("count: ", members), "n: int}", "n: int, a: string, b: string, c: string, d: string}").Replace(warmConfig)
	type large struct {
		On         bool
		N          int
		A, B, C, D string
	}
	text := strings.Repeat("x", 250)
	set := func(n int) {
		for _, m := range w.members {
			if err := m.Set(large{N: n, A: text, B: text, C: text, D: text}); err != nil {
				t.Fatal(err)
			}
		}
	}
	leader, _, _ := w.run(config, Options{})
	for i := range members {
		w.join(fmt.Sprint("m", i))
	}
	set(1)
	w.run(config, Options{Standby: true})
	w.isWarm(leader, 1)
	for n := range 5 {
		set(2 + n)
	}
	w.isWarm(leader, 1)
}

// TestStandbyLosesTheStream: a standby that has lost a message, is not like the leader or hears
// of another one asks for all again, says so meanwhile, and is warm again.
func TestStandbyLosesTheStream(t *testing.T) {
	w := newWarm(t)
	first, _, _ := w.run(warmConfig, Options{})
	a, b := w.join("a"), w.join("b")
	w.set(a, warmState{true, 1})
	w.set(b, warmState{false, 1})
	second, _, log := w.run(warmConfig, Options{Standby: true})
	w.isWarm(first, 1)
	for why, spoil := range map[string]func(){
		"messages of the leader's inputs were lost": func() {
			first.calls <- func(l *loop) { l.stream.number++ }
		},
		"its core has come to something else than the leader's": func() {
			f := second.follow
			f.mu.Lock()
			defer f.mu.Unlock()
			f.stepOn(f.now, &synccore.Input{Kind: synccore.InKept, Kept: func() *synccore.Kept {
				k := f.core.Kept()
				k.Decisions += 7
				return k
			}()})
		},
		"an input cannot be read: line 0: the text is no line of a journal: invalid character 'x' looking for beginning of value": func() {
			first.calls <- func(l *loop) { l.stream.lines = append(l.stream.lines, "x\n"...) }
		},
	} {
		attached := func() uint64 {
			second.follow.mu.Lock()
			defer second.follow.mu.Unlock()
			second.follow.pause = attachFirst // As after a long time.
			return second.follow.attach
		}
		before := attached()
		spoil()
		testwait.Until(t, why, func() bool { return log.has(why) && attached() > before })
		w.isWarm(first, 1)
	}
}

// TestSlowStandby: the leader does not wait for a standby that takes nothing.
func TestSlowStandby(t *testing.T) {
	w := newWarm(t)
	first, events, _ := w.run(warmConfig, Options{})
	a, b := w.join("a"), w.join("b")
	w.set(a, warmState{true, 1})
	w.set(b, warmState{false, 1})
	second, _, _ := w.run(warmConfig, Options{Standby: true})
	w.isWarm(first, 1)
	second.follow.mu.Lock()
	for i := range 2000 {
		w.set(a, warmState{true, 1 + i%2})
	}
	w.set(b, warmState{false, 1000})
	testwait.Until(t, "the leader to go on", func() bool { return events.fired("edge") == 1 && events.fired("grown") == 1 })
	second.follow.mu.Unlock()
	w.isWarm(first, 1)
}

// TestPausedLeaderAndStandby: a leader that stood still finds at its return that the
// standby leads, and ends.
func TestPausedLeaderAndStandby(t *testing.T) {
	w := newWarm(t)
	first, _, _ := w.run(warmConfig, Options{})
	a, b := w.join("a"), w.join("b")
	w.set(a, warmState{true, 8})
	w.set(b, warmState{false, 1})
	second, next, _ := w.run(warmConfig, Options{Standby: true})
	w.isWarm(first, 1)
	stands, goes := make(chan struct{}), make(chan struct{})
	go func() { first.calls <- func(*loop) { close(stands); <-goes } }()
	<-stands
	leads(t, "the standby", second)
	close(goes)
	<-first.Done()
	if err := first.Err(); !errors.Is(err, ErrSuperseded) {
		t.Error(err)
	}
	w.set(b, warmState{false, 2})
	testwait.Until(t, "the standby to hear the members", func() bool {
		status, err := second.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(status.Members) == 2 && status.Members[1].Seq >= 2
	})
	if n := next.fired("edge"); n != 0 {
		t.Errorf("fired %d times again", n)
	}
}

// TestStandbyOfAProgram: a standby continues a program where the leader was, and ends with an error
// if it has received nothing of it. With nobody before it, it begins the program.
func TestStandbyOfAProgram(t *testing.T) {
	cfg, err := ParseProgram("test.yaml", []byte(`
synchronizers: {gsync: {members: {group: g, count: 1}, state: {n: int}}}
program: {name: p, blocks: {b: {output: int}}, body: {seq: [{name: one, do: b}, {name: two, do: b}]}, result: two.result}
`))
	if err != nil {
		t.Fatal(err)
	}
	w := newWarm(t)
	begin := func(opt Options) (*Synchronizer, chan monitor.ProgramEvent, *lines) {
		ended, log := make(chan monitor.ProgramEvent, 1), &lines{}
		opt.Logger, opt.Observe = log.logger(), func(e monitor.Event) {
			if p, ok := e.(monitor.ProgramEvent); ok && p.Kind == monitor.ProgramFinish {
				ended <- p
			}
		}
		s, err := Start(t.Context(), w.url, cfg, opt)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s, ended, log
	}
	first, _, _ := begin(Options{Standby: true})
	leads(t, "the first one, as nobody did before", first)
	began, may := make(chan struct{}, 8), make(chan struct{})
	node, err := agent.JoinNode(t.Context(), w.url, agent.NodeConfig{Group: "g", Name: "n", Processors: 1},
		agent.Block("b", func(ctx context.Context, _ *agent.Run, _ any) (int, error) {
			began <- struct{}{}
			select {
			case <-may:
			case <-ctx.Done():
			}
			return 7, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = node.Close() })
	<-began
	may <- struct{}{}
	<-began
	var text bytes.Buffer
	second, ended, log := begin(Options{Standby: true, Journal: &text}) // The first block has ended, the second one runs.
	w.isWarm(first, 1)
	if err := first.bus.Close(); err != nil {
		t.Fatal(err)
	}
	leads(t, "the second one", second)
	third, _, _ := begin(Options{Standby: true})
	w.isWarm(second, 1)
	if log.has("the program's last results may be unknown here") {
		t.Error("the stream had no gap, and it waits for the silence to be over")
	}
	close(may)
	if p := <-ended; p.Outcome != control.BlockDone || p.Result != "7" || len(began) > 0 {
		t.Errorf("%v, %q, %s; %d blocks began again", p.Outcome, p.Result, p.Reason, len(began))
	}
	third.follow.mu.Lock()
	third.follow.warm = false // As if it had come too late to be told.
	third.follow.mu.Unlock()
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	<-third.Done()
	const want = "no process leads any more, and this process never received the program's progress: resume the journal of the former leader"
	if err := third.Err(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("one that was told nothing: %v", err)
	}
	replayed, err := Replay(&text, ReplayOptions{})
	if err != nil || replayed.FirstDifference != 0 || !replayed.Complete {
		t.Errorf("the journal of a process that stood by replays to %+v, %v", replayed, err)
	}
}

// TestLoneRestart: a synchronizer that was killed continues from its journal, whose last line
// is torn, where that ends; with another clock memory and cooldowns continue. A journal that is
// out of date is refused.
func TestLoneRestart(t *testing.T) {
	w := newWarm(t)
	path, state := filepath.Join(t.TempDir(), "journal"), t.TempDir()
	open := func() *os.File {
		t.Helper()
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	first, events, _ := w.run(warmConfig, Options{Journal: open(), State: state})
	a, b := w.join("a"), w.join("b")
	may := make(chan struct{})
	w.set(a, warmState{true, 1})
	w.set(b, warmState{false, 1})
	w.enter(a, may)
	w.enter(b, may)
	w.set(a, warmState{true, 8})
	testwait.Until(t, "both predicates to fire, and the hold time to run", func() bool {
		return events.fired("edge") == 1 && events.fired("cool") == 1 && w.predicate(first, "long").Hold != nil
	})
	before := w.predicate(first, "long").Hold.Certain
	end := func(s *Synchronizer) { // As if it were killed while it writes.
		t.Helper()
		if err := s.bus.Close(); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Log(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		at := bytes.LastIndex(text, []byte(`{"end"`))
		if err := os.WriteFile(path, append(text[:at], `{"now":1,"bat`...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	end(first)
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	memory := func(s *Synchronizer, want int64) {
		t.Helper()
		status, err := s.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if v, _ := status.Memory[0].Value.(int64); v != want {
			t.Errorf("memory is %v, want %d", status.Memory, want)
		}
	}
	second, next, _ := w.run(warmConfig, Options{Resume: open(), State: state})
	testwait.Until(t, "the hold time to go on", func() bool {
		h := w.predicate(second, "long").Hold
		return h != nil && h.Certain > before
	})
	memory(second, 1)
	w.set(b, warmState{false, 200})
	testwait.Until(t, "prev", func() bool { return next.fired("grown") == 1 })
	if next.fired("edge")+next.fired("cool") > 0 {
		t.Error("a predicate has fired again")
	}
	close(may)
	for range w.members {
		<-w.applied
	}
	testwait.Until(t, "both fates", func() bool { return second.Stats().Fates[control.Applied] == 2 })
	end(second)

	third, last, log := w.run(warmConfig, Options{Resume: open(), State: state, SeparateClock: true})
	testwait.Until(t, "the edge to fire again", func() bool { return last.fired("edge") == 1 })
	memory(third, 2)
	if last.fired("cool") > 0 || !log.has("memory and cooldowns of the journal continue") {
		t.Error(log.string())
	}
	end(third)
	if err := os.WriteFile(path, old, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := ParseConfig("test.yaml", []byte(warmConfig))
	if err != nil {
		t.Fatal(err)
	}
	_, err = Start(t.Context(), w.url, cfg, Options{Resume: open(), State: state})
	if err == nil || !strings.Contains(err.Error(), "what it has in mind is out of date; resume the journal of the last life, or start without one") {
		t.Error(err)
	}
}

// TestLeaderThatLagsResigns: the standby leads at once, and the error says what to do.
func TestLeaderThatLagsResigns(t *testing.T) {
	w := newWarm(t)
	first, _, _ := w.run(warmConfig, Options{})
	a, b := w.join("a"), w.join("b")
	w.set(a, warmState{true, 1})
	w.set(b, warmState{false, 1})
	late := func() {
		first.calls <- func(l *loop) {
			l.oldest, l.beatAt = l.opt.now().Add(-resignAfter-time.Minute), clocksync.MinInstant
		}
	}
	late() // Nobody would do better.
	second, _, _ := w.run(warmConfig, Options{Standby: true})
	w.isWarm(first, 1)
	first.calls <- func(l *loop) {
		fresh := newLoop(l.Synchronizer)
		if fresh.resignIfLate(l.opt.now()); fresh.lag != 0 {
			t.Errorf("one that has just begun lags by %v", fresh.lag)
		}
	}
	late()
	<-first.Done()
	const want = `^synchronizer "gsync": the process fell behind: a message that came 1m[45]\.?[0-9]*s ago is not processed yet, and a standby is ready to lead: start this process again as the standby$`
	if err := first.Err(); !errors.Is(err, ErrFellBehind) || !regexp.MustCompile(want).MatchString(err.Error()) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	leads(t, "the standby", second)
}

// TestStandbyWithAnotherConfiguration: a configuration that the leader could change to is said
// once, with both hashes; a configuration that takes a restart has the process listed as cold
// with both hashes, and warned of when it leads all the same.
func TestStandbyWithAnotherConfiguration(t *testing.T) {
	w := newWarm(t)
	hash := func(config string) string {
		cfg, err := ParseConfig("test.yaml", []byte(config))
		if err != nil {
			t.Fatal(err)
		}
		return cfg.Hash()
	}
	other := strings.Replace(warmConfig, "> 5", "> 50", 1)
	unfit := strings.Replace(warmConfig, "n: int", "n: float", 1)
	first, _, _ := w.run(warmConfig, Options{})
	second, _, log := w.run(other, Options{Standby: true})
	testwait.Until(t, "word of the configuration that is followed", func() bool {
		return log.has("stands by with another configuration") && log.has("configuration="+hash(other)+" leader="+hash(warmConfig)) && log.has("predicate edge")
	})
	testwait.Until(t, "it to follow", func() bool { return second.follow.isCaughtUp() })
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	leads(t, "the second", second)
	if status, err := second.Status(t.Context()); err != nil || status.Config != hash(warmConfig) || strings.Count(log.string(), "with another configuration") != 1 {
		t.Errorf("%s, %v\n%s", status.Config, err, log.string())
	}

	third, _, log := w.run(unfit, Options{Standby: true})
	testwait.Until(t, "the third to be told of as cold", func() bool {
		status, err := second.Status(t.Context())
		return err == nil && len(status.Standbys) == 1 && containsAll(status.Standbys[0], "cold: ", hash(unfit), hash(warmConfig), "takes a restart")
	})
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	leads(t, "the third", third)
	if !log.has("the process leads with another configuration") || !log.has("configuration="+hash(unfit)+" before="+hash(warmConfig)) {
		t.Error(log.string())
	}
}

func containsAll(text string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}

// TestBeatsAreShortEnough: a reason that takes much room in JSON does not make a beat that nobody reads.
func TestBeatsAreShortEnough(t *testing.T) {
	b := beat{Nonce: 7, Follows: &follows{Attach: 1, Why: "because of " + strings.Repeat("<é\n\"", 64)}}
	var read beat
	if err := wire.DecodeBeat(b.text(), &read); err != nil || !strings.HasPrefix(read.Follows.Why, "because of <é") {
		t.Errorf("%+v, %v", read.Follows, err)
	}
}
