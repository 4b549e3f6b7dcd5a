package yamlconf

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Offset returns the byte offset of a line and a column, both counted from 1
// and the column in characters, as compilers of embedded text report them.
// Past the end of a line or of the text it is that end.
func Offset(text string, line, column int) int {
	start := 0
	for ; line > 1; line-- {
		i := strings.IndexByte(text[start:], '\n')
		if i < 0 {
			return len(text)
		}
		start += i + 1
	}
	for ; column > 1 && start < len(text) && text[start] != '\n'; column-- {
		_, n := utf8.DecodeRuneInString(text[start:])
		start += n
	}
	return start
}

// cursor walks over the source of one scalar.
type cursor struct {
	lines  []string
	line   int // Index into lines.
	at     int // Byte index into the line.
	indent int // Bytes that a block scalar strips from each line.
	style  style
}

func (c *cursor) pos() Pos {
	return Pos{c.line + 1, utf8.RuneCountInString(c.lines[c.line][:c.at]) + 1}
}

// unit returns the next character of the value and the bytes it takes in the
// source; a line break, escaped or not, is '\n' and takes none.
func (c *cursor) unit() (r rune, size int) {
	rest := c.lines[c.line][c.at:]
	switch {
	case rest == "", c.style == styleDouble && rest == `\`:
		return '\n', 0
	case c.style == styleSingle && strings.HasPrefix(rest, "''"):
		return '\'', 2
	case c.style == styleDouble && rest[0] == '\\':
		return unescape(rest)
	default:
		return utf8.DecodeRuneInString(rest)
	}
}

// next steps over a unit; after a line break it skips the indentation.
func (c *cursor) next(size int) bool {
	if size > 0 {
		c.at += size
		return true
	}
	if c.line+1 >= len(c.lines) {
		return false
	}
	c.line++
	line := c.lines[c.line]
	c.at = len(line) - len(strings.TrimLeft(line, " "))
	if c.style == styleBlock {
		c.at = min(c.at, c.indent)
	}
	return true
}

// locateOffset maps an offset in a scalar's text to its place. It reads the source
// again beside the text: characters must agree, blanks may be folded. If they
// do not agree the start of the scalar is the answer.
func (d *Doc) locateOffset(n *node, offset int) Pos {
	if n.kind >= KindList || n.text == "" {
		return n.pos
	}
	c, ok := d.cursor(n)
	if !ok {
		return n.pos
	}
	after := n.pos
	for i, r := range n.text {
		if !c.align(r) {
			return n.pos
		}
		if i >= offset {
			return c.pos()
		}
		at := *c
		u, size := c.unit()
		if !blank(r) || u == r {
			if !c.next(size) {
				return at.pos()
			}
		} else if blank(u) && !c.next(size) {
			return at.pos()
		}
		at.at += size
		after = at.pos()
	}
	return after
}

// align moves over blanks that the value does not have, up to the character r.
func (c *cursor) align(r rune) bool {
	for {
		u, size := c.unit()
		if u == r && (size > 0 || r == '\n') || blank(r) {
			return true
		}
		escaped := c.style == styleDouble && size > 1
		if escaped || !blank(u) || !c.next(size) {
			return false
		}
	}
}

func blank(r rune) bool { return r == ' ' || r == '\n' }

// cursor returns one at the first character of the value.
func (d *Doc) cursor(n *node) (*cursor, bool) {
	c := &cursor{lines: d.lines, line: n.pos.Line - 1, style: n.style}
	if c.line >= len(c.lines) {
		return nil, false
	}
	c.at = Offset(c.lines[c.line], 1, n.pos.Column)
	switch n.style {
	case styleSingle, styleDouble:
		c.at++
		return c, c.at <= len(c.lines[c.line])
	case stylePlain:
		return c, true
	case styleBlock:
		c.enterBlock(n.text)
		return c, c.next(0)
	default:
		panic(fmt.Sprintf("yamlconf: scalar style %d", n.style))
	}
}

// enterBlock puts the cursor at the end of the header of a block scalar.
func (c *cursor) enterBlock(text string) {
	// The indentation is that of the first line with text; an explicit
	// indicator differs only where that line starts with blanks.
	first := strings.TrimLeft(text, "\n")
	lead := len(text) - len(first)
	spaces := len(first) - len(strings.TrimLeft(first, " "))
	for _, line := range c.lines[min(c.line+1+lead, len(c.lines)):] {
		if trimmed := strings.TrimLeft(line, " "); trimmed != "" {
			c.indent = max(len(line)-len(trimmed)-spaces, 0)
			break
		}
	}
	c.at = len(c.lines[c.line])
}

// unescape decodes the escape that a part of a double-quoted text starts with.
func unescape(s string) (r rune, size int) {
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[1]]
	if digits == 0 || len(s) < 2+digits {
		if i := strings.IndexByte(`0abtnvfre "/\N_LP`, s[1]); i >= 0 {
			return []rune("\x00\a\b\t\n\v\f\r\x1b \"/\\\u0085\u00a0\u2028\u2029")[i], 2
		}
		return utf8.RuneError, 2
	}
	for _, h := range s[2 : 2+digits] {
		r = r<<4 | rune(strings.IndexRune("0123456789abcdef", h|0x20))
	}
	return r, 2 + digits
}
