package yamlconf_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/internal/yamlconf"
)

// anyValue draws a value that can be written.
func anyValue(t *rapid.T, depth int) any {
	kinds := 7
	if depth == 0 {
		kinds = 5
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return rapid.Bool().Draw(t, "bool")
	case 1:
		return rapid.Int().Draw(t, "int")
	case 2:
		return time.Duration(rapid.Int64Range(0, 1<<50).Draw(t, "duration"))
	case 3, 4:
		return anyText(t)
	case 5:
		list := []any{}
		for range rapid.IntRange(0, 4).Draw(t, "length") {
			list = append(list, anyValue(t, depth-1))
		}
		return list
	}
	return anyMap(t, depth)
}

func anyMap(t *rapid.T, depth int) yamlconf.Map[any] {
	m := yamlconf.Map[any]{}
	for _, key := range rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z:#' é.0-9~-]{1,6}`), 0, 4, rapid.ID).Draw(t, "keys") {
		m = append(m, yamlconf.Entry[any]{Key: key, Value: anyValue(t, depth-1)})
	}
	return m
}

// anyText draws text with what YAML could take for something else, short and
// long.
func anyText(t *rapid.T) string {
	part := rapid.SampledFrom([]string{
		"a", "word", " ", " ", "  ", "\n", ": ", "#", " #", "- ", "'", `"`, `\`, "{", "}", "[", "]", ",", "|", ">", "&", "*", "!", "%", "@", "`", "?",
		"true", "null", "~", "12", "1.5", "-.inf", "200ms", "é", "\t", "\u0085", "\u2028", "😀", "\ufeff", "\x00", strings.Repeat("long ", 30), strings.Repeat("x", 700),
	})
	return strings.Join(rapid.SliceOfN(part, 0, 8).Draw(t, "text"), "")
}

// expected gives a value as looksLike gives what was read.
func expected(v any) any {
	switch v := v.(type) {
	case yamlconf.Map[any]:
		m := map[string]any{}
		for _, e := range v {
			m[e.Key] = expected(e.Value)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = expected(v[i])
		}
		return list
	case time.Duration:
		return v.String()
	}
	return v
}

// looksLike gives what was read, by its looks.
func looksLike(t *rapid.T, n yamlconf.Node) any {
	var err error
	var v any
	switch n.Kind() {
	case yamlconf.KindMap:
		m := map[string]any{}
		for _, item := range n.Items() {
			key, _ := item.Key()
			m[key] = looksLike(t, item)
		}
		return m
	case yamlconf.KindList:
		list := []any{}
		for _, item := range n.Items() {
			list = append(list, looksLike(t, item))
		}
		return list
	case yamlconf.KindBool:
		var b bool
		err = n.Decode(&b)
		v = b
	case yamlconf.KindInt:
		var i int
		err = n.Decode(&i)
		v = i
	default:
		v = n.Text()
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestWrittenIsReadAsTheSame writes any value, reads it, and writes what was read
// again.
func TestWrittenIsReadAsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := yamlconf.Map[any]{{Key: "v", Value: anyValue(t, 4)}}
		text := yamlconf.Write(want)
		var v struct {
			V yamlconf.Node `yaml:"v"`
		}
		doc, err := yamlconf.Decode("f", text, &v)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if d := cmp.Diff(expected(want), looksLike(t, doc.Root())); d != "" {
			t.Fatalf("%s\n%s", d, text)
		}
		if again := yamlconf.Write(yamlconf.Map[any]{{Key: "v", Value: v.V}}); string(again) != string(text) {
			t.Fatalf("%s\nwas read and written as\n%s", text, again)
		}
	})
}
