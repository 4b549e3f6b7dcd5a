package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/connect"
)

// patience is how long a leg may take beyond its time: what comes later was lost.
const patience = 5 * time.Second

var errLost = errors.New("a message was lost or came too late: the machine is too busy to measure on")

// worker is the second process.
type worker struct {
	raw    *rawClient
	groups map[string]*group
}

func (w *worker) do(ctx context.Context, q request) (figures, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, q.Time+patience, errLost)
	defer cancel()
	g := w.groups[q.Group]
	switch q.Op {
	case opConnect:
		var err error
		w.raw, err = newRawClient(q.URL, q.Members)
		return figures{}, err
	case opRawRate:
		return w.raw.rate(ctx, q)
	case opRawEcho:
		return w.raw.echo(ctx, q)
	case opJoin:
		g, err := join(ctx, q)
		if err != nil {
			return figures{}, err
		}
		if w.groups == nil {
			w.groups = map[string]*group{}
		}
		w.groups[q.Group] = g
		return figures{}, nil
	case opSpent:
		return figures{CPU: float64(Used())}, nil
	case opTell:
		return figures{}, g.tell()
	case opRate:
		return g.rate(ctx, q)
	case opSignal:
		return g.signal(ctx, q)
	case opThreads:
		return g.threads(ctx, q)
	case opLoad:
		return g.load(ctx, q)
	case opLeave:
		delete(w.groups, q.Group)
		return figures{}, g.leave()
	}
	return figures{}, fmt.Errorf("%q is no operation", q.Op)
}

// leave ends everything.
func (w *worker) leave() error {
	if w.raw != nil {
		w.raw.close()
	}
	var errs []error
	for _, g := range w.groups {
		errs = append(errs, g.leave())
	}
	return errors.Join(errs...)
}

// The operations of a worker.
const (
	opConnect = "connect"
	opJoin    = "join"
	opRawRate = "raw messages"
	opRawEcho = "raw echo"
	opRate    = "reports"
	opSpent   = "processor time"
	opTell    = "first states"
	opSignal  = "signals"
	opThreads = "thread signals"
	opLoad    = "load"
	opLeave   = "leave"
)

// group is the members of a group in the worker.
type group struct {
	members []*agent.Member
	n       int64 // the newest round that a state has told
	acked   int64 // the newest that a signal has answered, and when
	handled clocksync.Instant
	states  []state // of the members under load
}

// joinsAtOnce is how many members join at the same time.
const joinsAtOnce = 16

// join joins the members of a group and sets their first states.
func join(ctx context.Context, q request) (*group, error) {
	server, natsOptions, err := q.server()
	if err != nil {
		return nil, err
	}
	options := []agent.Option{agent.WithNATS(natsOptions...)}
	if q.Own {
		options = append(options, agent.OwnConn())
	}
	g := &group{members: make([]*agent.Member, q.Members)}
	errs := make([]error, joinsAtOnce)
	var joining sync.WaitGroup
	for first := range joinsAtOnce {
		joining.Go(func() {
			for i := first; i < q.Members && errs[first] == nil; i += joinsAtOnce {
				g.members[i], errs[first] = joinOne(ctx, &q, server.URL, q.First+i, options)
			}
		})
	}
	joining.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, g.leave())
	}
	return g, nil
}

// server is where the members join, and the options for it.
func (q *request) server() (connect.Server, []nats.Option, error) {
	if q.URL != "" {
		return ownServer(q.URL)
	}
	s, err := q.Connect.Resolve(connect.FromEnv())
	if err != nil {
		return s, nil, err
	}
	options, err := s.Options()
	return s, options, err
}

// ownServer is a server that a process of the bench has started, and the options for it. The environment is for
// other servers.
func ownServer(url string) (connect.Server, []nats.Option, error) {
	s, err := connect.Settings{URL: url}.Resolve(connect.Settings{})
	if err != nil {
		return s, nil, err
	}
	options, err := s.Options()
	return s, options, err
}

func joinOne(ctx context.Context, q *request, url string, i int, options []agent.Option) (*agent.Member, error) {
	cfg := agent.Config{Tenant: q.Tenant, Group: q.Group, Name: memberName(i), BatchSize: q.Batch}
	if q.Batch > 1 {
		cfg.BatchAge = time.Millisecond
	}
	return agent.Join(ctx, url, cfg, options...)
}

func memberName(i int) string { return fmt.Sprintf("m%d", i) }

func (g *group) leave() error {
	var errs []error
	for _, m := range g.members {
		if m != nil {
			errs = append(errs, m.Close())
		}
	}
	return errors.Join(errs...)
}
