package wire_test

import (
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/wire"
)

// TestEveryKind wants a decoder, which is fuzzed, and a golden frame of each kind that
// has a name, and nothing of any other.
func TestEveryKind(t *testing.T) {
	golden, last := goldenFrames(t), wire.Kind(0)
	for k := wire.KindHello; !strings.HasPrefix(k.String(), "kind("); k++ {
		if last = k; decoders[k] == nil || golden[k] == nil {
			t.Errorf("%v: a decoder %v, a golden frame %v; it needs both", k, decoders[k] != nil, golden[k] != nil)
		}
	}
	if n := int(last); len(decoders) != n || len(golden) != n {
		t.Errorf("%d kinds have a name, %d a decoder, %d a golden frame", n, len(decoders), len(golden))
	}
}
