package synccore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
)

// figures tells how the machine stands, and of its last step what only those who
// count look at.
func (s *story) figures() string {
	f, c := s.core.Figures(), s.core.Counts()
	var b strings.Builder
	fmt.Fprintf(&b, "epoch %d, %d of %d online, %d signals wait\n", f.Epoch, f.Online, f.Awaited, f.Waiting)
	fmt.Fprintf(&b, "clocks: %d exact", f.Exact)
	for status, n := range f.Clocks {
		fmt.Fprintf(&b, ", %d %v", n, clocksync.Status(status))
	}
	if f.Bounded {
		fmt.Fprintf(&b, "; bound %v", f.Bound)
	}
	fmt.Fprintf(&b, "\npredicates: %d true, %d false, %d unknown, %d told\n", f.Truths[predicates.True], f.Truths[predicates.False], f.Truths[predicates.Unknown], f.Told)
	fmt.Fprintf(&b, "%d reports, %d gaps, %d collapsed, %d global states, %d partial\n", c.Reports, c.Gaps, c.Collapsed, c.Global, c.Partial)
	for _, r := range s.out.Rejected {
		fmt.Fprintf(&b, "rejected as %v\n", r.Reason)
	}
	for _, v := range s.out.Verdicts {
		heard := "nothing"
		if v.Heard != clocksync.MinInstant {
			heard = fmt.Sprintf("a report %v before", s.now.Sub(v.Heard))
		}
		fmt.Fprintf(&b, "verdict %s rests on %s\n", v.Predicate, heard)
	}
	return b.String()
}

// TestRejectReasons wants a word of its own for each reject reason.
func TestRejectReasons(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range monitor.RejectReasons {
		if word := r.String(); seen[word] || word == "" || word == "none" {
			t.Errorf("reject reason %d has the word %q", r, word)
		}
		seen[r.String()] = true
	}
	if len(seen) > 16 {
		t.Errorf("%d reject reasons: each is a series", len(seen))
	}
}
