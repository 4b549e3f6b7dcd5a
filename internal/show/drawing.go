package show

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// The columns of a drawing, and of the names beside it.
const (
	drawColumns = 64
	nameColumns = 28
)

// scale is the part of time that a drawing shows.
type scale struct{ from, to clocksync.Instant }

// drawing shows the bound and each server on one scale. The scale is that of the
// bound and the servers that agree with it, so that a server far off does not
// make them all a point; without a bound it is that of all servers.
func (v *Clock) drawing() string {
	s, ok := v.scale()
	if !ok {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n" + s.header())
	row := func(name string, i clocksync.Interval, fill byte) { b.WriteString(s.row(name, s.draw(i, fill))) }
	if v.offset.Bounded() {
		row("bound", v.offset, '=')
	}
	for i := range v.servers {
		switch one := &v.servers[i]; {
		case one.Standing != clocksync.Silent:
			row(one.name, one.offset, '-')
		case one.offset != clocksync.Unbounded:
			row(one.name, one.offset, '.')
		}
	}
	if s.from <= 0 && 0 <= s.to {
		b.WriteString(s.mark(0, "wall clock"))
	}
	b.WriteString("\n")
	return b.String()
}

// scale is false if there is nothing to draw.
func (v *Clock) scale() (scale, bool) {
	var all []clocksync.Interval
	if v.offset.Bounded() {
		all = append(all, v.offset)
	}
	for i := range v.servers {
		if s := &v.servers[i]; s.offset.Bounded() && (!v.offset.Bounded() || s.Standing == clocksync.Agreeing) {
			all = append(all, s.offset)
		}
	}
	if len(all) == 0 {
		return scale{}, false
	}
	hull := all[0]
	for _, i := range all[1:] {
		hull = hull.Hull(i)
	}
	// Room on both sides shows the ends, and no column is less than 1 ns.
	hull = hull.Widen(hull.Width()/16 + drawColumns)
	return scale{hull.Earliest, hull.Latest}, true
}

// header tells both ends of the scale, above a drawing.
func (s scale) header() string {
	left, right := signed(time.Duration(s.from)), signed(time.Duration(s.to))
	gap := max(1, drawColumns-len([]rune(left))-len([]rune(right)))
	return fmt.Sprintf("%-*s  %s%s%s\n", nameColumns, "", left, strings.Repeat(" ", gap), right)
}

// row is a line of a drawing: a name and what is drawn.
func (s scale) row(name, drawn string) string {
	if r := []rune(name); len(r) > nameColumns {
		name = string(r[:nameColumns-1]) + "…"
	}
	return strings.TrimRight(fmt.Sprintf("%-*s  %s", nameColumns, name, drawn), " ") + "\n"
}

// mark names an instant of the scale, below a drawing.
func (s scale) mark(t clocksync.Instant, name string) string {
	return strings.Repeat(" ", nameColumns+2) + strings.Repeat(" ", s.column(t)) + "^ " + name + "\n"
}

// column is where an instant of the scale is drawn.
func (s scale) column(t clocksync.Instant) int {
	return int(float64(t.Sub(s.from)) / float64(s.to.Sub(s.from)) * (drawColumns - 1))
}

// draw has "<" and ">" where an interval continues outside the scale.
func (s scale) draw(i clocksync.Interval, fill byte) string {
	row := bytes.Repeat([]byte{' '}, drawColumns)
	switch {
	case i.Latest < s.from:
		row[0] = '<'
		return string(row)
	case i.Earliest > s.to:
		row[drawColumns-1] = '>'
		return string(row)
	}
	first, last := s.column(max(i.Earliest, s.from)), s.column(min(i.Latest, s.to))
	for c := first; c <= last; c++ {
		row[c] = fill
	}
	row[first], row[last] = '[', ']'
	if first == last {
		row[first] = '|'
	}
	if i.Earliest < s.from {
		row[first] = '<'
	}
	if i.Latest > s.to {
		row[last] = '>'
	}
	return string(row)
}
