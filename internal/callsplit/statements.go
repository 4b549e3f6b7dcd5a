package callsplit

import (
	"go/ast"
	"go/token"
	"go/types"
)

// list adds the effects of a block. The names that it declares end with it.
func (s *scope) list(e *effects, list []ast.Stmt) {
	for _, st := range list {
		one := noEffects()
		s.stmt(&one, st)
		clear(one.declares)
		e.add(&one)
	}
}

// inner is list within a loop or a switch, which a jump may leave.
func (s *scope) inner(e *effects, list []ast.Stmt) {
	s.jumps++
	s.list(e, list)
	s.jumps--
}

// part adds the effects of a statement whose names end with the unit.
func (s *scope) part(e *effects, st ast.Stmt) {
	if st != nil {
		s.list(e, []ast.Stmt{st})
	}
}

// stmt adds the effects of a statement.
func (s *scope) stmt(e *effects, st ast.Stmt) {
	switch st := st.(type) {
	case *ast.EmptyStmt:
	case *ast.ExprStmt:
		s.expr(e, st.X)
	case *ast.AssignStmt:
		s.assignment(e, st)
	case *ast.IncDecStmt:
		s.expr(e, st.X)
		s.store(e, st.X)
	case *ast.DeclStmt:
		s.declaration(e, st)
	case *ast.BlockStmt:
		s.list(e, st.List)
	case *ast.IfStmt:
		s.part(e, st.Init)
		s.expr(e, st.Cond)
		s.part(e, st.Body)
		s.part(e, st.Else)
	case *ast.ForStmt:
		s.loop(e, st)
	case *ast.RangeStmt:
		s.rangeLoop(e, st)
	case *ast.SwitchStmt:
		s.part(e, st.Init)
		s.expr(e, st.Tag)
		if st.Tag != nil && mayHoldInterface(s.p.TypesInfo.TypeOf(st.Tag)) {
			e.panics = true
		}
		s.inner(e, st.Body.List)
	case *ast.TypeSwitchStmt:
		s.part(e, st.Init)
		switch a := st.Assign.(type) {
		case *ast.ExprStmt:
			s.mention(e, a)
			s.expr(e, a.X)
		case *ast.AssignStmt:
			s.mention(e, a)
			s.expr(e, a.Rhs[0])
		}
		s.inner(e, st.Body.List)
	case *ast.CaseClause:
		for _, x := range st.List {
			s.expr(e, x)
		}
		s.list(e, st.Body)
	case *ast.ReturnStmt:
		if !s.callee {
			e.stop("a return")
		}
		for _, x := range st.Results {
			s.expr(e, x)
		}
	case *ast.BranchStmt:
		if st.Label != nil || s.jumps == 0 || st.Tok == token.GOTO || st.Tok == token.FALLTHROUGH {
			e.stop("a jump")
		}
	case *ast.DeferStmt:
		e.stop("a defer")
	case *ast.GoStmt:
		e.stop("the start of a goroutine")
	case *ast.SendStmt, *ast.SelectStmt, *ast.CommClause:
		e.stop("a channel operation")
	case *ast.LabeledStmt:
		e.stop("a label")
	default:
		e.stop("a statement that the analyzer does not know")
	}
}

func (s *scope) assignment(e *effects, st *ast.AssignStmt) {
	for _, r := range st.Rhs {
		if x, ok := ast.Unparen(r).(*ast.TypeAssertExpr); ok && len(st.Lhs) == 2 && len(st.Rhs) == 1 {
			s.expr(e, x.X)
			continue
		}
		s.expr(e, r)
	}
	for _, l := range st.Lhs {
		if st.Tok != token.ASSIGN && st.Tok != token.DEFINE {
			s.expr(e, l)
			e.panics = e.panics || s.operatorPanics(st.Tok, l, st.Rhs[0])
		}
		s.store(e, l)
		if id, ok := l.(*ast.Ident); ok && st.Tok == token.DEFINE && s.p.TypesInfo.Defs[id] != nil {
			e.declares[id.Name] = true
		}
	}
}

// store adds the effects of a store to a place.
func (s *scope) store(e *effects, l ast.Expr) {
	switch l := ast.Unparen(l).(type) {
	case *ast.Ident:
		if l.Name == "_" {
			return
		}
		e.writes[l.Name] = true
		if v, ok := s.p.TypesInfo.ObjectOf(l).(*types.Var); ok {
			if isGlobal(v) {
				e.stop("a store to the package variable " + l.Name)
			}
			e.writesHeap = e.writesHeap || s.shared[v]
		}
	case *ast.SelectorExpr:
		s.expr(e, l)
		if sel := s.p.TypesInfo.Selections[l]; sel == nil {
			e.stop("a store to a package variable")
		} else if sel.Indirect() {
			e.writesHeap = true
		} else {
			s.store(e, l.X)
		}
	case *ast.IndexExpr:
		s.expr(e, l)
		if _, array := s.p.TypesInfo.TypeOf(l.X).Underlying().(*types.Array); array {
			s.store(e, l.X)
			return
		}
		if _, table := s.p.TypesInfo.TypeOf(l.X).Underlying().(*types.Map); table {
			e.panics = true // It may be nil.
		}
		if name, ok := s.isOwned(l.X); ok {
			e.writes[name+"[]"] = true
		} else {
			e.writesHeap = true
		}
	default:
		s.expr(e, l)
		e.writesHeap = true
	}
}

func (s *scope) declaration(e *effects, st *ast.DeclStmt) {
	d, ok := st.Decl.(*ast.GenDecl)
	if !ok {
		e.stop("a declaration that the analyzer does not know")
		return
	}
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.ValueSpec:
			if spec.Type != nil {
				s.mention(e, spec.Type)
			}
			for _, v := range spec.Values {
				s.expr(e, v)
			}
			for _, name := range spec.Names {
				s.store(e, name)
				e.declares[name.Name] = true
			}
		case *ast.TypeSpec:
			s.mention(e, spec)
			e.writes[spec.Name.Name], e.declares[spec.Name.Name] = true, true
		}
	}
}

// loop adds the effects of a loop that counts to a bound. Any other one may not end.
func (s *scope) loop(e *effects, st *ast.ForStmt) {
	head, body := noEffects(), noEffects()
	s.part(&head, st.Init)
	s.expr(&head, st.Cond)
	s.inner(&body, st.Body.List)
	counted := s.counted(st)
	if counted != nil {
		limit := noEffects()
		s.expr(&limit, counted.limit)
		limit.reads[counted.variable.Name()] = true
		if common(limit.reads, body.writes) != "" || limit.readsHeap && body.writesHeap || s.shared[counted.variable] {
			counted = nil
		}
	}
	e.add(&head)
	e.add(&body)
	if counted == nil {
		e.stop("a loop that may not end")
	}
}

func (s *scope) rangeLoop(e *effects, st *ast.RangeStmt) {
	s.expr(e, st.X)
	for _, x := range []ast.Expr{st.Key, st.Value} {
		if x != nil {
			s.store(e, x)
		}
	}
	switch t := s.p.TypesInfo.TypeOf(st.X).Underlying().(type) {
	case *types.Slice, *types.Map:
		if name, ok := s.isOwned(st.X); ok {
			e.reads[name+"[]"] = true
		} else {
			e.readsHeap = true
		}
	case *types.Basic, *types.Array:
	case *types.Pointer:
		e.readsHeap, e.panics = true, true
	case *types.Chan:
		e.stop("a channel operation")
	case *types.Signature:
		e.stop("a call of an iterator, with unknown effects")
	default:
		_ = t
		e.stop("a loop over a value whose type the analyzer does not know")
	}
	if st.Tok == token.DEFINE {
		for _, x := range []ast.Expr{st.Key, st.Value} {
			if id, ok := x.(*ast.Ident); ok && s.shared[s.p.TypesInfo.Defs[id]] {
				e.writesHeap = true
			}
		}
		list, ok := st.X.(*ast.Ident)
		key, isName := st.Key.(*ast.Ident)
		if ok && isName && !s.assigned(st.Body, s.p.TypesInfo.Defs[key], s.p.TypesInfo.ObjectOf(list)) {
			if v := s.p.TypesInfo.Defs[key]; v != nil && !s.shared[v] && !s.isSharedObject(list) {
				s.indexes[v] = list.Name
			}
		}
	}
	s.inner(e, st.Body.List)
}

func (s *scope) isSharedObject(id *ast.Ident) bool {
	v, ok := s.p.TypesInfo.ObjectOf(id).(*types.Var)
	return !ok || s.isShared(v)
}

// assigned reports whether a block writes one of the variables themselves.
func (s *scope) assigned(body *ast.BlockStmt, vars ...types.Object) (found bool) {
	is := func(x ast.Expr) {
		if id := base(x); id != nil {
			for _, v := range vars {
				if _, name := ast.Unparen(x).(*ast.Ident); v != nil && s.p.TypesInfo.ObjectOf(id) == v && (name || isArray(v.Type())) {
					found = true
				}
			}
		}
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, l := range n.Lhs {
				is(l)
			}
		case *ast.IncDecStmt:
			is(n.X)
		case *ast.RangeStmt:
			if n.Tok == token.ASSIGN {
				is(n.Key)
				is(n.Value)
			}
		}
		return true
	})
	return found
}

func isArray(t types.Type) bool {
	_, ok := t.Underlying().(*types.Array)
	return ok
}

// counting is a loop that counts up by one.
type counting struct {
	variable *types.Var
	name     *ast.Ident // of the variable; nil: it has none
	limit    ast.Expr
	from     string // the source of the first value
}

// counted reads "for i := a; i < n; i++", where a is a constant that is not negative.
func (s *scope) counted(st *ast.ForStmt) *counting {
	init, ok := st.Init.(*ast.AssignStmt)
	if !ok || init.Tok != token.DEFINE || len(init.Lhs) != 1 || len(init.Rhs) != 1 {
		return nil
	}
	id, ok := init.Lhs[0].(*ast.Ident)
	if !ok {
		return nil
	}
	v, ok := s.p.TypesInfo.Defs[id].(*types.Var)
	if !ok || !types.Identical(v.Type(), types.Typ[types.Int]) {
		return nil
	}
	first := s.p.TypesInfo.Types[init.Rhs[0]].Value
	cond, ok := st.Cond.(*ast.BinaryExpr)
	if !ok || first == nil || cond.Op != token.LSS || first.String()[0] == '-' {
		return nil
	}
	left, ok := cond.X.(*ast.Ident)
	post, ok2 := st.Post.(*ast.IncDecStmt)
	if !ok || !ok2 || post.Tok != token.INC || s.p.TypesInfo.ObjectOf(left) != v {
		return nil
	}
	up, ok := post.X.(*ast.Ident)
	if !ok || s.p.TypesInfo.ObjectOf(up) != v {
		return nil
	}
	return &counting{v, id, cond.Y, s.p.text(init.Rhs[0])}
}
