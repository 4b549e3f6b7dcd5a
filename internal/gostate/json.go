package gostate

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/gopegasus/pegasus/scgs"
)

// FillJSON replaces the fields of a row of the declared state that a JSON object has. After
// an error the row is of no state.
func FillJSON(declared scgs.Schema, row []scgs.Value, object []byte) error {
	var values map[string]any
	d := json.NewDecoder(bytes.NewReader(object))
	d.UseNumber()
	if err := d.Decode(&values); err != nil || d.InputOffset() != int64(len(bytes.TrimRight(object, " \t\r\n"))) {
		shown := fmt.Sprintf("%.100q", object)
		if declared.Redacts() {
			shown = scgs.Redacted
		}
		return fmt.Errorf("agent: a state is one JSON object, such as {\"load\": 0.5}, and not %s", shown)
	}
	for name, v := range values {
		i := declared.Index(name)
		if i < 0 {
			return fmt.Errorf("agent: the configuration declares no field %q of blocks, but %s", name, fieldNames(declared))
		}
		var err error
		if row[i], err = fromJSON(declared[i], v); err != nil {
			return fmt.Errorf("agent: field %q: %w", name, err)
		}
	}
	return nil
}

// fromJSON reads a value of a field.
func fromJSON(f scgs.Field, v any) (scgs.Value, error) {
	var value scgs.Value
	switch v := v.(type) {
	case []any:
		if f.Type.IsList() && len(v) <= scgs.MaxElements {
			elements := make([]scgs.Value, len(v))
			for i, e := range v {
				var err error
				if elements[i], err = fromJSON(f.Element(), e); err != nil {
					return value, err
				}
			}
			value = scgs.ListValue(f.Type.Elem(), elements...)
		}
	case bool:
		value = scgs.BoolValue(v)
	case string:
		if f.Type == scgs.String || f.Type == scgs.Enum || f.Type == scgs.Duration {
			value, _ = f.Parse(v)
		}
	case json.Number:
		if f.Type == scgs.Int || f.Type == scgs.Float {
			value, _ = f.Parse(v.String())
		}
	}
	if !f.Accepts(value) {
		if f.Redact {
			v = scgs.Redacted
		}
		return value, fmt.Errorf("%v is no value of %s", v, f)
	}
	return value, nil
}
