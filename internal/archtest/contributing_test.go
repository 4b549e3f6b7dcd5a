package archtest

import (
	"go/ast"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestFloors holds the short drawing of CONTRIBUTING.md against the tree: each package
// but the examples is in it once, and no line imports one above it.
func TestFloors(t *testing.T) {
	floor := map[string]int{}
	for i, line := range strings.Split(strings.TrimSpace(block(t, "CONTRIBUTING.md", "floors")), "\n") {
		for name := range strings.FieldsSeq(line[len("what they are of"):]) {
			if _, twice := floor[name]; twice {
				t.Errorf("%s is given twice in the drawing", name)
			}
			floor[name] = i
		}
	}
	imports := imported(t)
	for name := range floor {
		if _, ok := imports[name]; !ok {
			t.Errorf("the drawing has %s, which is no package", name)
		}
	}
	for name, below := range imports {
		at, ok := floor[name]
		if !ok && name != "configs" && name != "internal/archtest" && !inside(name, "examples") {
			t.Errorf("the drawing lacks %s", name)
		}
		for _, other := range below {
			if ok && other != "configs" && floor[other] < at {
				t.Errorf("%s imports %s, which stands above it", name, other)
			}
		}
	}
}

// place is a file as a page names it, and what it declares.
var (
	place = regexp.MustCompile("`([\\w./-]+\\.go)(?::(\\w+))?`")
	aTest = regexp.MustCompile(`\bTest[A-Z]\w+\b`)
)

// TestPlaces wants the files, functions, types, variables and tests that
// CONTRIBUTING.md names, and those of the other pages for who works on the code.
func TestPlaces(t *testing.T) {
	declared, tests := map[string][]string{}, map[string]bool{}
	sources(t, func(path string, _ []byte, _ *token.File, tree *ast.File) {
		names := []string{""}
		for _, d := range tree.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				names = append(names, d.Name.Name)
				tests[d.Name.Name] = tests[d.Name.Name] || strings.HasSuffix(path, "_test.go")
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						names = append(names, spec.Name.Name)
					case *ast.ValueSpec:
						for _, name := range spec.Names {
							names = append(names, name.Name)
						}
					}
				}
			}
		}
		declared[path] = names
	})
	for page, least := range map[string]int{"CONTRIBUTING.md": 50, "docs/architecture.md": 3, "docs/journal.md": 0, "docs/model.md": 0} {
		src, err := os.ReadFile(root + "/" + page)
		if err != nil {
			t.Fatal(err)
		}
		places := place.FindAllStringSubmatch(string(src), -1)
		for _, m := range places {
			if !slices.Contains(declared[m[1]], m[2]) {
				t.Errorf("%s names %s, and there is no such file, or no such declaration in it", page, m[0])
			}
		}
		for _, name := range aTest.FindAllString(string(src), -1) {
			if !tests[name] && name != "TestName" {
				t.Errorf("%s names %s, and there is no such test", page, name)
			}
		}
		if len(places) < least {
			t.Errorf("only %d places of %s were looked for", len(places), page)
		}
	}
}
