package nearest_test

import (
	"testing"

	"github.com/gopegasus/pegasus/internal/nearest"
)

func TestName(t *testing.T) {
	known := []string{"members", "state", "predicates", "for"}
	for name, want := range map[string]string{
		"memebers": "members", "mebmers": "members", "satte": "state", "predicate": "predicates",
		"fro": "for", "xyz": "", "": "", "predictaes": "predicates", "membersx1y2z3": "",
	} {
		if got := nearest.Name(name, known); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
