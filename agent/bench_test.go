package agent_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/bus/bustest"
	"github.com/gopegasus/pegasus/internal/wire"
)

// benchmarkMember joins a synchronizer that listens to nothing but hellos.
func benchmarkMember(b *testing.B) *agent.Member {
	b.Helper()
	return benchmarkMemberOf(b, agent.Config{})
}

func benchmarkMemberOf(b *testing.B, cfg agent.Config) *agent.Member {
	b.Helper()
	cfg.Group, cfg.Name = "g", "w"
	local := bustest.NewServer(b)
	s := local.Connect(bus.Options{})
	subjects := wire.Subjects{Tenant: "default", Group: "g"}
	err := s.Subscribe(subjects.StateAll(), bus.Limits{}, func(m bus.Message) {
		h, err := wire.DecodeHello(m.Data)
		if err != nil {
			return // A batch.
		}
		frame, err := wire.AppendWelcome(nil, &wire.Welcome{Synchronizer: "s", Term: 1, Member: h.Member, Incarnation: h.Incarnation, Accepted: true, Schema: declared})
		if err != nil {
			b.Error(err)
		}
		if err := s.Publish(subjects.Probe(h.Member), frame); err != nil {
			b.Error(err)
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	m, err := agent.Join(b.Context(), "", cfg, agent.WithBus(local.Connect))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := m.Close(); err != nil {
			b.Error(err)
		}
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return m
}

// BenchmarkSet is the cost of a state beside a goroutine that reports each at once, and beside a
// goroutine that takes 1,000 together.
func BenchmarkSet(b *testing.B) {
	benchmarkSet(b, func(m *agent.Member) func(state) error { return func(s state) error { return m.Set(s) } })
}

// BenchmarkStateSet is the same with a State.
func BenchmarkStateSet(b *testing.B) {
	benchmarkSet(b, func(m *agent.Member) func(state) error {
		s, err := agent.StateOf[state](m)
		if err != nil {
			b.Fatal(err)
		}
		return s.Set
	})
}

func benchmarkSet(b *testing.B, of func(*agent.Member) func(state) error) {
	b.Helper()
	for name, cfg := range map[string]agent.Config{"at-once": {}, "gathered": {BatchSize: 1000, BatchAge: time.Second}} {
		b.Run(name, func(b *testing.B) {
			set := of(benchmarkMemberOf(b, cfg))
			s := state{Phase: "search"}
			b.ReportAllocs()
			for b.Loop() {
				s.Load++
				if err := set(s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCheck is a check with nothing pending; compare BenchmarkAtomicLoad.
func BenchmarkCheck(b *testing.B) {
	m := benchmarkMember(b)
	err := m.Region(b.Context(), "search", func(_ context.Context, r *agent.Region) error {
		for b.Loop() {
			if err := r.Check(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

func BenchmarkAtomicLoad(b *testing.B) {
	var flag atomic.Bool
	for b.Loop() {
		if flag.Load() {
			b.Fatal("set")
		}
	}
}

func BenchmarkRegion(b *testing.B) {
	m := benchmarkMember(b)
	b.ReportAllocs()
	for b.Loop() {
		if err := m.Region(b.Context(), "search", func(context.Context, *agent.Region) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

// manyThreads has predicates over that many threads which never fire.
const manyThreads = `
synchronizers:
  gsync:
    members: {group: g, count: 1}
    state: {best: float}
  tsync:
    parent: gsync
    members: {threads: %d}
    state: {phase: {enum: [idle, search]}, best: float}
    predicates:
      negative:
        when: sum(map(members, .best)) < 0.0
        signal: {kind: cancel, region: search, to: all}
      all-idle:
        when: all(members, .phase == "idle")
        signal: {kind: cancel, region: search, to: all}
    summary:
      best: min(map(members, .best))
`

// BenchmarkThreadSet is a state of a thread while that many set theirs as fast as they
// can; lost/op of them were pushed out of a ring before the level saw them.
func BenchmarkThreadSet(b *testing.B) {
	for _, n := range []int{1, 2, 16, 64} {
		b.Run(fmt.Sprintf("threads=%d", n), func(b *testing.B) { benchmarkThreads(b, n, 0) })
	}
}

// BenchmarkThreadWork is the same with some 10 microseconds of work before each state.
func BenchmarkThreadWork(b *testing.B) {
	for _, n := range []int{1, 2, 16, 64} {
		b.Run(fmt.Sprintf("threads=%d", n), func(b *testing.B) { benchmarkThreads(b, n, 10_000) })
	}
}

func benchmarkThreads(b *testing.B, n, work int) {
	b.Helper()
	local := bustest.NewServer(b)
	newHub(b, local.Connect, fmt.Sprintf(manyThreads, n))
	m := join(b, local, agent.Config{Group: "g", Name: "w"})
	threads := make([]*agent.Thread, n)
	for i := range threads {
		var err error
		if threads[i], err = m.Thread(fmt.Sprint("t", i)); err != nil {
			b.Fatal(err)
		}
		if err := threads[i].Set(threadState{"search", 1}); err != nil {
			b.Fatal(err)
		}
	}
	var setting sync.WaitGroup
	var spun atomic.Uint64
	b.ReportAllocs()
	b.ResetTimer()
	for i, t := range threads {
		count := (b.N + i) / n
		setting.Go(func() {
			x := uint64(1)
			for k := range count {
				for range work {
					x ^= x << 13
					x ^= x >> 7
				}
				if err := t.Set(threadState{"search", float64(k)}); err != nil {
					b.Error(err)
					return
				}
			}
			spun.Add(x)
		})
	}
	setting.Wait()
	b.StopTimer()
	var states, lost uint64
	for _, t := range threads {
		s := t.Stats()
		states, lost = states+s.States, lost+s.Dropped
	}
	if states < uint64(b.N) {
		b.Errorf("%d of %d states were set", states, b.N)
	}
	b.ReportMetric(float64(lost)/float64(b.N), "lost/op")
}

const answering = `
synchronizers:
  gsync:
    members: {group: g, count: 1}
    state: {}
  tsync:
    parent: gsync
    members: {threads: 2}
    state: {n: int}
    predicates:
      answer:
        when: any(members, .n > 0)
        every: true
        signal: {kind: activate, region: bench, to: "filter(members, .name == \"poller\")", data: {n: "max(map(members, .n))"}}
`

// answeringThreads are the threads of such a level.
func answeringThreads(b *testing.B) (setter, poller *agent.Thread) {
	b.Helper()
	local := bustest.NewServer(b)
	newHub(b, local.Connect, answering)
	m := join(b, local, agent.Config{Group: "g", Name: "w"})
	threads := make([]*agent.Thread, 2)
	for i, name := range []string{"setter", "poller"} {
		var err error
		if threads[i], err = m.Thread(name); err != nil {
			b.Fatal(err)
		}
		if err := threads[i].Set(roundState{}); err != nil {
			b.Fatal(err)
		}
	}
	return threads[0], threads[1]
}

type roundState struct{ N int64 }

// BenchmarkThreadSignal is the way from a state of a thread to the handler in another
// thread, which checks its region, and back. Both compute, so it takes two processors.
func BenchmarkThreadSignal(b *testing.B) {
	setter, poller := answeringThreads(b)
	took := make([]time.Duration, 0, b.N)
	var began, handled atomic.Int64
	start := time.Now()
	ctx, cancel := context.WithCancel(b.Context())
	var setting sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	_ = poller.Region(ctx, "bench", func(_ context.Context, r *agent.Region) error {
		setting.Go(func() {
			defer cancel()
			for n := range int64(b.N) {
				began.Store(int64(time.Since(start)))
				if err := setter.Set(roundState{n + 1}); err != nil {
					b.Error(err)
					return
				}
				for handled.Load() <= n {
				}
			}
		})
		for {
			if err := r.Check(); err != nil {
				return err
			}
			if n := int64(len(took)); n > handled.Load() {
				handled.Store(n)
			}
		}
	}, agent.OnActivate("answer", func(context.Context, agent.Signal) error {
		took = append(took, time.Since(start)-time.Duration(began.Load()))
		return nil
	}))
	setting.Wait()
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2]), "p50-ns")
	b.ReportMetric(float64(took[len(took)*99/100]), "p99-ns")
}

// BenchmarkThreadSignalHere is the same way where one goroutine stands for both
// threads: no other core has to notice anything.
func BenchmarkThreadSignalHere(b *testing.B) {
	setter, poller := answeringThreads(b)
	b.ReportAllocs()
	err := poller.Region(b.Context(), "bench", func(ctx context.Context, r *agent.Region) error {
		n := int64(0)
		for b.Loop() {
			n++
			if err := setter.Set(roundState{n}); err != nil {
				return err
			}
			if err := r.Wait(ctx); err != nil {
				return err
			}
		}
		return nil
	}, agent.OnActivate("answer", func(context.Context, agent.Signal) error { return nil }))
	if err != nil {
		b.Fatal(err)
	}
}
