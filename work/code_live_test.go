package work_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gopegasus/pegasus/work"
)

// TestLiveCode: a task goes only to members that have declared its function, and a function that no member has declared is an
// error at the end of the phase.
func TestLiveCode(t *testing.T) {
	t.Parallel()
	g := newLive(t, strings.Replace(live, "slots: 1", "slots: 1, retry: 1", 1), 3) // A run at a member without the function fails the task.
	var squares, cubes atomic.Int64
	square := work.Func("square", func(_ context.Context, n int) (int, error) { squares.Add(1); return n * n, nil })
	cube := func(ran *atomic.Int64) work.Option {
		return work.Func("cube", func(_ context.Context, n int) (int, error) { ran.Add(1); return n * n * n, nil })
	}
	var other atomic.Int64
	options := [3][]work.Option{{work.Remote[int, int]("square"), cube(&cubes), work.Remote[int, int]("nowhere")}, {square}, {cube(&other)}}
	var list [3]*work.Space
	var all sync.WaitGroup
	for i, name := range []string{"a", "b", "c"} { // The first epoch needs all of them.
		all.Go(func() { list[i] = g.spaces([]string{name}, options[i]...)[0] })
	}
	all.Wait()
	ctx, s := limited(t), list[0]
	serveLive(t, list[1])
	serveLive(t, list[2])
	for phase := range 2 {
		for i := range 50 {
			for _, name := range []string{"square", "cube"} {
				if err := s.Put(ctx, name, i, work.ID("%s/%d", name, i)); err != nil {
					t.Fatal(err)
				}
			}
		}
		seen := 0
		for r, err := range work.Results[int](ctx, s, "square") {
			var n int
			if _, scan := fmt.Sscanf(r.ID, "square/%d", &n); err != nil || scan != nil || r.Value != n*n {
				t.Errorf("task %s: %d, %v", r.ID, r.Value, err)
			}
			seen++
		}
		if seen != 50 || squares.Load() != int64(50*(phase+1)) || cubes.Load()+other.Load() != int64(50*(phase+1)) {
			t.Errorf("phase %d: %d results; %d squares at the member that has them, %d and %d cubes at the two others", phase+1, seen, squares.Load(), cubes.Load(), other.Load())
		}
	}
	if err := s.Put(ctx, "nowhere", 1, work.ID("n")); err != nil {
		t.Fatal(err)
	}
	const want = `work: task "n" has failed: function "nowhere": no member that may get the task has declared it, and the program waits for the end of the phase: declare it in Open of a program of the space, and let that member join before`
	if err := s.Wait(ctx); err == nil || err.Error() != want {
		t.Errorf("%v; want %s", err, want)
	}
}
