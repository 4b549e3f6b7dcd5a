package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/gopegasus/pegasus/examples/tsp/bnb"
)

// peerParts are the numbers of subtasks that peers are given: as many as the
// first cut of examples/tsp makes for two threads, and many more.
var peerParts = []int{8, 64}

// peer is another way of sharing subtasks out to two workers: it hands each
// subtask to search once, by two goroutines, and returns when all are searched.
type peer struct {
	name string
	run  func(parts [][]byte, search func([]byte) error) error
}

var peers = []peer{{"errgroup", pooled}, {"jetstream", queued}}

// peerWorkers is how many workers search.
const peerWorkers = 2

// pooled is a pool of goroutines: nothing but an errgroup with a limit.
func pooled(parts [][]byte, search func([]byte) error) error {
	var g errgroup.Group
	g.SetLimit(peerWorkers)
	for _, part := range parts {
		g.Go(func() error { return search(part) })
	}
	return g.Wait()
}

// queued is a work queue of JetStream, in memory, on a NATS server in this
// process: two workers with a connection of their own each pull one subtask
// after the other and acknowledge what is searched.
func queued(parts [][]byte, search func([]byte) error) (err error) {
	dir, err := os.MkdirTemp("", "tsp-queue-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true})
	if err != nil {
		return err
	}
	srv.Start()
	defer srv.WaitForShutdown()
	defer srv.Shutdown()
	if !srv.ReadyForConnections(queueWait) {
		return errors.New("the NATS server does not start")
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := fill(ctx, srv.ClientURL(), parts); err != nil {
		return fmt.Errorf("work queue: %w", err)
	}
	q := &queue{url: srv.ClientURL(), search: search}
	q.left.Store(int64(len(parts)))
	g, ctx := errgroup.WithContext(ctx)
	for range peerWorkers {
		g.Go(func() error { return q.work(ctx) })
	}
	return g.Wait()
}

// The work queue.
const (
	queueName = "subtasks"
	queueWait = 10 * time.Second      // for the server
	pullWait  = 20 * time.Millisecond // for a subtask, before a worker looks whether all are searched
)

// fill makes the queue and puts the subtasks into it.
func fill(ctx context.Context, url string, parts [][]byte) error {
	ctx, cancel := context.WithTimeout(ctx, queueWait)
	defer cancel()
	nc, err := nats.Connect(url)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	stream, err := js.CreateStream(ctx, jetstream.StreamConfig{
		Name: queueName, Subjects: []string{queueName}, Retention: jetstream.WorkQueuePolicy, Storage: jetstream.MemoryStorage,
	})
	if err != nil {
		return err
	}
	// A subtask may take long: nobody else gets it meanwhile.
	if _, err := stream.CreateConsumer(ctx, jetstream.ConsumerConfig{Durable: queueName, AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Hour}); err != nil {
		return err
	}
	for _, part := range parts {
		if _, err := js.Publish(ctx, queueName, part); err != nil {
			return err
		}
	}
	return nil
}

// queue is what the workers of a work queue share.
type queue struct {
	url    string
	search func([]byte) error
	left   atomic.Int64 // subtasks not searched
}

// work pulls subtasks until all are searched.
func (q *queue) work(ctx context.Context) error {
	nc, err := nats.Connect(q.url)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	cons, err := js.Consumer(ctx, queueName, queueName)
	if err != nil {
		return err
	}
	for q.left.Load() > 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		m, err := cons.Next(jetstream.FetchMaxWait(pullWait))
		switch {
		case errors.Is(err, nats.ErrTimeout), errors.Is(err, jetstream.ErrNoMessages):
			continue
		case err != nil:
			return err
		}
		if err := q.one(m); err != nil {
			return err
		}
	}
	return nil
}

func (q *queue) one(m jetstream.Msg) error {
	if err := q.search(m.Data()); err != nil {
		return err
	}
	q.left.Add(-1)
	return m.Ack()
}

// share cuts an instance and lets a peer have the parts; the search begins when
// the first of them is fetched.
func (p peer) share(t task, tour []int, parts, length int, o options) (bare, error) {
	runtime.GC() // what the run before has left
	start, before := time.Now(), used()
	problem, err := bnb.Prepare(t.in, bnb.Options{Tour: tour})
	if err != nil {
		return bare{}, err
	}
	s := newShare(problem, plan{peerWorkers, false}, func() bool { return time.Since(start) > o.limit })
	list, err := s.cut(parts)
	if err != nil {
		return bare{}, err
	}
	if len(list) == 0 {
		return bare{}, fmt.Errorf("cutting it into %d parts proves it: take a harder instance", parts)
	}
	bodies := make([][]byte, len(list))
	for i, part := range list {
		if bodies[i], err = part.MarshalBinary(); err != nil {
			return bare{}, err
		}
	}
	cut := s.worked.Load()
	first := sync.OnceValue(time.Now)
	var took atomic.Int64 // until the last one ended
	err = p.run(bodies, func(body []byte) error {
		begun := first()
		part, err := bnb.DecodeSubtask(body, t.in.N)
		if err == nil {
			err = s.search(part)
		}
		took.Store(int64(time.Since(begun)))
		return err
	})
	if err == nil {
		err = same(int(s.incumbent.Load()), length)
	}
	busy := time.Duration(s.worked.Load() - cut).Seconds()
	return bare{time.Duration(took.Load()).Seconds(), busy, s.nodes.Load(), time.Since(start).Seconds(), (used() - before).Seconds(), length}, err
}
