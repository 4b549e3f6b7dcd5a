package program_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/configfile"
)

// TestDocumentedPrograms reads the programs of docs/control.md, and compares its
// drawings with what is drawn of the constructs beside them.
func TestDocumentedPrograms(t *testing.T) {
	src, err := os.ReadFile("../../docs/control.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(src)
	_, rest, _ := strings.Cut(page, "```yaml\n")
	whole, _, _ := strings.Cut(rest, "```\n")
	if _, err := configfile.ParseProgram("docs/control.md", []byte(whole)); err != nil {
		t.Error(err)
	}
	_, constructs, _ := strings.Cut(page, "## The constructs\n")
	drawn := 0
	for section := range strings.SplitSeq(constructs, "\n### ") {
		_, rest, ok := strings.Cut(section, "```yaml\n")
		text, rest, _ := strings.Cut(rest, "```\n")
		drawing, _, found := strings.Cut(strings.TrimPrefix(rest, "```\n"), "```\n")
		if !ok || !found || !strings.HasPrefix(rest, "```\n") {
			continue
		}
		drawn++
		equal := false
		for _, body := range bodies(text) {
			equal = equal || drawOf(t, body) == drawing
		}
		if !equal {
			t.Errorf("no construct of the section is drawn so:\n%s\n%s", drawing, drawOf(t, bodies(text)[0]))
		}
	}
	if drawn < 5 {
		t.Errorf("%d drawings are left", drawn)
	}
}

// bodies takes constructs apart: one a line in braces, the rest is one.
func bodies(text string) (list []string) {
	var rest strings.Builder
	for l := range strings.Lines(text) {
		if l, _, _ = strings.Cut(l, "#"); strings.HasPrefix(l, "{") {
			list = append(list, strings.TrimSpace(l))
		} else {
			rest.WriteString("    " + strings.TrimRight(l, "\n") + "\n")
		}
	}
	if rest.Len() > 0 {
		list = append(list, "\n"+rest.String())
	}
	return list
}

var documented = regexp.MustCompile(`\b(integrate|divide|left|right|search|smooth|keep|compress|read|trace|step)\b`)

// drawOf draws a construct, in a program that declares what it names.
func drawOf(t *testing.T, body string) string {
	t.Helper()
	var file strings.Builder
	file.WriteString(`synchronizers:
  gsync:
    members: {group: g}
    predicates:
      hurry: {when: len(members) > 1, signal: {kind: activate, region: r}}
`)
	for _, name := range []string{"good", "noisy", "photos", "texts", "open", "precise"} {
		file.WriteString("      " + name + ": {when: len(members) > 1}\n")
	}
	file.WriteString("program:\n  name: docs\n")
	if strings.Contains(body, "on: quadrature") {
		file.WriteString("  processors: {quadrature: {}}\n")
	}
	file.WriteString("  blocks:\n")
	seen := map[string]bool{}
	for _, name := range documented.FindAllString(body, -1) {
		if !seen[name] {
			seen[name] = true
			file.WriteString("    " + name + ": {}\n")
		}
	}
	read, err := configfile.ParseProgram("docs/control.md", []byte(file.String()+"  body: "+body+"\n"))
	if err != nil {
		t.Error(err)
		return ""
	}
	return read.Plan.Text()
}
