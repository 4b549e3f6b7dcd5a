package predicates

import (
	"errors"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser/lexer"
)

// notIn is what to write where not stands before the left side of in.
const notIn = "write x not in [...], or (not x) in [...] if that is meant"

// Misread finds what a text that compiles says and people read otherwise: not x in [...],
// which is (not x) in [...]. It returns nil if there is nothing of the kind.
func Misread(src string) *Error {
	w := misreadings{src: src}
	tree, err := parseTree(src)
	if err != nil { // It may be about one member.
		w.src = memberBefore + src + memberAfter
		tree, err = parseTree(w.src)
	}
	if err != nil {
		return nil //nolint:nilerr // Compile tells of a text that does not compile.
	}
	if ast.Walk(&tree, &w); w.found != nil && w.src != src {
		_ = inMember(src, w.found) // It moves the place into the text.
	}
	return w.found
}

type misreadings struct {
	src   string
	found *Error
}

// Visit implements ast.Visitor.
func (w *misreadings) Visit(n *node) {
	in, ok := (*n).(*ast.BinaryNode)
	if !ok || in.Operator != "in" || w.found != nil {
		return
	}
	if not, ok := negation(in.Left); ok && !w.closed(offsetOf(not), offsetOf(in)) {
		w.found = errorAt(w.src, offsetOf(not), notIn, "%s applies to the left side of in alone: %[1]s x in [...] is read as (%[1]s x) in [...]", not.Operator)
	}
}

// closed is whether a bracket closes between two places that was opened before the first.
func (w *misreadings) closed(from, to int) bool {
	tokens, _ := lexer.Lex(file.NewSource(w.src)) // It was parsed.
	depth := 0
	for _, t := range tokens {
		switch {
		case t.Kind != lexer.Bracket || t.From < from || t.From > to:
		case t.Is(lexer.Bracket, "(", "[", "{"):
			depth++
		default:
			depth--
		}
		if depth < 0 {
			return true
		}
	}
	return false
}

// negation is a part of the tree that is not x, or !x.
func negation(n node) (not *ast.UnaryNode, ok bool) {
	not, ok = n.(*ast.UnaryNode)
	return not, ok && (not.Operator == "not" || not.Operator == "!")
}

// hintMisplacedNot gives the refusal of a left side the hint that not belongs before the whole
// comparison, if that is why it is refused.
func (c *compiler) hintMisplacedNot(n *ast.BinaryNode, refused error) error {
	not, ok := negation(n.Left)
	if !ok {
		return refused
	}
	v, err := c.compileNode(not.Node)
	fault, is := errors.AsType[*Error](refused)
	if err != nil || v.bool != nil || !is {
		return refused
	}
	switch n.Operator {
	case "in":
		fault.Hint = "write x not in [...]: " + not.Operator + " applies to the left side alone"
	case "==", "!=", "<", "<=", ">", ">=":
		fault.Hint = "write not (x " + n.Operator + " y): " + not.Operator + " applies to the left side alone"
	}
	return fault
}
