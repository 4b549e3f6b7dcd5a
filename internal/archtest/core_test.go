package archtest

import (
	"go/ast"
	"go/token"
	"path"
	"strings"
	"testing"
)

// TestACoreIsStepped: the core of a synchronizer has Step, and beside it only what a handover
// needs (docs/architecture.md).
func TestACoreIsStepped(t *testing.T) {
	steps := 0
	sources(t, func(file string, _ []byte, _ *token.File, tree *ast.File) {
		if path.Dir(file) != "internal/synccore" || strings.HasSuffix(file, "_test.go") || path.Base(file) == "handover.go" {
			return
		}
		for _, d := range tree.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || !f.Name.IsExported() {
				continue
			}
			if star, ok := f.Recv.List[0].Type.(*ast.StarExpr); !ok || star.X.(*ast.Ident).Name != "Core" { //nolint:forcetypeassert // It has no type parameters.
				continue
			}
			if steps++; f.Name.Name != "Step" {
				t.Errorf("%s: Core.%s: ask by InAsk, or tell it in the Output", file, f.Name.Name)
			}
		}
	})
	if steps == 0 {
		t.Error("no Step was found")
	}
}
