package agent

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/wire"
)

// shareKey says which members of a process share a connection: those for which all of
// it is the same. The url has the identity on the server.
type shareKey struct {
	url           string
	conn          *nats.Conn
	tenant, group string
	host          string
	clock         clocksync.Clock // nil: the system's
	drift         float64
}

// share is a multiplexer and how many members have it.
type share struct {
	ready       chan struct{} // closed when there is one, or an error
	multiplexer *multiplexer
	err         error
	members     int
}

// shares are those of the process.
var shares = struct { //nolint:gochecknoglobals // Members that know nothing of each other share a connection.
	sync.Mutex

	of map[shareKey]*share
}{of: map[shareKey]*share{}}

// connected makes a member with a connection, its own or one that is there already.
func (j *joining) connected(ctx context.Context, url string, cfg *Config) (m *Member, err error) {
	key := shareKey{url: url, conn: j.conn, tenant: cfg.Tenant, group: cfg.Group, host: cfg.Host, drift: cfg.Drift}
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
		if m.bus, err = j.dial(ctx, url, m.busOptions()); err != nil {
			return nil, err
		}
		m.multiplexer = newMultiplexer("", m.subjects, m.bus, cfg.Logger)
		m.multiplexer.auto, m.release = cfg.auto, m.multiplexer.end
		return m, nil
	default:
		if c, err = j.shared(ctx, url, cfg, key); err != nil {
			return nil, err
		}
		release = func() error { return leaveShare(key, c) }
	}
	c.clockOf(cfg)
	m = newMember(*cfg)
	m.multiplexer, m.release = c, release
	if m.bus, err = bus.Share(c.bus, m.busOptions()); err != nil {
		return nil, errors.Join(err, release())
	}
	return m, nil
}

// shared counts a member in, and finds its multiplexer or makes it.
func (j *joining) shared(ctx context.Context, url string, cfg *Config, key shareKey) (*multiplexer, error) {
	for {
		s, first := claim(key)
		if first {
			c, err := j.multiplexed(ctx, url, cfg)
			shares.Lock()
			s.multiplexer, s.err = c, err // Who gives up meanwhile looks at them.
			shares.Unlock()
			if err != nil {
				s.leave(key)
			}
			close(s.ready)
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			// After a failed dial the first has been counted out already, and nobody finds the
			// share: to be counted out again does no harm then.
			if s.leave(key) && s.multiplexer != nil {
				_ = errors.Join(s.multiplexer.end(), s.multiplexer.bus.Close())
			}
			return nil, context.Cause(ctx)
		}
		switch {
		case s.err == nil:
			return s.multiplexer, nil
		case first || ctx.Err() != nil:
			return nil, s.err
		}
	}
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

// claim counts a member in, and says whether it is the first, which has to connect.
func claim(key shareKey) (s *share, first bool) {
	shares.Lock()
	defer shares.Unlock()
	s = shares.of[key]
	if s == nil {
		s, first = &share{ready: make(chan struct{})}, true
		shares.of[key] = s
	}
	s.members++
	return s, first
}

// leave counts a member out, and reports whether it was the last. After a failure nobody
// finds it any more.
func (s *share) leave(key shareKey) (last bool) {
	shares.Lock()
	defer shares.Unlock()
	s.members--
	last = s.members == 0
	if (last || s.err != nil) && shares.of[key] == s {
		delete(shares.of, key)
	}
	return last
}

// leaveShare has the last member close the connection.
func leaveShare(key shareKey, c *multiplexer) error {
	shares.Lock()
	s := shares.of[key]
	shares.Unlock()
	if !s.leave(key) {
		return nil
	}
	return errors.Join(c.end(), c.bus.Close())
}

// multiplexed makes a multiplexer with a connection, for several.
func (j *joining) multiplexed(ctx context.Context, url string, cfg *Config) (*multiplexer, error) {
	var made atomic.Pointer[multiplexer]
	b, err := j.dial(ctx, url, bus.Options{Name: "pegasus agent " + cfg.Group + "/" + cfg.Name, OnError: func(err error) { //nolint:contextcheck // It comes when Join has long returned.
		if c := made.Load(); c != nil {
			c.complained(err)
		}
	}})
	if err != nil {
		return nil, err
	}
	c := newMultiplexer("", wire.Subjects{Tenant: cfg.Tenant, Group: cfg.Group}, b, cfg.Logger)
	made.Store(c)
	return c, nil
}
