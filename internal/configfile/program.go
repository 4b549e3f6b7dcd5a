package configfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/control/program"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/executor"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/internal/yamlconf"
)

// ProgramFile is a file with a program and the synchronizers whose predicates
// it reads.
type ProgramFile struct {
	Levels  plan.Levels       // parents before children
	Host    *plan.Level       // of Levels, that runs the program; nil: none can
	Program *program.Program  // as the file writes it
	Plan    *program.Compiled // the same, checked
}

// ParseProgram reads a program file and compiles it and every level beside it.
// The error is a *yamlconf.Error with every fault of the file and its place;
// name stands for the file in them. The program may be one that can only be drawn.
func ParseProgram(name string, src []byte) (*ProgramFile, error) {
	return parseProgram(name, src, false)
}

// ParseToRun is [ParseProgram], and finds what keeps the program from being run.
func ParseToRun(name string, src []byte) (*ProgramFile, error) {
	return parseProgram(name, src, true)
}

func parseProgram(name string, src []byte, toRun bool) (*ProgramFile, error) {
	var raw struct {
		Synchronizers yamlconf.Map[config.Synchronizer] `yaml:"synchronizers"`
		Program       programSection                    `yaml:"program,required"`
	}
	doc, err := yamlconf.Decode(name, src, &raw)
	if doc == nil {
		return nil, err
	}
	if _, ok := doc.Root().Get("synchronizers"); ok {
		doc.Advise(`missing key "program"`, `a file without a program is for "pegasus check" and "pegasus run"; in Go, for synchronizer.LoadConfig`)
	}
	whole := !faulty(err)
	p := parser{doc: doc, cfg: &config.Config{Synchronizers: raw.Synchronizers}, levels: map[string]config.Section{}}
	host := p.host(toRun && whole)
	p.all()
	file := &ProgramFile{Program: raw.Program.value()}
	for _, b := range file.Program.Blocks {
		if b.Name == wire.ProcessorRegion {
			doc.Add(yamlconf.Fault{
				Path: "program.blocks." + b.Name, Message: fmt.Sprintf("a block cannot have the name %q: it is that of the region of every processor", b.Name),
				Hint: "give it another name",
			})
		}
	}
	if whole {
		file.Plan, err = program.Compile(file.Program, environment(p.cfg))
		if bad, ok := errors.AsType[*program.Error](err); ok {
			for _, f := range bad.Faults {
				doc.Add(yamlconf.Fault{Path: "program." + f.Path, Message: f.Message, Hint: f.Hint})
			}
		}
	}
	if err := doc.Err(); err != nil {
		return nil, err
	}
	file.Levels = p.plans
	source := &plan.Source{Name: name, Text: string(src), Program: true}
	for _, plan := range p.plans {
		plan.Source = source
		if plan.Name == host {
			file.Host = plan
			plan.Run(executor.Program{Compiled: file.Plan}, reads(file.Plan, host), threadsOf(file.Program, p.levels))
		}
	}
	p.fits()
	if err := doc.Err(); err != nil {
		return nil, err
	}
	return file, nil
}

// DefaultGroup is the group of the processors, and the name of their synchronizer,
// where the file of a program declares none.
const DefaultGroup = "processors"

// host finds the synchronizer that can run the program: the only one whose members
// are processes. They are processors, so what those tell is added to the declared
// state. It is empty if there are several: nothing orders the global states of two
// synchronizers, so that a switch on one and the ends of blocks on the other would
// rest on no decision in common.
func (p *parser) host(toRun bool) string {
	if len(p.cfg.Synchronizers) == 0 {
		p.cfg.Synchronizers = append(p.cfg.Synchronizers, yamlconf.Entry[config.Synchronizer]{
			Key:   DefaultGroup,
			Value: config.Synchronizer{Members: config.Members{Group: DefaultGroup, Min: 1, Count: 1, Max: config.DefaultMaxMembers}},
		})
	}
	var host *yamlconf.Entry[config.Synchronizer]
	for i := range p.cfg.Synchronizers {
		e := &p.cfg.Synchronizers[i]
		if e.Value.Members.Threads {
			continue
		}
		if host != nil {
			if toRun {
				p.doc.FaultAt(path(e.Key, "members"), "the members of %s and of %s are processes: the blocks of a program run on those of one synchronizer, and its switches read the predicates of that one: leave one, and run the others from a file of their own", host.Key, e.Key)
			}
			return ""
		}
		host = e
	}
	if host == nil {
		return ""
	}
	own := wire.ProcessorSchema()
	for _, f := range host.Value.State {
		if own.Index(f.Name) >= 0 {
			p.doc.FaultAt(path(host.Key, "state", f.Name), "every processor of a program has a field %q of its own: use another name", f.Name)
			return ""
		}
	}
	for _, e := range host.Value.Predicates {
		if e.Key == wire.ProgramSignals {
			p.doc.FaultAt(path(host.Key, "predicates", e.Key), "the signals of a program have that name: use another")
			return ""
		}
	}
	host.Value.State = append(slices.Clone(host.Value.State), own...)
	return host.Key
}

// reads are the predicates of a synchronizer that a program reads: true for those that
// blocks are attached to.
func reads(p *program.Compiled, synchronizer string) map[string]bool {
	attached := map[string]bool{}
	for _, name := range p.Predicates() {
		if of, predicate, _ := strings.Cut(name, "."); of == synchronizer {
			attached[predicate] = p.Attached(name)
		}
	}
	return attached
}

// threadsOf encodes what the program's blocks have for threads, nil for nothing.
func threadsOf(p *program.Program, levels map[string]config.Section) []byte {
	var l config.BlockLevels
	for i := range p.Blocks {
		b := &p.Blocks[i]
		if b.Threads == 0 {
			continue
		}
		l.Blocks = append(l.Blocks, config.BlockLevel{Block: b.Name, Threads: b.Threads, Synchronizer: b.Synchronizer})
		sec, ok := levels[b.Synchronizer]
		if ok && !slices.ContainsFunc(l.Sections, func(s config.Section) bool { return s.Name == sec.Name }) {
			l.Sections = append(l.Sections, sec)
		}
	}
	if len(l.Blocks) == 0 {
		return nil
	}
	return Encode(l)
}

// faulty reports whether the section of the program could not be read: what is
// then found by compiling it would mislead.
func faulty(err error) bool {
	e, ok := errors.AsType[*yamlconf.Error](err)
	return ok && slices.ContainsFunc(e.Faults, func(f yamlconf.Fault) bool {
		return f.Path == "" || strings.HasPrefix(f.Path, "program")
	})
}

// environment is what a program can refer to.
func environment(cfg *config.Config) *program.Env {
	env := &program.Env{}
	for _, e := range cfg.Synchronizers {
		s := &e.Value
		if s.Members.Threads {
			env.ThreadLevels = append(env.ThreadLevels, program.ThreadLevel{Name: e.Key, Min: s.Members.Min, Max: s.Members.Max})
		} else {
			env.Groups = append(env.Groups, s.Members.Group)
		}
		for _, p := range s.Predicates {
			q := program.Predicate{Synchronizer: e.Key, Name: p.Key, Signals: len(p.Value.Signal) > 0, Threads: s.Members.Threads}
			if when := strings.TrimSpace(p.Value.When); when == "true" || when == "false" {
				q.Constant = when
			}
			env.Predicates = append(env.Predicates, q)
		}
	}
	return env
}

// programSection is what stands below the key program.
type programSection struct {
	Name       string                         `yaml:"name,required"`
	Processors yamlconf.Map[processorSection] `yaml:"processors"`
	Blocks     yamlconf.Map[blockSection]     `yaml:"blocks"`
	Body       construct                      `yaml:"body,required"`
	Result     string                         `yaml:"result"`
}

type processorSection struct {
	Count  int      `yaml:"count"`
	Labels []string `yaml:"labels"`
	Cores  int      `yaml:"cores"`
}

type blockSection struct {
	Group        string    `yaml:"group"`
	Input        valueType `yaml:"input"`
	Output       valueType `yaml:"output"`
	Threads      int       `yaml:"threads"`
	Synchronizer string    `yaml:"synchronizer"`
}

func (s *programSection) value() *program.Program {
	p := &program.Program{Name: s.Name, Body: s.Body.Construct, Result: s.Result}
	for _, e := range s.Processors {
		p.Processors = append(p.Processors, program.Processor{Name: e.Key, Count: e.Value.Count, Labels: some(e.Value.Labels), Cores: e.Value.Cores})
	}
	for _, e := range s.Blocks {
		b := &e.Value
		p.Blocks = append(p.Blocks, program.Block{
			Name: e.Key, Group: b.Group, Input: program.Type(b.Input), Output: program.Type(b.Output), Threads: b.Threads, Synchronizer: b.Synchronizer,
		})
	}
	return p
}

// valueType is the type of an input or output.
type valueType program.Type

// UnmarshalNode takes a word, a list of one type, or a map of fields to types.
func (t *valueType) UnmarshalNode(n yamlconf.Node) error {
	switch n.Kind() {
	case yamlconf.KindList:
		items := n.Items()
		if len(items) != 1 {
			return n.Fault("the type of a list names the type of its elements, as in [float]")
		}
		var elem valueType
		if err := items[0].Decode(&elem); err != nil {
			return err
		}
		t.Base, t.Elem = program.List, (*program.Type)(&elem)
	case yamlconf.KindMap:
		t.Base = program.Record
		for _, item := range n.Items() {
			var field valueType
			if err := item.Decode(&field); err != nil {
				return err
			}
			name, _ := item.Key()
			t.Fields = append(t.Fields, program.Field{Name: name, Type: program.Type(field)})
		}
	default:
		base, ok := program.ParseBase(n.Text())
		if !ok || base == program.None {
			return n.Fault("%q is no type: use any, bool, int, float, string, duration, a list such as [float], or a record such as {x: float}; leave it out if there is no value", n.Text())
		}
		t.Base = base
	}
	return nil
}

// construct is a construct of a program; nil if it could not be read.
type construct struct{ program.Construct }

// constructForms tells how each key begins a construct. Loops stand before do,
// which is a key of theirs.
var constructForms = []struct {
	key  string
	read func(yamlconf.Node) (program.Construct, error)
}{
	{"seq", readSeq},
	{"par", readPar},
	{"if", readIf},
	{"case", readCase},
	{"while", readLoop},
	{"until", readLoop},
	{"do", readDo},
}

// UnmarshalNode takes the name of a block, or a map with one of the keys seq,
// par, if, case, while, until and do.
func (c *construct) UnmarshalNode(n yamlconf.Node) error {
	switch {
	case n.Kind() == yamlconf.KindText:
		c.Construct = program.Do{Block: n.Text()}
		return nil
	case n.Kind() != yamlconf.KindMap:
		return n.Fault("a construct is the name of a block, or a map with one of the keys seq, par, if, case, while, until, do")
	}
	for _, f := range constructForms {
		if _, ok := n.Get(f.key); ok {
			x, err := f.read(n)
			c.Construct = x
			return err
		}
	}
	return n.Fault("this is no construct: it has none of the keys seq, par, if, case, while, until, do")
}

func list(of []construct) []program.Construct {
	var out []program.Construct
	for _, c := range of {
		out = append(out, c.Construct)
	}
	return out
}

func readSeq(n yamlconf.Node) (program.Construct, error) {
	var raw struct {
		Seq      []construct   `yaml:"seq"`
		Name     string        `yaml:"name"`
		Deadline time.Duration `yaml:"deadline"`
		Else     construct     `yaml:"else"`
	}
	err := n.Decode(&raw)
	return program.Seq{Name: raw.Name, Of: list(raw.Seq), Deadline: raw.Deadline, Else: raw.Else.Construct}, err
}

// allJoin is the JOIN that passes when every branch has ended.
const allJoin = "all"

func readPar(n yamlconf.Node) (program.Construct, error) {
	var raw struct {
		Par      yamlconf.Node `yaml:"par"`
		Times    int           `yaml:"times"`
		Join     string        `yaml:"join"`
		Name     string        `yaml:"name"`
		Deadline time.Duration `yaml:"deadline"`
		Else     construct     `yaml:"else"`
	}
	if err := n.Decode(&raw); err != nil {
		return nil, err
	}
	x := program.Par{Name: raw.Name, Times: raw.Times, Join: raw.Join, Deadline: raw.Deadline, Else: raw.Else.Construct}
	if x.Join == allJoin {
		x.Join = ""
	}
	if times, ok := n.Get("times"); ok && raw.Times < 1 {
		return x, times.Fault("times says how often the construct below par runs: 1 or more")
	}
	if raw.Par.Kind() == yamlconf.KindList {
		var of []construct
		err := raw.Par.Decode(&of)
		x.Of = list(of)
		return x, err
	}
	if x.Times == 0 {
		return x, raw.Par.Fault("par takes a list of constructs, or one construct with times: N beside it")
	}
	var one construct
	err := raw.Par.Decode(&one)
	x.Of = []program.Construct{one.Construct}
	return x, err
}

func readIf(n yamlconf.Node) (program.Construct, error) {
	var raw struct {
		If       string        `yaml:"if"`
		Then     construct     `yaml:"then,required"`
		Else     construct     `yaml:"else"`
		Name     string        `yaml:"name"`
		Deadline time.Duration `yaml:"deadline"`
	}
	err := n.Decode(&raw)
	return program.If{Name: raw.Name, When: raw.If, Then: raw.Then.Construct, Else: raw.Else.Construct, Deadline: raw.Deadline}, err
}

func readCase(n yamlconf.Node) (program.Construct, error) {
	var raw struct {
		Case []struct {
			When string    `yaml:"when,required"`
			Then construct `yaml:"then,required"`
		} `yaml:"case"`
		Else     construct     `yaml:"else"`
		Name     string        `yaml:"name"`
		Deadline time.Duration `yaml:"deadline"`
	}
	err := n.Decode(&raw)
	x := program.Case{Name: raw.Name, Else: raw.Else.Construct, Deadline: raw.Deadline}
	for _, w := range raw.Case {
		x.Of = append(x.Of, program.When{When: w.When, Then: w.Then.Construct})
	}
	return x, err
}

func readLoop(n yamlconf.Node) (program.Construct, error) {
	var raw struct {
		While    string        `yaml:"while"`
		Do       construct     `yaml:"do,required"`
		Until    string        `yaml:"until"`
		From     string        `yaml:"from"`
		Input    literal       `yaml:"input"`
		Name     string        `yaml:"name"`
		Deadline time.Duration `yaml:"deadline"`
		Else     construct     `yaml:"else"`
	}
	err := n.Decode(&raw)
	_, before := n.Get("while")
	_, after := n.Get("until")
	x := program.DoUntil{
		Name: raw.Name, Until: raw.Until, Do: raw.Do.Construct, From: raw.From, Input: string(raw.Input), Deadline: raw.Deadline, Else: raw.Else.Construct,
	}
	switch {
	case before && after:
		return x, n.Fault("a loop is judged before each time, by while, or after it, by until: not both")
	case after:
		return x, err
	}
	return program.While{Name: x.Name, When: raw.While, Do: x.Do, From: x.From, Input: x.Input, Deadline: x.Deadline, Else: x.Else}, err
}

func readDo(n yamlconf.Node) (program.Construct, error) {
	var raw struct {
		Do       string        `yaml:"do"`
		On       string        `yaml:"on"`
		From     string        `yaml:"from"`
		Input    literal       `yaml:"input"`
		Retry    int           `yaml:"retry"`
		Async    []string      `yaml:"async"`
		Name     string        `yaml:"name"`
		Deadline time.Duration `yaml:"deadline"`
		Else     construct     `yaml:"else"`
	}
	err := n.Decode(&raw)
	return program.Do{
		Name: raw.Name, Block: raw.Do, On: raw.On, From: raw.From, Input: string(raw.Input), Retry: raw.Retry, Async: some(raw.Async),
		Deadline: raw.Deadline, Else: raw.Else.Construct,
	}, err
}

// some is a list that is nil if it is empty: a program that is written leaves it
// out.
func some(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}

// literal is a value of the file as compact JSON.
type literal string

// UnmarshalNode takes any value.
func (l *literal) UnmarshalNode(n yamlconf.Node) error {
	text, err := literalJSON(nil, n)
	*l = literal(text)
	return err
}

func literalJSON(to []byte, n yamlconf.Node) ([]byte, error) {
	var err error
	switch n.Kind() {
	case yamlconf.KindNull:
		return append(to, "null"...), nil
	case yamlconf.KindBool:
		return append(to, strings.ToLower(n.Text())...), nil
	case yamlconf.KindInt, yamlconf.KindFloat:
		if json.Valid([]byte(n.Text())) {
			return append(to, n.Text()...), nil
		}
		x, err := yamlconf.ParseFloat(n.Text())
		text, bad := json.Marshal(x)
		if err != nil || bad != nil {
			return to, n.Fault("%s is no number that JSON has", n.Text())
		}
		return append(to, text...), nil
	case yamlconf.KindText:
		return literalText(to, n.Text()), nil
	case yamlconf.KindList:
		to = append(to, '[')
		for i, item := range n.Items() {
			if i > 0 {
				to = append(to, ',')
			}
			if to, err = literalJSON(to, item); err != nil {
				return to, err
			}
		}
		return append(to, ']'), nil
	default:
	}
	to = append(to, '{')
	for i, item := range n.Items() {
		if i > 0 {
			to = append(to, ',')
		}
		key, _ := item.Key()
		to = append(literalText(to, key), ':')
		if to, err = literalJSON(to, item); err != nil {
			return to, err
		}
	}
	return append(to, '}'), nil
}

// literalText appends a JSON string; nothing in it needs escapes for HTML.
func literalText(to []byte, s string) []byte {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return strconv.AppendQuote(to, s) // A string always encodes.
	}
	return append(to, strings.TrimSuffix(b.String(), "\n")...)
}
