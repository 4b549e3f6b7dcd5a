package workplan

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// number is a figure with four digits.
func number(x float64) string {
	if x >= 1000 && x < 1e15 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 4, 64)
}

// fraction is a part as it is written in links, such as 1/3, if it is a simple one.
func fraction(x float64) string {
	for below := 1.0; below <= 64; below++ {
		if above := math.Round(x * below); above > 0 && math.Abs(above/below-x) < 1e-9 {
			if below == 1 {
				return number(above)
			}
			return fmt.Sprintf("%g/%g", above, below)
		}
	}
	return number(x)
}

// counts are numbers by member.
func (p *Plan) counts(list []int) string {
	var parts []string
	for i, n := range list {
		if i < len(p.Members) {
			parts = append(parts, fmt.Sprintf("%s %d", p.Members[i].Name, n))
		}
	}
	return strings.Join(parts, ", ")
}

// Head is the first line for people.
func (p *Plan) Head() string {
	return fmt.Sprintf("%s: can be built: group %s, topology %s, strategy %s", p.Synchronizer, p.Group, p.topology(), p.Strategy)
}

func (p *Plan) topology() string {
	if p.Topology == "" {
		return "full"
	}
	return p.Topology
}

// MemberRows is a table of the members.
func (p *Plan) MemberRows() [][]string {
	rows := [][]string{{"MEMBER", "SPEED", "NEIGHBOURS"}}
	for i := range p.Members {
		m := &p.Members[i]
		name, near := m.Name, strings.Join(m.Neighbours, " ")
		if !m.Named {
			name += " (any)"
		}
		if len(m.Neighbours) == len(p.Members)-1 && len(p.Members) > 2 {
			near = "all others"
		}
		rows = append(rows, []string{name, number(m.Speed), near})
	}
	return rows
}

// PathRows is a table of the paths; nil if there are none.
func (p *Plan) PathRows() [][]string {
	if len(p.Paths) == 0 {
		return nil
	}
	rows := [][]string{{"FROM", "TO", "GIVES", "LEVEL", "WHEN", "MOVES"}}
	for i := range p.Paths {
		path := &p.Paths[i]
		level, moves := "-", "-"
		if path.Level > 0 {
			level = strconv.Itoa(path.Level)
		}
		if path.Moves > 0 {
			moves = fmt.Sprintf("%s tasks in %s times", number(path.Moved), number(math.Ceil(path.Moves)))
		}
		rows = append(rows, []string{path.From, path.To, fraction(path.Share), level, path.When, moves})
	}
	return rows
}

// WayLines are what each way should come to.
func (p *Plan) WayLines(cost Cost, bytes float64) (lines []string) {
	for i := range p.Ways {
		w := &p.Ways[i]
		what := "tasks"
		if w.Calls != "" {
			what = "calls of " + w.Calls
		}
		lines = append(lines, fmt.Sprintf("%d %s, %s:", p.Tasks, what, w.Rule))
		if w.First != nil {
			lines = append(lines, "  first split: "+p.counts(w.First))
		}
		lines = append(lines, "  each gets, by theory: "+p.counts(w.Split),
			fmt.Sprintf("  time %s s, %s a second, %.2f of all speeds together", number(w.Seconds), number(w.Rate), w.Efficiency))
	}
	if n := len(p.Members); cost != (Cost{}) {
		each := (p.Tasks + n - 1) / n
		lines = append(lines, fmt.Sprintf("messages: one task at a time %s s, a tree at most %s s in all", number(cost.SelfScheduling(n, each, bytes)), number(cost.WorstTree(n, each, bytes))))
	}
	if p.Alike {
		lines = append(lines, "nothing says how fast the members are: each counts as 1; give --speeds")
	}
	return lines
}

// edge is a line of a drawing.
type edge struct {
	from, to int // members
	text     string
	both     bool
}

// edges are the paths, or the neighbours where the strategy has no paths.
func (p *Plan) edges() (list []edge) {
	place := map[string]int{}
	for i := range p.Members {
		place[p.Members[i].Name] = i
	}
	for i := range p.Paths {
		path := &p.Paths[i]
		text := fraction(path.Share)
		if path.Level > 0 {
			text = fmt.Sprintf("%s, level %d", text, path.Level)
		}
		list = append(list, edge{place[path.From], place[path.To], text, false})
	}
	if len(p.Paths) > 0 {
		return list
	}
	for i := range p.Members {
		for _, name := range p.Members[i].Neighbours {
			if k := place[name]; i < k {
				list = append(list, edge{i, k, "", true})
			}
		}
	}
	return list
}

// label is a member in a drawing.
func (m *Member) label() string { return m.Name + "\n" + number(m.Speed) + " a second" }

// DOT draws the members and the paths between them for Graphviz.
func (p *Plan) DOT() string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n", dotText(p.Synchronizer))
	for i := range p.Members {
		fmt.Fprintf(&b, "\tn%d [label=%s];\n", i, dotText(p.Members[i].label()))
	}
	for _, e := range p.edges() {
		switch {
		case e.both:
			fmt.Fprintf(&b, "\tn%d -> n%d [dir=none];\n", e.from, e.to)
		default:
			fmt.Fprintf(&b, "\tn%d -> n%d [label=%s];\n", e.from, e.to, dotText(e.text))
		}
	}
	for i := range p.Ways {
		w := &p.Ways[i]
		if w.Calls == "" {
			continue
		}
		fmt.Fprintf(&b, "\tc%d [shape=box, label=%s];\n", i, dotText("calls of "+w.Calls+"\n"+w.Rule))
		for k, n := range w.Split {
			if n > 0 {
				fmt.Fprintf(&b, "\tc%d -> n%d [style=dashed, label=%s];\n", i, k, dotText(strconv.Itoa(n)))
			}
		}
	}
	return b.String() + "}\n"
}

// dotText is a text in the language of Graphviz.
func dotText(text string) string {
	text = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text)
	return `"` + text + `"`
}

// SVG draws the members on a circle, and the paths between them.
func (p *Plan) SVG() string {
	const size, radius, node = 640.0, 250.0, 34.0
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" font-family="sans-serif" font-size="13">`+"\n", size, size)
	b.WriteString(`<defs><marker id="tip" viewBox="0 0 10 10" refX="10" refY="5" markerWidth="8" markerHeight="8" orient="auto-start-reverse"><path d="M0 0L10 5L0 10z"/></marker></defs>` + "\n")
	fmt.Fprintf(&b, "<title>%s</title>\n", html.EscapeString(p.Synchronizer))
	at := func(i int) (x, y float64) {
		angle := 2*math.Pi*float64(i)/float64(len(p.Members)) - math.Pi/2
		return size/2 + radius*math.Cos(angle), size/2 + radius*math.Sin(angle)
	}
	for _, e := range p.edges() {
		x1, y1 := at(e.from)
		x2, y2 := at(e.to)
		long := math.Hypot(x2-x1, y2-y1)
		dx, dy := (x2-x1)/long, (y2-y1)/long
		aside, tip := 5.0, ` marker-end="url(#tip)"` // Two ways beside each other.
		if e.both {
			aside, tip = 0, ""
		}
		x1, y1, x2, y2 = x1+node*dx-aside*dy, y1+node*dy+aside*dx, x2-node*dx-aside*dy, y2-node*dy+aside*dx
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="black"%s/>`+"\n", x1, y1, x2, y2, tip)
		if e.text != "" {
			fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", x1+(x2-x1)/3-8*dy, y1+(y2-y1)/3+8*dx, html.EscapeString(e.text))
		}
	}
	for i := range p.Members {
		x, y := at(i)
		m := &p.Members[i]
		fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="%g" fill="white" stroke="black"/>`+"\n", x, y, node)
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", x, y, html.EscapeString(m.Name))
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", x, y+16, html.EscapeString(number(m.Speed)))
	}
	return b.String() + "</svg>\n"
}
