package configfile_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/yamlconf"
)

// validator compiles the schema.
func validator(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(configfile.JSONSchema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft4) // The schema has to say that it is newer.
	if err := c.AddResource("config.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("config.json")
	if err != nil {
		t.Fatal(err)
	}
	if s.DraftVersion != 2020 {
		t.Errorf("the schema is one of draft %d", s.DraftVersion)
	}
	return s
}

// instance is a configuration as an editor sees it.
func instance(t interface{ Fatalf(string, ...any) }, src []byte) any {
	doc, err := yamlconf.Decode("c", src, &struct{}{})
	if doc == nil {
		t.Fatalf("%v\n%s", err, src)
	}
	return jsonOf(doc.Root())
}

func jsonOf(n yamlconf.Node) any {
	switch n.Kind() {
	case yamlconf.KindMap:
		m := map[string]any{}
		for _, item := range n.Items() {
			key, _ := item.Key()
			m[key] = jsonOf(item)
		}
		return m
	case yamlconf.KindList:
		list := []any{}
		for _, item := range n.Items() {
			list = append(list, jsonOf(item))
		}
		return list
	case yamlconf.KindBool:
		return n.Text() == "true"
	case yamlconf.KindInt, yamlconf.KindFloat:
		if _, err := strconv.ParseFloat(n.Text(), 64); err == nil && !strings.Contains(n.Text(), "inf") {
			return json.Number(n.Text())
		}
	case yamlconf.KindNull:
		return nil
	}
	return n.Text()
}

func TestSchemaAcceptsShipped(t *testing.T) {
	schema := validator(t)
	for name, src := range shipped(t) {
		if err := schema.Validate(instance(t, src)); err != nil {
			t.Errorf("%s: %v", filepath.Base(name), err)
		}
		if shown, err := configfile.Show(name, src); err != nil || schema.Validate(instance(t, shown)) != nil {
			t.Errorf("%s as it is shown: %v, %v", filepath.Base(name), err, schema.Validate(instance(t, shown)))
		}
	}
}

// TestSchemaAcceptsGenerated wants the schema to refuse nothing that Parse
// accepts.
func TestSchemaAcceptsGenerated(t *testing.T) {
	schema := validator(t)
	rapid.Check(t, func(t *rapid.T) {
		src := []byte(anyConfig(t))
		if err := schema.Validate(instance(t, src)); err != nil {
			t.Fatalf("%v\n%s", err, src)
		}
	})
}

// TestSchemaRefuses has faults that need no expression to be found. Parse refuses
// each of them, too.
func TestSchemaRefuses(t *testing.T) {
	schema := validator(t)
	const good = `synchronizers:
  g:
    members: {group: w, count: 2}
    silence: {after: 2s, then: drop}
    state: {phase: {enum: [a, b]}, load: float, tags: {list: {enum: [x, y]}}, n: {type: int, default: 7}, ns: {type: {list: int}, default: [1, 2]}}
    memory: {m: {type: int, initial: 0}}
    predicates:
      p:
        when: memory.m == 0
        for: 1s
        signal: {kind: cancel, region: r, to: all, expires: 2s, data: {x: "1.5"}}
`
	if err := schema.Validate(instance(t, []byte(good))); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{"synchronizers:", "synchronisers:"},
		{"  g:", `  "g g":`},
		{"members:", "member:"},
		{"    members: {group: w, count: 2}\n", ""},
		{"{group: w, count: 2}", "{group: w, threads: 2}"},
		{"{group: w, count: 2}", "{count: 2}"},
		{"{group: w, count: 2}", "3"},
		{"{group: w, count: 2}", `{group: "w w"}`},
		{"count: 2", "count: 0"},
		{"count: 2", "count: 1.5"},
		{"count: 2", "count: {least: 2}"},
		{"2s", "soon"},
		{"2s", "2"},
		{"then: drop", "then: wait"},
		{"then: drop", "than: drop"},
		{"load: float", "load: number"},
		{"load: float", "load: [float]"},
		{"load: float", "1load: float"},
		{"[a, b]", "[]"},
		{"[a, b]", "[a, a]"},
		{"{enum: [a, b]}", "{enum: [a, b], x: 1}"},
		{"{list: {enum: [x, y]}}", "{list: {list: int}}"},
		{"{list: {enum: [x, y]}}", "{list: number}"},
		{"{list: {enum: [x, y]}}", "{list: int, default: [1]}"},
		{"{type: int, default: 7}", "{type: int, initial: 7}"},
		{"{type: int, default: 7}", "{default: 7}"},
		{"{type: int, default: 7}", "{type: int, default: {}}"},
		{"{type: int, initial: 0}", "{initial: 0}"},
		{"{type: int, initial: 0}", "{type: int, first: 0}"},
		{"initial: 0", "initial: [0]"},
		{"when:", "whem:"},
		{"memory.m == 0", "true"},
		{"memory.m == 0", `""`},
		{"        when: memory.m == 0\n", ""},
		{"for: 1s", "for: [1s]"},
		{"for: 1s", "every: maybe"},
		{"for: 1s", "priority: high"},
		{"kind: cancel", "kind: stop"},
		{"kind: cancel, ", ""},
		{"kind: cancel", `kind: ""`},
		{"region: r", `region: ""`},
		{"region: r, ", ""},
		{"region: r", `region: "r.s"`},
		{"to: all", "to: [w1, {}]"},
		{"to: all", "to: []"},
		{"to: all", "to: [w1, w1]"},
		{"to: all", `to: ["w 1"]`},
		{"to: all", "to: {max: 3}"},
		{"to: all", "to: {group: x, count: 3}"},
		{"to: all", "to: {group: x, max: 0}"},
		{"to: all", `to: {group: "x x"}`},
		{"for: 1s", "cooldown: soon"},
		{"for: 1s", "until: [a]"},
		{"for: 1s", "modality: sometimes"},
		{"expires: 2s", "expire: 2s"},
		{`x: "1.5"`, "x: 1.5"},
		{"signal: {kind: cancel, region: r, to: all, expires: 2s, data: {x: \"1.5\"}}", "signal: cancel"},
		{"    predicates:\n", "    predicates: []\n    x:\n"},
	} {
		src := []byte(strings.Replace(good, change[0], change[1], 1))
		if string(src) == good {
			t.Fatalf("%q is not in the configuration", change[0])
		}
		if _, err := configfile.Parse("c", src); err == nil {
			t.Errorf("%q for %q: Parse accepts it", change[1], change[0])
		}
		if schema.Validate(instance(t, src)) == nil {
			t.Errorf("%q for %q: the schema accepts it", change[1], change[0])
		}
	}
}
