package ruletest

import "time"

// Small reports whether a run is short enough for one of many.
func (t *Test) Small() bool {
	entries := 0
	for _, m := range t.members {
		entries += len(m.entries)
	}
	return t.lasts <= 5*time.Second && len(t.members) <= 5 && entries <= 100 && t.delay >= 100*time.Microsecond
}

// First is the test with its first seed alone.
func (t *Test) First() *Test {
	one := *t
	one.seeds = 1
	return &one
}
