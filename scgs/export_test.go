package scgs

// Kept is the number of runs that the detector holds on to.
func (t *Threshold) Kept() int { return t.count }

// Remembered is the number of runs in the reported sets that are remembered.
func (t *Threshold) Remembered() int { return t.remembered }

// Kept is the number of states of a member that are held on to.
func (e *Extents) Kept(m Member) int { return int(e.members[m].candidates.n) }
