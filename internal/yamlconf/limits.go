package yamlconf

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The limits of a file. A config of 200 predicates stays far below all of
// them. Those after maxBytes bound the work of the YAML parser, which grows
// with the square of the keys of a map, of a line and of some runs.
const (
	maxBytes      = 1 << 20 // Size of a file.
	maxLineBytes  = 4096    // Length of a line.
	maxMarks      = 200_000 // Characters that can start or end a value.
	maxKeys       = 10_000  // Keys in all maps together.
	maxMapKeys    = 2000    // Keys in one map of indented lines.
	maxKeyBytes   = 128     // Length of a key.
	maxFlowDepth  = 32      // Brackets and braces inside each other.
	maxColumn     = 128     // Column where a key or a list item may start.
	maxBlankLines = 64      // Blank lines in a row.
	maxLessThan   = 64      // "<" in a row.
)

// marks are the characters that maxMarks counts.
const marks = ",[]{}:-\"'#&*!|>?%"

// checkBytes looks at the raw text, in one pass and before anything else does.
// It reports whether the text is fit to be scanned.
func (d *Doc) checkBytes(src []byte) bool {
	if len(src) > maxBytes {
		at := bytes.Count(src[:maxBytes], []byte("\n")) + 1
		d.addFault(Fault{
			Pos:     Pos{at, 1},
			Message: fmt.Sprintf("the file is larger than the limit of %d bytes", maxBytes),
			Hint:    "split it, or move data out of the config",
		})
		return false
	}
	if len(bytes.TrimSpace(src)) == 0 {
		d.addFault(Fault{Message: "the file is empty"})
		return false
	}
	before := len(d.list)
	blank, count := 0, 0
	for i, line := range d.lines {
		count += d.checkLine(i+1, line)
		if count > maxMarks {
			d.addFault(Fault{
				Pos:     Pos{i + 1, 1},
				Message: fmt.Sprintf("more than %d quotes, brackets, commas, colons and dashes up to here", maxMarks),
				Hint:    "split the file",
			})
			return false
		}
		if strings.TrimSpace(line) != "" {
			blank = 0
			continue
		}
		if blank++; blank == maxBlankLines+1 {
			d.addFault(Fault{Pos: Pos{i + 1, 1}, Message: fmt.Sprintf("more than %d blank lines in a row", maxBlankLines)})
		}
	}
	return len(d.list) == before
}

// checkLine reports a line that is too long or its first unfit character, and
// returns how many of its characters count as marks.
func (d *Doc) checkLine(number int, line string) (count int) {
	if len(line) > maxLineBytes {
		d.addFault(Fault{
			Pos:     Pos{number, 1},
			Message: fmt.Sprintf("the line has %d bytes, more than the limit of %d", len(line), maxLineBytes),
			Hint:    "break it; lists may go over several lines",
		})
		return 0
	}
	column, less, indent := 0, 0, true
	for i, r := range line {
		column++
		indent = indent && unicode.IsSpace(r)
		if r < utf8.RuneSelf && strings.IndexByte(marks, byte(r)) >= 0 {
			count++
		}
		if r == '<' {
			less++
		} else {
			less = 0
		}
		message, hint := unfit(r, number == 1 && column == 1)
		if r == utf8.RuneError && !strings.HasPrefix(line[i:], string(utf8.RuneError)) {
			message, hint = fmt.Sprintf("byte %#02x is not UTF-8", line[i]), "save the file as UTF-8"
		}
		if indent && r >= utf8.RuneSelf && message == "" {
			message, hint = fmt.Sprintf("a space that is no indentation, %U", r), "indent with plain spaces"
		}
		if less > maxLessThan {
			message = fmt.Sprintf("more than %d \"<\" in a row", maxLessThan)
		}
		if message != "" {
			d.addFault(Fault{Pos: Pos{number, column}, Message: message, Hint: hint})
			return count
		}
	}
	return count
}

// unfit says why a character may not stand in a config, if so.
func unfit(r rune, first bool) (message, hint string) {
	switch {
	case r == '\t':
		return "a tab character", `indent with spaces; inside double quotes write \t`
	case r == '\ufeff' && first:
		return "the file starts with a byte order mark", "save it as UTF-8 without BOM"
	case r < ' ', r >= 0x7f && r <= 0x9f, r == '\ufeff', r == '\u2028', r == '\u2029':
		return fmt.Sprintf("control character %U", r), "remove it; inside double quotes write it as an escape"
	default:
		return "", ""
	}
}
