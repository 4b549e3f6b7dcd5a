package configfile

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
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
	p, w := plan.Program(), &programWriter{}
	w.line(0, "program:")
	w.line(2, "name: "+quote(p.Name))
	if len(p.Processors) > 0 {
		w.line(2, "processors:")
	}
	for _, q := range p.Processors {
		var entries []string
		entries = number(entries, "count", q.Count)
		entries = wordList(entries, "labels", q.Labels)
		entries = number(entries, "cores", q.Cores)
		w.line(4, quote(q.Name)+": {"+strings.Join(entries, ", ")+"}")
	}
	if len(p.Blocks) > 0 {
		w.line(2, "blocks:")
	}
	for i := range p.Blocks {
		b := &p.Blocks[i]
		var entries []string
		entries = word(entries, "group", b.Group)
		if b.Input.Base != program.None {
			entries = append(entries, "input: "+typeText(b.Input))
		}
		if b.Output.Base != program.None {
			entries = append(entries, "output: "+typeText(b.Output))
		}
		entries = number(entries, "threads", b.Threads)
		entries = word(entries, "synchronizer", b.Synchronizer)
		w.line(4, quote(b.Name)+": {"+strings.Join(entries, ", ")+"}")
	}
	w.line(2, "body:")
	w.construct(4, "", p.Body)
	if p.Result != "" {
		w.line(2, "result: "+quote(p.Result))
	}
	// What cannot be read back must not be written.
	var raw struct {
		Program programSection `yaml:"program"`
	}
	if _, err := yamlconf.Decode("program", w.Bytes(), &raw); err != nil {
		return nil, fmt.Errorf("program %s does not fit a file: %w", p.Name, err)
	}
	return w.Bytes(), nil
}

type programWriter struct{ bytes.Buffer }

func (w *programWriter) line(indent int, text string) {
	w.WriteString(strings.Repeat(" ", indent) + text + "\n")
}

// construct writes one construct. The first line gets lead instead of the last
// two blanks of its indentation, which is how an item of a list begins.
func (w *programWriter) construct(indent int, lead string, x program.Construct) {
	line := func(text string) {
		w.line(indent-len(lead), lead+text)
		lead = ""
	}
	below := func(key string, x program.Construct) {
		if x == nil {
			return
		}
		if d, ok := x.(program.Do); ok && bare(d) {
			line(key + ": " + quote(d.Block))
			return
		}
		line(key + ":")
		w.construct(indent+2, "", x)
	}
	items := func(key string, of []program.Construct) {
		line(key + ":")
		for _, item := range of {
			if d, ok := item.(program.Do); ok && bare(d) {
				w.line(indent, "- "+quote(d.Block))
				continue
			}
			w.construct(indent+2, "- ", item)
		}
	}
	rest := func(name string, limit time.Duration, els program.Construct) {
		for _, entry := range word(nil, "name", name) {
			line(entry)
		}
		if limit != 0 {
			line("deadline: " + limit.String())
		}
		below("else", els)
	}
	given := func(from, input string) {
		for _, entry := range word(nil, "from", from) {
			line(entry)
		}
		if input != "" {
			line("input: " + flow(input))
		}
	}
	switch x := x.(type) {
	case program.Seq:
		items("seq", x.Of)
		rest(x.Name, x.Deadline, x.Else)
	case program.Par:
		if x.Times > 0 && len(x.Of) == 1 {
			below("par", x.Of[0])
		} else {
			items("par", x.Of)
		}
		for _, entry := range word(number(nil, "times", x.Times), "join", x.Join) {
			line(entry)
		}
		rest(x.Name, x.Deadline, x.Else)
	case program.If:
		line("if: " + quote(x.When))
		below("then", x.Then)
		rest(x.Name, x.Deadline, x.Else)
	case program.Case:
		line("case:")
		for _, branch := range x.Of {
			w.line(indent, "- when: "+quote(branch.When))
			if d, ok := branch.Then.(program.Do); ok && bare(d) {
				w.line(indent+2, "then: "+quote(d.Block))
				continue
			}
			w.line(indent+2, "then:")
			w.construct(indent+4, "", branch.Then)
		}
		rest(x.Name, x.Deadline, x.Else)
	case program.While:
		line("while: " + quote(x.When))
		below("do", x.Do)
		given(x.From, x.Input)
		rest(x.Name, x.Deadline, x.Else)
	case program.DoUntil:
		below("do", x.Do)
		line("until: " + quote(x.Until))
		given(x.From, x.Input)
		rest(x.Name, x.Deadline, x.Else)
	case program.Do:
		line("do: " + quote(x.Block))
		given(x.From, x.Input)
		for _, entry := range wordList(number(word(nil, "on", x.On), "retry", x.Retry), "async", x.Async) {
			line(entry)
		}
		rest(x.Name, x.Deadline, x.Else)
	}
}

// bare reports whether a block's name says all.
func bare(d program.Do) bool {
	return d.Name == "" && d.On == "" && d.From == "" && d.Input == "" && d.Retry == 0 && len(d.Async) == 0 && d.Deadline == 0 && d.Else == nil
}

func word(entries []string, key, value string) []string {
	if value == "" {
		return entries
	}
	return append(entries, key+": "+quote(value))
}

func wordList(entries []string, key string, values []string) []string {
	if len(values) == 0 {
		return entries
	}
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = quote(v)
	}
	return append(entries, key+": ["+strings.Join(list, ", ")+"]")
}

func number(entries []string, key string, n int) []string {
	if n == 0 {
		return entries
	}
	return append(entries, key+": "+strconv.Itoa(n))
}

// typeText is a type as a file writes it.
func typeText(t program.Type) string {
	switch t.Base {
	case program.List:
		return "[" + typeText(*t.Elem) + "]"
	case program.Record:
		list := make([]string, len(t.Fields))
		for i, f := range t.Fields {
			list[i] = quote(f.Name) + ": " + typeText(f.Type)
		}
		return "{" + strings.Join(list, ", ") + "}"
	default:
		return t.String()
	}
}

var plainWord = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_.-]*$`)

// quote writes a text so that it is read as one.
func quote(s string) string {
	switch strings.ToLower(s) {
	case "true", "false", "null":
		return strconv.Quote(s)
	}
	if plainWord.MatchString(s) {
		return s
	}
	return string(literalText(nil, s))
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
