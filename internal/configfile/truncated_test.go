package configfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/yamlconf"
)

// TestEveryTruncation cuts good files at each byte, the longest at every fifth:
// what is left is refused with a place, or is a good file that says less. A cut
// takes no more than a few times what the whole file takes, both measured in the
// same run.
func TestEveryTruncation(t *testing.T) {
	for file, step := range map[string]int{
		"../ruletest/testdata/configs/two.yaml": 1, "../ruletest/testdata/configs/levels.yaml": 1, "../../configs/tsp.yaml": 5,
	} {
		t.Run(filepath.Base(file), func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			truncate(t, src, step)
		})
	}
}

func truncate(t *testing.T, src []byte, step int) {
	t.Helper()
	accepted, number, worst := 0, 0, time.Duration(0)
	begin := time.Now()
	for i := 0; i < len(src); i += step {
		one := time.Now()
		_, err := configfile.Parse("c.yaml", src[:i])
		worst = max(worst, time.Since(one))
		if number++; err == nil {
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
	mean := (time.Since(begin) - worst) / time.Duration(number) // The machine may have stopped once.
	const times = 100
	begin = time.Now()
	for range times {
		if _, err := configfile.Parse("c.yaml", src); err != nil {
			t.Fatal(err)
		}
	}
	whole := time.Since(begin) / times
	t.Logf("%d cuts, %d of them good files: %v on average, %v at worst; the whole file %v", number, accepted, mean, worst, whole)
	if mean > 10*whole {
		t.Errorf("a cut takes %v on average, the whole file %v", mean, whole)
	}
	if accepted == 0 || accepted > number/2 {
		t.Errorf("%d of %d cuts were accepted", accepted, number)
	}
}
