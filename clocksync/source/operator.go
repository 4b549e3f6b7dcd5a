package source

import (
	"context"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// Operator is the operator's word as one source among others: that the wall clock
// of this host is never off by more than the bound, above 0 and at most an hour,
// on the timeline, UTC if empty. Bounds that rest on it are assumed. [Fixed] is
// the same as a clock that needs no polling.
func Operator(bound time.Duration, timeline clocksync.Timeline) (Source, error) {
	if err := checkFixed(bound); err != nil {
		return nil, err
	}
	s, err := newSingle("fixed", 0, 0, timeline)
	s.server, s.take = "operator", func(context.Context) (clocksync.Sample, error) {
		sample := ofWall(s.clocks.observeClocks(), bound, 0)
		sample.Assumed = true
		return sample, nil
	}
	return &s, err
}
