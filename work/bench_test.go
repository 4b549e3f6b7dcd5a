package work_test

import (
	"context"
	"errors"
	"log"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/connect"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/testnats"
	"github.com/gopegasus/pegasus/synchronizer"
	"github.com/gopegasus/pegasus/work"
)

// benchHelp is the variable with the server of a benchmark whose tasks this process runs.
const benchHelp = "PEGASUS_BENCH_HELP"

func TestMain(m *testing.M) {
	if url := os.Getenv(writerHelp); url != "" {
		helpWriting(url)
	}
	url := os.Getenv(benchHelp)
	if url == "" {
		testnats.Main(m)
	}
	member, err := agent.Join(context.Background(), url, agent.Config{Group: "g", Name: "helper"})
	if err != nil {
		log.Fatal(err)
	}
	server, options, err := connect.To(url, nil)
	if err != nil {
		log.Fatal(err)
	}
	nc, err := nats.Connect(server.URL, options...)
	if err != nil {
		log.Fatal(err)
	}
	s, err := work.Open(context.Background(), member, work.Func("empty", empty),
		work.Object("marks", func(context.Context, int) (*marks, error) { return &marks{}, nil }),
		work.On("marks", "touch", func(_ context.Context, m *marks, _ int) error {
			m.N++
			return nc.Publish("served", nil)
		}))
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(s.Serve(context.Background())) // Until it is killed.
}

// benchServer starts a server, and a synchronizer that waits for so many members.
func benchServer(b *testing.B, members int) *embedded.Server {
	b.Helper()
	return benchServerOf(b, embedded.Options{}, live, members)
}

func benchServerOf(b *testing.B, options embedded.Options, config string, members int) *embedded.Server {
	b.Helper()
	server, err := embedded.Start(options)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(server.Close)
	cfg, err := synchronizer.ParseConfig("test.yaml", []byte(config), synchronizer.Members("gsync", members))
	if err != nil {
		b.Fatal(err)
	}
	s, err := synchronizer.Start(b.Context(), server.URL(), cfg, synchronizer.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return server
}

// benchSpaces opens spaces over a server. Options are those of each member.
func benchSpaces(b *testing.B, server *embedded.Server, options ...[]work.Option) []*work.Space {
	b.Helper()
	list, errs := make([]*work.Space, len(options)), make([]error, len(options))
	var all sync.WaitGroup
	for i, o := range options {
		all.Go(func() {
			m, err := agent.Join(b.Context(), server.URL(), agent.Config{Group: "g", Name: string(rune('a' + i))}, agent.OwnConn())
			if errs[i] = err; err != nil {
				return
			}
			b.Cleanup(func() { _ = m.Close() })
			list[i], errs[i] = work.Open(b.Context(), m, o...)
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		b.Fatal(err)
	}
	for _, s := range list {
		b.Cleanup(func() { _ = s.Close() })
	}
	return list
}

func empty(context.Context, []byte) ([]byte, error) { return nil, nil }

const phaseTasks = 100_000

func benchTasks(b *testing.B, list []*work.Space) {
	b.Helper()
	for _, s := range list[1:] {
		go func() { _ = s.Serve(b.Context()) }()
	}
	for b.Loop() {
		for range phaseTasks {
			if err := list[0].Put(b.Context(), "empty", []byte(nil)); err != nil {
				b.Fatal(err)
			}
		}
		n := 0
		for _, err := range work.Results[[]byte](b.Context(), list[0], "empty") {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != phaseTasks {
			b.Fatalf("%d results", n)
		}
	}
	b.ReportMetric(float64(b.N)*phaseTasks/b.Elapsed().Seconds(), "tasks/s")
}

// BenchmarkEmptyTasks: tasks that do nothing, in one process.
func BenchmarkEmptyTasks(b *testing.B) {
	benchTasks(b, benchSpaces(b, benchServer(b, 1), []work.Option{work.Func("empty", empty)}))
}

// BenchmarkMovedTasks: tasks that do nothing, run by another member: the slot of the first one is taken.
func BenchmarkMovedTasks(b *testing.B) {
	list := benchSpaces(b, benchServer(b, 2), []work.Option{work.Func("empty", empty), block}, []work.Option{work.Func("empty", empty)})
	go func() { _ = list[1].Serve(b.Context()) }()
	benchMoved(b, list[0])
}

// BenchmarkTwoProcesses is BenchmarkMovedTasks where the other member is a process of its own.
func BenchmarkTwoProcesses(b *testing.B) {
	server := benchServer(b, 2)
	helper := exec.CommandContext(b.Context(), os.Args[0])
	helper.Env, helper.Stderr = append(os.Environ(), benchHelp+"="+server.URL()), os.Stderr
	if err := helper.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = helper.Wait() }) // It was killed.
	benchMoved(b, benchSpaces(b, server, []work.Option{work.Func("empty", empty), block})[0])
}

var block = work.Func("block", func(ctx context.Context, _ []byte) ([]byte, error) {
	<-ctx.Done()
	return nil, nil
})

func benchMoved(b *testing.B, s *work.Space) {
	b.Helper()
	for b.Loop() {
		if err := s.Put(b.Context(), "block", []byte(nil), work.ID("block")); err != nil {
			b.Fatal(err)
		}
		for range phaseTasks {
			if err := s.Put(b.Context(), "empty", []byte(nil)); err != nil {
				b.Fatal(err)
			}
		}
		n := 0
		for _, err := range work.Results[[]byte](b.Context(), s, "empty") {
			if err != nil {
				b.Fatal(err)
			}
			if n++; n == phaseTasks {
				_ = s.Cancel("block")
			}
		}
	}
	b.ReportMetric(float64(b.N)*phaseTasks/b.Elapsed().Seconds(), "tasks/s")
	b.ReportMetric(float64(s.Stats().Given)/float64(b.N), "moved/phase")
}

// items is a bag that nobody splits.
type items struct{ N int }

func (b *items) Len() int          { return b.N }
func (b *items) Split(n int) items { b.N -= n; return items{n} }

// BenchmarkYield: a Yield that has nothing to do.
func BenchmarkYield(b *testing.B) {
	done := make(chan error, 1)
	s := benchSpaces(b, benchServer(b, 1), []work.Option{work.Bag("bag", func(ctx context.Context, bag *items, _ *int) error {
		for b.Loop() {
			if err := work.Yield(ctx); err != nil {
				return err
			}
		}
		bag.N = 0
		done <- nil
		return nil
	}, func(a, b int) int { return a + b })})[0]
	if err := s.Put(b.Context(), "bag", items{10}); err != nil {
		b.Fatal(err)
	}
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}

// BenchmarkEnd: from the last result to the end of the phase, at three members.
func BenchmarkEnd(b *testing.B) {
	o := []work.Option{work.Func("empty", empty)}
	list := benchSpaces(b, benchServer(b, 3), o, o, o)
	for _, s := range list[1:] {
		go func() { _ = s.Serve(b.Context()) }()
	}
	var took []time.Duration
	for b.Loop() {
		if err := list[0].Put(b.Context(), "empty", []byte(nil)); err != nil {
			b.Fatal(err)
		}
		var last time.Time
		for _, err := range work.Results[[]byte](b.Context(), list[0], "empty") {
			if err != nil {
				b.Fatal(err)
			}
			last = time.Now()
		}
		took = append(took, time.Since(last))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
}

// benchPutters is how many goroutines put tasks at a time, and barePending how many bare messages are on their way.
const (
	benchPutters = 1000
	barePending  = 4000
)

// BenchmarkDurable puts, runs and records empty tasks in one process, with their log in JetStream.
func BenchmarkDurable(b *testing.B) {
	server := benchServerOf(b, embedded.Options{JetStream: b.TempDir()}, durableText, 1)
	s := benchSpaces(b, server, []work.Option{work.Func("empty", empty)})[0]
	b.ResetTimer()
	var all sync.WaitGroup
	for i := range benchPutters {
		all.Go(func() {
			for n := i; n < b.N; n += benchPutters {
				if err := s.Put(b.Context(), "empty", []byte(nil)); err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
	if err := s.Wait(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
}

// BenchmarkBareJetStream does what BenchmarkDurable does by hand: a message for each put, fetched, a record by
// compare-and-set on a subject of its own, and an acknowledgement.
func BenchmarkBareJetStream(b *testing.B) {
	server := benchServerOf(b, embedded.Options{JetStream: b.TempDir()}, live, 1)
	conn, err := nats.Connect(server.URL(), testnats.Options(b, server.URL())...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(conn.Close)
	js, err := jetstream.New(conn, jetstream.WithPublishAsyncMaxPending(barePending))
	if err != nil {
		b.Fatal(err)
	}
	stream, err := js.CreateStream(b.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"S.>"}})
	if err != nil {
		b.Fatal(err)
	}
	consumer, err := stream.CreateConsumer(b.Context(), jetstream.ConsumerConfig{
		Durable: "c", FilterSubject: "S.t.>", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: barePending,
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	var all sync.WaitGroup
	all.Go(func() {
		for n := range b.N {
			id := strconv.Itoa(n)
			if _, err := js.PublishAsync("S.t."+id, []byte(id), jetstream.WithMsgID(id)); err != nil {
				b.Error(err)
				return
			}
		}
	})
	for done := 0; done < b.N; {
		batch, err := consumer.Fetch(min(256, b.N-done))
		if err != nil {
			b.Fatal(err)
		}
		for m := range batch.Messages() {
			if _, err := js.PublishAsync("S.x."+string(m.Data()), []byte("done"), jetstream.WithExpectLastSequencePerSubject(0)); err != nil {
				b.Fatal(err)
			}
			if err := m.Ack(); err != nil {
				b.Fatal(err)
			}
			done++
		}
	}
	all.Wait()
	<-js.PublishAsyncComplete()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
}
