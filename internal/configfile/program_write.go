package configfile

import (
	"bytes"
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gopegasus/pegasus/control/program"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/yamlconf"
)

// FormatFile writes a whole file: the sections of synchronizers as they stand in a
// text, which may be empty, and after them that of a program, which is compiled
// against them. [ParseProgram] reads the same program from it.
func FormatFile(name string, synchronizers []byte, p *program.Program) ([]byte, error) {
	env := &program.Env{Groups: []string{DefaultGroup}}
	text := bytes.TrimSpace(synchronizers)
	if len(text) > 0 {
		var cfg config.Config
		doc, err := yamlconf.Decode(name, synchronizers, &cfg)
		if doc == nil {
			return nil, err
		}
		s := parser{doc: doc, cfg: &cfg, levels: map[string]config.Section{}}
		s.host(false)
		s.all()
		if err := doc.Err(); err != nil {
			return nil, err
		}
		env, text = environment(&cfg), append(bytes.TrimRight(synchronizers, " \r\n"), '\n')
	}
	plan, err := program.Compile(p, env)
	if err != nil {
		return nil, fmt.Errorf("%s: program %s:\n%w", name, p.Name, err)
	}
	section, err := FormatProgram(plan)
	if err != nil {
		return nil, err
	}
	text = append(bytes.Clone(text), section...)
	_, err = ParseProgram(name, text) // Both together may be too long, for one.
	return text, err
}

// FormatProgram writes the section of a compiled program as it stands in a file, without
// the synchronizers that it refers to. [ParseProgram] reads the same program
// from it. What the file format cannot hold is refused: more than about 60
// constructs inside each other, a file above 1 MiB.
func FormatProgram(plan *program.Compiled) ([]byte, error) {
	p := plan.Program()
	var section, processors, blocks entries
	section.add("name", p.Name)
	for _, q := range p.Processors {
		processors.add(q.Name, structTree(q))
	}
	for _, b := range p.Blocks {
		blocks.add(b.Name, structTree(b))
	}
	if len(processors) > 0 {
		section.add("processors", processors.tree())
	}
	if len(blocks) > 0 {
		section.add("blocks", blocks.tree())
	}
	section.add("body", constructTree(p.Body))
	if p.Result != "" {
		section.add("result", p.Result)
	}
	text := yamlconf.Write(entries{{Key: "program", Value: section.tree()}}.tree())
	// What cannot be read back must not be written.
	var raw struct {
		Program programSection `yaml:"program"`
	}
	if _, err := yamlconf.DecodeWith(programForms, "program", text, &raw); err != nil {
		return nil, fmt.Errorf("program %s does not fit a file: %w", p.Name, err)
	}
	return text, nil
}

// written is the order of the keys of a construct.
var written = strings.Fields("seq par if then case while do until from input on times retry async join name deadline else")

// constructTree is a construct as a file writes it: a block's name alone where
// there is no more to say.
func constructTree(x program.Construct) any {
	tree := structTree(x)
	switch x := x.(type) {
	case program.Do:
		if len(tree) == 1 {
			return x.Block
		}
	case program.Par:
		if x.Times > 0 && len(x.Of) == 1 {
			tree[slices.IndexFunc(tree, func(e yamlconf.Entry[any]) bool { return e.Key == "par" })].Value = constructTree(x.Of[0])
		}
	}
	slices.SortFunc(tree, func(a, b yamlconf.Entry[any]) int {
		return cmp.Compare(slices.Index(written, a.Key), slices.Index(written, b.Key))
	})
	return tree
}

// structTree gives the keys of a part of a program that have a value.
func structTree(part any) yamlconf.Map[any] {
	var e entries
	for f, v := range reflect.ValueOf(part).Fields() {
		key, form, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if key == "" || v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0 {
			continue
		}
		value := v.Interface()
		switch x := value.(type) {
		case program.Type:
			value = typeTree(x)
		case program.Construct:
			value = constructTree(x)
		case []program.Construct:
			value = trees(x, constructTree)
		case []program.When:
			value = trees(x, func(w program.When) any { return structTree(w) })
		case []string:
			value = trees(x, func(w string) any { return w })
		case string:
			if form == "json" {
				value = yamlconf.Literal(flow(x))
			}
		}
		e.add(key, value)
	}
	return e.tree()
}

func trees[T any](list []T, tree func(T) any) []any {
	out := make([]any, len(list))
	for i, x := range list {
		out[i] = tree(x)
	}
	return out
}

// typeTree is a type as a file writes it.
func typeTree(t program.Type) any {
	switch t.Base {
	case program.List:
		return []any{typeTree(*t.Elem)}
	case program.Record:
		var e entries
		for _, f := range t.Fields {
			e.add(f.Name, typeTree(f.Type))
		}
		return e.tree()
	default:
		return t.String()
	}
}

// flow gives compact JSON the blanks that YAML wants after colons and commas, and escapes
// what may not stand in a file of ours.
func flow(compact string) string {
	v := jsontext.Value(compact)
	if err := v.Format(jsontext.SpaceAfterColon(true), jsontext.SpaceAfterComma(true), jsontext.PreserveRawStrings(true), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		panic(fmt.Sprintf("configfile: the input %s of a program that was checked: %v", compact, err))
	}
	var b strings.Builder
	for _, r := range string(v) {
		if r >= 0x7f && r <= 0x9f || r == '\ufeff' || r == '\u2028' || r == '\u2029' {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
