package agent

import (
	"context"
	"errors"
	"reflect"
	"sync/atomic"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/connect"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/wire"
)

// shareKey says which members of a process share a connection: those for which all of
// it is the same. The server has the credentials.
type shareKey struct {
	server        connect.Server
	nats          *[]nats.Option
	conn          *nats.Conn
	tenant, group string
	host          string
	clock         clocksync.Clock // nil: the system's
	drift         float64
}

// shares are the multiplexers of the process.
var shares bus.Pool[shareKey, *multiplexer] //nolint:gochecknoglobals // Members that know nothing of each other share a connection.

// connectMember makes a member with its own connection or an existing connection.
func (j *joining) connectMember(ctx context.Context, url string, cfg *Config) (m *Member, err error) {
	server, options, err := j.findServer(url)
	if err != nil {
		return nil, err
	}
	key := shareKey{server: server, nats: j.nats, conn: j.conn, tenant: cfg.Tenant, group: cfg.Group, host: cfg.Host, drift: cfg.Drift}
	if cfg.auto == nil {
		key.clock = cfg.Clock
	}
	var c *multiplexer
	release := func() error { return nil }
	switch {
	case j.node != nil:
		c = j.node
	case j.own || cfg.SeparateClock || key.clock != nil && !reflect.ValueOf(key.clock).Comparable():
		m = newMember(*cfg)
		o := m.busOptions()
		o.Extra, o.Explain = options, server.Explain
		if m.bus, err = j.dial(ctx, server.URL, o); err != nil {
			return nil, server.Explain(err)
		}
		m.multiplexer = newMultiplexer("", m.subjects, m.bus, cfg.Logger)
		m.multiplexer.auto, m.release = cfg.auto, m.multiplexer.endMultiplexer
		return m, nil
	default:
		begin := func() (*multiplexer, error) { return j.multiplexed(ctx, &server, options, cfg) }
		end := func(c *multiplexer) error { return errors.Join(c.endMultiplexer(), c.bus.Close()) }
		if c, release, err = shares.Take(ctx, key, begin, end); err != nil {
			return nil, err
		}
	}
	c.clockOf(cfg)
	m = newMember(*cfg)
	m.multiplexer, m.release = c, release
	if m.bus, err = bus.Share(c.bus, m.busOptions()); err != nil {
		return nil, errors.Join(err, release())
	}
	return m, nil
}

// findServer is what to dial, if anything, and the options for it.
func (j *joining) findServer(url string) (connect.Server, []nats.Option, error) {
	switch {
	case j.conn != nil || j.node != nil:
		return connect.Server{}, nil, nil
	case j.nats != nil:
		return connect.To(url, *j.nats)
	}
	return connect.To(url, nil)
}

// clockOf gives all members that brought none one clock, which is measured once.
func (c *multiplexer) clockOf(cfg *Config) {
	if cfg.auto == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.auto == nil {
		c.auto = cfg.auto
	}
	cfg.auto, cfg.Clock = c.auto, c.auto
}

// multiplexed makes a multiplexer with a connection, for several.
func (j *joining) multiplexed(ctx context.Context, server *connect.Server, options []nats.Option, cfg *Config) (*multiplexer, error) {
	var made atomic.Pointer[multiplexer]
	b, err := j.dial(ctx, server.URL, bus.Options{Extra: options, Explain: server.Explain, Name: "pegasus agent " + cfg.Group + "/" + cfg.Name, OnError: func(err error) { //nolint:contextcheck // It comes when Join has long returned.
		if c := made.Load(); c != nil {
			c.noteComplaint(err)
		}
	}})
	if err != nil {
		return nil, server.Explain(err)
	}
	c := newMultiplexer("", wire.Subjects{Tenant: cfg.Tenant, Group: cfg.Group}, b, cfg.Logger)
	made.Store(c)
	return c, nil
}
