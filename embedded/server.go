package embedded

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// readyWait bounds the wait for a server that has its port to accept clients.
const readyWait = 5 * time.Second

// Server is a running NATS server. Its methods may be called from any
// goroutine.
type Server struct {
	nats  *server.Server
	host  string
	port  int          // 0 where the server does not listen.
	store *os.File     // The lock of the directory of JetStream, or nil.
	key   *loopbackKey // Nil if clients need none.
	keys  *keyring     // Nil without Options.Keys.
}

// Start runs a server and returns when clients can connect. It fails, with nothing left
// running, when the options make no sense, when they would open the server to other machines
// without credentials, when the port is taken, when the key cannot be written or the files of
// Options.Keys cannot be read, and when JetStream cannot use its directory.
func Start(opts Options) (*Server, error) {
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	store, err := openStore(opts.JetStream)
	if err != nil {
		return nil, err
	}
	s := &Server{host: opts.Host, store: store}
	if err := s.start(&opts); err != nil {
		s.key.undo()
		s.Close()
		return nil, err
	}
	return s, nil
}

// start starts the server. After an error the caller closes it.
func (s *Server) start(opts *Options) (err error) {
	so, log := opts.serverOptions(), newLogger(opts)
	switch {
	case opts.Keys != "":
		if s.keys, err = newKeyring(opts, so); err != nil {
			return err
		}
	case opts.needsKey():
		if s.key, err = newLoopbackKey(opts, so); err != nil {
			return err
		}
	case opts.Open:
		log.Warnf("Any user of this machine can connect: no key is asked for")
	}
	if s.nats, err = server.NewServer(so); err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	s.nats.SetLoggerV2(log, log.debugs(), false, false)
	s.nats.Start()
	if err := errors.Join(waitReady(s.nats, log, *opts), checkRoom(opts.JetStream, s.nats)); err != nil {
		return err
	}
	if addr, ok := s.nats.Addr().(*net.TCPAddr); ok && !opts.InProcess {
		s.port = addr.Port
	}
	return s.key.write(s.port)
}

// waitReady tells a failure to listen or to start JetStream, which nats-server
// only logs, from a server that accepts clients.
func waitReady(ns *server.Server, log *logger, opts Options) error {
	fatal := log.fatal()
	switch {
	case fatal == "" && ns.ReadyForConnections(readyWait):
		return nil
	case fatal == "":
		return fmt.Errorf("embedded: the server was not ready within %v; the machine may be overloaded, try again", readyWait)
	}
	if err := startError(opts.JetStream, fatal); err != nil {
		return err
	}
	address := net.JoinHostPort(opts.Host, strconv.Itoa(opts.Port))
	return fmt.Errorf("embedded: cannot listen on %s: %w", address, listenError(address, fatal))
}

// listenError finds out why the address cannot be listened on by asking for it
// once more, since the server kept the reason as text only.
func listenError(address, text string) error {
	l, err := net.Listen("tcp", address)
	if err == nil { // The address was freed just now.
		return errors.Join(errors.New(text), l.Close())
	}
	return explainListen(err)
}

// explainListen says what to do about an address that cannot be listened on.
func explainListen(err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("the port is in use by another program; stop it, choose another port, or 0 for a free one: %w", err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("address not on this machine: give an address of this machine: %w", err)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("not permitted; choose a port above 1023: %w", err)
	}
	return err
}

// URL is what a client on this machine connects to, without credentials; empty
// for a server that was started with InProcess.
func (s *Server) URL() string {
	if s.port == 0 {
		return ""
	}
	host := s.host
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = DefaultHost
	}
	return "nats://" + net.JoinHostPort(host, strconv.Itoa(s.port))
}

// Port is the TCP port the server listens on, the chosen one where
// [Options.Port] was 0; 0 for a server that was started with InProcess.
func (s *Server) Port() int { return s.port }

// Clients is how many clients are connected.
func (s *Server) Clients() int { return s.nats.NumClients() }

// InProcessConn opens a connection through memory; it makes a Server the
// argument of nats.InProcessServer, which halves the latency of a loopback
// connection.
func (s *Server) InProcessConn() (net.Conn, error) {
	conn, err := s.nats.InProcessConn()
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	return conn, nil
}

// Close cuts off every client, frees the port and returns when the server's
// goroutines have ended. Messages on their way are lost; what JetStream has
// acknowledged is in its directory, which another server may use then. Closing
// again waits as well and does nothing else.
func (s *Server) Close() {
	s.key.remove()
	if s.nats != nil {
		s.nats.Shutdown()
		s.nats.WaitForShutdown()
	}
	closeStore(s.store)
}
