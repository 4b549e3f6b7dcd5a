package scgs

// Kept is the number of runs that the detector holds on to.
func (t *Threshold) Kept() int { return t.count }
