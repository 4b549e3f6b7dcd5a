package tracedetect_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/tracedetect"
	"github.com/gopegasus/pegasus/scgs"
)

func TestParseSchema(t *testing.T) {
	const wrong = ` is not NAME:TYPE, such as load:float, or NAME:TYPE=DEFAULT; the types are bool, int, float, string, duration, enum(WORD|WORD) and list(TYPE)`
	for _, c := range []struct{ text, want string }{
		{"role:string, load : float", "[role: string load: float]"},
		{"phase:enum(idle|busy),tags:list(string),all:list(enum(a|b))", "[phase: {enum: [idle, busy]} tags: {list: string} all: {list: {enum: [a, b]}}]"},
		{"load:float=0.5,s:string=,w:duration=2s,phase:enum(idle|busy)=busy", `[load: float s: string w: duration phase: {enum: [idle, busy]}] 0.5 "" 2s busy`},
		{"a:list(int)=[],b:list(int)=[1|-2],c:list(enum(x|y))=[y]", "[a: {list: int} b: {list: int} c: {list: {enum: [x, y]}}] [] [1, -2] [y]"},
		{"load", `schema: "load"` + wrong},
		{"load:number", `schema: "load:number"` + wrong},
		{"load:enum", `schema: "load:enum"` + wrong},
		{"load:list", `schema: "load:list"` + wrong},
		{"load:list(list(int))", `schema: "load:list(list(int))"` + wrong},
		{"load:list(int", `schema: "load:list(int"` + wrong},
		{"load:float=x", `schema: "load:float=x": "x" is no value of load: float`},
		{"load:float=+Inf", `schema: state: field "load": its default +Inf is no value of load: float`},
		{"l:list(int)=3", `schema: "l:list(int)=3": a default of a list is [], or its elements as in [a|b]`},
		{"l:list(int)=[1|x]", `schema: "l:list(int)=[1|x]": "x" is no value of l: int`},
		{"p:enum(a|b)=c", `schema: "p:enum(a|b)=c": "c" is no value of p: {enum: [a, b]}`},
		{"a:int,a:int", `schema: state: field "a" is declared twice`},
	} {
		schema, err := tracedetect.ParseSchema(c.text)
		words := []string{fmt.Sprint(schema)}
		for _, f := range schema {
			if f.Default.Type() != scgs.Invalid {
				words = append(words, f.Default.String())
			}
		}
		got := strings.Join(words, " ")
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.text, got, c.want)
		}
	}
}
