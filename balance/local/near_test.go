package local_test

import (
	"testing"
	"time"

	"github.com/gopegasus/pegasus/balance/local"
)

// TestMayMove: an object moves to a member that has a neighbour or nothing.
func TestMayMove(t *testing.T) {
	for _, c := range []struct {
		near, has []string
		want      bool
	}{
		{nil, []string{"a"}, true},
		{[]string{"b"}, nil, true},
		{[]string{"b", "c"}, []string{"a", "c"}, true},
		{[]string{"b"}, []string{"a", "c"}, false},
	} {
		if got := local.MayMove(c.near, c.has); got != c.want {
			t.Errorf("near %q, has %q: %v", c.near, c.has, got)
		}
	}
}

// TestMayReturn: an object goes back to the member that it came from after 10 s, and not before.
func TestMayReturn(t *testing.T) {
	for stayed, want := range map[time.Duration]bool{-1: false, 0: false, 10*time.Second - 1: false, 10 * time.Second: true, time.Hour: true} {
		if got := local.MayReturn(stayed); got != want {
			t.Errorf("after %v: %t", stayed, got)
		}
	}
}
