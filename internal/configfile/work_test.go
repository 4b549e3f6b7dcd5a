package configfile_test

import (
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/scgs"
)

func schemaOf(s scgs.Schema) string {
	names := make([]string, len(s))
	for i, f := range s {
		names[i] = f.String()
		if f.Default.Type() != scgs.Invalid {
			names[i] += " = " + f.Default.String()
		}
	}
	return strings.Join(names, ", ")
}

const workFarm = `
synchronizers:
  farm:
    members: {group: w, count: 2}
    state: {load: float}
    work: {}
`

// TestWorkFields: the exact fields are always there, an estimate where a text of the section reads it.
func TestWorkFields(t *testing.T) {
	const exact = "load: float, work.idle: bool = false, work.settled: bool = false, work.awaits: bool = false, work.phase: int = 0"
	for more, want := range map[string]string{
		"":                                  "",
		"    let: {deep: .work.open > 3}\n": "work.open",
		"    predicates: {p: {when: 'any(members, .load > 1)', until: 'sum(members, .work.stuck) == 0', signal: []}}\n":                                         "work.stuck",
		"    predicates: {p: {when: 'any(members, .load > 1)', signal: {kind: cancel, region: r, to: 'filter(members, .work.running > 0)'}}}\n":                 "work.running",
		"    predicates: {p: {when: 'any(members, .load > 1)', signal: {kind: cancel, region: r, data: {n: 'sum(members, .prev.work.queued)'}}}}\n":             "work.queued",
		"    predicates: {p: {when: 'any(members, .load > 1)', set: {x: 'sum(members, .work.queued) + memory.x'}}}\n    memory: {x: {type: int, initial: 0}}\n": "work.queued",
		"    predicates: {p: {when: deep, let: {deep: 'any(members, .work.open > 3)'}, signal: []}}\n":                                                          "work.open",
	} {
		plans, err := configfile.Parse("t.yaml", []byte(workFarm+more))
		if err != nil {
			t.Errorf("%s: %v", more, err)
			continue
		}
		all := exact
		if want != "" {
			all += ", " + want + ": int = 0"
		}
		if got := schemaOf(plans[0].State); got != all {
			t.Errorf("%s: the state is %s, want %s", more, got, all)
		}
		for _, w := range plans[0].Warnings {
			if strings.Contains(w.Message, "work.") {
				t.Errorf("%s: warned of a field that is not in the file: %v", more, w)
			}
		}
	}
	plans, err := configfile.Parse("t.yaml", []byte(strings.Replace(workFarm, "work: {}", "work: {end: 'sum(members, .work.queued + .work.open) == 0'}", 1)))
	if err != nil || schemaOf(plans[0].State) != exact+", work.queued: int = 0, work.open: int = 0" {
		t.Errorf("of the end: %v, %v", err, plans)
	}
}

// TestWorkOfProcesses: below a level with the section the process tells its fields, and the summary
// passes them up, whether the section has a process of its own or not.
func TestWorkOfProcesses(t *testing.T) {
	const threads = `    predicates: {p: {when: 'sum(members, .work.open) > 9', signal: []}}
  inner:
    parent: farm
    members: {threads: 2}
    state: {busy: float}
    summary: {load: 'sum(members, .busy)'}
    predicates: {q: {when: 'process.work.open > 3 and not process.work.idle', signal: []}}
`
	plans, err := configfile.Parse("t.yaml", []byte(workFarm+threads))
	if err != nil {
		t.Fatal(err)
	}
	below, err := plan.FromSection(plans[0].Below)
	if err != nil {
		t.Fatal(err)
	}
	for _, level := range []*plan.Level{plans.Get("inner"), below} {
		const want = "work.idle: bool = false, work.settled: bool = false, work.awaits: bool = false, work.phase: int = 0, work.open: int = 0"
		if got := schemaOf(level.Process); got != want {
			t.Errorf("the process has %s, want %s", got, want)
		}
		for i, s := range level.Summaries[1:] {
			if name := plans[0].State[i+1].Name; s.Expr == nil || s.Expr.Source() != "process."+name {
				t.Errorf("%s is not passed up", name)
			}
		}
	}
	_, err = configfile.Parse("t.yaml", []byte(strings.Replace(workFarm+threads, "process.work.open > 3", "process.work.opne > 3", 1)))
	if err == nil || !strings.Contains(err.Error(), `unknown field process.work.opne: did you mean "open"? the section work fills process.work.idle, `) {
		t.Errorf("a name that there is not: %v", err)
	}
	_, err = configfile.Parse("t.yaml", []byte(strings.Replace(workFarm+threads, "process.work.open > 3", "process.work.stuck > 3", 1)))
	if err == nil || !strings.Contains(err.Error(), "the section work does not fill process.work.stuck, since no expression of it reads the field: let an expression of the synchronizer that has the section read it as well") {
		t.Errorf("an estimate that nobody reads above: %v", err)
	}
}

// TestWorkFieldsFit refuses a state that has no room for them.
func TestWorkFieldsFit(t *testing.T) {
	var fields []string
	for i := range scgs.MaxFields - 3 {
		fields = append(fields, "f"+string(rune('A'+i/26))+string(rune('a'+i%26))+": int")
	}
	_, err := configfile.Parse("t.yaml", []byte(strings.Replace(workFarm, "load: float", strings.Join(fields, ", "), 1)))
	if err == nil || !strings.Contains(err.Error(), "with the fields of the section work: state: 65 fields declared, at most 64 are allowed: declare fewer") {
		t.Errorf("61 fields: %v", err)
	}
}

// TestCentralStrategy: the section has the fields that the plan of a central strategy reads, and is refused beside another
// section that plans moves, and above threads.
func TestCentralStrategy(t *testing.T) {
	const head = "synchronizers:\n  g:\n    members: {group: g, count: 3}\n"
	plans, err := configfile.Parse("t.yaml", []byte(head+"    work: {strategy: {kind: pegasus, beta: 0.7}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	const want = "work.idle: bool = false, work.settled: bool = false, work.awaits: bool = false, work.phase: int = 0, work.slots: int = 0, " +
		"work.tasks: {list: int} = [], work.weights: {list: float} = [], work.names: {list: string} = [], work.senders: {list: int} = [], " +
		"work.receivers: {list: int} = [], work.volumes: {list: float} = [], work.refused: {list: int} = [], work.reasons: {list: string} = []"
	if got := schemaOf(plans[0].State); got != want {
		t.Errorf("the state has %s, want %s", got, want)
	}
	if b := plans[0].Balance; b == nil || b.Objects == nil || b.Config.Strategy != "pegasus" || b.Config.Beta != 0.7 || b.Config.Alpha != 1.5 || b.Set.Region != "work-objects" {
		t.Errorf("%+v", b)
	}
	for text, want := range map[string]string{
		"    state: {n: {list: int}}\n    balance: {loads: .n, region: r}\n    work: {strategy: {kind: greedy}}\n":                    "work.strategy.kind: the strategy greedy plans the moves of objects, and the section balance plans other moves: a synchronizer has one of them: leave out the section balance, or use another kind",
		"    work: {strategy: {kind: greedy}}\n  t: {parent: g, members: {threads: 2}, state: {a: int}, summary: {}}\n":               "parent: the parent plans the moves of objects: its members have no threads: use another strategy in its section work, or leave out this level",
		"    work: {strategy: {kind: greedy}}\n    predicates:\n      balance: {when: \"true\", signal: {kind: cancel, region: r}}\n": "predicates.balance: the section balance has that name",
	} {
		if _, err := configfile.Parse("t.yaml", []byte(head+text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s%v", text, err)
		}
	}
}

// TestWorkEnd: the predicate and the variable are there without being written, and shown.
func TestWorkEnd(t *testing.T) {
	for end, when := range map[string]string{
		"":                         "all(members, .work.idle and .work.settled) and any(members, .work.awaits)",
		"any(members, .load>1) //": "(any(members, .load>1) //\n)",
		"let n = 1; n == 1":        "(let n = 1; n == 1\n)",
		"true or false":            "(true or false\n)",
	} {
		src := workFarm
		if end != "" {
			src = strings.Replace(src, "work: {}", "work: {end: '"+end+"'}", 1)
		}
		plans, err := configfile.Parse("t.yaml", []byte(src))
		if err != nil {
			t.Errorf("%s: %v", end, err)
			continue
		}
		r := plans[0].Rules[0]
		when += " and min(map(members, .work.phase)) == max(map(members, .work.phase)) and max(map(members, .work.phase)) > memory.ended"
		if len(plans[0].Rules) != 1 || r.Name != "end" || r.Source() != when || !r.Every {
			t.Errorf("the predicate is %s when %q, want %q", r.Name, r.Source(), when)
		}
		if v := plans[0].Variables; len(v) != 1 || v[0].Field.String() != "ended: int" || v[0].InitialValue() != scgs.IntValue(0) {
			t.Errorf("the variables are %v", v)
		}
		sends := plans[0].Sends()
		if len(sends) != 1 || sends[0].Name != "end" || sends[0].Kind.String() != "cancel" || sends[0].Region != "work" || !r.Signals[0].ToAll {
			t.Errorf("it sends %v", sends)
		}
		shown, err := configfile.Show("t.yaml", []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		head := "# The section work of farm adds the variable memory.ended, initial: 0, and the predicate end, every: true\n#   when: " + strings.ReplaceAll(when, "\n", "\n#     ") +
			"\n#   set: {ended: max(map(members, .work.phase))}\n#   signal: {kind: cancel, region: work, to: all}\nsynchronizers:"
		if !strings.HasPrefix(string(shown), head) {
			t.Errorf("shown:\n%s\nwant at its head:\n%s", shown, head)
		}
		again, err := configfile.Parse("t.yaml", shown)
		if err != nil || again[0].Rules[0].Text != r.Text || again[0].WorkHash != plans[0].WorkHash {
			t.Errorf("what is shown is another configuration: %v", err)
		}
	}
}

// TestWorkReload: which changes of the section a running synchronizer follows.
func TestWorkReload(t *testing.T) {
	parse := func(src string) *plan.Level {
		t.Helper()
		plans, err := configfile.Parse("t.yaml", []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		return plans[0]
	}
	from := parse(workFarm)
	for to, want := range map[string]string{
		"work: {slots: 3}":                        "work: another slots",
		"work: {withdraw: {when: .load > 2}}":     "work: another withdraw",
		"work: {end: 'all(members, .work.idle)'}": "work: another end; predicate end: another when",
		"": "farm: there is no section work any more, whose fields the members report: restart to change that",
		"work: {end: 'sum(members, .work.open) == 0'}": "farm: the declared state is now {load: float, work.idle: bool, work.settled: bool, work.awaits: bool, work.phase: int, work.open: int}, and was {load: float, work.idle: bool, work.settled: bool, work.awaits: bool, work.phase: int}, by which the members report: restart to change that",
	} {
		changes, err := from.Changes(parse(strings.Replace(workFarm, "work: {}", to, 1)))
		got := strings.Join(changes, "; ")
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", to, got, want)
		}
	}
	_, err := parse(strings.Replace(workFarm, "work: {}", "", 1)).Changes(from)
	if want := "farm: there is a section work now, whose fields the members do not report yet: restart to change that"; err == nil || err.Error() != want {
		t.Errorf("a section that is new: %v, want %s", err, want)
	}
}

// TestLinksAreText: a list of links is one fault, not the faults of an empty text as well.
func TestLinksAreText(t *testing.T) {
	_, err := configfile.Parse("f.yaml", []byte("synchronizers: {s: {members: {group: g, count: 2},\n work: {strategy: {kind: links, links: ['a(o=(L>=10))[1/2]#b']}}}}\n"))
	if want := "f.yaml:2:40: synchronizers.s.work.strategy.links: expected text, found a list"; err == nil || !strings.HasPrefix(err.Error(), want) || strings.Count(err.Error(), "f.yaml:") != 1 {
		t.Errorf("%v, want %s", err, want)
	}
}
