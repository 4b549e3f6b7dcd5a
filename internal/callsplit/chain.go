package callsplit

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// maxStages is how many functions a chain may have.
const maxStages = 32

// chain makes one chain of two calls where the result of the first one is the argument of the second one and nothing else. The
// result goes from server to server then.
func (p *pass) chain(units []*unit, calls []*syncCall) ([]*unit, []*syncCall) {
	for i := 0; i+3 < len(units); {
		a, b := units[i], units[i+2]
		if a.kind != starts || b.kind != starts || units[i+1].call != a.call || units[i+3].call != b.call || !p.joins(a.call, b.call) {
			i++
			continue
		}
		one := p.join(a.call, b.call)
		begin := &unit{kind: starts, call: one, effects: one.begins, lead: a.lead + b.lead, pos: a.pos, from: a.from, to: b.to}
		indent := b.body[:len(b.body)-len(trimIndent(b.body))]
		begin.body = indent + placeholder + " := " + one.begin + "\n"
		wait := units[i+3]
		wait = &unit{kind: waits, call: one, effects: one.waits, body: wait.body, returns: true, pos: wait.pos, from: a.from, to: b.to}
		units = slices.Concat(units[:i], []*unit{begin, wait}, units[i+4:])
		at := slices.Index(calls, a.call)
		calls = slices.Concat(calls[:at], []*syncCall{one}, calls[at+2:])
	}
	return units, calls
}

func trimIndent(s string) string {
	for s != "" && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	return s
}

// joins reports whether the second call may take the result of the first one from its server.
func (p *pass) joins(a, b *syncCall) bool {
	if a.pair || b.pair || a.keep || b.keep || !a.declare || !b.declare || a.result == nil || a.stages+b.stages > maxStages-2 {
		return false
	}
	if a.check == nil || b.check == nil || a.check.Init != nil || b.check.Init != nil || a.errID != b.errID || p.text(a.check) != p.text(b.check) {
		return false
	}
	set, ok := b.stmt.(*ast.AssignStmt)
	if !ok || set.Tok != token.DEFINE || !b.waits.declares[b.resultID] || !a.waits.declares[a.resultID] {
		return false
	}
	f := callee(p.TypesInfo, b.start)
	if !isMethod(f, "Calls", "Go") || len(b.start.Args) < 2 || b.start.Ellipsis.IsValid() {
		return false
	}
	arg, ok := ast.Unparen(b.start.Args[1]).(*ast.Ident)
	if !ok || p.TypesInfo.ObjectOf(arg) != a.result || p.uses(a.result) != 1 {
		return false
	}
	if !types.Identical(f.Signature().Params().At(1).Type(), a.result.Type()) {
		return false
	}
	ctx, ok := b.ctx.(*ast.Ident)
	if !ok {
		return false
	}
	for _, x := range []ast.Expr{a.ctx, a.start.Args[0], b.start.Args[0]} {
		if id, ok := x.(*ast.Ident); !ok || id.Name != ctx.Name {
			return false
		}
	}
	rest := noEffects()
	rest.add(&b.begins)
	delete(rest.reads, arg.Name)
	return rest.barrier == "" && !rest.panics && !rest.writesHeap && common(rest.reads, a.waits.writes) == "" && a.waits.barrier == "" && b.waits.barrier == ""
}

// uses counts the uses of a variable.
func (p *pass) uses(v types.Object) (n int) {
	for _, o := range p.TypesInfo.Uses {
		if o == v {
			n++
		}
	}
	return n
}

// join makes the chain.
func (p *pass) join(a, b *syncCall) *syncCall {
	sel := ast.Unparen(b.start.Fun).(*ast.SelectorExpr)
	m := *b.match
	m.begin = p.text(sel.X) + ".Then(" + p.text(b.start.Args[0]) + ", " + a.begin + string(p.source[p.offset(b.start.Args[1].End()):p.offset(b.start.End())])
	m.pos, m.name = a.pos, a.name+", "+b.name
	one := *b
	one.match, one.joined, one.stages, one.first = &m, true, a.stages+b.stages+1, a.first
	one.others = append(append(slices.Clone(a.others), b.others...), b.pos)
	one.begins = noEffects()
	one.begins.add(&a.begins)
	one.begins.add(&b.begins)
	delete(one.begins.reads, a.resultID)
	one.waits = noEffects()
	one.waits.add(&a.waits)
	one.waits.add(&b.waits)
	delete(one.waits.writes, a.resultID)
	delete(one.waits.declares, a.resultID)
	return &one
}
