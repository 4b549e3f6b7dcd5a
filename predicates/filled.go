package predicates

import (
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser/lexer"
)

// workName is what stands before the name of a filled field.
const workName = "work"

// filled begins the name of such a field in a schema.
const filled = workName + "."

// fuser makes .work.NAME one field in the tree, so that it costs and means what any other field does.
type fuser struct{}

// Visit implements ast.Visitor.
func (*fuser) Visit(n *node) {
	outer, ok := (*n).(*ast.MemberNode)
	if !ok {
		return
	}
	name, ok := outer.Property.(*ast.StringNode)
	inner, is := outer.Node.(*ast.MemberNode)
	if !ok || !is {
		return
	}
	work, ok := inner.Property.(*ast.StringNode)
	if !ok || work.Value != workName {
		return
	}
	if root, ok := inner.Node.(*ast.IdentifierNode); ok && (root.Value == "memory" || root.Value == "params" || root.Value == "from_parent") {
		return // A name of the user's.
	}
	outer.Node = inner.Node
	outer.Property = placeLike(&ast.StringNode{Value: filled + name.Value}, name)
}

// notFilled refuses .work alone, and .work.NAME with a name that there is not.
func (c *compiler) notFilled(name *ast.StringNode, before string) error {
	short, is := strings.CutPrefix(name.Value, filled)
	switch {
	case len(c.env.Filled) == 0:
		return nil
	case name.Value == workName:
		return c.errorf(name, "write one of "+c.filledNames(before), "%swork alone is no field", before)
	case !is:
		return nil
	case slices.Contains(c.env.Filled, short): // Of a process: the section above has what its own texts read.
		return c.errorf(name, "let an expression of the synchronizer that has the section read it as well", "the section work does not fill %swork.%s, since no expression of it reads the field", before, short)
	}
	return c.errorf(name, didYouMean(short, c.env.Filled)+"the section work fills "+c.filledNames(before), "unknown field %swork.%s", before, short)
}

func (c *compiler) filledNames(before string) string {
	names := make([]string, len(c.env.Filled))
	for i, name := range c.env.Filled {
		names[i] = before + filled + name
	}
	return strings.Join(names, ", ")
}

// textOf is a part of a condition as text, with filled fields as they are written.
func textOf(n node) string {
	parts := strings.Split(n.String(), `["`+filled) // Quotes in a string are escaped.
	for i := 1; i < len(parts); i++ {
		parts[i-1] = strings.TrimSuffix(parts[i-1], "#")
		parts[i] = strings.Replace(parts[i], `"]`, "", 1)
	}
	return strings.Join(parts, "."+filled)
}

// ReadsFilled appends to names the NAMEs that follow .work. in a text, which need not compile.
func ReadsFilled(names []string, src string) []string {
	tokens, err := lexer.Lex(file.NewSource(src))
	if err != nil {
		return names
	}
	tokens = slices.DeleteFunc(tokens, func(t lexer.Token) bool { return t.Is(lexer.Bracket, "]") })
	dot := func(t lexer.Token) bool { return t.Is(lexer.Operator, ".") || t.Is(lexer.Bracket, "[") }
	name := func(t lexer.Token) bool { return t.Kind == lexer.Identifier || t.Kind == lexer.String }
	for i := 3; i < len(tokens); i++ {
		if name(tokens[i]) && dot(tokens[i-1]) && name(tokens[i-2]) && tokens[i-2].Value == workName && dot(tokens[i-3]) {
			names = append(names, tokens[i].Value)
		}
	}
	return names
}
