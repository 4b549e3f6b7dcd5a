package work

import (
	"encoding"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/gopegasus/pegasus/internal/workcore"
)

// encodeValue returns a value as bytes: the bytes of MarshalBinary, a slice of bytes as it is, anything else as JSON.
// What names the value in the error, with what it is of if that is not "".
func encodeValue[T any](what, of string, v *T) (data []byte, err error) {
	switch p := any(v).(type) {
	case encoding.BinaryMarshaler:
		data, err = p.MarshalBinary()
	case *[]byte:
		data = *p
	case *int:
		data = strconv.AppendInt(nil, int64(*p), 10) // As JSON has it.
	default:
		data, err = json.Marshal(v)
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be written as bytes: %w", naming(what, of), err)
	}
	return checkSize(what, of, data)
}

// encodeResult is encode for what a function has returned. Bytes need no memory of their own.
func encodeResult[T any](what, of string, v T) ([]byte, error) {
	if p, ok := any(&v).(*[]byte); ok {
		return checkSize(what, of, *p)
	}
	other := v
	return encodeValue(what, of, &other)
}

// checkSize returns data, or an error if they have too many bytes.
func checkSize(what, of string, data []byte) ([]byte, error) {
	if len(data) > workcore.MaxBody {
		return nil, fmt.Errorf("%s has %d bytes, and at most %d are allowed: let it name the data instead, or have less in each task", naming(what, of), len(data), workcore.MaxBody)
	}
	return data, nil
}

func naming(what, of string) string {
	if of == "" {
		return what
	}
	return fmt.Sprintf("%s %q", what, of)
}

// decodeValue reads the bytes of encodeValue. No bytes are the zero value.
func decodeValue[T any](what, of string, data []byte) (v T, err error) {
	if v, ok := any(data).(T); ok {
		return v, nil
	}
	if p, ok := any(&v).(*int); ok {
		if *p, ok = number(data); ok {
			return v, nil
		}
	}
	return parse[T](what, of, data)
}

// number reads what encode has written of an int, and nothing else.
func number(data []byte) (n int, ok bool) {
	n, err := strconv.Atoi(string(data))
	var digits [20]byte
	return n, err == nil && string(strconv.AppendInt(digits[:0], int64(n), 10)) == string(data)
}

func parse[T any](what, of string, data []byte) (v T, err error) {
	if p, ok := any(&v).(encoding.BinaryUnmarshaler); ok {
		err = p.UnmarshalBinary(data)
	} else if len(data) > 0 {
		err = json.Unmarshal(data, &v)
	}
	if err != nil {
		return v, fmt.Errorf("%s cannot be read from its bytes: %w: let all members run the same version", naming(what, of), err)
	}
	return v, nil
}
