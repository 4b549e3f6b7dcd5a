package worksim

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestProbe(t *testing.T) {
	for _, sc := range strings.Fields(os.Getenv("SCEN")) {
		for _, st := range strings.Split(os.Getenv("STRAT"), ";") {
			for seed := uint64(1); seed <= 3; seed++ {
				s := load(t, sc)
				s.Seed = seed
				if st != "" {
					if err := s.Strategy("x", st); err != nil {
						t.Fatal(err)
					}
				}
				begun := time.Now()
				r, err := Run(s, nil)
				if err != nil {
					t.Log(sc, st, seed, err)
					continue
				}
				a, b, c := r.IdleOf()
				t.Logf("%s %s %d: %.4f time %v bound %v %s parcels %d moved %d msgs %d bytes %d idle %.3f %.3f %.3f again %.3f twice %d %v; took %v", sc, st, seed, r.Efficiency, r.Time, r.Bound, r.Why, r.Parcels, r.Moved, r.Messages, r.Bytes, a, b, c, r.Again, r.Twice, r.Faults, time.Since(begun))
			}
		}
	}
}
