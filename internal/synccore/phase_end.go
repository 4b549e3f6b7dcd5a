package synccore

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/scgs"
)

// missingEnd appends which members keep a phase of the section work from ending, by the newest global
// state. Of a condition that the key end has replaced it knows only that all members are in one phase.
func (c *Core) missingEnd(l *missing) {
	w := c.plan.Work
	if w == nil || c.inForce() == 0 || c.stateStatus() == nil {
		return
	}
	newest, ended := int64(0), c.memory[c.plan.Ended].Int()
	for _, m := range c.inEpoch {
		newest = max(newest, c.workValue(m, "phase").Int())
	}
	own, awaits := cmp.Or(w.End, config.DefaultEnd) != config.DefaultEnd, false
	for _, m := range c.inEpoch {
		if len(*l) >= maxMissing {
			return
		}
		v := c.workValue(m, "awaits")
		awaits = awaits || v.Bool() || v.Type() == scgs.Invalid // It may.
		switch v = c.workValue(m, "phase"); {
		case v.Type() == scgs.Invalid:
		case v.Int() == 0:
			l.add("work", m.name, "it has not opened the space: its program has to call work.Open", nil)
		case v.Int() < newest:
			l.add("work", m.name, fmt.Sprintf("it is in phase %d, and others are in phase %d: it does not know yet that its phase is over", v.Int(), newest), nil)
		case !own && newest > ended:
			c.missingWork(l, m)
		}
	}
	switch {
	case newest == 0:
	case newest <= ended:
		l.add("work", "", fmt.Sprintf("phase %d is over, and no member is in the next one yet", ended), nil)
	case !awaits && !own:
		l.add("work", "", "no member waits for the end: one of the programs has to call Wait, Results, Total or Next", nil)
	}
}

// missingWork appends what a member lacks for the end by the default condition.
func (c *Core) missingWork(l *missing, m *member) {
	if v := c.workValue(m, "idle"); v.Type() == scgs.Bool && !v.Bool() {
		var parts []string
		for _, f := range [][2]string{{"open", "put there and open"}, {"queued", "waiting there"}, {"running", "running there"}} {
			if n := c.workValue(m, f[0]); n.Type() == scgs.Int {
				parts = append(parts, fmt.Sprintf("%d %s", n.Int(), f[1]))
			}
		}
		text := "it has tasks, or tasks that it has put are open: pegasus work status counts them"
		if len(parts) > 0 {
			text = "tasks: " + strings.Join(parts, ", ")
		}
		l.add("work", m.name, text, nil)
	}
	if v := c.workValue(m, "settled"); v.Type() == scgs.Bool && !v.Bool() {
		l.add("work", m.name, "its program may put more tasks: it is in none of the calls Wait, Results, Total, Next and Serve", nil)
	}
}

// workValue is a field of the section work in the newest global state; Invalid if it is not known, or no
// expression reads it.
func (c *Core) workValue(m *member, name string) (v scgs.Value) {
	if i := c.plan.State.Index(config.WorkPrefix + name); i >= 0 {
		v = c.scope.Value(m.pos, i)
	}
	return v
}

// muteHint says what a program has to do so that its member has a state.
func (c *Core) muteHint() string {
	if slices.ContainsFunc(c.plan.State, func(f scgs.Field) bool { return !strings.HasPrefix(f.Name, config.WorkPrefix) }) || len(c.plan.State) == 0 {
		return "the program has to set one"
	}
	return "its program has to call work.Open"
}
