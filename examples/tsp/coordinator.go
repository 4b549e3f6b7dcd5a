package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/examples/tsp/bnb"
	"github.com/gopegasus/pegasus/examples/tsp/lease"
	"github.com/gopegasus/pegasus/examples/tsp/tsplib"
)

// memberName is the coordinator's name in the group.
const memberName = "coordinator"

// globalState is what the coordinator tells: the state of gsync's members in
// the configuration, where the fields of workers are at rest.
type globalState struct {
	Role   string
	Idle   bool
	Load   float64
	Best   int
	Want   int
	Hungry int
	Spare  int
	Giving bool

	Received int
	Sent     int
	Open     int
	Pool     int
	Next     int
	Turn     int
	Bound    int
	Gap      float64
}

// coordinator keeps the account of the run: which worker has which subtasks, the
// best tour and the lower bound. It decides nothing: the synchronizer does, on
// the states that it and the workers tell.
type coordinator struct {
	info    runInfo
	in      *tsplib.Instance
	file    []byte // of the instance, if it is not known by name
	gap     float64
	screen  *screen
	journal *slog.Logger
	given   []int // the tour of -tour, if there is one
	now     func() time.Time

	mu       sync.Mutex
	member   *agent.Member // nil before it joins
	problem  *bnb.Problem  // nil before it is prepared
	table    *lease.Table
	tour     []int
	best     int // of tour, math.MaxInt before the first
	bound    int
	turn     int                 // counts the states of the pool that were told
	pool     lease.Counts        // as it was told last
	sessions map[string]*session // by the worker's name
	over     bool                // the workers are told to go
	pids     map[string]int      // of every worker there was
	first    time.Time           // when the first lease was granted
	end      time.Time           // when the verdict came
	verdict  string              // the predicate that ended the search
	nodes    int64               // searched in the first cut
	tally    tally
}

func newCoordinator(info runInfo, in *tsplib.Instance, gap float64, sc *screen) *coordinator {
	return &coordinator{
		info: info, in: in, gap: gap, screen: sc, journal: slog.New(slog.DiscardHandler), now: time.Now,
		table: lease.NewTable(nil), best: math.MaxInt, sessions: map[string]*session{}, pids: map[string]int{}, tally: newTally(),
	}
}

// search joins the group, cuts the instance into about parts subtasks, and waits
// in the region until a predicate ends the search or ctx does.
func (c *coordinator) search(ctx context.Context, url string, parts int) error {
	im := bnb.NewImprover(c.in, bnb.ImproverOptions{Seed: c.info.Seed, Kicks: c.in.N})
	if c.given != nil {
		if err := im.Offer(c.given); err != nil {
			return err
		}
	}
	tour, length := im.Best()
	c.improve(memberName, tour, length)
	m, err := agent.Join(ctx, url, agent.Config{Group: group, Name: memberName, Tenant: c.info.ID, State: globalState{}, SeparateClock: c.info.Separate})
	if err != nil {
		return err
	}
	err = m.Region(ctx, regionSearch, func(ctx context.Context, r *agent.Region) error {
		return c.watch(ctx, m, r, func(ctx context.Context) error { return c.prepare(ctx, im, parts) })
	},
		agent.OnActivate("NewBest", func(context.Context, agent.Signal) error { return nil }),
		agent.OnCancel("StopIteration", c.ended), agent.OnCancel("Done", c.ended))
	if err == nil {
		c.awaitStop(leaveWait)
	}
	c.dismiss()
	return errors.Join(err, m.Close())
}

// watch prepares the search while the workers improve their tours, and then
// waits. The preparation of a large instance may not end soon when ctx does; it is
// left behind then. Every now and then it tells the state again under another turn, so that
// a decision whose signal got lost on the way is made again.
func (c *coordinator) watch(ctx context.Context, m *agent.Member, r *agent.Region, prepare func(context.Context) error) error {
	c.mu.Lock()
	c.member = m
	c.mu.Unlock()
	prepared := make(chan error, 1)
	go func() { prepared <- prepare(ctx) }()
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		if err := c.again(); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case err := <-prepared:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := r.Check(); err != nil {
			return err
		}
	}
}

// ended notes which predicate ended the search.
func (c *coordinator) ended(_ context.Context, s agent.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.verdict, c.end = s.Name, c.now()
	c.journal.Info("end", "predicate", s.Predicate, "decision", s.Decision.String(), "best", c.best, "bound", c.bound)
	return nil
}

// again tells the state under another turn.
func (c *coordinator) again() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn++
	return c.publish()
}

// publish tells the present state. The turn rises when the pool is another.
func (c *coordinator) publish() error {
	if c.member == nil || c.verdict != "" {
		return nil
	}
	n := c.table.Counts()
	if n.Pool != c.pool.Pool || n.Next != c.pool.Next {
		c.turn++
	}
	c.pool = n
	return c.member.Set(globalState{
		Role: "coordinator", Idle: c.problem != nil, Best: c.best,
		Sent: n.Sent, Open: n.Open, Pool: n.Pool, Next: int(n.Next), Turn: c.turn, Bound: c.bound, Gap: c.gap,
	})
}

// changed brings the bound up to date and tells the state.
func (c *coordinator) changed() {
	c.raiseBound()
	if err := c.publish(); err != nil && !errors.Is(err, agent.ErrClosed) {
		c.screen.line("state not set: %v", err)
	}
}

// raiseBound: what no open lease is below, no tour is. When no lease is open the
// bound stays, for then the search is done, and that is for a predicate to say.
func (c *coordinator) raiseBound() {
	if c.problem == nil {
		return
	}
	if bound, ok := c.table.LowerBound(); ok {
		c.bound = max(c.bound, min(bound, c.best))
	}
	if c.bound > c.problem.Next(c.best) {
		c.bound = c.best
	}
}

// improve takes a tour that is better than the best so far.
func (c *coordinator) improve(from string, tour []int, length int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.improveLocked(from, tour, length)
}

func (c *coordinator) improveLocked(from string, tour []int, length int) {
	if length >= c.best {
		return
	}
	c.best, c.tour = length, slices.Clone(tour)
	c.journal.Info("best", "from", from, "length", length)
}

// drop takes a worker's leases from it when it has left the epoch.
func (c *coordinator) drop(name, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sessions[name]
	if s == nil || c.verdict != "" || c.over {
		return
	}
	delete(c.sessions, name)
	ids := c.table.Drop(s.id)
	c.journal.Info("drop", "worker", name, "reason", reason, "leases", ids)
	c.screen.line("%s is lost (%s): %s queued again", name, reason, plural(len(ids), "subtask"))
	c.changed()
}

func plural(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "s"):
		what += "e"
	case strings.HasSuffix(what, "y"):
		what = strings.TrimSuffix(what, "y") + "ie"
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// awaitStop waits until every worker has applied the signal that ends it.
func (c *coordinator) awaitStop(limit time.Duration) {
	timeout := time.After(limit)
	for c.stopping() > 0 {
		select {
		case <-c.tally.changed:
		case <-timeout:
			return
		}
	}
}

// dismiss tells the workers that are still there to go.
func (c *coordinator) dismiss() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
}

// outsiders counts the workers that this run has not started.
func (c *coordinator) outsiders() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, s := range c.sessions {
		if s.outside {
			n++
		}
	}
	return n
}
