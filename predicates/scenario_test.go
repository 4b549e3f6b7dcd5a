package predicates_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// TestScenarios runs the files of testdata: each declares an environment and a
// global state, then judges one text a line. Run with -rewrite to accept new
// results.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		t.Helper()
		w := &world{env: &predicates.Env{}}
		datadriven.RunTest(t, path, w.run)
	})
}

type world struct {
	env   *predicates.Env
	who   []predicates.Member
	scope *predicates.Scope
}

func (w *world) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	switch d.Cmd {
	case "state": // NAME: [list] TYPE [WORD...], a line a field
		w.env.State = schema(t, d.Input)
		w.env.Prev = d.HasArg("prev")
		d.MaybeScanArgs(t, "limit", &w.env.MaxMembers)
	case "process": // a schema, and its values behind it: NAME: TYPE = VALUE
		w.process(t, d)
	case "next": // NAME [FIELD=VALUE...], or NAME unknown: the next global state
		w.next(t, lines(d.Input))
	case "memory":
		w.env.Memory = schema(t, d.Input)
	case "signal":
		w.env.Parent = append(w.env.Parent, predicates.ParentSignal{Name: d.CmdArgs[0].Key, Fields: schema(t, d.Input)})
	case "members": // NAME HOST [FIELD=VALUE...], or NAME HOST unknown
		w.members(t, lines(d.Input))
	case "set": // memory NAME=VALUE, or signal NAME=VALUE for each field
		w.set(t, d)
	case "refuse": // the whole input is one text
		return refusal(w.env.Bool(d.Input))
	default:
		return w.each(t, d)
	}
	return ""
}

// each compiles and evaluates a text a line.
func (w *world) each(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	var out strings.Builder
	for _, src := range lines(d.Input) {
		fmt.Fprintf(&out, "%-*s  %s\n", width(d.Input), src, w.one(t, d, src))
	}
	return out.String()
}

func (w *world) one(t *testing.T, d *datadriven.TestData, src string) string {
	t.Helper()
	switch d.Cmd {
	case "eval":
		p, err := w.env.Bool(src)
		if err != nil {
			return refusal(p, err)
		}
		v := p.Eval(w.scope)
		return strings.TrimSuffix(fmt.Sprintf("%s: %s", v.Truth, v.Reason), ": ")
	case "value":
		p, err := w.env.Value(src, want(t, d))
		if err != nil {
			return refusal(p, err)
		}
		v, reason := p.EvalValue(w.scope)
		if reason != "" {
			return "unknown: " + reason
		}
		return fmt.Sprintf("%s %s", p.Result().Type, v)
	case "explain":
		p, err := w.env.Bool(src)
		if err != nil {
			return refusal(p, err)
		}
		return explained(p, w.scope)
	case "receivers":
		p, err := w.env.Members(src)
		if err != nil {
			return refusal(p, err)
		}
		found, reason := p.EvalMembers(nil, w.scope)
		return strings.TrimSpace(fmt.Sprintf("%v %s", found, reason))
	case "uses":
		p, err := w.env.Bool(src)
		if err != nil {
			return refusal(p, err)
		}
		u := p.Uses()
		return strings.TrimSuffix(fmt.Sprintf("cost=%d members=%v fields=%b memory=%b parent=%v prev=%v", p.Cost(), u.Members, u.Fields, u.Memory, u.Parent, u.Prev), " prev=false")
	}
	t.Fatalf("unknown command %q", d.Cmd)
	return ""
}

// explained is a line for each part, indented by its depth.
func explained(p *predicates.Expression, s *predicates.Scope) string {
	var b strings.Builder
	v := p.Eval(s)
	b.WriteString(strings.TrimSuffix(fmt.Sprintf("%v: %s", v.Truth, v.Reason), ": "))
	for _, part := range p.Explain(s) {
		value := part.Low.String()
		if part.Low != part.High {
			value += ".." + part.High.String()
		}
		fmt.Fprintf(&b, "\n    %s%s  is  %s", strings.Repeat("  ", part.Depth), part.Text, value)
		if part.Reason != "" {
			b.WriteString(", " + part.Reason)
		}
		if m := part.Split; m != nil {
			fmt.Fprintf(&b, "  true %v false %v unknown %v", m.True, m.False, m.Unknown)
		}
	}
	return b.String()
}

func want(t *testing.T, d *datadriven.TestData) scgs.Field {
	t.Helper()
	var s string
	d.MaybeScanArgs(t, "want", &s)
	if s == "" {
		return scgs.Field{}
	}
	return schema(t, "x: "+strings.ReplaceAll(s, "/", " "))[0]
}

func refusal(p *predicates.Expression, err error) string {
	if err == nil {
		return "accepted: " + p.Source()
	}
	return err.Error()
}

func (w *world) members(t *testing.T, rows []string) {
	t.Helper()
	w.scope = predicates.NewScope(w.env)
	if w.env.Prev {
		w.scope.KeepPrev()
	}
	w.who = nil
	for _, row := range rows {
		words := strings.Fields(row)
		w.who = append(w.who, predicates.Member{Name: words[0], Host: words[1]})
	}
	w.scope.Reset(w.who)
	w.scope.Next()
	for i, row := range rows {
		w.put(t, i, strings.Fields(row)[2:])
	}
}

func (w *world) put(t *testing.T, i int, words []string) {
	t.Helper()
	if len(words) == 1 && words[0] == "unknown" {
		w.scope.SetUnknown(i)
		return
	}
	w.scope.Set(i, values(t, w.env.State, words))
}

func (w *world) next(t *testing.T, rows []string) {
	t.Helper()
	w.scope.Next()
	for _, row := range rows {
		words := strings.Fields(row)
		i := slices.IndexFunc(w.who, func(m predicates.Member) bool { return m.Name == words[0] })
		w.put(t, i, words[1:])
	}
}

func (w *world) process(t *testing.T, d *datadriven.TestData) {
	t.Helper()
	var words []string
	var declared strings.Builder
	for _, line := range lines(d.Input) {
		field, val, _ := strings.Cut(line, " = ")
		name, _, _ := strings.Cut(field, ":")
		fmt.Fprintln(&declared, field)
		words = append(words, name+"="+val)
	}
	w.env.Process = schema(t, strings.TrimSpace(declared.String()))
	w.scope = predicates.NewScope(w.env)
	w.scope.SetProcess(values(t, w.env.Process, words))
}

func (w *world) set(t *testing.T, d *datadriven.TestData) {
	t.Helper()
	for _, line := range lines(d.Input) {
		words := strings.Fields(line)
		if words[0] != "memory" {
			w.scope.SetParent(words[0], values(t, w.parent(words[0]), words[1:]))
			continue
		}
		for i, v := range values(t, w.env.Memory, words[1:]) {
			w.scope.SetMemory(i, v)
		}
	}
}

func (w *world) parent(name string) scgs.Schema {
	for _, p := range w.env.Parent {
		if p.Name == name {
			return p.Fields
		}
	}
	return nil
}

func schema(t *testing.T, input string) scgs.Schema {
	t.Helper()
	var s scgs.Schema
	for _, line := range lines(input) {
		name, rest, _ := strings.Cut(line, ":")
		words := strings.Fields(rest)
		isList := words[0] == "list"
		if isList {
			words = words[1:]
		}
		typ, ok := scgs.ParseType(words[0])
		if !ok {
			t.Fatalf("no type in %q", line)
		}
		f := scgs.Field{Name: name, Type: typ}
		if typ == scgs.Enum {
			f.Words = words[1:]
		}
		if isList {
			f.Type = scgs.ListOf(typ)
		}
		s = append(s, f)
	}
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	return s
}

// values reads NAME=VALUE words into a row.
func values(t *testing.T, s scgs.Schema, words []string) []scgs.Value {
	t.Helper()
	row := make([]scgs.Value, len(s))
	for _, word := range words {
		name, val, _ := strings.Cut(word, "=")
		i := s.Index(name)
		if i < 0 {
			t.Fatalf("no field for %q", word)
		}
		row[i] = parseValue(t, s[i].Type, val)
	}
	if err := s.Accepts(row); err != nil {
		t.Fatal(err)
	}
	return row
}

// parseValue reads a value; a list is written [a|b].
func parseValue(t *testing.T, typ scgs.Type, val string) scgs.Value {
	t.Helper()
	if typ.IsList() {
		var list []scgs.Value
		if val = strings.Trim(val, "[]"); val != "" {
			for word := range strings.SplitSeq(val, "|") {
				list = append(list, parseValue(t, typ.Elem(), word))
			}
		}
		return scgs.ListValue(typ.Elem(), list...)
	}
	var v scgs.Value
	var err error
	switch typ {
	case scgs.Bool:
		v = scgs.BoolValue(val == "true")
	case scgs.Int:
		var n int64
		n, err = strconv.ParseInt(val, 10, 64)
		v = scgs.IntValue(n)
	case scgs.Float:
		var x float64
		x, err = strconv.ParseFloat(val, 64)
		v = scgs.FloatValue(x)
	case scgs.Duration:
		var d time.Duration
		d, err = time.ParseDuration(val)
		v = scgs.DurationValue(d)
	case scgs.String:
		v = scgs.StringValue(val)
	case scgs.Enum:
		v = scgs.EnumValue(val)
	case scgs.Invalid:
		t.Fatal("no type")
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func lines(input string) []string {
	if input == "" {
		return nil
	}
	return strings.Split(input, "\n")
}

func width(input string) int {
	n := 0
	for _, line := range lines(input) {
		n = max(n, len(line))
	}
	return n
}
