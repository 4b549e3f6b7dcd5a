package synchronizer

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/testwait"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/scgs"
)

// worker is a member of another group, whose messages the test sends and receives one
// by one.
type worker struct {
	c        *crowd
	core     *agentcore.Core
	reply    agentcore.Output // of the last step
	bus      *bus.Bus
	subjects wire.Subjects
	signals  chan wire.Signals
	codec    *wire.BatchCodec
}

var workerState = scgs.Schema{{Name: "phase", Type: scgs.String}, {Name: "loads", Type: scgs.ListOf(scgs.Float)}}

// newWorker is an incarnation of w1, welcomed by a synchronizer of its own.
func newWorker(c *crowd, incarnation uint64) *worker {
	w := &worker{
		c: c, bus: c.local.Connect(bus.Options{}), subjects: wire.Subjects{Tenant: "default", Group: "workers"},
		signals: make(chan wire.Signals, 1024), codec: wire.NewBatchCodec(workerState),
		core: agentcore.New(agentcore.Options{Hello: wire.Hello{Member: "w1", Incarnation: incarnation, Domain: "d"}}),
	}
	if err := w.bus.Subscribe(w.subjects.Signal("w1"), bus.Limits{}, func(m bus.Message) {
		if s, err := wire.DecodeSignals(m.Data); err != nil {
			c.tb.Error(err)
		} else {
			w.signals <- s
		}
	}); err != nil {
		c.tb.Fatal(err)
	}
	c.tb.Cleanup(func() {
		if err := w.bus.Close(); err != nil {
			c.tb.Error(err)
		}
	})
	w.flush()
	w.step(w.now(), agentcore.Input{Kind: agentcore.InWelcome, Welcome: &wire.Welcome{
		Synchronizer: "bsync", Term: 99, Epoch: 12, Member: "w1", Incarnation: incarnation, Accepted: true, Schema: workerState,
	}})
	row := []scgs.Value{scgs.StringValue("search"), scgs.ListValue(scgs.Float, scgs.FloatValue(2))}
	w.step(w.now(), agentcore.Input{Kind: agentcore.InState, At: w.stamp(), Row: row})
	return w
}

// step steps the worker's machine, which must not refuse the input.
func (w *worker) step(now clocksync.Instant, in agentcore.Input) *agentcore.Output {
	w.c.tb.Helper()
	if w.core.Step(now, &in, &w.reply); w.reply.Err != nil {
		w.c.tb.Fatal(w.reply.Err)
	}
	return &w.reply
}

func (w *worker) now() clocksync.Instant { return w.c.s.opt.now() }

// later is when no answer waits for others any more.
func (w *worker) later() clocksync.Instant { return w.now().Add(5 * time.Millisecond) }

func (w *worker) stamp() clocksync.Stamp {
	return clocksync.Stamp{Domain: "d", Mono: w.now(), Within: clocksync.Unbounded}
}

func (w *worker) enter() uint64 {
	return w.step(w.now(), agentcore.Input{Kind: agentcore.InEnter, Region: "search"}).Entry
}

// exit leaves a region, and applies the cancellation it had accepted.
func (w *worker) exit(entry uint64) {
	if s := w.step(w.now(), agentcore.Input{Kind: agentcore.InExit, Entry: entry}).Signal; s != nil {
		w.step(w.now(), agentcore.Input{Kind: agentcore.InFinish, Signal: s, Fate: control.Applied})
	}
}

// flush sends what the worker has to say.
func (w *worker) flush() {
	out := w.step(w.later(), agentcore.Input{Kind: agentcore.InTick, At: w.stamp()})
	put := func(subject string, frame []byte, err error) {
		if err == nil {
			err = w.bus.Publish(subject, frame)
		}
		if err != nil {
			w.c.tb.Fatal(err)
		}
	}
	for i := range out.Hellos {
		frame, err := wire.AppendHello(nil, &out.Hellos[i])
		put(w.subjects.State("w1"), frame, err)
	}
	for i := range out.Batches {
		frame, _, err := w.codec.Append(nil, &out.Batches[i])
		put(w.subjects.State("w1"), frame, err)
	}
	for i := range out.Acks {
		frame, _, err := wire.AppendAck(nil, &out.Acks[i].Ack)
		put(w.subjects.Ack(out.Acks[i].To, "w1"), frame, err)
	}
}

// next is the next frame of signals for the worker. It skips frames that only say which fates are recorded.
func (w *worker) next() wire.Signals {
	w.c.tb.Helper()
	limit := time.After(20 * time.Second)
	for {
		select {
		case s := <-w.signals:
			if len(s.Signals) > 0 {
				return s
			}
		case <-limit:
			w.c.tb.Fatal("no signal within 20s")
		}
	}
}

// take offers signals to the worker, and tells their first fate.
func (w *worker) take(s wire.Signals) control.Fate {
	w.c.tb.Helper()
	fresh := w.step(w.now(), agentcore.Input{Kind: agentcore.InSignals, Signals: &s}).Fresh
	if len(fresh) != 1 {
		w.c.tb.Fatalf("%d signals that are no copies: %+v", len(fresh), s)
	}
	return fresh[0].Fate
}

// fates collects what becomes of the signals to the other group.
type fates struct {
	mu   sync.Mutex
	list []control.Fate
}

func (f *fates) observe(e monitor.Event) {
	if x, ok := e.(monitor.Fate); ok && x.Group == "workers" {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.list = append(f.list, x.Fate)
	}
}

func (f *fates) await(c *crowd, n int, want control.Fate) {
	c.tb.Helper()
	testwait.Until(c.tb, "fate "+want.String(), func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.list) >= n
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	if got := f.list[n-1]; got != want || len(f.list) != n {
		c.tb.Fatalf("fates %v, want %v as number %d and last", f.list, want, n)
	}
}

// TestSignalsToAnotherGroupThatGetLost drives a member of another group by hand: lost signals
// are sent again, a signal after its region entry is ignored, and a member that has restarted
// gets only the signals of decisions on its own entries.
func TestSignalsToAnotherGroupThatGetLost(t *testing.T) {
	var journal bytes.Buffer
	var told fates
	c := newCrowd(t, `
synchronizers:
  async:
    members: {group: g}
    silence: {after: 1h, then: drop}
    state: {n: int}
    predicates:
      stop: {when: "any(members, .n > 0)", every: true, signal: {kind: cancel, region: search, to: {group: workers}}}
`, Options{Observe: told.observe, Journal: &journal})
	now, seq := c.s.opt.now(), uint64(0)
	c.send(c.subjects.State("a"), c.hello("a"))
	fire := func() {
		seq++
		c.send(c.subjects.State("a"), c.batch("a", seq, now.Add(2*time.Duration(seq)*time.Millisecond), 1))
	}
	knows := func(incarnation uint64, regions int) func() bool {
		return func() bool {
			status, err := c.s.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			g := status.Groups[0].Members
			return len(g) == 1 && g[0].Incarnation == incarnation && len(g[0].Regions) == regions
		}
	}
	w := newWorker(c, 5)
	first := w.enter()
	w.flush()
	testwait.Until(c.tb, "w1 is known with its region", knows(5, 1))

	// Two frames are lost; the third arrives, its answer is lost, and a copy is
	// answered.
	fire()
	for range 2 {
		w.next()
	}
	s := w.next()
	if s.Synchronizer != "async" || s.Incarnation != 5 || s.Signals[0].Entry != first {
		t.Fatalf("signals %+v, want entry %d of incarnation 5", s, first)
	}
	if fate := w.take(s); fate != control.Waiting {
		t.Fatalf("fate %v of the third copy", fate)
	}
	lost := w.step(w.later(), agentcore.Input{Kind: agentcore.InTick, At: w.stamp()})
	if len(lost.Acks) != 1 || lost.Acks[0].To != "async" {
		t.Fatalf("acknowledgements %+v", lost.Acks)
	}
	w.exit(first)
	w.flush()
	told.await(c, 1, control.Applied)
	testwait.Until(c.tb, "w1 is known without its region", knows(5, 0))

	// The worker leaves its region while a signal is under way, and enters it again.
	second := w.enter()
	w.flush()
	testwait.Until(c.tb, "w1 is known with its region", knows(5, 1))
	fire()
	w.exit(second)
	third := w.enter()
	for s = w.next(); s.Signals[0].Entry != second; { // Copies of the first signal.
		s = w.next()
	}
	if fate := w.take(s); fate != control.NoSuchEntry {
		t.Errorf("fate %v of a signal that came too late", fate)
	}
	if w.core.Canceled(third) != nil {
		t.Error("a signal to an entry that is over has cancelled the next one")
	}
	w.flush()
	told.await(c, 2, control.NoSuchEntry)

	// It dies with a signal under way; what became of that nobody knows.
	fire()
	for s = w.next(); s.Signals[0].Entry != third; {
		s = w.next()
	}
	w2 := newWorker(c, 6)
	w2.enter()
	w2.flush()
	told.await(c, 3, control.Unconfirmed)
	if fresh := w2.step(w2.now(), agentcore.Input{Kind: agentcore.InSignals, Signals: &s}).Fresh; len(fresh) != 0 {
		t.Errorf("what was meant for the incarnation before is let in: %+v", fresh)
	}
	testwait.Until(c.tb, "w1 is known by its new incarnation", knows(6, 1))
	fire()
	for s = w2.next(); s.Incarnation != 6; {
		s = w2.next()
	}
	if fate := w2.take(s); fate != control.Waiting {
		t.Errorf("fate %v of a signal to the new incarnation", fate)
	}
	w2.exit(s.Signals[0].Entry)
	w2.flush()
	told.await(c, 4, control.Applied)

	// It passes over messages that do not concern it, and refuses bytes that are no message.
	stats := c.s.Stats()
	gone, err := wire.AppendGone(nil, &wire.Gone{Member: "w1", Incarnation: 6, First: 2})
	if err != nil {
		t.Fatal(err)
	}
	c.send(w.subjects.State("w1"), gone)
	c.send(w.subjects.State("w1"), []byte("no frame"))
	testwait.Until(c.tb, "three frames more", func() bool { return c.s.Stats().Frames == stats.Frames+2 })
	if now := c.s.Stats(); now.Malformed != stats.Malformed+1 || now.Rejected != stats.Rejected {
		t.Errorf("%+v, before %+v", now, stats)
	}
	if err := c.s.Close(); err != nil {
		t.Error(err)
	}
	r, err := Replay(bytes.NewReader(journal.Bytes()), ReplayOptions{})
	if err != nil || r.FirstDifference != 0 || !r.Complete || r.Decisions != 4 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestNoNewsEndsAWait: a step that has left its questions to the message behind it gets
// them asked though that one says nothing new.
func TestNoNewsEndsAWait(t *testing.T) {
	c := newCrowd(t, `
synchronizers:
  async:
    members: {group: g, count: 2}
    silence: {after: 1h, then: drop}
    state: {n: int}
    predicates:
      stop: {when: "sum(members, .n) > 9", signal: {kind: cancel, region: search, to: {group: workers}}}
`, Options{})
	l, now := c.drive(), c.s.opt.now()
	take := func(group, member string, frame []byte, more bool) {
		l.more = more
		l.receiveFrame(&item{group: group, member: member, frame: frame, at: now})
	}
	outline, _, err := wire.NewBatchCodec(workerState).Append(nil, &wire.Batch{Member: "w1", Incarnation: 1})
	if err != nil {
		t.Fatal(err)
	}
	take("workers", "w1", outline, true)
	for _, name := range []string{"a", "b"} {
		take("", name, c.hello(name), true)
	}
	take("", "a", c.batch("a", 1, now, 1), true)
	take("", "b", c.batch("b", 1, now.Add(2*time.Millisecond), 1), true)
	if n := len(l.output.Probes); n != 0 {
		t.Fatalf("%d probes while a message waits", n)
	}
	take("workers", "w1", outline, true)
	if n := len(l.output.Probes); n != 0 {
		t.Fatalf("%d probes while another message waits", n)
	}
	take("workers", "w1", outline, false)
	l.tick()
	if n := len(l.output.Probes); n != 1 {
		t.Errorf("%d probes after the last message, want one of a", n)
	}

	// A last message that is no message leaves it to the loop as well.
	take("", "a", c.batch("a", 2, now.Add(20*time.Millisecond), 20), true)
	if n := len(l.output.Probes); n != 0 {
		t.Fatalf("%d probes while a message waits", n)
	}
	take("", "b", []byte("nonsense"), false)
	l.tick()
	if n := len(l.output.Probes); n != 1 {
		t.Errorf("%d probes after a malformed message, want one of b", n)
	}
}

// TestPeopleWatch: the core learns that people ask for the status, once a second at most.
func TestPeopleWatch(t *testing.T) {
	c := newCrowd(t, `
synchronizers:
  async:
    members: {group: g, count: 1}
    silence: {after: 1h, then: drop}
    state: {n: int}
    predicates:
      stop: {when: "sum(members, .n) > 9"}
`, Options{})
	l := c.drive()
	ask := func() {
		l.answerQuestion(&question{Question: synccore.Question{Status: true}, done: make(chan struct{})})
	}
	ask()
	if l.tick(); !l.input.Watched || l.watched {
		t.Error("the core was not told")
	}
	if ask(); l.watched {
		t.Error("it is told again at once")
	}
}
