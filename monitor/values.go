package monitor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// Named is a value by its name.
type Named struct {
	Name string // of a field or a variable
	// Value is nil if it is not known; else a bool, a number or a text. Durations
	// and infinities are texts.
	Value any
}

// Values are named values in the order of their declaration; in JSON an object.
type Values []Named

// NewValues names the values of a row: as [Plain] gives them, or [scgs.Redacted] for a
// field with Redact.
func NewValues(fields scgs.Schema, row []scgs.Value) Values {
	if len(row) == 0 {
		return nil
	}
	v := make(Values, len(row))
	for i := range row {
		if v[i] = (Named{fields[i].Name, Plain(row[i])}); fields[i].Redact {
			v[i].Value = scgs.Redacted
		}
	}
	return v
}

// Plain gives a value as JSON has it: nil for none, texts for durations and for
// the infinities.
func Plain(v scgs.Value) any {
	if v.Type().IsList() {
		list := make([]any, v.Len())
		for i := range list {
			list[i] = Plain(v.At(i))
		}
		return list
	}
	if v.Type() == scgs.Duration || math.IsInf(v.Float(), 0) {
		return v.String()
	}
	return v.Any()
}

// String writes name=value pairs.
func (v Values) String() string {
	parts := make([]string, len(v))
	for i, n := range v {
		if n.Value == nil {
			n.Value = "unknown"
		}
		parts[i] = fmt.Sprintf("%s=%v", n.Name, n.Value)
	}
	return strings.Join(parts, " ")
}

// MarshalJSON implements json.Marshaler.
func (v Values) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, n := range v {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := json.Marshal(n.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(n.Value)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, name...), ':'), value...)
	}
	return append(b, '}'), nil
}

// UnmarshalJSON implements json.Unmarshaler. Numbers are json.Number, so that no
// digit is lost.
func (v *Values) UnmarshalJSON(text []byte) error {
	*v = nil
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t == nil {
		return err
	} else if t != json.Delim('{') {
		return errors.New("named values are an object")
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		n := Named{Name: name.(string)} //nolint:forcetypeassert // A key is nothing else.
		if err := d.Decode(&n.Value); err != nil {
			return err
		}
		*v = append(*v, n)
	}
	return nil
}

// Range is a stretch of time, in nanoseconds from an instant that goes with it. An
// end is [clocksync.MinInstant] or [clocksync.MaxInstant] if it is infinite. In
// JSON it is a list of both, with null where it is infinite.
type Range struct {
	From, To clocksync.Instant // its ends
}

// MarshalJSON implements json.Marshaler.
func (r Range) MarshalJSON() ([]byte, error) {
	var ends [2]*clocksync.Instant
	for i, t := range []clocksync.Instant{r.From, r.To} {
		if t.Finite() {
			ends[i] = &t
		}
	}
	return json.Marshal(ends)
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *Range) UnmarshalJSON(text []byte) error {
	var ends [2]*clocksync.Instant
	if err := json.Unmarshal(text, &ends); err != nil {
		return err
	}
	*r = Range{clocksync.MinInstant, clocksync.MaxInstant}
	if ends[0] != nil {
		r.From = *ends[0]
	}
	if ends[1] != nil {
		r.To = *ends[1]
	}
	return nil
}
