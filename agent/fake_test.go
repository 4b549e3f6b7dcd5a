package agent_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/bus/bustest"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// state is what most tests report, declared is its declaration.
type state struct {
	Load  float64
	Phase string
}

var declared = scgs.Schema{
	{Name: "phase", Type: scgs.Enum, Words: []string{"idle", "search"}},
	{Name: "load", Type: scgs.Float},
}

// fake speaks wire to members of group "g" and keeps what they say.
type fake struct {
	bus      *bus.Bus
	subjects wire.Subjects
	codec    *wire.BatchCodec
	answer   func(*wire.Hello) *wire.Welcome // nil: no answer

	mu      sync.Mutex
	hellos  []wire.Hello
	batches []wire.Batch
	acks    []wire.Answer
	number  uint64
}

// newFake answers every hello with a welcome to the declared state.
func newFake(t *testing.T, connect func(bus.Options) *bus.Bus) *fake {
	t.Helper()
	f := &fake{bus: connect(bus.Options{}), subjects: wire.Subjects{Tenant: "default", Group: "g"}, codec: wire.NewBatchCodec(declared)}
	f.answer = func(h *wire.Hello) *wire.Welcome {
		return &wire.Welcome{Synchronizer: "s", Term: 1, Epoch: 1, Member: h.Member, Incarnation: h.Incarnation, Accepted: true, Schema: declared}
	}
	for subject, handle := range map[string]bus.Handler{f.subjects.StateAll(): f.onState, f.subjects.AckAll("s"): f.onAck} {
		if err := f.bus.Subscribe(subject, bus.Limits{}, handle); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.bus.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.bus.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func (f *fake) onState(m bus.Message) {
	kind, _ := wire.KindOf(m.Data)
	switch kind {
	case wire.KindHello:
		h, err := wire.DecodeHello(m.Data)
		if err != nil {
			panic(err)
		}
		f.mu.Lock()
		f.hellos = append(f.hellos, h)
		f.mu.Unlock()
		if w := f.answer(&h); w != nil {
			f.welcome(w)
		}
	case wire.KindBatch:
		var b wire.Batch
		if err := f.codec.Decode(m.Data, "d", &b); errors.Is(err, wire.ErrSchema) {
			return // It was on its way when another one was declared.
		} else if err != nil {
			panic(err)
		}
		f.mu.Lock()
		f.batches = append(f.batches, b)
		f.mu.Unlock()
	}
}

func (f *fake) onAck(m bus.Message) {
	a, err := wire.DecodeAck(m.Data)
	if err != nil {
		panic(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.acks = append(f.acks, a.Answers...)
}

func (f *fake) publish(subject string, frame []byte, err error) {
	if err == nil {
		err = f.bus.Publish(subject, frame)
	}
	if err != nil {
		panic(err)
	}
}

// lead has the fake beat as a leader does, until the test stops it.
func (f *fake) lead(term uint64) (stop func()) {
	done := make(chan struct{})
	var beating sync.WaitGroup
	beating.Go(func() {
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		for {
			_ = f.bus.Publish(f.subjects.Beat("s"), fmt.Appendf(nil, `{"term":%d}`, term)) // The server may be away.
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	})
	return func() {
		close(done)
		beating.Wait()
	}
}

func (f *fake) welcome(w *wire.Welcome) {
	frame, err := wire.AppendWelcome(nil, w)
	subject := f.subjects.Announce()
	if w.Member != "" {
		subject = f.subjects.Probe(w.Member)
	}
	f.publish(subject, frame, err)
}

// last is the newest batch of a member.
func (f *fake) last(t *testing.T, member string) wire.Batch {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range slices.Backward(f.batches) {
		if b.Member == member {
			return b
		}
	}
	t.Fatalf("no batch of %q has come", member)
	return wire.Batch{}
}

// count is the number of batches so far.
func (f *fake) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.batches)
}

// rows lists the rows reported so far.
func (f *fake) rows() [][]scgs.Value {
	f.mu.Lock()
	defer f.mu.Unlock()
	var rows [][]scgs.Value
	for _, b := range f.batches {
		for _, r := range b.Reports {
			rows = append(rows, r.Row)
		}
	}
	return rows
}

// fate is the last one told for a signal, by number, once those that wait for
// others have gone out.
func (f *fake) fate(number uint64) control.Fate {
	time.Sleep(5 * time.Millisecond)
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range slices.Backward(f.acks) {
		if a.Decision.Number == number {
			return a.Fate
		}
	}
	return 0
}

// signal sends one to the region's entry in the newest batch of the member, or to
// entry 1 if it is not open there, and returns its number.
func (f *fake) signal(t *testing.T, member, region, name string, kind control.Kind, data ...control.Datum) uint64 {
	t.Helper()
	b := f.last(t, member)
	entry := uint64(1)
	for _, r := range b.Regions {
		if r.Name == region {
			entry = r.Entry
		}
	}
	f.number++
	s := control.Signal{
		Decision: control.Decision{Synchronizer: "s", Term: 1, Epoch: 1, Number: f.number},
		Name:     name, Predicate: name, Kind: kind, Target: member, Region: region, Entry: entry, Data: data,
	}
	frame, _, err := wire.AppendSignals(nil, &wire.Signals{Synchronizer: "s", Term: 1, Epoch: 1, Incarnation: b.Incarnation, Signals: []control.Signal{s}})
	f.publish(f.subjects.Signal(member), frame, err)
	return f.number
}

// joined runs a test with a member "w" of group "g" and its fake synchronizer in
// a bubble, over a server inside the process.
func joined(t *testing.T, run func(t *testing.T, m *agent.Member, f *fake, b *bustest.Server)) {
	t.Helper()
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		f := newFake(t, local.Connect)
		m := join(t, local, agent.Config{Group: "g", Name: "w"})
		synctest.Wait()
		run(t, m, f, local)
	})
}

// bubbleJoin is joined with another configuration.
func bubbleJoin(t *testing.T, cfg agent.Config, run func(t *testing.T, m *agent.Member, f *fake)) {
	t.Helper()
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		f := newFake(t, local.Connect)
		m := join(t, local, cfg)
		synctest.Wait()
		run(t, m, f)
	})
}

func join(tb testing.TB, local *bustest.Server, cfg agent.Config) *agent.Member {
	tb.Helper()
	m, err := agent.Join(tb.Context(), "", cfg, agent.WithBus(local.Connect))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := m.Close(); err != nil {
			tb.Error(err)
		}
	})
	return m
}
