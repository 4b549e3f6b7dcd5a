//go:build broken && linux

package broken

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/synchronizer"
)

// A crowd is many members that do nothing but change their states: how long it takes to continue
// with them, and that no process begins while another one leads. They write no records.
const (
	aCrowd    = "crowd"
	anUsher   = "usher" // its synchronizer
	crowdText = `
synchronizers:
  broken:
    members: {group: members, count: {min: 1}}
    silence: {after: 20s, then: drop}
    state: {n: int}
    predicates:
      all-there:
        when: all(members, .n >= 0)
        every: true
        cooldown: 20ms
        signal: []
`
)

// changes is how often members of a crowd change their states; a process has them take turns.
const changes = 100 * time.Millisecond

// crowd has members live in this process.
func (r *role) crowd(ctx context.Context, logger *slog.Logger) error {
	type now struct{ N int }
	members := make([]*agent.Member, len(r.Members))
	for i, name := range r.Members {
		m, err := persist(ctx, func() (*agent.Member, error) {
			return agent.Join(ctx, r.URL, agent.Config{Group: "members", Name: name, State: now{}, Logger: logger, JoinTimeout: time.Hour})
		})
		if err != nil {
			return err
		}
		defer m.Close()
		members[i] = m
	}
	for n := 0; ; n++ {
		for _, m := range members {
			if err := m.Set(now{n}); err != nil {
				return err
			}
			if !pause(ctx, changes/time.Duration(len(members))) {
				return nil
			}
		}
	}
}

// usher is the synchronizer of a crowd. It writes down that it decides, and not on what.
func (r *role) usher(ctx context.Context, w *writer, logger *slog.Logger) error {
	cfg, err := synchronizer.ParseConfig("crowd.yaml", []byte(crowdText), synchronizer.Members("broken", r.Awaited))
	if err != nil {
		return err
	}
	s, err := persist(ctx, func() (*synchronizer.Synchronizer, error) {
		return synchronizer.Start(ctx, r.URL, cfg, synchronizer.Options{
			Logger: logger, State: r.Dir + "/state", Standby: r.Standby,
			Observe: func(e monitor.Event) {
				if v, ok := e.(monitor.Verdict); ok && v.Fired {
					w.put(&record{Kind: kindFired, At: clock(), Firing: &firing{Rule: v.Predicate, Made: number{v.Decision.Term, v.Decision.Epoch, v.Decision.Number}}})
				}
			},
		})
	})
	if err != nil {
		return err
	}
	watch(ctx, s, func(st *monitor.Status) {
		warm := 0
		for _, other := range st.Standbys {
			if strings.Contains(other, "warm") {
				warm++
			}
		}
		w.put(&record{Kind: kindShown, At: clock(), Text: strings.Join(st.Standbys, "; "), Shown: &shown{Term: st.Term, Standbys: warm}})
	})
	return errors.Join(s.Close(), s.Err())
}

// TestKilledLeaderOfMany kills the synchronizer of 2,000 members in 20 processes, again and
// again, and then leaves it alone: nobody begins while another one leads. For a change it is a tenth.
func TestKilledLeaderOfMany(t *testing.T) {
	t.Parallel()
	n, members, alone := often(t, 1, 20), 10, 5*time.Second
	if counts() == "nightly" {
		members = 100
		if n == 20 {
			alone = time.Hour
		}
	}
	p, random := newPart(t, n), newRandom(t)
	w := newWorld(t, 20)
	w.server()
	usher := func(name string, standby bool) {
		w.start(role{Kind: anUsher, Name: name, Standby: standby, Awaited: len(w.groups) * members})
	}
	stands := func() bool { return w.lastShown.Shown.Standbys > 0 }
	leader, standby := "s0", "s1"
	usher(leader, false)
	for i := range w.groups {
		var names []string
		for k := range members {
			names = append(names, fmt.Sprintf("m%d-%d", i, k))
		}
		w.start(role{Kind: aCrowd, Name: w.groupName(i), Members: names})
	}
	w.until("a decision", func() bool { return w.lastFired != nil })
	usher(standby, true)
	for range n {
		w.until("one to stand by that is warm", stands)
		elapse(between(random, 0, 500*time.Millisecond))
		at := clock()
		w.kill(w.running[leader])
		p.took(fmt.Sprintf("the leader of %d members is killed: another one decides", members*len(w.groups)), "p99 4 s", w.decidesSince(at))
		leader, standby = standby, leader
		w.lastShown = nil
		usher(standby, true)
	}
	w.until("one to stand by that is warm", stands)
	term := w.lastFired.Firing.Made.Term
	for end := clock() + int64(alone); clock() < end; {
		elapse(time.Second)
		w.look()
	}
	if now := w.lastFired.Firing.Made.Term; now != term {
		t.Errorf("nobody was killed for %v, and the term rose from %d to %d", alone, term, now)
	}
	p.Counts["seconds in which nobody was to begin, and nobody has"] = int(alone.Seconds())
	p.Counts["decisions"] = len(w.fired)
}
