package scgs_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/scgs"
)

var single = []scgs.Type{scgs.Bool, scgs.Int, scgs.Float, scgs.String, scgs.Duration, scgs.Enum}

func drawSingle(t *rapid.T, typ scgs.Type) scgs.Value {
	switch typ {
	case scgs.Bool:
		return scgs.BoolValue(rapid.Bool().Draw(t, "bool"))
	case scgs.Int:
		return scgs.IntValue(rapid.Int64().Draw(t, "int"))
	case scgs.Float:
		return scgs.FloatValue(rapid.Float64().Filter(func(f float64) bool { return !math.IsNaN(f) }).Draw(t, "float"))
	case scgs.Duration:
		return scgs.DurationValue(time.Duration(rapid.Int64().Draw(t, "duration")))
	case scgs.Enum:
		return scgs.EnumValue(rapid.String().Draw(t, "word"))
	default:
		return scgs.StringValue(rapid.String().Draw(t, "text"))
	}
}

// TestListsHoldTheirElements compares lists with slices of their elements.
func TestListsHoldTheirElements(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom(single).Draw(t, "type")
		draw := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) scgs.Value { return drawSingle(t, typ) }), 0, 6)
		a, b := draw.Draw(t, "a"), draw.Draw(t, "b")
		list, other := scgs.ListValue(typ, a...), scgs.ListValue(typ, b...)
		if list.Type() != scgs.ListOf(typ) || list.Len() != len(a) {
			t.Fatalf("%v of type %v with %d elements, want %d of %v", list, list.Type(), list.Len(), len(a), typ)
		}
		for i := -1; i <= len(a); i++ {
			want := scgs.Value{}
			if i >= 0 && i < len(a) {
				want = a[i]
			}
			if got := list.At(i); got != want {
				t.Fatalf("%v at %d is %v, want %v", list, i, got, want)
			}
		}
		if (list == other) != cmp.Equal(a, b, cmp.AllowUnexported(scgs.Value{})) {
			t.Fatalf("%v == %v is %v", list, other, list == other)
		}
		again := scgs.ListValue(typ, a...)
		if list != again {
			t.Fatalf("%v differs from its twin", list)
		}
	})
}

func TestLists(t *testing.T) {
	tests := []struct {
		value scgs.Value
		any   any
		text  string
	}{
		{scgs.ListValue(scgs.Float, scgs.FloatValue(0.5), scgs.FloatValue(-2)), []float64{0.5, -2}, "[0.5, -2]"},
		{scgs.ListValue(scgs.Int, scgs.IntValue(-1)), []int64{-1}, "[-1]"},
		{scgs.ListValue(scgs.Bool, scgs.BoolValue(true), scgs.BoolValue(false)), []bool{true, false}, "[true, false]"},
		{scgs.ListValue(scgs.Duration, scgs.DurationValue(time.Second)), []time.Duration{time.Second}, "[1s]"},
		{scgs.ListValue(scgs.String, scgs.StringValue(""), scgs.StringValue("b c")), []string{"", "b c"}, `["", "b c"]`},
		{scgs.ListValue(scgs.Enum, scgs.EnumValue("idle")), []string{"idle"}, "[idle]"},
		{scgs.ListValue(scgs.String), []string{}, "[]"},
	}
	for _, c := range tests {
		if d := cmp.Diff(c.any, c.value.Any()); d != "" || c.value.String() != c.text {
			t.Errorf("%v: want %s, any (-want +got):\n%s", c.value, c.text, d)
		}
		if c.value.Text() != "" || c.value.Float() != 0 || c.value.Int() != 0 || c.value.Bool() || c.value.Duration() != 0 {
			t.Errorf("%v reads as a single value", c.value)
		}
	}
	for what, v := range map[string]scgs.Value{
		"another type":  scgs.ListValue(scgs.Float, scgs.IntValue(1)),
		"NaN":           scgs.ListValue(scgs.Float, scgs.FloatValue(math.NaN())),
		"no type":       scgs.ListValue(scgs.Invalid),
		"lists":         scgs.ListValue(scgs.ListOf(scgs.Int)),
		"list of lists": scgs.ListValue(scgs.ListOf(scgs.Int), scgs.ListValue(scgs.Int)),
	} {
		if v != (scgs.Value{}) {
			t.Errorf("%s: %v of type %v is a value", what, v, v.Type())
		}
	}
	if scgs.ListValue(scgs.Int) == scgs.ListValue(scgs.Float) || scgs.IntValue(1).At(0) != (scgs.Value{}) {
		t.Error("empty lists of different types are equal, or a number has elements")
	}
}

func TestListTypes(t *testing.T) {
	for _, elem := range single {
		list := scgs.ListOf(elem)
		if !list.IsList() || elem.IsList() || list.Elem() != elem || elem.Elem() != elem || list.String() != "list of "+elem.String() {
			t.Errorf("the list of %v is %v, of %v", elem, list, list.Elem())
		}
		if got := scgs.ListOf(list); got != scgs.Invalid {
			t.Errorf("the list of %v is %v", list, got)
		}
		if got, ok := scgs.ParseType(list.String()); ok {
			t.Errorf("%q is the word of %v", list, got)
		}
	}
	if got := (scgs.ListOf(scgs.Int) + 64).String(); got != "type(194)" {
		t.Errorf("a type of no elements is %s", got)
	}
}

func TestListFields(t *testing.T) {
	texts := func(n, size int) scgs.Value {
		list := make([]scgs.Value, n)
		for i := range list {
			list[i] = scgs.StringValue(strings.Repeat("x", size))
		}
		return scgs.ListValue(scgs.String, list...)
	}
	tags := scgs.Field{Name: "tags", Type: scgs.ListOf(scgs.String)}
	phases := scgs.Field{Name: "phases", Type: scgs.ListOf(scgs.Enum), Words: []string{"idle", "busy"}}
	for _, c := range []struct {
		field scgs.Field
		value scgs.Value
		want  bool
	}{
		{tags, texts(0, 0), true},
		{tags, texts(scgs.MaxElements, scgs.MaxTextBytes/scgs.MaxElements), true},
		{tags, texts(scgs.MaxElements+1, 0), false},
		{tags, texts(1, scgs.MaxTextBytes), true},
		{tags, texts(2, scgs.MaxTextBytes/2+1), false},
		{tags, scgs.StringValue("a"), false},
		{tags, scgs.ListValue(scgs.Enum, scgs.EnumValue("a")), false},
		{phases, scgs.ListValue(scgs.Enum, scgs.EnumValue("busy"), scgs.EnumValue("busy")), true},
		{phases, scgs.ListValue(scgs.Enum, scgs.EnumValue("busy"), scgs.EnumValue("done")), false},
	} {
		if got := c.field.Accepts(c.value); got != c.want {
			t.Errorf("%v accepts %v: %v", c.field, c.value, got)
		}
	}
	if got := tags.String() + ", " + phases.String(); got != "tags: {list: string}, phases: {list: {enum: [idle, busy]}}" {
		t.Errorf("fields %s", got)
	}
	enum := scgs.Field{Name: "phase", Type: scgs.Enum, Words: phases.Words}
	for _, c := range []struct {
		field scgs.Field
		t     scgs.Type
		want  bool
	}{
		{tags, tags.Type, true},
		{phases, tags.Type, true},
		{enum, scgs.String, true},
		{tags, phases.Type, false},
		{phases, scgs.String, false},
		{enum, tags.Type, false},
		{tags, scgs.String, false},
	} {
		if got := c.field.Carries(c.t); got != c.want {
			t.Errorf("%v carries %v: %v", c.field, c.t, got)
		}
	}
}

func TestDefaults(t *testing.T) {
	for _, c := range []struct {
		field scgs.Field
		want  string
	}{
		{scgs.Field{Name: "a", Type: scgs.Float, Default: scgs.FloatValue(0)}, ""},
		{scgs.Field{Name: "a", Type: scgs.ListOf(scgs.Int), Default: scgs.ListValue(scgs.Int)}, ""},
		{scgs.Field{Name: "a", Type: scgs.Float, Default: scgs.IntValue(0)}, `state: field "a": its default 0 is no value of a: float`},
		{scgs.Field{Name: "a", Type: scgs.Float, Default: scgs.FloatValue(math.Inf(1))}, `state: field "a": its default +Inf is no value of a: float`},
		{scgs.Field{Name: "a", Type: scgs.ListOf(scgs.Float), Default: scgs.ListValue(scgs.Float, scgs.FloatValue(math.Inf(-1)))}, `state: field "a": its default [-Inf] is no value of a: {list: float}`},
		{scgs.Field{Name: "a", Type: scgs.Enum, Words: []string{"x"}, Default: scgs.EnumValue("y")}, `state: field "a": its default y is no value of a: {enum: [x]}`},
		{scgs.Field{Name: "a", Type: scgs.ListOf(scgs.Int), Words: []string{"x"}}, `state: field "a" of type list of int has enum words`},
		{scgs.Field{Name: "a", Type: scgs.ListOf(scgs.Enum)}, `state: field "a": an enum has 1 to 64 words, this one has 0`},
		{scgs.Field{Name: "a", Type: scgs.ListOf(scgs.Int) + 64}, `state: field "a" has no type`},
	} {
		err := scgs.Schema{c.field}.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.field, err, c.want)
		}
	}
	hashes := map[uint64]scgs.Value{}
	for _, v := range []scgs.Value{{}, scgs.StringValue(""), scgs.StringValue("a"), scgs.StringValue("b")} {
		h := scgs.Schema{{Name: "a", Type: scgs.String, Default: v}}.Hash()
		if twin, ok := hashes[h]; ok {
			t.Errorf("the defaults %v and %v have one hash", v, twin)
		}
		hashes[h] = v
	}
}

func TestValuesSurviveJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom(single).Draw(t, "type")
		value := drawSingle(t, typ)
		if rapid.Bool().Draw(t, "list") {
			value = scgs.ListValue(typ, rapid.SliceOfN(rapid.Custom(func(t *rapid.T) scgs.Value { return drawSingle(t, typ) }), 0, 5).Draw(t, "elements")...)
		}
		raw, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		var got scgs.Value
		if err := json.Unmarshal(raw, &got); err != nil || got != value {
			t.Fatalf("%s reads as %v, %v; want %v", raw, got, err, value)
		}
	})
}

func TestJSONOfValues(t *testing.T) {
	field := scgs.Field{Name: "a", Type: scgs.ListOf(scgs.Int), Default: scgs.ListValue(scgs.Int, scgs.IntValue(1))}
	for _, c := range []struct {
		from any
		want string
	}{
		{scgs.Value{}, "null"},
		{scgs.FloatValue(math.Inf(-1)), `{"type":"float","value":"-Inf"}`},
		{scgs.DurationValue(time.Second), `{"type":"duration","value":1000000000}`},
		{field, `{"Name":"a","Type":130,"Words":null,"Default":{"type":"list of int","value":[1]}}`},
		{scgs.Field{Name: "a", Type: scgs.Int}, `{"Name":"a","Type":2,"Words":null}`},
	} {
		if raw, err := json.Marshal(c.from); err != nil || string(raw) != c.want {
			t.Errorf("%+v is %s, %v; want %s", c.from, raw, err, c.want)
		}
	}
	for raw, want := range map[string]string{
		`{"type":"list","value":1}`:               `value: "list" is no type`,
		`{"type":"invalid","value":1}`:            `value: "invalid" is no type`,
		`{"type":"int","value":1.5}`:              "value: 1.5 is no int",
		`{"type":"int"}`:                          "value:  is no int",
		`{"type":"int","value":null}`:             "value: null is no int",
		`{"type":"float","value":"NaN"}`:          `value: "NaN" is no float`,
		`{"type":"float","value":"x"}`:            `value: "x" is no float`,
		`{"type":"list of int","value":3}`:        "value: 3 is no list of int of at most 64 elements",
		`{"type":"list of int","value":[1,null]}`: "value: an element is null: a list of int has values only",
		`{"type":"list of int","value":[1,true]}`: "value: true is no int",
		`[]`: "value: json: cannot unmarshal",
	} {
		var v scgs.Value
		if err := json.Unmarshal([]byte(raw), &v); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %s", raw, v, err, want)
		}
	}
	v := scgs.IntValue(1)
	if err := json.Unmarshal([]byte("null"), &v); err != nil {
		t.Error(err)
	}
}
