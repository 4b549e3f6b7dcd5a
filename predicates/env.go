package predicates

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/scgs"
)

// Env declares the names that the predicates of a synchronizer may read. Its schemas are valid
// ones ([scgs.Schema.Validate]); nothing in it changes once it is in use. The methods that
// compile may run concurrently.
type Env struct {
	State      scgs.Schema    // the fields of each member's local state
	Memory     scgs.Schema    // the synchronizer's own variables
	Process    scgs.Schema    // the state of the process whose threads are the members; empty elsewhere
	Parent     []ParentSignal // the signals of the parent that may be read
	MaxMembers int            // the member limit that costs are counted for; 0 means DefaultMaxMembers
	Prev       bool           // the global state before may be read, where the Scope receives each new one
	Params     []Param        // the parameters that may be read
	// Filled are the names that may follow .work., of the fields that members fill without the
	// program. The schemas have the fields that are read, with work. before the name. Empty:
	// none.
	Filled []string

	base *Env                  // that this one has more names than; nil: none
	lets map[string]definition // the names
}

// ParentSignal declares the data of a signal from the parent.
type ParentSignal struct {
	Name   string      // of the signal
	Fields scgs.Schema // its data; none is a list
}

// DefaultMaxMembers is the member limit of an Env that names none.
const DefaultMaxMembers = 1000

func (e *Env) maxMembers() int {
	if e.MaxMembers > 0 {
		return e.MaxMembers
	}
	return DefaultMaxMembers
}

// isWord reports whether some enum declares the name as a word.
func (e *Env) isWord(name string) bool {
	of := func(f scgs.Field) bool { return slices.Contains(f.Words, name) }
	return slices.ContainsFunc(e.State, of) || slices.ContainsFunc(e.Memory, of) || slices.ContainsFunc(e.Process, of)
}

// Redacts names the first field with Redact that is among the uses, as an expression
// reads it; empty if there is none. Of a signal from the parent no single datum is
// known to be read: one with Redact counts for the signal.
func (e *Env) Redacts(u Uses) string {
	for _, of := range []struct {
		fields scgs.Schema
		used   uint64
		prefix string
	}{{e.State, u.Fields, "."}, {e.Memory, u.Memory, "memory."}, {e.Process, u.Process, "process."}} {
		for i, f := range of.fields {
			if f.Redact && of.used>>i&1 == 1 {
				return of.prefix + f.Name
			}
		}
	}
	for _, signal := range e.Parent {
		if slices.Contains(u.Parent, signal.Name) && signal.Fields.Redacts() {
			return "from_parent." + signal.Name
		}
	}
	return ""
}

// Bool compiles a condition, as of `when`. The error is an *[Error].
func (e *Env) Bool(src string) (*Expression, error) {
	return e.compileText(src, func(c *compiler, root node) (*Expression, error) {
		cond, err := c.compileCondition(root)
		return &Expression{result: scgs.Field{Type: scgs.Bool}, root: boolValue(cond)}, err
	})
}

// Value compiles an expression for a value, as of `data`, `set` and `summary`. want gives its
// type, and the words of an enum; a want without type takes the type of the expression. An int
// is a float where one is wanted, and an enum's word a string; nothing else converts
// automatically. The error is an *[Error].
func (e *Env) Value(src string, want scgs.Field) (*Expression, error) {
	return e.compileText(src, func(c *compiler, root node) (*Expression, error) {
		v, err := c.compileValue(root, want)
		if err != nil {
			return nil, err
		}
		return &Expression{result: scgs.Field{Type: v.typ, Words: v.words}, root: v}, nil
	})
}

// Members compiles the receivers of a signal, as of `to`: the word all, or a
// group of members, such as filter(members, .load > 2). The error is an
// *[Error].
func (e *Env) Members(src string) (*Expression, error) {
	text := src
	if strings.TrimSpace(src) == "all" {
		text = "members"
	}
	p, err := e.compileText(text, func(c *compiler, root node) (*Expression, error) {
		v, err := c.compileNode(root)
		if err != nil {
			return nil, err
		}
		if v.group == nil || v.group.elem.item == nil {
			return nil, c.errorf(root, `write all, or a group such as filter(members, .online)`, "the receivers are a group of members, this is %s", v.typeName())
		}
		return &Expression{root: v}, nil
	})
	if err != nil {
		return nil, err
	}
	p.src = src
	return p, nil
}

func (e *Env) compileText(src string, root func(*compiler, node) (*Expression, error)) (*Expression, error) {
	tree, named, err := e.parseText(src)
	if err != nil {
		return nil, err
	}
	c := &compiler{env: e, src: src, factor: 1}
	p, err := root(c, tree)
	if err != nil {
		return nil, err
	}
	p.env, p.src, p.tree, p.cost, p.setup, p.vars, p.folds, p.uses = e.scopeEnv(), src, tree, c.cost, c.setup, c.vars, c.folds, c.uses.sortSignals()
	p.named = named
	return p, nil
}

// fieldNames are the names that a member's state has, for hints, except filled fields.
func fieldNames(s scgs.Schema, more ...string) []string {
	names := make([]string, 0, len(s)+len(more))
	for _, f := range s {
		if !strings.HasPrefix(f.Name, filled) {
			names = append(names, f.Name)
		}
	}
	return append(names, more...)
}

// listDeclared writes a list of names for a hint.
func listDeclared(what string, names []string) string {
	if len(names) == 0 {
		return fmt.Sprintf("no %s is declared", what)
	}
	return fmt.Sprintf("declared %ss: %s", what, strings.Join(names, ", "))
}
