package work

import (
	"encoding"
	"encoding/json"
	"fmt"

	"github.com/gopegasus/pegasus/internal/workcore"
)

// encode is a value as bytes: those of MarshalBinary, a slice of bytes as it is, anything else as JSON.
// What names the value in the error.
func encode[T any](what string, v *T) (data []byte, err error) {
	switch p := any(v).(type) {
	case encoding.BinaryMarshaler:
		data, err = p.MarshalBinary()
	case *[]byte:
		data = *p
	default:
		data, err = json.Marshal(v)
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be written as bytes: %w", what, err)
	}
	if len(data) > workcore.MaxBody {
		return nil, fmt.Errorf("%s has %d bytes, and at most %d are allowed: let it name the data instead, or have less in each task", what, len(data), workcore.MaxBody)
	}
	return data, nil
}

// decode reads what encode has written. No bytes are the zero value.
func decode[T any](what string, data []byte) (v T, err error) {
	switch p := any(&v).(type) {
	case encoding.BinaryUnmarshaler:
		err = p.UnmarshalBinary(data)
	case *[]byte:
		*p = data
	default:
		if len(data) > 0 {
			err = json.Unmarshal(data, &v)
		}
	}
	if err != nil {
		return v, fmt.Errorf("%s cannot be read from its bytes: %w: let all members run the same version", what, err)
	}
	return v, nil
}
