package balance

import "math"

// Total is a node with its loads added up, for [Config.Quiet].
type Total struct {
	Node
	// Work is the weight of the loads that are on the node and of those under way
	// to it, Loads their number, Waiting how many of them can move.
	Work           float64
	Loads, Waiting int // numbers of loads
	// Least and Most are the weights of the lightest and the heaviest load that can
	// move, if there is one.
	Least, Most float64
	// Low and High, if High is not 0, are bounds that more than half of these
	// weights are within. A few that are far from the others are no reason not to
	// believe a node, and with bounds of the others Quiet finds that out.
	Low, High float64
}

// rounding is the part by which sums in another order may differ.
const rounding = 1e-9

// Quiet reports that no plan on a state with these totals has a move; false says
// nothing. It costs O(nodes), so that a state that is in balance, as most are,
// needs no plan.
func (c *Config) Quiet(totals []Total) bool {
	if c.Strategy == None {
		return true
	}
	return c.level(totals) || c.Strategy == Pegasus && c.Waiting == ByWeight && c.believable(totals) && c.balanced(totals)
}

// available is 0 for a node that no load can go to.
func (t *Total) available() float64 {
	if a := t.Power * t.Share; !t.aside() && a >= tiny {
		return a
	}
	return 0
}

// aside reports that a plan leaves the node alone, by its Note, for what it reports
// of itself, or for a load whose weight has spoilt the sum.
func (t *Total) aside() bool {
	return t.Note != "" || !(t.Power >= 0 && t.Power <= huge && t.Share >= 0 && t.Share <= 1) || !(t.Work >= 0) || math.IsInf(t.Work, 1)
}

// level reports that no target's queue is shorter, by the margin, than a queue
// from which a load can move. That holds of any part of the nodes as well.
func (c *Config) level(totals []Total) bool {
	longest, giver := math.Inf(-1), -1
	for i := range totals {
		if t := &totals[i]; t.Waiting > 0 && !t.aside() {
			if q := drainTime(t.Work, t.available()); giver < 0 || !(q <= longest) {
				longest, giver = q, i
			}
		}
	}
	shortest := math.Inf(1)
	for i := range totals {
		if t := &totals[i]; i != giver && t.available() > 0 {
			if q := drainTime(t.Work, t.available()); !(q >= shortest) {
				shortest = q
			}
		}
	}
	return giver < 0 || math.IsInf(shortest, 1) || shortest > longest*(1-c.Margin)*(1+rounding)
}

// believable reports that a plan leaves only nodes with a Note alone.
func (c *Config) believable(totals []Total) bool {
	least, most := math.Inf(1), 0.0  // powers
	light, heavy := math.Inf(1), 0.0 // loads
	for i := range totals {
		t := &totals[i]
		if t.Note != "" {
			continue
		}
		if !(t.Power >= 0 && t.Power <= huge && t.Share >= 0 && t.Share <= 1 && t.Work >= 0 && t.Work <= huge) {
			return false
		}
		if t.Power > 0 {
			least, most = min(least, t.Power), max(most, t.Power)
		}
		if t.Waiting > 0 {
			if !(t.Least > 0 && t.Most >= t.Least) {
				return false
			}
			low, high := t.Low, t.High
			if high == 0 {
				low, high = t.Least, t.Most
			}
			light, heavy = min(light, low), max(heavy, high) // The median is between them.
		}
	}
	return !(most > least*c.Outlier) && !(heavy > light*c.Outlier)
}

// balanced is what the PEGASUS strategy finds first on nodes that are all
// believed: no imbalance, and no load too large for its node.
func (c *Config) balanced(totals []Total) bool {
	work, spare, loads := 0.0, 0.0, 0
	for i := range totals {
		if t := &totals[i]; t.Note == "" {
			work, spare, loads = work+t.Work, spare+t.available(), loads+t.Loads
		}
	}
	if loads == 0 {
		return true
	}
	mean, fair := work/float64(loads), drainTime(work, spare)
	least, most := math.Inf(1), 0.0
	for i := range totals {
		t := &totals[i]
		if t.Note != "" {
			continue
		}
		index := t.available()
		if t.Work != 0 {
			index *= mean / (t.Work + mean)
		}
		most = max(most, index)
		if t.Waiting > 0 {
			least = min(least, index)
			if !(drainTime(t.Most, t.available()) <= fair*(1-rounding)) {
				return false
			}
		}
	}
	return most <= c.Alpha*least*(1-rounding)
}
