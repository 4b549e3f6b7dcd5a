package show

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/gopegasus/pegasus/monitor"
)

// Count gives "1 member" or "3 members".
func Count[N int | uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// brief gives a duration with three digits or so.
func brief(d time.Duration) string { return monitor.Seconds(d.Seconds()) }

// signed is brief with its sign.
func signed(d time.Duration) string {
	if d < 0 {
		return "-" + brief(-d)
	}
	return "+" + brief(d)
}

// Some lists the first names and counts the others.
func Some(names []string) string { return monitor.Some{Count: len(names), Names: names}.String() }

// writeLine adds a line, however many its values have: some come from members.
func writeLine(b *strings.Builder, format string, values ...any) {
	b.WriteString(Printable(fmt.Sprintf(format, values...)) + "\n")
}

// Table aligns rows below each other, of which each is one line.
func Table(rows [][]string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		for i, cell := range r {
			if i > 0 {
				_, _ = w.Write([]byte{'\t'})
			}
			_, _ = w.Write([]byte(Printable(cell)))
		}
		_, _ = w.Write([]byte{'\n'})
	}
	_ = w.Flush() // A builder takes everything.
	var lines []string
	for line := range strings.Lines(b.String()) {
		lines = append(lines, strings.TrimRight(line, " \n")+"\n")
	}
	return strings.Join(lines, "")
}

// Printable replaces what could move the cursor or break the line: some texts
// come from members.
func Printable(line string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, line)
}

// PrintableLines replaces what could move the cursor, line by line: names and
// faults come from the network.
func PrintableLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = Printable(lines[i])
	}
	return strings.Join(lines, "\n")
}
