package tracedetect

import (
	"testing"

	"pgregory.net/rapid"
)

// TestSeen holds the set of numbers against a map.
func TestSeen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s seen
		came := map[uint64]bool{}
		for range rapid.IntRange(0, 60).Draw(t, "lines") {
			next := s.newest + uint64(rapid.IntRange(1, 4).Draw(t, "step"))
			if rapid.Bool().Draw(t, "alive") {
				s.miss(next)
			} else {
				s.add(next)
				came[next] = true
			}
		}
		for seq := range s.newest + 3 {
			if seq > 0 && s.has(seq) != came[seq] {
				t.Fatalf("has(%d) is %t with the newest %d and gaps %v", seq, s.has(seq), s.newest, s.gaps)
			}
		}
		for i, g := range s.gaps {
			if g.from > g.to || i > 0 && g.from <= s.gaps[i-1].to+1 {
				t.Fatalf("gaps %v", s.gaps)
			}
		}
	})
}

// TestSeenIsOfConstantSize loses every second number.
func TestSeenIsOfConstantSize(t *testing.T) {
	var s seen
	for i := range uint64(50_000) {
		s.add(2*i + 2)
	}
	if len(s.gaps) != maxGaps || cap(s.gaps) > 2*maxGaps {
		t.Errorf("%d gaps in %d", len(s.gaps), cap(s.gaps))
	}
	if s.has(99_999) || !s.has(100_000) || !s.has(1) {
		t.Error("a new gap is forgotten, or an old one remembered")
	}
}
