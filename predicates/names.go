package predicates

import (
	"fmt"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/gopegasus/pegasus/scgs"
)

// roots are the names that an expression can begin with.
var roots = []string{"members", "prev", "memory", "process", "from_parent", "params"}

// own are the fields that every member has beside its declared state.
var own = []string{"name", "host", "online"}

func (c *compiler) compileIdentifier(n *ast.IdentifierNode) (value, error) {
	for i, b := range c.names {
		if b.name != n.Value {
			continue
		}
		if b.read.isScalar() || b.read.item != nil {
			c.binding = min(c.binding, i)
			return b.read, nil
		}
		return c.compileNode(b.tree)
	}
	switch n.Value {
	case "members":
		return c.memberGroup(), nil
	case "prev":
		return c.prevMembers(n)
	case "memory", "from_parent", "params":
		return value{}, c.errorf(n, "name what you read of it: memory.NAME, params.NAME or from_parent.SIGNAL.FIELD", "%s is not a value", n.Value)
	case "process":
		if len(c.env.Process) == 0 {
			return value{}, c.errorf(n, "only a thread-level synchronizer has one, and declares it with process:", "no state of a process is declared")
		}
		return value{}, c.errorf(n, "name what you read of it: process.FIELD", "process is not a value")
	}
	return value{}, c.unknownName(n)
}

func (c *compiler) unknownName(n *ast.IdentifierNode) error {
	names := slices.Clone(roots)
	for _, b := range c.names {
		names = append(names, b.name)
	}
	for name := range c.env.lets {
		names = append(names, name)
	}
	slices.Sort(names)
	hint := strings.TrimSpace(didYouMean(n.Value, names))
	switch {
	case hint != "":
	case len(c.loops) > 0 && (c.env.State.Index(n.Value) >= 0 || slices.Contains(own, n.Value)):
		hint = fmt.Sprintf("write .%s for the field of the member", n.Value)
	case n.Value == workName && len(c.env.Filled) > 0:
		hint = "the section work fills fields of each member: use them in a function over members, such as all(members, .work.idle)"
	case c.env.State.Index(n.Value) >= 0:
		hint = fmt.Sprintf("%s is a field of each member: use it in a function over members, such as any(members, .%s ...)", n.Value, n.Value)
	case c.env.Memory.Index(n.Value) >= 0:
		hint = fmt.Sprintf("write memory.%s", n.Value)
	case c.env.param(n.Value) >= 0:
		hint = fmt.Sprintf("write params.%s", n.Value)
	case c.env.isWord(n.Value):
		hint = fmt.Sprintf("a word of an enum stands in quotes: %q", n.Value)
	default:
		hint = "an expression is about members, memory.NAME and from_parent.SIGNAL.FIELD"
	}
	return c.errorf(n, hint, "unknown name %q", n.Value)
}

// compilePointer is # or the nothing before .field: the element of the loop around.
func (c *compiler) compilePointer(n *ast.PointerNode) (value, error) {
	if n.Name != "" {
		return value{}, c.errorf(n, "# is the element itself, .x its field", "#%s is not part of the predicate language", n.Name)
	}
	if len(c.loops) == 0 { // The parser allows pointers inside loops only, but for those in what a name stands for.
		return value{}, c.errorf(n, "use it in a function over members, as in all(members, NAME)", "the expression of this name is about one member")
	}
	return c.loops[len(c.loops)-1].elem, nil
}

// compileProperty is a dot or an index with a string: of memory, of a signal of the
// parent, or of a member.
func (c *compiler) compileProperty(n *ast.MemberNode) (value, error) {
	name, ok := n.Property.(*ast.StringNode)
	if !ok {
		return c.compileIndex(n)
	}
	switch left := n.Node.(type) {
	case *ast.IdentifierNode:
		switch left.Value {
		case "memory":
			return c.memory(name)
		case "process":
			if len(c.env.Process) > 0 {
				return c.process(name)
			}
		case "params":
			return c.parameter(name)
		case "from_parent":
			return value{}, c.wholeSignal(name)
		}
	case *ast.MemberNode:
		if root, ok := left.Node.(*ast.IdentifierNode); ok && root.Value == "from_parent" {
			return c.fromParent(left.Property, name)
		}
	}
	v, err := c.compileNode(n.Node)
	if err != nil {
		return value{}, err
	}
	if v.item == nil {
		return value{}, c.errorf(name, "only members have fields", "%s has no field %q", v.typeName(), name.Value)
	}
	return c.field(v, name)
}

// load is the value of a declared field, or the group of a list's elements.
func (c *compiler) load(f scgs.Field, get func(*frame) (*scgs.Value, cause)) value {
	if f.Type.IsList() {
		return c.listGroup(f, get)
	}
	return loadField(f, get)
}

// field reads a field of a member.
func (c *compiler) field(member value, name *ast.StringNode) (value, error) {
	c.uses.Members = true
	find := member.item
	switch name.Value {
	case "prev":
		switch {
		case member.prev:
			return value{}, c.errorf(name, "the last global state is kept, and none before it", "a member of prev has no .prev of its own")
		case c.env.Prev:
			c.uses.Prev = true
			return value{item: find, prev: true}, nil
		}
	case "name":
		return ownText(find, func(m *Member) string { return m.Name }), nil
	case "host":
		return ownText(find, func(m *Member) string { return m.Host }), nil
	case "online":
		return boolValue(func(fr *frame) truth {
			it := find(fr)
			if it.why.isSet() {
				return unknownTruth(it.why)
			}
			if member.prev {
				return truthOf(fr.s.prev.hasPrevious(it.index))
			}
			return truthOf(fr.s.online[it.index])
		}), nil
	}
	i := c.env.State.Index(name.Value)
	if i < 0 {
		if err := c.notFilled(name, "."); err != nil {
			return value{}, err
		}
		return value{}, c.unknownField(name, "unknown field %q", "field", fieldNames(c.env.State, own...))
	}
	c.uses.Fields |= 1 << i
	v := c.load(c.env.State[i], func(fr *frame) (*scgs.Value, cause) {
		it := find(fr)
		if it.why.isSet() {
			return nil, it.why
		}
		if member.prev {
			return fr.s.prevValue(it.index, i)
		}
		return fr.s.stateValue(it.index, i)
	})
	if member.own && !member.prev {
		v.field = i + 1
	}
	return v, nil
}

func ownText(find func(*frame) item, get func(*Member) string) value {
	return value{typ: scgs.String, text: func(fr *frame) text {
		it := find(fr)
		if it.why.isSet() {
			return text{why: it.why}
		}
		return text{s: get(&fr.s.members[it.index])}
	}}
}

func (c *compiler) memory(name *ast.StringNode) (value, error) {
	i := c.env.Memory.Index(name.Value)
	if i < 0 {
		return value{}, c.unknownField(name, "unknown variable memory.%s", "variable", fieldNames(c.env.Memory))
	}
	c.uses.Memory |= 1 << i
	return loadField(c.env.Memory[i], func(fr *frame) (*scgs.Value, cause) { return fr.s.memoryValue(i) }), nil
}

// param is the place of a parameter, or -1.
func (e *Env) param(name string) int {
	return slices.IndexFunc(e.Params, func(p Param) bool { return p.Field.Name == name })
}

// isParams is whether a part is the name that parameters are read by.
func isParams(n node) bool {
	root, ok := n.(*ast.IdentifierNode)
	return ok && root.Value == "params"
}

// paramOf is the place of the parameter that a part is, or -1.
func (e *Env) paramOf(n *ast.MemberNode) int {
	if name, ok := n.Property.(*ast.StringNode); ok && isParams(n.Node) {
		return e.param(name.Value)
	}
	return -1
}

func (c *compiler) parameter(name *ast.StringNode) (value, error) {
	i := c.env.param(name.Value)
	if i < 0 {
		names := make([]string, len(c.env.Params))
		for k, p := range c.env.Params {
			names[k] = p.Field.Name
		}
		return value{}, c.unknownField(name, "unknown parameter params.%s", "parameter", names)
	}
	c.uses.Params |= 1 << i
	p := &c.env.Params[i]
	return loadField(p.Field, func(*frame) (*scgs.Value, cause) { return &p.Value, cause{} }), nil
}

func (c *compiler) process(name *ast.StringNode) (value, error) {
	i := c.env.Process.Index(name.Value)
	if i < 0 {
		if err := c.notFilled(name, "process."); err != nil {
			return value{}, err
		}
		return value{}, c.unknownField(name, "unknown field process.%s", "field", fieldNames(c.env.Process))
	}
	c.uses.Process |= 1 << i
	return c.load(c.env.Process[i], func(fr *frame) (*scgs.Value, cause) { return fr.s.processValue(i) }), nil
}

func (c *compiler) fromParent(signal node, name *ast.StringNode) (value, error) {
	s, ok := signal.(*ast.StringNode)
	if !ok {
		return value{}, c.errorf(signal, `write from_parent["NAME"].FIELD`, "the name of a signal is written out")
	}
	i := c.signal(s.Value)
	if i < 0 {
		return value{}, c.unknownSignal(s)
	}
	fields := c.env.Parent[i].Fields
	f := fields.Index(name.Value)
	if f < 0 {
		return value{}, c.unknownField(name, "unknown field %q of the signal "+s.Value, "field", fieldNames(fields))
	}
	c.uses.Parent = append(c.uses.Parent, s.Value)
	return loadField(fields[f], func(fr *frame) (*scgs.Value, cause) { return fr.s.parentValue(i, f) }), nil
}

func (c *compiler) signal(name string) int {
	return slices.IndexFunc(c.env.Parent, func(p ParentSignal) bool { return p.Name == name })
}

// wholeSignal refuses from_parent.NAME without a field.
func (c *compiler) wholeSignal(name *ast.StringNode) error {
	i := c.signal(name.Value)
	if i < 0 {
		return c.unknownSignal(name)
	}
	return c.errorf(name, listDeclared("field", fieldNames(c.env.Parent[i].Fields)), "the signal %s is not a value", name.Value)
}

func (c *compiler) unknownSignal(name *ast.StringNode) error {
	var names []string
	for _, p := range c.env.Parent {
		names = append(names, p.Name)
		if len(p.Name) > len(name.Value) && p.Name[:len(name.Value)+1] == name.Value+"-" {
			return c.errorf(name, fmt.Sprintf("write from_parent[%q].FIELD", p.Name), "unknown signal %q of the parent", name.Value)
		}
	}
	return c.unknownField(name, "unknown signal %q of the parent", "signal", names)
}

// unknownField names the declared fields instead.
func (c *compiler) unknownField(n *ast.StringNode, format, what string, names []string) error {
	return c.errorf(n, didYouMean(n.Value, names)+listDeclared(what, names), format, n.Value)
}
