package program

import (
	"fmt"
	"slices"
	"strings"
)

// Shape is how a vertex of a graph is drawn.
type Shape uint8

// The shapes.
const (
	Box     Shape = iota // a block
	Bar                  // PAR and JOIN
	Diamond              // a switch
	Dot                  // where branches meet, the start and the end
)

// Vertex is a vertex of a graph. X and Y are the middle of it, Flow is where the
// flow goes through it from above to below.
type Vertex struct {
	Shape      Shape    // how it is drawn
	Label      []string // lines
	X, Y, W, H int      // the middle, and the width and height, in pixels
	Flow       int      // the x at which the flow passes through
}

// Edge leads from one vertex to another, through points if it is a bend.
type Edge struct {
	From, To int      // indexes in Graph.Vertices
	Label    string   // empty for none
	Via      [][2]int // the points of its bends, x and y; nil for a straight edge
}

// Graph is the flow of a program, laid out. Lengths are in pixels of a drawing
// with letters of 12 pixels.
type Graph struct {
	Name     string   // of the program
	Vertices []Vertex // in the order in which they were placed
	Edges    []Edge   // between them
	W, H     int      // width and height of the whole
}

// The measures of a layout.
const (
	letter = 7  // width of a letter
	line   = 15 // height of a line
	gapX   = 24 // between branches
	gapY   = 26 // between what follows on each other
	margin = 16
)

// Draw lays out the flow of a program. A program is series-parallel, so one pass
// from the inside out finds how much room each construct takes, and one from the
// outside in where it goes: the time is linear in the number of constructs.
func (p *Compiled) Draw() *Graph {
	d := &drawing{compiled: p, graph: &Graph{Name: p.program.Name}, rooms: make([]room, len(p.nodes))}
	// Kids stand after their parents.
	for i := range slices.Backward(p.nodes) {
		d.measure(int32(i))
	}
	r := d.rooms[0]
	g := d.graph
	g.W, g.H = r.w+2*margin, r.h+2*margin+2*(gapY+10)
	x := margin + r.left
	begin := d.vertex(Dot, x, margin+5, 10, 10)
	in, out := d.put(0, x, margin+10+gapY)
	end := d.vertex(Dot, x, g.H-margin-5, 10, 10)
	d.edge(begin, in, "")
	d.edge(out, end, "")
	return g
}

// failedLabel marks the way to what runs in the place of what failed.
const failedLabel = "failed"

// room is what a construct takes: left and right of the line on which it begins
// and ends, and how high it is. body is the same without its else.
type room struct {
	left, right, w, h   int
	bodyLeft, bodyRight int
	bodyH, branchH      int
}

type drawing struct {
	compiled *Compiled
	graph    *Graph
	rooms    []room
}

func (d *drawing) vertex(s Shape, x, y, w, h int, label ...string) int {
	d.graph.Vertices = append(d.graph.Vertices, Vertex{s, label, x, y, w, h, x})
	return len(d.graph.Vertices) - 1
}

// bar is a vertex as wide as the room, whose flow is at x.
func (d *drawing) bar(r *room, x, y, h int, label ...string) int {
	v := d.vertex(Bar, x+(r.bodyRight-r.bodyLeft)/2, y, r.bodyLeft+r.bodyRight-2, h, label...)
	d.graph.Vertices[v].Flow = x
	return v
}

func (d *drawing) edge(from, to int, label string, via ...[2]int) {
	d.graph.Edges = append(d.graph.Edges, Edge{from, to, label, via})
}

// title is the text of a block, bar or switch, a line each.
func (p *Compiled) title(i int32) []string {
	n := &p.nodes[i]
	var lines []string
	name := ""
	if n.label != "" {
		name = " " + n.label
	}
	switch n.kind {
	case KindDo:
		block := &p.program.Blocks[n.block]
		lines = append(lines, block.Name)
		if n.label != block.Name {
			lines[0] = n.label + ": " + block.Name
		}
		if n.proc > 0 {
			lines = append(lines, "on "+p.procs[n.proc].Name)
		}
		if block.Threads > 0 {
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%d threads %s", block.Threads, block.Synchronizer)))
		}
		for _, q := range n.async {
			lines = append(lines, "async "+p.names[q])
		}
	case KindPar:
		times := ""
		if n.times > 0 {
			times = fmt.Sprintf(" x%d", n.times)
		}
		lines = append(lines, "PAR"+name+times)
	case KindSeq:
		lines = append(lines, "SEQ"+name)
	case KindIf:
		lines = append(lines, "IF"+name, p.names[n.conds[0]])
	case KindCase:
		lines = append(lines, "CASE"+name)
	case KindWhile:
		lines = append(lines, "WHILE"+name, p.names[n.conds[0]])
	case KindUntil:
		lines = append(lines, "UNTIL"+name, p.names[n.conds[0]])
	}
	if n.limit > 0 {
		lines = append(lines, "within "+n.limit.String())
	}
	return lines
}

// joinTitle is the text of a JOIN.
func (p *Compiled) joinTitle(i int32) string {
	if n := &p.nodes[i]; len(n.conds) > 0 {
		return "JOIN or " + p.names[n.conds[0]]
	}
	return "JOIN"
}

// sized gives the size of a vertex with a text.
func sized(lines []string, s Shape) (w, h int) {
	for _, l := range lines {
		w = max(w, letter*len(l))
	}
	switch s {
	case Diamond:
		return w + 56, line*len(lines) + 30
	case Bar:
		return w + 20, line*len(lines) + 6
	default:
		return w + 20, line*len(lines) + 10
	}
}

// measure finds the room of a construct from those inside it.
func (d *drawing) measure(i int32) {
	n := &d.compiled.nodes[i]
	r := &d.rooms[i]
	title := d.compiled.title(i)
	switch n.kind {
	case KindSeq:
		for k, kid := range n.kids {
			c := &d.rooms[kid]
			r.left, r.right = max(r.left, c.left), max(r.right, c.right)
			if r.h += c.h; k > 0 {
				r.h += gapY
			}
		}
	case KindDo:
		w, h := sized(title, Box)
		r.left, r.right, r.h = w/2, w-w/2, h
	case KindPar, KindIf, KindCase, KindWhile, KindUntil:
		r.left, r.right, r.branchH = d.branches(n)
		s := Diamond
		if n.kind == KindPar {
			s = Bar
		}
		w, h := sized(title, s)
		if n.kind == KindPar {
			jw, _ := sized([]string{d.compiled.joinTitle(i)}, s)
			w = max(w, jw)
		}
		r.left, r.right = max(r.left, w/2), max(r.right, w-w/2)
		r.h = h + gapY + r.branchH
		switch n.kind {
		case KindPar:
			r.h += gapY + line + 6
		case KindIf, KindCase:
			if r.h += gapY + 8; len(n.kids) == len(n.conds) {
				r.right += gapX // the way past the branches
			}
		case KindWhile, KindUntil:
			// One way around for the way back, WHILE one more for the way on.
			r.left += gapX
			r.h += gapY + 8
			if n.kind == KindWhile {
				r.right += gapX
			}
		default:
		}
	}
	r.bodyLeft, r.bodyRight, r.bodyH = r.left, r.right, r.h
	if n.els >= 0 {
		e := &d.rooms[n.els]
		r.right += gapX + e.left + e.right
		r.h = max(r.h, gapY+e.h) + gapY + 8
	}
	r.w = r.left + r.right
}

// branches finds the room of what stands side by side, from its middle.
func (d *drawing) branches(n *node) (left, right, h int) {
	w := 0
	for k, kid := range n.kids {
		c := &d.rooms[kid]
		if w += c.w; k > 0 {
			w += gapX
		}
		h = max(h, c.h)
	}
	if len(n.kids) == 1 {
		return d.rooms[n.kids[0]].left, d.rooms[n.kids[0]].right, h
	}
	return w / 2, w - w/2, h
}

// put places a construct below a point and returns where it is entered and left.
func (d *drawing) put(i int32, x, y int) (in, out int) {
	n := &d.compiled.nodes[i]
	r := &d.rooms[i]
	if in, out = d.body(i, x, y); n.els < 0 {
		return in, out
	}
	e := &d.rooms[n.els]
	ein, eout := d.put(n.els, x+r.bodyRight+gapX+e.left, y+gapY)
	meet := d.vertex(Dot, x, y+r.h-4, 8, 8)
	d.edge(in, ein, failedLabel)
	d.edge(out, meet, "")
	d.edge(eout, meet, "")
	return in, meet
}

func (d *drawing) body(i int32, x, y int) (in, out int) {
	n := &d.compiled.nodes[i]
	r := &d.rooms[i]
	title := d.compiled.title(i)
	switch n.kind {
	case KindSeq:
		for k, kid := range n.kids {
			a, b := d.put(kid, x, y)
			if k == 0 {
				in = a
			} else {
				d.edge(out, a, "")
			}
			out = b
			y += d.rooms[kid].h + gapY
		}
	case KindDo:
		w, h := sized(title, Box)
		in = d.vertex(Box, x, y+h/2, w, h, title...)
		out = in
	case KindPar:
		_, h := sized(title, Bar)
		in = d.bar(r, x, y+h/2, h, title...)
		out = d.bar(r, x, y+r.bodyH-(line+6)/2-1, line+6, d.compiled.joinTitle(i))
		d.fan(n, in, out, x, y+h+gapY)
	case KindIf, KindCase:
		w, h := sized(title, Diamond)
		in = d.vertex(Diamond, x, y+h/2, w, h, title...)
		out = d.vertex(Dot, x, y+r.bodyH-4, 8, 8)
		if d.fan(n, in, out, x, y+h+gapY); len(n.kids) == len(n.conds) {
			side := x + r.bodyRight - gapX/2
			d.edge(in, out, "else", [2]int{side, y + h/2}, [2]int{side, y + r.bodyH - 4})
		}
	case KindWhile:
		w, h := sized(title, Diamond)
		in = d.vertex(Diamond, x, y+h/2, w, h, title...)
		a, b := d.put(n.kids[0], x, y+h+gapY)
		out = d.vertex(Dot, x, y+r.bodyH-4, 8, 8)
		d.edge(in, a, "true")
		side, bottom := x-r.bodyLeft+gapX/2, y+h+gapY+r.branchH+gapY/2
		d.edge(b, in, "again", [2]int{x, bottom}, [2]int{side, bottom}, [2]int{side, y + h/2})
		side = x + r.bodyRight - gapX/2
		d.edge(in, out, "false", [2]int{side, y + h/2}, [2]int{side, y + r.bodyH - 4})
	case KindUntil:
		w, h := sized(title, Diamond)
		in = d.vertex(Dot, x, y+4, 8, 8)
		a, b := d.put(n.kids[0], x, y+8+gapY)
		out = d.vertex(Diamond, x, y+r.bodyH-h/2, w, h, title...)
		d.edge(in, a, "")
		d.edge(b, out, "")
		side := x - r.bodyLeft + gapX/2
		d.edge(out, in, "false", [2]int{side, y + r.bodyH - h/2}, [2]int{side, y + 4})
	}
	return in, out
}

// fan places the branches of a PAR or switch side by side.
func (d *drawing) fan(n *node, in, out, x, y int) {
	left, _, _ := d.branches(n)
	at := x - left
	for k, kid := range n.kids {
		c := &d.rooms[kid]
		a, b := d.put(kid, at+c.left, y)
		at += c.w + gapX
		d.edge(in, a, d.compiled.branchLabel(n, k))
		d.edge(b, out, "")
	}
}

func (p *Compiled) branchLabel(n *node, k int) string {
	switch {
	case n.kind != KindIf && n.kind != KindCase:
		return ""
	case k == len(n.conds):
		return "else"
	case n.kind == KindIf:
		return "then"
	}
	return p.names[n.conds[k]]
}
