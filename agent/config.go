package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/clocksync/source"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/gostate"
	"github.com/gopegasus/pegasus/internal/reading"
	"github.com/gopegasus/pegasus/internal/telemetry"
	"github.com/gopegasus/pegasus/internal/wire"
)

// Config says who a member is. Only Group and Name are needed. Names consist of
// letters, digits, - and _, at most 64.
type Config struct {
	// Group is the group that the synchronizer's configuration names.
	Group string
	// Name is the member's name, unique in the group.
	Name string
	// Tenant keeps groups of the same name apart on one server. Default "default", as for
	// `pegasus run`.
	Tenant string

	// State is a value of the type that Set will be called with; it is checked
	// against the declared state, so that Join fails if it does not match, naming
	// the field. Without it the first Set does.
	State any

	// Regions are all the regions that the program enters, each with the names of the
	// activations that it has handlers for. If it is not nil, Join fails with [ErrUndeclared]
	// if the configuration has a signal to another region of the members or threads of this
	// group, or an activation without a handler; and so does entering a region that is not
	// declared, or without a handler that is. At most 256 signals are looked at. A reload,
	// and signals from other groups, are not. It needs a synchronizer of this release or a later
	// one. Nil, the default: nothing is checked.
	Regions []RegionHandlers

	// Clock stamps the states. Default: the system's monotonic clock, exact among
	// the processes of this machine. Where the synchronizer runs on another one, it
	// is measured against that one's over the member's connection, so that members of
	// different machines can be compared.
	Clock clocksync.Clock
	// SeparateClock makes this process a clock domain of its own, as if it were
	// alone on its machine: to try on one machine what happens between several.
	SeparateClock bool
	// Drift is how many parts per million the clock of this machine may run fast or
	// slow, what a daemon slews it by included, up to [clocksync.MaxDrift]; together
	// with the synchronizer's it widens the bound of a clock that is measured
	// against it. 0 stands for [source.DefaultDrift]: 200 in a virtual machine, 50
	// elsewhere. A Clock that is given has its own.
	Drift float64
	// Host is the name of the machine in predicates. Default: the system's.
	Host string

	// Observe fills the fields of the declared state that observe.Fields names, that are
	// floats, and that the program's struct lacks. When such a field has moved, a new state
	// begins: the last state that was set, with the new values. Several members may share an
	// observe.Observer; the member does not close it. See docs/observation.md.
	Observe reading.Source

	// BatchSize is how many states make a message go out at once, and the most that
	// one message holds. 0 stands for 64.
	BatchSize int
	// BatchAge is how long fewer wait for more. 0, the default: they do not.
	BatchAge time.Duration

	// JoinTimeout is how long Join waits for a synchronizer. 0 stands for 5 s.
	JoinTimeout time.Duration

	// Logger gets what no call can return: the server is away or back, the member was dropped.
	// Default: no logging.
	Logger *slog.Logger

	// MeterProvider receives the metrics, also of the measured clock; docs/operations.md lists
	// them. Nil means no metrics: no global provider is used. The metrics of several members of
	// a group in a process are added up.
	MeterProvider metric.MeterProvider
	// TracerProvider is what the spans of batches and handlers go to, listed there, too.
	// Nil means none.
	TracerProvider trace.TracerProvider

	auto *autoClock // the Clock, if none was given
}

const defaultJoinTimeout = 5 * time.Second

// fillDefaults fills in the defaults and checks the rest.
func (c *Config) fillDefaults() error {
	c.Tenant = cmp.Or(c.Tenant, "default")
	if c.Host == "" {
		c.Host, _ = os.Hostname()
	}
	if err := c.validate(); err != nil {
		return err
	}
	switch {
	case c.Clock == nil:
		c.auto = newAutoClock(c)
		c.Clock = c.auto
	case c.SeparateClock:
		c.Clock = source.OwnDomain(c.Clock)
	}
	c.BatchSize = cmp.Or(c.BatchSize, agentcore.DefaultBatchSize)
	c.JoinTimeout = cmp.Or(c.JoinTimeout, defaultJoinTimeout)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Logger = telemetry.Sampled(c.Logger)
	return nil
}

// validate finds all the faults of a configuration.
func (c *Config) validate() error {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("agent: join: "+format, args...))
	}
	if c.Group == "" {
		fault("Config.Group is empty: it is the group that the synchronizer's configuration names")
	} else if err := (wire.Subjects{Tenant: c.Tenant, Group: c.Group}).Check(); err != nil {
		fault("%w", err)
	}
	if err := wire.CheckToken("member name", c.Name); err != nil {
		fault("%w", err)
	}
	if len(c.Host) > wire.MaxHostBytes {
		fault("Config.Host has %d bytes, at most %d are allowed", len(c.Host), wire.MaxHostBytes)
	}
	if !(c.Drift >= 0 && c.Drift <= clocksync.MaxDrift) { // Also NaN.
		fault("Config.Drift is %v: it is in parts per million, from 0 to %v", c.Drift, clocksync.MaxDrift)
	}
	if c.BatchSize < 0 {
		fault("Config.BatchSize is %d: it is 1 or more, or 0 for %d", c.BatchSize, agentcore.DefaultBatchSize)
	}
	if c.BatchAge < 0 {
		fault("Config.BatchAge is %v: it is 0 or more", c.BatchAge)
	}
	if c.JoinTimeout < 0 {
		fault("Config.JoinTimeout is %v: it is more than 0, or 0 for %v", c.JoinTimeout, defaultJoinTimeout)
	}
	faults = append(faults, checkRegions(c.Regions)...)
	if c.State != nil {
		if _, err := gostate.SchemaOf(c.State); err != nil {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// makeHello is the member's introduction. It does not contain the type of the member's state: only
// threads show whether that is the type of the group, or of a process beside its threads.
func (c *Config) makeHello() wire.Hello {
	return wire.Hello{
		Member: c.Name, Incarnation: uint64(max(source.WallNano(), 1)), Host: c.Host,
		Domain: c.Clock.Domain(), Quality: c.Clock.Quality(), Process: uint64(os.Getpid()), Asks: c.Regions != nil, //nolint:gosec // It is above 0.
	}
}

// Option changes how Join reaches the server.
type Option func(*joining)

type joining struct {
	dial func(ctx context.Context, url string, o bus.Options) (*bus.Bus, error)
	conn *nats.Conn     // that is wrapped; nil: one is dialled
	nats *[]nats.Option // of WithNATS, which tells connections apart; nil: the environment has them
	own  bool           // it is shared with no other member
	node *multiplexer   // of the node whose processor this is; nil: it is none
}

var (
	errNilContext = errors.New("the context is nil: pass context.Background(), or a context with a deadline")
	errNilOption  = errors.New("an option is nil: leave it out")
)

// applyOptions applies the options, and finds nil arguments of Join.
func (j *joining) applyOptions(ctx context.Context, opts []Option) (err error) {
	if ctx == nil {
		err = fmt.Errorf("agent: join: %w", errNilContext)
	}
	for _, o := range opts {
		if o == nil {
			return errors.Join(err, fmt.Errorf("agent: join: %w", errNilOption))
		}
		o(j)
	}
	return err
}

// OwnConn gives the member a connection of its own. Without it the members of a group in a
// process share a connection to a server: one message carries the reports of all of them, and
// shows that all their states still hold. They need the same Config.Clock (or none), no
// Config.SeparateClock, and the same url or connection.
func OwnConn() Option { return func(j *joining) { j.own = true } }

// WithNATS dials with these options, such as nats.UserCredentials, instead of the settings of
// the environment; see the package connect. Options for reconnecting, pings, buffers and
// handlers have no effect. WithNATS without options ignores the environment too. Members share
// a connection only if Join gets the same Option for them, the result of a single call of WithNATS.
func WithNATS(options ...nats.Option) Option {
	given := append([]nats.Option{}, options...)
	return func(j *joining) { j.nats = &given }
}

// WithConn uses an existing connection; Join dials none to its url. The member neither closes
// nor alters it. Control messages share it with its other traffic.
func WithConn(nc *nats.Conn) Option {
	return func(j *joining) {
		j.conn, j.own = nc, j.own || nc == nil // Which no other member has.
		j.dial = func(_ context.Context, _ string, o bus.Options) (*bus.Bus, error) {
			if nc == nil {
				return nil, errors.New("WithConn has a nil connection: pass the connection that nats.Connect returned, or leave WithConn out")
			}
			return bus.Wrap(nc, o)
		}
	}
}
