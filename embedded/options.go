package embedded

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/gopegasus/pegasus/internal/loopkey"
)

// Defaults of the fields of [Options] of the same name.
const (
	DefaultHost             = "127.0.0.1"
	DefaultMaxPayload       = 64 << 10 // Bytes.
	DefaultMaxPending       = 16 << 20 // Bytes.
	DefaultWriteDeadline    = 2 * time.Second
	DefaultMaxConnections   = 16_384 // A connection costs about 70 kB.
	DefaultMaxSubscriptions = 1024
)

// pingInterval is how often the server asks a silent client whether it is
// there; two questions without an answer end the connection, so a client behind
// a dead link is gone after half a minute.
const pingInterval = 10 * time.Second

// Options say where a server listens and what it allows. The zero value is a
// server for this machine only, on a random port.
type Options struct {
	// Host is the address to listen on; empty means [DefaultHost]. Anything but
	// "localhost" or a loopback address needs Keys, Token, or Username and Password.
	Host string
	// Port is the TCP port; 0 picks a free one, see [Server.Port].
	Port int
	// InProcess opens no port at all: only clients of this process connect,
	// through [Server.InProcessConn]. Host and Port are then ignored.
	InProcess bool

	// Token is the secret a client must present, Username and Password the other
	// way to say it; setting both ways is refused. They travel in clear unless
	// TLS is set.
	Token, Username, Password string
	// Open lets any user of this machine connect. Without it, and without Token or Username, a server that listens
	// asks for a key, which it makes at each start and notes for the programs of this user; see the
	// package documentation.
	Open bool
	// Keys is a directory that "pegasus keys init" has made, or a copy of its server.conf, with server.pem and server-key.pem
	// if it has TLS. The server admits the users of the directory and no others, each to the
	// subjects of its role. [Server.ReloadKeys] reads it again. Empty: no users.
	Keys string
	// TLS, where set, makes the server accept TLS connections only.
	TLS *tls.Config

	// MaxPayload is the largest message in bytes; a client that sends a larger
	// one is cut off. 0 means [DefaultMaxPayload].
	MaxPayload int
	// MaxPending is how many bytes may wait for one slow client before it is cut
	// off. 0 means [DefaultMaxPending].
	MaxPending int64
	// WriteDeadline is how long one write to a client may block before the
	// client is cut off. 0 means [DefaultWriteDeadline].
	WriteDeadline time.Duration
	// MaxConnections is how many clients may be connected at once, and
	// MaxSubscriptions how many subscriptions one of them may have. 0 means
	// [DefaultMaxConnections] and [DefaultMaxSubscriptions].
	MaxConnections, MaxSubscriptions int

	// JetStream is the directory in which the server keeps the state of JetStream; it is created where it
	// does not exist. Empty means no JetStream. One server at a time may use a directory: Start refuses
	// a directory that another Server uses, in this process or in another one (on Linux and macOS); a nats-server
	// started in another way is not noticed. A disk on which JetStream could write less than 16 MiB is
	// refused as well. Another server started with the directory has the streams and consumers of the last one.
	JetStream string

	// OnExhausted, where set, is called on a goroutine of the server when it cannot take a connection
	// because the process has no file descriptors left, at most once in ten seconds; and so
	// when JetStream refuses messages because its disk is full. It must not block.
	OnExhausted func(error)

	// Logger, where set, receives what the server has to say: notices at level
	// Info. Debug output follows where the logger is enabled for level Debug.
	Logger *slog.Logger
}

// withDefaults fills in the fields left at zero.
func (o Options) withDefaults() Options {
	o.Host = cmp.Or(o.Host, DefaultHost)
	o.MaxPayload = cmp.Or(o.MaxPayload, DefaultMaxPayload)
	o.MaxPending = cmp.Or(o.MaxPending, DefaultMaxPending)
	o.WriteDeadline = cmp.Or(o.WriteDeadline, DefaultWriteDeadline)
	o.MaxConnections = cmp.Or(o.MaxConnections, DefaultMaxConnections)
	o.MaxSubscriptions = cmp.Or(o.MaxSubscriptions, DefaultMaxSubscriptions)
	return o
}

// validate refuses options that make no sense or would open the server to other
// machines without a key. It expects the defaults filled in.
func (o Options) validate() error {
	switch {
	case o.Port < 0 || o.Port > 65535:
		return fmt.Errorf("embedded: port %d is not a TCP port; use 1 to 65535, or 0 for a free one", o.Port)
	case o.MaxPayload < 0 || o.MaxPayload > math.MaxInt32:
		return fmt.Errorf("embedded: max payload of %d bytes is out of range; use 1 to %d", o.MaxPayload, math.MaxInt32)
	case o.MaxPending < int64(o.MaxPayload):
		return fmt.Errorf("embedded: max pending of %d bytes holds no message of max payload %d; raise the former or lower the latter", o.MaxPending, o.MaxPayload)
	case o.WriteDeadline < 0 || o.MaxConnections < 0 || o.MaxSubscriptions < 0:
		return errors.New("embedded: write deadline, max connections and max subscriptions must not be negative")
	case o.Token != "" && o.Username != "":
		return errors.New("embedded: both a token and a user are set; use one of them")
	case (o.Username == "") != (o.Password == ""):
		return errors.New("embedded: user and password belong together; set both or neither")
	case o.Open && (o.Token != "" || o.Username != ""):
		return errors.New("embedded: open admits clients without credentials, and a token or a user is set; leave one of them out")
	case o.Keys != "" && (o.Token != "" || o.Username != "" || o.Open || o.TLS != nil || o.InProcess):
		return errors.New("embedded: keys say which users a server that listens admits, and with which certificate; leave out a token, a user, open, TLS and in process")
	case !o.InProcess && !loopkey.IsLoopback(o.Host) && o.Keys == "" && o.Token == "" && o.Username == "":
		return fmt.Errorf("embedded: host %q can be reached from other machines and no credentials are set; set keys, a token, or a user and a password, or listen on %s", o.Host, DefaultHost)
	}
	return nil
}

// serverOptions translates to the options of nats-server.
func (o Options) serverOptions() *server.Options {
	return &server.Options{
		Host:            o.Host,
		Port:            cmp.Or(o.Port, server.RANDOM_PORT),
		DontListen:      o.InProcess,
		Authorization:   o.Token,
		Username:        o.Username,
		Password:        o.Password,
		TLS:             o.TLS != nil,
		TLSConfig:       o.TLS,
		MaxPayload:      int32(o.MaxPayload), //nolint:gosec // validate checked the range.
		MaxPending:      o.MaxPending,
		WriteDeadline:   o.WriteDeadline,
		MaxConn:         o.MaxConnections,
		MaxSubs:         o.MaxSubscriptions,
		PingInterval:    pingInterval,
		NoSigs:          true,
		NoSystemAccount: true,
		JetStream:       o.JetStream != "",
		StoreDir:        o.JetStream,

		DisableJetStreamBanner: true,
	}
}
