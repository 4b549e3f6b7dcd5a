package program

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Fault is one thing that is wrong in a program.
type Fault struct {
	Path    string // where, as in "body.seq[1].par.do"
	Message string // the fault, one line
	Hint    string // what to do
}

// Error is every fault of a program, in the order of its parts.
type Error struct {
	Faults []Fault // at least one
}

// Error gives a line for each of the first 50 faults.
func (e *Error) Error() string {
	var lines []string
	for _, f := range e.Faults[:min(50, len(e.Faults))] {
		lines = append(lines, f.Path+": "+f.Message+": "+f.Hint)
	}
	if more := len(e.Faults) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more faults", more))
	}
	return strings.Join(lines, "\n")
}

// maxFaults bounds the memory of a program that is wrong everywhere.
const maxFaults = 1000

const nameRule = "use letters, digits, - and _, at most 64"

const nameRunes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

func isName(s string) bool {
	return s != "" && len(s) <= MaxNameBytes && strings.Trim(s, nameRunes) == ""
}

// refKind says where an input comes from.
type refKind uint8

const (
	refNone     refKind = iota
	refResult           // of the construct node
	refPrevious         // of the loop node
)

// ref is a resolved reference.
type ref struct {
	kind refKind
	node int32
}

// node is a construct of a compiled program.
type node struct {
	kind   Kind
	label  string // its name, or the name of its block
	path   string
	parent int32
	depth  int32
	kids   []int32 // switches: the branches, the one for "else" last
	els    int32   // what runs in its place after it failed, -1 for none
	handed bool    // it is the els of its parent
	times  int32   // Par: replicas; 0: each kid once
	conds  []int32 // predicates of a switch, or of a JOIN
	inside []int32 // loops: every predicate that a switch inside reads
	async  []int32
	block  int32
	proc   int32
	retry  int32
	limit  time.Duration
	from   ref
	input  string // literal

	need  bool     // its result is used
	names []string // of the branches in a Par's result, quoted
	scope int32    // the construct that runs all or nothing of this one's surroundings
	slot  int32    // of its result among the values of its scope, -1 for none
	slots int32    // as a scope: values it holds
	typ   Type
	takes *Type // Do: what its input is made to fit; nil if it does so as it comes
}

// Compiled is a compiled program: all that a [Run] needs. It does not change and may
// be shared.
type Compiled struct {
	program    *Program
	nodes      []node
	predicates []Predicate // that the program reads
	names      []string    // theirs in full
	byName     map[string]int32
	syncs      []string // their synchronizers
	syncOf     []int32
	procs      []Processor // the first stands for any node
	result     ref
	blocks     int
}

// Program returns the program that was compiled.
func (p *Compiled) Program() *Program { return p.program }

// Blocks is the number of block instances, the instances of a loop counted once.
func (p *Compiled) Blocks() int { return p.blocks }

// Predicates lists the predicates that the program reads or attaches, as
// "synchronizer.predicate", each once.
func (p *Compiled) Predicates() []string { return slices.Clone(p.names) }

// Info describes a construct of a compiled program.
type Info struct {
	Kind  Kind          // which construct it is
	Name  string        // its own, or its block's; empty if it has none
	Path  string        // where it stands: "body.seq[1].par.do"
	Type  Type          // of its result
	Block *Block        // of a Do
	On    *Processor    // of a Do: its processor; nil: any node
	Async []string      // of a Do: the predicates it is under, in full
	Reads []string      // the predicates that decide it
	Times int           // Par: replicas, 0 if it is not replicated
	Retry int           // of a Do: further attempts after the first
	Limit time.Duration // its deadline, 0 for none
	From  string        // where its input comes from
	Input string        // JSON; empty if it is not written in the program
	Kids  []int         // its inner constructs, in order; of a switch the else branch is the last
	Else  int           // what runs in its place after it has failed, -1 for none
}

// Under reports whether the blocks of a construct are under a predicate, which is
// given in full.
func (p *Compiled) Under(construct int, predicate string) bool {
	q, ok := p.byName[predicate]
	return ok && slices.Contains(p.nodes[construct].async, q)
}

// Attached reports whether some block is under a predicate.
func (p *Compiled) Attached(predicate string) bool {
	for i := range p.nodes {
		if p.Under(i, predicate) {
			return true
		}
	}
	return false
}

// Constructs is the number of constructs. They are numbered from 0 in the order of the program,
// each before its inner constructs.
func (p *Compiled) Constructs() int { return len(p.nodes) }

// Info describes the construct of that number.
func (p *Compiled) Info(i int) Info {
	n := &p.nodes[i]
	info := Info{Kind: n.kind, Name: n.label, Path: n.path, Type: n.typ, Times: int(n.times), Retry: int(n.retry), Limit: n.limit, Input: n.input, Else: int(n.els)}
	for _, kid := range n.kids {
		info.Kids = append(info.Kids, int(kid))
	}
	switch n.from.kind {
	case refNone:
	case refResult:
		info.From = p.nodes[n.from.node].label + ".result"
	case refPrevious:
		info.From = p.nodes[n.from.node].label + ".previous"
	}
	for _, q := range n.conds {
		info.Reads = append(info.Reads, p.names[q])
	}
	for _, q := range n.async {
		info.Async = append(info.Async, p.names[q])
	}
	if n.kind == KindDo {
		info.Block, info.On = &p.program.Blocks[n.block], &p.procs[n.proc]
	}
	return info
}

// Compile checks a program against what it refers to. The error is an *[Error]
// with every fault.
func Compile(p *Program, env *Env) (*Compiled, error) {
	c := compiler{
		compiled: &Compiled{program: p, byName: map[string]int32{}, procs: append([]Processor{{}}, p.Processors...)},
		env:      env,
		blocks:   map[string]int32{}, procs: map[string]int32{"": 0}, labels: map[string][]int32{}, names: map[string]bool{},
		preds: map[string][]int{},
	}
	for i, q := range env.Predicates {
		c.preds[q.Name] = append(c.preds[q.Name], i)
		c.preds[q.Synchronizer+"."+q.Name] = []int{i}
	}
	c.declarations()
	if p.Body == nil {
		c.addFault("body", "the program has no body", "give it a construct: seq, par, if, case, while, until or do")
	} else {
		c.add(p.Body, -1, "body", 0)
	}
	if !c.tooLarge && len(c.compiled.nodes) > 0 {
		c.checkRest()
	}
	if len(c.faults) > 0 {
		return nil, &Error{c.faults}
	}
	return c.compiled, nil
}

type compiler struct {
	compiled *Compiled
	env      *Env
	faults   []Fault
	blocks   map[string]int32
	procs    map[string]int32
	preds    map[string][]int
	labels   map[string][]int32
	names    map[string]bool
	froms    []pendingRef
	tooLarge bool
}

// pendingRef is a reference that is resolved when all constructs are known.
type pendingRef struct {
	node int32 // -1: the program's result
	path string
	text string
}

func (c *compiler) addFault(path, message, hint string) {
	if len(c.faults) < maxFaults {
		c.faults = append(c.faults, Fault{path, message, hint})
	}
}

func (c *compiler) name(path, what, name string) {
	if !isName(name) {
		c.addFault(path, fmt.Sprintf("%s %q", what, name), nameRule)
	}
}

func (c *compiler) declarations() {
	p := c.compiled.program
	c.name("name", "program", p.Name)
	for i := range p.Processors {
		q := &p.Processors[i]
		path := "processors." + q.Name
		c.name(path, "processor", q.Name)
		if _, ok := c.procs[q.Name]; ok {
			c.addFault(path, fmt.Sprintf("processor %q is declared twice", q.Name), "give one of them another name")
		}
		c.procs[q.Name] = int32(i + 1)
		if q.Count < 0 || q.Cores < 0 || q.Count > MaxBlocks || q.Cores > MaxBlocks {
			c.addFault(path, fmt.Sprintf("count %d and cores %d", q.Count, q.Cores), "both are from 0 to 1000000")
		}
		for _, l := range q.Labels {
			c.name(path+".labels", "label", l)
		}
	}
	for i := range p.Blocks {
		b := &p.Blocks[i]
		path := "blocks." + b.Name
		c.name(path, "block", b.Name)
		if _, ok := c.blocks[b.Name]; ok {
			c.addFault(path, fmt.Sprintf("block %q is declared twice", b.Name), "give one of them another name")
		}
		c.blocks[b.Name] = int32(i)
		if b.Group != "" && !slices.Contains(c.env.Groups, b.Group) {
			c.addFault(path+".group", fmt.Sprintf("no synchronizer has the members of group %q", b.Group), "declare one below synchronizers, with members: {group: "+b.Group+"}, or leave group out")
		}
		if err := b.Input.checkType(0); err != nil {
			c.addFault(path+".input", err.Error(), "see the types of blocks in docs/control.md")
		}
		if err := b.Output.checkType(0); err != nil {
			c.addFault(path+".output", err.Error(), "see the types of blocks in docs/control.md")
		}
		c.threads(b, path)
	}
}

func (c *compiler) threads(b *Block, path string) {
	i := slices.IndexFunc(c.env.ThreadLevels, func(t ThreadLevel) bool { return t.Name == b.Synchronizer })
	switch {
	case b.Threads < 0:
		c.addFault(path+".threads", fmt.Sprintf("%d threads", b.Threads), "give 1 or more, or leave threads out")
	case b.Synchronizer == "":
	case b.Threads == 0:
		c.addFault(path+".synchronizer", fmt.Sprintf("%q has no threads to watch", b.Synchronizer), "say how many with threads: N")
	case i < 0:
		c.addFault(path+".synchronizer", fmt.Sprintf("there is no thread-level synchronizer %q", b.Synchronizer), "declare it below synchronizers, with members: {threads: N}")
	case b.Threads < c.env.ThreadLevels[i].Min || b.Threads > c.env.ThreadLevels[i].Max:
		t := c.env.ThreadLevels[i]
		c.addFault(path+".threads", fmt.Sprintf("%q takes from %d to %d threads, and these are %d", t.Name, t.Min, t.Max, b.Threads), "change one of them")
	}
}

// shape is what the constructs have in common, and how they differ.
type shape struct {
	kind        Kind
	name        string
	kids        []Construct
	paths       []string // of the kids
	conds       []string
	condPaths   []string
	els         Construct
	limit       time.Duration
	from, input string
}

// shapeOf tells what a construct is; ok is false for a pointer to one.
func shapeOf(x Construct) (s shape, ok bool) {
	list := func(of []Construct, key string) {
		s.kids = of
		for i := range of {
			s.paths = append(s.paths, key+"["+strconv.Itoa(i)+"]")
		}
	}
	switch x := x.(type) {
	case Seq:
		s = shape{kind: KindSeq, name: x.Name, els: x.Else, limit: x.Deadline}
		list(x.Of, "seq")
	case Par:
		s = shape{kind: KindPar, name: x.Name, els: x.Else, limit: x.Deadline}
		if list(x.Of, "par"); x.Times != 0 && len(x.Of) == 1 {
			s.paths = []string{"par"}
		}
		if x.Join != "" {
			s.conds, s.condPaths = []string{x.Join}, []string{"join"}
		}
	case If:
		s = shape{
			kind: KindIf, name: x.Name, limit: x.Deadline, conds: []string{x.When}, condPaths: []string{"if"},
			kids: []Construct{x.Then}, paths: []string{"then"},
		}
		if x.Else != nil {
			s.kids, s.paths = append(s.kids, x.Else), append(s.paths, "else")
		}
	case Case:
		s = shape{kind: KindCase, name: x.Name, limit: x.Deadline}
		for i, w := range x.Of {
			at := "case[" + strconv.Itoa(i) + "]."
			s.conds, s.condPaths = append(s.conds, w.When), append(s.condPaths, at+"when")
			s.kids, s.paths = append(s.kids, w.Then), append(s.paths, at+"then")
		}
		if x.Else != nil {
			s.kids, s.paths = append(s.kids, x.Else), append(s.paths, "else")
		}
	case While:
		s = shape{
			kind: KindWhile, name: x.Name, els: x.Else, limit: x.Deadline, conds: []string{x.When}, condPaths: []string{"while"},
			kids: []Construct{x.Do}, paths: []string{"do"}, from: x.From, input: x.Input,
		}
	case DoUntil:
		s = shape{
			kind: KindUntil, name: x.Name, els: x.Else, limit: x.Deadline, conds: []string{x.Until}, condPaths: []string{"until"},
			kids: []Construct{x.Do}, paths: []string{"do"}, from: x.From, input: x.Input,
		}
	case Do:
		s = shape{kind: KindDo, name: x.Name, els: x.Else, limit: x.Deadline, from: x.From, input: x.Input}
	default:
		return s, false
	}
	return s, true
}

// add puts a construct and all inside it into the compiled program and returns its number.
func (c *compiler) add(x Construct, parent int32, path string, depth int) int32 {
	if c.tooLarge {
		return -1
	}
	i := int32(len(c.compiled.nodes))
	if depth >= MaxDepth || len(c.compiled.nodes) >= MaxBlocks {
		c.addFault(path, fmt.Sprintf("more than %d constructs inside each other, or %d in all", MaxDepth, MaxBlocks), "replicate with times, or split the program")
		c.tooLarge = true
		return -1
	}
	if x == nil {
		c.addFault(path, "nothing stands here", "give it a construct: seq, par, if, case, while, until or do")
		return -1
	}
	s, ok := shapeOf(x)
	if !ok {
		c.addFault(path, fmt.Sprintf("%T is no construct of a program", x), "hand in the value, not a pointer to it")
		return -1
	}
	c.compiled.nodes = append(c.compiled.nodes, node{kind: s.kind, label: s.name, path: path, parent: parent, depth: int32(depth), els: -1, limit: s.limit, slot: -1})
	n := node{}
	if s.name != "" {
		if c.name(path+".name", "name", s.name); c.names[s.name] {
			c.addFault(path+".name", fmt.Sprintf("the name %q is given twice", s.name), "give one of them another name")
		}
		c.names[s.name] = true
		c.labels[s.name] = append(c.labels[s.name], i)
	}
	if s.limit < 0 {
		c.addFault(path+".deadline", fmt.Sprintf("a deadline of %v", s.limit), "give a duration above 0, or leave it out")
	}
	for k, cond := range s.conds {
		n.conds = c.switchOn(n.conds, path+"."+s.condPaths[k], s.kind, cond)
	}
	c.particular(x, &n, path)
	if s.kind != KindDo && len(s.kids) == 0 {
		c.addFault(path, "this "+s.kind.String()+" is empty", "put a construct into it, or remove it")
	}
	if s.from != "" || s.input != "" {
		c.given(i, path, s.from, s.input)
	}
	for k, kid := range s.kids {
		if at := c.add(kid, i, path+"."+s.paths[k], depth+1); at >= 0 {
			n.kids = append(n.kids, at)
		}
	}
	if s.els != nil {
		if n.els = c.add(s.els, i, path+".else", depth+1); n.els >= 0 {
			c.compiled.nodes[n.els].handed = true
		}
	} else {
		n.els = -1
	}
	at := &c.compiled.nodes[i]
	at.kids, at.els, at.conds, at.times, at.block, at.proc, at.retry, at.async = n.kids, n.els, n.conds, n.times, n.block, n.proc, n.retry, n.async
	if at.input = s.input; s.kind == KindDo && s.name == "" {
		at.label = x.(Do).Block
		c.labels[at.label] = append(c.labels[at.label], i)
	}
	return i
}

// switchOn finds the predicate of a switch.
func (c *compiler) switchOn(conds []int32, path string, kind Kind, name string) []int32 {
	if name == "" {
		c.addFault(path, "this "+kind.String()+" has no predicate", "name the predicate that decides it")
		return conds
	}
	return c.predicate(conds, path, name, false)
}

// predicate finds a predicate by "synchronizer.name", or by its name alone if
// only one synchronizer has it.
func (c *compiler) predicate(list []int32, path, name string, async bool) []int32 {
	found := c.preds[name]
	switch {
	case len(found) == 0:
		c.addFault(path, fmt.Sprintf("there is no predicate %q", name), "declare it in a synchronizer, or correct the name: "+c.known())
		return list
	case len(found) > 1:
		c.addFault(path, fmt.Sprintf("several synchronizers have a predicate %q", name), "write SYNCHRONIZER."+name)
		return list
	}
	q := c.env.Predicates[found[0]]
	full := q.Synchronizer + "." + q.Name
	switch {
	case q.Threads && async:
		c.addFault(path, full+" is judged inside each process, and its signals go to threads there", "tell its value in the summary, and put the block under a predicate one level up")
	case q.Threads:
		c.addFault(path, full+" is judged inside each process, and a switch stands above them", "tell its value in the summary, and judge that one level up")
	}
	if async && !q.Signals {
		c.addFault(path, full+" sends no signal, so it does nothing to the block", "give the predicate a signal, or remove it here")
	}
	p := c.compiled
	id, ok := p.byName[full]
	if !ok {
		id = int32(len(p.predicates))
		p.byName[full] = id
		p.predicates, p.names = append(p.predicates, q), append(p.names, full)
		sync := slices.Index(p.syncs, q.Synchronizer)
		if sync < 0 {
			sync = len(p.syncs)
			p.syncs = append(p.syncs, q.Synchronizer)
		}
		p.syncOf = append(p.syncOf, int32(sync))
	}
	return append(list, id)
}

func (c *compiler) known() string {
	var names []string
	for _, q := range c.env.Predicates[:min(10, len(c.env.Predicates))] {
		names = append(names, q.Synchronizer+"."+q.Name)
	}
	if len(names) == 0 {
		return "none is declared"
	}
	return "there are " + strings.Join(names, ", ")
}

// particular checks what one kind of construct has alone.
func (c *compiler) particular(x Construct, n *node, path string) {
	switch x := x.(type) {
	case Par:
		n.times = int32(x.Times)
		switch {
		case x.Times < 0 || x.Times >= MaxBlocks:
			c.addFault(path+".times", fmt.Sprintf("%d times", x.Times), fmt.Sprintf("give 1 to %d", MaxBlocks-1))
			n.times = 1
		case x.Times > 0 && len(x.Of) != 1:
			c.addFault(path+".par", fmt.Sprintf("%d constructs to replicate", len(x.Of)), "put them into one seq or par, and replicate that")
		}
	case Do:
		var ok bool
		if n.block, ok = c.blocks[x.Block]; !ok {
			c.addFault(path+".do", fmt.Sprintf("there is no block %q", x.Block), "declare it below blocks, or correct the name")
			n.block = -1
		}
		if n.proc, ok = c.procs[x.On]; !ok {
			c.addFault(path+".on", fmt.Sprintf("processor %q is mapped to no nodes", x.On), "declare it below processors, with count, labels or cores")
			n.proc = -1
		}
		if n.retry = int32(x.Retry); x.Retry < 0 || x.Retry > MaxRetry {
			c.addFault(path+".retry", fmt.Sprintf("%d further attempts", x.Retry), fmt.Sprintf("give 0 to %d", MaxRetry))
		}
		for i, name := range x.Async {
			n.async = c.predicate(n.async, path+".async["+strconv.Itoa(i)+"]", name, true)
		}
	}
}

// given takes the input of a block or loop.
func (c *compiler) given(i int32, path, from, input string) {
	if from != "" {
		c.froms = append(c.froms, pendingRef{i, path + ".from", from})
	}
	if input == "" {
		return
	}
	if from != "" {
		c.addFault(path+".input", "both an input and where it comes from", "give input or from")
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(input)); err != nil || compact.String() != input || len(input) > MaxResultBytes {
		c.addFault(path+".input", fmt.Sprintf("the input is no compact JSON of at most %d bytes", MaxResultBytes), "write {\"a\":1} without blanks; larger data go by reference")
	}
}
