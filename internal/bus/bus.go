// Package bus publishes, subscribes and requests bytes by subject, over a NATS
// server ([Dial], [Wrap]). It knows no domain type. What it promises:
//
//   - at most once: a message that was sent may be lost, and the sender is not
//     told; none is ever delivered twice;
//   - messages of one publisher reach one subscription in the order they were
//     published; nothing holds across publishers, subscriptions or connections;
//   - a connection does not receive what it published itself;
//   - a subscription whose handler is too slow loses the newest messages, and
//     the loss is counted and reported;
//   - while the server is away nothing is stored: publishing fails at once.
//
// Subjects are tokens separated by dots. A subscription may use * for one token
// and a last > for one or more.
package bus

import (
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// Message is what a handler receives. Data may be kept but not changed. A Reply
// that is not empty is the subject [Bus.Reply] answers to.
type Message struct {
	Subject string // to which it was published
	Reply   string // empty: it is no request
	Data    []byte // at most what the server allows
}

// Handler takes the messages of a subscription, one at a time and in order, on a goroutine of
// that subscription. It must not call [Bus.Close], which waits for it.
type Handler func(Message)

// GatherLimit is how many replies may wait in [Bus.Gather].
const GatherLimit = 4096

// Limits bound what may wait for one handler, the message it works on included.
type Limits struct {
	Messages int // Default 65,536.
	Bytes    int // Of data, subject and reply subject. Default 32 MiB.
}

func (l Limits) withDefaults() Limits {
	if l.Messages <= 0 {
		l.Messages = 65_536
	}
	if l.Bytes <= 0 {
		l.Bytes = 32 << 20
	}
	return l
}

// Options of a connection. The callbacks are called one at a time, from a goroutine of the
// connection; they should return soon, and must not close it.
type Options struct {
	// Name is shown in the server's list of connections.
	Name string
	// ConnectTimeout is how long Dial tries to reach the server. Default 4 s.
	ConnectTimeout time.Duration
	// DrainTimeout bounds Close. Default 1 s.
	DrainTimeout time.Duration
	// OnDisconnect is called when the server is gone, with the cause where it is
	// known; OnReconnect when it is back. Subscriptions survive.
	OnDisconnect func(cause error)
	OnReconnect  func()
	// OnError is called with errors that no call can return: a *SlowError when a subscription
	// begins to lose messages, ErrPermission when the server refused a subject, and other
	// complaints of the server. If the server refuses the credentials of a connection that is
	// to come back, the error comes once until it is back.
	OnError func(error)
	// Explain adds to such a refusal which credentials they are. Nil adds nothing.
	Explain func(error) error
	// Extra is handed to nats.go by Dial, for user, token, credentials file, nkey
	// or TLS. Reconnect, ping, buffer and handler settings among them are
	// overruled.
	Extra []nats.Option
}

func (o Options) withDefaults() Options {
	if o.ConnectTimeout <= 0 {
		o.ConnectTimeout = 4 * time.Second
	}
	if o.DrainTimeout <= 0 {
		o.DrainTimeout = time.Second
	}
	if o.OnDisconnect == nil {
		o.OnDisconnect = func(error) {}
	}
	if o.OnReconnect == nil {
		o.OnReconnect = func() {}
	}
	if o.Explain == nil {
		o.Explain = func(err error) error { return err }
	}
	if o.OnError == nil {
		o.OnError = func(error) {}
	}
	return o
}

// State of a connection.
type State int

// The states of a connection.
const (
	Connected State = iota
	Reconnecting
	Closed
)

// String returns the lower-case name.
func (s State) String() string {
	switch s {
	case Connected:
		return "connected"
	case Reconnecting:
		return "reconnecting"
	case Closed:
		return "closed"
	}
	return fmt.Sprintf("State(%d)", int(s))
}

// Errors that a Bus returns, wrapped with the operation and the subject.
var (
	ErrClosed       = errors.New("the connection is closed")
	ErrDisconnected = errors.New("the server is away, reconnecting; nothing was sent")
	ErrNoResponders = errors.New("nobody subscribes to the subject")
	ErrNoReply      = errors.New("the message is not a request, there is nobody to answer")
	ErrReply        = errors.New("only a reply subject that begins with " + nats.InboxPrefix + " is answered")
	ErrTooLarge     = errors.New("the message is larger than the server allows")
	ErrSubject      = errors.New("not a valid subject")
	ErrPermission   = errors.New("the server does not permit it to this user")
	ErrDrainTimeout = errors.New("handlers did not return in time")
)

// SlowError reports that a subscription began to lose messages. It is reported
// once until the subscription has caught up.
type SlowError struct {
	Subject string // As subscribed.
	Dropped uint64 // Messages lost so far.
}

func (e *SlowError) Error() string {
	return fmt.Sprintf("bus: subscription %q loses messages, %d so far: more come than this process takes; find out who sends so many (nats server report connections --sort in-msgs), or give the process more CPU", e.Subject, e.Dropped)
}

// Class is the kind of a complaint to [Options.OnError], for a log that counts the lines of a class.
func Class(err error) string {
	var slow *SlowError
	switch {
	case errors.As(err, &slow):
		return "slow"
	case errors.Is(err, ErrPermission):
		return "permission"
	}
	return "connection"
}

// failedOn names the operation and the subject of an error.
func failedOn(op, subject string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("bus: %s %q: %w", op, subject, err)
}
