// Package worklog opens the log of a space in JetStream: one stream with limits retention, and the durable consumer that
// hands out its tasks. What it decides is in functions of values alone; Open asks the server. Nothing uses it yet.
package worklog

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Log is the open log of a space. Its methods may be called from any goroutine.
type Log struct {
	settings Settings
	conn     *nats.Conn
	js       jetstream.JetStream
}

// Open creates the stream and the consumer that the settings ask for, or takes those that are there. It changes
// nothing that is there: if a setting differs, it names each difference. Without a deadline of ctx it waits five seconds for each answer.
func Open(ctx context.Context, conn *nats.Conn, settings Settings) (*Log, error) {
	l := &Log{settings: settings, conn: conn}
	if err := supports(conn.ConnectedServerVersion()); err != nil {
		return nil, fmt.Errorf("work: stream %s: %w", settings.Stream, err)
	}
	var err error
	if l.js, err = jetstream.New(conn); err != nil {
		return nil, l.explain(err)
	}
	stream, err := l.stream(ctx)
	if err != nil {
		return nil, l.explain(err)
	}
	have, want := stream.CachedInfo().Config, settings.stream()
	if different := streamDifferences(&have, &want); different != nil {
		return nil, fmt.Errorf("work: stream %s exists with other settings: %s: delete the stream, change it, or give the space another stream",
			settings.Stream, strings.Join(different, ", "))
	}
	consumer, err := l.consumer(ctx, stream)
	if err != nil {
		return nil, l.explain(err)
	}
	of, wanted := consumer.CachedInfo().Config, settings.consumer()
	if different := consumerDifferences(&of, &wanted); different != nil {
		return nil, fmt.Errorf("work: consumer %s of stream %s exists with other settings: %s: delete the consumer, which loses no task, or change it",
			consumerName, settings.Stream, strings.Join(different, ", "))
	}
	return l, nil
}

// stream creates the stream, or finds it if it is there, also with other settings.
func (l *Log) stream(ctx context.Context) (jetstream.Stream, error) {
	s, err := l.js.CreateStream(ctx, l.settings.stream())
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return l.js.Stream(ctx, l.settings.Stream)
	}
	return s, err
}

func (l *Log) consumer(ctx context.Context, stream jetstream.Stream) (jetstream.Consumer, error) {
	c, err := stream.CreateConsumer(ctx, l.settings.consumer())
	if errors.Is(err, jetstream.ErrConsumerExists) {
		return stream.Consumer(ctx, consumerName)
	}
	return c, err
}

// Append adds a message to the log on a subject below the stream's name.
func (l *Log) Append(ctx context.Context, subject string, body []byte, options ...jetstream.PublishOpt) (seq uint64, err error) {
	ack, err := l.js.Publish(ctx, l.settings.Stream+"."+subject, body, options...)
	if err != nil {
		return 0, l.explain(err)
	}
	return ack.Sequence, nil
}

// explain says what to do about an error of the client.
func (l *Log) explain(err error) error {
	text := explanation(err, l.conn.LastError(), l.settings.Stream, l.conn.MaxPayload(), l.settings.MaxSize)
	if text == "" {
		return fmt.Errorf("work: stream %s: %w", l.settings.Stream, err)
	}
	return fmt.Errorf("work: stream %s: %s: %w", l.settings.Stream, text, err)
}

// explanation is what failed and what to do, or nothing. A server without JetStream, and one that does not permit a
// request, may leave it without an answer; a refusal is the last error of the connection.
func explanation(err, last error, stream string, payload int64, size int32) string {
	silent := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout)
	switch {
	case silent && last != nil && errors.Is(last, nats.ErrPermissionViolation) && strings.Contains(last.Error(), stream):
		return fmt.Sprintf("the NATS server does not permit this user to use it: permit the user to publish to $JS.API.> and %s.>, and to subscribe to _INBOX.> (%v)", stream, last)
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, nats.ErrNoResponders) && !errors.Is(err, jetstream.ErrNoStreamResponse):
		return "the NATS server has no JetStream: start it with -js (pegasus run with --jetstream DIR), or use store: memory"
	case errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return "the account of this user has no JetStream: enable it for the account, or use store: memory"
	case errors.Is(err, jetstream.ErrStreamNotFound), errors.Is(err, jetstream.ErrNoStreamResponse):
		return "the stream was deleted, and its tasks with it, or it has no leader now: if nats stream info does not find it, open the space again, which creates it, and put the tasks again"
	case errors.Is(err, nats.ErrMaxPayload):
		return fmt.Sprintf("a message is larger than the %d bytes that the NATS server takes: make the argument or the result smaller, or raise max_payload of the server", payload)
	case errors.Is(err, jetstream.ErrStreamMessageExceedsMaximum):
		return fmt.Sprintf("a message is larger than the %d bytes that the stream takes: make the argument or the result smaller", size)
	case silent:
		return "the NATS server does not answer: check that it is there, has JetStream on every server, and that most of its replicas run"
	}
	return ""
}
