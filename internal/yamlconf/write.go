package yamlconf

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	flowWidth   = 72   // A map or a list up to this width stands on one line.
	foldedWidth = 96   // Longer texts are folded.
	quotedWidth = 1000 // Longer texts in quotes are broken.
)

// Write gives a map as a document that Decode reads as the same. Its values are
// Node, Map[any], []any, string, bool, int, float64, time.Duration and Literal.
// Comments and the styles of a Node are not kept.
func Write(m Map[any]) []byte {
	if len(m) == 0 {
		return []byte("{}\n")
	}
	var b bytes.Buffer
	writeBlock(&b, m, "")
	return b.Bytes()
}

// writeBlock writes a map or a list that is not empty on lines of its own, the
// first of them behind lead, which is as wide as their indentation.
func writeBlock(b *bytes.Buffer, v any, lead string) {
	pad := strings.Repeat(" ", len(lead))
	switch v := v.(type) {
	case Map[any]:
		for _, e := range v {
			b.WriteString(lead + writeKey(e.Key) + ":")
			lead = pad
			value := plainValue(e.Value)
			if text, ok := behind(value, len(pad)); ok {
				b.WriteString(text)
				continue
			}
			b.WriteString("\n")
			if _, ok := value.([]any); ok {
				writeBlock(b, value, pad)
			} else {
				writeBlock(b, value, pad+"  ")
			}
		}
	case []any:
		for _, item := range v {
			item = plainValue(item)
			if text, ok := behind(item, len(pad)); ok {
				b.WriteString(lead + "-" + text)
			} else {
				writeBlock(b, item, lead+"- ")
			}
			lead = pad
		}
	}
}

// behind gives what stands behind a colon or a dash at an indentation, unless it
// is a map or a list that needs lines of its own.
func behind(v any, indent int) (string, bool) {
	if text, ok := flow(v); ok && len(text) <= flowWidth {
		return " " + text + "\n", true
	}
	switch v.(type) {
	case Map[any], []any:
		return "", false
	}
	return scalar(v, indent), true
}

// plainValue takes the content of a Node.
func plainValue(v any) any {
	n, ok := v.(Node)
	if !ok {
		return v
	}
	switch n.Kind() { //nolint:exhaustive // The others are scalars.
	case KindMap:
		m := make(Map[any], 0, len(n.n.items))
		for _, item := range n.Items() {
			key, _ := item.Key()
			m = append(m, Entry[any]{Key: key, Value: item})
		}
		return m
	case KindList:
		list := make([]any, 0, len(n.n.items))
		for _, item := range n.Items() {
			list = append(list, item)
		}
		return list
	case KindText:
		return n.Text()
	}
	return Literal(n.Text())
}

// Literal is a value that is not text, as it stands in a file on one line.
type Literal string

// flow gives a value on one line, if it can be there and be read well.
func flow(v any) (string, bool) {
	var parts []string
	switch v := plainValue(v).(type) {
	case Map[any]:
		for _, e := range v {
			text, ok := flow(e.Value)
			if !ok {
				return "", false
			}
			parts = append(parts, writeKey(e.Key)+": "+text)
		}
		return "{" + strings.Join(parts, ", ") + "}", true
	case []any:
		for _, item := range v {
			text, ok := flow(item)
			if !ok {
				return "", false
			}
			parts = append(parts, text)
		}
		return "[" + strings.Join(parts, ", ") + "]", true
	case string:
		return inline(v)
	default:
		return fmt.Sprint(v), true
	}
}

// safe is text that needs no quotes, anywhere.
var safe = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_./-]*$`)

// inline gives text plain or in single quotes, which have no escapes.
func inline(text string) (string, bool) {
	switch {
	case safe.MatchString(text) && plainKind(text) == KindText:
		return text, true
	case !printable(text) || strings.TrimSpace(text) != text || strings.Contains(text, "\n"):
		return "", false
	}
	if _, err := time.ParseDuration(text); err == nil && plainKind(text) == KindText {
		return text, true
	}
	return "'" + strings.ReplaceAll(text, "'", "''") + "'", true
}

func writeKey(key string) string {
	if text, ok := inline(key); ok {
		return text
	}
	return quoted(key, 0)
}

// scalar gives a value with what is before it: a blank, or the header of a block.
func scalar(v any, indent int) string {
	text, ok := v.(string)
	if !ok {
		return " " + fmt.Sprint(v) + "\n"
	}
	line, ok := inline(text)
	pad := "\n" + strings.Repeat(" ", indent+2)
	switch {
	case ok && len(line) <= foldedWidth:
		return " " + line + "\n"
	case ok && !strings.Contains(text, "  ") && short(strings.Fields(text)):
		return " >-" + pad + strings.Join(fold(text), pad) + "\n"
	}
	body, ends := strings.CutSuffix(text, "\n")
	if block(body) && short(strings.Split(body, "\n")) {
		header := " |-"
		if ends {
			header = " |"
		}
		return header + pad + strings.ReplaceAll(body, "\n", pad) + "\n"
	}
	return " " + quoted(text, indent+2) + "\n"
}

// block reports whether a text can be a block: its lines begin and end with
// something printed.
func block(text string) bool {
	for line := range strings.SplitSeq(text, "\n") {
		if !printable(line) || line == "" || strings.TrimSpace(line) != line {
			return false
		}
	}
	return true
}

// short reports whether each part can stand on a line.
func short(parts []string) bool {
	return !slices.ContainsFunc(parts, func(p string) bool { return len(p) > quotedWidth })
}

// fold cuts a text at blanks.
func fold(text string) []string {
	var lines []string
	for len(text) > foldedWidth {
		i := strings.LastIndexByte(text[:foldedWidth], ' ')
		if i < 0 {
			if i = strings.IndexByte(text, ' '); i < 0 {
				break
			}
		}
		lines, text = append(lines, text[:i]), text[i+1:]
	}
	return append(lines, text)
}

func printable(text string) bool {
	for _, r := range text {
		if r == utf8.RuneError || r != '\n' && !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// quoted gives a text in double quotes, with the escapes that both Go and YAML
// have, and on several lines if it is long.
func quoted(text string, indent int) string {
	var b strings.Builder
	b.WriteByte('"')
	width := 0
	for _, r := range text {
		if width > quotedWidth && r != ' ' {
			b.WriteString("\\\n" + strings.Repeat(" ", indent))
			width = 0
		}
		escaped := strconv.Quote(string(r))
		escaped = escaped[1 : len(escaped)-1]
		b.WriteString(escaped)
		width += len(escaped)
	}
	b.WriteByte('"')
	return b.String()
}
