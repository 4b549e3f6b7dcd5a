package predicates

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/parser/lexer"
	"github.com/expr-lang/expr/parser/utils"
)

type node = ast.Node

// parseTree guards the text and turns it into expr's syntax tree.
func parseTree(src string) (root node, err error) {
	if err := guardText(src); err != nil {
		return nil, err
	}
	defer func() {
		if r := recover(); r != nil { // the parser is not ours, and the text is from outside
			root, err = nil, errorAt(src, 0, "write it in a simpler way", "the parser failed: %v", r)
		}
	}()
	text, leasts := leastInts(src)
	config := &conf.Config{MaxNodes: MaxNodes} // the parser reads nothing else that conf.New would fill in
	config.WithEnv(map[string]any{})
	tree, err := parser.ParseWithConfig(text, config)
	if err == nil && len(leasts) > 0 {
		if ast.Walk(&tree.Node, leasts); len(leasts) > 0 { // Some are no operand of a minus: the parser tells which.
			_, err = parser.ParseWithConfig(leasts.restored(text, src), config)
		}
	}
	if err != nil {
		return nil, syntaxError(src, err)
	}
	return tree.Node, nil
}

// leastInts gives the text to parse where 2^63 stands in one. The parser refuses that number,
// which is too large for an int, also behind a minus that makes it the least int. So a 1
// stands in its place until the tree is there. It lists the places.
func leastInts(src string) (text string, places leasts) {
	if !twoTo63.MatchString(src) {
		return src, nil
	}
	tokens, err := lexer.Lex(file.NewSource(src))
	if err != nil {
		return src, nil // The parser tells of it.
	}
	places, runes := leasts{}, []rune(src)
	for _, t := range tokens {
		n, err := strconv.ParseUint(strings.ReplaceAll(t.Value, "_", ""), 0, 64)
		if !t.Is(lexer.Number) || err != nil || n != 1<<63 {
			continue
		}
		places[t.From] = t.To
		copy(runes[t.From:t.To], []rune("1"+strings.Repeat(" ", t.To-t.From-1)))
	}
	return string(runes), places
}

// twoTo63 is what all ways to write 2^63 have in common with few other texts.
var twoTo63 = regexp.MustCompile(`[0-9][0-9_]{18}|0[xXbBoO]`)

// leasts are the places of 2^63 in a text, from and to.
type leasts map[int]int

// restored puts the numbers back into the text that was parsed.
func (l leasts) restored(text, src string) string {
	runes, was := []rune(text), []rune(src)
	for from, to := range l {
		copy(runes[from:to], was[from:to])
	}
	return string(runes)
}

// Visit implements ast.Visitor: it makes the least int of a minus and 2^63.
func (l leasts) Visit(n *node) {
	minus, ok := (*n).(*ast.UnaryNode)
	if !ok || minus.Operator != "-" {
		return
	}
	if one, ok := minus.Node.(*ast.IntegerNode); ok && l[offsetOf(one)] > 0 {
		delete(l, offsetOf(one))
		*n = placeLike(&ast.IntegerNode{Value: math.MinInt}, minus)
	}
}

// syntaxError carries an error of expr's lexer or parser over.
func syntaxError(src string, err error) *Error {
	if capital := capitalWord(src); capital != nil {
		return capital
	}
	var fault *file.Error
	if !errors.As(err, &fault) {
		return errorAt(src, 0, "", "%v", err)
	}
	message, hint := fault.Message, ""
	token := unexpected.FindStringSubmatch(message)
	switch {
	case strings.Contains(message, "maximum allowed nodes"):
		message = fmt.Sprintf("the text has more than %d parts", MaxNodes)
		hint = "split it into several predicates"
	case message == "unexpected token EOF":
		message, hint = "the text ends too early", "an operand or a closing bracket is missing"
	case strings.Contains(message, "value out of range") || strings.HasSuffix(message, "too large"):
		message, hint = "the number before this is too large", "an int has 64 bits, a float at most 1.8e308"
	case strings.HasPrefix(message, badNumber):
		text, _ := strconv.Unquote(message[len(badNumber):])
		at := max(0, fault.From-utf8.RuneCountInString(text)+1) // The lexer tells where it ends,
		text += wordBehind(src, fault.From+1)                   // after the first letter.
		if _, err := time.ParseDuration(text); err == nil {
			hint = fmt.Sprintf("a duration is written duration(%q)", text)
		} else {
			hint = "a number has digits, a point and an exponent: 10, 0.5, 1e6"
		}
		return errorAt(src, at, hint, "%q is not a number", text)
	case token != nil:
		message, hint = "unexpected "+token[1], unexpectedHints[token[1]]
	}
	return errorAt(src, fault.From, hint, "%s", message)
}

// capitalWord finds AND, OR or NOT in a text that does not parse, nil if there is none.
func capitalWord(src string) *Error {
	tokens, _ := lexer.Lex(file.NewSource(src)) // What is before a fault is told.
	for i, t := range tokens {
		if t.Kind == lexer.Identifier && (i == 0 || !tokens[i-1].Is(lexer.Operator, ".", "?.", "#")) {
			if err := capitalOf(src, t.Value, t.From); err != nil {
				return err
			}
		}
	}
	return nil
}

// capitalOf refuses an operator that is written in capitals.
func capitalOf(src, word string, at int) *Error {
	lower := strings.ToLower(word)
	sign := map[string]string{"and": "&&", "or": "||", "not": "!"}[lower]
	if sign == "" || lower == word {
		return nil
	}
	return errorAt(src, at, fmt.Sprintf("write %s, or %s", lower, sign), "%s is no operator: the words of the language are in small letters", word)
}

// wordBehind is what follows in the source without a space, up to a bracket or an operator.
func wordBehind(src string, from int) string {
	rest := []rune(src)
	rest = rest[min(from, len(rest)):]
	end := slices.IndexFunc(rest, func(r rune) bool { return r != '.' && !utils.IsAlphaNumeric(r) })
	if end < 0 {
		end = len(rest)
	}
	return string(rest[:end])
}

// badNumber begins the lexer's message.
const badNumber = "bad number syntax: "

// unexpected finds the token in the parser's message.
var unexpected = regexp.MustCompile(`^unexpected token \w+\((".*")\)$`)

var unexpectedHints = map[string]string{
	`"="`: "compare with ==",
	`"."`: "a field stands in the condition of a function over members, as in any(members, .x > 2); mean, min and max take map(members, .x)",
	`"&"`: "write && or and",
	`"|"`: "write || or or",
	`"{"`: "nothing is filled in from the environment: a value that changes stands in memory, or in a field of the members",
	`","`: "one expression gives one value; commas stand between arguments",
}
