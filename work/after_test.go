package work

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/gopegasus/pegasus/internal/config"
)

// TestAfterRefused shows what Put tells of tasks that run after others.
func TestAfterRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		section := config.DefaultWork()
		section.Open = 3
		s := newGroup(section).space(t, "a", Func("square", square))
		put := func(id string, after ...string) error {
			return s.Put(t.Context(), "square", 2, ID("%s", id), After(after...))
		}
		for i, c := range []struct{ got, want error }{
			{put("a", "a"), errors.New(`work: put: task "a": it waits for itself: leave it out of After`)},
			{put("a", ""), errors.New(`work: put: task "a": it runs after task "": an ID has 1 to 128 bytes`)},
			{put("a", make([]string, 65)...), errors.New(`work: put: task "a": it runs after 65 tasks, and at most 64 are allowed: put a task between that runs after some of them`)},
			{put("a", "b"), nil},
			{put("b", "x", "a"), errors.New(`work: put: task "b" waits for "a", which waits for "b": none of them could begin: leave one of these out of After`)},
			{put("b", "x"), nil},
			{put("c", "b"), nil},
			{put("x"), errors.New(`work: put task "x": all 3 tasks that are open wait for tasks that were not put, and the key open allows no more: put tasks before those that run after them, or raise open`)},
			{s.Cancel("a"), nil},
			{put("x"), nil},
		} {
			if c.want == nil && c.got != nil || c.want != nil && (c.got == nil || c.got.Error() != c.want.Error()) {
				t.Errorf("%d: %v\nwant %v", i, c.got, c.want)
			}
		}
		var done []string
		for r, err := range Results[int](t.Context(), s, "square") {
			if err == nil {
				done = append(done, r.ID)
			}
		}
		if len(done) != 3 || done[0] != "x" || done[1] != "b" || done[2] != "c" {
			t.Errorf("%v", done)
		}
	})
}

// TestAfterWhilePutWaits: a Put that waits for room hears that none will come.
func TestAfterWhilePutWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		section := config.DefaultWork()
		section.Open, section.Slots = 2, 1
		free := make(chan struct{})
		s := newGroup(section).space(t, "a", Func("wait", func(ctx context.Context, _ int) (int, error) { <-free; return 0, nil }))
		for id, after := range map[string][]string{"first": nil, "second": {"third"}} {
			if err := s.Put(t.Context(), "wait", 0, ID("%s", id), After(after...)); err != nil {
				t.Fatal(err)
			}
		}
		got := make(chan error, 2)
		for _, id := range []string{"fourth", "fifth"} {
			go func() { got <- s.Put(t.Context(), "wait", 0, ID("%s", id), After("third")) }()
		}
		synctest.Wait()
		if len(got) > 0 {
			t.Errorf("a Put does not wait: %v", <-got)
		}
		close(free)
		synctest.Wait()
		failed := 0
		for range 2 {
			if err := <-got; err != nil {
				failed++
			}
		}
		if failed != 1 {
			t.Errorf("%d of 2 calls have failed, and there was room for one", failed)
		}
	})
}
