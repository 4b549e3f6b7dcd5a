package gostate

import (
	"slices"

	"github.com/gopegasus/pegasus/observe"
	"github.com/gopegasus/pegasus/scgs"
)

// Observable reports whether a declared field is one that observation fills.
func Observable(f scgs.Field) bool {
	return f.Type == scgs.Float && slices.Contains(observe.Fields(), f.Name)
}

// Observe fills the fields of a row that are [Observable], with its default where one is
// not known by the reading, and reports whether that has changed one.
func Observe(declared scgs.Schema, row []scgs.Value, r *observe.Reading) (changed bool) {
	for i := range declared {
		changed = observed(&declared[i], &row[i], r) || changed
	}
	return changed
}

// observe is Observe of the fields that the struct has not; without a reading it does
// nothing.
func (e *Encoder) observe(row []scgs.Value, r *observe.Reading) (changed bool) {
	if r == nil {
		return false
	}
	for i := range e.declared {
		if e.columns[i].goName == "" {
			changed = observed(&e.declared[i], &row[i], r) || changed
		}
	}
	return changed
}

// observed is Observe of one field.
func observed(f *scgs.Field, value *scgs.Value, r *observe.Reading) (changed bool) {
	if !Observable(*f) {
		return false
	}
	now := f.Default
	if v, known := r.Field(f.Name); known {
		now = scgs.FloatValue(v)
	}
	changed = now != *value
	*value = now
	return changed
}
