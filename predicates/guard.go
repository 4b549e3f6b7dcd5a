package predicates

import (
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser/lexer"
)

// The limits on the text of one predicate. What exceeds one is refused when the
// configuration is loaded.
const (
	MaxSource  = 4096           // bytes
	MaxNesting = 64             // brackets and unary operators around one operand
	MaxNodes   = 500            // nodes of the syntax tree
	MaxLoops   = 2              // loops over members inside one another
	MaxSteps   = 50000          // evaluation steps at the member limit
	MaxSetup   = 100 * MaxSteps // steps to build the incremental aggregates when an epoch begins, at the member limit
)

// guard refuses what must not reach a recursive parser: text that is long,
// badly encoded or deeply nested. The lexer it uses does not recurse.
func guard(src string) error {
	if len(src) > MaxSource {
		return errorAt("", 0, "split it into several predicates", "the text has %d bytes, at most %d are allowed", len(src), MaxSource)
	}
	if !utf8.ValidString(src) {
		return errorAt(strings.ToValidUTF8(src, "?"), 0, "save the file as UTF-8", "the text is not valid UTF-8")
	}
	tokens, err := lexer.Lex(file.NewSource(src))
	if err != nil {
		return syntaxError(src, err)
	}
	if len(tokens) <= 1 {
		return errorAt(src, 0, `write a condition, such as all(members, .online)`, "the text is empty")
	}
	if err := guardFunctions(src, tokens); err != nil {
		return err
	}
	return guardNesting(src, tokens)
}

// guardFunctions refuses every function that is not listed, before the parser
// reads its arguments by rules of its own.
func guardFunctions(src string, tokens []lexer.Token) error {
	for i, t := range tokens[:len(tokens)-1] {
		_, listed := functions[t.Value]
		property := i > 0 && tokens[i-1].Is(lexer.Operator, ".", "?.")
		if listed || property || t.Kind != lexer.Identifier || !tokens[i+1].Is(lexer.Bracket, "(") {
			continue
		}
		hint := "the functions are " + strings.Join(Functions(), ", ")
		if _, ok := builtin.Index[t.Value]; ok {
			return errorAt(src, t.From, hint, "the function %q of expr is not part of the predicate language", t.Value)
		}
		return errorAt(src, t.From, didYouMean(t.Value, Functions())+hint, "unknown function %q", t.Value)
	}
	return nil
}

// guardNesting counts the brackets open around each token and the unary
// operators that wait for their operand; open holds those of the brackets.
func guardNesting(src string, tokens []lexer.Token) error {
	unary, depth := 0, 0
	var open []int
	for _, t := range tokens {
		switch {
		case t.Is(lexer.Bracket, "(", "[", "{"):
			open = append(open, unary)
			depth += 1 + unary
			unary = 0
		case t.Kind == lexer.Bracket:
			if last := len(open) - 1; last >= 0 {
				depth -= 1 + open[last]
				open = open[:last]
			}
			unary = 0
		case t.Is(lexer.Operator, "!", "-", "+", "not"):
			unary++
		default:
			unary = 0
		}
		if depth+unary > MaxNesting {
			return errorAt(src, t.From, "name the inner parts with let, or split the predicate",
				"brackets and unary operators are nested deeper than %d", MaxNesting)
		}
	}
	return nil
}
