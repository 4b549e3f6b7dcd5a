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
	return Settings{Stream: "S", Replicas: 1, MaxBytes: 1 << 30}
}

// TestDifferences: each setting that differs is named, and none that agrees.
func TestDifferences(t *testing.T) {
	s := wanted()
	want := s.streamConfig()
	if d := streamDifferences(&want, &want); d != nil {
		t.Error(d)
	}
	have := jetstream.StreamConfig{
		Subjects: []string{"a", "b"}, Retention: jetstream.WorkQueuePolicy, Storage: jetstream.MemoryStorage, Replicas: 3, MaxMsgs: 1,
		MaxMsgsPerSubject: 1, MaxAge: time.Hour, Duplicates: time.Second, NoAck: true, Sealed: true, DenyPurge: true,
	}
	got := strings.Join(streamDifferences(&have, &want), ", ")
	if text := "subjects is a b and not S.>, retention is WorkQueue and not Limits, discard is DiscardOld and not DiscardNew, storage is Memory and not File, " +
		"replicas is 3 and not 1, max_bytes is 0 and not 1073741824, max_msg_size is 0 and not -1, max_msgs is 1 and not -1, max_msgs_per_subject is 1 and not -1, " +
		"max_age is 1h0m0s and not 0s, duplicate_window is 1s and not 2m0s, no_ack is true and not false, sealed is true and not false, deny_purge is true and not false"; got != text {
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
		if err := checkVersion(version); err != nil {
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
		"full":             {&jetstream.APIError{ErrorCode: codeFull}, nil, "the log is full: have its tasks done, raise log.most of the section work, or the limits of the account and the disk"},
		"no space":         {&jetstream.APIError{ErrorCode: codeNoSpace}, nil, "the log is full: have its tasks done, raise log.most of the section work, or the limits of the account and the disk"},
		"another":          {errors.New("another"), nil, ""},
	} {
		if got := explanation(c.err, c.last, "S", 1); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
