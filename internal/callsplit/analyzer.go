package callsplit

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// workPath is the package whose calls the analyzer knows.
const workPath = "github.com/gopegasus/pegasus/work"

// keepComment in front of a call, or behind it, keeps the call where it is.
const keepComment = "callsplit:keep"

// maxBound is the largest bound of a stream. A client has at most 1024 open calls of a function.
const maxBound = 1024

const about = `starts remote calls early and waits for them late

It finds calls of functions of other members that are waited for at once. The suggested fixes split such a call, so that it
runs beside other calls, and turn a loop of independent calls into a stream with a bound. After a fix a call may be made
although an earlier one fails; its answer is dropped then. The comment //callsplit:keep keeps a call as it is.`

// pairs are functions that wait, with those that start the same call. Names are PACKAGE.FUNC or PACKAGE.TYPE.METHOD.
type pairs map[string]string

// String is for flag.Value.
func (p pairs) String() string {
	var list []string
	for f, start := range p {
		list = append(list, f+"="+start)
	}
	slices.Sort(list)
	return strings.Join(list, ",")
}

// Set is for flag.Value.
func (p pairs) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		f, start, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok || !strings.Contains(f, ".") || !strings.Contains(start, ".") {
			return fmt.Errorf("pair %q: give the function that waits and the function that starts, as PACKAGE.FUNC=PACKAGE.START", part)
		}
		if scopeOf(f) != scopeOf(start) {
			return fmt.Errorf("pair %q: its functions are of two packages or types: give two of the same one", part)
		}
		p[f] = start
	}
	return nil
}

// scopeOf is a name without its last part.
func scopeOf(name string) string { return name[:strings.LastIndex(name, ".")] }

// bound is how many calls of a stream are open.
type bound int

// String is for flag.Value.
func (b *bound) String() string { return strconv.Itoa(int(*b)) }

// Set is for flag.Value.
func (b *bound) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 2 || n > maxBound {
		return errors.New("the number of open calls must be between 2 and " + strconv.Itoa(maxBound))
	}
	*b = bound(n)
	return nil
}

// options are the flags.
type options struct {
	calls   pairs
	bound   bound
	explain bool
}

// New returns the analyzer, with flags of its own: calls, bound and explain.
func New() *analysis.Analyzer {
	o := &options{calls: pairs{}, bound: 32}
	a := &analysis.Analyzer{
		Name: "callsplit", Doc: about, URL: "https://github.com/gopegasus/pegasus/blob/main/docs/vet.md",
		Run: func(p *analysis.Pass) (any, error) { return nil, analyze(p, o) },
	}
	a.Flags.Var(o.calls, "calls", "further calls: `PACKAGE.FUNC=PACKAGE.START,...`, functions that wait, and those that start the same call")
	a.Flags.Var(&o.bound, "bound", "how many calls of a loop are open, `N` from 2 to 1024")
	a.Flags.BoolVar(&o.explain, "explain", false, "report each call that is left alone, and why")
	return a
}

// pass is the analysis of a package.
type pass struct {
	*analysis.Pass
	*options
	declared map[*types.Func]*ast.FuncDecl
	judged   map[*types.Func]*effects
	file     *ast.File
	source   []byte
	names    map[string]bool      // in use in the file
	done     map[token.Pos]bool   // calls that were reported
	loops    map[token.Pos]string // why the loops of calls are no streams
}

func analyze(ap *analysis.Pass, o *options) error {
	p := &pass{Pass: ap, options: o, judged: map[*types.Func]*effects{}}
	p.declared = declaredFunctions(p)
	for _, file := range ap.Files {
		if ast.IsGenerated(file) {
			continue
		}
		source, err := ap.ReadFile(ap.Fset.File(file.FileStart).Name())
		if err != nil {
			return fmt.Errorf("callsplit: file %s cannot be read: %w", ap.Fset.File(file.FileStart).Name(), err)
		}
		p.file, p.source, p.names, p.done, p.loops = file, source, map[string]bool{}, map[token.Pos]bool{}, map[token.Pos]string{}
		ast.Inspect(file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				p.names[id.Name] = true
			}
			return true
		})
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Body != nil {
					p.function(n.Pos(), n.Type, n.Body)
				}
			case *ast.FuncLit:
				p.function(n.Pos(), n.Type, n.Body)
			}
			return true
		})
		p.explainRest(file)
	}
	return nil
}

// text is the source of a node.
func (p *pass) text(n ast.Node) string {
	return string(p.source[p.offset(n.Pos()):p.offset(n.End())])
}

func (p *pass) offset(pos token.Pos) int { return p.Fset.File(p.file.FileStart).Offset(pos) }

// line is a line of the source. Comments that rename lines do not count.
func (p *pass) line(pos token.Pos) int {
	return p.Fset.File(p.file.FileStart).PositionFor(pos, false).Line
}

// fresh returns a name that the file does not use, and notes it.
func (p *pass) fresh(name string) string {
	unique := name
	for i := 2; p.names[unique] || token.IsKeyword(unique) || types.Universe.Lookup(unique) != nil; i++ {
		unique = name + strconv.Itoa(i)
	}
	p.names[unique] = true
	return unique
}

// function looks at each list of statements of a function. Function literals are functions of their own.
func (p *pass) function(begin token.Pos, kind *ast.FuncType, body *ast.BlockStmt) {
	all := p.names
	p.names = maps.Clone(all)
	defer func() { p.names = all }()
	s := p.newScope(begin, kind, body)
	visit := func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.LabeledStmt: // A jump may lead here.
			return false
		case *ast.BlockStmt:
			return !p.block(s, n.Lbrace, n.List)
		case *ast.CaseClause:
			return !p.block(s, n.Colon, n.Body)
		case *ast.CommClause:
			return !p.block(s, n.Colon, n.Body)
		}
		return true
	}
	ast.Inspect(body, visit)
}

// block looks at one list of statements, and reports whether it suggests a fix, so that lists within are left for the next run.
func (p *pass) block(s *scope, open token.Pos, list []ast.Stmt) (fixed bool) {
	if len(list) == 0 {
		return false
	}
	for _, st := range list {
		var body *ast.BlockStmt
		switch st := st.(type) {
		case *ast.ForStmt:
			body = st.Body
		case *ast.RangeStmt:
			body = st.Body
		}
		if body != nil && p.stream(s, st, body) {
			fixed = true
		}
	}
	if fixed {
		return true
	}
	units, calls, why := p.units(s, open, list)
	if len(calls) == 0 {
		return false
	}
	if why != "" {
		p.leave(calls, why)
		return false
	}
	return p.split(units, calls)
}

// leave notes why calls are left alone.
func (p *pass) leave(calls []*syncCall, why string) {
	for _, c := range calls {
		if c.why == "" {
			c.why = why
		}
		if loop := p.loops[c.pos]; loop != "" {
			c.why = loop
		}
		p.explainOnce(c.pos, c.name, c.why)
	}
}

// markDone notes that a call was reported.
func (p *pass) markDone(c *syncCall) {
	for _, pos := range append(c.others, c.pos) {
		p.done[pos] = true
	}
}

// explainOnce reports a call that is left alone, if that is asked for.
func (p *pass) explainOnce(pos token.Pos, name, why string) {
	if p.explain && !p.done[pos] {
		p.done[pos] = true
		p.Report(analysis.Diagnostic{Pos: pos, Category: "explain", Message: fmt.Sprintf("call of %s: left alone: %s", name, cmp.Or(why, "nothing runs beside it"))})
	}
}

// explainRest reports the calls that no list of statements has as its own.
func (p *pass) explainRest(file *ast.File) {
	if !p.explain {
		return
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok {
			if m := p.match(c); m != nil && !p.done[m.pos] {
				p.explainOnce(m.pos, m.name, "the call is a part of a larger statement, or under a label: assign its result to variables, in a list of statements without a label")
			}
		}
		return true
	})
}
