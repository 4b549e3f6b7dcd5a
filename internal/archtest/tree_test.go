package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// listed is what these tests need of "go list -json".
type listed struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	CgoFiles   []string
	Imports    []string
}

// packages returns every package of the module as it is built for Linux, the
// platform with the most files of its own.
func packages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Dir,GoFiles,CgoFiles,Imports", "./...")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS=linux")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var list []listed
	dec := json.NewDecoder(bytes.NewReader(out))
	for {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		if len(p.GoFiles)+len(p.CgoFiles) > 0 {
			list = append(list, p)
		}
	}
}

func TestImports(t *testing.T) {
	list := packages(t)
	covered := map[string]bool{}
	for _, p := range list {
		pkg := strings.TrimPrefix(p.ImportPath, Module+"/")
		for _, fault := range faults(pkg, p.Imports) {
			t.Error(fault)
		}
		for _, table := range []map[string][]string{Imports, Pure} {
			pattern, _, _ := row(table, pkg)
			covered[pattern] = true
		}
	}
	for pattern := range Imports {
		if !covered[pattern] {
			t.Errorf("the row of %s in archtest.Imports is for no package: delete it", pattern)
		}
	}
	if !slices.ContainsFunc(list, func(p listed) bool { return p.ImportPath == Module+"/internal/archtest" }) {
		t.Errorf("go list did not see this package among %d; the test looks at the wrong tree", len(list))
	}
}

// sequential are packages that are not pure, and start no goroutine either: their atomic values are for
// callers, whose tests run with the race detector, and what they start are processes.
var sequential = []string{"examples/tsp/bnb", "examples/tsp/solve", "examples/tsp/tsplib"}

// TestPureHasNoGoroutine: a package of the table Pure has no go statement, nor has a sequential one, so
// "make race" leaves out just these. Locks are kept out of pure packages by the table Impure.
func TestPureHasNoGoroutine(t *testing.T) {
	for _, p := range packages(t) {
		pkg := strings.TrimPrefix(p.ImportPath, Module+"/")
		if _, _, pure := row(Pure, pkg); !pure && !slices.Contains(sequential, pkg) {
			continue
		}
		for _, name := range p.GoFiles {
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if _, starts := n.(*ast.GoStmt); starts {
					t.Errorf("%s/%s:%d starts a goroutine, and make race leaves the package out: leave that to its caller", pkg, name, set.Position(n.Pos()).Line)
				}
				return true
			})
		}
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`(?m)^PURE := ((?:.*\\\n)*.*)$`).FindSubmatch(makefile)
	if list == nil {
		t.Fatal("the Makefile has no list PURE")
	}
	left := strings.Fields(strings.ReplaceAll(string(list[1]), "\\", ""))
	want := slices.AppendSeq(slices.Clone(sequential), maps.Keys(Pure))
	slices.Sort(want)
	if !slices.Equal(slices.Sorted(slices.Values(left)), want) {
		t.Errorf("PURE in the Makefile is %v, and the table Pure with the sequential packages is %v: make them equal", left, want)
	}
}

// TestComments wants a package comment in each package, and in a public one its
// own file for it.
func TestComments(t *testing.T) {
	for _, p := range packages(t) {
		pkg := strings.TrimPrefix(p.ImportPath, Module+"/")
		var in []string
		for _, name := range slices.Concat(p.GoFiles, p.CgoFiles) {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.PackageClauseOnly)
			if err != nil {
				t.Fatal(err)
			}
			if file.Doc.Text() != "" {
				in = append(in, name)
			}
		}
		switch {
		case len(in) != 1:
			t.Errorf("%s has a package comment in %d files %v, want one", pkg, len(in), in)
		case isPublic(pkg) && in[0] != "doc.go":
			t.Errorf("%s is public and has its package comment in %s, want doc.go", pkg, in[0])
		}
	}
}

// machinePath finds paths that hold only on the machine of their author.
var machinePath = regexp.MustCompile(`(^|[\s"'(=:\x60])/(home|Users|root|work)/[\w.-]`)

func TestMachinePath(t *testing.T) {
	for text, want := range map[string]bool{
		"cd /" + "home/jo/src": true, `"/` + `work/x"`: true, "(/" + "root/go)": true, "=/" + "Users/a": true,
		"http://host/home/x": false, "./home/x": false, "/homes/x": false, "/tmp/x": false, "a/work/b": false,
	} {
		if got := machinePath.MatchString(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestNoMachinePaths reads every text file of the tree.
func TestNoMachinePaths(t *testing.T) {
	read := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && (name == ".git" || name == "testdata" || name == "bin") {
			return filepath.SkipDir
		}
		if !entry.Type().IsRegular() || name == ".git" { // It is a file in a worktree.
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if bytes.IndexByte(src[:min(len(src), 8000)], 0) >= 0 {
			return nil
		}
		read++
		for i, line := range bytes.Split(src, []byte("\n")) {
			if machinePath.Match(line) {
				t.Errorf("%s:%d: a path that only its author's machine has: %s", path, i+1, bytes.TrimSpace(line))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if read < 5 {
		t.Errorf("read only %d files; the test looks at the wrong tree", read)
	}
}
