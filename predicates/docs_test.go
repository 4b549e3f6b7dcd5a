package predicates_test

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/parser/operator"

	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// TestPage evaluates what docs/predicates.md shows, from its beginning to its end:
// blocks by the word behind the fence, and tables whose first head is X.
func TestPage(t *testing.T) {
	raw, err := os.ReadFile("../docs/predicates.md")
	if err != nil {
		t.Fatal(err)
	}
	p := page{t: t, seen: map[string]int{}}
	kind := ""
	var block []string
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSuffix(line, "\n")
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && kind == "":
			kind, block = fence+"?", nil
		case isFence:
			p.block(strings.TrimSuffix(kind, "?"), block)
			kind = ""
		case kind != "":
			block = append(block, line)
		default:
			p.row(line)
		}
	}
	for kind, least := range map[string]int{"predicates": 50, "to": 3, "cost": 5, "refused": 5, "cell": 100} {
		if p.seen[kind] < least {
			t.Errorf("the page has %d of %s, want at least %d", p.seen[kind], kind, least)
		}
	}
	p.names(string(raw))
	p.limits(string(raw))
}

// page is how far the page has been read.
type page struct {
	t *testing.T
	w *world
	// The heads of the current table: what stands for X.
	heads []string
	seen  map[string]int
}

func (p *page) block(kind string, lines []string) {
	p.t.Helper()
	switch kind {
	case "yaml scope":
		p.scope(lines)
	case "state":
		p.state(lines)
	case "next":
		p.w.next(p.t, listed(lines))
	case "refused":
		for text := range strings.SplitSeq(strings.Join(lines, "\n"), "\n\n") {
			p.seen[kind]++
			src := strings.TrimSpace(strings.Split(text, "\n")[1])
			if got := refusal(p.w.env.Bool(src)); got != text {
				p.t.Errorf("got\n%s\nthe page has\n%s", got, text)
			}
		}
	case "predicates", "to", "cost":
		for _, line := range lines {
			src, want, ok := strings.Cut(line, "//")
			if !ok {
				p.t.Errorf("no // in %q", line)
			}
			p.seen[kind]++
			p.compare(strings.TrimSpace(src), p.result(kind, line), strings.TrimSpace(want))
		}
	case "yaml":
	default:
		p.t.Errorf("no test reads a block of %q", kind)
	}
}

func (p *page) compare(src, got, want string) {
	p.t.Helper()
	if got != want {
		p.t.Errorf("%s\ngot  %s\npage %s", src, got, want)
	}
}

// result evaluates a text: a condition, a value, or receivers.
func (p *page) result(kind, src string) string {
	p.t.Helper()
	if kind == "to" {
		src, _, _ = strings.Cut(src, "//") // The word all stands alone.
		program, err := p.w.env.Members(src)
		if err != nil {
			return err.Error()
		}
		found, reason := program.EvalMembers(nil, p.w.scope)
		var names []string
		for _, i := range found {
			names = append(names, p.w.who[i].Name)
		}
		return strings.TrimSpace(strings.Join(names, " ") + " " + reason)
	}
	program, err := p.w.env.Value(src, scgs.Field{})
	if err != nil {
		return err.Error()
	}
	if kind == "cost" {
		return strconv.Itoa(program.Cost())
	}
	value, reason := program.EvalValue(p.w.scope)
	if reason != "" {
		return "unknown: " + reason
	}
	return value.String()
}

// row reads a line of the text: of tables whose first head is X each cell is what
// the text before it comes to with the head of its column.
func (p *page) row(line string) {
	p.t.Helper()
	cells := strings.Split(strings.Trim(line, "| "), " | ")
	switch {
	case !strings.HasPrefix(line, "|"):
		p.heads = nil
	case cells[0] == "X":
		p.heads = cells
	case p.heads != nil && !strings.HasPrefix(line, "|--"):
		if len(cells) != len(p.heads) {
			p.t.Fatalf("%q has %d cells", line, len(cells))
		}
		for i, want := range cells[1:] {
			p.seen["cell"]++
			src := isX.ReplaceAllLiteralString(strings.Trim(cells[0], "`"), "("+strings.Trim(p.heads[i+1], "`")+")")
			got, _, _ := strings.Cut(p.result("", src), ": ")
			p.compare(src, got, want)
		}
	}
}

var isX = regexp.MustCompile(`\bX\b`)

// scope declares what a block has as a configuration would; from_parent stands for
// the signals of the level above.
func (p *page) scope(lines []string) {
	p.t.Helper()
	p.w = &world{env: &predicates.Env{Prev: true}}
	section := ""
	for _, line := range lines {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		rest = strings.NewReplacer("{", " ", "}", " ", "[", " ", "]", " ", ",", " ", ":", " ").Replace(rest)
		words := strings.Fields(rest)
		switch {
		case line[0] != ' ':
			section = name
			continue
		case section == "from_parent":
			p.w.env.Parent = append(p.w.env.Parent, predicates.ParentSignal{Name: name, Fields: schema(p.t, words[0]+": "+words[1])})
			continue
		case words[0] == "type":
			words = words[1:2]
		case words[0] == "enum" || words[0] == "list":
		case len(words) != 1:
			p.t.Fatalf("no type in %q", line)
		}
		field := schema(p.t, name+": "+strings.Join(words, " "))[0]
		switch section {
		case "state":
			p.w.env.State = append(p.w.env.State, field)
		case "memory":
			p.w.env.Memory = append(p.w.env.Memory, field)
		case "process":
			p.w.env.Process = append(p.w.env.Process, field)
		default:
			p.t.Fatalf("no section %q", section)
		}
	}
}

// state is a global state, the first of an epoch.
func (p *page) state(lines []string) {
	p.t.Helper()
	var members, others []string
	for _, line := range listed(lines) {
		switch first, rest, _ := strings.Cut(line, " "); first {
		case "memory":
			others = append(others, line)
		case "from_parent":
			others = append(others, rest)
		case "process":
			defer func() { p.w.scope.SetProcess(values(p.t, p.w.env.Process, strings.Fields(rest))) }()
		default:
			members = append(members, line)
		}
	}
	p.w.members(p.t, members)
	p.w.set(p.t, &datadriven.TestData{Input: strings.Join(others, "\n")})
}

// listed writes the lists of the page as the scenarios do.
func listed(lines []string) []string {
	var out []string
	for _, line := range lines {
		out = append(out, strings.ReplaceAll(line, ",", "|"))
	}
	return out
}

// names wants every function on the page, and no other in its table.
func (p *page) names(text string) {
	p.t.Helper()
	_, table, _ := strings.Cut(text, "\n## Functions\n")
	table, _, _ = strings.Cut(table, "```")
	for _, name := range predicates.Functions() {
		if !strings.Contains(table, "`"+name+"(") {
			p.t.Errorf("the page lacks the function %s", name)
		}
	}
}

// TestPageListLimit wants the member limit that the page names for a loop over lists.
func TestPageListLimit(t *testing.T) {
	e := &predicates.Env{State: scgs.Schema{{Name: "tags", Type: scgs.ListOf(scgs.String)}}}
	const loop, in = `any(members, any(.tags, # == "ssd"))`, `any(members, "ssd" in .tags)`
	for src, fits := range map[string][2]bool{loop: {true, false}, in: {true, true}} {
		for i, limit := range []int{256, 257} {
			e.MaxMembers = limit
			if _, err := e.Bool(src); (err == nil) != fits[i] {
				t.Errorf("%s with %d members: %v", src, limit, err)
			}
		}
	}
}

// limits wants the text of the refusal of each limit on the page.
func (p *page) limits(text string) {
	p.t.Helper()
	e := &predicates.Env{State: scgs.Schema{{Name: "x", Type: scgs.Float}}}
	var sums []string
	for i := range 40 {
		sums = append(sums, fmt.Sprintf("sum(members, .x + %d) > 0", i))
	}
	wide := &predicates.Env{State: e.State, MaxMembers: 100_000}
	for _, l := range []struct {
		env          *predicates.Env
		src, message string
	}{
		{e, strings.Repeat(" ", 4096) + "true", "the text has 4100 bytes, at most 4096 are allowed"},
		{e, strings.Repeat("(", 65) + "true", "brackets and unary operators are nested deeper than 64"},
		{e, "1" + strings.Repeat("+1", 600) + " > 0", "the text has more than 500 parts"},
		{e, "all(members, all(members, all(members, .online)))", "more than 2 loops over members stand inside one another"},
		{e, "any(members, let l = .x; any(members, .x > l))", "the expression takes more than 50000 steps with 1000 members"},
		{wide, strings.Join(sums, " or "), "when an epoch begins"},
		{e, `any(members, .name == "` + strings.Repeat("x", 300) + `")`, "a string has at most 256 bytes, this one has 300"},
	} {
		_, err := l.env.Bool(l.src)
		if err == nil || !strings.Contains(err.Error(), l.message) {
			p.t.Errorf("%.60s: %v, want %q", l.src, err, l.message)
		}
		if !strings.Contains(text, l.message+"`") {
			p.t.Errorf("the page lacks %q", l.message)
		}
	}
}

// TestPagePrecedence holds the table of precedence against expr's: its rows in their order,
// and each example reads as the text beside it.
func TestPagePrecedence(t *testing.T) {
	text, err := os.ReadFile("../docs/predicates.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n| operators | for example | is read as |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")[1:]
	seen, last := map[string]bool{}, math.MaxInt
	for _, row := range rows {
		cells := strings.Split(strings.Trim(strings.ReplaceAll(row, `\|`, "\x00"), "| "), " | ")
		for i := range cells {
			cells[i] = strings.ReplaceAll(cells[i], "\x00", "|")
		}
		binds := operator.Binary
		if strings.HasPrefix(cells[0], "unary") || strings.HasPrefix(cells[0], "`not`") {
			binds = operator.Unary
		}
		level := 0
		for _, op := range regexp.MustCompile("`[^`]+`").FindAllString(cells[0], -1) {
			op = strings.Trim(op, "`")
			is, ok := binds[op]
			if !ok {
				continue // No operator of these tables: a field, a call, ? :, not in.
			}
			if seen[op] = true; level > 0 && level != is.Precedence {
				t.Errorf("%s stands in one row with others that bind as %d, and binds as %d", op, level, is.Precedence)
			}
			level = is.Precedence
		}
		if level >= last {
			t.Errorf("row %s binds as %d, the row above as %d", cells[0], level, last)
		}
		if level > 0 {
			last = level
		}
		if got, want := tree(t, cells[1]), tree(t, cells[2]); got != want {
			t.Errorf("%s is read as %s, not as %s", cells[1], got, want)
		}
	}
	for _, op := range []string{"and", "&&", "or", "||", "==", "!=", "<", "<=", ">", ">=", "in", "+", "-", "*", "/", "%", "not", "!"} {
		if !seen[op] {
			t.Errorf("the table lacks %s", op)
		}
	}
}

// tree is how expr reads a text in a cell.
func tree(t *testing.T, cell string) string {
	t.Helper()
	parsed, err := parser.Parse(strings.Trim(cell, "`"))
	if err != nil {
		t.Fatalf("%s: %v", cell, err)
	}
	return ast.Dump(parsed.Node)
}
