package program

import (
	"fmt"
	"html"
	"strings"
	"unicode/utf8"
)

// Text gives the program as a tree, a line a construct.
func (p *Compiled) Text() string {
	var b strings.Builder
	p.text(&b, 0, "", "", "")
	return b.String()
}

// text writes a construct. lead stands before its first line, rest before those
// inside it, role says what it is to its parent.
func (p *Compiled) text(b *strings.Builder, i int32, lead, rest, role string) {
	n := &p.nodes[i]
	if role != "" {
		role += ": "
	}
	title := strings.Join(p.titleOf(i), ", ")
	if n.kind == KindDo {
		title = "DO " + title
	}
	b.WriteString(lead + role + title + "\n")
	type item struct {
		node int32
		role string
	}
	var items []item
	for k, kid := range n.kids {
		items = append(items, item{kid, p.branchLabel(n, k)})
	}
	if n.kind == KindPar {
		items = append(items, item{-1, p.joinTitle(i)})
	}
	if n.els >= 0 {
		items = append(items, item{n.els, failedLabel})
	}
	for k, x := range items {
		branch, below := "├─ ", "│  "
		if k == len(items)-1 {
			branch, below = "└─ ", "   "
		}
		if x.node < 0 {
			b.WriteString(rest + branch + x.role + "\n")
			continue
		}
		p.text(b, x.node, rest+branch, rest+below, x.role)
	}
}

// DOT gives the graph in the language of Graphviz.
func (g *Graph) DOT() string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %q {\n  node [fontname=\"monospace\" fontsize=12];\n", g.Name)
	for i := range g.Vertices {
		v := &g.Vertices[i]
		shape := [...]string{"box", "box style=filled fillcolor=gray85", "diamond", "point"}[v.Shape]
		fmt.Fprintf(&b, "  v%d [shape=%s label=\"%s\"];\n", i, shape, strings.Join(v.Label, `\n`))
	}
	for i := range g.Edges {
		e := &g.Edges[i]
		label := ""
		if e.Label != "" {
			label = fmt.Sprintf(" [label=%q]", e.Label)
		}
		fmt.Fprintf(&b, "  v%d -> v%d%s;\n", e.From, e.To, label)
	}
	b.WriteString("}\n")
	return b.String()
}

// Mermaid gives the graph as a flowchart of Mermaid.
func (g *Graph) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	for i := range g.Vertices {
		v := &g.Vertices[i]
		form := [...]string{`["%s"]`, `[["%s"]]`, `{"%s"}`, `(("%s"))`}[v.Shape]
		label := strings.Join(v.Label, "<br>")
		if label == "" {
			label = " "
		}
		fmt.Fprintf(&b, "  v%d"+form+"\n", i, label)
	}
	for i := range g.Edges {
		e := &g.Edges[i]
		label := ""
		if e.Label != "" {
			label = `|"` + e.Label + `"|`
		}
		fmt.Fprintf(&b, "  v%d -->%s v%d\n", e.From, label, e.To)
	}
	return b.String()
}

// SVG gives the graph as a drawing.
func (g *Graph) SVG() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="monospace" font-size="12">
<title>%s</title>
<style>:root{--back:#fff;--ink:#000;--bar:#ddd}@media(prefers-color-scheme:dark){:root{--back:#16191d;--ink:#e6e6e6;--bar:#33373d}}
text,circle,marker path{fill:var(--ink)}.back,.shape{fill:var(--back)}.bar{fill:var(--bar)}.shape,.bar,polyline{stroke:var(--ink)}polyline{fill:none}</style>
<defs><marker id="arrow" markerWidth="8" markerHeight="8" refX="8" refY="4" orient="auto"><path d="M0,0 L8,4 L0,8 z"/></marker></defs>
<rect class="back" width="100%%" height="100%%"/>
`, g.W, g.H, g.W, g.H, html.EscapeString(g.Name))
	for i := range g.Edges {
		g.svgEdge(&b, &g.Edges[i])
	}
	for i := range g.Vertices {
		v := &g.Vertices[i]
		left, top := v.X-v.W/2, v.Y-v.H/2
		switch v.Shape {
		case Box, Bar:
			class := [...]string{"shape", "bar"}[v.Shape]
			fmt.Fprintf(&b, `<rect class="%s" x="%d" y="%d" width="%d" height="%d"/>`+"\n", class, left, top, v.W, v.H)
		case Diamond:
			fmt.Fprintf(&b, `<path class="shape" d="M%d,%d L%d,%d L%d,%d L%d,%d z"/>`+"\n",
				v.X, top, left+v.W, v.Y, v.X, top+v.H, left, v.Y)
		case Dot:
			fmt.Fprintf(&b, `<circle cx="%d" cy="%d" r="%d"/>`+"\n", v.X, v.Y, v.W/2)
		}
		y := v.Y - line*(len(v.Label)-1)/2 + 4
		for _, l := range v.Label {
			writeLabel(&b, v.X, y, "middle", l)
			y += line
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// side is the x of the side of a vertex that looks to another x.
func (v *Vertex) side(x int) int {
	if x < v.X {
		return v.X - v.W/2
	}
	return v.X + v.W/2
}

// spans reports whether an x is above or below a vertex.
func (v *Vertex) spans(x int) bool { return 2*max(x-v.X, v.X-x) < v.W }

// svgEdge draws an edge.
func (g *Graph) svgEdge(b *strings.Builder, e *Edge) {
	points, at, end := g.Route(e)
	list := make([]string, len(points))
	for i, p := range points {
		list[i] = fmt.Sprintf("%d,%d", p[0], p[1])
	}
	fmt.Fprintf(b, `<polyline points="%s" marker-end="url(#arrow)"/>`+"\n", strings.Join(list, " "))
	if e.Label != "" {
		anchor := "start"
		if end {
			anchor = "end"
		}
		writeLabel(b, at[0], at[1], anchor, e.Label)
	}
}

// writeLabel writes a text with the width that the layout has for it, whatever the font.
func writeLabel(b *strings.Builder, x, y int, anchor, text string) {
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="%s" textLength="%d" lengthAdjust="spacingAndGlyphs">%s</text>`+"\n", x, y, anchor, letter*utf8.RuneCountInString(text), html.EscapeString(text))
}

// Route returns the points of an edge, with right angles. It also returns where its label begins or, if end is true,
// where it ends. The Y of the label is the one of its base line.
func (g *Graph) Route(e *Edge) (points [][2]int, label [2]int, end bool) {
	from, to := &g.Vertices[e.From], &g.Vertices[e.To]
	x0, y0, x1, y1 := from.Flow, from.Y+from.H/2, to.Flow, to.Y-to.H/2
	// A bar is left and entered where the other end is above or below it, of two the narrower.
	switch {
	case e.Label == failedLabel || len(e.Via) > 0:
	case from.Shape == Bar && from.spans(x1) && (to.Shape != Bar || to.W <= from.W):
		x0 = x1
	case to.Shape == Bar && to.spans(x0):
		x1 = x0
	}
	switch {
	case len(e.Via) > 0:
		first, last := e.Via[0], e.Via[len(e.Via)-1]
		if first[1] == from.Y {
			x0, y0 = from.side(first[0]), from.Y
		}
		if last[1] == to.Y {
			x1, y1 = to.side(last[0]), to.Y
		}
		points = append(points, [2]int{x0, y0})
		points = append(points, e.Via...)
	case e.Label == failedLabel:
		x0, y0 = from.X+from.W/2, from.Y
		points = append(points, [2]int{x0, y0}, [2]int{x1, y0})
	case x0 != x1:
		points = append(points, [2]int{x0, y0}, [2]int{x0, y1 - gapY/2}, [2]int{x1, y1 - gapY/2})
	default:
		points = append(points, [2]int{x0, y0})
	}
	points = append(points, [2]int{x1, y1})
	if e.Label != "" {
		label = e.labelAt(from, points)
		end = label[0] < from.X && e.Label != againLabel && points[1][1] == from.Y
	}
	return points, label, end
}

// labelAt is where the label of an edge is: beside the corner at which a vertex is left on a side, right of the line
// where it is left below, and of several branches above where each ends.
func (e *Edge) labelAt(from *Vertex, points [][2]int) [2]int {
	first, last := points[0], points[len(points)-1]
	switch {
	case e.Label == againLabel: // On the way back, below the repeated part.
		corner := points[len(points)-3]
		return [2]int{corner[0] + 4, corner[1] - 3}
	case points[1][1] == from.Y && first[0] < from.X:
		return [2]int{first[0] - 4, first[1] - 5}
	case from.Shape == Dot: // Above it is perhaps the label of the edge that leads to it.
	case points[1][1] == from.Y:
		return [2]int{first[0] + 4, first[1] - 5}
	case len(e.Via) > 0:
		return [2]int{last[0] + 6, last[1] - 11} // Above the head of the arrow.
	}
	return [2]int{first[0] + 4, first[1] + 13}
}
