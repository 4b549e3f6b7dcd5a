package worklog

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// TestOpen creates the stream, takes it as it is a second time, and refuses another one.
func TestOpen(t *testing.T) {
	conn, s := serve(t, usual), wanted()
	for range 2 {
		_, err := Open(t.Context(), conn, s)
		check(t, err)
	}
	other := s
	other.MaxBytes = -1
	_, err := Open(t.Context(), conn, other)
	refused(t, err, "work: stream S exists with other settings: max_bytes is 1073741824 and not -1: delete the stream, change it, or give the space another stream")
	js, err := jetstream.New(conn)
	check(t, err)
	stream, err := js.Stream(t.Context(), "S")
	check(t, err)
	if info := stream.CachedInfo(); info.Config.MaxBytes != 1<<30 {
		t.Errorf("a refusal has changed the stream: %+v", info)
	}
	_, err = Open(t.Context(), serve(t, func(o *server.Options) { o.MaxPayload = 2000 }), s)
	refused(t, err, "work: stream S: the NATS server takes messages of 2000 bytes at most: set its max_payload to 65536 or more")
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

// TestAppend: a log has one writer at a time, and a message that was taken before counts once.
func TestAppend(t *testing.T) {
	l := open(t, serve(t, usual))
	one, err := l.Append(t.Context(), "a.m", 0, []byte("one"), nil)
	check(t, err)
	if seq, err := l.Append(t.Context(), "a.n", 0, []byte("other"), nil); err != nil || seq != one+1 {
		t.Error("the log of another subject:", seq, err)
	}
	if seq, err := l.Append(t.Context(), "a.m", 0, []byte("one"), nil); err != nil || seq != one {
		t.Error("the same message again:", seq, err)
	}
	_, err = l.Append(t.Context(), "a.m", 0, []byte("two"), nil)
	if !errors.Is(err, ErrFenced) {
		t.Error(err)
	}
	refused(t, err, "work: stream S: another process has appended to the log: the last message on a.m is 1 and not 0")
	two, err := l.Append(t.Context(), "a.m", one, []byte("two"), nil)
	check(t, err)
	var read []string
	last, err := l.Read(t.Context(), "a.m", 0, func(seq uint64, body []byte) error {
		read = append(read, fmt.Sprint(seq, string(body)))
		return nil
	})
	if check(t, err); last != two || fmt.Sprint(read) != "[1one 3two]" {
		t.Error(last, read)
	}
	if last, err = l.Read(t.Context(), "a.m", two, nil); last != two || err != nil {
		t.Error("nothing is behind the last one:", last, err)
	}
	if last, err = l.Read(t.Context(), "a.x", 0, nil); last != 0 || err != nil {
		t.Error("an empty log:", last, err)
	}
	_, err = l.Read(t.Context(), "a.m", 0, func(uint64, []byte) error { return errors.New("it is damaged") })
	refused(t, err, "work: stream S: message 1: it is damaged")
	subjects, err := l.Barrier(t.Context(), "a.*")
	slices.Sort(subjects)
	if check(t, err); fmt.Sprint(subjects) != "[a.m a.n]" {
		t.Error(subjects)
	}
	check(t, l.Purge(t.Context(), "a.m", two))
	messages, bytes, err := l.Size(t.Context())
	if check(t, err); messages != 3 || bytes == 0 { // With the last of a.m, a.n and of the barriers.
		t.Error(messages, bytes)
	}
}

// TestAppendBehind: a server that says that the last message is an older one is not believed at once.
func TestAppendBehind(t *testing.T) {
	l := open(t, serve(t, usual))
	one, err := l.Append(t.Context(), "a.m", 0, []byte("one"), nil)
	check(t, err)
	three, err := l.Append(t.Context(), "a.m", one+1, []byte("three"), func(error) {
		_, err := l.Append(t.Context(), "a.m", one, []byte("two"), nil)
		check(t, err)
	})
	if err != nil || three != one+2 {
		t.Error(three, err)
	}
}

// TestAppendGoesOn: a full log and a server that is away are told, and waited for.
func TestAppendGoesOn(t *testing.T) {
	conn := serve(t, usual)
	s := wanted()
	s.MaxBytes = 2000
	l, err := Open(t.Context(), conn, s)
	check(t, err)
	one, err := l.Append(t.Context(), "a.m", 0, make([]byte, 1500), nil)
	check(t, err)
	told := 0
	_, err = l.Append(t.Context(), "a.n", 0, make([]byte, 1000), func(err error) {
		if told++; told == 1 {
			refused(t, err, "work: stream S: the log is full: have its tasks done, raise log.most of the section work, or the limits of the account and the disk: "+
				"nats: nats: API error: code=503 err_code=10077 description=maximum bytes exceeded")
			check(t, l.Purge(t.Context(), "a.m", one+1))
		}
	})
	if check(t, err); told == 0 {
		t.Error("nobody was told")
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = l.Append(ctx, "a.x", 0, make([]byte, 1500), func(error) { cancel() })
	refused(t, err, "work: stream S: context canceled")
}

// TestAppendRefused: what does not go away by waiting is an error.
func TestAppendRefused(t *testing.T) {
	conn := serve(t, func(o *server.Options) { o.MaxPayload = MinPayload })
	l := open(t, conn)
	_, err := l.Append(t.Context(), "a.m", 0, make([]byte, MinPayload+1), nil)
	refused(t, err, "work: stream S: a message is larger than the 65536 bytes that the NATS server takes: make the argument or the result smaller, or raise max_payload of the server: nats: maximum payload exceeded")
	js, err := jetstream.New(conn)
	check(t, err)
	check(t, js.DeleteStream(t.Context(), "S"))
	_, err = l.Append(t.Context(), "a.m", 0, nil, nil)
	if !errors.Is(err, ErrGone) {
		t.Error(err)
	}
}

func open(t *testing.T, conn *nats.Conn) *Log {
	t.Helper()
	l, err := Open(t.Context(), conn, wanted())
	check(t, err)
	return l
}

// TestRemove: the stream of a space is removed, and no other one.
func TestRemove(t *testing.T) {
	conn := serve(t, usual)
	l := open(t, conn)
	_, err := l.Append(t.Context(), "a.m", 0, []byte("x"), nil)
	check(t, err)
	n, err := Remove(t.Context(), conn, "S")
	if check(t, err); n != 1 {
		t.Error(n)
	}
	_, err = Remove(t.Context(), conn, "S")
	refused(t, err, `work: there is no stream "S": pegasus work status and nats stream ls name those that are there`)
	js, err := jetstream.New(conn)
	check(t, err)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders"}})
	check(t, err)
	_, err = Remove(t.Context(), conn, "ORDERS")
	refused(t, err, "work: stream ORDERS does not belong to a space, and stays: subjects is orders and not ORDERS.>, discard is DiscardOld and not DiscardNew")
}
