package configfile

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/balance/local"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/yamlconf"
)

// Show gives a configuration with its defaults filled in, in a form that Parse
// accepts and makes the same plans of. What has no default stands as it is in the
// file. The error is that of Parse.
func Show(name string, src []byte) ([]byte, error) {
	plans, err := Parse(name, src)
	if err != nil {
		return nil, err
	}
	var cfg config.Config
	doc, err := yamlconf.Decode(name, src, &cfg)
	if err != nil {
		panic(fmt.Sprintf("configfile: %s was good and is not: %v", name, err))
	}
	var sections entries
	all, _ := doc.Root().Get("synchronizers")
	for i, n := range all.Items() {
		e := &cfg.Synchronizers[i]
		sections.add(e.Key, showSection(n, &e.Value, plans.Get(e.Key)))
	}
	var file entries
	if params, ok := doc.Root().Get("params"); ok {
		file.add("params", params)
	}
	file.add("synchronizers", sections.tree())
	return append(added(plans), yamlconf.Write(file.tree())...), nil
}

// added is a comment for each section work: what it adds that is not in the file.
func added(plans plan.Levels) []byte {
	var b []byte
	for _, p := range plans {
		i := slices.IndexFunc(p.Rules, func(r *plan.Rule) bool { return r.Name == config.EndName })
		if p.Work == nil || i < 0 {
			continue
		}
		r := p.Rules[i]
		b = fmt.Appendf(b, "# The section work of %s adds the variable memory.%s, initial: 0, and the predicate %s, every: true\n", p.Name, config.EndedName, config.EndName)
		b = fmt.Appendf(b, "#   when: %s\n", strings.ReplaceAll(r.Source(), "\n", "\n#     "))
		b = fmt.Appendf(b, "#   set: {%s: %s}\n", config.EndedName, r.Set[0].Value.Source())
		b = fmt.Appendf(b, "#   signal: {kind: cancel, region: %s, to: all}\n", config.WorkName)
	}
	return b
}

// entries is a map that is put together.
type entries yamlconf.Map[any]

func (e *entries) add(key string, value any) {
	*e = append(*e, yamlconf.Entry[any]{Key: key, Value: value})
}

func (e entries) tree() yamlconf.Map[any] { return yamlconf.Map[any](e) }

// copied are the keys of a map, those of change with another value.
func copied(n yamlconf.Node, change map[string]any) entries {
	var list entries
	for _, item := range n.Items() {
		key, _ := item.Key()
		if v, ok := change[key]; ok {
			list.add(key, v)
			continue
		}
		list.add(key, item)
	}
	return list
}

// fill adds what a map does not have.
func (e *entries) fill(key string, value any) {
	if _, ok := e.tree().Get(key); !ok {
		e.add(key, value)
	}
}

func showSection(n yamlconf.Node, s *config.Synchronizer, level *plan.Level) yamlconf.Map[any] {
	silence := entries{{Key: "after", Value: level.Silence.After}, {Key: "then", Value: string(level.Silence.Then)}}.tree()
	change := map[string]any{"members": showMembers(&s.Members), "silence": silence}
	if list, ok := n.Get("predicates"); ok {
		var predicates entries
		for i, p := range list.Items() {
			e := &s.Predicates[i]
			rule := slices.IndexFunc(level.Rules, func(r *plan.Rule) bool { return r.Key == e.Key })
			predicates.add(e.Key, showPredicate(p, level.Rules[rule]))
		}
		change["predicates"] = predicates.tree()
	}
	if b, ok := n.Get("balance"); ok && s.Balance != nil {
		change["balance"] = showBalance(b)
	}
	if w, ok := n.Get(config.WorkName); ok && s.Work != nil {
		change[config.WorkName] = showWork(w, s.Work)
	}
	section := copied(n, change)
	if !s.Members.Threads {
		section.fill("silence", silence) // Threads are never silent.
	}
	return section.tree()
}

func showBalance(n yamlconf.Node) yamlconf.Map[any] {
	b := copied(n, nil)
	fillFrom(&b, reflect.ValueOf(config.DefaultBalance()))
	return b.tree()
}

func showWork(n yamlconf.Node, set *config.Work) yamlconf.Map[any] {
	var strategy entries
	if s, ok := n.Get("strategy"); ok {
		strategy = copied(s, nil)
	}
	fillFrom(&strategy, reflect.ValueOf(set.Strategy))
	instead := map[string]any{"strategy": strategy.tree(), "log": showLog(n, set), "objects": showObjects(set)}
	if withdraw, ok := n.Get("withdraw"); ok {
		shown := copied(withdraw, nil)
		shown.fill("for", set.Withdraw.For)
		instead["withdraw"] = shown.tree()
	}
	if calls, ok := n.Get("calls"); ok && len(set.Calls) > 0 {
		instead["calls"] = showCalls(calls, set)
	}
	w := copied(n, instead)
	w.fill("strategy", strategy.tree())
	w.fill("objects", showObjects(set))
	var data entries
	fillFrom(&data, reflect.ValueOf(set.Data))
	w.fill("data", data.tree())
	if set.Store == config.JetStream {
		w.fill("log", showLog(n, set))
	}
	fillFrom(&w, reflect.ValueOf(config.DefaultWork()))
	return w.tree()
}

// showCalls is how the calls of each function travel, with what the file leaves out.
func showCalls(n yamlconf.Node, set *config.Work) yamlconf.Map[any] {
	var calls entries
	for _, e := range set.Calls {
		var shown entries
		if c, ok := n.Get(e.Key); ok && c.Kind() == yamlconf.KindMap {
			shown = copied(c, nil)
		}
		batch, _ := e.Value.BatchOf()
		shown.fill("style", config.StyleAsync)
		shown.fill("traffic", config.Intermittent)
		shown.fill("batch", batch)
		shown.fill("retry", cmp.Or(e.Value.Retry, set.Retry))
		shown.fill("service", e.Value.Service)
		calls.add(e.Key, shown.tree())
	}
	return calls.tree()
}

func showObjects(set *config.Work) yamlconf.Map[any] {
	var save, objects entries
	fillFrom(&save, reflect.ValueOf(set.Objects.Save))
	objects.add("save", save.tree())
	objects.fill("stay", set.Objects.Stay)
	return objects.tree()
}

func showLog(n yamlconf.Node, set *config.Work) yamlconf.Map[any] {
	var log entries
	if l, ok := n.Get("log"); ok {
		log = copied(l, nil)
	}
	fillFrom(&log, reflect.ValueOf(set.Log))
	return log.tree()
}

// fillFrom adds the keys of a struct that a map does not have, but for empty texts, which are
// no defaults, and keys without a value that their kind has.
func fillFrom(to *entries, from reflect.Value) {
	optional := from.Type() == reflect.TypeFor[local.Config]()
	for f, v := range from.Fields() {
		if v.Kind() != reflect.Struct && (v.Kind() != reflect.Slice || !v.IsNil()) && v.Interface() != "" && (!optional || !v.IsZero()) {
			to.fill(f.Tag.Get("yaml"), v.Interface())
		}
	}
}

func showMembers(m *config.Members) yamlconf.Map[any] {
	var list entries
	if m.Threads {
		list.add("threads", m.Count)
	} else {
		list.add("group", m.Group)
		list.add("count", m.Count)
	}
	list.add("min", m.Min)
	list.add("max", m.Max)
	return list.tree()
}

func showPredicate(n yamlconf.Node, rule *plan.Rule) yamlconf.Map[any] {
	change := map[string]any{}
	if s, ok := n.Get("signal"); ok {
		to := "all"
		switch {
		case rule.Detector.Each:
			to = config.Holders
		case rule.Name != rule.Key:
			to = "group"
		}
		change["signal"] = showSignals(s, rule.Key, to)
	}
	p := copied(n, change)
	if !rule.Detector.Each {
		p.fill("modality", rule.Detector.Word())
	}
	p.fill("for", time.Duration(0))
	p.fill("every", false)
	p.fill("cooldown", time.Duration(0))
	if !rule.Every && !rule.Detector.Each {
		p.fill("refire", config.RefireNewcomers)
	}
	p.fill("priority", 0)
	return p.tree()
}

func showSignals(n yamlconf.Node, predicate, to string) any {
	if n.Kind() == yamlconf.KindMap {
		return showSignal(n, predicate, to)
	}
	return trees(n.Items(), func(item yamlconf.Node) any { return showSignal(item, predicate, to) })
}

func showSignal(n yamlconf.Node, predicate, target string) yamlconf.Map[any] {
	change := map[string]any{}
	if to, ok := n.Get("to"); ok && to.Kind() == yamlconf.KindMap {
		group := copied(to, nil)
		group.fill("max", config.DefaultMaxMembers)
		change["to"] = group.tree()
	}
	s := copied(n, change)
	s.fill("name", predicate)
	s.fill("to", target)
	s.fill("expires", config.DefaultExpiry)
	return s.tree()
}
