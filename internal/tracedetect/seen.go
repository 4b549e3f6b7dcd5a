package tracedetect

import (
	"slices"
	"sort"
)

// maxGaps is how many gaps are remembered of an incarnation. Then the oldest is
// forgotten: what belongs into it counts as a duplicate.
const maxGaps = 1 << 12

// seen is the set of the sequence numbers of one incarnation that states and
// leaves came with.
type seen struct {
	newest uint64 // of all lines
	gaps   []gap  // below and at newest, ascending
}

// gap is the numbers that did not come between two that did.
type gap struct{ from, to uint64 }

// has reports whether a state or leave of that number came.
func (s *seen) has(seq uint64) bool {
	if seq > s.newest {
		return false
	}
	i := sort.Search(len(s.gaps), func(i int) bool { return s.gaps[i].to >= seq })
	return i == len(s.gaps) || seq < s.gaps[i].from
}

// add notes a number above the newest.
func (s *seen) add(seq uint64) {
	s.miss(seq - 1)
	s.newest = seq
}

// miss notes that nothing came from the newest number up to this one.
func (s *seen) miss(to uint64) {
	if to <= s.newest {
		return
	}
	if n := len(s.gaps); n > 0 && s.gaps[n-1].to == s.newest {
		s.gaps[n-1].to = to
	} else {
		if n == maxGaps {
			s.gaps = slices.Delete(s.gaps, 0, 1)
		}
		s.gaps = append(s.gaps, gap{s.newest + 1, to})
	}
	s.newest = to
}
