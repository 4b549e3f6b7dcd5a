package scgs_test

import (
	"math"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/scgs"
)

func TestValues(t *testing.T) {
	tests := []struct {
		value scgs.Value
		typ   scgs.Type
		any   any
		text  string
	}{
		{scgs.Value{}, scgs.Invalid, nil, "none"},
		{scgs.BoolValue(true), scgs.Bool, true, "true"},
		{scgs.BoolValue(false), scgs.Bool, false, "false"},
		{scgs.IntValue(math.MinInt64), scgs.Int, int64(math.MinInt64), "-9223372036854775808"},
		{scgs.FloatValue(-0.25), scgs.Float, -0.25, "-0.25"},
		{scgs.FloatValue(math.Inf(1)), scgs.Float, math.Inf(1), "+Inf"},
		{scgs.FloatValue(math.NaN()), scgs.Invalid, nil, "none"},
		{scgs.DurationValue(1500 * time.Millisecond), scgs.Duration, 1500 * time.Millisecond, "1.5s"},
		{scgs.StringValue("a \"b\""), scgs.String, "a \"b\"", `"a \"b\""`},
		{scgs.EnumValue("idle"), scgs.Enum, "idle", "idle"},
	}
	for _, c := range tests {
		if c.value.Type() != c.typ || c.value.Any() != c.any || c.value.String() != c.text {
			t.Errorf("%v: type %v, any %v; want %s, %v, %v", c.value, c.value.Type(), c.value.Any(), c.text, c.typ, c.any)
		}
	}
}

// TestValueOfAnotherType checks that asking for the wrong type gives zero, save
// for the numbers that have a meaning as another one.
func TestValueOfAnotherType(t *testing.T) {
	type reading struct {
		b bool
		i int64
		f float64
		d time.Duration
		s string
	}
	tests := []struct {
		value scgs.Value
		want  reading
	}{
		{scgs.Value{}, reading{}},
		{scgs.BoolValue(true), reading{b: true}},
		{scgs.IntValue(7), reading{i: 7, f: 7}},
		{scgs.FloatValue(1.5), reading{f: 1.5}},
		{scgs.DurationValue(9), reading{i: 9, f: 9, d: 9}},
		{scgs.StringValue("x"), reading{s: "x"}},
		{scgs.EnumValue("y"), reading{s: "y"}},
	}
	for _, c := range tests {
		v := c.value
		if got := (reading{v.Bool(), v.Int(), v.Float(), v.Duration(), v.Text()}); got != c.want {
			t.Errorf("%v (%v) reads as %+v, want %+v", v, v.Type(), got, c.want)
		}
	}
}

func TestValuesAreComparable(t *testing.T) {
	text := []byte("a")
	if twin := scgs.StringValue(string(text)); twin != scgs.StringValue("a") {
		t.Error("equal values differ")
	}
	if scgs.StringValue("a") == scgs.EnumValue("a") || scgs.IntValue(1) == scgs.DurationValue(1) {
		t.Error("values of different types are equal")
	}
}

func TestTypes(t *testing.T) {
	for typ := scgs.Invalid; typ <= scgs.Enum; typ++ {
		got, ok := scgs.ParseType(typ.String())
		if want := typ != scgs.Invalid; ok != want || got != typ {
			t.Errorf("ParseType(%q) = %v, %v", typ, got, ok)
		}
	}
	if got, ok := scgs.ParseType("integer"); ok {
		t.Errorf("ParseType of no type = %v", got)
	}
	if got := scgs.Type(99).String(); got != "type(99)" {
		t.Errorf("unknown type is %q", got)
	}
}
