package bus_test

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// relay passes bytes between clients and a server, until it is told to swallow
// them: then both ends see a link that is up and dead.
type relay struct {
	address string
	silent  atomic.Bool
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	r := &relay{}
	var mu sync.Mutex
	var conns []net.Conn
	var wg sync.WaitGroup
	r.address = listen(t, func(client net.Conn) {
		server, err := net.Dial("tcp", to)
		if err != nil {
			t.Error(err)
			return
		}
		mu.Lock()
		conns = append(conns, client, server)
		mu.Unlock()
		wg.Go(func() { r.pass(server, client) })
		wg.Go(func() { r.pass(client, server) })
	})
	t.Cleanup(func() {
		mu.Lock()
		for _, c := range conns {
			_ = c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return r
}

func (r *relay) silence() { r.silent.Store(true) }

func (r *relay) pass(to io.Writer, from io.Reader) {
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if !r.silent.Load() {
			_, _ = to.Write(buf[:n])
		}
	}
}

// startWithPermissions runs a server whose user "member" may use "own.>" only.
func startWithPermissions(t *testing.T) (url string) {
	t.Helper()
	own := &server.SubjectPermission{Allow: []string{"own.>"}}
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, NoSystemAccount: true,
		Users: []*server.User{{Username: "member", Password: "pw", Permissions: &server.Permissions{Publish: own, Subscribe: own}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server did not start")
	}
	return s.ClientURL()
}
