package predicates

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/file"

	"github.com/gopegasus/pegasus/scgs"
)

// Param is a parameter: params.NAME stands for its value, which is as one written out.
type Param struct {
	Field scgs.Field // its name and type; no list
	Value scgs.Value // of that type
}

// definition is a name that stands for an expression.
type definition struct {
	text   string
	env    *Env // with the names before it
	member bool // it is about one member, and stands in a function over members
}

// parse makes the tree of a name's expression.
func (d *definition) parse() (node, error) {
	if !d.member {
		tree, _, err := d.env.parseText(d.text)
		return tree, err
	}
	tree, _, err := d.env.parseText(memberBefore + d.text + memberAfter)
	if err != nil {
		return nil, err
	}
	part := tree.(*ast.BuiltinNode).Arguments[1]
	if p, ok := part.(*ast.PredicateNode); ok {
		part = p.Node
	}
	return part, nil
}

// Let returns an Env in which a name stands for an expression. It is an expression of a global
// state, such as sum(members, .spent), or of a single member, such as .load > 2, which then
// stands in a function over members. The text may use names that were given before. The
// expressions that the result compiles are evaluated on Scopes of the original Env. The error
// is an *[Error] with a place in the text; a fault of the name has no place.
func (e *Env) Let(name, text string) (*Env, error) {
	if err := e.checkLet(name); err != nil {
		return nil, err
	}
	d := definition{text: text, env: e}
	_, err := e.compileText(text, func(c *compiler, root node) (*Expression, error) {
		v, err := c.compileNode(root)
		return &Expression{root: v}, err
	})
	if err != nil {
		about, inner := e.letMember(text)
		if !about {
			return nil, err
		}
		if inner != nil {
			return nil, inner
		}
		d.member = true
	}
	return e.with(name, d), nil
}

// with is the Env with one more name.
func (e *Env) with(name string, d definition) *Env {
	more := *e
	more.base, more.lets = e.scopeEnv(), make(map[string]definition, len(e.lets)+1)
	maps.Copy(more.lets, e.lets)
	more.lets[name] = d
	return &more
}

// scopeEnv is the Env whose Scopes expressions are evaluated on.
func (e *Env) scopeEnv() *Env {
	if e.base != nil {
		return e.base
	}
	return e
}

// The names that [Env.Group] and [Env.One] give.
const groupName, memberName = "group", "member"

// Group is the Env in which the members are those whose field has a value, a word of an
// enum or a truth value, and the name group stands for that value.
func (e *Env) Group(field, value string) *Env {
	literal := strconv.Quote(value)
	if e.State[e.State.Index(field)].Type == scgs.Bool {
		literal = value
	}
	of := func(group string) definition {
		return definition{text: fmt.Sprintf("filter(%s, .%s == %s)", group, field, literal), env: e}
	}
	in := e.with(groupName, definition{text: literal, env: e}).with("members", of("members"))
	if e.Prev {
		in = in.with("prev", of("prev"))
	}
	return in
}

// One is the Env in which the name member stands for the member whose state a Scope has.
func (e *Env) One() *Env {
	return e.with(memberName, definition{text: "find(members, .online)", env: e})
}

// Each compiles a condition on a single member, such as .load > 2. local is judged on a [Scope]
// that has this one member; any is true if the condition holds for some member. The condition
// may read only the fields of the declared state, .name and .host. The error is an *[Error].
func (e *Env) Each(src string) (anyOf, local *Expression, err error) {
	if err := guardText(src); err != nil {
		return nil, nil, err
	}
	anyOf, err = e.Bool(anyBefore + src + memberAfter)
	if err != nil {
		return nil, nil, inMember(src, err)
	}
	call, ok := anyOf.tree.(*ast.BuiltinNode)
	if !ok || call.Name != "any" {
		return nil, nil, errorAt(src, 0, "write a condition on its fields, such as .load > 2", "the text is no condition on one member")
	}
	if local, err = anyOf.compileLocal(call); err != nil {
		return nil, nil, inMember(src, err)
	}
	anyOf.own, local.own = src, src
	return anyOf, local, nil
}

// anyBefore is as long as memberBefore.
const anyBefore = "any(members, "

// maxLets is how many names may be given in one Env.
const maxLets = 64

// checkLet refuses a name that means something already, or is none.
func (e *Env) checkLet(name string) error {
	_, isFunction := builtin.Index[name]
	_, known := e.lets[name]
	switch {
	case !isName(name):
		return errorAt("", 0, "a name has letters, digits and _, and begins with no digit", "%q is no name", name)
	case isFunction, known, name == groupName, name == memberName, slices.Contains(roots, name), slices.Contains(words, name), functions[name].compile != nil:
		return errorAt("", 0, "choose another name", "the name %q has a meaning already", name)
	case len(e.lets) == maxLets:
		return errorAt("", 0, "write some of them out", "more than %d names", maxLets)
	}
	return nil
}

// words are the words of the language.
var words = []string{"and", "or", "not", "in", "let", "if", "else", "true", "false", "nil", "matches", "contains", "startsWith", "endsWith"}

// isName is whether a text is read as one name.
func isName(s string) bool {
	if s == "" || len(s) > scgs.MaxNameBytes {
		return false
	}
	for i, r := range []byte(s) {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return true
}

// letMember compiles a text as one about a member. It is not about one if it does not
// parse in a function over members either.
func (e *Env) letMember(text string) (about bool, err error) {
	wrapped := memberBefore + text + memberAfter
	tree, _, err := e.parseText(wrapped)
	if err != nil {
		tree = nil
	}
	call, ok := tree.(*ast.BuiltinNode)
	if !ok || call.Name != "map" || len(call.Arguments) != 2 || !pointed(call.Arguments[1]) {
		return false, nil
	}
	c := &compiler{env: e, src: wrapped, factor: 1}
	g, err := c.compileGroup(call)
	if err == nil {
		_, _, err = c.compileBody(call, g)
	}
	return true, inMember(text, err)
}

// pointed is whether an expression reads the member of the function that it stands in.
func pointed(n node) bool {
	var w pointers
	ast.Walk(&n, &w)
	return w.found
}

type pointers struct{ found bool }

// Visit implements ast.Visitor.
func (w *pointers) Visit(n *node) {
	_, is := (*n).(*ast.PointerNode)
	w.found = w.found || is
}

// inMember makes an error in the text of [memberBefore] and [memberAfter] one in the text
// between them.
func inMember(text string, err error) error {
	fault, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	fault.Source = text
	if fault.Line == 1 {
		fault.Column = max(1, fault.Column-len(memberBefore))
	}
	if line, column := positionOf(text, utf8.RuneCountInString(text)); fault.Line == line {
		fault.Column = min(fault.Column, column)
	}
	return fault
}

// parseText parses a text and puts in what its names stand for.
func (e *Env) parseText(src string) (root node, named bool, err error) {
	tree, err := parseTree(src)
	if err == nil && len(e.Filled) > 0 {
		ast.Walk(&tree, &fuser{})
	}
	if err != nil || len(e.lets) == 0 {
		return tree, false, err
	}
	x := expander{env: e, src: src}
	ast.Walk(&tree, &x)
	if x.err == nil {
		count := counter{}
		if ast.Walk(&tree, &count); count.nodes > MaxNodes {
			x.err = errorAt(src, 0, "write it in a simpler way, or split it", "the text, with the expressions of its names, has more than %d parts", MaxNodes)
		}
	}
	return tree, x.parts > 0, x.err
}

// expander replaces names by what they stand for, which is parsed for each use: the
// compiler asks every part for its place. The parts get the place of the name.
type expander struct {
	env   *Env
	src   string
	parts int
	err   error
}

// Visit implements ast.Visitor.
func (x *expander) Visit(n *node) {
	name, ok := (*n).(*ast.IdentifierNode)
	if !ok || x.err != nil {
		return
	}
	d, known := x.env.lets[name.Value]
	if !known {
		return
	}
	part, err := d.parse()
	if err != nil { // It was parsed before: only its size, with others, can be too much.
		x.err = errorAt(x.src, offsetOf(name), "write it in a simpler way, or split it", "the expression of %s is too long here", name.Value)
		return
	}
	place := placer{at: name.Location()}
	ast.Walk(&part, &place)
	if x.parts += place.nodes; x.parts > MaxNodes {
		x.err = errorAt(x.src, offsetOf(name), "write it in a simpler way, or split it", "the text, with the expressions of its names, has more than %d parts", MaxNodes)
		return
	}
	*n = part
}

// placer gives all parts one place, and counts them.
type placer struct {
	at    file.Location
	nodes int
}

// Visit implements ast.Visitor.
func (p *placer) Visit(n *node) {
	(*n).SetLocation(p.at)
	p.nodes++
}

type counter struct{ nodes int }

// Visit implements ast.Visitor.
func (c *counter) Visit(*node) { c.nodes++ }
