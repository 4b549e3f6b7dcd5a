package archtest

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// imported returns the packages of ours that each of them imports.
func imported(t *testing.T) map[string][]string {
	t.Helper()
	imports := map[string][]string{}
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, Module+"/")
		imports[name] = nil
		for _, path := range p.Imports {
			if ours, ok := strings.CutPrefix(path, Module+"/"); ok {
				imports[name] = append(imports[name], ours)
			}
		}
	}
	return imports
}

// block returns the text that follows a mark in a page.
func block(t *testing.T, page, mark string) string {
	t.Helper()
	src, err := os.ReadFile(root + "/" + page)
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(src), "<!-- "+mark+" -->\n```text\n")
	if !ok {
		t.Fatalf("%s has no block of text after <!-- %s -->", page, mark)
	}
	text, _, _ := strings.Cut(after, "```\n")
	return text
}

// drawing returns each package on its floor, which is above all that it imports, the
// highest first. Behind it stand the packages that it imports, but for those that one
// of these reaches as well. Packages of a floor with the same imports share a line.
func drawing(t *testing.T) string {
	t.Helper()
	imports, reach, floor := imported(t), map[string]map[string]bool{}, map[string]int{}
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
		label := strconv.Itoa(at)
		var order []string // of the arrows on this floor
		names := map[string][]string{}
		for _, name := range slices.Sorted(maps.Keys(imports)) {
			if floor[name] != at {
				continue
			}
			arrows := strings.Join(slices.DeleteFunc(slices.Clone(imports[name]), func(below string) bool {
				return slices.ContainsFunc(imports[name], func(other string) bool { return reach[other][below] })
			}), " ")
			if names[arrows] == nil {
				order = append(order, arrows)
			}
			names[arrows] = append(names[arrows], name)
		}
		for _, arrows := range order {
			line := fmt.Sprintf("%2s  %-*s  %s", label, widest, strings.Join(names[arrows], ", "), arrows)
			label = ""
			out.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	return out.String()
}

// TestDrawing holds the drawing of docs/architecture.md against the tree.
func TestDrawing(t *testing.T) {
	got := block(t, "docs/architecture.md", "drawing")
	if want := drawing(t); got != want {
		t.Errorf("the drawing of docs/architecture.md is not that of the tree; paste this there:\n%s", want)
	}
}
