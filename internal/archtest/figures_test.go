package archtest

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// limits are the largest values that the figures may have. They only fall: if you lower a figure,
// lower its limit. One exception: a new capability may add lines, and the commit that raises a limit
// says why. The debt is to be paid back by splitting and deleting: at first the limit on all lines was
// 59,000, and one package had more than 5,000 lines.
var limits = map[string]int{
	"lines of code":                               115_346,
	"lines of code of the largest package":        6_778,
	"lines of scgs":                               6_966,
	"lines of internal/synccore":                  8_175,
	"lines of synchronizer":                       6_871,
	"lines of cmd/pegasus":                        6_063,
	"lines of predicates":                         6_190,
	"lines of agent":                              6_217,
	"lines of internal/workcore":                  6_629,
	"lines of another package":                    6_268,
	"packages of more than 5,000 lines":           8,
	"files of the package with most files":        48,
	"fields of synccore.Core":                     79,
	"methods of synccore.Core":                    230,
	"fields of another type":                      108,
	"methods of another type":                     124,
	"packages that agent links":                   29,
	"control/program among them":                  0,
	"readers of journals among them":              0,
	"schemas of configurations among them":        0,
	"exported fields without a comment, public":   0,
	"exported fields without a comment, internal": 137,
	"sleeps in tests outside of virtual time":     0,

	"exported names of agent":                      89,
	"exported names of balance/local":              57,
	"exported names of balance":                    51,
	"exported names of clocksync":                  99,
	"exported names of clocksync/clocktest":        14,
	"exported names of clocksync/source":           55,
	"exported names of clocksync/source/ntp":       1,
	"exported names of clocksync/source/otelclock": 2,
	"exported names of connect":                    11,
	"exported names of configs":                    1,
	"exported names of control":                    76,
	"exported names of control/program":            110,
	"exported names of embedded":                   15,
	"exported names of monitor":                    125,
	"exported names of observe":                    18,
	"exported names of predicates":                 85,
	"exported names of scgs":                       150,
	"exported names of balance/span":               13,
	"exported names of work":                       111,
	"exported names of synchronizer":               66,
	"exported names of web":                        12,
}

// sized is what the sources of one package come to, without tests.
type sized struct {
	name               string
	code, lines, files int
	commented, bare    int
}

// TestFigures prints what "make figures" is for, and holds the limits.
func TestFigures(t *testing.T) {
	packages := sizes(t)
	var out strings.Builder
	figures := map[string]int{}
	byCode := slices.SortedFunc(maps.Values(packages), func(a, b *sized) int { return cmp.Compare(b.code, a.code) })
	for _, p := range byCode {
		figures["lines of code"] += p.code
	}
	fmt.Fprintln(&out, "lines, and lines of code: those without comments and blank lines; tests are left out:")
	for _, p := range byCode {
		fmt.Fprintf(&out, "%8d %8d %s\n", p.lines, p.code, p.name)
		if what := "lines of " + p.name; limits[what] > 0 {
			figures[what] = p.lines
		} else {
			figures["lines of another package"] = max(figures["lines of another package"], p.lines)
		}
		if p.lines > 5000 {
			figures["packages of more than 5,000 lines"]++
		}
		figures["files of the package with most files"] = max(figures["files of the package with most files"], p.files)
	}
	figures["lines of code of the largest package"] = byCode[0].code
	typeFigures(t, &out, figures)

	linked := links(t, "agent")
	fmt.Fprintf(&out, "agent links %s\n", strings.Join(linked, " "))
	figures["packages that agent links"] = len(linked)
	for _, name := range linked {
		switch name {
		case "control/program":
			figures["control/program among them"]++
		case "internal/journal":
			figures["readers of journals among them"]++
		case "internal/configfile":
			figures["schemas of configurations among them"]++
		}
	}

	fmt.Fprintln(&out, "exported fields of exported structs: with a comment, without one")
	for _, p := range slices.SortedFunc(maps.Values(packages), func(a, b *sized) int { return cmp.Or(cmp.Compare(b.bare, a.bare), strings.Compare(a.name, b.name)) }) {
		if p.bare+p.commented > 0 {
			fmt.Fprintf(&out, "%8d %5d %s\n", p.commented, p.bare, p.name)
		}
		if isPublic(p.name) {
			figures["exported fields without a comment, public"] += p.bare
		} else {
			figures["exported fields without a comment, internal"] += p.bare
		}
	}
	figures["sleeps in tests outside of virtual time"] = sleeps(t)

	fmt.Fprintln(&out, "figure and limit:")
	for what := range figures {
		if _, limited := limits[what]; !limited {
			t.Errorf("%s: %d, and there is no limit: set it to that", what, figures[what])
		}
	}
	for _, what := range slices.Sorted(maps.Keys(limits)) {
		fmt.Fprintf(&out, "%8d %8d %s\n", figures[what], limits[what], what)
		if figures[what] > limits[what] {
			t.Errorf("%s: %d, and the limit is %d: make it smaller, or raise the limit and say why in the commit message", what, figures[what], limits[what])
		}
	}
	if _, err := io.WriteString(t.Output(), out.String()); err != nil {
		t.Error(err)
	}
}

// sources calls f with every Go file of the tree that git would take, with its
// path below the root.
func sources(t *testing.T, f func(path string, src []byte, file *token.File, tree *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && (name == ".git" || name == "testdata" || name == "bin" || path != root && isModule(path)):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, path, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(root, path)
		f(filepath.ToSlash(below), src, set.File(tree.Pos()), tree)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func sizes(t *testing.T) map[string]*sized {
	t.Helper()
	packages := map[string]*sized{}
	sources(t, func(path string, src []byte, file *token.File, tree *ast.File) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		name := filepath.ToSlash(filepath.Dir(path))
		p := packages[name]
		if p == nil {
			p = &sized{name: name}
			packages[name] = p
		}
		p.files++
		p.lines += file.LineCount() - 1 // What follows the last line feed is no line.
		p.code += codeLines(src)
		for _, d := range tree.Decls {
			if d, ok := d.(*ast.GenDecl); ok {
				p.fields(d, ast.IsGenerated(tree))
			}
		}
	})
	return packages
}

// codeLines counts the lines that are neither blank nor only a comment.
func codeLines(src []byte) int {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(src))
	s.Init(file, src, nil, 0)
	n, last := 0, 0
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return n
		}
		if tok == token.SEMICOLON && text == "\n" {
			continue
		}
		for i, part := range strings.Split(text, "\n") { // A raw string has several.
			if line := file.Line(pos) + i; line > last && (i == 0 || strings.TrimSpace(part) != "") {
				n, last = n+1, line
			}
		}
	}
}

// fields counts the fields of the structs that d declares. Several names of one
// field are one; embedded types are commented where they are declared.
func (p *sized) fields(d *ast.GenDecl, generated bool) {
	for _, spec := range d.Specs {
		named, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		if generated || !named.Name.IsExported() {
			continue
		}
		ast.Inspect(named.Type, func(n ast.Node) bool {
			s, ok := n.(*ast.StructType)
			if !ok {
				return true
			}
			for _, f := range s.Fields.List {
				switch {
				case !slices.ContainsFunc(f.Names, (*ast.Ident).IsExported):
				case f.Doc.Text() != "" || f.Comment.Text() != "":
					p.commented++
				default:
					p.bare++
				}
			}
			return true
		})
	}
}

// links returns the packages of ours that one is built from, with itself.
func links(t *testing.T, pkg string) (ours []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "./"+pkg)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "GOOS=linux")
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list -deps ./%s: %v", pkg, err)
	}
	for path := range strings.FieldsSeq(string(text)) {
		if name, ok := strings.CutPrefix(path, Module+"/"); ok {
			ours = append(ours, name)
		}
	}
	return ours
}

// sleeps counts the calls of time.Sleep in tests where time is real: in files that
// make no bubble. What such a test waits for is a condition, of internal/testwait.
func sleeps(t *testing.T) (n int) {
	t.Helper()
	sources(t, func(path string, _ []byte, file *token.File, tree *ast.File) {
		virtual := slices.ContainsFunc(tree.Imports, func(i *ast.ImportSpec) bool {
			return i.Path.Value == `"testing/synctest"` || i.Path.Value == `"`+Module+`/internal/bus/bustest"`
		})
		if virtual || !strings.HasSuffix(path, "_test.go") {
			return
		}
		ast.Inspect(tree, func(node ast.Node) bool {
			call, ok := node.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if pkg, is := call.X.(*ast.Ident); is && pkg.Name == "time" && call.Sel.Name == "Sleep" {
				t.Logf("%s:%d: time.Sleep", path, file.Line(call.Pos()))
				n++
			}
			return true
		})
	})
	return n
}

// isModule reports whether a directory is a module of its own.
func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}
