package program

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// checkRest is what needs all constructs.
func (c *compiler) checkRest() {
	p := c.compiled
	if p.program.Result != "" {
		c.froms = append(c.froms, pendingRef{-1, "result", p.program.Result})
	}
	c.scopes()
	for _, f := range c.froms {
		c.resolve(f)
	}
	c.needs()
	for i := range slices.Backward(p.nodes) {
		c.inside(int32(i))
	}
	c.typed(0)
	c.fits()
	c.reachable()
	c.unused()
	if p.blocks = c.count(0); p.blocks >= MaxBlocks {
		c.addFault("body", fmt.Sprintf("%d block instances or more", MaxBlocks), fmt.Sprintf("a program has at most %d: give each block more of the work", MaxBlocks-1))
	}
}

// scopes finds for each construct the outermost one around it that runs it
// exactly once, if nothing fails.
func (c *compiler) scopes() {
	for i := range c.compiled.nodes {
		n := &c.compiled.nodes[i]
		n.scope = int32(i)
		if n.parent < 0 || n.handed {
			continue
		}
		if p := &c.compiled.nodes[n.parent]; p.kind == KindSeq || p.kind == KindPar && p.times == 0 && len(p.conds) == 0 {
			n.scope = p.scope
		}
	}
}

// resolve finds what a reference stands for, and that it is there in time.
func (c *compiler) resolve(f pendingRef) {
	nodes := c.compiled.nodes
	name, what, ok := strings.Cut(f.text, ".")
	if !ok || what != "result" && (what != "previous" || f.node < 0) {
		c.addFault(f.path, fmt.Sprintf("%q is no reference", f.text), "write NAME.result, or NAME.previous for the loop NAME around it")
		return
	}
	found := c.labels[name]
	if len(found) != 1 {
		message := fmt.Sprintf("nothing has the name %q", name)
		if len(found) > 1 {
			message = fmt.Sprintf("%d constructs go by %q", len(found), name)
		}
		c.addFault(f.path, message, "give the construct that is meant a name of its own")
		return
	}
	to := found[0]
	if what == "previous" {
		c.previous(f, to)
		return
	}
	if f.node < 0 {
		if nodes[to].scope != 0 {
			c.addFault(f.path, fmt.Sprintf("%q may not run, or runs several times", name), "refer to the construct around it that runs once")
			return
		}
		c.compiled.result = ref{refResult, to}
		return
	}
	if why := c.early(f.node, to); why != "" {
		c.addFault(f.path, why, "refer to a construct that has ended before, in a seq around both")
		return
	}
	nodes[f.node].from = ref{refResult, to}
	if nodes[to].slot < 0 {
		scope := &nodes[nodes[to].scope]
		nodes[to].slot = scope.slots
		scope.slots++
	}
}

func (c *compiler) previous(f pendingRef, loop int32) {
	nodes := c.compiled.nodes
	n := &nodes[loop]
	if n.kind != KindWhile && n.kind != KindUntil {
		c.addFault(f.path, fmt.Sprintf("%q is no loop", n.label), "previous is the result of the last iteration of a while or until")
		return
	}
	at := f.node
	for at >= 0 && nodes[at].parent != loop {
		at = nodes[at].parent
	}
	if at < 0 || nodes[at].handed {
		c.addFault(f.path, fmt.Sprintf("the loop %q is not around this", n.label), "from elsewhere refer to "+n.label+".result")
		return
	}
	nodes[f.node].from = ref{refPrevious, loop}
}

// early says why the result of a construct may not be there when another one
// starts, "" if it is.
func (c *compiler) early(reader, to int32) string {
	nodes := c.compiled.nodes
	label := nodes[to].label
	a, b := reader, to
	below, above := int32(-1), int32(-1) // the node just below the meeting point
	for a != b {
		if nodes[a].depth >= nodes[b].depth {
			below, a = a, nodes[a].parent
		} else {
			above, b = b, nodes[b].parent
		}
	}
	meet := &nodes[a]
	switch {
	case above < 0 || below < 0:
		return fmt.Sprintf("%q and this are one or inside each other: the reference makes a cycle", label)
	case nodes[above].handed || nodes[below].handed:
		return fmt.Sprintf("%q may not have ended when this runs: one of them is an else", label)
	case meet.kind == KindPar:
		return fmt.Sprintf("%q runs beside this, not before", label)
	case meet.kind != KindSeq:
		return fmt.Sprintf("%q is in another branch", label)
	case above > below:
		return fmt.Sprintf("%q starts only after this has ended: the reference makes a cycle", label)
	case nodes[to].scope != nodes[above].scope:
		return fmt.Sprintf("%q may not run, or runs several times", label)
	}
	return ""
}

// needs marks whose results are used.
func (c *compiler) needs() {
	nodes := c.compiled.nodes
	for i := range nodes {
		if f := nodes[i].from; f.kind != refNone {
			nodes[f.node].need = true
		}
	}
	if c.compiled.result.kind == refResult {
		r := &nodes[c.compiled.result.node]
		if r.need = true; r.slot < 0 {
			r.slot = nodes[0].slots
			nodes[0].slots++
		}
	}
	// Parents stand before their inner constructs.
	for i := range nodes {
		n := &nodes[i]
		if n.parent < 0 || !nodes[n.parent].need {
			continue
		}
		p := &nodes[n.parent]
		n.need = n.need || n.handed || p.kind != KindSeq || p.kids[len(p.kids)-1] == int32(i)
	}
	for i := range nodes {
		if n := &nodes[i]; n.need && n.kind == KindPar && n.times == 0 {
			c.branches(n)
		}
	}
}

// branches names the branches of a Par whose result is used.
func (c *compiler) branches(n *node) {
	seen := map[string]bool{}
	for _, kid := range n.kids {
		label := c.compiled.nodes[kid].label
		if label == "" {
			c.addFault(c.compiled.nodes[kid].path, "the result of the par is used, and this branch has no name", "give it one")
		}
		if seen[label] {
			c.addFault(c.compiled.nodes[kid].path, fmt.Sprintf("two branches of the par go by %q", label), "its result is used: give each a name of its own")
		}
		seen[label] = true
		n.names = append(n.names, strconv.Quote(label))
	}
}

// inside collects, from the inside out, the predicates of the switches in a
// loop.
func (c *compiler) inside(i int32) {
	nodes := c.compiled.nodes
	n := &nodes[i]
	if n.kind == KindWhile || n.kind == KindUntil {
		n.inside = append(n.inside, n.conds...)
	}
	for at := n.parent; at >= 0 && n.kind != KindDo && len(n.conds) > 0; at = nodes[at].parent {
		up := &nodes[at]
		if up.kind != KindWhile && up.kind != KindUntil {
			continue
		}
		for _, q := range n.conds {
			if !slices.Contains(up.inside, q) {
				up.inside = append(up.inside, q)
			}
		}
	}
}

// typed finds the type of a construct's result, those before it first.
func (c *compiler) typed(i int32) Type {
	nodes := c.compiled.nodes
	n := &nodes[i]
	var t Type
	var kids []Type
	for _, kid := range n.kids {
		kids = append(kids, c.typed(kid))
	}
	switch n.kind {
	case KindSeq:
		if len(kids) > 0 {
			t = kids[len(kids)-1]
		}
	case KindPar:
		t = parType(n, kids, nodes)
	case KindIf, KindCase:
		for k, kt := range kids {
			if k == 0 {
				t = kt
			}
			t = eitherType(t, kt)
		}
		if len(kids) == len(n.conds) {
			t = Type{} // Without an else there may be no result.
		}
	case KindWhile, KindUntil:
		if len(kids) > 0 {
			t = kids[0]
		}
		if n.kind == KindWhile && n.from.kind == refPrevious {
			t = eitherType(t, Type{Base: Any}) // The outer loop is not typed yet.
		} else if n.kind == KindWhile {
			t = eitherType(t, c.inputType(n))
		}
	case KindDo:
		if n.block >= 0 {
			t = c.compiled.program.Blocks[n.block].Output
		}
	}
	if n.els >= 0 {
		t = eitherType(t, c.typed(n.els))
	}
	n.typ = t
	return t
}

func parType(n *node, kids []Type, nodes []node) Type {
	for k := range kids {
		if len(n.conds) > 0 || kids[k].Base == None {
			kids[k] = Type{Base: Any} // It may be null.
		}
	}
	if n.times > 0 && len(kids) == 1 {
		return Type{Base: List, Elem: &kids[0]}
	}
	t := Type{Base: Record}
	for k, kid := range n.kids {
		t.Fields = append(t.Fields, Field{nodes[kid].label, kids[k]})
	}
	return t
}

// inputType is the type of a construct's input.
func (c *compiler) inputType(n *node) Type {
	switch {
	case n.input != "":
		return Type{Base: Any}
	case n.from.kind == refResult:
		return c.compiled.nodes[n.from.node].typ
	case n.from.kind == refPrevious:
		loop := &c.compiled.nodes[n.from.node]
		if loop.input == "" && loop.from.kind == refNone {
			return Type{}
		}
		if len(loop.kids) > 0 && loop.input != "" {
			return c.compiled.nodes[loop.kids[0]].typ
		}
		return eitherType(c.inputType(loop), c.compiled.nodes[loop.kids[0]].typ)
	}
	return Type{}
}

const misfitHint = "change one of the types, or refer to another result"

// each lists the types that the result of a construct may have, with their constructs.
func (c *compiler) each(i int32, tell func(*node, Type)) {
	n := &c.compiled.nodes[i]
	switch n.kind {
	case KindSeq:
		if len(n.kids) > 0 {
			c.each(n.kids[len(n.kids)-1], tell)
		}
	case KindIf, KindCase, KindUntil:
		for _, kid := range n.kids {
			c.each(kid, tell)
		}
	case KindWhile:
		c.eachTime(n, tell)
	case KindPar:
		kids := make([]Type, len(n.kids))
		for k, kid := range n.kids {
			kids[k] = c.compiled.nodes[kid].typ
		}
		tell(n, parType(n, kids, c.compiled.nodes))
	case KindDo:
		if n.block >= 0 {
			tell(n, c.compiled.program.Blocks[n.block].Output)
		}
	}
	if n.els >= 0 {
		c.each(n.els, tell)
	}
}

// eachTime is each for the iterations of a loop, and what that was given.
func (c *compiler) eachTime(loop *node, tell func(*node, Type)) {
	for _, kid := range loop.kids {
		c.each(kid, tell)
	}
	if loop.from.kind == refResult {
		tell(loop, c.inputType(loop))
	}
}

// noResult says which result that a construct refers to may not be there, and why.
func (c *compiler) noResult(n *node) string {
	from := &c.compiled.nodes[n.from.node]
	if n.from.kind == refPrevious {
		return fmt.Sprintf("%s.previous is missing in the first iteration of the loop", from.label)
	}
	why := "a construct at its end has none"
	switch {
	case from.kind == KindDo && from.block >= 0 && c.compiled.program.Blocks[from.block].Output.Base == None:
		why = fmt.Sprintf("block %s has no output", c.compiled.program.Blocks[from.block].Name)
	case from.kind == KindWhile && from.from.kind == refNone && from.input == "":
		why = "a while that is given nothing has none where its condition is false at once"
	case from.kind == KindSeq && len(from.kids) > 0:
		why = fmt.Sprintf("%s, its last construct, has none", c.compiled.nodes[from.kids[len(from.kids)-1]].label)
	case (from.kind == KindIf || from.kind == KindCase) && len(from.kids) == len(from.conds):
		why = "the construct has no else, so perhaps none of its branches runs"
	case from.kind == KindIf || from.kind == KindCase:
		why = "one of its branches has none"
	}
	return fmt.Sprintf("%s.result may be missing: %s", from.label, why)
}

// fits checks that each block gets what it takes.
func (c *compiler) fits() {
	refused := map[string]bool{}
	for _, f := range c.faults {
		refused[f.Path] = true
	}
	for i := range c.compiled.nodes {
		n := &c.compiled.nodes[i]
		at := n.path + ".from"
		given := c.inputType(n)
		if n.from.kind != refNone && given.Base == None {
			hint := "refer to something that has one: a block with an output; an if, case or while has one only if it always has"
			if n.from.kind == refPrevious {
				hint = "give the loop an input or from, for the first iteration"
			}
			c.addFault(at, c.noResult(n), hint)
			continue
		}
		if refused[at] || refused[n.path+".input"] {
			continue
		}
		if n.kind != KindDo {
			if n.input != "" && n.need && misfitText(n.typ, n.input, false) != "" {
				c.addFault(n.path+".input", fmt.Sprintf("%s is no %s", clipText(n.input), n.typ), "give what the loop's body results in")
			}
			continue
		}
		if n.block < 0 {
			continue
		}
		want := c.compiled.program.Blocks[n.block].Input
		switch {
		case n.input != "":
			if misfitText(want, n.input, false) != "" {
				c.addFault(n.path+".input", fmt.Sprintf("%s is no %s", clipText(n.input), want), "give what block "+n.label+" takes")
			}
		case n.from.kind == refNone && want.Base != None && want.Base != Any:
			c.addFault(n.path+".do", fmt.Sprintf("the block takes %s and is given nothing", want), "give from or input")
		case n.from.kind != refNone && !given.Fits(want):
			c.addFault(at, fmt.Sprintf("%s comes from there, and the block takes %s", given, want), misfitHint)
		case n.from.kind != refNone:
			tell := func(of *node, t Type) {
				if t.Base != None && !t.Fits(want) && !refused[at] {
					refused[at] = true
					c.addFault(at, fmt.Sprintf("%s may come from there, by %s, and the block takes %s", t, of.path, want), misfitHint)
				}
			}
			if from := &c.compiled.nodes[n.from.node]; n.from.kind == refPrevious {
				c.eachTime(from, tell)
			} else {
				c.each(n.from.node, tell)
			}
		}
		if want.hasRecords() || given.isLoose() && want.Base > Any {
			n.takes = &want
		}
	}
}

// misfitText says where a JSON text does not fit a type.
func misfitText(want Type, text string, null bool) string {
	v, err := decodeJSON(text)
	if err != nil {
		return err.Error()
	}
	return want.findMisfit(v, null)
}

func clipText(s string) string {
	if len(s) > 40 {
		return strings.ToValidUTF8(s[:40], "") + "..."
	}
	return s
}

// constant tells of a predicate that is always so.
func (c *compiler) constant(n *node, k int, value string) bool {
	return k < len(n.conds) && c.compiled.predicates[n.conds[k]].Constant == value
}

// reachable reports what never runs: branches that are never taken, and what
// follows on a loop that never ends.
func (c *compiler) reachable() {
	nodes := c.compiled.nodes
	ends := make([]bool, len(nodes)) // may end without a STOP
	for i := len(nodes) - 1; i >= 0; i-- {
		n := &nodes[i]
		some, all := false, true
		for _, kid := range n.kids {
			some, all = some || ends[kid], all && ends[kid]
		}
		switch n.kind {
		case KindSeq, KindDo:
			ends[i] = all
		case KindPar:
			ends[i] = all || len(n.conds) > 0
		case KindIf, KindCase:
			ends[i] = some || len(n.kids) == len(n.conds)
		case KindWhile:
			ends[i] = !c.constant(n, 0, "true")
		case KindUntil:
			ends[i] = !c.constant(n, 0, "false") && all
		}
		ends[i] = ends[i] || n.els >= 0
	}
	for i := range nodes {
		n := &nodes[i]
		switch n.kind {
		case KindSeq:
			for k := 1; k < len(n.kids); k++ {
				if !ends[n.kids[k-1]] {
					c.addFault(nodes[n.kids[k]].path, "construct never reached: the construct before it never ends", "give that a predicate which can end it, or remove this")
					break
				}
			}
		case KindIf, KindCase, KindWhile:
			c.branchesTaken(n)
		default:
		}
	}
}

func (c *compiler) branchesTaken(n *node) {
	decided := false
	seen := map[int32]bool{}
	for k, kid := range n.kids {
		at := c.compiled.nodes[kid].path
		switch {
		case decided:
			c.addFault(at, "construct never reached: a predicate before it is always true", "remove it, or change the predicate")
		case c.constant(n, k, "false"):
			c.addFault(at, "construct never reached: its predicate is always false", "remove it, or change the predicate")
		case k < len(n.conds) && seen[n.conds[k]]:
			c.addFault(at, "construct never reached: a branch before it has the same predicate", "remove one of them")
		}
		if decided = decided || c.constant(n, k, "true"); k < len(n.conds) {
			seen[n.conds[k]] = true
		}
	}
}

// unused reports declarations that nothing refers to.
func (c *compiler) unused() {
	blocks, procs := make([]bool, len(c.compiled.program.Blocks)), make([]bool, len(c.compiled.procs))
	for i := range c.compiled.nodes {
		if n := &c.compiled.nodes[i]; n.kind == KindDo && n.block >= 0 && n.proc >= 0 {
			blocks[n.block], procs[n.proc] = true, true
		} else if n.kind == KindDo && n.block >= 0 {
			blocks[n.block] = true
		}
	}
	for i, b := range c.compiled.program.Blocks {
		if !blocks[i] {
			c.addFault("blocks."+b.Name, fmt.Sprintf("block %q is never run", b.Name), "run it with do, or remove it")
		}
	}
	for i, q := range c.compiled.program.Processors {
		if !procs[i+1] {
			c.addFault("processors."+q.Name, fmt.Sprintf("nothing runs on processor %q", q.Name), "name it with on, or remove it")
		}
	}
}

// count is the number of block instances of a construct, at most MaxBlocks.
func (c *compiler) count(i int32) int {
	n := &c.compiled.nodes[i]
	sum := 0
	if n.kind == KindDo {
		sum = 1
	}
	for _, kid := range n.kids {
		sum = min(MaxBlocks, sum+c.count(kid))
	}
	if n.times > 0 {
		sum = min(MaxBlocks, sum*int(n.times))
	}
	if n.els >= 0 {
		sum = min(MaxBlocks, sum+c.count(n.els))
	}
	return sum
}
