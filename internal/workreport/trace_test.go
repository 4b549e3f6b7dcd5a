package workreport

import (
	"encoding/json"
	"reflect"
	"testing"
)

// TestTraceLine: lines are read as they are written, and what a space does not write is refused.
func TestTraceLine(t *testing.T) {
	for _, l := range []TraceLine{
		{Member: "a", At: 1.5, Put: "t", Weight: 2, Bytes: 3, Reads: []string{"x", "y"}},
		{Member: "a", At: 2, Ran: "t", Seconds: 0.25},
		{Member: "b", Data: "x", Bytes: 1 << 20},
	} {
		text, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ParseTraceLine(text); err != nil || !reflect.DeepEqual(got, l) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		`{"member":"a","took":1}`:               `line of a trace: json: unknown field "took": write one JSON object a line, as a space writes them`,
		`{"member":"a","ran":"t"} 1`:            "line of a trace: something follows the JSON object: write one object a line",
		`{"ran":"t"}`:                           "line of a trace: it names no member: write member, as a space does",
		`{"member":"a"}`:                        "line of a trace: it has 0 of the keys put, ran and data: write exactly one of them",
		`{"member":"a","ran":"t","put":"t"}`:    "line of a trace: it has 2 of the keys put, ran and data: write exactly one of them",
		`{"member":"a","ran":"t","seconds":-1}`: "line of a trace: bytes, weight or seconds is below 0: write numbers from 0",
	} {
		if l, err := ParseTraceLine([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%s: %+v, %v; want %s", text, l, err, want)
		}
	}
}
