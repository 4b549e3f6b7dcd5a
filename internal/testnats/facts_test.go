package testnats_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/gopegasus/pegasus/internal/testcount"
	"github.com/gopegasus/pegasus/internal/testnats"
	"github.com/gopegasus/pegasus/internal/testwait"
)

func TestMain(m *testing.M) { testnats.Main(m) }

const (
	patience = 30 * time.Second
	ackWait  = time.Second
)

// TestFacts asserts what a log of records in JetStream may rest on, and what it may not, on three servers and
// streams of three replicas. PEGASUS_FACTS is how many times as many races and kills there are.
func TestFacts(t *testing.T) {
	times := testcount.Of(t, "FACTS", 1)
	c := testnats.StartCluster(t)
	for _, f := range []struct {
		name string
		fact func(*testing.T, *testnats.Cluster, int)
	}{
		{"EndAgainstPut", endAgainstPut},
		{"SharedFence", sharedFence},
		{"ThreeWriters", threeWriters},
		{"LateAck", lateAck},
		{"LateAckOfWorkQueue", lateAckOfWorkQueue},
		{"WorkQueueTakesOneConsumer", workQueueTakesOneConsumer},
		{"ClosedHolder", closedHolder},
		{"PipelineUnderKill", pipelineUnderKill},
		{"RestartWithPending", restartWithPending},
	} {
		t.Run(f.name, func(t *testing.T) {
			begin := time.Now()
			f.fact(t, c, times)
			t.Logf("it took %.1f s", time.Since(begin).Seconds())
		})
	}
}

// stream creates a stream of three replicas for subjects below its name, until the test ends.
func stream(t *testing.T, js jetstream.JetStream, name string, retention jetstream.RetentionPolicy) jetstream.Stream {
	t.Helper()
	s, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: []string{name + ".>"}, Replicas: 3, Retention: retention})
	check(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		check(t, js.DeleteStream(ctx, name))
	})
	return s
}

// durable creates a consumer that is as those of a space: explicit acks, and redelivery without end.
func durable(t *testing.T, s jetstream.Stream, wait time.Duration) jetstream.Consumer {
	t.Helper()
	c, err := s.CreateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "c", AckPolicy: jetstream.AckExplicitPolicy, AckWait: wait, MaxAckPending: 10_000})
	check(t, err)
	return c
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// code is that of an error of JetStream's API, 0 of none, and 1 of another error.
func code(err error) jetstream.ErrorCode {
	var api *jetstream.APIError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &api):
		return api.ErrorCode
	}
	return 1
}

const (
	stale         = jetstream.JSErrCodeStreamWrongLastSequence         // The log has another last one.
	staleInFlight = jetstream.JSErrCodeStreamWrongLastSequenceConstant // Another one is on its way into it.
	notReady      = 10163                                              // The leader does not know yet.
)

// refused reports whether a record was refused because another one was first.
func refused(err error) bool { return code(err) == stale || code(err) == staleInFlight }

// attempt is a message with what it expects.
type attempt struct {
	subject string
	expect  jetstream.PublishOpt
}

// race publishes several messages at the same time, from connections of their own, and returns what became
// of each. Where the leader is not ready it tries again.
func race(t *testing.T, writers []jetstream.JetStream, attempts ...attempt) []error {
	t.Helper()
	results, begin := make([]error, len(attempts)), make(chan struct{})
	var all sync.WaitGroup
	for i, a := range attempts {
		all.Go(func() {
			<-begin
			for {
				if _, results[i] = writers[i].Publish(t.Context(), a.subject, nil, a.expect); code(results[i]) != notReady {
					return
				}
			}
		})
	}
	close(begin)
	all.Wait()
	return results
}

// endAgainstPut: an end that expects no put, and a put that expects no end. If the end expects so of a wildcard
// subject, both are taken in many races: no fence across subjects excludes them. If each names the subject of
// the other, one of them at most is taken.
func endAgainstPut(t *testing.T, c *testnats.Cluster, times int) {
	for name, literal := range map[string]bool{"wildcard": false, "literal": true} {
		stream(t, c.JetStream(t), name, jetstream.LimitsPolicy)
		writers := []jetstream.JetStream{c.JetStream(t), c.JetStream(t)}
		races, both, none := 150*times, 0, 0
		for i := range races {
			put, end := fmt.Sprintf("%s.%d.t.a", name, i), fmt.Sprintf("%s.%d.p", name, i)
			of := fmt.Sprintf("%s.%d.t.>", name, i)
			if literal {
				of = put
			}
			results := race(t, writers,
				attempt{put, jetstream.WithExpectLastSequenceForSubject(0, end)},
				attempt{end, jetstream.WithExpectLastSequenceForSubject(0, of)})
			for _, err := range results {
				if err != nil && !refused(err) {
					t.Fatal(err)
				}
			}
			switch {
			case results[0] == nil && results[1] == nil:
				both++
			case results[0] != nil && results[1] != nil:
				none++
			}
		}
		t.Logf("%s: both were taken in %d of %d races, and none in %d", name, both, races, none)
		if literal && both > 0 {
			t.Errorf("both were taken in %d of %d races on literal subjects", both, races)
		}
		if !literal && both == 0 {
			t.Errorf("an end that expects no message of a wildcard subject excludes puts in %d races: this server has a fence across subjects", races)
		}
	}
}

// sharedFence: pipelined puts that expect the same of one literal subject, which none of them writes, refuse each other.
func sharedFence(t *testing.T, c *testnats.Cluster, _ int) {
	js := c.JetStream(t)
	stream(t, js, "fence", jetstream.LimitsPolicy)
	const puts = 2000
	var futures []jetstream.PubAckFuture
	for i := range puts {
		f, err := js.PublishAsync(fmt.Sprintf("fence.t.%d", i), nil, jetstream.WithExpectLastSequenceForSubject(0, "fence.p"))
		check(t, err)
		futures = append(futures, f)
	}
	codes := map[jetstream.ErrorCode]int{}
	for _, f := range futures {
		_, err := outcome(t, f)
		codes[code(err)]++
	}
	t.Logf("of %d puts by code: %v", puts, codes)
	if codes[staleInFlight] < puts/2 || codes[0] == 0 || codes[0]+codes[staleInFlight]+codes[notReady] != puts {
		t.Errorf("of %d pipelined puts that share a fence %d were refused with %d: %v", puts, codes[staleInFlight], staleInFlight, codes)
	}
}

// outcome waits for what became of a message.
func outcome(t *testing.T, f jetstream.PubAckFuture) (*jetstream.PubAck, error) {
	t.Helper()
	select {
	case ack := <-f.Ok():
		return ack, nil
	case err := <-f.Err():
		return nil, err
	case <-time.After(patience):
		t.Fatal("nothing became of a message")
		return nil, nil
	}
}

// threeWriters: of three records that build on the same one, one is taken.
func threeWriters(t *testing.T, c *testnats.Cluster, times int) {
	js := c.JetStream(t)
	s := stream(t, js, "writers", jetstream.LimitsPolicy)
	writers := []jetstream.JetStream{c.JetStream(t), c.JetStream(t), c.JetStream(t)}
	races, codes := 200*times, map[jetstream.ErrorCode]int{}
	for i := range races {
		a := attempt{fmt.Sprintf("writers.x.%d", i), jetstream.WithExpectLastSequencePerSubject(0)}
		taken := 0
		for _, err := range race(t, writers, a, a, a) {
			if codes[code(err)]++; err == nil {
				taken++
			} else if !refused(err) {
				t.Fatal(err)
			}
		}
		if taken != 1 {
			t.Errorf("race %d: %d records were taken", i, taken)
		}
	}
	info, err := s.Info(t.Context())
	check(t, err)
	if info.State.Msgs != uint64(races) { //nolint:gosec // Above 0.
		t.Errorf("the log has %d records of %d races", info.State.Msgs, races)
	}
	t.Logf("%d races by code: %v", races, codes)
}

// take fetches one message.
func take(t *testing.T, c jetstream.Consumer) jetstream.Msg {
	t.Helper()
	batch, err := c.Fetch(1, jetstream.FetchMaxWait(patience))
	check(t, err)
	for m := range batch.Messages() {
		return m
	}
	t.Fatalf("no message came: %v", batch.Error())
	return nil
}

// twice delivers a message twice, since the first holder is late.
func twice(t *testing.T, c jetstream.Consumer) (old, held jetstream.Msg) {
	t.Helper()
	old, held = take(t, c), take(t, c)
	if of, err := held.Metadata(); err != nil || of.NumDelivered != 2 {
		t.Fatalf("delivered %+v, %v", of, err)
	}
	return old, held
}

// lateAck: the ack of an old delivery ends the lease of the new holder, who is told nothing of it: its own ack
// succeeds as well, and the message is not delivered again.
func lateAck(t *testing.T, c *testnats.Cluster, _ int) {
	js := c.JetStream(t)
	s := stream(t, js, "late", jetstream.LimitsPolicy)
	consumer := durable(t, s, ackWait)
	_, err := js.Publish(t.Context(), "late.t.a", nil)
	check(t, err)
	old, held := twice(t, consumer)
	check(t, old.DoubleAck(t.Context()))
	info, err := consumer.Info(t.Context())
	check(t, err)
	if info.NumAckPending != 0 || info.AckFloor.Stream != 1 {
		t.Errorf("after the late ack %d messages are held, and the floor is %d", info.NumAckPending, info.AckFloor.Stream)
	}
	check(t, held.DoubleAck(t.Context()))
	batch, err := consumer.Fetch(1, jetstream.FetchMaxWait(2*ackWait))
	check(t, err)
	for m := range batch.Messages() {
		t.Errorf("%s is delivered again", m.Subject())
	}
	if info, err := s.Info(t.Context()); err != nil || info.State.Msgs != 1 {
		t.Errorf("the log has %v, %v", info, err)
	}
}

// lateAckOfWorkQueue: in a work queue it deletes the message that the new holder has.
func lateAckOfWorkQueue(t *testing.T, c *testnats.Cluster, _ int) {
	js := c.JetStream(t)
	s := stream(t, js, "queue", jetstream.WorkQueuePolicy)
	consumer := durable(t, s, ackWait)
	_, err := js.Publish(t.Context(), "queue.t.a", nil)
	check(t, err)
	old, held := twice(t, consumer)
	check(t, old.DoubleAck(t.Context()))
	testwait.Until(t, "the queue to forget the message", func() bool {
		info, err := s.Info(t.Context())
		return err == nil && info.State.Msgs == 0
	})
	check(t, held.DoubleAck(t.Context()))
}

// workQueueTakesOneConsumer: a work queue has no second consumer of the same messages, so nobody else can read it.
func workQueueTakesOneConsumer(t *testing.T, c *testnats.Cluster, _ int) {
	s := stream(t, c.JetStream(t), "alone", jetstream.WorkQueuePolicy)
	durable(t, s, ackWait)
	_, err := s.CreateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "d", AckPolicy: jetstream.AckExplicitPolicy, FilterSubject: "alone.t.>"})
	if code(err) != 10099 && code(err) != 10100 {
		t.Errorf("a second consumer: %v", err)
	}
	t.Log(err)
}

// closedHolder: a holder whose connection closes keeps its messages until its time is over.
func closedHolder(t *testing.T, c *testnats.Cluster, _ int) {
	js := c.JetStream(t)
	s := stream(t, js, "closed", jetstream.LimitsPolicy)
	consumer := durable(t, s, ackWait)
	_, err := js.Publish(t.Context(), "closed.t.a", nil)
	check(t, err)
	holder := c.Connect(t)
	other, err := jetstream.New(holder)
	check(t, err)
	theirs, err := other.Consumer(t.Context(), "closed", "c")
	check(t, err)
	take(t, theirs)
	begin := time.Now()
	holder.Close()
	take(t, consumer)
	after := time.Since(begin)
	t.Logf("it was delivered again after %.2f s, with an AckWait of %.2f s", after.Seconds(), ackWait.Seconds())
	if after < ackWait*8/10 {
		t.Errorf("a closed connection gives its messages free after %v", after)
	}
}

// pipelineUnderKill: 5,000 records, each first on its own subject, and 2,500 puts, each with an ID, of which a third are
// on their way when the leader is killed. What is not acknowledged is sent again, with the same expectation and the same ID.
// In the end the fold has each once.
func pipelineUnderKill(t *testing.T, c *testnats.Cluster, times int) {
	for i := range times {
		t.Run(strconv.Itoa(i), func(t *testing.T) { pipeline(t, c, 5000, 2500) })
	}
}

type record struct {
	subject string
	expect  jetstream.PublishOpt
	future  jetstream.PubAckFuture
	there   bool // It was refused since it is there: its ack was lost.
}

func pipeline(t *testing.T, c *testnats.Cluster, records, puts int) {
	js := c.JetStream(t, jetstream.WithPublishAsyncMaxPending(20_000), jetstream.WithPublishAsyncTimeout(3*time.Second))
	s := stream(t, js, "pipe", jetstream.LimitsPolicy)
	var all []*record
	for i := range records {
		all = append(all, &record{subject: fmt.Sprintf("pipe.x.%d", i), expect: jetstream.WithExpectLastSequencePerSubject(0)})
		if i%(records/puts) == 0 {
			all = append(all, &record{subject: fmt.Sprintf("pipe.t.%d", i), expect: jetstream.WithMsgID(strconv.Itoa(i))})
		}
	}
	leader, killed := c.Leader(js, "pipe"), time.Time{}
	retries, codes, twins := 0, map[jetstream.ErrorCode]int{}, 0
	for open, round := all, 0; len(open) > 0; round++ {
		for i, r := range open {
			if round == 0 && i == len(all)*2/3 {
				c.Kill(leader)
				killed = time.Now()
			}
			var err error
			if r.future, err = js.PublishAsync(r.subject, nil, r.expect, jetstream.WithRetryAttempts(0)); err != nil {
				r.future = nil // No connection.
			}
		}
		var again []*record
		for _, r := range open {
			ack, err := (*jetstream.PubAck)(nil), errors.New("not sent")
			if r.future != nil {
				ack, err = outcome(t, r.future)
			}
			if code(err) > 1 {
				codes[code(err)]++
			}
			switch {
			case err == nil:
				if ack.Duplicate {
					twins++
				}
			case code(err) == stale && round > 0: // One that is in flight may still be lost: that is no proof.
				r.there = true
			default:
				again = append(again, r)
			}
		}
		if open = again; len(open) > 0 {
			retries += len(open)
			testwait.Elapse(50 * time.Millisecond) // The pace of those who retry.
		}
		if time.Since(killed) > time.Minute {
			t.Fatalf("%d records are not taken: %v", len(open), codes)
		}
	}
	t.Logf("all was taken %.1f s after the kill, after %d retries; %d were told as duplicates; by code: %v", time.Since(killed).Seconds(), retries, twins, codes)
	c.Restart(leader)
	count := fold(t, s)
	doubles, losses, lost := 0, 0, 0
	for _, r := range all {
		switch n := count[r.subject]; {
		case n == 0:
			losses++
		case n > 1:
			doubles++
		}
		if r.there {
			lost++
		}
	}
	t.Logf("in the fold: %d doubles, %d losses; %d were there although no ack had come", doubles, losses, lost)
	if doubles != 0 || losses != 0 || len(count) != len(all) {
		t.Errorf("of %d records: %d doubles, %d losses, and the log has %d subjects", len(all), doubles, losses, len(count))
	}
}

// fold counts the messages of each subject as an ordered consumer reads them.
func fold(t *testing.T, s jetstream.Stream) map[string]int {
	t.Helper()
	var info *jetstream.StreamInfo
	var consumer jetstream.Consumer
	testwait.Until(t, "the stream to answer after the restart", func() bool {
		var err error
		if info, err = s.Info(t.Context()); err == nil {
			consumer, err = s.OrderedConsumer(t.Context(), jetstream.OrderedConsumerConfig{})
		}
		return err == nil
	})
	messages, err := consumer.Messages()
	check(t, err)
	defer messages.Stop()
	count, last := map[string]int{}, uint64(0)
	for last < info.State.LastSeq {
		m, err := messages.Next(jetstream.NextMaxWait(patience))
		check(t, err)
		of, err := m.Metadata()
		check(t, err)
		if of.Sequence.Stream <= last {
			t.Fatalf("message %d after %d", of.Sequence.Stream, last)
		}
		last = of.Sequence.Stream
		count[m.Subject()]++
	}
	return count
}

// restartWithPending: 1,000 messages are held when the server that leads their consumer is killed. They are delivered
// again, to the last, while it is away, and again after it has come back.
func restartWithPending(t *testing.T, c *testnats.Cluster, times int) {
	for i := range times {
		t.Run(strconv.Itoa(i), func(t *testing.T) { pending(t, c) })
	}
}

func pending(t *testing.T, c *testnats.Cluster) {
	const held = 1000
	js := c.JetStream(t)
	s := stream(t, js, "pending", jetstream.LimitsPolicy)
	consumer := durable(t, s, 2*ackWait)
	for i := range held {
		_, err := js.PublishAsync(fmt.Sprintf("pending.t.%d", i), nil)
		check(t, err)
	}
	<-js.PublishAsyncComplete()
	if got := gather(t, consumer, held, false); len(got) != held {
		t.Fatalf("%d messages came", len(got))
	}
	leader := c.ConsumerLeader(consumer)
	c.Kill(leader)
	begin := time.Now()
	away := gather(t, consumer, held, false)
	t.Logf("all %d were held again %.1f s after the kill", len(away), time.Since(begin).Seconds())
	c.Restart(leader)
	begin = time.Now()
	back := gather(t, consumer, held, true)
	t.Logf("all %d were acknowledged %.1f s after the restart", len(back), time.Since(begin).Seconds())
	if len(away) != held || len(back) != held {
		t.Errorf("of %d messages %d came while the server was away, and %d after it was back", held, len(away), len(back))
	}
	testwait.Until(t, "the consumer to have nothing open", func() bool {
		info, err := consumer.Info(t.Context())
		return err == nil && info.NumAckPending == 0 && info.NumPending == 0
	})
}

// gather fetches messages until n different ones have come, and acknowledges them if ack is set.
func gather(t *testing.T, c jetstream.Consumer, n int, ack bool) map[string]bool {
	t.Helper()
	got := map[string]bool{}
	for end := time.Now().Add(patience); len(got) < n && time.Now().Before(end); {
		batch, err := c.Fetch(n, jetstream.FetchMaxWait(time.Second))
		if err != nil {
			if errors.Is(err, nats.ErrConnectionClosed) {
				t.Fatal(err)
			}
			testwait.Elapse(10 * time.Millisecond) // It has no leader.
			continue
		}
		for m := range batch.Messages() {
			if ack {
				once, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				err := m.DoubleAck(once)
				cancel()
				if err != nil {
					continue // It comes again.
				}
			}
			got[m.Subject()] = true
		}
	}
	return got
}
