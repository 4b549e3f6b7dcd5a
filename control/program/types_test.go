package program

import "testing"

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
