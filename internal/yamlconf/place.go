package yamlconf

import (
	"strings"

	"github.com/goccy/go-yaml/token"
)

// placeOf returns where a scalar's token starts. The parser's own columns drift
// behind blanks at the end of a line, and its lines in texts of several lines,
// so a place where the scalar does not stand is moved to the nearest one where
// it does: in its line, else in the lines before, else after.
func (d *Doc) placeOf(tk *token.Token) Pos {
	at := tokenPos(tk)
	start := opening(tk)
	if start == "" || at.Line > len(d.lines) {
		return at
	}
	line := d.lines[at.Line-1]
	if strings.HasPrefix(line[Offset(line, 1, at.Column):], start) {
		return at
	}
	if column, ok := closest(line, start, at.Column); ok {
		return Pos{at.Line, column}
	}
	reach := strings.Count(tk.Origin, "\n") + strings.Count(tk.Value, "\n") + 1
	for i := 1; i <= reach; i++ {
		for _, number := range []int{at.Line - i, at.Line + i} {
			if number < 1 || number > len(d.lines) {
				continue
			}
			if column, ok := closest(d.lines[number-1], start, 1); ok {
				return Pos{number, column}
			}
		}
	}
	return at
}

// opening returns what the source of a scalar starts with: its quote, or its
// first word.
func opening(tk *token.Token) string {
	switch tk.Type {
	case token.SingleQuoteType:
		return "'"
	case token.DoubleQuoteType:
		return `"`
	default:
		text := strings.TrimLeft(tk.Value, " \n")
		if i := strings.IndexAny(text, " \n"); i >= 0 {
			text = text[:i]
		}
		return text
	}
}

// closest returns the column next to the given one where a line holds a text.
func closest(line, text string, column int) (int, bool) {
	best, found := 0, false
	for from := 0; ; {
		i := strings.Index(line[from:], text)
		if i < 0 {
			return best, found
		}
		from += i
		at := len([]rune(line[:from])) + 1
		if found && max(at-column, column-at) >= max(best-column, column-best) {
			return best, found
		}
		best, found = at, true
		from += len(text)
	}
}
