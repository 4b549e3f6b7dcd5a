package callsplit

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// loopHead is a counting loop, with the parts that a stream needs.
type loopHead struct {
	index, value *ast.Ident // its variables; nil: it has none
	limit        string     // the source of the number of its iterations
	list         string     // the name of the list that it ranges over, or empty
	from         string
	effects      effects // of the limit
}

// stream suggests to start the calls of a loop ahead of their waits, and reports whether it does.
func (p *pass) stream(s *scope, st ast.Stmt, body *ast.BlockStmt) bool {
	if len(body.List) == 0 {
		return false
	}
	head, why := p.readHead(s, st)
	units, calls, lines := p.units(s, body.Lbrace, body.List)
	if len(calls) == 0 {
		return false
	}
	units, calls = p.chain(units, calls)
	switch {
	case why != "":
	case lines != "":
		why = lines
	case slices.ContainsFunc(calls, func(c *syncCall) bool { return c.keep }):
		why = "the comment " + keepComment
	default:
		units = p.schedule(units)
		why = p.streams(head, units, calls)
	}
	if why != "" {
		for _, c := range calls {
			p.loops[c.pos] = "the loop is no stream: " + why
		}
		return false
	}
	p.suggestStream(st, head, body, units, calls)
	return true
}

// readHead reads the head of a loop that counts.
func (p *pass) readHead(s *scope, st ast.Stmt) (*loopHead, string) {
	h := &loopHead{from: "0", effects: noEffects()}
	if loop, ok := st.(*ast.ForStmt); ok {
		c := s.counted(loop)
		if c == nil || s.shared[c.variable] || s.assigned(loop.Body, c.variable) {
			return nil, "the loop does not count from a constant to a limit by one"
		}
		h.index, h.limit, h.from = c.name, p.text(c.limit), c.from
		s.expr(&h.effects, c.limit)
		if measured, ok := c.limit.(*ast.CallExpr); ok && s.builtin(measured) == "len" {
			if list, ok := measured.Args[0].(*ast.Ident); ok && !s.isSharedObject(list) {
				s.indexes[c.variable] = list.Name
			}
		}
		return h, ""
	}
	loop := st.(*ast.RangeStmt)
	if loop.Tok == token.ASSIGN {
		return nil, "the variables of the loop are not its own"
	}
	for i, x := range []ast.Expr{loop.Key, loop.Value} {
		id, ok := x.(*ast.Ident)
		if !ok || id.Name == "_" {
			continue
		}
		if v := p.TypesInfo.Defs[id]; s.shared[v] || s.assigned(loop.Body, v) {
			return nil, "a variable of the loop is written in it, or its address is taken"
		}
		if i == 0 {
			h.index = id
		} else {
			h.value = id
		}
	}
	s.expr(&h.effects, loop.X)
	switch t := p.TypesInfo.TypeOf(loop.X).Underlying().(type) {
	case *types.Slice:
		list, ok := loop.X.(*ast.Ident)
		if !ok || s.isSharedObject(list) {
			return nil, "the loop ranges over more than a local variable"
		}
		h.list, h.limit = list.Name, "len("+list.Name+")"
		if h.index != nil {
			s.indexes[p.TypesInfo.Defs[h.index]] = list.Name
		}
	case *types.Basic:
		if t.Info()&types.IsInteger == 0 || h.index != nil && !types.Identical(p.TypesInfo.TypeOf(h.index), types.Typ[types.Int]) ||
			h.index == nil && !types.Identical(types.Default(p.TypesInfo.TypeOf(loop.X)), types.Typ[types.Int]) {
			return nil, "the loop does not count in int"
		}
		h.limit = p.text(loop.X)
	default:
		return nil, "the loop does not range over a slice or a number"
	}
	return h, ""
}

// parts are the parts of a loop body that becomes a stream.
type parts struct {
	ahead  []*unit // the starts, and what they need
	again  map[*unit]bool
	behind []*unit // the waits and all else. Statements of again are in both.
}

// cut cuts scheduled units at the first wait.
func cut(units []*unit) *parts {
	at := slices.IndexFunc(units, func(u *unit) bool { return u.kind == waits })
	o := &parts{again: map[*unit]bool{}}
	names, later := map[string]bool{}, map[string]bool{}
	need := map[*unit]bool{}
	note := func(names map[string]bool, e *effects) {
		maps.Copy(names, e.reads)
		maps.Copy(names, e.writes) // Several statements may write a variable.
	}
	for _, u := range slices.Backward(units[:at]) {
		if need[u] = u.kind == starts || common(u.effects.writes, names) != ""; need[u] {
			note(names, &u.effects)
		} else {
			note(later, &u.effects)
		}
	}
	for _, u := range units[at:] {
		note(later, &u.effects)
	}
	for _, u := range slices.Backward(units[:at]) {
		if need[u] && u.kind == plain && common(u.effects.writes, later) != "" {
			o.again[u] = true
			note(later, &u.effects)
		}
	}
	for _, u := range units[:at] {
		if need[u] {
			o.ahead = append(o.ahead, u)
		}
		if !need[u] || o.again[u] {
			o.behind = append(o.behind, u)
		}
	}
	o.behind = append(o.behind, units[at:]...)
	return o
}

// effectsOfUnits are the effects of a list.
func effectsOfUnits(list []*unit) *effects {
	out := noEffects()
	for _, u := range list {
		out.add(&u.effects)
	}
	return &out
}

// streams returns why the calls of a loop cannot be started ahead, or empty.
func (p *pass) streams(h *loopHead, units []*unit, calls []*syncCall) string {
	o := cut(units)
	if slices.ContainsFunc(o.behind, func(u *unit) bool { return u.kind == starts }) {
		return "a call needs the result of an earlier one"
	}
	a, b := effectsOfUnits(o.ahead), effectsOfUnits(o.behind)
	switch {
	case a.barrier != "":
		return a.barrier
	case b.barrier != "":
		return b.barrier
	case h.effects.barrier != "":
		return h.effects.barrier
	case a.panics:
		return "the argument of the call may panic"
	case a.writesHeap:
		return "the argument of the call stores to memory that others may use"
	}
	for _, u := range o.ahead {
		for name := range u.effects.writes {
			if !a.declares[name] {
				return "the argument of the call writes " + name + ", which the loop does not declare"
			}
		}
	}
	if h.list != "" {
		a.reads[h.list] = true
	}
	if h.value != nil && a.reads[h.value.Name] { // An element is read ahead.
		a.reads[h.list+"[]"], a.readsHeap = true, true
	}
	a.writes = map[string]bool{}
	declared := a.declares
	a.declares = map[string]bool{}
	a.add(&h.effects)
	for name := range b.writes { // Each iteration has its own variable.
		if declared[name] || b.declares[name] && !a.reads[name] {
			delete(b.writes, name)
		}
	}
	if name := common(a.reads, b.writes); name != "" {
		return "a later start uses " + name + ", which an iteration writes"
	}
	if a.readsHeap && b.writesHeap {
		return "an iteration stores to memory that a later start may use"
	}
	for _, c := range calls {
		switch {
		case p.typeText(c.match.handle, c.pos) == "":
			return "the type of its handle has no name in this file"
		case !c.declare && p.uses(c.variable) != 1:
			return "its handle is used again"
		}
	}
	return ""
}

// typeText is the source of a type at a place in this file, or empty if it cannot be written there.
func (p *pass) typeText(t types.Type, pos token.Pos) string {
	ok := true
	text := types.TypeString(t, func(pkg *types.Package) string {
		if pkg == p.Pkg {
			return ""
		}
		for _, i := range p.file.Imports {
			name, _ := p.TypesInfo.Implicits[i].(*types.PkgName)
			if i.Name != nil {
				name, _ = p.TypesInfo.Defs[i.Name].(*types.PkgName)
			}
			if name != nil && name.Imported() == pkg && name.Name() != "." && name.Name() != "_" {
				if _, here := p.Pkg.Scope().Innermost(pos).LookupParent(name.Name(), pos); here != types.Object(name) {
					break // A variable hides the package.
				}
				return name.Name()
			}
		}
		ok = false
		return ""
	})
	if !ok || !p.isNameable(t, map[types.Type]bool{}) {
		return ""
	}
	return text
}

// isNameable reports whether no part of a type is private to another package, or local to a function.
func (p *pass) isNameable(t types.Type, seen map[types.Type]bool) bool {
	if seen[t] {
		return true
	}
	seen[t] = true
	switch u := types.Unalias(t).(type) {
	case *types.Named:
		o := u.Obj()
		if o.Pkg() != nil && o.Pkg() != p.Pkg && !o.Exported() {
			return false
		}
		for arg := range u.TypeArgs().Types() {
			if !p.isNameable(arg, seen) {
				return false
			}
		}
		return true
	case *types.Pointer:
		return p.isNameable(u.Elem(), seen)
	case *types.Slice:
		return p.isNameable(u.Elem(), seen)
	case *types.Array:
		return p.isNameable(u.Elem(), seen)
	case *types.Map:
		return p.isNameable(u.Key(), seen) && p.isNameable(u.Elem(), seen)
	case *types.Basic, *types.TypeParam:
		return true
	}
	return types.Identical(t, types.NewInterfaceType(nil, nil))
}

// suggestStream reports a loop, with a fix that starts its calls ahead.
func (p *pass) suggestStream(st ast.Stmt, h *loopHead, body *ast.BlockStmt, units []*unit, calls []*syncCall) {
	o := cut(units)
	next := p.fresh("next")
	index := "at"
	if h.index != nil {
		index = h.index.Name
	} else {
		index = p.fresh(index)
	}
	var declarations, names []string
	rings := map[*syncCall]string{}
	for _, c := range calls {
		wanted := c.wanted
		if !c.declare {
			wanted = c.handle
		}
		ring := p.fresh(wanted + "s")
		rings[c] = ring
		declarations = append(declarations, fmt.Sprintf("var %s [%d]%s\n", ring, p.bound, p.typeText(c.match.handle, c.pos)))
		names = append(names, c.name)
		p.markDone(c)
	}
	var inner, outer strings.Builder
	fmt.Fprintf(&inner, "for ; %s < %s && %s-%s < %d; %s++ {\n", next, h.limit, next, index, p.bound, next)
	// The part ahead has variables of its own, under the names of the loop.
	used, later := effectsOfUnits(o.ahead), effectsOfUnits(o.behind)
	if h.index != nil && used.reads[h.index.Name] {
		fmt.Fprintf(&inner, "%s := %s\n", h.index.Name, next)
	}
	if h.value != nil && used.reads[h.value.Name] {
		fmt.Fprintf(&inner, "%s := %s[%s]\n", h.value.Name, h.list, next)
	}
	for _, u := range o.ahead {
		inner.WriteString(u.lead)
		if u.kind == starts {
			fmt.Fprintf(&inner, "%s[%s%%%d] = %s\n", rings[u.call], next, p.bound, u.call.begin)
		} else {
			inner.WriteString(u.body)
		}
	}
	inner.WriteString("}\n")
	outer.WriteString(p.newHead(st, h, index, later.reads))
	outer.WriteString(inner.String())
	for _, u := range o.behind {
		text := u.lead + u.body
		if u.kind == waits {
			handle := fmt.Sprintf("%s[%s%%%d]", rings[u.call], index, p.bound)
			if u.call.declare {
				text = strings.ReplaceAll(text, placeholder, handle)
			} else {
				text = strings.Replace(text, u.call.handle+u.call.wait, handle+u.call.wait, 1)
			}
		}
		outer.WriteString(text)
	}
	tail := p.lines(p.line(body.List[len(body.List)-1].End())+1, p.line(body.Rbrace)-1)
	outer.WriteString(tail + "}")
	text := strings.Join(declarations, "") + next + " := " + h.from + "\n" + outer.String()
	message := fmt.Sprintf("loop of calls that wait at once: %s: keep up to %d of them open", strings.Join(names, ", "), p.bound)
	p.Report(analysis.Diagnostic{Pos: calls[0].pos, Category: "stream", Message: message, SuggestedFixes: []analysis.SuggestedFix{{
		Message: "Start the calls of the loop ahead", TextEdits: []analysis.TextEdit{{Pos: st.Pos(), End: st.End(), NewText: []byte(text)}},
	}}})
}

// newHead is the head of the loop, with an index, and without a value that is not used any more.
func (p *pass) newHead(st ast.Stmt, h *loopHead, index string, later map[string]bool) string {
	loop, ok := st.(*ast.RangeStmt)
	if !ok {
		return string(p.source[p.offset(st.Pos()):p.offset(st.(*ast.ForStmt).Body.Lbrace)]) + "{\n"
	}
	value := ""
	if h.value != nil && later[h.value.Name] {
		value = ", " + h.value.Name
	}
	return fmt.Sprintf("for %s%s := range %s {\n", index, value, p.text(loop.X))
}
