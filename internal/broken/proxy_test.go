//go:build broken && linux

package broken

import (
	"fmt"
	"net"
	"sync"
	"testing"
	"time"
)

// proxy is a way to the server that can be made bad. All of it runs in the test.
type proxy struct {
	to       string // the server
	listener net.Listener
	url      string
	running  sync.WaitGroup

	mu      sync.Mutex
	changed *sync.Cond
	up      way // from the client to the server
	down    way
	refuses bool // no connection is taken
	conns   map[net.Conn]bool
	closed  bool
}

// way is the treatment of the bytes sent in one direction.
type way struct {
	hole  bool          // it does not arrive, until the way is whole again
	delay time.Duration // it arrives later
	rate  int           // bytes a second; 0: any
}

// newProxy listens at a host for clients.
func newProxy(t *testing.T, host string, port int) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", host+":0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{to: fmt.Sprintf("127.0.0.1:%d", port), listener: listener, conns: map[net.Conn]bool{}}
	p.url = "nats://" + listener.Addr().String()
	p.changed = sync.NewCond(&p.mu)
	p.running.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

func (p *proxy) close() {
	p.mu.Lock()
	p.closed = true
	for c := range p.conns {
		_ = c.Close()
	}
	p.changed.Broadcast()
	p.mu.Unlock()
	_ = p.listener.Close()
	p.running.Wait()
}

// set makes both ways what they are from now on; cut ends all connections.
func (p *proxy) set(up, down way, cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.up, p.down, p.refuses = up, down, cut
	if cut {
		for c := range p.conns {
			_ = c.Close()
		}
	}
	p.changed.Broadcast()
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.carry(client) })
	}
}

// carry is one connection.
func (p *proxy) carry(client net.Conn) {
	if !p.keep(client) {
		return
	}
	defer p.drop(client)
	// The connection to the server is made where the way there is whole, as a handshake would.
	if !p.whole(&p.up) {
		return
	}
	server, err := net.Dial("tcp", p.to)
	if err != nil || !p.keep(server) {
		return
	}
	defer p.drop(server)
	var both sync.WaitGroup
	for _, one := range []struct {
		from, to net.Conn
		way      *way
	}{{client, server, &p.up}, {server, client, &p.down}} {
		both.Go(func() {
			p.copy(one.to, one.from, one.way)
			_, _ = client.Close(), server.Close()
		})
	}
	both.Wait()
}

// keep notes a connection, or closes it where none is taken.
func (p *proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.refuses {
		_ = c.Close()
		return false
	}
	p.conns[c] = true
	return true
}

func (p *proxy) drop(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// whole waits until something can pass; it reports false at the end of all.
func (p *proxy) whole(w *way) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w.hole && !p.closed {
		p.changed.Wait()
	}
	return !p.closed
}

// piece is the bytes of a read, and its time.
type piece struct {
	data []byte
	at   int64
}

// copy sends bytes on, as the way is at that moment. Bytes sent into a hole arrive when the way
// is whole again, also if their sender has given up since. Later bytes do not hold up delayed
// ones.
func (p *proxy) copy(to, from net.Conn, w *way) {
	pieces := make(chan piece, 1024)
	var sending sync.WaitGroup
	sending.Go(func() {
		for one := range pieces {
			if !p.whole(w) {
				continue
			}
			p.mu.Lock()
			delay, rate := w.delay, w.rate
			p.mu.Unlock()
			if wait := time.Duration(one.at-clock()) + delay; wait > 0 {
				elapse(wait)
			}
			if rate > 0 {
				elapse(time.Duration(len(one.data)) * time.Second / time.Duration(rate))
			}
			_, _ = to.Write(one.data) // Nobody may be there any more.
		}
	})
	for buffer := make([]byte, 4<<10); ; {
		n, err := from.Read(buffer)
		if n > 0 {
			pieces <- piece{append([]byte(nil), buffer[:n]...), clock()}
		}
		if err != nil {
			break
		}
	}
	close(pieces)
	sending.Wait()
}
