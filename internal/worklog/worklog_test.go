package worklog

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// serve runs a server with JetStream, unless options say otherwise, and connects to it.
func serve(t *testing.T, change func(*server.Options)) *nats.Conn {
	t.Helper()
	options := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir()}
	change(options)
	s, err := server.NewServer(options)
	check(t, err)
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server did not start")
	}
	conn, err := nats.Connect(s.ClientURL(), nats.UserInfo("u", "p"), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	check(t, err)
	t.Cleanup(conn.Close)
	return conn
}

func usual(*server.Options) {}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func refused(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// TestOpen creates the stream and the consumer, takes them as they are a second time, and refuses others.
func TestOpen(t *testing.T) {
	conn, s := serve(t, usual), wanted()
	for range 2 {
		l, err := Open(t.Context(), conn, s)
		check(t, err)
		if _, err := l.Append(t.Context(), "t.a", []byte("x")); err != nil {
			t.Error(err)
		}
	}
	other := s
	other.MaxBytes, other.MaxSize = -1, 500
	_, err := Open(t.Context(), conn, other)
	refused(t, err, "work: stream S exists with other settings: max_bytes is 1073741824 and not -1, max_msg_size is 1000 and not 500: delete the stream, change it, or give the space another stream")
	other = s
	other.AckWait, other.Held = time.Minute, 11
	_, err = Open(t.Context(), conn, other)
	refused(t, err, "work: consumer tasks of stream S exists with other settings: ack_wait is 1s and not 1m0s, max_ack_pending is 10 and not 11: delete the consumer, which loses no task, or change it")
	js, err := jetstream.New(conn)
	check(t, err)
	stream, err := js.Stream(t.Context(), "S")
	check(t, err)
	if info := stream.CachedInfo(); info.State.Msgs != 2 || info.State.Consumers != 1 || info.Config.MaxMsgSize != 1000 {
		t.Errorf("a refusal has changed the stream: %+v", info)
	}
}

func TestNoJetStream(t *testing.T) {
	_, err := Open(t.Context(), serve(t, func(o *server.Options) { o.JetStream = false }), wanted())
	refused(t, err, "work: stream S: the NATS server has no JetStream: start it with -js (pegasus run with --jetstream DIR), or use store: memory: nats: no responders available for request")
}

func TestNoPermission(t *testing.T) {
	conn := serve(t, func(o *server.Options) {
		o.Users = []*server.User{{Username: "u", Password: "p", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Deny: []string{"$JS.API.STREAM.>"}}}}}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err := Open(ctx, conn, wanted())
	refused(t, err, "work: stream S: the NATS server does not permit this user to use it: permit the user to publish to $JS.API.> and S.>, and to subscribe to _INBOX.> "+
		`(nats: permissions violation: Permissions Violation for Publish to "$JS.API.STREAM.CREATE.S"): context deadline exceeded`)
}

func TestAppendRefused(t *testing.T) {
	conn := serve(t, func(o *server.Options) { o.MaxPayload = 2000 })
	l, err := Open(t.Context(), conn, wanted())
	check(t, err)
	_, err = l.Append(t.Context(), "t.a", make([]byte, 1001))
	refused(t, err, "work: stream S: a message is larger than the 1000 bytes that the stream takes: make the argument or the result smaller: nats: nats: API error: code=400 err_code=10054 description=message size exceeds maximum allowed")
	_, err = l.Append(t.Context(), "t.a", make([]byte, 2001))
	refused(t, err, "work: stream S: a message is larger than the 2000 bytes that the NATS server takes: make the argument or the result smaller, or raise max_payload of the server: nats: maximum payload exceeded")
	js, err := jetstream.New(conn)
	check(t, err)
	check(t, js.DeleteStream(t.Context(), "S"))
	_, err = l.Append(t.Context(), "t.a", nil)
	refused(t, err, "work: stream S: the stream was deleted, and its tasks with it, or it has no leader now: if nats stream info does not find it, open the space again, which creates it, and put the tasks again: nats: no response from stream")
}
