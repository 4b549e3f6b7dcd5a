package embedded_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/gopegasus/pegasus/embedded"
)

// TestJetStreamRestart: a server that starts again with the directory of the one before has the stream and its
// consumer: of 1,000 messages the hundred that were acknowledged are not delivered again, and the others are.
func TestJetStreamRestart(t *testing.T) {
	const all, acked = 1000, 100
	dir := filepath.Join(t.TempDir(), "made", "by it")
	first := start(t, embedded.Options{JetStream: dir})
	js := streams(t, first)
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}})
	if err != nil {
		t.Fatal(err)
	}
	consumer, err := stream.CreateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "c", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: all, AckWait: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if _, err := js.PublishAsync(fmt.Sprintf("s.%d", i), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(patience):
		t.Fatal("the messages were not stored")
	}
	if got := fetch(t, consumer, acked, true); got != acked {
		t.Fatalf("%d messages", got)
	}
	if got := fetch(t, consumer, acked, false); got != acked { // Held by nobody after the restart.
		t.Fatalf("%d messages", got)
	}
	first.Close()

	js = streams(t, start(t, embedded.Options{JetStream: dir}))
	if stream, err = js.Stream(t.Context(), "S"); err != nil {
		t.Fatal(err)
	}
	if n := stream.CachedInfo().State.Msgs; n != all {
		t.Errorf("%d messages in the stream, want %d", n, all)
	}
	if consumer, err = stream.Consumer(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	got := 0
	for deadline := time.Now().Add(patience); got < all-acked && time.Now().Before(deadline); {
		got += fetch(t, consumer, all, true)
	}
	info, err := consumer.Info(t.Context())
	if err != nil || got != all-acked || info.NumPending != 0 || info.NumAckPending != 0 {
		t.Errorf("%d messages came after the restart, want %d: %+v, %v", got, all-acked, info, err)
	}
}

func streams(t *testing.T, s *embedded.Server) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(dial(t, s.URL()))
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// fetch takes messages until there are n, or none come for a while, and acknowledges them if ack is set.
func fetch(t *testing.T, c jetstream.Consumer, n int, ack bool) (got int) {
	t.Helper()
	batch, err := c.Fetch(n, jetstream.FetchMaxWait(500*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	for m := range batch.Messages() {
		if got++; !ack {
			continue
		}
		if err := m.DoubleAck(t.Context()); err != nil {
			t.Error(err)
		}
	}
	return got
}

func TestJetStreamDirectory(t *testing.T) {
	dir := t.TempDir()
	used := filepath.Join(dir, "used")
	start(t, embedded.Options{JetStream: used})
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	odd := filepath.Join(dir, "odd")
	if err := os.Mkdir(odd, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(odd, "jetstream"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ dir, want string }{
		"in use":     {used, "embedded: JetStream directory " + used + ": another server in this or another process uses it: end that, or give another directory"},
		"a file":     {file, "embedded: JetStream directory " + file + ": there is a file where a directory has to be: give another directory, or move the file: mkdir " + file + ": not a directory"},
		"not usable": {odd, "embedded: JetStream cannot start in " + odd + ": storage directory is not a directory: make the directory readable and writable for this user, or give another one"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "in use" && runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
				t.Skip("this system has no locks of files")
			}
			for range 2 { // Nothing of the first is left.
				s, err := embedded.Start(embedded.Options{JetStream: c.dir})
				if err == nil {
					s.Close()
				}
				if err == nil || err.Error() != c.want {
					t.Errorf("got %v\nwant %s", err, c.want)
				}
			}
		})
	}
}

// TestJetStreamDirectoryWithoutPermission needs a user to whom permissions apply.
func TestJetStreamDirectoryWithoutPermission(t *testing.T) {
	dir := filepath.Join("/proc", "pegasus") // Also root cannot create it.
	if runtime.GOOS != "linux" {
		t.Skip("it needs /proc")
	}
	s, err := embedded.Start(embedded.Options{JetStream: dir})
	if err == nil {
		s.Close()
	}
	if want := "embedded: JetStream directory " + dir + " cannot be created: give a directory that this user may write to: "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v\nwant %s", err, want)
	}
	dir = "/proc/self/task" // It exists, and nobody can write there.
	s, err = embedded.Start(embedded.Options{JetStream: dir})
	if err == nil {
		s.Close()
	}
	if want := "embedded: JetStream directory " + dir + " cannot be written to: give a directory that this user may write to: "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

// TestNoJetStream: without a directory there is no JetStream.
func TestNoJetStream(t *testing.T) {
	s := start(t, embedded.Options{})
	nc := dial(t, s.URL())
	if _, err := nc.Request("$JS.API.INFO", nil, patience); err != nats.ErrNoResponders { //nolint:errorlint // It is returned as it is.
		t.Error(err)
	}
}
