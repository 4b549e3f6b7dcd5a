package callsplit

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"maps"
)

// effects are what an expression or a statement does.
type effects struct {
	reads, writes map[string]bool // Names of local variables. Names that are only mentioned are read. "x[]" are the elements of x.
	declares      map[string]bool // names that the statement adds to the block
	readsHeap     bool            // memory that other names may stand for
	writesHeap    bool
	panics        bool   // it may panic
	works         bool   // it calls a function of the package, which may take time
	barrier       string // why nothing moves across it; empty: things may
}

func noEffects() effects {
	return effects{reads: map[string]bool{}, writes: map[string]bool{}, declares: map[string]bool{}}
}

// stop makes the effects a barrier. The first reason counts.
func (e *effects) stop(why string) {
	if e.barrier == "" {
		e.barrier = why
	}
}

// add adds the effects of a part.
func (e *effects) add(o *effects) {
	maps.Copy(e.reads, o.reads)
	maps.Copy(e.writes, o.writes)
	maps.Copy(e.declares, o.declares)
	e.readsHeap, e.writesHeap = e.readsHeap || o.readsHeap, e.writesHeap || o.writesHeap
	e.panics, e.works = e.panics || o.panics, e.works || o.works
	if o.barrier != "" {
		e.stop(o.barrier)
	}
}

// meets returns why two neighbours must keep their order, or empty.
func (e *effects) meets(o *effects) string {
	switch {
	case o.barrier != "":
		return o.barrier
	case e.barrier != "":
		return e.barrier
	}
	if name := common(e.writes, o.writes); name != "" {
		return "both write " + name
	}
	if name := common(e.writes, o.reads); name != "" {
		return "one uses " + name + ", which the other one writes"
	}
	if name := common(e.reads, o.writes); name != "" {
		return "one uses " + name + ", which the other one writes"
	}
	if e.writesHeap && (o.readsHeap || o.writesHeap) || o.writesHeap && e.readsHeap {
		return "a store that may be to memory that the other one uses"
	}
	return ""
}

// common returns the first name in order that both have, or empty.
func common(a, b map[string]bool) (first string) {
	for name := range a {
		if b[name] && (first == "" || name < first) {
			first = name
		}
	}
	return first
}

// scope is the knowledge of the walk over the statements of a function.
type scope struct {
	p       *pass
	shared  map[types.Object]bool   // variables whose address is taken, or that a function literal uses, and named results
	owned   map[types.Object]bool   // slices and maps that nothing else refers to
	indexes map[types.Object]string // loop variables, by the name of the slice that they index without a panic
	callee  bool                    // a function is judged, not a place in it: it may return
	jumps   int                     // loops and switches around the statement, within the unit
}

// newScope reads a function.
// Begin is where its receiver or its type begins.
func (p *pass) newScope(begin token.Pos, kind *ast.FuncType, body *ast.BlockStmt) *scope {
	s := &scope{p: p, shared: map[types.Object]bool{}, owned: map[types.Object]bool{}, indexes: map[types.Object]string{}}
	if kind.Results != nil {
		for _, f := range kind.Results.List {
			for _, name := range f.Names {
				s.shared[p.TypesInfo.Defs[name]] = true
			}
		}
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident: // A function literal and the function around it share variables.
			if v, ok := p.TypesInfo.Uses[n].(*types.Var); ok && !v.IsField() && (v.Pos() < begin || v.Pos() > body.End()) {
				s.shared[v] = true
			}
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				s.share(n.X)
			}
		case *ast.SelectorExpr: // A method with a pointer receiver takes the address, and so does a slice of an array.
			if sel := p.TypesInfo.Selections[n]; sel != nil && sel.Kind() == types.MethodVal && !isPointer(p.TypesInfo.TypeOf(n.X)) {
				s.share(n.X)
			}
		case *ast.SliceExpr:
			if _, array := p.TypesInfo.TypeOf(n.X).Underlying().(*types.Array); array {
				s.share(n.X)
			}
		case *ast.FuncLit:
			ast.Inspect(n.Body, func(in ast.Node) bool {
				if id, ok := in.(*ast.Ident); ok {
					if v, ok := p.TypesInfo.Uses[id].(*types.Var); ok && (v.Pos() < n.Pos() || v.Pos() > n.End()) {
						s.shared[v] = true
					}
				}
				return true
			})
		}
		return true
	})
	s.findOwned(body)
	return s
}

// share notes that the variable of an expression has its address taken. A pointer in front of a field has not.
func (s *scope) share(e ast.Expr) {
	id := base(e)
	if id == nil {
		return
	}
	if v, ok := s.p.TypesInfo.ObjectOf(id).(*types.Var); ok && (ast.Unparen(e) == ast.Expr(id) || !isPointer(v.Type())) {
		s.shared[v] = true
	}
}

func isPointer(t types.Type) bool {
	_, ok := t.Underlying().(*types.Pointer)
	return ok
}

// base is the variable that an expression is a part of, without going through pointers by name.
func base(e ast.Expr) *ast.Ident {
	for {
		switch x := ast.Unparen(e).(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// findOwned finds slices and maps that are made here, and that are only indexed, measured, ranged over, appended to, and returned.
func (s *scope) findOwned(body *ast.BlockStmt) {
	info := s.p.TypesInfo
	uses, good := map[types.Object]int{}, map[types.Object]int{}
	allow := func(e ast.Expr) {
		if id, ok := ast.Unparen(e).(*ast.Ident); ok {
			good[info.ObjectOf(id)]++
		}
	}
	fresh := func(e ast.Expr) bool {
		switch e := ast.Unparen(e).(type) {
		case *ast.CallExpr:
			return s.builtin(e) == "make"
		case *ast.CompositeLit:
			return true
		}
		return false
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if v, ok := info.ObjectOf(n).(*types.Var); ok {
				uses[v]++
			}
		case *ast.IndexExpr:
			allow(n.X)
		case *ast.RangeStmt:
			allow(n.X)
		case *ast.ReturnStmt:
			for _, r := range n.Results {
				allow(r)
			}
		case *ast.CallExpr:
			if name := s.builtin(n); name == "len" || name == "cap" || name == "clear" || name == "delete" {
				allow(n.Args[0])
			}
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if len(n.Values) == 0 || len(n.Values) == len(n.Names) && fresh(n.Values[i]) {
					s.owned[info.Defs[name]] = true
					good[info.Defs[name]]++
				}
			}
		case *ast.AssignStmt:
			if len(n.Lhs) != len(n.Rhs) {
				return true
			}
			for i, l := range n.Lhs {
				id, ok := l.(*ast.Ident)
				if !ok {
					continue
				}
				if info.Defs[id] != nil && fresh(n.Rhs[i]) {
					s.owned[info.Defs[id]] = true
					good[info.Defs[id]]++
				}
				if c, ok := n.Rhs[i].(*ast.CallExpr); ok && s.builtin(c) == "append" {
					if first, ok := c.Args[0].(*ast.Ident); ok && info.ObjectOf(first) == info.ObjectOf(id) {
						good[info.ObjectOf(id)] += 2
					}
				}
			}
		}
		return true
	})
	for v := range s.owned {
		_, slice := v.Type().Underlying().(*types.Slice)
		_, table := v.Type().Underlying().(*types.Map)
		if !slice && !table || s.shared[v] || uses[v] != good[v] {
			delete(s.owned, v)
		}
	}
}

// builtin is the name of the built-in function that is called, or empty.
func (s *scope) builtin(c *ast.CallExpr) string {
	if id, ok := ast.Unparen(c.Fun).(*ast.Ident); ok {
		if b, ok := s.p.TypesInfo.Uses[id].(*types.Builtin); ok {
			return b.Name()
		}
	}
	return ""
}

// isOwned returns the name of an owned slice or map.
func (s *scope) isOwned(e ast.Expr) (name string, ok bool) {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok || !s.owned[s.p.TypesInfo.ObjectOf(id)] {
		return "", false
	}
	return id.Name, true
}

// expr adds the effects of evaluating an expression.
func (s *scope) expr(e *effects, x ast.Expr) {
	if x == nil {
		return
	}
	if tv, ok := s.p.TypesInfo.Types[x]; ok && (tv.Value != nil || tv.IsType()) {
		s.mention(e, x)
		return
	}
	switch x := x.(type) {
	case *ast.Ident:
		e.reads[x.Name] = true
		if v, ok := s.p.TypesInfo.ObjectOf(x).(*types.Var); ok && s.isShared(v) {
			e.readsHeap = true
		}
	case *ast.ParenExpr:
		s.expr(e, x.X)
	case *ast.FuncLit:
		s.mention(e, x)
	case *ast.CompositeLit:
		s.mention(e, x.Type)
		_, table := s.p.TypesInfo.TypeOf(x).Underlying().(*types.Map)
		_, fields := s.p.TypesInfo.TypeOf(x).Underlying().(*types.Struct)
		for _, element := range x.Elts {
			if kv, ok := element.(*ast.KeyValueExpr); ok {
				if !fields {
					s.expr(e, kv.Key)
				}
				if table && mayHoldInterface(s.p.TypesInfo.TypeOf(kv.Key)) {
					e.panics = true
				}
				element = kv.Value
			}
			s.expr(e, element)
		}
	case *ast.UnaryExpr:
		if x.Op == token.ARROW {
			e.stop("a channel operation")
		}
		s.expr(e, x.X)
	case *ast.BinaryExpr:
		s.expr(e, x.X)
		s.expr(e, x.Y)
		e.panics = e.panics || s.operatorPanics(x.Op, x.X, x.Y)
	case *ast.StarExpr:
		s.expr(e, x.X)
		e.readsHeap, e.panics = true, true
	case *ast.SelectorExpr:
		s.selector(e, x)
	case *ast.IndexExpr:
		s.index(e, x)
	case *ast.IndexListExpr:
		s.mention(e, x)
	case *ast.SliceExpr:
		for _, part := range []ast.Expr{x.X, x.Low, x.High, x.Max} {
			s.expr(e, part)
		}
		e.panics = true
	case *ast.TypeAssertExpr:
		s.expr(e, x.X)
		e.panics = true
	case *ast.CallExpr:
		s.call(e, x)
	default:
		e.stop("an expression that the analyzer does not know")
	}
}

// mention notes the names in a node: they must mean the same at the new place.
func (s *scope) mention(e *effects, n ast.Node) {
	if n == nil {
		return
	}
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			e.reads[id.Name] = true
		}
		return true
	})
}

// isShared reports whether a variable may be read or written under another name.
func (s *scope) isShared(v *types.Var) bool {
	return s.shared[v] || isGlobal(v)
}

func isGlobal(v *types.Var) bool { return v.Pkg() != nil && v.Parent() == v.Pkg().Scope() }

func (s *scope) selector(e *effects, x *ast.SelectorExpr) {
	sel := s.p.TypesInfo.Selections[x]
	if sel == nil { // PACKAGE.NAME
		s.expr(e, ast.Expr(x.Sel))
		s.mention(e, x.X)
		return
	}
	s.expr(e, x.X)
	if sel.Kind() != types.FieldVal {
		e.stop("a method value")
	}
	if sel.Indirect() {
		e.readsHeap, e.panics = true, true
	}
}

func (s *scope) index(e *effects, x *ast.IndexExpr) {
	if tv := s.p.TypesInfo.Types[x.Index]; tv.IsType() { // An instance of a generic function.
		s.mention(e, x)
		return
	}
	s.expr(e, x.Index)
	s.expr(e, x.X)
	switch t := s.p.TypesInfo.TypeOf(x.X).Underlying().(type) {
	case *types.Map:
		e.panics = e.panics || mayHoldInterface(t.Key())
	case *types.Basic: // a string
		e.panics = e.panics || !s.indexSafe(x)
		return
	case *types.Array:
		e.panics = e.panics || s.p.TypesInfo.Types[x.Index].Value == nil && !s.indexSafe(x)
		return
	default: // a slice, or a pointer to an array
		e.panics = e.panics || !s.indexSafe(x)
	}
	if name, ok := s.isOwned(x.X); ok {
		e.reads[name+"[]"] = true
	} else {
		e.readsHeap = true
	}
}

// indexSafe reports whether an index is the variable of a loop over just that slice.
func (s *scope) indexSafe(x *ast.IndexExpr) bool {
	i, ok := x.Index.(*ast.Ident)
	if !ok {
		return false
	}
	list, ok := x.X.(*ast.Ident)
	return ok && s.indexes[s.p.TypesInfo.ObjectOf(i)] == list.Name
}

// mayHoldInterface reports whether comparing values of a type may panic.
func mayHoldInterface(t types.Type) bool {
	switch u := t.Underlying().(type) {
	case *types.Basic, *types.Pointer, *types.Chan:
		return false
	case *types.Struct:
		for f := range u.Fields() {
			if mayHoldInterface(f.Type()) {
				return true
			}
		}
		return false
	case *types.Array:
		return mayHoldInterface(u.Elem())
	}
	return true
}

func (s *scope) operatorPanics(op token.Token, x, y ast.Expr) bool {
	info := s.p.TypesInfo
	switch op { //nolint:exhaustive // Other operators do not panic.
	case token.QUO, token.REM, token.QUO_ASSIGN, token.REM_ASSIGN:
		t, basic := info.TypeOf(x).Underlying().(*types.Basic)
		if basic && t.Info()&(types.IsFloat|types.IsComplex) != 0 {
			return false
		}
		v := info.Types[y].Value
		return v == nil || constant.Sign(v) == 0
	case token.SHL, token.SHR, token.SHL_ASSIGN, token.SHR_ASSIGN:
		t, basic := info.TypeOf(y).Underlying().(*types.Basic)
		return info.Types[y].Value == nil && (!basic || t.Info()&types.IsUnsigned == 0)
	case token.EQL, token.NEQ:
		if info.Types[x].IsNil() || info.Types[y].IsNil() {
			return false
		}
		return mayHoldInterface(info.TypeOf(x)) || mayHoldInterface(info.TypeOf(y))
	}
	return false
}

func (s *scope) call(e *effects, c *ast.CallExpr) {
	info := s.p.TypesInfo
	if info.Types[c.Fun].IsType() {
		s.mention(e, c.Fun)
		s.expr(e, c.Args[0])
		if _, array := info.TypeOf(c).Underlying().(*types.Array); array {
			e.panics = true
		}
		if _, pointer := info.TypeOf(c).Underlying().(*types.Pointer); pointer {
			e.panics = true
		}
		return
	}
	if name := s.builtin(c); name != "" {
		s.builtinCall(e, c, name)
		return
	}
	for _, a := range c.Args {
		s.expr(e, a)
	}
	f := callee(info, c)
	if f == nil {
		s.mention(e, c.Fun)
		e.stop("a call of a function value, with unknown effects")
		return
	}
	if sel, ok := ast.Unparen(c.Fun).(*ast.SelectorExpr); ok && info.Selections[sel] != nil {
		s.expr(e, sel.X)
		if info.Selections[sel].Indirect() {
			e.readsHeap, e.panics = true, true
		}
	} else {
		s.mention(e, c.Fun)
	}
	if isKnownPure(f) && s.plainArguments(f, c) {
		for _, a := range c.Args {
			e.readsHeap = e.readsHeap || refers(info.TypeOf(a))
		}
		return
	}
	if v := s.p.judge(f); v != nil && v.barrier == "" && !v.writesHeap {
		e.works, e.panics, e.readsHeap = true, e.panics || v.panics, e.readsHeap || v.readsHeap
		return
	}
	switch {
	case f.Pkg() != nil && (f.Pkg().Path() == "sync" || f.Pkg().Path() == "sync/atomic"):
		e.stop("a lock or another operation of the package " + f.Pkg().Name())
	default:
		e.stop("a call of " + f.Name() + ", with unknown effects")
	}
}

func (s *scope) builtinCall(e *effects, c *ast.CallExpr, name string) {
	info := s.p.TypesInfo
	e.reads[name] = true
	for _, a := range c.Args {
		s.expr(e, a)
	}
	switch name {
	case "len", "cap", "min", "max", "complex", "real", "imag", "new":
		if len(c.Args) > 0 {
			if _, channel := info.TypeOf(c.Args[0]).Underlying().(*types.Chan); channel {
				e.stop("a channel operation")
			}
			if _, table := info.TypeOf(c.Args[0]).Underlying().(*types.Map); table {
				if own, ok := s.isOwned(c.Args[0]); ok {
					e.reads[own+"[]"] = true
				} else {
					e.readsHeap = true
				}
			}
		}
	case "make":
		for _, a := range c.Args[1:] {
			inner, ok := a.(*ast.CallExpr)
			if v := info.Types[a].Value; v == nil && (!ok || s.builtin(inner) != "len") {
				e.panics = true
			}
		}
		if len(c.Args) > 2 {
			e.panics = true
		}
	case "append":
		if own, ok := s.isOwned(c.Args[0]); ok {
			e.reads[own+"[]"], e.writes[own+"[]"] = true, true
		} else {
			e.readsHeap, e.writesHeap = true, true
		}
		e.readsHeap = e.readsHeap || c.Ellipsis.IsValid()
	case "copy", "delete", "clear":
		if own, ok := s.isOwned(c.Args[0]); ok {
			e.writes[own+"[]"] = true
		} else {
			e.writesHeap = true
		}
		e.readsHeap, e.panics = true, true
	case "close":
		e.stop("a channel operation")
	default:
		e.stop("a call of " + name)
	}
}

// callee is the function or method that is called, if it is known before the program runs.
func callee(info *types.Info, c *ast.CallExpr) *types.Func {
	fun := ast.Unparen(c.Fun)
	switch x := fun.(type) {
	case *ast.IndexExpr:
		fun = x.X
	case *ast.IndexListExpr:
		fun = x.X
	}
	var id *ast.Ident
	switch x := ast.Unparen(fun).(type) {
	case *ast.Ident:
		id = x
	case *ast.SelectorExpr:
		id = x.Sel
	default:
		return nil
	}
	f, _ := info.Uses[id].(*types.Func)
	return f
}
