package monitor_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/scgs"
)

// TestValuesKeepTheirOrder and every digit.
func TestValuesKeepTheirOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var v monitor.Values
		names := rapid.SliceOfDistinct(rapid.StringN(1, 8, 8), rapid.ID[string]).Draw(t, "names")
		for _, name := range names {
			var value any
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				value = rapid.Bool().Draw(t, "bool")
			case 1:
				value = rapid.String().Draw(t, "text")
			case 2:
				n, err := json.Marshal(rapid.Int64().Draw(t, "int"))
				if err != nil {
					t.Fatal(err)
				}
				value = json.Number(n)
			}
			v = append(v, monitor.Named{Name: name, Value: value})
		}
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var back monitor.Values
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if diff := cmp.Diff(v, back); diff != "" {
			t.Fatalf("%s: %s", text, diff)
		}
	})
}

func TestPlainValues(t *testing.T) {
	for _, c := range []struct {
		value scgs.Value
		want  string
	}{
		{scgs.Value{}, "null"},
		{scgs.FloatValue(math.Inf(1)), `"+Inf"`},
		{scgs.DurationValue(time.Second), `"1s"`},
		{scgs.ListValue(scgs.Duration, scgs.DurationValue(time.Second)), `["1s"]`},
		{scgs.ListValue(scgs.Float, scgs.FloatValue(0.5), scgs.FloatValue(2)), "[0.5,2]"},
		{scgs.ListValue(scgs.String), "[]"},
	} {
		if got, err := json.Marshal(monitor.Plain(c.value)); err != nil || string(got) != c.want {
			t.Errorf("%v is %s, %v; want %s", c.value, got, err, c.want)
		}
	}
}

func TestRangesInJSON(t *testing.T) {
	for want, r := range map[string]monitor.Range{
		"[-5,7]":      {From: -5, To: 7},
		"[null,0]":    {From: clocksync.MinInstant},
		"[3,null]":    {From: 3, To: clocksync.MaxInstant},
		"[null,null]": {From: clocksync.MinInstant, To: clocksync.MaxInstant},
	} {
		text, err := json.Marshal(r)
		var back monitor.Range
		if err != nil || string(text) != want || json.Unmarshal(text, &back) != nil || back != r {
			t.Errorf("%v became %s and %v, %v", r, text, back, err)
		}
	}
}

// FuzzValues reads what is no object, or a broken one, without a panic.
func FuzzValues(f *testing.F) {
	for _, text := range []string{"{}", "null", "[]", `{"a":1,"b":[{}]}`, `{"a":`, `{"a":1`, "1e999"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var v monitor.Values
		if json.Unmarshal(text, &v) != nil {
			return
		}
		again, err := json.Marshal(v)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		var back monitor.Values
		if err := json.Unmarshal(again, &back); err != nil || !cmp.Equal(v, back) {
			t.Fatalf("%s became %s, %v", text, again, err)
		}
	})
}
