package worklog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func wanted() Settings {
	return Settings{Stream: "S", Replicas: 1, MaxBytes: 1 << 30, MaxSize: 1000, AckWait: time.Second, Held: 10}
}

// TestDifferences: each setting that differs is named, and none that agrees.
func TestDifferences(t *testing.T) {
	s := wanted()
	want, of := s.stream(), s.consumer()
	if d := streamDifferences(&want, &want); d != nil {
		t.Error(d)
	}
	if d := consumerDifferences(&of, &of); d != nil {
		t.Error(d)
	}
	have := jetstream.StreamConfig{
		Subjects: []string{"a", "b"}, Retention: jetstream.WorkQueuePolicy, Storage: jetstream.MemoryStorage, Replicas: 3, MaxMsgs: 1,
		MaxMsgsPerSubject: 1, MaxAge: time.Hour, Duplicates: time.Second, NoAck: true, Sealed: true, DenyPurge: true,
	}
	got := strings.Join(streamDifferences(&have, &want), ", ")
	if text := "subjects is a b and not S.>, retention is WorkQueue and not Limits, discard is DiscardOld and not DiscardNew, storage is Memory and not File, " +
		"replicas is 3 and not 1, max_bytes is 0 and not 1073741824, max_msg_size is 0 and not 1000, max_msgs is 1 and not -1, max_msgs_per_subject is 1 and not -1, " +
		"max_age is 1h0m0s and not 0s, duplicate_window is 1s and not 2m0s, no_ack is true and not false, sealed is true and not false, deny_purge is true and not false"; got != text {
		t.Errorf("%s\nwant %s", got, text)
	}
	other := jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverNewPolicy, AckPolicy: jetstream.AckAllPolicy, AckWait: time.Hour, MaxDeliver: 3, MaxAckPending: 1,
		BackOff: []time.Duration{time.Second}, HeadersOnly: true,
	}
	got = strings.Join(consumerDifferences(&other, &of), ", ")
	if text := "filter_subject is empty and not S.t.>, deliver_policy is new and not all, ack_policy is AckAll and not AckExplicit, ack_wait is 1h0m0s and not 1s, " +
		"max_deliver is 3 and not -1, max_ack_pending is 1 and not 10, backoff is [1s] and not [], headers_only is true and not false"; got != text {
		t.Errorf("%s\nwant %s", got, text)
	}
}

func TestSupports(t *testing.T) {
	for version, want := range map[string]string{
		"2.11.0": "", "2.11.0-preview.1": "", "2.15.2": "", "3.0.0": "", "own build": "", "": "",
		"2.10.29":     "the NATS server is version 2.10.29, and records need 2.11.0 or a later one: upgrade the server",
		"2.9.10-RC.1": "the NATS server is version 2.9.10-RC.1, and records need 2.11.0 or a later one: upgrade the server",
		"1.4.1":       "the NATS server is version 1.4.1, and records need 2.11.0 or a later one: upgrade the server",
	} {
		got := ""
		if err := supports(version); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", version, got, want)
		}
	}
}

// TestExplanation has the errors that no server of these tests gives.
func TestExplanation(t *testing.T) {
	for name, c := range map[string]struct {
		err, last error
		want      string
	}{
		"account":          {jetstream.ErrJetStreamNotEnabledForAccount, nil, "the account of this user has no JetStream: enable it for the account, or use store: memory"},
		"API":              {jetstream.ErrJetStreamNotEnabled, nil, "the NATS server has no JetStream: start it with -js (pegasus run with --jetstream DIR), or use store: memory"},
		"silent":           {context.DeadlineExceeded, nil, "the NATS server does not answer: check that it is there, has JetStream on every server, and that most of its replicas run"},
		"silent elsewhere": {nats.ErrTimeout, fmt.Errorf("%w: other", nats.ErrPermissionViolation), "the NATS server does not answer: check that it is there, has JetStream on every server, and that most of its replicas run"},
		"deleted":          {jetstream.ErrStreamNotFound, nil, "the stream was deleted, and its tasks with it, or it has no leader now: if nats stream info does not find it, open the space again, which creates it, and put the tasks again"},
		"another":          {errors.New("another"), nil, ""},
	} {
		if got := explanation(c.err, c.last, "S", 1, 2); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
