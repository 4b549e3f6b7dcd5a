package agent_test

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/internal/wire"
)

// TestIgnoredWelcomesAreLogged: with why, and as a warning unless it is a copy or late.
func TestIgnoredWelcomesAreLogged(t *testing.T) {
	var log lines
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	bubbleJoin(t, agent.Config{Group: "g", Name: "w", Logger: logger}, func(t *testing.T, m *agent.Member, f *fake) {
		first := f.answer(&f.hellos[0])
		for why, change := range map[string]func(w *wire.Welcome){
			`level=DEBUG msg="a welcome was ignored" class=welcome member=w synchronizer=s term=1 reason="the welcome is known already"`:                                                                                     func(*wire.Welcome) {},
			`level=DEBUG msg="a welcome was ignored" class=welcome member=w synchronizer=s term=1 reason="the welcome answers an earlier hello"`:                                                                             func(w *wire.Welcome) { w.Incarnation-- },
			`level=WARN msg="a welcome was ignored" class=welcome member=w synchronizer=s term=0 reason="its term is over"`:                                                                                                  func(w *wire.Welcome) { w.Term = 0 },
			`level=WARN msg="a welcome was ignored" class=welcome member=w synchronizer=other term=1 reason="the group is controlled by \"s\", and \"other\" claims it too: stop one of the two, or give one another group"`: func(w *wire.Welcome) { w.Synchronizer = "other" },
		} {
			w := *first
			change(&w)
			f.welcome(&w)
			synctest.Wait()
			if !strings.Contains(log.String(), why) {
				t.Errorf("the log lacks %s:\n%s", why, log.String())
			}
		}
		if s := m.Stats(); s.Ignored != 4 {
			t.Errorf("%d were counted", s.Ignored)
		}
	})
}
