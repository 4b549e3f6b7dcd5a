// Package reading has the values that observation of a node tells. The package observe measures them;
// a member takes them without linking that package.
package reading

import (
	"math"
	"slices"
)

// The fields of a state that are filled by a [Reading]. All are floats.
const (
	FieldPower    = "power"
	FieldShare    = "share"
	FieldPressure = "pressure"
	FieldStalled  = "stalled"
	FieldQuota    = "quota"
	FieldUsage    = "usage"
)

// Fields are the names of these fields.
func Fields() []string {
	return []string{FieldPower, FieldShare, FieldPressure, FieldStalled, FieldQuota, FieldUsage}
}

// Reading has the known figures of the node. An unknown figure is NaN.
type Reading struct {
	// Cores is how many cores this process may use; 0 if that is not known.
	Cores int
	// Power is what all cores do that this process may use, in work units a second;
	// see observe.Start. It is IND_power of the paper (section 3.3).
	Power float64
	// Share is the part of it, from 0 to 1, that this program gets, or would get with
	// a busy thread a core: what it uses itself, what is idle, and at least its fair
	// part beside others. It is Time_CPU of the paper, as a mean over the cores.
	Share float64
	// Pressure and Stalled are the parts of the last 10 s, from 0 to 1, in which some task of
	// the control group, and every one, waited for a core. Without cgroup v2 they are the
	// figures of the whole machine, for which the kernel tells no Stalled.
	Pressure, Stalled float64
	// Quota is how many cores the control group may use at a time; without a limit,
	// all that there are for this process.
	Quota float64
	// Usage is the part of the quota that the group has used, about 0 to 1, of the
	// last period. It is not known without a limit.
	Usage float64
}

// Source makes readings: an observe.Observer, or a program's own sensor.
type Source interface {
	// Watch calls fn at once and whenever something has changed, never twice at the
	// same time, until stop is called: then no call is under way and none will come.
	Watch(fn func(Reading)) (stop func())
}

// Field is a part of the reading by the name of its field; false if it is unknown, or
// there is no such field.
func (r Reading) Field(name string) (float64, bool) {
	i := slices.Index(Fields(), name)
	if i < 0 {
		return math.NaN(), false
	}
	v := [...]float64{r.Power, r.Share, r.Pressure, r.Stalled, r.Quota, r.Usage}[i]
	return v, !math.IsNaN(v)
}
