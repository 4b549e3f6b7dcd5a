package main

import (
	"cmp"
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
	"github.com/gopegasus/pegasus/examples/tsp/tsplib"
	"github.com/gopegasus/pegasus/work"
)

// memberName is the coordinator's name in the group.
const memberName = "coordinator"

// kicks is the budget of the local search in each process; 0 is the usual one. A test lowers it, so that bags find tours.
var kicks int

// globalState is what the coordinator tells: the state of gsync's members in
// the configuration, where the fields of workers are at rest.
type globalState struct {
	Role   string
	Load   float64
	Best   int
	Want   int
	Hungry int
	Spare  int
	Giving bool

	Turn  int
	Bound int
	Gap   float64
}

// coordinator keeps the account of the run: it puts the subtasks into the space, where it runs none itself, and has the
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
	space    *work.Space   // nil before it is open
	parts    int           // subtasks of the first cut
	tour     []int
	best     int // of tour, math.MaxInt before the first
	bound    int
	turn     int                 // counts the states that were told
	sessions map[string]*session // by the worker's name
	over     bool                // the workers are told to go
	pids     map[string]int      // of every worker there was
	first    time.Time           // when the first subtask was asked for, or seen to be given
	end      time.Time           // when the verdict came
	verdict  string              // the predicate that ended the search
	proof    int                 // the length of the best tour, as it says
	nodes    int64               // searched in the first cut
	tally    tally
}

func newCoordinator(info runInfo, in *tsplib.Instance, gap float64, sc *screen) *coordinator {
	return &coordinator{
		info: info, in: in, gap: gap, screen: sc, journal: slog.New(slog.DiscardHandler), now: time.Now,
		best: math.MaxInt, sessions: map[string]*session{}, pids: map[string]int{}, tally: newTally(),
	}
}

// search joins the group, cuts the instance into about parts subtasks, and waits
// in the region until a predicate ends the search or ctx does.
func (c *coordinator) search(ctx context.Context, url string, parts int) error {
	im := bnb.NewImprover(c.in, bnb.ImproverOptions{Seed: c.info.Seed, Kicks: cmp.Or(kicks, c.in.N)})
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
	searched := make(chan error, 1)
	beside, stop := context.WithCancelCause(ctx)
	err = m.Region(ctx, regionSearch, func(ctx context.Context, r *agent.Region) error {
		go func() { searched <- c.account(beside, m, im, parts) }()
		return c.watch(ctx, m, r, searched)
	},
		agent.OnActivate("NewBest", func(context.Context, agent.Signal) error { return c.again() }),
		agent.OnCancel("StopIteration", c.ended), agent.OnCancel("Done", c.ended))
	if err == nil {
		err = c.conclude(searched)
		c.awaitStop(leaveWait)
	}
	stop(errOver)
	c.dismiss()
	return errors.Join(err, c.closeSpace(), m.Close())
}

// account cuts the problem, puts the subtasks and waits until all are searched. Its error is nil then.
func (c *coordinator) account(ctx context.Context, m *agent.Member, im *bnb.Improver, parts int) error {
	list, err := c.prepare(ctx, im, parts)
	if err != nil {
		return err
	}
	strategy, err := newStrategy(c.info.Strategy)
	if err != nil {
		return err
	}
	s, err := work.Open(ctx, m, work.Slots(0), work.Strategy(strategy), work.Bag(bagName, unsearched, shorter))
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.space = s
	c.mu.Unlock()
	for i := range list {
		if err := s.Put(ctx, bagName, &Tours{list: list[i : i+1]}); err != nil {
			return err
		}
	}
	best, err := work.Total[Best](ctx, s, bagName)
	if err == nil {
		c.found(best)
	}
	return err
}

// unsearched is the function of bags at the coordinator, which has no slot.
func unsearched(context.Context, *Tours, *Best) error {
	return errors.New("the coordinator searches nothing")
}

// found takes the best tour that is recorded in the space.
func (c *coordinator) found(best Best) {
	if best.Length == 0 {
		return
	}
	if err := bnb.Verify(c.in, best.Tour, best.Length); err != nil {
		c.screen.line("a tour was refused: %v", err)
		return
	}
	c.improve("the space", best.Tour, best.Length)
}

// conclude waits for what the space has come to, once a predicate has ended the search. The tour that the predicate spoke of is
// recorded there, or the search proves nothing.
func (c *coordinator) conclude(searched <-chan error) error {
	c.mu.Lock()
	done, s := c.verdict == "Done", c.space
	c.mu.Unlock()
	if done {
		select {
		case err := <-searched:
			if err != nil {
				return fmt.Errorf("the search has ended, and its account has not: %w", err)
			}
		case <-time.After(leaveWait):
			return errors.New("the search has ended, and its account has not")
		}
	} else if s != nil {
		c.collect(s)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.best > c.proof {
		return fmt.Errorf("the search has ended by a tour of length %d, and the best recorded tour has %d: the end proves nothing", c.proof, c.best)
	}
	return nil
}

// collect takes what the space has recorded so far: the best tour, and the lowest bound of what is left.
func (c *coordinator) collect(s *work.Space) {
	if best, err := work.Found[Best](s, bagName); err == nil {
		c.found(best)
	}
	rests, err := work.Rests[lowBound](s, bagName)
	if err != nil {
		c.screen.line("the lower bound stays as it is: %v", err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raiseBound(rests)
}

func (c *coordinator) closeSpace() error {
	c.mu.Lock()
	s := c.space
	c.mu.Unlock()
	if s == nil {
		return nil
	}
	return s.Close()
}

// watch waits for a signal while the account is kept beside. The preparation of a large instance may not end soon when ctx
// does; it is left behind then. Every now and then it tells the state again under another turn, so that
// a decision whose signal got lost on the way is made again.
func (c *coordinator) watch(ctx context.Context, m *agent.Member, r *agent.Region, searched chan error) error {
	c.mu.Lock()
	c.member = m
	c.mu.Unlock()
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for ended := searched; ; {
		if err := c.again(); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case err := <-ended:
			if err != nil {
				return err
			}
			searched <- nil // For conclude.
			ended = nil
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
	c.verdict, c.end, c.proof = s.Name, c.now(), int(s.Int("length"))
	c.journal.Info("end", "predicate", s.Predicate, "decision", s.Decision.String(), "best", c.best, "bound", c.bound)
	return nil
}

// again tells the state under another turn, with what the space has recorded.
func (c *coordinator) again() error {
	c.mu.Lock()
	s := c.space
	c.mu.Unlock()
	if s != nil {
		c.collect(s)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.turn++; s != nil && c.first.IsZero() && s.Stats().Given > 0 {
		c.first = c.now()
	}
	return c.publish()
}

// publish tells the present state.
func (c *coordinator) publish() error {
	if c.member == nil || c.verdict != "" {
		return nil
	}
	return c.member.Set(globalState{Role: "coordinator", Best: c.best, Turn: c.turn, Bound: c.bound, Gap: c.gap})
}

// publishLogged is publish for those who cannot return the error.
func (c *coordinator) publishLogged() {
	if err := c.publish(); err != nil && !errors.Is(err, agent.ErrClosed) {
		c.screen.line("state not set: %v", err)
	}
}

// raiseBound: what no open bag is below, as it is recorded, no tour is. When no bag is open the
// bound stays, for then the search is done, and that is for a predicate to say.
func (c *coordinator) raiseBound(rests []lowBound) {
	if c.problem == nil {
		return
	}
	if len(rests) > 0 {
		c.bound = max(c.bound, min(int(slices.Min(rests)), c.best))
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

// drop forgets a worker that has left the epoch. The space has its bags searched by others, from where they were saved.
func (c *coordinator) drop(name, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sessions[name] == nil || c.verdict != "" || c.over {
		return
	}
	delete(c.sessions, name)
	c.journal.Info("drop", "worker", name, "reason", reason)
	c.screen.line("%s is lost (%s): its subtasks are queued again", name, reason)
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
