package synccore

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gopegasus/pegasus/scgs"
)

// TestArena keeps rows of several lengths beside a map of them, and allocates nothing
// once it has grown.
func TestArena(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	a := arena{width: 3}
	kept := map[scgs.Ref][]scgs.Value{}
	var refs []scgs.Ref
	for i := range 20 * blockRows {
		if len(refs) > 0 && (i > 10*blockRows || rng.IntN(3) == 0) {
			last := len(refs) - 1
			k := rng.IntN(len(refs))
			refs[k], refs[last] = refs[last], refs[k]
			if want := kept[refs[last]]; !slices.Equal(a.get(refs[last], len(want)), want) {
				t.Fatalf("row %d is %v, want %v", refs[last], a.get(refs[last], len(want)), want)
			}
			a.free(refs[last])
			delete(kept, refs[last])
			refs = refs[:last]
			continue
		}
		row := make([]scgs.Value, rng.IntN(a.width+1))
		for f := range row {
			row[f] = scgs.IntValue(int64(i + f))
		}
		ref := a.put(row)
		if _, taken := kept[ref]; taken || ref == 0 {
			t.Fatalf("row %d is given out again", ref)
		}
		kept[ref], refs = row, append(refs, ref)
	}
	row := make([]scgs.Value, a.width)
	if n := testing.AllocsPerRun(100, func() { a.free(a.put(row)) }); n > 0 {
		t.Errorf("%v allocations for a row", n)
	}
}
