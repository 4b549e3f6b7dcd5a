package work_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/internal/testnats"
	"github.com/gopegasus/pegasus/work"
)

// lump is the state of an object of a megabyte, as its own bytes.
type lump struct{ data []byte }

func (l *lump) MarshalBinary() ([]byte, error) { return l.data, nil }

func (l *lump) UnmarshalBinary(data []byte) error { l.data = slices.Clone(data); return nil }

// BenchmarkObjectMove moves an object of 1 MiB to another member, until its first message is served there. Beside
// it the same bytes go over NATS alone, in messages of 48 KiB.
func BenchmarkObjectMove(b *testing.B) {
	const piece = 48 << 10
	served := make(chan string, 1)
	server := benchServer(b, 2)
	options := func(name string) []work.Option {
		return []work.Option{
			work.Object("lump", func(_ context.Context, n int) (*lump, error) { return &lump{make([]byte, n)}, nil }),
			work.On("lump", "touch", func(_ context.Context, l *lump, i int) error { l.data[i%len(l.data)]++; served <- name; return nil }),
		}
	}
	list := benchSpaces(b, server, options("a"), options("b"))
	for _, s := range list {
		go func() { _ = s.Serve(b.Context()) }()
	}
	if err := list[0].Create(b.Context(), "lump", 1, 1<<20); err != nil {
		b.Fatal(err)
	}
	nc, err := nats.Connect(server.URL(), testnats.Options(b, server.URL())...)
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	arrived := make(chan int, 64)
	if _, err := nc.Subscribe("bare", func(m *nats.Msg) { arrived <- len(m.Data) }); err != nil {
		b.Fatal(err)
	}
	other, err := nats.Connect(server.URL(), testnats.Options(b, server.URL())...)
	if err != nil {
		b.Fatal(err)
	}
	defer other.Close()
	var moved, bare []time.Duration
	names := []string{"b", "a"}
	data := make([]byte, piece)
	for i := 0; b.Loop(); i++ {
		to := names[i%2]
		begun := time.Now()
		if err := list[0].Move("lump", 1, to); err != nil {
			b.Fatal(err)
		}
		if err := list[0].Send(b.Context(), 1, "touch", i); err != nil {
			b.Fatal(err)
		}
		if at := <-served; at != to {
			b.Fatalf("%s has served instead of %s", at, to)
		}
		if to == "b" {
			moved = append(moved, time.Since(begun))
		}
		begun = time.Now()
		for left := 1 << 20; left > 0; left -= piece {
			if err := other.Publish("bare", data[:min(left, piece)]); err != nil {
				b.Fatal(err)
			}
		}
		for left := 1 << 20; left > 0; left -= <-arrived {
		}
		bare = append(bare, time.Since(begun))
	}
	slices.Sort(moved)
	slices.Sort(bare)
	b.ReportMetric(float64(moved[len(moved)/2].Microseconds()), "move-p50-µs")
	b.ReportMetric(float64(bare[len(bare)/2].Microseconds()), "bare-p50-µs")
	b.ReportMetric(float64(moved[len(moved)/2])/float64(bare[len(bare)/2]), "move/bare")
}
