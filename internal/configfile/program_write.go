package configfile

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"time"

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
		var e entries
		e.given("count", q.Count)
		e.words("labels", q.Labels)
		e.given("cores", q.Cores)
		processors.add(q.Name, e.tree())
	}
	for i := range p.Blocks {
		b := &p.Blocks[i]
		var e entries
		e.given("group", b.Group)
		if b.Input.Base != program.None {
			e.add("input", typeTree(b.Input))
		}
		if b.Output.Base != program.None {
			e.add("output", typeTree(b.Output))
		}
		e.given("threads", b.Threads)
		e.given("synchronizer", b.Synchronizer)
		blocks.add(b.Name, e.tree())
	}
	if len(processors) > 0 {
		section.add("processors", processors.tree())
	}
	if len(blocks) > 0 {
		section.add("blocks", blocks.tree())
	}
	section.add("body", constructTree(p.Body))
	section.given("result", p.Result)
	text := yamlconf.Write(entries{{Key: "program", Value: section.tree()}}.tree())
	// What cannot be read back must not be written.
	var raw struct {
		Program programSection `yaml:"program"`
	}
	if _, err := yamlconf.Decode("program", text, &raw); err != nil {
		return nil, fmt.Errorf("program %s does not fit a file: %w", p.Name, err)
	}
	return text, nil
}

// given adds a value that is not the zero of its type.
func (e *entries) given(key string, value any) {
	if !reflect.ValueOf(value).IsZero() {
		e.add(key, value)
	}
}

// words adds a list that is not empty.
func (e *entries) words(key string, values []string) {
	if len(values) > 0 {
		e.add(key, trees(values, func(v string) any { return v }))
	}
}

func trees[T any](list []T, tree func(T) any) []any {
	out := make([]any, len(list))
	for i, x := range list {
		out[i] = tree(x)
	}
	return out
}

// constructTree is a construct as a file writes it: a block's name alone where
// there is no more to say.
func constructTree(x program.Construct) any {
	var e entries
	below := func(key string, x program.Construct) {
		if x != nil {
			e.add(key, constructTree(x))
		}
	}
	rest := func(name string, limit time.Duration, els program.Construct) {
		e.given("name", name)
		e.given("deadline", limit)
		below("else", els)
	}
	input := func(from, input string) {
		e.given("from", from)
		e.given("input", yamlconf.Literal(flow(input)))
	}
	switch x := x.(type) {
	case program.Seq:
		e.add("seq", trees(x.Of, constructTree))
		rest(x.Name, x.Deadline, x.Else)
	case program.Par:
		if x.Times > 0 && len(x.Of) == 1 {
			below("par", x.Of[0])
		} else {
			e.add("par", trees(x.Of, constructTree))
		}
		e.given("times", x.Times)
		e.given("join", x.Join)
		rest(x.Name, x.Deadline, x.Else)
	case program.If:
		e.add("if", x.When)
		below("then", x.Then)
		rest(x.Name, x.Deadline, x.Else)
	case program.Case:
		e.add("case", trees(x.Of, func(b program.When) any {
			return entries{{Key: "when", Value: b.When}, {Key: "then", Value: constructTree(b.Then)}}.tree()
		}))
		rest(x.Name, x.Deadline, x.Else)
	case program.While:
		e.add("while", x.When)
		below("do", x.Do)
		input(x.From, x.Input)
		rest(x.Name, x.Deadline, x.Else)
	case program.DoUntil:
		below("do", x.Do)
		e.add("until", x.Until)
		input(x.From, x.Input)
		rest(x.Name, x.Deadline, x.Else)
	case program.Do:
		e.add("do", x.Block)
		input(x.From, x.Input)
		e.given("on", x.On)
		e.given("retry", x.Retry)
		e.words("async", x.Async)
		rest(x.Name, x.Deadline, x.Else)
		if len(e) == 1 {
			return x.Block
		}
	}
	return e.tree()
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

// flow gives compact JSON the blanks that YAML wants after colons and commas.
func flow(compact string) string {
	var b strings.Builder
	text := false
	for i := 0; i < len(compact); i++ {
		c := compact[i]
		b.WriteByte(c)
		switch {
		case text && c == '\\':
			i++
			b.WriteByte(compact[i])
		case c == '"':
			text = !text
		case !text && (c == ',' || c == ':'):
			b.WriteByte(' ')
		}
	}
	return b.String()
}
