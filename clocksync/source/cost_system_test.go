//go:build system

package source

import (
	"math"
	"testing"
	"time"
)

// perCall is what one call takes when nothing else gets in between: the quickest
// of many short runs.
func perCall(f func()) float64 {
	const runs, calls = 3000, 200
	least := math.Inf(1)
	for range runs {
		before := readRaw()
		for range calls {
			f()
		}
		least = min(least, float64(readRaw().Sub(before))/calls)
	}
	return least
}

// TestStampCost is the figure that stamps are held to: 150 ns beside time.Now.
func TestStampCost(t *testing.T) {
	c := measuring(t)
	c.Close()
	stamp, plain := perCall(func() { c.Now() }), perCall(func() { _ = time.Now() })
	t.Logf("a stamp takes %.1f ns, time.Now %.1f ns: %.1f ns beside it", stamp, plain, stamp-plain)
	if stamp-plain > 150 {
		t.Errorf("a stamp costs %.1f ns beside time.Now", stamp-plain)
	}
}
