package agent_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/wire"
)

// benchmarkMember joins a synchronizer that listens to nothing but hellos.
func benchmarkMember(b *testing.B) *agent.Member {
	b.Helper()
	local := bus.NewLocal()
	s := local.Connect(bus.Options{})
	subjects := wire.Subjects{Tenant: "default", Group: "g"}
	_, err := s.Subscribe(subjects.StateAll(), bus.Limits{}, func(m bus.Message) {
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
	m, err := agent.Join(b.Context(), "", agent.Config{Group: "g", Name: "w"}, agent.WithBus(local.Connect))
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

func BenchmarkSet(b *testing.B) {
	m := benchmarkMember(b)
	s := state{Phase: "search"}
	b.ReportAllocs()
	for b.Loop() {
		s.Load++
		if err := m.Set(s); err != nil {
			b.Fatal(err)
		}
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
