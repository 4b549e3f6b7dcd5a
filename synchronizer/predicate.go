package synchronizer

import (
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/yamlconf"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
)

// Predicate is a predicate on global states that is written in Go. It stands beside the
// predicates of the configuration and fires by the same rules; its fields have the meaning of
// the configuration keys with the same names.
//
// Judge is called on the synchronizer's goroutine with every global state, in order, and
// everything waits until it returns. Its result must depend on the global state alone. Unknown
// needs a reason, and neither fires nor makes the predicate ready to fire again. A panic in
// Judge counts as Unknown; it is logged once and counted in [Stats]. A journal does not contain
// the function: a replay needs the predicates again ([ReplayOptions]).
type Predicate struct {
	Name  string                                                            // unlike predicates of the configuration
	Judge func(monitor.GlobalState) (truth predicates.Truth, reason string) // must not be nil

	For      time.Duration     // it must certainly have held for so long; 0: not at all
	Every    bool              // fire on every global state on which it is true
	Until    string            // an expression; empty: when it is false
	Cooldown time.Duration     // at least between two firings; 0: none
	Refire   bool              // fire in each new epoch for all; else, if it stays true, for new members alone
	Priority int               // as in the configuration
	Set      map[string]string // variable of the memory to expression
	Signals  []Signal          // that go out when it fires
}

// Signal is what a [Predicate] sends when it fires. The level of threads below
// reads it as from_parent only if a predicate of the configuration sends one of
// that name, which then has the same data.
type Signal struct {
	Name    string            // empty: the predicate's name
	Kind    control.Kind      // activate or cancel
	Region  string            // of the targets
	To      string            // an expression for a group of members; empty: all
	Members []string          // by name, in place of To
	Group   string            // every member of another group, in place of To; see docs/config.md
	Data    map[string]string // name to expression
	Expires time.Duration     // 0: 30 s
}

// compilePredicates gives the predicates the form that the machine takes. panicked receives the panic of
// a predicate.
func compilePredicates(all []Predicate, panicked func(name string, cause any)) []plan.GoPredicate {
	out := make([]plan.GoPredicate, len(all))
	for i := range all {
		p := &all[i]
		out[i] = plan.GoPredicate{Name: p.Name, Judge: guarded(p, panicked), Predicate: config.Predicate{
			For: p.For, Every: p.Every, Until: p.Until, Cooldown: p.Cooldown, Priority: p.Priority, Set: sorted(p.Set),
		}}
		if p.Refire {
			out[i].Refire = config.RefireEpoch
		}
		for _, s := range p.Signals {
			to := config.Target{Expr: s.To, Names: s.Members, Group: s.Group}
			out[i].Signal = append(out[i].Signal, config.Signal{
				Name: s.Name, Kind: s.Kind.String(), Region: s.Region, To: to, Data: sorted(s.Data), Expires: s.Expires,
			})
		}
	}
	return out
}

func guarded(p *Predicate, panicked func(name string, cause any)) monitor.Judge {
	judge, name := p.Judge, p.Name
	if judge == nil {
		return nil
	}
	return func(g monitor.GlobalState) (truth predicates.Truth, reason string) {
		defer func() {
			if cause := recover(); cause != nil {
				panicked(name, cause)
				truth, reason = predicates.Unknown, fmt.Sprintf("the Judge panicked: %v", cause)
			}
		}()
		return judge(g)
	}
}

func sorted(m map[string]string) yamlconf.Map[string] {
	var out yamlconf.Map[string]
	for _, key := range slices.Sorted(maps.Keys(m)) {
		out = append(out, yamlconf.Entry[string]{Key: key, Value: m[key]})
	}
	return out
}

// countPanic counts a panic of a Judge, and logs the first of each.
func (s *Synchronizer) countPanic(name string, cause any) {
	s.mu.Lock()
	s.stats.Panics++
	first := !slices.Contains(s.panics, name)
	if first {
		s.panics = append(s.panics, name)
	}
	s.mu.Unlock()
	if first {
		s.opt.Logger.Error("a predicate's Judge panicked and counts as unknown; further panics of it are counted only",
			"predicate", name, "panic", cause, "stack", string(debug.Stack()))
	}
}
