package callsplit

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// match is an expression that makes a call and waits for its result.
type match struct {
	pos    token.Pos
	name   string        // for messages
	whole  *ast.CallExpr // with Wait
	start  *ast.CallExpr // without it; for a pair the same as whole
	source string        // of whole
	begin  string        // the source that starts the call
	wait   string        // what follows the handle: ".Wait(ctx)"
	ctx    ast.Expr      // of Wait; nil: it takes none
	pair   bool
	handle types.Type
}

// match reads an expression. It returns nil for any other one.
func (p *pass) match(c *ast.CallExpr) *match {
	f := callee(p.TypesInfo, c)
	if f == nil {
		return nil
	}
	if isMethod(f, "Call", "Wait") && len(c.Args) == 1 {
		x := ast.Unparen(c.Fun.(*ast.SelectorExpr).X)
		start, ok := x.(*ast.CallExpr)
		if !ok || !p.isStart(start) {
			return nil
		}
		return &match{pos: c.Pos(), name: p.nameOf(start), whole: c, source: p.text(c), start: start, begin: p.text(start), wait: ".Wait(" + p.text(c.Args[0]) + ")", ctx: c.Args[0], handle: p.TypesInfo.TypeOf(start)}
	}
	return p.matchPair(f, c)
}

// isStart reports whether an expression starts a call: Go, or Then.
func (p *pass) isStart(c *ast.CallExpr) bool {
	f := callee(p.TypesInfo, c)
	return f != nil && (isMethod(f, "Calls", "Go") || isMethod(f, "Calls", "Then"))
}

// nameOf is the source of the function that a start calls, such as "c.Go".
func (p *pass) nameOf(start *ast.CallExpr) string { return p.text(start.Fun) }

// isMethod reports whether a function is a method of a type of the package work.
func isMethod(f *types.Func, receiver, name string) bool {
	return f.Name() == name && fullName(f) == workPath+"."+receiver+"."+name
}

// fullName is PACKAGE.FUNC, or PACKAGE.TYPE.METHOD.
func fullName(f *types.Func) string {
	if f.Pkg() == nil {
		return f.Name()
	}
	path, _, _ := strings.Cut(f.Pkg().Path(), " ") // A package in its test has a longer one.
	recv := f.Signature().Recv()
	if recv == nil {
		return path + "." + f.Name()
	}
	t := recv.Type()
	if ptr, ok := t.(*types.Pointer); ok {
		t = ptr.Elem()
	}
	if n, ok := types.Unalias(t).(*types.Named); ok {
		return path + "." + n.Obj().Name() + "." + f.Name()
	}
	return path + "." + f.Name()
}

// matchPair reads a call of a function of the flag calls.
func (p *pass) matchPair(f *types.Func, c *ast.CallExpr) *match {
	start, ok := p.calls[fullName(f)]
	if !ok || c.Ellipsis.IsValid() {
		return nil
	}
	name := start[strings.LastIndex(start, ".")+1:]
	var other types.Object
	recv := f.Signature().Recv()
	if recv != nil {
		other, _, _ = types.LookupFieldOrMethod(recv.Type(), true, f.Pkg(), name)
	} else {
		other = f.Pkg().Scope().Lookup(name)
	}
	g, ok := other.(*types.Func)
	if !ok || f.Signature().TypeParams() != nil || g.Signature().Results().Len() != 1 || !types.Identical(f.Signature().Params(), g.Signature().Params()) || f.Signature().Variadic() != g.Signature().Variadic() {
		return nil
	}
	handle := g.Signature().Results().At(0).Type()
	w, _, _ := types.LookupFieldOrMethod(handle, false, f.Pkg(), "Wait")
	wait, ok := w.(*types.Func)
	if !ok || !types.Identical(wait.Signature().Results(), f.Signature().Results()) {
		return nil
	}
	m := &match{pos: c.Pos(), name: p.text(c.Fun), whole: c, source: p.text(c), start: c, pair: true, handle: handle, wait: ".Wait()"}
	switch params := wait.Signature().Params(); {
	case params.Len() == 1 && len(c.Args) > 0 && types.Identical(params.At(0).Type(), p.TypesInfo.TypeOf(c.Args[0])):
		m.ctx, m.wait = c.Args[0], ".Wait("+p.text(c.Args[0])+")"
	case params.Len() != 0:
		return nil
	}
	fun := ast.Unparen(c.Fun)
	switch x := fun.(type) {
	case *ast.Ident:
		m.begin = name + string(p.source[p.offset(x.End()):p.offset(c.End())])
	case *ast.SelectorExpr:
		m.begin = p.text(x.X) + "." + name + string(p.source[p.offset(x.End()):p.offset(c.End())])
	default:
		return nil
	}
	return m
}

// placeholder is the handle in the source of both halves until it has a name.
const placeholder = "\x00"

// syncCall is a call with a wait right behind it, which the analyzer may split.
type syncCall struct {
	*match
	variable types.Object // that has the handle already; nil: the start declares one
	others   []token.Pos  // of further calls of the chain
	keep     bool         // the program wants it as it is
	joined   bool         // a chain of calls that were separate
	stages   int          // of the chain
	wanted   string       // a name for the handle
	handle   string       // its name, or placeholder
	declare  bool         // the start declares the handle
	why      string       // why it is left alone

	result   types.Object // the variable that has the result alone; nil: there is none, or another place
	resultID string
	errID    string
	check    *ast.IfStmt
	stmt     ast.Stmt // that waits
	first    ast.Stmt // in its place in the source
	begins   effects
	waits    effects
	returns  bool // the wait may return from the function
}

// unitKind says what a unit is.
type unitKind int

const (
	plain unitKind = iota
	starts
	waits
)

// unit is what moves: a statement, or one half of a call.
type unit struct {
	kind    unitKind
	call    *syncCall
	effects effects
	lead    string // blank lines and comments in front
	body    string // whole lines
	returns bool
	pos     token.Pos
	from    int // the first line of its source, with lead
	to      int // the last one
}

// units cuts a list of statements into units. It also returns why none of them can be moved.
func (p *pass) units(s *scope, open token.Pos, list []ast.Stmt) (out []*unit, calls []*syncCall, why string) {
	end := p.line(open)
	for i := 0; i < len(list); i++ {
		st := list[i]
		if p.line(st.Pos()) <= end {
			why = "two statements are in the same line"
		}
		from := end + 1
		lead := p.lines(from, p.line(st.Pos())-1)
		c, used := p.readCall(s, list[i:])
		last := list[i+max(used, 1)-1]
		text := p.lines(p.line(st.Pos()), p.line(last.End()))
		end = p.line(last.End())
		if c == nil {
			e := noEffects()
			s.stmt(&e, st)
			out = append(out, &unit{effects: e, lead: lead, body: text, pos: st.Pos(), from: from, to: end})
			continue
		}
		c.first = st
		if strings.Contains(lead, keepComment) || strings.Contains(text, keepComment) {
			c.keep = true
			c.why = "the comment " + keepComment
		}
		calls = append(calls, c)
		begin, wait := p.halves(c, list[i:i+used], text)
		startEnd, waitFrom := end, from
		if !c.declare { // The halves are statements of their own.
			waitFrom = p.line(list[i+1].Pos())
			startEnd = waitFrom - 1
		}
		out = append(out, &unit{kind: starts, call: c, effects: c.begins, lead: lead, body: begin, pos: st.Pos(), from: from, to: startEnd},
			&unit{kind: waits, call: c, effects: c.waits, body: wait, returns: c.returns, pos: c.stmt.Pos(), from: waitFrom, to: end})
		i += used - 1
	}
	return out, calls, why
}

// lines is the source from one line to another one.
func (p *pass) lines(from, to int) string {
	if from > to {
		return ""
	}
	f := p.Fset.File(p.file.FileStart)
	begin, end := f.Offset(f.LineStart(from)), len(p.source)
	if to < f.LineCount() {
		end = f.Offset(f.LineStart(to + 1))
	}
	return string(p.source[begin:end])
}

// halves are the source of the start and of the wait.
func (p *pass) halves(c *syncCall, list []ast.Stmt, text string) (begin, wait string) {
	if !c.declare { // p := c.Go(ctx, x) and p.Wait(ctx) are two statements.
		at := p.line(list[1].Pos())
		return p.lines(p.line(list[0].Pos()), at-1), p.lines(at, p.line(list[len(list)-1].End()))
	}
	base := p.offset(p.Fset.File(p.file.FileStart).LineStart(p.line(list[0].Pos())))
	from, to := p.offset(c.whole.Pos())-base, p.offset(c.whole.End())-base
	indent := text[:len(text)-len(strings.TrimLeft(text, " \t"))]
	return fmt.Sprintf("%s%s := %s\n", indent, c.handle, c.begin), text[:from] + c.handle + c.wait + text[to:]
}

// readCall reads a call at the head of a list, and how many statements it takes. It returns nil and 0 for another statement.
func (p *pass) readCall(s *scope, list []ast.Stmt) (c *syncCall, used int) {
	st := list[0]
	var m *match
	inner := st
	c = &syncCall{declare: true, stmt: st}
	check, isIf := st.(*ast.IfStmt)
	if isIf && check.Init != nil {
		inner = check.Init
	}
	used = 1
	if m = p.matchIn(inner); m == nil && len(list) > 1 && !isIf {
		if m = p.matchTwo(list); m == nil {
			return nil, 0
		}
		c.declare, c.stmt, used = false, list[1], 2
		inner = list[1]
		id := list[0].(*ast.AssignStmt).Lhs[0].(*ast.Ident)
		c.handle, c.variable = id.Name, p.TypesInfo.Defs[id]
	}
	if m == nil {
		return nil, 0
	}
	c.match = m
	p.readResults(c, inner)
	c.begins, c.waits = p.effectsOf(s, c, inner)
	if !c.declare {
		c.begins.writes[c.handle], c.begins.declares[c.handle], c.waits.reads[c.handle] = true, true, true
	}
	if isIf {
		c.result = nil
		clear(c.waits.declares)
		if !p.isCheck(s, c, check, &c.waits) {
			c.waits.stop("its error is not returned at once")
		}
		c.check, c.returns = check, true
		return c, used
	}
	if len(list) > used {
		if check, ok := list[used].(*ast.IfStmt); ok && check.Init == nil && c.errID != "" && p.isCheck(s, c, check, &c.waits) {
			c.check, c.returns = check, true
			used++
		}
	}
	return c, used
}

// matchIn reads a statement that has one call at its end, and nothing else.
func (p *pass) matchIn(st ast.Stmt) *match {
	var x ast.Expr
	switch st := st.(type) {
	case *ast.ExprStmt:
		x = st.X
	case *ast.AssignStmt:
		if len(st.Rhs) == 1 && (st.Tok == token.ASSIGN || st.Tok == token.DEFINE) {
			x = st.Rhs[0]
		}
	case *ast.ReturnStmt:
		if len(st.Results) == 1 {
			x = st.Results[0]
		}
	}
	if c, ok := x.(*ast.CallExpr); ok {
		return p.match(c)
	}
	return nil
}

// matchTwo reads "p := c.Go(ctx, x)" with p.Wait(ctx) in the next statement.
func (p *pass) matchTwo(list []ast.Stmt) *match {
	a, ok := list[0].(*ast.AssignStmt)
	if !ok || a.Tok != token.DEFINE || len(a.Lhs) != 1 || len(a.Rhs) != 1 {
		return nil
	}
	id, isName := a.Lhs[0].(*ast.Ident)
	start, isCall := a.Rhs[0].(*ast.CallExpr)
	if !isName || !isCall || id.Name == "_" || !p.isStart(start) || p.line(list[1].Pos()) == p.line(list[0].End()) {
		return nil
	}
	var x ast.Expr
	switch st := list[1].(type) {
	case *ast.ExprStmt:
		x = st.X
	case *ast.AssignStmt:
		if len(st.Rhs) == 1 {
			x = st.Rhs[0]
		}
	}
	w, ok := x.(*ast.CallExpr)
	if !ok || len(w.Args) != 1 {
		return nil
	}
	f := callee(p.TypesInfo, w)
	sel, isSel := ast.Unparen(w.Fun).(*ast.SelectorExpr)
	if f == nil || !isSel || !isMethod(f, "Call", "Wait") {
		return nil
	}
	if on, ok := sel.X.(*ast.Ident); !ok || p.TypesInfo.ObjectOf(on) != p.TypesInfo.Defs[id] {
		return nil
	}
	return &match{pos: start.Pos(), name: p.nameOf(start), whole: w, source: p.text(w), start: start, begin: p.text(start), wait: ".Wait(" + p.text(w.Args[0]) + ")", ctx: w.Args[0], handle: p.TypesInfo.TypeOf(start)}
}

// readResults reads the variables of the result and of the error.
func (p *pass) readResults(c *syncCall, st ast.Stmt) {
	name := "call"
	if a, ok := st.(*ast.AssignStmt); ok {
		for i, l := range a.Lhs {
			id, ok := l.(*ast.Ident)
			if !ok || id.Name == "_" {
				continue
			}
			switch {
			case i == len(a.Lhs)-1 && isError(p.TypesInfo.TypeOf(id)):
				c.errID = id.Name
			case i == 0:
				c.resultID = id.Name
				c.result = p.TypesInfo.ObjectOf(id)
				name = id.Name + "Call"
			}
		}
	}
	if c.declare {
		c.wanted, c.handle = name, placeholder
	}
}

func isError(t types.Type) bool {
	return t != nil && types.Identical(t, types.Universe.Lookup("error").Type())
}

// effectsOf are the effects of both halves.
func (p *pass) effectsOf(s *scope, c *syncCall, st ast.Stmt) (begins, ends effects) {
	begins, ends = noEffects(), noEffects()
	p.startEffects(s, c, c.start, &begins)
	if c.ctx != nil {
		s.expr(&ends, c.ctx)
	}
	if c.pair && begins.readsHeap { // It may use and change its arguments until it has been waited for.
		begins.writesHeap, ends.readsHeap, ends.writesHeap = true, true, true
	}
	if !c.pair {
		if tuple, ok := p.TypesInfo.TypeOf(c.whole).(*types.Tuple); !ok || tuple.Len() == 0 || !travels(tuple.At(0).Type(), map[types.Type]bool{}) {
			ends.stop("the type of its result may have methods that read it from bytes")
		}
	}
	switch st := st.(type) {
	case *ast.AssignStmt:
		for _, l := range st.Lhs {
			s.store(&ends, l)
			if id, ok := l.(*ast.Ident); ok && st.Tok == token.DEFINE && p.TypesInfo.Defs[id] != nil {
				ends.declares[id.Name] = true
			}
		}
	case *ast.ReturnStmt:
		ends.stop("a return")
	}
	return begins, ends
}

// startEffects adds the effects of starting a call. A chain has several starts within each other.
func (p *pass) startEffects(s *scope, c *syncCall, start *ast.CallExpr, e *effects) {
	if sel, ok := ast.Unparen(start.Fun).(*ast.SelectorExpr); ok && p.TypesInfo.Selections[sel] != nil {
		s.expr(e, sel.X)
	} else {
		s.mention(e, start.Fun)
	}
	for i, a := range start.Args {
		t := p.TypesInfo.TypeOf(a)
		if inner, ok := ast.Unparen(a).(*ast.CallExpr); ok {
			if !c.pair && p.isStart(inner) {
				p.startEffects(s, c, inner, e)
				continue
			}
			if f := callee(p.TypesInfo, inner); f != nil && f.Pkg() != nil && (fullName(f) == workPath+".CallWeight" || fullName(f) == workPath+".Loc") {
				s.mention(e, inner.Fun)
				s.expr(e, inner.Args[0])
				continue
			}
		}
		s.expr(e, a)
		if isContext(t) {
			continue
		}
		if !c.pair && i == 1 && !travels(t, map[types.Type]bool{}) {
			e.stop("the type of its argument may have methods that write it as bytes")
		}
		e.readsHeap = e.readsHeap || refers(t)
	}
}

func isContext(t types.Type) bool {
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == "context" && n.Obj().Name() == "Context"
}

// isCheck reports whether a statement only returns if the call has failed, and adds its effects to the effects of the wait.
func (p *pass) isCheck(s *scope, c *syncCall, st *ast.IfStmt, e *effects) bool {
	cond, ok := st.Cond.(*ast.BinaryExpr)
	if !ok || st.Else != nil || len(st.Body.List) != 1 || cond.Op != token.NEQ || !p.TypesInfo.Types[cond.Y].IsNil() || c.errID == "" {
		return false
	}
	id, ok := cond.X.(*ast.Ident)
	back, isReturn := st.Body.List[0].(*ast.ReturnStmt)
	if !ok || !isReturn || id.Name != c.errID {
		return false
	}
	own := noEffects()
	own.reads[id.Name] = true
	for _, r := range back.Results {
		s.returned(&own, r)
	}
	if len(back.Results) == 0 { // Named results.
		own.readsHeap = true
	}
	if own.barrier != "" {
		return false
	}
	e.add(&own)
	return true
}

// returned adds the effects of a value that is returned with an error. Errors may be wrapped.
func (s *scope) returned(e *effects, x ast.Expr) {
	c, ok := ast.Unparen(x).(*ast.CallExpr)
	if !ok {
		s.expr(e, x)
		return
	}
	f := callee(s.p.TypesInfo, c)
	if f == nil || f.Pkg() == nil || f.Pkg().Path() != "fmt" || f.Name() != "Errorf" || c.Ellipsis.IsValid() {
		s.expr(e, x)
		return
	}
	s.mention(e, c.Fun)
	for _, a := range c.Args {
		if t := s.p.TypesInfo.TypeOf(a); !isError(t) && !isPlain(t) {
			e.stop("a call of " + f.Name() + ", with unknown effects")
		}
		s.expr(e, a)
	}
}
