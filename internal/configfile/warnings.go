package configfile

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/yamlconf"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// adviser collects the warnings of one section.
type adviser struct {
	doc  *yamlconf.Doc
	plan *plan.Level
	sec  *config.Synchronizer
	list []yamlconf.Fault
}

// advise finds what a section says in vain, and what it does not say in words. Each is a case in which nobody can
// have meant what is written; what is only unusual is none.
func advise(doc *yamlconf.Doc, plan *plan.Level, sec *config.Section) {
	a := adviser{doc: doc, plan: plan, sec: &sec.Synchronizer}
	for i := range sec.Synchronizer.Predicates {
		a.predicate(sec.Synchronizer.Predicates[i].Key, &sec.Synchronizer.Predicates[i].Value)
	}
	a.memory()
	a.misread()
	a.fields("state", plan.State, func(u predicates.Uses) uint64 { return u.Fields })
	a.fields("process", plan.Process, func(u predicates.Uses) uint64 { return u.Process })
	slices.SortStableFunc(a.list, func(f, g yamlconf.Fault) int {
		return cmp.Or(cmp.Compare(f.Line, g.Line), cmp.Compare(f.Column, g.Column))
	})
	plan.Warnings = a.list
}

func (a *adviser) warn(at, hint, format string, args ...any) {
	a.list = append(a.list, a.fault(at, hint, format, args...))
}

func (a *adviser) fault(at, hint, format string, args ...any) yamlconf.Fault {
	return a.doc.Note(yamlconf.Fault{Path: path(a.plan.Name, at), Message: fmt.Sprintf(format, args...), Hint: hint})
}

// summaries warns where runs are looked for in what the summaries of a level say.
// They last from the latest start of the threads' states to the earliest end, so what
// is found of them is true, and less than is true of the threads.
func summaries(doc *yamlconf.Doc, parent, below *plan.Level) {
	a := adviser{doc: doc, plan: parent}
	for _, r := range parent.Rules {
		for i := range below.Summaries {
			if r.Detector.Local != nil && r.Detector.Local.Uses().Fields>>i&1 == 1 && below.Summarizes(i) {
				a.weaker(r, parent.State[i].Name, below.Name)
				break
			}
		}
	}
	parent.Warnings = append(parent.Warnings, a.list...)
}

func (a *adviser) weaker(r *plan.Rule, field, below string) {
	word, hint := r.Detector.Word(), "leave the modality out"
	if word == plan.AtLeast {
		hint = "write len(filter(members, CONDITION)) instead of count, without a modality"
	}
	at := "predicates." + r.Key + ".modality"
	if a.doc.Pos(path(a.plan.Name, at)) == (yamlconf.Pos{}) {
		at = "predicates." + r.Key + ".when"
	}
	a.warn(at, "judge the threads' own states by a predicate of "+below+", or "+hint+": inst loses nothing by summaries",
		"%s is weaker here than its name: the field %q comes from the summary of %q, which holds only from the latest start of the threads' states to the earliest end, so the predicate may miss true conditions of the threads",
		word, field, below)
}

func (a *adviser) predicate(name string, p *config.Predicate) {
	at := "predicates." + name
	if len(p.Signal) == 0 && len(p.Set) == 0 && a.doc.Pos(path(a.plan.Name, at, "signal")) == (yamlconf.Pos{}) {
		a.warn(at, "add signal or set; write signal: [] if its verdict is only to be watched", "predicate %q has no effect when it fires", name)
	}
	for _, r := range a.plan.Rules {
		if most := a.plan.Members.Max; r.Key == name && r.Detector.AtLeast > most {
			a.warn(at+".when", fmt.Sprintf("ask for fewer, or raise members.max, which is %d", most), "%q never fires: it asks for %d members", name, r.Detector.AtLeast)
		}
		if r.Key == name && r.Detector.AtLeast > 0 && p.Modality != plan.AtLeast {
			a.plan.Notes = append(a.plan.Notes, a.fault(at+".when", "write modality: "+plan.AtLeast+" to ask for it; len(filter(members, CONDITION)) instead of count is judged on global states of all members",
				"%q is taken for a threshold: it fires on each set of %d members that certainly overlapped, without waiting for the others", name, r.Detector.AtLeast))
		}
	}
	if !a.share(name) && !p.Every && p.Until == "" && p.Modality == "" {
		a.likeThreshold(name)
	}
	a.bounds(name)
	for _, u := range a.plan.Uses {
		if u.At == at+".when" && constant(u.Uses) {
			a.warn(u.At, "compare something with the state of members or with memory", "the condition has the same value on every global state")
		}
	}
	if p.Every && p.Cooldown == 0 && len(p.Signal) > 0 && !a.guarded(at) {
		a.warn(at+".every", "let when compare with a variable of memory that set changes, give it a cooldown, or leave out every",
			"%q sends its signals again on each global state while it holds: every change of any member makes one", name)
	}
	seen := map[[2]string]bool{}
	for i, s := range p.Signal {
		signal := cmp.Or(s.Name, name)
		to := [2]string{s.To.Group, signal}
		if seen[to] {
			a.warn(fmt.Sprintf("%s.signal[%d]", at, i), "give each a name of its own",
				"a second signal %q of the same decision: a member that gets both takes the second for a copy and ignores it", signal)
		}
		seen[to] = true
	}
}

// misread warns of texts that people read otherwise than they are, each once: a predicate
// for groups of members is compiled for each group.
func (a *adviser) misread() {
	texts := map[string]string{}
	lets := func(at string, list yamlconf.Map[string]) {
		for _, e := range list {
			texts[at+"."+e.Key] = e.Value
		}
	}
	lets("let", a.sec.Let)
	for _, e := range a.sec.Predicates {
		lets("predicates."+e.Key+".let", e.Value.Let)
	}
	for _, u := range a.plan.Uses {
		texts[u.At] = u.Text
	}
	for _, at := range slices.Sorted(maps.Keys(texts)) {
		if fault := predicates.Misread(texts[at]); fault != nil {
			a.warn(at, fault.Hint, "%s", fault.Message)
		}
	}
}

// likeThreshold notes that a predicate waits for all members where so many are enough.
func (a *adviser) likeThreshold(name string) {
	for _, r := range a.plan.Rules {
		if r.Key == name && r.When != nil && !r.Detector.Exists() && r.When.LikeThreshold() {
			a.plan.Notes = append(a.plan.Notes, a.fault("predicates."+name+".when",
				"write modality: "+plan.AtLeast+" and count(members, CONDITION) >= K, where K is such as len(members) / 2 + 1; modality: inst keeps it as it is",
				"%q asks for so many members that satisfy a condition, and waits for all members: it is judged on global states", name))
		}
	}
}

// share warns of a share of the members that is another one than it seems.
func (a *adviser) share(name string) bool {
	m := a.plan.Members
	for _, r := range a.plan.Rules {
		if r.Key != name || r.When == nil {
			continue
		}
		if fault := r.When.MisreadShare(m.Min, m.Max, max(m.Count, 5), r.Detector.AtLeast > 0); fault != nil {
			a.warn("predicates."+name+".when", fault.Hint, "%q: %s", name, fault.Message)
			return true
		}
	}
	return false
}

// bounds warns of parameters that may be given values with which a threshold asks for no
// member, or for more than there may be.
func (a *adviser) bounds(name string) {
	i := slices.IndexFunc(a.plan.Rules, func(r *plan.Rule) bool { return r.Key == name && r.Detector.AtLeast > 0 })
	if i < 0 {
		return
	}
	most, when := a.plan.Members.Max, a.plan.Rules[i].When
	for _, p := range a.plan.Params {
		for _, bound := range []scgs.Value{p.Min, p.Max} {
			if bound.Type() == scgs.Invalid {
				continue
			}
			now, _ := when.LeastOf(most, p.Field.Name, p.Value)
			k, ok := when.LeastOf(most, p.Field.Name, bound)
			if !ok || k == now || 1 <= k && k <= int64(most) {
				continue
			}
			text := config.ParamText(bound)
			if k < 1 {
				a.warn("predicates."+name+".when", "declare params."+p.Field.Name+" with a greater min", "%q asks for %d members where params.%s is %s, which its range allows: 1 is the least", name, k, p.Field.Name, text)
			} else {
				a.warn("predicates."+name+".when", fmt.Sprintf("declare params.%s with a smaller max, or raise members.max, which is %d", p.Field.Name, most), "%q never fires where params.%s is %s, which its range allows: it asks for %d members", name, p.Field.Name, text, k)
			}
		}
	}
}

func constant(u predicates.Uses) bool {
	return !u.Members && u.Fields|u.Memory|u.Process == 0 && len(u.Parent) == 0
}

// guarded reports whether memory has a say in when the predicate fires.
func (a *adviser) guarded(at string) bool {
	return slices.ContainsFunc(a.plan.Uses, func(u plan.Use) bool { return u.At == at+".when" && u.Uses.Memory != 0 })
}

func (a *adviser) memory() {
	for i, v := range a.sec.Memory {
		name := v.Field.Name
		set := slices.ContainsFunc(a.sec.Predicates, func(e yamlconf.Entry[config.Predicate]) bool {
			_, ok := e.Value.Set.Get(name)
			return ok
		})
		read := slices.ContainsFunc(a.plan.Uses, func(u plan.Use) bool {
			return u.Uses.Memory&(1<<i) != 0 && !strings.HasSuffix(u.At, ".set."+name)
		})
		switch {
		case !read:
			a.warn("memory."+name, "read it as memory."+name+", or remove it", "no expression reads the variable %q", name)
		case !set && v.Initial == nil:
			a.warn("memory."+name, "give it an initial value, or let a predicate set it",
				"the variable %q has no initial value and is never set: it is always unknown", name)
		}
	}
}

// fields warns of declared fields that no expression reads, if there are any
// expressions at all.
func (a *adviser) fields(section string, declared scgs.Schema, of func(predicates.Uses) uint64) {
	if len(a.plan.Uses) == 0 {
		return
	}
	unread := uint64(1)<<len(declared) - 1
	for _, u := range a.plan.Uses {
		unread &^= of(u.Uses)
	}
	for ; unread != 0; unread &= unread - 1 {
		name := declared[bits.TrailingZeros64(unread)].Name
		if strings.HasPrefix(name, config.WorkPrefix) {
			continue // It is not in the file.
		}
		a.warn(section+"."+name, "every change of it costs a report and a global state", "no expression reads the field %q", name)
	}
}
