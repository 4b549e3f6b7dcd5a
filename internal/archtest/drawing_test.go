package archtest

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// drawing returns each package on its floor, which is above all that it imports, the
// highest first. Behind it stand the packages that it imports, but for those that one
// of these reaches as well.
func drawing(t *testing.T) string {
	t.Helper()
	imports, reach, floor := map[string][]string{}, map[string]map[string]bool{}, map[string]int{}
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, Module+"/")
		imports[name] = nil
		for _, path := range p.Imports {
			if ours, ok := strings.CutPrefix(path, Module+"/"); ok {
				imports[name] = append(imports[name], ours)
			}
		}
	}
	var visit func(name string)
	visit = func(name string) {
		if reach[name] != nil {
			return
		}
		reach[name] = map[string]bool{}
		for _, below := range imports[name] {
			visit(below)
			floor[name] = max(floor[name], floor[below]+1)
			reach[name][below] = true
			maps.Copy(reach[name], reach[below])
		}
	}
	top, widest := 0, 0
	for name := range imports {
		visit(name)
		top, widest = max(top, floor[name]), max(widest, len(name))
	}
	var out strings.Builder
	for at := top; at >= 0; at-- {
		label := fmt.Sprint(at)
		for _, name := range slices.Sorted(maps.Keys(imports)) {
			if floor[name] != at {
				continue
			}
			arrows := slices.DeleteFunc(slices.Clone(imports[name]), func(below string) bool {
				return slices.ContainsFunc(imports[name], func(other string) bool { return reach[other][below] })
			})
			line := fmt.Sprintf("%2s  %-*s  %s", label, widest, name, strings.Join(arrows, " "))
			label = ""
			out.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	return out.String()
}

// TestDrawing holds the drawing of docs/architecture.md against the tree.
func TestDrawing(t *testing.T) {
	page, err := os.ReadFile(root + "/docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(page), "<!-- drawing -->\n```text\n")
	got, _, _ := strings.Cut(after, "```\n")
	if want := drawing(t); got != want {
		t.Errorf("the drawing of docs/architecture.md is not that of the tree; paste this there:\n%s", want)
	}
}
