package worksim

import (
	"os"
	"path/filepath"
	"testing"
)

func load(tb testing.TB, name string) *Scenario {
	tb.Helper()
	src, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		tb.Fatal(err)
	}
	s, err := Parse(name, src)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func TestX(t *testing.T) {
	for _, name := range []string{"farm16.yaml", "bag128.yaml", "changing.yaml"} {
		for _, st := range []string{"", "{kind: chunk, cut: gss}", "{kind: chunk, cut: fac2}", "{kind: chunk, cut: tss}", "{kind: chunk, cut: css(8)}", "{kind: chunk, cut: ss}"} {
			s := load(t, name)
			if st != "" {
				if err := s.Strategy("x", st); err != nil {
					t.Fatal(err)
				}
			}
			r, err := Run(s, nil)
			if err != nil {
				t.Log(name, st, err)
				continue
			}
			a, b, c := r.IdleOf()
			t.Logf("%s %s %.4f time %v bound %v %s parcels %d moved %d msgs %d bytes %d idle %.3f %.3f %.3f again %.3f twice %d %v", name, st, r.Efficiency, r.Time, r.Bound, r.Why, r.Parcels, r.Moved, r.Messages, r.Bytes, a, b, c, r.Again, r.Twice, r.Faults)
		}
	}
}
