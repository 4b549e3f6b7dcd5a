package synccore_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/yamlconf"
)

// TestEveryTruncation cuts a good file at each byte: what is left is refused with
// a place inside of it, or is a good file that says less. A cut takes no more than
// a few times what the whole file takes, both measured in the same run.
func TestEveryTruncation(t *testing.T) {
	src, err := os.ReadFile("../../configs/tsp.yaml")
	if err != nil {
		t.Fatal(err)
	}
	accepted, worst, whole := 0, time.Duration(0), time.Duration(0)
	begin := time.Now() //nolint:forbidigo // The ratio of two measurements.
	for i := range src {
		one := time.Now() //nolint:forbidigo // As above.
		_, err := synccore.Parse("c.yaml", src[:i])
		worst = max(worst, time.Since(one)) //nolint:forbidigo // As above.
		if err == nil {
			accepted++
			continue
		}
		e, ok := errors.AsType[*yamlconf.Error](err)
		if !ok || len(e.Faults) == 0 {
			t.Fatalf("cut at byte %d: %T without faults: %v", i, err, err)
		}
		for _, f := range e.Faults {
			if f.Line < 1 || f.Column < 1 {
				t.Fatalf("cut at byte %d: a fault without a place: %+v", i, f)
			}
		}
	}
	cuts := time.Since(begin) //nolint:forbidigo // As above.
	const times = 100
	begin = time.Now() //nolint:forbidigo // As above.
	for range times {
		if _, err := synccore.Parse("c.yaml", src); err != nil {
			t.Fatal(err)
		}
	}
	whole = time.Since(begin) / times //nolint:forbidigo // As above.
	mean := cuts / time.Duration(len(src))
	t.Logf("%d cuts, %d of them good files: %v on average, %v at worst; the whole file %v", len(src), accepted, mean, worst, whole)
	if mean > 10*whole {
		t.Errorf("a cut takes %v on average, the whole file %v", mean, whole)
	}
	if accepted == 0 || accepted > len(src)/3 {
		t.Errorf("%d of %d cuts were accepted", accepted, len(src))
	}
}
