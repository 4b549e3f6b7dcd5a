package work_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/work"
)

// part is a bag of numbers.
type part struct{ Low, High int }

func (p *part) Len() int { return p.High - p.Low }

func (p *part) Split(n int) part {
	p.High -= n
	return part{p.High, p.High + n}
}

// TestLiveAfter: three members scan numbers in a bag and do forty calls, and then what runs after all of these, once; what
// runs after a failure fails; a function puts tasks that run after each other.
func TestLiveAfter(t *testing.T) {
	const numbers, calls = 400, 40
	var scanned, called, sums atomic.Int64
	scan := work.Bag("scan", func(ctx context.Context, p *part, n *int) error {
		for p.Len() > 0 {
			p.Low++
			*n++
			scanned.Add(1)
			<-time.After(time.Millisecond) // It stands for work.
			if err := work.Yield(ctx); err != nil {
				return err
			}
		}
		return nil
	}, func(a, b int) int { return a + b })
	call := work.Func("call", func(context.Context, int) (int, error) { called.Add(1); return 1, nil })
	sum := func(own *atomic.Pointer[work.Space]) work.Option {
		return work.Func("sum", func(ctx context.Context, _ string) (string, error) {
			sums.Add(1)
			err := own.Load().Put(ctx, "last", "y", work.ID("y"), work.After("x"))
			return fmt.Sprint(scanned.Load(), " scanned, ", called.Load(), " called"), errors.Join(err, own.Load().Put(ctx, "last", "x", work.ID("x"), work.After("sum")))
		})
	}
	last := work.Func("last", func(_ context.Context, name string) (string, error) {
		if name == "bad" {
			return "", errors.New("it is bad")
		}
		return name, nil
	})
	g := newLive(t, live, 1)
	var spaces []*work.Space
	for _, name := range []string{"a", "b", "c"} {
		var own atomic.Pointer[work.Space]
		own.Store(g.spaces([]string{name}, scan, call, sum(&own), last)[0])
		spaces = append(spaces, own.Load())
	}
	for _, s := range spaces[1:] {
		serveLive(t, s)
	}
	ctx, s := limited(t), spaces[0]
	after := []string{"scan"}
	for i := range calls {
		after = append(after, fmt.Sprint("call/", i))
	}
	if err := s.Put(ctx, "sum", "", work.ID("sum"), work.After(after...)); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(ctx, "scan", part{0, numbers}, work.ID("scan")); err != nil {
		t.Fatal(err)
	}
	for i := range calls {
		if err := s.Put(ctx, "call", i, work.ID("call/%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	for id, after := range map[string][]string{"bad": nil, "skipped": {"bad"}} {
		if err := s.Put(ctx, "last", id, work.ID("%s", id), work.After(after...)); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]string{}
	for r, err := range work.Results[string](ctx, s, "sum") {
		got[r.ID] = fmt.Sprint(r.Value, " ", err)
	}
	var order []string
	for r, err := range work.Results[string](ctx, s, "last") {
		if got[r.ID] = fmt.Sprint(r.Value, " ", err); r.ID == "x" || r.ID == "y" {
			order = append(order, r.ID)
		}
	}
	for id, want := range map[string]string{
		"sum":     "400 scanned, 40 called <nil>",
		"x":       "x <nil>",
		"y":       "y <nil>",
		"bad":     ` work: task "bad" has failed: it is bad`,
		"skipped": ` work: task "skipped" has failed: task "bad", which has to be done before, has failed`,
	} {
		if got[id] != want {
			t.Errorf("%s: %s; want %s", id, got[id], want)
		}
	}
	if fmt.Sprint(order) != "[x y]" {
		t.Errorf("the tasks of a function run as %v", order)
	}
	if n := s.Stats().Given; n == 0 || sums.Load() != 1 {
		t.Errorf("%d tasks were given to others, and the sum ran %d times", n, sums.Load())
	}
}
