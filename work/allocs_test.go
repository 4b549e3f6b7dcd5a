package work

import (
	"context"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/internal/config"
)

func nothing(context.Context, []byte) ([]byte, error) { return nil, nil }

// TestAllocations holds how much memory an empty task takes: its name, its place in the account and its context. The
// same tasks run by another member take what it costs to tell of them.
func TestAllocations(t *testing.T) {
	const tasks = 4000
	section := config.DefaultWork()
	section.Slots = 1
	for _, c := range []struct {
		name string
		most float64 // for a task
	}{{"alone", 3.2}, {"moved", 8}} {
		t.Run(c.name, func(t *testing.T) {
			g := newGroup(section)
			begun := make(chan struct{}, 1)
			block := Func("block", func(ctx context.Context, _ []byte) ([]byte, error) {
				begun <- struct{}{}
				<-ctx.Done()
				return nil, nil
			})
			a := g.space(t, "a", Func("nothing", nothing), block)
			if c.name == "moved" {
				if err := a.Put(t.Context(), "block", []byte(nil), ID("block")); err != nil {
					t.Fatal(err)
				}
				<-begun
				serve(t, g.space(t, "b", Func("nothing", nothing)))
				t.Cleanup(func() { _ = a.Cancel("block") })
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			n := testing.AllocsPerRun(3, func() {
				for range tasks {
					if err := a.Put(ctx, "nothing", []byte(nil)); err != nil {
						t.Fatal(err)
					}
				}
				n := 0
				for _, err := range Results[[]byte](ctx, a, "nothing") {
					if err != nil {
						t.Fatal(err)
					}
					if n++; n == tasks {
						break
					}
				}
			})
			if t.Logf("%.2f allocations a task", n/tasks); n > c.most*tasks {
				t.Errorf("%.2f allocations a task, and at most %v are allowed", n/tasks, c.most)
			}
		})
	}
}
