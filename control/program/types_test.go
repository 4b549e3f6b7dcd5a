package program

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestMisfit(t *testing.T) {
	list := Type{Base: List, Elem: &Type{Base: Float}}
	record := Type{Base: Record, Fields: []Field{{"at", Type{Base: Duration}}, {"of", list}}}
	for _, c := range []struct {
		of   Type
		text string
		null bool
		want string
	}{
		{Type{Base: Bool}, `true`, false, ""},
		{Type{Base: Bool}, `"true"`, false, `it is "true" and should be bool`},
		{Type{Base: Int}, `-3`, false, ""},
		{Type{Base: Int}, `1e2`, false, `it is 1e2 and should be int`},
		{Type{Base: Int}, `9223372036854775808`, false, `it is 9223372036854775808 and should be int`},
		{Type{Base: Float}, `3`, false, ""},
		{Type{Base: String}, `3`, false, `it is 3 and should be string`},
		{Type{Base: Duration}, `"1m30s"`, false, ""},
		{Type{Base: Duration}, `"soon"`, false, `it is "soon" and should be duration`},
		{Type{Base: Any}, `{"x":[null]}`, false, ""},
		{list, `[1,[2]]`, false, `[1] is [2] and should be float`},
		{list, `{}`, false, `it is {} and should be [float]`},
		{list, `null`, false, `it is null and should be [float]`},
		{list, `null`, true, ""},
		{record, `{"of":[1],"at":"1s","more":0}`, false, ""},
		{record, `{"Of":[1],"AT":"1s"}`, false, ""},
		{record, `{"of":[1]}`, true, `it has no field at`},
		{record, `{"of":[1,"x"],"at":"1s"}`, true, `.of[1] is "x" and should be float`},
		{record, `{"of":[1,null],"at":null}`, true, ""},
		{record, `{"of":[1,null],"at":"1s"}`, false, `.of[1] is null and should be float`},
		{record, `["0123456789012345678901234567890123456789"]`, false, `it is ["01234567890123456789012345678901234567... and should be {at: duration, of: [float]}`},
	} {
		if got := misfitText(c.of, c.text, c.null); got != c.want {
			t.Errorf("%s as %v:\ngot  %s\nwant %s", c.text, c.of, got, c.want)
		}
	}
}

func TestTake(t *testing.T) {
	number, text := Type{Base: Int}, Type{Base: String}
	record := Type{Base: Record, Fields: []Field{{"sum", number}, {"of", Type{Base: List, Elem: &Type{Base: Record, Fields: []Field{{"x", number}}}}}}}
	for _, c := range []struct {
		of              Type
		text, want, why string
	}{
		{number, `12345678901234567`, `12345678901234567`, ""},
		{number, `"1"`, "", `it is "1" and should be int`},
		{text, `"<&>"`, `"<&>"`, ""},
		{record, `null`, `null`, ""},
		{record, `{"more":0,"Of":[{"X":1,"y":2},null],"sum":3}`, `{"more":0,"of":[{"x":1,"y":2},null],"sum":3}`, ""},
		{record, `{"sum":3}`, "", `it has no field of`},
		{Type{Base: Record, Fields: []Field{{"a", Type{Base: Any}}}}, `{"a":{"<":1.50,"B":[]}}`, `{"a":{"<":1.50,"B":[]}}`, ""},
	} {
		got, why := c.of.takeValue(c.text)
		if why != c.why || why == "" && got != c.want {
			t.Errorf("%s as %v: %s, %s", c.text, c.of, got, why)
		}
	}
}

// TestTakeWhatFits: whatever the check lets through is given to a block by the names
// that it declares, with all that it has.
func TestTakeWhatFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		given := drawType(t, 3)
		want := narrowed(t, given)
		if !given.Fits(want) {
			t.Fatalf("%v does not fit %v", given, want)
		}
		text, err := json.Marshal(valueOf(t, given))
		if err != nil {
			t.Fatal(err)
		}
		got, why := want.takeValue(string(text))
		if why != "" {
			t.Fatalf("%s as %v: %s", text, want, why)
		}
		var v any
		if err := json.Unmarshal([]byte(got), &v); err != nil {
			t.Fatal(err)
		}
		if bad := inexact(want, v); bad != "" {
			t.Fatalf("%s as %v is %s: %s", text, want, got, bad)
		}
	})
}

func drawType(t *rapid.T, depth int) Type {
	base := rapid.SampledFrom([]Base{Any, Bool, Int, Float, String, Duration, List, Record, Record}).Draw(t, "base")
	switch {
	case depth == 0 && base >= List:
		return Type{Base: Int}
	case base == List:
		elem := drawType(t, depth-1)
		return Type{Base: List, Elem: &elem}
	case base == Record:
		r := Type{Base: Record}
		for _, name := range []string{"a", "b", "sum"}[:rapid.IntRange(0, 3).Draw(t, "fields")] {
			r.Fields = append(r.Fields, Field{name, drawType(t, depth-1)})
		}
		return r
	}
	return Type{Base: base}
}

// narrowed is a type that a value of another one fits.
func narrowed(t *rapid.T, of Type) Type {
	switch {
	case of.Base == List:
		elem := narrowed(t, *of.Elem)
		return Type{Base: List, Elem: &elem}
	case of.Base == Record:
		r := Type{Base: Record}
		for _, f := range of.Fields {
			if rapid.Bool().Draw(t, "wanted") {
				r.Fields = append(r.Fields, Field{f.Name, narrowed(t, f.Type)})
			}
		}
		return r
	case of.Base == Int && rapid.Bool().Draw(t, "float"):
		return Type{Base: Float}
	}
	return of
}

// valueOf draws a value of a type, as a process may write it.
func valueOf(t *rapid.T, of Type) any {
	switch of.Base {
	case Bool:
		return true
	case Int:
		return rapid.Int64().Draw(t, "int")
	case Float:
		return 0.5
	case Duration:
		return "1m30s"
	case List:
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "elements") {
			list = append(list, valueOf(t, *of.Elem))
		}
		return list
	case Record:
		r := map[string]any{"beside": []int{1}}
		for _, f := range of.Fields {
			name := f.Name
			if rapid.Bool().Draw(t, "upper") {
				name = strings.ToUpper(name)
			}
			r[name] = valueOf(t, f.Type)
		}
		return r
	default:
		return "<x>"
	}
}

// inexact says where a value lacks a field of its type, or what it had beside.
func inexact(of Type, v any) string {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if bad := inexact(*of.Elem, e); bad != "" {
				return bad
			}
		}
	case map[string]any:
		if _, ok := v["beside"]; !ok {
			return fmt.Sprintf("%v has lost a field", v)
		}
		for _, f := range of.Fields {
			e, ok := v[f.Name]
			if _, twice := v[strings.ToUpper(f.Name)]; !ok || twice {
				return fmt.Sprintf("%v has no field %s, or two", v, f.Name)
			}
			if bad := inexact(f.Type, e); bad != "" {
				return bad
			}
		}
	}
	return ""
}
