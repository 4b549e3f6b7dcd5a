package work

import (
	"encoding/json"
	"math"
	"testing"
)

// TestInts: an int travels as the JSON that other versions write and read, and whatever else JSON takes for one is
// read as JSON reads it.
func TestInts(t *testing.T) {
	for _, n := range []int{0, 1, -1, 10, -907, math.MaxInt, math.MinInt} {
		want, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		data, err := encodeValue("the number", "", &n)
		if err != nil || string(data) != string(want) {
			t.Errorf("%d is written as %q, %v", n, data, err)
		}
		if got, err := decodeValue[int]("the number", "", data); err != nil || got != n {
			t.Errorf("%q is read as %d, %v", data, got, err)
		}
	}
	for _, text := range []string{"", " 7 ", "+7", "007", "-0", "0x7", "7.0", "7e2", "1_0", "\"7\"", "null", "9223372036854775808", "-"} {
		var want int
		var fails bool
		if text != "" {
			fails = json.Unmarshal([]byte(text), &want) != nil
		}
		got, err := decodeValue[int]("the number", "", []byte(text))
		if got != want && !fails || (err != nil) != fails {
			t.Errorf("%q is read as %d, %v; want %d", text, got, err, want)
		}
	}
	n := testing.AllocsPerRun(100, func() {
		v := 1 << 40
		data, err := encodeValue("the number", "", &v)
		if got, err2 := decodeValue[int]("the number", "", data); err != nil || err2 != nil || got != v {
			t.Error(got, err, err2)
		}
	})
	if n > 2 {
		t.Errorf("%v allocations to write an int and read it", n)
	}
}
