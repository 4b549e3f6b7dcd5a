package wire_test

import (
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/wire"
)

// TestEveryKind wants a decoder, which is fuzzed, and a golden frame of each kind that
// has a name, and nothing of any other.
func TestEveryKind(t *testing.T) {
	golden, named := goldenFrames(t), 0
	for k := wire.KindHello; k != 0; k++ {
		if strings.HasPrefix(k.String(), "kind(") {
			continue // Nobody's, or that of a batch in columns, which is KindBatch.
		}
		if named++; decoders[k] == nil || golden[k] == nil {
			t.Errorf("%v: a decoder %v, a golden frame %v; it needs both", k, decoders[k] != nil, golden[k] != nil)
		}
	}
	if n := named; len(decoders) != n || len(golden) != n {
		t.Errorf("%d kinds have a name, %d a decoder, %d a golden frame", n, len(decoders), len(golden))
	}
}
