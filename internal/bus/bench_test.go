//nolint:thelper // What is handed to pairs is the benchmark itself.
package bus_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/bus/bustest"
)

// pairs are two connections over each kind of bus.
func pairs(b *testing.B, run func(b *testing.B, one, two *bus.Bus)) {
	b.Run("bus=nats", func(b *testing.B) {
		s := startServer(b, embedded.Options{})
		run(b, dial(b, s.URL(), bus.Options{}), dial(b, s.URL(), bus.Options{}))
	})
	b.Run("bus=inprocess", func(b *testing.B) {
		s := bustest.NewServer(b)
		one, two := s.Connect(bus.Options{}), s.Connect(bus.Options{})
		closeAfter(b, one)
		closeAfter(b, two)
		run(b, one, two)
	})
}

// BenchmarkEcho is a message there and one back.
func BenchmarkEcho(b *testing.B) {
	pairs(b, func(b *testing.B, one, two *bus.Bus) {
		pong := make(chan struct{}, 1)
		mustSubscribe(b, two, "ping", func(m bus.Message) { _ = two.Publish("pong", m.Data) })
		mustSubscribe(b, one, "pong", func(bus.Message) { pong <- struct{}{} })
		data := make([]byte, 128)
		echo(b, func() error { return one.Publish("ping", data) }, pong)
	})
}

// BenchmarkRawEcho is the same with nats.go alone: what a bus adds to.
func BenchmarkRawEcho(b *testing.B) {
	s := startServer(b, embedded.Options{})
	one, two := rawConn(b, s.URL()), rawConn(b, s.URL())
	pong := make(chan struct{}, 1)
	_, err1 := two.Subscribe("ping", func(m *nats.Msg) { _ = two.Publish("pong", m.Data) })
	_, err2 := one.Subscribe("pong", func(*nats.Msg) { pong <- struct{}{} })
	if err := errors.Join(err1, err2, two.Flush(), one.Flush()); err != nil {
		b.Fatal(err)
	}
	data := make([]byte, 128)
	echo(b, func() error { return one.Publish("ping", data) }, pong)
}

func rawConn(b *testing.B, url string) *nats.Conn {
	b.Helper()
	nc, err := nats.Connect(url, nats.NoEcho())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(nc.Close)
	return nc
}

func echo(b *testing.B, ping func() error, pong <-chan struct{}) {
	b.Helper()
	var took []time.Duration
	for b.Loop() {
		begin := time.Now()
		if err := ping(); err != nil {
			b.Fatal(err)
		}
		<-pong
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
}

// BenchmarkPublish is one way, in rounds that stay below the limits.
func BenchmarkPublish(b *testing.B) {
	const round = 10_000
	for _, size := range []int{128, 4096} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			pairs(b, func(b *testing.B, one, two *bus.Bus) {
				arrived, n := make(chan struct{}, 1), 0
				err := two.Subscribe("x", bus.Limits{Bytes: 1 << 30}, func(bus.Message) {
					if n++; n%round == 0 {
						arrived <- struct{}{}
					}
				})
				if err != nil {
					b.Fatal(err)
				}
				mustFlush(b, two)
				data := make([]byte, size)
				b.ReportAllocs()
				for b.Loop() {
					for range round {
						if err := one.Publish("x", data); err != nil {
							b.Fatal(err)
						}
					}
					<-arrived
				}
				b.ReportMetric(float64(b.N)*round/b.Elapsed().Seconds(), "msg/s")
				if two.Dropped() > 0 {
					b.Errorf("dropped %d", two.Dropped())
				}
			})
		})
	}
}

func mustSubscribe(b *testing.B, c *bus.Bus, subject string, h bus.Handler) {
	b.Helper()
	if err := c.Subscribe(subject, bus.Limits{}, h); err != nil {
		b.Fatal(err)
	}
	mustFlush(b, c)
}

func mustFlush(b *testing.B, c *bus.Bus) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	if err := c.Flush(ctx); err != nil {
		b.Fatal(err)
	}
}
