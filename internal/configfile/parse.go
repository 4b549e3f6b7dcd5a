package configfile

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/internal/yamlconf"
)

// Parse reads a configuration file and compiles every level of it. The error is
// a *yamlconf.Error with every fault of the file and its place; name stands for
// the file in them.
func Parse(name string, src []byte, overrides ...plan.Override) (plan.Levels, error) {
	cfg := config.Config{Given: given(overrides)}
	doc, err := yamlconf.Decode(name, src, &cfg)
	if doc == nil {
		return nil, err
	}
	if _, ok := doc.Root().Get("program"); ok {
		doc.Advise(`unknown key "program"`, `a file with a program is for "pegasus program check" and "pegasus program run"; in Go, for synchronizer.LoadProgram`)
	}
	doc.Advise(`unknown key "config"`, `a file of rule tests is for "pegasus test"`)
	p := parser{doc: doc, cfg: &cfg, overrides: overrides}
	if err := p.overrideErr(); err != nil && doc.Err() == nil {
		return nil, err
	}
	p.all()
	if err := doc.Err(); err != nil {
		return nil, err
	}
	source := &plan.Source{Name: name, Text: string(src), Overrides: overrides}
	for _, plan := range p.plans {
		plan.Source = source
	}
	return p.plans, nil
}

type parser struct {
	doc       *yamlconf.Doc
	cfg       *config.Config
	overrides []plan.Override
	plans     plan.Levels
	left      map[string]bool           // where a fault only follows from another one
	levels    map[string]config.Section // those of threads in a file with a program, which has one for each kind of block
}

func path(parts ...string) string { return "synchronizers." + strings.Join(parts, ".") }

func (p *parser) all() {
	p.left = map[string]bool{}
	if _, ok := p.doc.Root().Get("synchronizers"); ok && len(p.cfg.Synchronizers) == 0 {
		p.doc.FaultAt("synchronizers", "no synchronizer is declared: name at least one, with its members and predicates")
	}
	for _, e := range p.cfg.Synchronizers {
		p.tree(e.Key, e.Value)
	}
	for _, name := range p.order() {
		s, _ := p.cfg.Synchronizers.Get(name)
		for _, o := range p.overrides {
			if o.Synchronizer == name {
				s.Members.Min = min(s.Members.Min, o.Count)
				s.Members.Count = o.Count
				s.Members.Max = max(s.Members.Max, o.Count)
			}
		}
		p.level(name, s)
	}
	p.fits()
}

// overrideErr refuses an override that names no section or cannot be met.
func (p *parser) overrideErr() error {
	if p.cfg.Wrong != nil {
		return p.cfg.Wrong
	}
	for _, o := range p.overrides {
		if o.Param != "" {
			continue
		}
		if _, ok := p.cfg.Synchronizers.Get(o.Synchronizer); !ok {
			return fmt.Errorf("synchronizer %q: the configuration has none of that name to give %d members", o.Synchronizer, o.Count)
		}
		if o.Count < 1 || o.Count > config.MaxMembers {
			return fmt.Errorf("synchronizer %q: %d members: use 1 to %d", o.Synchronizer, o.Count, config.MaxMembers)
		}
	}
	return nil
}

// tree checks a section's place among the others.
func (p *parser) tree(name string, s config.Synchronizer) {
	if err := wire.CheckToken("synchronizer", name); err != nil {
		p.doc.FaultAt(path(name), "%v", err)
	}
	if s.Members.Group != "" {
		if err := wire.CheckToken("group", s.Members.Group); err != nil {
			p.doc.FaultAt(path(name, "members", "group"), "%v", err)
		}
	}
	for _, other := range p.cfg.Synchronizers {
		if other.Key == name {
			break
		}
		if g := s.Members.Group; g != "" && other.Value.Members.Group == g {
			p.doc.FaultAt(path(name, "members", "group"), "the group %q belongs to %q already: a member obeys one synchronizer; put both sections together, or give this synchronizer a group of its own", g, other.Key)
			break
		}
	}
	if s.Parent == "" {
		if s.Members.Threads {
			p.doc.FaultAt(path(name, "members"), "a thread-level synchronizer needs a parent: the synchronizer whose members have these threads")
		}
		if len(s.Summary) > 0 {
			p.doc.FaultAt(path(name, "summary"), "a summary goes to a parent, and this synchronizer has none")
		}
		return
	}
	parent, ok := p.cfg.Synchronizers.Get(s.Parent)
	switch {
	case !ok:
		p.doc.FaultAt(path(name, "parent"), "there is no synchronizer %q", s.Parent)
	case parent.Members.Threads:
		p.doc.FaultAt(path(name, "parent"), "%q is a thread-level synchronizer: its members are threads and have no level below", s.Parent)
	case !s.Members.Threads:
		p.doc.FaultAt(path(name, "parent"), "only a thread-level synchronizer, members: {threads: N}, can have a parent")
	}
	for _, other := range p.cfg.Synchronizers {
		if p.levels == nil && other.Key < name && other.Value.Parent == s.Parent && other.Value.Members.Threads && s.Members.Threads {
			p.doc.FaultAt(path(name, "parent"), "%q and %q are both thread-level synchronizers below %q: a process hosts one", other.Key, name, s.Parent)
		}
	}
}

// order lists the sections, parents before children, which have none below them, else
// by name.
func (p *parser) order() []string {
	var above, below []string
	for _, e := range p.cfg.Synchronizers {
		if e.Value.Parent == "" {
			above = append(above, e.Key)
		} else {
			below = append(below, e.Key)
		}
	}
	slices.Sort(above)
	slices.Sort(below)
	return append(above, below...)
}

func (p *parser) level(name string, s config.Synchronizer) {
	sec := config.Section{Name: name, Synchronizer: s, Params: p.cfg.Params.Values()}
	if parent := p.plans.Get(s.Parent); parent != nil {
		sec.FromParent = parent.SignalsBelow
		sec.ParentState = parent.State
	}
	level := plan.Compile(&sec, func(at string, offset int, message, hint string) {
		if p.follows(name, at, message) {
			p.left[path(name, at)] = true
			return
		}
		if hint != "" {
			message += ": " + hint
		}
		if offset >= 0 {
			p.doc.FaultIn(path(name, at), offset, "%s", message)
			return
		}
		p.doc.FaultAt(path(name, at), "%s", message)
	})
	level.Params = p.cfg.Params
	advise(p.doc, level, &sec)
	p.plans = append(p.plans, level)
	sec.Params = level.Read(sec.Params)
	parent := p.plans.Get(s.Parent)
	if parent == nil || !s.Members.Threads {
		return
	}
	summaries(p.doc, parent, level)
	if p.levels != nil {
		p.levels[name] = sec
	} else {
		parent.Below = plan.Encode(sec)
	}
}

// follows reports whether a fault only follows from one at the declaration of what it
// misses.
func (p *parser) follows(synchronizer, at, message string) bool {
	for _, missing := range []struct{ section, before, after string }{
		{"state", `unknown field "`, `"`},
		{"process", "unknown field process.", ""},
		{"memory", "unknown variable memory.", ""},
		{"memory", `memory has no variable "`, `"`},
		{"let", `unknown name "`, `"`},
	} {
		rest, ok := strings.CutPrefix(message, missing.before)
		if name, ok2 := strings.CutSuffix(rest, missing.after); ok && ok2 && p.faulty(path(synchronizer, missing.section, name)) {
			return true
		}
	}
	if strings.HasPrefix(message, "unknown parameter params.") && p.doc.Faulty("params") {
		return true
	}
	if name, ok := strings.CutPrefix(message, `unknown name "`); ok { // Of its own predicate.
		predicate, _, _ := strings.Cut(strings.TrimPrefix(at, "predicates."), ".")
		return p.faulty(path(synchronizer, "predicates", predicate, "let", strings.TrimSuffix(name, `"`)))
	}
	return false
}

func (p *parser) faulty(path string) bool { return p.left[path] || p.doc.Faulty(path) }

// given are the values of parameters among overrides.
func given(overrides []plan.Override) []config.Given {
	var list []config.Given
	for _, o := range overrides {
		if o.Param != "" {
			list = append(list, config.Given{Name: o.Param, Value: o.Value})
		}
	}
	return list
}

// fits checks that what a member must be told at its welcome fits a message, whatever
// the names of the member and of the clock are.
func (p *parser) fits() {
	long := strings.Repeat("x", wire.MaxHostBytes)
	for _, plan := range p.plans {
		w := wire.Welcome{
			Synchronizer: plan.Name, Term: math.MaxUint64, Epoch: math.MaxUint64, Member: long[:wire.MaxTokenBytes], Incarnation: math.MaxUint64,
			Accepted: true, Schema: plan.State, Section: plan.Below, SectionHash: math.MaxUint64, Heartbeat: math.MaxInt64, NextSeq: math.MaxUint64,
			Domain: clocksync.Domain(long), Timeline: clocksync.Timeline(long),
		}
		if _, err := wire.AppendWelcome(nil, &w); err != nil && p.doc.Err() == nil {
			p.doc.FaultAt(path(plan.Name), "the declared state and the section below do not fit the message that tells members of them: %v", err)
		}
	}
}

// Recompile compiles a source again and returns the plan of a synchronizer.
func Recompile(s *plan.Source, synchronizer string) (*plan.Level, error) {
	plans, err := recompiled(s)
	if err != nil {
		return nil, err
	}
	plan := plans.Get(synchronizer)
	if plan == nil {
		return nil, fmt.Errorf("its configuration has no synchronizer %q", synchronizer)
	}
	return plan, nil
}

func recompiled(s *plan.Source) (plan.Levels, error) {
	if !s.Program {
		return Parse(s.Name, []byte(s.Text), s.Overrides...)
	}
	file, err := ParseProgram(s.Name, []byte(s.Text), s.Overrides...)
	if err != nil {
		return nil, err
	}
	return file.Levels, nil
}
