package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/scgs"
)

// Blocker is a reason for which a phase of the section work does not end.
type Blocker struct {
	Member string // that it is about; empty: all
	Text   string // why
}

// Blockers lists why a phase does not end, by the newest global state: value is a field of the section work,
// read from one member, Invalid if it is not known, or no expression reads it. Of a condition that the key end
// has replaced it knows only that all members are in one phase. Ended is the last phase that is over.
func (p *Level) Blockers(members []string, value func(i int, name string) scgs.Value, ended int64) (list []Blocker) {
	newest := int64(0)
	for i := range members {
		newest = max(newest, value(i, "phase").Int())
	}
	add := func(member, format string, args ...any) {
		list = append(list, Blocker{member, fmt.Sprintf(format, args...)})
	}
	own, awaits := cmp.Or(p.Work.End, config.DefaultEnd) != config.DefaultEnd, false
	for i, name := range members {
		v := value(i, "awaits")
		awaits = awaits || v.Bool() || v.Type() == scgs.Invalid // It may.
		switch v = value(i, "phase"); {
		case v.Type() == scgs.Invalid:
		case v.Int() == 0:
			add(name, "the member has not opened the space: its program has to call work.Open")
		case v.Int() < newest:
			add(name, "the member is in phase %d, and others are in phase %d: it does not know yet that its phase is over", v.Int(), newest)
		case own || newest <= ended:
		default:
			if v := value(i, "idle"); v.Type() == scgs.Bool && !v.Bool() {
				add(name, "%s", tasksText(func(field string) scgs.Value { return value(i, field) }))
			}
			if v := value(i, "settled"); v.Type() == scgs.Bool && !v.Bool() {
				add(name, "its program may put more tasks: it is in none of the calls Wait, Results, Total, Next and Serve")
			}
		}
	}
	switch {
	case newest == 0:
	case newest <= ended:
		add("", "phase %d is over, and no member is in the next one yet", ended)
	case !awaits && !own:
		add("", "no member waits for the end: one of the programs has to call Wait, Results, Total or Next")
	}
	return list
}

// tasksText counts the tasks of a member that is not idle, as far as members report them.
func tasksText(value func(field string) scgs.Value) string {
	var parts []string
	for _, f := range [][2]string{{"open", "put there and open"}, {"queued", "waiting there"}, {"running", "running there"}} {
		if n := value(f[0]); n.Type() == scgs.Int {
			parts = append(parts, fmt.Sprintf("%d %s", n.Int(), f[1]))
		}
	}
	if len(parts) == 0 {
		return "the member has tasks, or has put tasks that are open: pegasus work status counts them, and the tasks that wait for other tasks"
	}
	return "tasks: " + strings.Join(parts, ", ")
}

// MuteHint says what a program has to do so that its member has a state.
func (p *Level) MuteHint() string {
	if len(p.State) == 0 || slices.ContainsFunc(p.State, func(f scgs.Field) bool { return !strings.HasPrefix(f.Name, config.WorkPrefix) }) {
		return "the program has to set one"
	}
	return "its program has to call work.Open"
}
