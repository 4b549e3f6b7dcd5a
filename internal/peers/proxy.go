package peers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/clocksync/source"
)

// Bounds of a proxy.
const (
	proxyChunk   = 16 << 10 // bytes that are read at once
	proxyWaiting = 1024     // chunks that wait in one direction; then nothing more is read
)

// proxy forwards TCP connections to a server. Each chunk of bytes waits for a random time up to the longest delay, and
// for the chunk before it: the order is kept.
type proxy struct {
	listener net.Listener
	server   string
	longest  time.Duration
	seed     uint64
	cancel   context.CancelFunc
	running  sync.WaitGroup
}

// startProxy listens on a free port of the loopback interface.
func startProxy(ctx context.Context, server string, longest time.Duration, seed uint64) (*proxy, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("proxy for the delay: cannot listen on the loopback interface: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	p := &proxy{listener: listener, server: server, longest: longest, seed: seed, cancel: cancel}
	p.running.Go(func() { p.acceptAll(ctx) })
	return p, nil
}

func (p *proxy) address() string { return p.listener.Addr().String() }

// close ends all connections and waits for their goroutines.
func (p *proxy) close() {
	p.cancel()
	_ = p.listener.Close() // It fails only if it is closed already.
	p.running.Wait()
}

func (p *proxy) acceptAll(ctx context.Context) {
	for n := uint64(0); ; n++ {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := new(net.Dialer).DialContext(ctx, "tcp", p.server)
		if err != nil {
			_ = client.Close() // The client sees the end of the connection.
			continue
		}
		p.running.Go(func() { p.forwardBoth(ctx, client, server, n) })
	}
}

// forwardBoth forwards in both directions until one of them ends.
func (p *proxy) forwardBoth(ctx context.Context, client, server net.Conn, n uint64) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = errors.Join(client.Close(), server.Close()) })
	defer stop()
	var both sync.WaitGroup
	for i, way := range [][2]net.Conn{{client, server}, {server, client}} {
		rng := rand.New(rand.NewPCG(p.seed, 2*n+uint64(i))) //nolint:gosec // Delays of a benchmark.
		both.Go(func() {
			defer cancel()
			p.forward(ctx, way[1], way[0], rng)
		})
	}
	both.Wait()
}

// chunk is bytes that wait until an instant.
type chunk struct {
	bytes []byte
	due   clocksync.Instant
}

// forward forwards one direction until one of its connections ends.
func (p *proxy) forward(ctx context.Context, to io.Writer, from io.Reader, rng *rand.Rand) {
	ctx, cancel := context.WithCancel(ctx)
	chunks := make(chan chunk, proxyWaiting)
	var writing sync.WaitGroup
	writing.Go(func() {
		defer cancel()
		writeWhenDue(ctx, to, chunks)
	})
	defer writing.Wait()
	defer cancel()
	due := clocksync.MinInstant
	for {
		buffer := make([]byte, proxyChunk)
		n, err := from.Read(buffer)
		due = max(due, source.Monotonic().Add(time.Duration(rng.Int64N(int64(p.longest)+1))))
		select {
		case chunks <- chunk{buffer[:n], due}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

func writeWhenDue(ctx context.Context, to io.Writer, chunks <-chan chunk) {
	for {
		select {
		case c := <-chunks:
			if !waitUntil(ctx, c.due) {
				return
			}
			if _, err := to.Write(c.bytes); err != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// waitUntil waits for an instant. It returns false if the context ended before.
func waitUntil(ctx context.Context, due clocksync.Instant) bool {
	wait := due.Sub(source.Monotonic())
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
