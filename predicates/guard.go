package predicates

import (
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser/lexer"
)

// The limits on the text of a predicate. A text above a limit is refused when the configuration
// is loaded.
const (
	MaxSource  = 4096           // bytes
	MaxNesting = 64             // brackets and unary operators around one operand
	MaxNodes   = 500            // nodes of the syntax tree
	MaxLoops   = 2              // loops over members inside one another
	MaxSteps   = 50000          // evaluation steps at the member limit
	MaxSetup   = 100 * MaxSteps // steps to build the incremental aggregates when an epoch begins, at the member limit
)

// guardText refuses what must not reach a recursive parser: text that is long,
// badly encoded or deeply nested. The lexer it uses does not recurse.
func guardText(src string) error {
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
		hint := elsewhere[strings.ToLower(t.Value)]
		if hint == "" {
			hint = didYouMean(t.Value, Functions()) + "the functions are " + strings.Join(Functions(), ", ")
		}
		if err := capitalOf(src, t.Value, t.From); err != nil {
			return err
		}
		if _, ok := builtin.Index[t.Value]; ok {
			return errorAt(src, t.From, hint, "the function %q of expr is not part of the predicate language", t.Value)
		}
		return errorAt(src, t.From, hint, "unknown function %q", t.Value)
	}
	return nil
}

// Words that people of other rule languages are likely to write, in lower case, and the words
// to write here instead.
const (
	noRate  = "an expression is about one global state: have the program put the rate into its state, or compare .x with .prev.x"
	noClock = "an expression has no clock: for, cooldown and silence measure time, beside when"
	noSome  = "any(members, CONDITION) asks whether there is one, filter(members, CONDITION) gives the members for which it is true"
	noGroup = `a condition tells a group: count(members, .zone == "a")`
)

var elsewhere = map[string]string{
	"avg": "write mean(map(members, .x))", "average": "write mean(map(members, .x))",
	"rate": noRate, "increase": noRate, "delta": noRate, "changes": noRate, "avg_over": noRate, "max_over": noRate, "avg_over_time": noRate, "max_over_time": noRate,
	"now": noClock, "time": noClock, "date": noClock, "hour": noClock, "minute": noClock, "weekday": noClock, "since": noClock,
	"held": noClock, "holds": noClock,
	"groupby": noGroup, "group": noGroup,
	"size":   "write len(filter(members, CONDITION)) or count(members, CONDITION)",
	"exists": noSome, "some": noSome,
	"every": "write all(members, CONDITION)", "forall": "write all(members, CONDITION)",
}

// guardNesting counts the brackets open around each token and the unary operators that wait for
// their operand; open holds the counts of the brackets.
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
