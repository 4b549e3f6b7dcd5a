package bustest

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/bus"
)

// Server is a NATS server without a port for the connections of one test. It works
// in a [Bubble].
type Server struct {
	tb testing.TB

	mu    sync.Mutex
	nats  *embedded.Server // nil while it is stopped.
	buses []*bus.Bus
	still chan struct{} // closed when it continues; nil unless it stands still.
}

// NewServer starts a server, which ends with the test.
func NewServer(tb testing.TB) *Server {
	tb.Helper()
	s := &Server{tb: tb}
	s.Start()
	tb.Cleanup(s.shutDown)
	return s
}

var errStopped = errors.New("the server is stopped")

// InProcessConn implements nats.InProcessConnProvider.
func (s *Server) InProcessConn() (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nats == nil {
		return nil, errStopped
	}
	conn, err := s.nats.InProcessConn()
	return &heard{Conn: conn, server: s, closed: make(chan struct{})}, err
}

// heard is a connection on which nothing comes while the server stands still.
type heard struct {
	net.Conn

	server *Server
	once   sync.Once
	closed chan struct{}
}

// Close implements net.Conn.
func (c *heard) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// Read implements net.Conn.
func (c *heard) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.server.mu.Lock()
	still := c.server.still
	c.server.mu.Unlock()
	if still != nil {
		select {
		case <-still:
		case <-c.closed:
		}
	}
	return n, err
}

// Freeze lets nothing that the server sends arrive, until what it returns is called: then
// all of it does. After about two seconds connections give the server up.
func (s *Server) Freeze() (thaw func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	still := make(chan struct{})
	s.still = still
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.still = nil
		close(still)
	}
}

// Connect adds a connection, which whoever asks for it closes.
func (s *Server) Connect(opts bus.Options) *bus.Bus {
	opts.Extra = append(opts.Extra, nats.InProcessServer(s))
	b, err := bus.Dial(context.Background(), "nats://in-process", opts)
	if err != nil {
		panic(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buses = append(s.buses, b)
	return b
}

// Stop ends the server, and returns when every connection knows; [Server.Start] has
// it back. Subscriptions survive.
func (s *Server) Stop() {
	s.shutDown()
	s.await(bus.Reconnecting)
}

// Start undoes [Server.Stop], and returns when every connection is back.
func (s *Server) Start() {
	server, err := embedded.Start(embedded.Options{InProcess: true})
	if err != nil {
		s.tb.Fatal(err)
	}
	s.mu.Lock()
	s.nats = server
	s.mu.Unlock()
	s.await(bus.Connected)
}

func (s *Server) shutDown() {
	s.mu.Lock()
	server := s.nats
	s.nats = nil
	s.mu.Unlock()
	if server != nil {
		server.Close()
	}
}

// await waits until all connections that are not closed are in a state.
func (s *Server) await(state bus.State) {
	for _, b := range s.buses {
		for now := b.State(); now != state && now != bus.Closed; now = b.State() {
			time.Sleep(time.Millisecond)
		}
	}
}
