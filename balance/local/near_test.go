package local_test

import (
	"testing"

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
