package program

import (
	"fmt"
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
	Path       string   // of the construct; empty: a dot
	Conditions []string // the predicates that a switch or a JOIN waits for, as SYNCHRONIZER.PREDICATE
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

// Draw lays out the flow of a program. A program is series-parallel: each construct is
// drawn with the line on which it begins and ends at x = 0, and then moved, with all
// that is inside it, to its place in the one around it. That costs as much as there are
// constructs, times how deep they stand inside each other.
func (p *Compiled) Draw() *Graph {
	g := &Graph{Name: p.program.Name}
	d := &drawing{p, g}
	begin := d.vertex(Dot, 5, 10, 10)
	r := d.put(0, 10+gapY)
	g.W, g.H = r.left+r.right+2*margin, r.h+2*margin+2*(gapY+10)
	end := d.vertex(Dot, g.H-2*margin-5, 10, 10)
	d.edge(begin, r.in, "")
	d.edge(r.out, end, "")
	d.move(mark{}, margin+r.left, margin)
	return g
}

const (
	failedLabel = "failed" // the way to the replacement of a failed construct
	againLabel  = "again"  // the way back to a WHILE
)

// labelWidth is what the label of an edge takes, with a gap on either side.
func labelWidth(label string) int { return letter*len(label) + 12 }

// room is what a construct takes, left and right of the line on which it begins and
// ends and from above to below, and the vertices at which it is entered and left.
type room struct{ left, right, h, in, out int }

type drawing struct {
	compiled *Compiled
	graph    *Graph
}

// mark is how much has been drawn.
type mark struct{ vertices, edges int }

func (d *drawing) mark() mark { return mark{len(d.graph.Vertices), len(d.graph.Edges)} }

// move moves what has been drawn since.
func (d *drawing) move(since mark, x, y int) {
	for i := since.vertices; i < len(d.graph.Vertices); i++ {
		v := &d.graph.Vertices[i]
		v.X, v.Y, v.Flow = v.X+x, v.Y+y, v.Flow+x
	}
	for _, e := range d.graph.Edges[since.edges:] {
		for i := range e.Via {
			e.Via[i][0] += x
			e.Via[i][1] += y
		}
	}
}

// vertex adds a vertex on the middle line; what stands beside it is moved later.
func (d *drawing) vertex(s Shape, y, w, h int, label ...string) int {
	d.graph.Vertices = append(d.graph.Vertices, Vertex{Shape: s, Label: label, Y: y, W: w, H: h})
	return len(d.graph.Vertices) - 1
}

// edge adds an edge. A switch that is left without a label is the UNTIL that has come to its end.
func (d *drawing) edge(from, to int, label string, via ...[2]int) {
	if label == "" && d.graph.Vertices[from].Shape == Diamond {
		label = "true"
	}
	d.graph.Edges = append(d.graph.Edges, Edge{from, to, label, via})
}

// titleOf is the text of a block, bar or switch, a line each.
func (p *Compiled) titleOf(i int32) []string {
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
	if n.kind == KindDo && n.from.kind != refNone {
		lines = append(lines, "from "+p.Info(int(i)).From)
	}
	if n.retry > 0 {
		lines = append(lines, fmt.Sprintf("retry %d", n.retry))
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

// text adds a vertex of a construct with a text, at the top, and gives the size that it takes.
func (d *drawing) text(s Shape, construct int32, conditions []int32, lines ...string) (v, w, h int) {
	for _, l := range lines {
		w = max(w, letter*len(l))
	}
	h = line * len(lines)
	switch s {
	case Diamond: // Its text takes two thirds of the width and a third of the height.
		w, h = w*3/2+16, h*3
	case Bar:
		w, h = w+20, h+6
	default:
		w, h = w+20, h+10
	}
	v = d.vertex(s, h/2, w, h, lines...)
	at := &d.graph.Vertices[v]
	at.Path = d.compiled.nodes[construct].path
	for _, c := range conditions {
		at.Conditions = append(at.Conditions, d.compiled.names[c])
	}
	return v, w, h
}

// put draws a construct that begins at y.
func (d *drawing) put(i int32, y int) room {
	from, n := d.mark(), &d.compiled.nodes[i]
	var r room
	if n.els >= 0 && n.kind != KindDo && n.kind != KindPar { // What fails is all that is below this dot.
		r = d.below(d.vertex(Dot, 4, 8, 8), i, n)
	} else {
		r = d.body(i, n)
	}
	if n.els >= 0 {
		beside, top := d.mark(), max(gapY, d.graph.Vertices[r.in].Y+gapY/2) // Below the arrow that leads there.
		e := d.put(n.els, top)
		away := r.right + max(gapX+e.left, gapX/2+labelWidth(failedLabel))
		d.move(beside, away, 0)
		r.right = away + e.right
		r.h = max(r.h, top+e.h) + gapY + 8
		meet := d.vertex(Dot, r.h-4, 8, 8)
		d.edge(r.in, e.in, failedLabel)
		d.edge(r.out, meet, "")
		d.edge(e.out, meet, "")
		r.out = meet
	}
	d.move(from, 0, y)
	return r
}

// below draws a construct without its else, below a dot.
func (d *drawing) below(dot int, i int32, n *node) room {
	from := d.mark()
	r := d.body(i, n)
	d.move(from, 0, 8+gapY)
	d.edge(dot, r.in, "")
	r.in, r.h = dot, r.h+8+gapY
	return r
}

// body draws a construct without its else, at the top.
func (d *drawing) body(i int32, n *node) (r room) {
	title := d.compiled.titleOf(i)
	switch n.kind {
	case KindSeq:
		for k, kid := range n.kids {
			if k > 0 {
				r.h += gapY
			}
			c := d.put(kid, r.h)
			if k == 0 {
				r.in = c.in
			} else {
				d.edge(r.out, c.in, "")
			}
			r = room{max(r.left, c.left), max(r.right, c.right), r.h + c.h, r.in, c.out}
		}
	case KindDo:
		v, w, h := d.text(Box, i, nil, title...)
		r = room{w / 2, w - w/2, h, v, v}
	case KindPar:
		in, w, top := d.text(Bar, i, nil, title...)
		out, under, h := d.text(Bar, i, n.conds, d.compiled.joinTitle(i))
		r = d.fan(n, in, out, max(w, under), top+gapY)
		r.h += gapY + h
		for _, v := range []int{in, out} { // as wide as the room
			bar := &d.graph.Vertices[v]
			bar.X, bar.W = (r.right-r.left)/2, r.left+r.right-2
		}
		d.graph.Vertices[out].Y = r.h - h/2 - 1
	case KindIf, KindCase:
		in, w, h := d.text(Diamond, i, n.conds, title...)
		out := d.vertex(Dot, 0, 8, 8)
		r = d.fan(n, in, out, w, h+gapY+line)
		r.h += gapY + 8
		d.graph.Vertices[out].Y = r.h - 4
		if len(n.kids) == len(n.conds) {
			d.past(&r, "else", h/2)
		}
	case KindWhile:
		in, w, h := d.text(Diamond, i, n.conds, title...)
		c := d.put(n.kids[0], h+gapY)
		r = room{max(c.left, w/2, labelWidth(againLabel)+gapX) + gapX, max(c.right, w-w/2), h + c.h + 2*gapY + 8, in, 0}
		r.out = d.vertex(Dot, r.h-4, 8, 8)
		d.edge(in, c.in, "true")
		side, bottom := gapX/2-r.left, h+gapY+c.h+gapY/2
		d.edge(c.out, in, againLabel, [2]int{0, bottom}, [2]int{side, bottom}, [2]int{side, h / 2})
		d.past(&r, "false", h/2)
	case KindUntil:
		in := d.vertex(Dot, 4, 8, 8)
		c := d.put(n.kids[0], 8+gapY)
		out, w, h := d.text(Diamond, i, n.conds, title...)
		r = room{max(c.left, w/2+labelWidth("false")) + gapX, max(c.right, w-w/2, labelWidth("true")), h + c.h + 2*gapY + 8 + line, in, out}
		at := r.h - line - h/2 // Below it is the label.
		d.graph.Vertices[out].Y = at
		d.edge(in, c.in, "")
		d.edge(c.out, out, "")
		side := gapX/2 - r.left
		d.edge(out, in, "false", [2]int{side, at}, [2]int{side, 4})
	}
	return r
}

// past draws the way from y past the inside of a construct to its end.
func (d *drawing) past(r *room, label string, y int) {
	r.right = max(r.right, d.graph.Vertices[r.in].W/2+labelWidth(label)) + gapX
	side := r.right - gapX/2
	d.edge(r.in, r.out, label, [2]int{side, y}, [2]int{side, r.h - 4})
}

// fan draws the branches of a PAR or switch side by side, from y on, below a text of
// width w.
func (d *drawing) fan(n *node, in, out, w, y int) room {
	all, at, h, middle := d.mark(), 0, 0, 0
	branches := make([]room, len(n.kids))
	for k, kid := range n.kids {
		if k > 0 {
			at += gapX
		}
		one := d.mark()
		c := d.put(kid, y)
		if label := d.compiled.branchLabel(n, k); label != "" {
			c.right = max(c.right, labelWidth(label))
		}
		d.move(one, at+c.left, 0)
		middle = at + c.left
		at, h = at+c.left+c.right, max(h, c.h)
		branches[k] = c
	}
	if len(n.kids) > 1 {
		middle = at / 2
	}
	d.move(all, -middle, 0)
	from := &d.graph.Vertices[in]
	for k, c := range branches {
		label := d.compiled.branchLabel(n, k)
		if x, bus := d.graph.Vertices[c.in].Flow, from.H+gapY/2; from.Shape == Diamond && len(branches) > 1 {
			d.edge(in, c.in, label, [2]int{0, bus}, [2]int{x, bus})
		} else {
			d.edge(in, c.in, label)
		}
		d.edge(c.out, out, "")
	}
	return room{max(middle, w/2), max(at-middle, w-w/2), y + h, in, out}
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
