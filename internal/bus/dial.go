package bus

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// The settings of our own connections. The defaults of nats.go suit work that can wait: they
// give up after two minutes, notice a dead link after four and then deliver messages that are
// long out of date.
const (
	attemptWait      = 2 * time.Second // For one attempt to connect.
	reconnectWait    = 100 * time.Millisecond
	maxReconnectWait = 500 * time.Millisecond
	refusedWait      = 500 * time.Millisecond // After the first refusal of the credentials.
	maxRefusedWait   = 30 * time.Second
	pingInterval     = 750 * time.Millisecond
	maxPings         = 2 // Without an answer when the next one is due: the link is dead, for 2.25 s at most.
)

// Dial connects to the NATS server at an address such as
// "nats://127.0.0.1:4222", or to one of several separated by commas. It keeps
// trying for Options.ConnectTimeout, because the server may just be starting,
// and until ctx is done; what trying again cannot cure, such as wrong
// credentials, fails at once. Once connected, the connection comes back by
// itself however long the server is away. Errors never show credentials.
func Dial(ctx context.Context, address string, opts Options) (*Bus, error) {
	servers, err := parseServers(address)
	if err != nil {
		return nil, fmt.Errorf("bus: connect to NATS: %w", err)
	}
	b := newNATS(opts)
	life, end := context.WithCancel(context.Background())
	d := &dialer{}
	o, err := b.natsOptions(servers, d)
	if err == nil {
		b.nc, err = connect(ctx, life, o, d, b.opts.ConnectTimeout)
	}
	if err != nil {
		end()
		b.events.endEvents()
		<-b.events.done
		return nil, fmt.Errorf("bus: connect to NATS at %s: %w", redactAddresses(address), err)
	}
	b.stopDial = end
	b.hangUp = func() {
		b.nc.Close() // Writes out the buffer.
		end()
	}
	return b, nil
}

// natsOptions lets ours overrule the caller's.
func (b *Bus) natsOptions(servers []string, d *dialer) (nats.Options, error) {
	o := nats.GetDefaultOptions()
	for _, set := range b.opts.Extra {
		if err := set(&o); err != nil {
			return o, fmt.Errorf("option: %w", err)
		}
	}
	o.Servers = servers
	o.Name = b.opts.Name
	o.Timeout = attemptWait
	o.NoEcho = true
	o.SkipSubjectValidation = true // checkSubject is stricter.
	o.AllowReconnect = true
	o.MaxReconnect = -1
	o.RetryOnFailedConnect = false
	o.IgnoreAuthErrorAbort = true // Credentials may be put right while we wait.
	o.CustomReconnectDelayCB = func(round int) time.Duration {
		if n := b.refusals.Load(); n > 0 {
			return refusedDelay(n)
		}
		return reconnectDelay(round)
	}
	o.ReconnectBufSize = -1
	o.PingInterval = pingInterval
	o.MaxPingsOut = maxPings
	if o.CustomDialer == nil {
		o.CustomDialer, o.SkipHostLookup = d, true
	}
	o.DisconnectedErrCB = func(_ *nats.Conn, err error) { b.noteDisconnect(err) }
	o.ReconnectedCB = func(*nats.Conn) { b.noteReconnect() }
	o.AsyncErrorCB = func(_ *nats.Conn, _ *nats.Subscription, err error) { b.takeComplaint(err) }
	o.ClosedCB = func(nc *nats.Conn) {
		b.noteLost(nc.LastError())
		close(b.hungUp)
	}
	o.ReconnectErrCB = func(*nats.Conn, error) { b.refusals.Store(0) } // The server is away: come back soon after it.
	o.DisconnectedCB, o.ConnectedCB = nil, nil
	return o, nil
}

// reconnectDelay doubles with every round over all servers; the jitter keeps
// the members of a lost server from coming back at the same moment.
func reconnectDelay(round int) time.Duration {
	d := min(reconnectWait<<min(max(round, 1)-1, 3), maxReconnectWait)
	return d/2 + rand.N(d/2+1) //nolint:forbidigo // It has to differ between processes.
}

// refusedDelay is the pause after so many refusals of the credentials, which a person has to
// renew: it doubles up to half a minute.
func refusedDelay(refusals int32) time.Duration {
	d := min(refusedWait<<min(max(refusals, 1)-1, 6), maxRefusedWait)
	return d/2 + rand.N(d/2+1) //nolint:forbidigo // It has to differ between processes.
}

// CredentialsRefused reports whether the server does not take the credentials.
func CredentialsRefused(err error) bool {
	for _, refused := range []error{nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired} {
		if errors.Is(err, refused) {
			return true
		}
	}
	return false
}

// connect tries until it succeeds, the window or ctx is over, or trying is of
// no use. Dialling again later is bound to life.
func connect(ctx, life context.Context, o nats.Options, d *dialer, window time.Duration) (*nats.Conn, error) {
	trying, stop := context.WithTimeout(ctx, window)
	defer stop()
	d.use(trying)
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 500*time.Millisecond) {
		nc, err := o.Connect()
		if err == nil {
			d.use(life)
			return nc, nil
		}
		if strings.Contains(err.Error(), `"server_id"`) || strings.Contains(err.Error(), `\"server_id\"`) {
			return nil, errors.New("the port speaks plain NATS and not WebSocket: use nats://, or the server's WebSocket port")
		}
		if trying.Err() == nil && !temporary(err) {
			return nil, fmt.Errorf("%w; %s", err, cure(err))
		}
		select {
		case <-time.After(pause):
		case <-trying.Done():
			return nil, gaveUp(ctx, d.cause(err), window)
		}
	}
}

func gaveUp(ctx context.Context, cause error, window time.Duration) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w; the last attempt failed: %w", err, cause)
	}
	return fmt.Errorf("no answer for %v: %w; start a server with `pegasus run` or check the address given with --nats", window, cause)
}

// temporary reports whether another attempt may succeed: the server may be
// starting, or full.
func temporary(err error) bool {
	for _, t := range []error{
		nats.ErrNoServers, nats.ErrTimeout, nats.ErrMaxConnectionsExceeded, nats.ErrStaleConnection,
		io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, context.DeadlineExceeded,
	} {
		if errors.Is(err, t) {
			return true
		}
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op != "remote error" // Which is a TLS alert.
}

// cure says what to do about an error that is not temporary.
func cure(err error) string {
	switch {
	case CredentialsRefused(err), errors.Is(err, nats.ErrNkeysNotSupported):
		return "check the user and password, token, key or credentials file"
	case errors.Is(err, nats.ErrNoInfoReceived):
		return "the program that listens there is not a NATS server; check the address given with --nats"
	case errors.Is(err, nats.ErrSecureConnRequired), errors.Is(err, nats.ErrSecureConnWanted):
		return "use tls:// where the server has TLS and nats:// where it has not"
	}
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown {
		return "give the certificate of the authority with --tlsca or NATS_CA"
	}
	if _, other := errors.AsType[x509.HostnameError](err); other {
		return "the URL needs a host that is in the certificate of the server"
	}
	if alert, ok := errors.AsType[*net.OpError](err); ok && alert.Op == "remote error" {
		return "the server may want a client certificate: give it with --tlscert and --tlskey, or NATS_CERT and NATS_KEY"
	}
	return "check the address and the connection options"
}

// dialer dials for nats.go, which cannot be interrupted, within a context: at first the attempt
// to connect, later the life of the bus.
type dialer struct {
	mu      sync.Mutex
	ctx     context.Context
	release func() bool // Parts the last connection from its context.
	last    error       // Of the last attempt; nats.go forgets it.
}

// use replaces the context, also for the connection that exists.
func (d *dialer) use(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ctx = ctx
	if d.release != nil {
		d.release()
	}
}

// Dial implements nats.CustomDialer.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	d.mu.Lock()
	ctx := d.ctx
	d.mu.Unlock()
	attempt := net.Dialer{Timeout: attemptWait}
	conn, err := attempt.DialContext(ctx, network, address)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = err
	if err != nil {
		return nil, err
	}
	if d.release != nil {
		d.release()
	}
	// The handshake that follows ends with the context as well.
	d.release = context.AfterFunc(ctx, func() { _ = conn.Close() })
	return conn, nil
}

// cause is why the last attempt failed, as far as nats.go did not say.
func (d *dialer) cause(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last != nil && errors.Is(err, nats.ErrNoServers) {
		return d.last
	}
	return err
}
