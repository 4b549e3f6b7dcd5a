// Package worklog keeps the logs of a space in one stream of JetStream: the log of each account on a subject of its
// own. Nobody appends to a log who does not know its last message, so it has one writer at a time. The package
// does not know what the messages say.
package worklog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// The errors that a caller can tell apart.
var (
	ErrFenced = errors.New("another process has appended to the log")
	ErrGone   = errors.New("the stream is not there")
)

// Log is the open stream of a space. Its methods may be called from any goroutine. Without a deadline of their context
// they wait five seconds for each answer.
type Log struct {
	settings Settings
	conn     *nats.Conn
	js       jetstream.JetStream
	stream   jetstream.Stream
}

// Conn is a connection that has JetStream.
type Conn interface{ NATS() *nats.Conn }

// MinPayload is the least max_payload of a server, in bytes.
const MinPayload = 64 << 10

// Open creates the stream that the settings ask for, or takes the one that is there. It changes nothing that is
// there: if a setting differs, it names each difference.
func Open(ctx context.Context, conn *nats.Conn, settings Settings) (*Log, error) {
	l := &Log{settings: settings, conn: conn}
	if err := checkVersion(conn.ConnectedServerVersion()); err != nil {
		return nil, fmt.Errorf("work: stream %s: %w", settings.Stream, err)
	}
	if n := conn.MaxPayload(); n < MinPayload {
		return nil, fmt.Errorf("work: stream %s: the NATS server takes messages of %d bytes at most: set its max_payload to %d or more", settings.Stream, n, MinPayload)
	}
	var err error
	if l.js, err = jetstream.New(conn); err != nil {
		return nil, l.explain(err)
	}
	err = l.askServer(ctx, func(ctx context.Context) error {
		if l.stream, err = l.js.CreateStream(ctx, settings.streamConfig()); errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			l.stream, err = l.js.Stream(ctx, settings.Stream)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	have, want := l.stream.CachedInfo().Config, settings.streamConfig()
	if different := streamDifferences(&have, &want); different != nil {
		return nil, fmt.Errorf("work: stream %s exists with other settings: %s: delete the stream, change it, or give the space another stream",
			settings.Stream, strings.Join(different, ", "))
	}
	return l, nil
}

// Remove deletes the stream of a space, with all its tasks and results. It refuses a stream that no space has made.
func Remove(ctx context.Context, conn *nats.Conn, stream string) (messages uint64, err error) {
	l := &Log{settings: Settings{Stream: stream}, conn: conn}
	if l.js, err = jetstream.New(conn); err != nil {
		return 0, l.explain(err)
	}
	if l.stream, err = l.js.Stream(ctx, stream); errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrInvalidStreamName) {
		return 0, fmt.Errorf("work: there is no stream %q: pegasus work status and nats stream ls name those that are there", stream)
	}
	if err != nil {
		return 0, l.explain(err)
	}
	info := l.stream.CachedInfo()
	have := l.settings
	have.Replicas, have.MaxBytes = info.Config.Replicas, info.Config.MaxBytes
	want := have.streamConfig()
	if different := streamDifferences(&info.Config, &want); different != nil {
		return 0, fmt.Errorf("work: stream %s does not belong to a space, and stays: %s", stream, strings.Join(different, ", "))
	}
	if err := l.js.DeleteStream(ctx, stream); err != nil {
		return 0, l.explain(err)
	}
	return info.State.Msgs, nil
}

// Name is that of the stream.
func (l *Log) Name() string { return l.settings.Stream }

func (l *Log) subjectOf(of string) string { return l.settings.Stream + "." + of }

// askServer asks the server, again if no answer comes: a stream without a leader does not answer, and one that was just
// created on a cluster has none yet.
func (l *Log) askServer(ctx context.Context, question func(context.Context) error) error {
	var err error
	for range attempts {
		one, cancel := context.WithTimeout(ctx, askPatience)
		err = question(one)
		cancel()
		if err == nil || ctx.Err() != nil || !isSilent(err) {
			break
		}
	}
	if err != nil {
		return l.explain(err)
	}
	return nil
}

// How often a question is asked, and how long one waits for each answer.
const (
	attempts    = 5
	askPatience = 2 * time.Second
)

func isSilent(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, jetstream.ErrNoStreamResponse)
}

// The pauses between two attempts to append, and how long one waits for an answer.
const (
	firstPause = 5 * time.Millisecond
	lastPause  = 250 * time.Millisecond
	patience   = time.Second
	mostBehind = 20 // answers that are older than what was appended
)

// Append appends a message to the log of a subject, below the stream's name, if the last message of that log has the
// sequence on; 0: it has none. It returns the sequence of the message. It tries until the server has taken or refused
// the message, or ctx ends, and calls again with each reason for which it has to try again. [ErrFenced] means that
// another message was appended. A message with the same body counts as this one: no two bodies may be the same.
func (l *Log) Append(ctx context.Context, subject string, on uint64, body []byte, again func(error)) (seq uint64, err error) {
	behind := 0
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		seq, err := l.append(ctx, subject, on, body)
		switch {
		case err == nil:
			return seq, nil
		case isCode(err, jetstream.JSErrCodeStreamWrongLastSequence):
			last, have, lastErr := l.Last(ctx, subject)
			switch {
			case lastErr != nil || last == on: // It is stale.
			case last < on && behind < mostBehind: // A server answers that was cut off, or the stream is another one.
				behind++
			case bytes.Equal(have, body):
				return last, nil // It was taken before, and the answer was lost.
			default:
				return 0, fmt.Errorf("work: stream %s: %w: the last message on %s is %d and not %d", l.settings.Stream, ErrFenced, subject, last, on)
			}
		case errors.Is(err, jetstream.ErrNoStreamResponse) && l.gone(ctx):
			return 0, fmt.Errorf("%w: %w", l.explain(err), ErrGone)
		case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrMaxPayload), ctx.Err() != nil:
			return 0, l.explain(err)
		}
		if again != nil {
			again(l.explain(err))
		}
		select {
		case <-ctx.Done():
			return 0, l.explain(context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

// gone reports whether the servers know that there is no such stream. It may have no leader as well.
func (l *Log) gone(ctx context.Context) bool {
	_, err := l.stream.Info(ctx)
	return errors.Is(err, jetstream.ErrStreamNotFound)
}

func (l *Log) append(ctx context.Context, subject string, on uint64, body []byte) (uint64, error) {
	one, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ack, err := l.js.Publish(one, l.subjectOf(subject), body, jetstream.WithExpectLastSequencePerSubject(on), jetstream.WithRetryAttempts(0))
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

// Codes of the server for which the client has no name.
const (
	codeFull    = 10077 // the stream has reached a limit
	codeNoSpace = 10047 // the disk or the account has
)

func isCode(err error, code jetstream.ErrorCode) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == code
}

// Last returns the last message of the log of a subject; 0: it has none. It may be an old one if a server answers
// that does not lead any more; behind a [Log.Barrier] it is not older than that.
func (l *Log) Last(ctx context.Context, subject string) (seq uint64, body []byte, err error) {
	err = l.askServer(ctx, func(ctx context.Context) error {
		m, err := l.stream.GetLastMsgForSubject(ctx, l.subjectOf(subject))
		if err == nil {
			seq, body = m.Sequence, m.Data
		} else if errors.Is(err, jetstream.ErrMsgNotFound) {
			err = nil
		}
		return err
	})
	return seq, body, err
}

// Read hands each message of the log of a subject to take that is behind the sequence after, in their order, up to
// the one that is the last when it is called, and returns the sequence of that.
func (l *Log) Read(ctx context.Context, subject string, after uint64, take func(seq uint64, body []byte) error) (last uint64, err error) {
	last, _, err = l.Last(ctx, subject)
	if err != nil || last <= after {
		return max(last, after), err
	}
	var c jetstream.Consumer
	err = l.askServer(ctx, func(ctx context.Context) (err error) {
		c, err = l.js.OrderedConsumer(ctx, l.settings.Stream, jetstream.OrderedConsumerConfig{
			FilterSubjects: []string{l.subjectOf(subject)}, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: after + 1,
		})
		return err
	})
	if err != nil {
		return 0, err
	}
	messages, err := c.Messages()
	if err != nil {
		return 0, l.explain(err)
	}
	defer messages.Stop()
	for {
		m, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return 0, l.explain(err)
		}
		meta, err := m.Metadata()
		if err != nil {
			return 0, l.explain(err)
		}
		seq := meta.Sequence.Stream
		if seq > last {
			return last, nil // The last one was purged meanwhile.
		}
		if err := take(seq, m.Data()); err != nil {
			return 0, fmt.Errorf("work: stream %s: message %d: %w", l.settings.Stream, seq, err)
		}
		if seq == last {
			return last, nil
		}
	}
}

// barrier is the subject of messages that say nothing.
const barrier = "barrier"

// Barrier appends a message that says nothing, and then lists the subjects that match a filter and have messages, no
// older than that message. So a server is not believed that was cut off and does not know it.
func (l *Log) Barrier(ctx context.Context, filter string) (subjects []string, err error) {
	var ack *jetstream.PubAck
	err = l.askServer(ctx, func(ctx context.Context) (err error) {
		ack, err = l.js.Publish(ctx, l.subjectOf(barrier), nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	subjects, seq, err := l.Subjects(ctx, filter)
	switch {
	case err != nil:
		return nil, err
	case seq < ack.Sequence:
		return nil, fmt.Errorf("work: stream %s: a server says that message %d is the last one, and %d was taken: check whether it is cut off from the others", l.settings.Stream, seq, ack.Sequence)
	}
	return subjects, l.Purge(ctx, barrier, ack.Sequence)
}

// Subjects lists the subjects that match a filter and have messages, below the stream's name, and the last sequence of all.
func (l *Log) Subjects(ctx context.Context, filter string) (subjects []string, seq uint64, err error) {
	info, err := l.info(ctx, jetstream.WithSubjectFilter(l.subjectOf(filter)))
	if err != nil {
		return nil, 0, err
	}
	for s := range info.State.Subjects {
		subjects = append(subjects, strings.TrimPrefix(s, l.settings.Stream+"."))
	}
	return subjects, info.State.LastSeq, nil
}

// Purge removes the messages of a subject that are before a sequence.
func (l *Log) Purge(ctx context.Context, subject string, before uint64) error {
	return l.askServer(ctx, func(ctx context.Context) error {
		return l.stream.Purge(ctx, jetstream.WithPurgeSubject(l.subjectOf(subject)), jetstream.WithPurgeSequence(before))
	})
}

func (l *Log) info(ctx context.Context, options ...jetstream.StreamInfoOpt) (info *jetstream.StreamInfo, err error) {
	err = l.askServer(ctx, func(ctx context.Context) (err error) {
		info, err = l.stream.Info(ctx, options...)
		return err
	})
	return info, err
}

// Size is how many messages and bytes the stream has.
func (l *Log) Size(ctx context.Context) (messages, bytes uint64, err error) {
	info, err := l.info(ctx)
	if err != nil {
		return 0, 0, err
	}
	return info.State.Msgs, info.State.Bytes, nil
}

// explain says what to do about an error of the client.
func (l *Log) explain(err error) error {
	text := explanation(err, l.conn.LastError(), l.settings.Stream, l.conn.MaxPayload())
	if text == "" {
		return fmt.Errorf("work: stream %s: %w", l.settings.Stream, err)
	}
	return fmt.Errorf("work: stream %s: %s: %w", l.settings.Stream, text, err)
}

// explanation is what failed and what to do, or nothing. A server without JetStream, and one that does not permit a
// request, may leave it without an answer; a refusal is the last error of the connection.
func explanation(err, last error, stream string, payload int64) string {
	silent := isSilent(err) && !errors.Is(err, jetstream.ErrNoStreamResponse)
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
	case isCode(err, codeFull), isCode(err, codeNoSpace):
		return "the log is full: have its tasks done, raise log.most of the section work, or the limits of the account and the disk"
	case silent:
		return "the NATS server does not answer: check that it is there, has JetStream on every server, and that most of its replicas run"
	}
	return ""
}
