package work

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/scgs"
)

// TestRecord: with the key record members tell the figures of their calls, at a pace; without it none.
func TestRecord(t *testing.T) {
	for _, record := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			section := config.DefaultWork()
			section.Slots, section.Record = 1, record
			g := newGroup(section)
			a := g.space(t, "a")
			g.space(t, "b", Server("nap", func(_ context.Context, n int) (int, error) { time.Sleep(time.Second); return n, nil }))
			c := Client[int, int](a, "nap")
			var list []*Call[int]
			for i := range 3 {
				list = append(list, c.Go(t.Context(), i))
			}
			time.Sleep(1500 * time.Millisecond)
			synctest.Wait()
			told := func(member int, name string) scgs.Value {
				g.mu.Lock()
				defer g.mu.Unlock()
				return g.links[member].told["work."+name]
			}
			want := []string{
				"2/0/0/0/0/0 nap\n",
				"0/0/1/1/1/1 nap\n",
			}
			for member, text := range want {
				if !record {
					text = ""
				}
				if got := told(member, "calls"); got.Text() != text {
					t.Errorf("record %v, member %d: %s, want %s", record, member, got, text)
				}
			}
			if slots := told(1, "slots"); record && slots.Int() != 1 {
				t.Errorf("%v slots, want 1", slots)
			}
			for _, p := range list {
				if _, err := p.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			g.mu.Lock()
			tells := g.tells
			g.mu.Unlock()
			if record && tells > 60 {
				t.Errorf("%d states were told in 3 s, want 10 a second of each member at most", tells)
			}
		})
	}
}
