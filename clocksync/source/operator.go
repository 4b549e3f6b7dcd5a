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
	return &operator{single{"fixed", time.Second, machine}, bound, orDefault(timeline, clocksync.UTC)}, nil
}

type operator struct {
	single
	bound    time.Duration
	timeline clocksync.Timeline
}

func (o *operator) Sample(context.Context) ([]clocksync.Sample, error) {
	seen := o.clocks.observe()
	return []clocksync.Sample{{
		Source:   "fixed",
		Server:   "operator",
		Timeline: o.timeline,
		From:     seen.Mono,
		At:       seen.Mono,
		Offset:   wallOffset(seen).Widen(o.bound),
		Wall:     true,
		Assumed:  true,
		Parts:    clocksync.Parts{RootDispersion: o.bound, Granularity: seen.Slack},
	}}, nil
}
