package yamlconf

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

const (
	// keptFaults bounds the memory of a file that is wrong everywhere.
	keptFaults = 1000
	// shownFaults is how many Error prints.
	shownFaults = 50
	// shownWidth is how many characters of a source line are printed.
	shownWidth = 100
)

// Pos is a place in a file: line and column count from 1, the column in
// characters (code points). The zero Pos is "unknown".
type Pos struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

// String returns "line:column".
func (p Pos) String() string { return fmt.Sprintf("%d:%d", p.Line, p.Column) }

func (p Pos) compare(q Pos) int {
	return cmp.Or(cmp.Compare(p.Line, q.Line), cmp.Compare(p.Column, q.Column))
}

// A Fault is one thing that is wrong in a file.
type Fault struct {
	File string `json:"file"`
	Pos
	Path    string `json:"path,omitempty"` // Such as synchronizers.gsync.members; empty at the top.
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`   // What to do about it, where the message alone does not say.
	Source  string `json:"source,omitempty"` // The text of the line.
}

// String returns the fault as "file:line:column: path: message", then the
// source line with a caret under the column, then the hint.
func (f *Fault) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: ", f.File, f.Line, f.Column)
	if f.Path != "" {
		fmt.Fprintf(&b, "%s: ", f.Path)
	}
	b.WriteString(f.Message)
	if line, pad := excerpt(f.Source, f.Column); line != "" {
		fmt.Fprintf(&b, "\n  | %s\n  | %s^", line, pad)
	}
	if f.Hint != "" {
		fmt.Fprintf(&b, "\n  = %s", f.Hint)
	}
	return b.String()
}

// excerpt returns the printable part of a line around a column, and the blanks
// that put a caret under that column. Tabs stay tabs in both.
func excerpt(source string, column int) (line, pad string) {
	runes := []rune(source)
	at := min(max(column-1, 0), len(runes))
	from := max(0, at-shownWidth*3/4)
	to := min(len(runes), from+shownWidth)
	var l, p strings.Builder
	if from > 0 {
		l.WriteString("...")
		p.WriteString("   ")
	}
	for i, r := range runes[from:to] {
		blank := ' '
		if r == '\t' {
			blank = '\t'
		} else if !unicode.IsPrint(r) {
			r = unicode.ReplacementChar
		}
		l.WriteRune(r)
		if from+i < at {
			p.WriteRune(blank)
		}
	}
	if to < len(runes) {
		l.WriteString("...")
	}
	if strings.TrimSpace(l.String()) == "" {
		return "", ""
	}
	return l.String(), p.String()
}

// Error is every fault of one file, by position.
type Error struct {
	Faults []Fault
	More   int // Faults beyond the first 1,000, which are only counted.
}

// Error prints the first 50 faults and the number of those left out.
func (e *Error) Error() string {
	shown := e.Faults[:min(len(e.Faults), shownFaults)]
	parts := make([]string, 0, len(shown)+1)
	for i := range shown {
		parts = append(parts, shown[i].String())
	}
	if more := len(e.Faults) - len(shown) + e.More; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more faults", more))
	}
	return strings.Join(parts, "\n")
}

func (d *Doc) addFault(f Fault) {
	if len(d.list) >= keptFaults {
		d.more++
		return
	}
	d.list = append(d.list, d.fillSource(f))
}

// fillSource adds the file and the source line.
func (d *Doc) fillSource(f Fault) Fault {
	f.File = d.name
	if f.Line == 0 {
		f.Pos = Pos{1, 1}
	}
	if i := f.Line - 1; i < len(d.lines) {
		f.Source = d.lines[i]
	}
	return f
}

// Err returns every fault so far as an *Error, sorted by place and without
// repetitions, or nil.
func (d *Doc) Err() error {
	if len(d.list) == 0 {
		return nil
	}
	list := slices.Clone(d.list)
	slices.SortStableFunc(list, func(a, b Fault) int { return a.compare(b.Pos) })
	return &Error{Faults: slices.Compact(list), More: d.more}
}
