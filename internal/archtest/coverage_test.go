package archtest

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write docs/coverage.md again, from testdata/coverage")

// systems are the papers' systems, by the letter of their capabilities, and how many these are.
var systems = []struct {
	letter byte
	name   string
	count  int
}{
	{'P', "PEGASUS", 40},
	{'A', "ALDY", 34},
	{'T', "TDC", 25},
	{'C', "CORD", 37},
	{'D', "ADM", 27},
}

// capability is a line of testdata/coverage: ID: what | where it is shown, or not yet | what lacks.
type capability struct {
	id, what, shown, lacks string
}

var capabilityLine = regexp.MustCompile(`^([PATCD]\d+): ([^|]+) \| ([^|]+?)(?: \| ([^|]+))?$`)

// TestCoverage wants docs/coverage.md as the table says, with every capability once and in order,
// and every place that it names in the tree.
func TestCoverage(t *testing.T) {
	src, err := os.ReadFile(filepath.Join("testdata", "coverage"))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	sources(t, func(path string, _ []byte, _ *token.File, tree *ast.File) {
		for _, d := range tree.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				tests[filepath.ToSlash(filepath.Dir(path))+" "+f.Name.Name] = strings.HasSuffix(path, "_test.go")
			}
		}
	})
	var all []capability
	for i, line := range strings.Split(strings.TrimSpace(string(src)), "\n") {
		m := capabilityLine.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("line %d: %q is not ID: what | where | what lacks", i+1, line)
		}
		c := capability{m[1], m[2], m[3], m[4]}
		if c.shown != "not yet" {
			var places []string
			for place := range strings.FieldsSeq(c.shown) {
				pkg, name, _ := strings.Cut(place, ":")
				if !tests[pkg+" "+name] {
					t.Errorf("%s: there is no test %s in %s", c.id, name, pkg)
				}
				places = append(places, "`"+place+"`")
			}
			c.shown = strings.Join(places, " ")
		}
		all = append(all, c)
	}
	page := coveragePage(t, all)
	path := filepath.Join(root, "docs", "coverage.md")
	if *rewrite {
		if err := os.WriteFile(path, page, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, page) {
		t.Errorf("docs/coverage.md differs from the table (%v): go test ./internal/archtest -run TestCoverage -rewrite", err)
	}
}

// coveragePage is the page. It wants every capability once and in order.
func coveragePage(t *testing.T, all []capability) []byte {
	t.Helper()
	var out bytes.Buffer
	out.WriteString(`# Coverage of the papers

For readers of the five papers: which of their capabilities Pegasus has, and the test that shows each. "Not yet" means that no code
of the tree has it. The last column says what a capability still lacks. The page is made from ` + "`internal/archtest/testdata/coverage`" + `.

`)
	place := 0
	var sum, body bytes.Buffer
	for _, s := range systems {
		fmt.Fprintf(&body, "\n## %s\n\n| | capability | shown by | lacks |\n|---|---|---|---|\n", s.name)
		whole, partly := 0, 0
		for n := range s.count {
			id := string(s.letter) + strconv.Itoa(n+1)
			if place == len(all) || all[place].id != id {
				t.Fatalf("entry %d of the table is not %s", place+1, id)
			}
			c := all[place]
			place++
			fmt.Fprintf(&body, "| %s | %s | %s | %s |\n", c.id, c.what, c.shown, c.lacks)
			switch {
			case c.shown == "not yet":
			case c.lacks == "":
				whole++
			default:
				partly++
			}
		}
		fmt.Fprintf(&sum, "| %s | %d | %d | %d | %d |\n", s.name, s.count, whole, partly, s.count-whole-partly)
	}
	if place != len(all) {
		t.Fatalf("the table goes on after its last capability, with %s", all[place].id)
	}
	out.WriteString("| system | capabilities | whole | in part | not yet |\n|---|---|---|---|---|\n")
	out.Write(sum.Bytes())
	out.Write(body.Bytes())
	return out.Bytes()
}
