package synchronizer

import (
	"testing"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/testnats"
	"github.com/gopegasus/pegasus/internal/testwait"
)

// TestMembersTellTheirTerm: members that run continue with a synchronizer that has lost all but
// their knowledge, and whose wall clock was set back; and also with a synchronizer that
// began without them.
func TestMembersTellTheirTerm(t *testing.T) {
	defer func(short time.Duration) { learnTime = short }(learnTime)
	learnTime = time.Second // A member that has said hello of late waits before it does so again.
	server, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	begin := func(wall int64) *Synchronizer {
		t.Helper()
		b, err := bus.Dial(t.Context(), server.URL(), bus.Options{Extra: testnats.Options(t, server.URL())})
		if err != nil {
			t.Fatal(err)
		}
		s, err := tryLed(t.Context(), b, Options{wall: wallAt(wall)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	first := begin(2 * aDay)
	m, err := agent.Join(t.Context(), server.URL(), agent.Config{Group: "g", Name: "a", State: struct{ N int }{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	firing := func(s *Synchronizer, n int) {
		t.Helper()
		for _, n := range []int{0, n} {
			if err := m.Set(struct{ N int }{n}); err != nil {
				t.Fatal(err)
			}
		}
		testwait.Until(t, "firing", func() bool { return s.Stats().Decisions > 0 })
	}
	firing(first, 5)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := begin(aDay)
	firing(second, 6)
	if a, b := first.term.Load(), second.term.Load(); b != a+1 {
		t.Errorf("term %d after %d", b, a)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	third := begin(aDay)
	third.told.Store(0)
	if a, b := second.term.Load(), third.term.Load(); b != a+1 {
		t.Errorf("term %d after %d", b, a)
	}
	firing(third, 7)
}
