package predicates

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gopegasus/pegasus/internal/nearest"
)

// Error is a fault in the text of a predicate, found before it is used.
type Error struct {
	Line, Column int    // from 1; the column counts runes
	Message      string // the fault, in one line
	Hint         string // what to do about it; may be empty
	Source       string // the whole text, for the line under the message
}

// Error gives the message with its position, the line of the text with a caret
// under the fault, and the hint.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d:%d: %s", e.Line, e.Column, e.Message)
	if line, column := excerpt(e.Source, e.Line, e.Column); line != "" {
		fmt.Fprintf(&b, "\n  %s\n  %s^", line, strings.Repeat(" ", column-1))
	}
	if e.Hint != "" {
		b.WriteString("\n  " + strings.TrimSpace(e.Hint))
	}
	return b.String()
}

// errorAt makes an Error from a position in runes from 0, as expr counts them.
func errorAt(src string, offset int, hint, format string, args ...any) *Error {
	e := &Error{Line: 1, Column: 1, Message: fmt.Sprintf(format, args...), Hint: hint, Source: src}
	e.Line, e.Column = positionOf(src, offset)
	return e
}

func positionOf(src string, offset int) (line, column int) {
	line, column = 1, 1
	for i, r := range []rune(src) {
		if i == offset {
			break
		}
		column++
		if r == '\n' {
			line, column = line+1, 1
		}
	}
	return line, column
}

// excerptRunes bounds the piece of a long line that an Error shows.
const excerptRunes = 100

// excerpt returns the line of src, shortened around the column if it is long, and the column in
// the result. A tab becomes one space, so the caret stands right.
func excerpt(src string, line, column int) (string, int) {
	lines := strings.Split(src, "\n")
	if line > len(lines) {
		return "", 0
	}
	runes := []rune(strings.TrimRight(strings.ReplaceAll(lines[line-1], "\t", " "), "\r"))
	if from := column - excerptRunes/2; len(runes) > excerptRunes && from > 0 {
		runes, column = runes[min(from, len(runes)):], column-from
	}
	if len(runes) > excerptRunes {
		runes = runes[:excerptRunes]
	}
	return string(runes), column
}

// didYouMean starts a hint with the declared name nearest to a wrong one, if
// one is near.
func didYouMean(name string, declared []string) string {
	near := nearest.Name(name, declared)
	if near == "" {
		return ""
	}
	return "did you mean " + strconv.Quote(near) + "? "
}
