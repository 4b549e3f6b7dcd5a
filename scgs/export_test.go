package scgs

// Kept is the number of runs that the detector holds on to.
func (t *Threshold) Kept() int { return t.count }

// Remembered is the number of runs in the reported sets that are remembered.
func (t *Threshold) Remembered() int { return t.remembered }

// Kept is the number of states of a member that are held on to.
func (e *Extents) Kept(m Member) int { return int(e.members[m].candidates.n) }

// Newest is the number of a member's newest report.
func (d *Detector) Newest(m Member) uint64 { return d.members[m].seq }

// Newest is the number of a member's newest report.
func (t *Threshold) Newest(m Member) uint64 { return t.members[m].seq }

// General keeps the detector from the ways that are only for one clock domain. Call
// it before the first epoch.
func (d *Detector) General() { d.general = true }
