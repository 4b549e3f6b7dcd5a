package gostate

import (
	"slices"

	"github.com/gopegasus/pegasus/internal/reading"
	"github.com/gopegasus/pegasus/scgs"
)

// Filled begins the names of the fields that the package work fills.
const Filled = "work."

// Provider fills fields of a declared state that the program's struct has not.
type Provider interface {
	// Fills reports whether the field is one of those.
	Fills(f *scgs.Field) bool
	// Value is the present value of such a field; false: it has none, and the default counts.
	Value(f *scgs.Field) (scgs.Value, bool)
}

// providerOf is who fills a field; nil: nobody does.
func providerOf(f scgs.Field, providers []Provider) Provider {
	for _, p := range providers {
		if p.Fills(&f) {
			return p
		}
	}
	return nil
}

// provide fills the fields that the struct has not and a provider fills, with the default where
// it has no value, and reports whether that has changed one.
func (e *Encoder) provide(row []scgs.Value) (changed bool) {
	for i, p := range e.providers {
		if p != nil {
			changed = provided(&e.declared[i], &row[i], p) || changed
		}
	}
	return changed
}

// provided fills one field.
func provided(f *scgs.Field, value *scgs.Value, by Provider) (changed bool) {
	now, known := by.Value(f)
	if !known {
		now = f.Default
	}
	changed = now != *value
	*value = now
	return changed
}

// Observed provides what a reading has, whatever that is at the time.
type Observed struct{ Reading *reading.Reading }

// Fills implements [Provider].
func (Observed) Fills(f *scgs.Field) bool { return Observable(*f) }

// Value implements [Provider].
func (o Observed) Value(f *scgs.Field) (scgs.Value, bool) {
	v, known := o.Reading.Field(f.Name)
	return scgs.FloatValue(v), known
}

// Observable reports whether observation fills a declared field.
func Observable(f scgs.Field) bool {
	return f.Type == scgs.Float && slices.Contains(reading.Fields(), f.Name)
}

// Observe fills the fields of a row that are [Observable], with its default where one is
// not known by the reading, and reports whether that has changed one.
func Observe(declared scgs.Schema, row []scgs.Value, r *reading.Reading) (changed bool) {
	by := Observed{r}
	for i := range declared {
		if by.Fills(&declared[i]) {
			changed = provided(&declared[i], &row[i], by) || changed
		}
	}
	return changed
}
