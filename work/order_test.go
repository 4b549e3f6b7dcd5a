package work_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/gopegasus/pegasus/balance/local"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/testwait"
	"github.com/gopegasus/pegasus/work"
)

// obedient asks for nothing by itself. It takes each offer and gives what is asked for.
type obedient struct{}

func (obedient) Look(_ clocksync.Instant, v *local.View, demands []local.Demand) ([]local.Demand, clocksync.Instant) {
	for i := range v.Neighbours {
		if n := &v.Neighbours[i]; n.Offers > 0 {
			demands = append(demands, local.Demand{Member: n.Name, Tasks: n.Offers})
		}
	}
	return demands, clocksync.MaxInstant
}

func (obedient) Answer(_ clocksync.Instant, v *local.View, d local.Demand) local.Share {
	if v.Waiting > 0 {
		return local.Share{Tasks: min(v.Waiting, d.Tasks)}
	}
	return local.Share{Part: 0.5}
}

// Steps is a bag of so many steps.
type Steps struct{ Left int }

func (s *Steps) Len() int { return s.Left }

func (s *Steps) Split(n int) Steps {
	s.Left -= n
	return Steps{n}
}

// TestOrders: a program moves tasks by Fetch and Give alone, a member of no slots runs none, and what Save has saved is
// found, and left out of the rest, while the bag runs.
func TestOrders(t *testing.T) {
	g := newLive(t, live, 3)
	saved, more := make(chan string, 8), make(chan struct{})
	run := func(ctx context.Context, b *Steps, found *int64) error {
		if b.Left--; b.Left > 0 {
			if *found++; work.Save(ctx) != nil {
				t.Error("a bag with steps left is not saved")
			}
			if *found != 0 {
				t.Errorf("found is %d after it was saved", *found)
			}
			saved <- "saved"
		}
		for {
			select {
			case <-more:
				*found += int64(b.Left) + 1 - min(1, int64(b.Left))
				b.Left = 0
				return nil
			default:
				if err := work.Yield(ctx); err != nil {
					return err
				}
			}
		}
	}
	list := make([]*work.Space, 3)
	var all sync.WaitGroup
	for i, name := range []string{"keeper", "one", "two"} {
		m := g.join(name, g.server.URL())
		all.Go(func() {
			var err error
			list[i], err = work.Open(t.Context(), m, work.Slots(min(i, 1)), work.Strategy(obedient{}),
				work.Bag("steps", run, func(a, b int64) int64 { return a + b }))
			if err != nil {
				t.Error(err)
			}
		})
	}
	if all.Wait(); t.Failed() {
		return
	}
	keeper, one, two := list[0], list[1], list[2]
	for _, s := range list {
		t.Cleanup(func() { _ = s.Close() })
	}
	if err := keeper.Put(t.Context(), "steps", Steps{9}); err != nil {
		t.Fatal(err)
	}
	go func() { _ = one.Serve(t.Context()) }()
	go func() { _ = two.Serve(t.Context()) }()
	for _, c := range []struct {
		err  error
		want string
	}{
		{one.Fetch("keeper", 0), `work: fetch from member "keeper": 0 tasks: name 1 or more`},
		{one.Give("two", -1), `work: give to member "two": -1 tasks: name 1 or more`},
		{work.Save(t.Context()), "work: Save needs the context of the function of a bag that a space runs"},
	} {
		if c.err == nil || c.err.Error() != c.want {
			t.Errorf("%v, want %s", c.err, c.want)
		}
	}
	if n := keeper.Stats(); n.Queued != 1 || one.Stats().Running+two.Stats().Running != 0 {
		t.Errorf("%+v before any order", n)
	}
	again(t, saved, func() error { return one.Fetch("keeper", 1) })
	if n, err := work.Found[int64](keeper, "steps"); n != 1 || err != nil {
		t.Errorf("%d found, %v, want what was saved", n, err)
	}
	if rest, err := work.Rests[Steps](keeper, "steps"); err != nil || len(rest) != 1 || rest[0].Left != 8 {
		t.Errorf("%v, %v is left, want 8 steps", rest, err)
	}
	again(t, saved, func() error { return one.Give("two", 1) })
	left := 0
	rest, err := work.Rests[Steps](keeper, "steps")
	for _, b := range rest {
		left += b.Left
	}
	if err != nil || len(rest) < 2 || left != 7 { // An order may have come twice.
		t.Errorf("%v, %v is left, want 7 steps in two bags or more", rest, err)
	}
	close(more)
	if n, err := work.Total[int64](t.Context(), keeper, "steps"); n != 9 || err != nil {
		t.Errorf("%d in all, %v", n, err)
	}
	if err := one.Close(); err != nil {
		t.Error(err)
	}
	if err := one.Fetch("keeper", 1); err == nil || !strings.HasPrefix(err.Error(), `work: fetch from member "keeper": `) {
		t.Errorf("%v after the space is closed", err)
	}
}

// again gives an order until it has led to something: one that comes before the members have heard of each other is dropped.
func again(t *testing.T, done <-chan string, order func() error) {
	t.Helper()
	if !testwait.Within(patience, func() bool {
		if err := order(); err != nil {
			t.Fatal(err)
		}
		return len(done) > 0
	}) {
		t.Fatal("the order led to nothing")
	}
	<-done
}

// TestSlotsRefused: a number of slots that cannot be is refused.
func TestSlotsRefused(t *testing.T) {
	g := newLive(t, live, 1)
	_, err := work.Open(t.Context(), g.join("a", g.server.URL()), work.Slots(-1))
	if err == nil || err.Error() != "work: slots: -1 tasks at a time: use 0 to 1024" {
		t.Error(err)
	}
}
