package observe

import (
	"math"

	"github.com/gopegasus/pegasus/internal/reading"
)

// The fields of a state that are filled by a [Reading]. All are floats.
const (
	FieldPower    = reading.FieldPower
	FieldShare    = reading.FieldShare
	FieldPressure = reading.FieldPressure
	FieldStalled  = reading.FieldStalled
	FieldQuota    = reading.FieldQuota
	FieldUsage    = reading.FieldUsage
)

// Fields are the names of these fields.
func Fields() []string { return reading.Fields() }

// Reading is the knowledge about the node. An unknown float is NaN. Cores is how many cores
// this process may use, 0 if that is not known. Power is in work units a second, see [Start].
// Share, Pressure, Stalled and Usage are parts from 0 to 1, and Quota is in cores. The method
// Field returns a part by the name of its field.
type Reading = reading.Reading

// Source delivers observations: an [Observer], or a program's own sensor. Its method Watch(fn
// func(Reading)) (stop func()) calls fn at once and whenever something has changed, never twice
// at the same time, until stop is called: then no call is under way and none will come.
type Source = reading.Source

// differs reports whether a reading is to be told after another one: a part has
// moved by more than the band, a quota by more than that of itself, or is known now or
// was.
func differs(r, told Reading, band float64) bool {
	for _, name := range Fields() {
		now, known := r.Field(name)
		then, was := told.Field(name)
		limit := band
		if name == FieldPower || name == FieldQuota {
			limit = band * then
		}
		if known != was || known && math.Abs(now-then) > limit {
			return true
		}
	}
	return false
}
