package archtest

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// shape is a struct, or another type with methods, of the sources without tests.
type shape struct {
	name     string // PACKAGE.TYPE
	fields   int    // that it declares, without embedded structs of this module
	embedded []string
	methods  int // that it declares
}

// reachable counts the fields of a struct, with those of the structs embedded in it.
func (s *shape) reachable(all map[string]*shape) int {
	n := s.fields
	for _, name := range s.embedded {
		if e := all[name]; e != nil {
			n += e.reachable(all)
		} else {
			n++ // A type that is not in this module.
		}
	}
	return n
}

// shapes returns the types of the module by PACKAGE.TYPE, and the exported names of each package.
func shapes(t *testing.T) (types map[string]*shape, exported map[string]int) {
	t.Helper()
	types, exported = map[string]*shape{}, map[string]int{}
	sources(t, func(file string, _ []byte, _ *token.File, tree *ast.File) {
		if strings.HasSuffix(file, "_test.go") {
			return
		}
		pkg := path.Dir(file)
		find := func(name string) *shape {
			name = pkg + "." + name
			if types[name] == nil {
				types[name] = &shape{name: name}
			}
			return types[name]
		}
		imports := map[string]string{}
		for _, i := range tree.Imports {
			name, _ := strconv.Unquote(i.Path.Value)
			if name, ours := strings.CutPrefix(name, Module+"/"); ours {
				as := path.Base(name)
				if i.Name != nil {
					as = i.Name.Name
				}
				imports[as] = name
			}
		}
		for _, d := range tree.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				owner := ""
				if d.Recv != nil {
					owner = receiver(d.Recv.List[0].Type)
					find(owner).methods++
				}
				if d.Name.IsExported() && (owner == "" || ast.IsExported(owner)) {
					exported[pkg]++
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.ValueSpec:
						for _, name := range spec.Names {
							if name.IsExported() {
								exported[pkg]++
							}
						}
					case *ast.TypeSpec:
						if spec.Name.IsExported() {
							exported[pkg]++
						}
						if s, ok := spec.Type.(*ast.StructType); ok {
							find(spec.Name.Name).declare(s, pkg, imports)
						}
					}
				}
			}
		}
	})
	return types, exported
}

// declare notes the fields of a struct.
func (s *shape) declare(fields *ast.StructType, pkg string, imports map[string]string) {
	for _, f := range fields.Fields.List {
		s.fields += len(f.Names)
		if len(f.Names) > 0 {
			continue
		}
		e := f.Type
		if star, ok := e.(*ast.StarExpr); ok {
			e = star.X
		}
		switch e := e.(type) {
		case *ast.Ident:
			s.embedded = append(s.embedded, pkg+"."+e.Name)
		case *ast.SelectorExpr:
			from, _ := e.X.(*ast.Ident)
			s.embedded = append(s.embedded, imports[from.Name]+"."+e.Sel.Name)
		default:
			s.fields++
		}
	}
}

// receiver is the name of the type that a method belongs to.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// typeFigures prints the largest types and the exported names of the public packages, and adds
// their figures.
func typeFigures(t *testing.T, out *strings.Builder, figures map[string]int) {
	t.Helper()
	const core = "internal/synccore.Core"
	types, exported := shapes(t)
	list := slices.SortedFunc(maps.Values(types), func(a, b *shape) int { return strings.Compare(a.name, b.name) })
	for _, by := range []struct {
		what string
		of   func(*shape) int
	}{
		{"fields", func(s *shape) int { return s.reachable(types) }},
		{"methods", func(s *shape) int { return s.methods }},
	} {
		slices.SortStableFunc(list, func(a, b *shape) int { return cmp.Compare(by.of(b), by.of(a)) })
		fmt.Fprintf(out, "types with most %s:\n", by.what)
		for _, s := range list[:5] {
			fmt.Fprintf(out, "%8d %s\n", by.of(s), s.name)
		}
		for _, s := range list {
			what := by.what + " of another type"
			if s.name == core {
				what = by.what + " of synccore.Core"
			}
			figures[what] = max(figures[what], by.of(s))
		}
	}
	fmt.Fprintln(out, "exported names, with methods, of public packages:")
	for _, pkg := range slices.Sorted(maps.Keys(exported)) {
		if isPublic(pkg) {
			fmt.Fprintf(out, "%8d %s\n", exported[pkg], pkg)
			figures["exported names of "+pkg] = exported[pkg]
		}
	}
}

// TestReachable: fields of embedded structs count, also of those embedded in them.
func TestReachable(t *testing.T) {
	all := map[string]*shape{
		"p.A": {name: "p.A", fields: 2, embedded: []string{"p.B", "sync.Mutex"}},
		"p.B": {name: "p.B", fields: 3, embedded: []string{"q.C"}},
		"q.C": {name: "q.C", fields: 4},
	}
	if n := all["p.A"].reachable(all); n != 2+3+4+1 {
		t.Errorf("%d fields", n)
	}
}
