package configfile

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

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
func ParseProgram(name string, src []byte, overrides ...plan.Override) (*ProgramFile, error) {
	return parseProgram(name, src, false, overrides)
}

// ParseToRun is [ParseProgram], and finds what keeps the program from being run.
func ParseToRun(name string, src []byte, overrides ...plan.Override) (*ProgramFile, error) {
	return parseProgram(name, src, true, overrides)
}

func parseProgram(name string, src []byte, toRun bool, overrides []plan.Override) (*ProgramFile, error) {
	raw := programDocument{given: given(overrides)}
	doc, err := yamlconf.DecodeWith(programForms, name, src, &raw)
	if doc == nil {
		return nil, err
	}
	if _, ok := doc.Root().Get("synchronizers"); ok {
		doc.Advise(`missing key "program"`, `a file without a program is for "pegasus check" and "pegasus run"; in Go, for synchronizer.LoadConfig`)
	}
	if raw.wrong != nil && doc.Err() == nil {
		return nil, raw.wrong
	}
	whole := !faulty(err)
	p := parser{doc: doc, cfg: &config.Config{Params: raw.params, Synchronizers: raw.Synchronizers}, levels: map[string]config.Section{}}
	host := p.host(toRun && whole)
	p.all()
	file := &ProgramFile{Program: raw.Program.value()}
	for _, b := range file.Program.Blocks {
		if b.Name == wire.ProcessorRegion {
			doc.Add(yamlconf.Fault{
				Path: "program.blocks." + b.Name, Message: fmt.Sprintf("a block cannot have the name %q: the region of every processor has this name", b.Name),
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
	source := &plan.Source{Name: name, Text: string(src), Overrides: overrides, Program: true}
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

// programDocument is a file with a program.
type programDocument struct {
	given  []config.Given
	params config.Params
	wrong  error // of given

	Synchronizers yamlconf.Map[config.Synchronizer]
	Program       programSection
}

// UnmarshalNode decodes the parameters first: the rest may name them.
func (d *programDocument) UnmarshalNode(n yamlconf.Node) error {
	d.params, d.wrong = config.DecodeParams(n, d.given)
	var raw struct {
		Params        yamlconf.Node                     `yaml:"params"`
		Synchronizers yamlconf.Map[config.Synchronizer] `yaml:"synchronizers"`
		Program       programSection                    `yaml:"program,required"`
	}
	err := n.Decode(&raw)
	d.Synchronizers, d.Program = raw.Synchronizers, raw.Program
	return err
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
				p.doc.FaultAt(path(e.Key, "members"), "the members of %s and of %s are processes: a program has one synchronizer of processes, which runs its blocks and judges the predicates of its switches: leave one, and run the others from a file of their own", host.Key, e.Key)
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
	return plan.Encode(l)
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
	Name       string                          `yaml:"name,required"`
	Processors yamlconf.Map[program.Processor] `yaml:"processors"`
	Blocks     yamlconf.Map[program.Block]     `yaml:"blocks"`
	Body       program.Construct               `yaml:"body,required,construct"`
	Result     string                          `yaml:"result"`
}

func (s *programSection) value() *program.Program {
	p := &program.Program{Name: s.Name, Body: s.Body, Result: s.Result}
	for _, e := range s.Processors {
		e.Value.Name, e.Value.Labels = e.Key, some(e.Value.Labels)
		p.Processors = append(p.Processors, e.Value)
	}
	for _, e := range s.Blocks {
		e.Value.Name = e.Key
		p.Blocks = append(p.Blocks, e.Value)
	}
	return p
}

// programForms are those that the tags of a program's parts name.
var programForms = yamlconf.Forms{
	"type": func(n yamlconf.Node, into any) error { return n.Decode((*valueType)(into.(*program.Type))) },
	"json": readJSON,
	"construct": func(n yamlconf.Node, into any) error {
		var c construct
		err := n.Decode(&c)
		*into.(*program.Construct) = c.Construct
		return err
	},
	"constructs": readConstructs,
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
	{"seq", read[program.Seq]},
	{"par", readPar},
	{"if", read[program.If]},
	{"case", read[program.Case]},
	{"while", readWhile},
	{"until", read[program.DoUntil]},
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
	return n.Fault("not a construct: none of the keys seq, par, if, case, while, until, do is given")
}

func read[T program.Construct](n yamlconf.Node) (program.Construct, error) {
	var x T
	err := n.Decode(&x)
	return x, err
}

// readConstructs takes a list, or below par one construct.
func readConstructs(n yamlconf.Node, into any) (err error) {
	var list []construct
	if key, _ := n.Key(); key == "par" && n.Kind() != yamlconf.KindList {
		list = make([]construct, 1)
		err = n.Decode(&list[0])
	} else {
		err = n.Decode(&list)
	}
	to := into.(*[]program.Construct)
	for _, c := range list {
		*to = append(*to, c.Construct)
	}
	return err
}

// allJoin is the JOIN that passes when every branch has ended.
const allJoin = "all"

func readPar(n yamlconf.Node) (program.Construct, error) {
	var x program.Par
	if err := n.Decode(&x); err != nil {
		return x, err
	}
	if x.Join == allJoin {
		x.Join = ""
	}
	par, _ := n.Get("par")
	times, given := n.Get("times")
	switch {
	case given && x.Times < 1:
		return x, times.Fault("times says how often the construct below par runs: 1 or more")
	case !given && par.Kind() != yamlconf.KindList:
		return x, par.Fault("par takes a list of constructs, or one construct with times: N beside it")
	}
	return x, nil
}

func readWhile(n yamlconf.Node) (program.Construct, error) {
	if _, after := n.Get("until"); after {
		return nil, n.Fault("a loop is judged before each time, by while, or after it, by until: not both")
	}
	return read[program.While](n)
}

func readDo(n yamlconf.Node) (program.Construct, error) {
	var x program.Do
	err := n.Decode(&x)
	x.Async = some(x.Async)
	return x, err
}

// some is a list that is nil if it is empty: a program that is written leaves it
// out.
func some(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}

// readJSON takes any value, as compact JSON.
func readJSON(n yamlconf.Node, into any) error {
	var b strings.Builder
	err := writeJSON(jsontext.NewEncoder(&b, jsontext.AllowInvalidUTF8(true)), n)
	*into.(*string) = strings.TrimSuffix(b.String(), "\n")
	return err
}

func writeJSON(to *jsontext.Encoder, n yamlconf.Node) error {
	begin, end := jsontext.BeginArray, jsontext.EndArray
	switch n.Kind() {
	case yamlconf.KindNull:
		return to.WriteToken(jsontext.Null)
	case yamlconf.KindBool:
		return to.WriteToken(jsontext.Bool(strings.EqualFold(n.Text(), "true")))
	case yamlconf.KindInt, yamlconf.KindFloat:
		x, err := yamlconf.ParseFloat(n.Text())
		switch raw := jsontext.Value(n.Text()); {
		case raw.IsValid():
			return to.WriteValue(raw)
		case err != nil || math.IsInf(x, 0) || math.IsNaN(x):
			return n.Fault("%s is no number that JSON has", n.Text())
		}
		return to.WriteToken(jsontext.Float(x))
	case yamlconf.KindText:
		return to.WriteToken(jsontext.String(n.Text()))
	case yamlconf.KindMap:
		begin, end = jsontext.BeginObject, jsontext.EndObject
	default:
	}
	err := to.WriteToken(begin)
	for _, item := range n.Items() {
		if key, _ := item.Key(); n.Kind() == yamlconf.KindMap {
			err = cmp.Or(err, to.WriteToken(jsontext.String(key)))
		}
		if err = cmp.Or(err, writeJSON(to, item)); err != nil {
			return err
		}
	}
	return cmp.Or(err, to.WriteToken(end))
}
