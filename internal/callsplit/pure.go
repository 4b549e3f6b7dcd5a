package callsplit

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// pureFunctions are functions of the standard library that only compute, return and do not panic, by package. A package
// without names has all of its functions.
var pureFunctions = map[string][]string{
	"math":         nil,
	"math/bits":    {"Len", "Len8", "Len16", "Len32", "Len64", "OnesCount", "OnesCount64", "Reverse", "LeadingZeros", "TrailingZeros", "RotateLeft"},
	"math/cmplx":   nil,
	"strings":      {"Contains", "ContainsAny", "ContainsRune", "Count", "Cut", "CutPrefix", "CutSuffix", "EqualFold", "Fields", "HasPrefix", "HasSuffix", "Index", "IndexByte", "IndexRune", "Join", "LastIndex", "Replace", "ReplaceAll", "Split", "SplitN", "Title", "ToLower", "ToUpper", "Trim", "TrimLeft", "TrimPrefix", "TrimRight", "TrimSpace", "TrimSuffix", "Compare", "Clone"},
	"strconv":      {"Atoi", "Itoa", "ParseBool", "ParseFloat", "ParseInt", "ParseUint", "Quote", "FormatBool", "Unquote"},
	"unicode":      {"IsDigit", "IsLetter", "IsLower", "IsNumber", "IsPunct", "IsSpace", "IsUpper", "ToLower", "ToUpper"},
	"unicode/utf8": {"RuneCount", "RuneCountInString", "RuneLen", "Valid", "ValidString", "ValidRune"},
	"errors":       {"New"},
	"fmt":          {"Sprint", "Sprintf", "Sprintln"},
	"context":      {"Background", "TODO"},
	"path":         {"Base", "Clean", "Dir", "Ext", "Join", "IsAbs"},
	workPath:       {"Client"},
}

// isKnownPure reports whether a function only computes. Methods do not count.
func isKnownPure(f *types.Func) bool {
	if f.Pkg() == nil || f.Signature().Recv() != nil {
		return false
	}
	names, ok := pureFunctions[f.Pkg().Path()]
	return ok && (names == nil || slices.Contains(names, f.Name()))
}

// plainArguments reports whether a function of fmt gets only values whose text no method makes.
func (s *scope) plainArguments(f *types.Func, c *ast.CallExpr) bool {
	if f.Pkg().Path() != "fmt" {
		return true
	}
	if c.Ellipsis.IsValid() {
		return false
	}
	for _, a := range c.Args {
		if !isPlain(s.p.TypesInfo.TypeOf(a)) {
			return false
		}
	}
	return true
}

// isPlain reports whether a type is a basic type, or a slice or array of a basic type, without methods.
func isPlain(t types.Type) bool {
	if types.NewMethodSet(types.NewPointer(t)).Len() > 0 {
		return false
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return u.Kind() != types.UnsafePointer
	case *types.Slice:
		return isPlain(u.Elem())
	case *types.Array:
		return isPlain(u.Elem())
	}
	return false
}

// refers reports whether a value of the type leads to memory that others may write.
func refers(t types.Type) bool {
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return u.Kind() == types.UnsafePointer
	case *types.Struct:
		for f := range u.Fields() {
			if refers(f.Type()) {
				return true
			}
		}
		return false
	case *types.Array:
		return refers(u.Elem())
	}
	return true
}

// travels reports whether values of the type are written and read as bytes without methods of the program.
func travels(t types.Type, seen map[types.Type]bool) bool {
	if seen[t] {
		return true
	}
	seen[t] = true
	if n, ok := types.Unalias(t).(*types.Named); ok && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == "time" {
		return true
	}
	set := types.NewMethodSet(types.NewPointer(t))
	for m := range set.Methods() {
		for _, prefix := range []string{"Marshal", "Unmarshal", "Append", "IsZero"} {
			if strings.HasPrefix(m.Obj().Name(), prefix) {
				return false
			}
		}
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return true
	case *types.Slice:
		return travels(u.Elem(), seen)
	case *types.Array:
		return travels(u.Elem(), seen)
	case *types.Pointer:
		return travels(u.Elem(), seen)
	case *types.Map:
		return travels(u.Key(), seen) && travels(u.Elem(), seen)
	case *types.Struct:
		for f := range u.Fields() {
			if !travels(f.Type(), seen) {
				return false
			}
		}
		return true
	}
	return false
}

// judge returns the effects of calling a function of this package, or nil if they are unknown. A function that calls
// itself has unknown effects, since it may not end.
func (p *pass) judge(f *types.Func) *effects {
	f = f.Origin()
	if v, ok := p.judged[f]; ok {
		return v
	}
	p.judged[f] = nil
	d := p.declared[f]
	if d == nil || d.Body == nil {
		return nil
	}
	s := p.newScope(d.Pos(), d.Type, d.Body)
	s.callee = true
	v := noEffects()
	s.list(&v, d.Body.List)
	p.judged[f] = &v
	return &v
}

// declaredFunctions finds the functions of the package.
func declaredFunctions(p *pass) map[*types.Func]*ast.FuncDecl {
	out := map[*types.Func]*ast.FuncDecl{}
	for _, file := range p.Files {
		for _, d := range file.Decls {
			if d, ok := d.(*ast.FuncDecl); ok {
				if f, ok := p.TypesInfo.Defs[d.Name].(*types.Func); ok {
					out[f] = d
				}
			}
		}
	}
	return out
}
