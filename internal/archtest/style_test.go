package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// hardWords are constructions that have to be read twice: a pronoun where a noun would name the thing,
// and phrases for which there is a usual word.
var hardWords = regexp.MustCompile(`(?i)\b(what is|what are|what was|that of|those of|of one|of whom|who has|who is|one that|ones that|as long as which|with what|of what|by itself|by themselves|` +
	`(is|are|was|were) told|(goes|go|going|went|gone) on|stands? by for|in force|nobody's|somebody)\b`)

// pronounFirst is a message that begins with a pronoun.
var pronounFirst = regexp.MustCompile(`^(it|they|this|that|these|those|he|who|what) `)

// hardLimits are how many of the constructions there may be. They only fall.
var hardLimits = map[string]int{
	"docs for users":             18,
	"other docs":                 14,
	"comments of public names":   0,
	"other comments":             862,
	"messages":                   12,
	"messages, pronoun at first": 23,
	"wide lines of docs":         0,
}

// docsOfUsers are read by people who use Pegasus; the other docs by people who change it.
var docsOfUsers = []string{
	"README.md", "docs/tutorial.md", "docs/config.md", "docs/predicates.md", "docs/rule-tests.md", "docs/cli.md", "docs/ui.md", "docs/connecting.md", "docs/security.md",
	"docs/operations.md", "docs/control.md", "docs/work.md", "docs/vet.md", "docs/balance.md", "docs/observation.md", "docs/clocks.md", "docs/journal.md", "docs/traces.md",
}

// TestStyle counts what makes prose hard to read.
func TestStyle(t *testing.T) {
	counts := map[string]int{}
	where := map[string]map[string]int{}
	note := func(area, file string, n int) {
		if counts[area] += n; n > 0 {
			if where[area] == nil {
				where[area] = map[string]int{}
			}
			where[area][file] += n
		}
	}
	docs, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(docs, filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")) {
		name := relative(path)
		if name == "docs/decisions.md" || name == "docs/coverage.md" {
			continue
		}
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		area := "other docs"
		if slices.Contains(docsOfUsers, name) {
			area = "docs for users"
		}
		note(area, name, len(hardWords.FindAllString(prose(string(src)), -1)))
		note("wide lines of docs", name, wideLines(string(src)))
	}
	for _, f := range goFiles(t) {
		public := !strings.Contains(f.name, "internal/") && !strings.HasPrefix(f.name, "examples/") && !strings.HasPrefix(f.name, "cmd/") && !strings.HasPrefix(f.name, "tools/")
		documented := map[*ast.CommentGroup]bool{f.tree.Doc: true}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				documented[n.Doc] = n.Name.IsExported()
			case *ast.GenDecl:
				documented[n.Doc] = true
			case *ast.TypeSpec:
				documented[n.Doc] = n.Name.IsExported()
			case *ast.Field:
				documented[n.Doc] = len(n.Names) > 0 && n.Names[0].IsExported()
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil && strings.Count(text, " ") > 1 && !f.test {
					note("messages", f.name, len(hardWords.FindAllString(text, -1)))
					if pronounFirst.MatchString(text) {
						note("messages, pronoun at first", f.name, 1)
					}
				}
			}
			return true
		})
		for _, c := range f.tree.Comments {
			area := "other comments"
			if public && !f.test && documented[c] {
				area = "comments of public names"
			}
			note(area, f.name, len(hardWords.FindAllString(c.Text(), -1)))
		}
	}
	for _, area := range slices.Sorted(maps.Keys(hardLimits)) {
		t.Logf("%6d %6d %s", counts[area], hardLimits[area], area)
		if counts[area] <= hardLimits[area] {
			continue
		}
		files := slices.SortedFunc(maps.Keys(where[area]), func(a, b string) int { return where[area][b] - where[area][a] })
		t.Errorf("%s: %d, and the limit is %d: write the noun instead of a pronoun, and the usual word. Most are in %v", area, counts[area], hardLimits[area], files[:min(8, len(files))])
	}
}

type goFile struct {
	name string
	tree *ast.File
	test bool
}

// goFiles are all files of the module, parsed with their comments.
func goFiles(t *testing.T) (all []goFile) {
	t.Helper()
	set := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if base := entry.Name(); base == ".git" || base == "testdata" || base == "bin" {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".go" || filepath.Base(path) == "style_test.go" {
			return nil
		}
		tree, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		all = append(all, goFile{relative(path), tree, strings.HasSuffix(path, "_test.go")})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func relative(path string) string {
	return strings.TrimPrefix(filepath.ToSlash(path), root+"/")
}

// prose is a page without its code.
func prose(page string) string {
	var b strings.Builder
	code := false
	for line := range strings.Lines(page) {
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			code = !code
		case !code && !strings.HasPrefix(line, "    "):
			b.WriteString(inlineCode.ReplaceAllString(line, "code"))
		}
	}
	return b.String()
}

var inlineCode = regexp.MustCompile("`[^`]*`")

// wideLines counts lines of prose with more than 120 characters. Tables and code have lines of their own width.
func wideLines(page string) int {
	n, code := 0, false
	for line := range strings.Lines(page) {
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			code = !code
		case !code && !strings.HasPrefix(line, "    ") && !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "<") && len([]rune(strings.TrimSuffix(line, "\n"))) > 120:
			n++
		}
	}
	return n
}
