package synccore_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/balance"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/scgs"
)

const poolConfig = `synchronizers:
  pool:
    members: {group: g, count: {min: 1, max: 6}}
    state: {tasks: {list: int}, work: {list: float}, busy: float, power: float, share: float}
    balance: {loads: .tasks, weights: .work, rest: .busy, power: .power, share: .share, region: pool, every: 20ms, transit: 100ms}
`

// odd are numbers that no member should tell.
var odd = []float64{0, -1, math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64, 1e100}

// randomPool drives a machine by hand: members that come, tell anything, answer
// orders or do not, and go.
type randomPool struct {
	*rapid.T
	core    *synccore.Core
	record  recorder
	t       *testing.T
	now     clocksync.Instant
	out     synccore.Output
	members []*poolMember
	finite  bool              // as the wire has it, and a journal
	orders  []*control.Signal // without an answer
	plans   int
	moves   uint64
}

type poolMember struct {
	name        string
	incarnation uint64
	seq         uint64
	in          bool // the region
	rows        map[uint64][]scgs.Value
}

func (p *randomPool) step(in synccore.Input) {
	p.record.step(p.t, p.core, p.now, &in, &p.out)
	for i := range p.out.Plans {
		p.plans++
		p.check(&p.out.Plans[i])
	}
	for _, a := range p.out.Signals {
		for i := range a.Msg.Signals {
			s := a.Msg.Signals[i]
			if !slices.ContainsFunc(p.orders, func(o *control.Signal) bool { return o.Decision == s.Decision && o.Target == s.Target }) {
				p.orders = append(p.orders, &s)
			}
		}
	}
}

// check wants a plan that explains itself and makes the longest queue no longer, and
// orders that are its moves.
func (p *randomPool) check(one *monitor.Plan) {
	plan := &one.Plan
	if plan.Verdict == "" || plan.Details() == "" || !(plan.After <= plan.Before) {
		p.Fatalf("%v", plan)
	}
	var moves, ordered []string
	p.moves += uint64(len(plan.Moves))
	for i := range plan.Moves {
		m := &plan.Moves[i]
		if m.Why() == "" || m.From == m.To || !p.has(m.From, m.Load) {
			p.Fatalf("%v\n%v", m, plan)
		}
		moves = append(moves, m.From+" "+m.Load+" "+m.To)
	}
	for i := range plan.Refused {
		if plan.Refused[i].Detail == "" {
			p.Fatalf("%+v", plan.Refused[i])
		}
	}
	for _, a := range p.out.Signals {
		for _, s := range a.Msg.Signals {
			if s.Decision != one.Decision {
				continue
			}
			orders, err := balance.ParseOrders(s.Lookup(balance.OrdersDatum).Text())
			if err != nil || s.Entry == 0 || s.Region != "pool" || s.Kind != control.Activate || control.CheckData(s.Data) != nil {
				p.Fatalf("%+v: %v", s, err)
			}
			for _, o := range orders {
				ordered = append(ordered, a.To+" "+o.Load+" "+o.To)
			}
		}
	}
	slices.Sort(moves)
	slices.Sort(ordered)
	if d := cmp.Diff(moves, ordered); d != "" {
		p.Fatalf("the orders are not the moves: %s", d)
	}
}

// has reports whether a member has told the load at all.
func (p *randomPool) has(name, load string) bool {
	for _, m := range p.members {
		if m.name != name {
			continue
		}
		for _, row := range m.rows {
			for i := range row[0].Len() {
				if strconv.FormatInt(row[0].At(i).Int(), 10) == load {
					return true
				}
			}
		}
	}
	return false
}

func (p *randomPool) number(what string) scgs.Value {
	if rapid.IntRange(0, 9).Draw(p.T, "odd") == 0 {
		if x := rapid.SampledFrom(odd).Draw(p.T, what); !p.finite || !math.IsInf(x, 0) {
			return scgs.FloatValue(x)
		}
	}
	return scgs.FloatValue(rapid.Float64Range(0, 8).Draw(p.T, what))
}

func (p *randomPool) row() []scgs.Value {
	n := rapid.IntRange(0, 8).Draw(p.T, "loads")
	tasks, work := make([]scgs.Value, n), make([]scgs.Value, n)
	for i := range n {
		tasks[i] = scgs.IntValue(rapid.Int64Range(0, 30).Draw(p.T, "task"))
		work[i] = p.number("weight")
	}
	if rapid.IntRange(0, 9).Draw(p.T, "uneven") == 0 {
		work = append(work, p.number("weight"))
	}
	share := scgs.FloatValue(1)
	if rapid.IntRange(0, 4).Draw(p.T, "loaded") == 0 {
		share = p.number("share")
	}
	return []scgs.Value{scgs.ListValue(scgs.Int, tasks...), scgs.ListValue(scgs.Float, work...), p.number("busy"), p.number("power"), share}
}

func (p *randomPool) act() {
	p.now = p.now.Add(time.Duration(rapid.IntRange(0, 40).Draw(p.T, "wait")) * time.Millisecond)
	stamp := func() clocksync.Stamp {
		return clocksync.Stamp{Domain: "host", Mono: p.now, Within: clocksync.Unbounded}
	}
	m := p.members[rapid.IntRange(0, len(p.members)-1).Draw(p.T, "member")]
	switch rapid.IntRange(0, 11).Draw(p.T, "act") {
	case 0:
		m.incarnation++
		m.seq, m.rows = 0, map[uint64][]scgs.Value{}
		p.step(synccore.Input{Kind: synccore.InHello, From: m.name, Hello: &wire.Hello{Member: m.name, Incarnation: m.incarnation, Host: "box", Domain: "host"}})
	case 1:
		p.step(synccore.Input{Kind: synccore.InTick})
	case 2, 3:
		if len(p.orders) > 0 {
			i := rapid.IntRange(0, len(p.orders)-1).Draw(p.T, "order")
			s, fate := p.orders[i], rapid.SampledFrom(control.Fates).Draw(p.T, "fate")
			p.orders = slices.Delete(p.orders, i, i+1)
			p.step(synccore.Input{Kind: synccore.InAck, From: s.Target, Ack: &wire.Ack{
				Member: s.Target, Incarnation: p.named(s.Target).incarnation, Answers: []wire.Answer{{Decision: s.Decision, Name: s.Name, Target: s.Target, Fate: fate}},
			}})
		}
	default:
		b := &wire.Batch{Member: m.name, Incarnation: m.incarnation, Leaving: rapid.IntRange(0, 60).Draw(p.T, "leaves") == 0}
		m.in = rapid.IntRange(0, 9).Draw(p.T, "in") > 0
		if rapid.IntRange(0, 2).Draw(p.T, "new") > 0 || m.seq == 0 {
			m.seq++
			if rapid.IntRange(0, 30).Draw(p.T, "lost") == 0 {
				m.seq++ // A report is lost.
			}
			row := p.row()
			m.rows[m.seq] = row
			b.Reports = []wire.Report{{Seq: m.seq, At: stamp(), Row: row}}
		}
		b.Evidence = wire.Evidence{Seq: m.seq, At: stamp()}
		if m.in {
			b.Regions = []wire.Region{{Name: "pool", Entry: 1, Since: 1}}
		}
		p.step(synccore.Input{Kind: synccore.InBatch, From: m.name, Batch: b})
		if b.Leaving {
			m.seq, m.rows = 0, map[uint64][]scgs.Value{}
			m.incarnation++
		}
	}
	if n := p.core.Counts().Balance[slices.Index(balance.Names, balance.Pegasus)]; n.Moves != p.moves || n.Plans < uint64(p.plans) { //nolint:gosec // A count.
		p.Fatalf("%+v, and there were %d plans and %d moves", n, p.plans, p.moves)
	}
	p.core.Status(p.now)
	if e, ok := p.core.Explain(p.now, config.BalanceName); !ok || e.Balance == nil || e.Truth == "" {
		p.Fatalf("%+v", e)
	}
}

func (p *randomPool) named(name string) *poolMember {
	for _, m := range p.members {
		if m.name == name {
			return m
		}
	}
	panic("nobody is called " + name)
}

// TestRandomPools: whatever members tell, every plan explains itself, is no loss,
// and is ordered; and a replay of the journal comes to the same.
func TestRandomPools(t *testing.T) {
	plans, err := configfile.Parse("pool.yaml", []byte(poolConfig))
	if err != nil {
		t.Fatal(err)
	}
	planned := 0
	rapid.Check(t, func(r *rapid.T) {
		p := &randomPool{T: r, t: t, now: 1000, core: synccore.New(plans[0], synccore.Options{Term: 7, Reference: "host"})}
		p.finite = rapid.Bool().Draw(r, "finite")
		p.record.on = p.finite
		for i := range 4 {
			p.members = append(p.members, &poolMember{name: fmt.Sprintf("m%d", i), incarnation: 1, rows: map[uint64][]scgs.Value{}})
		}
		for _, m := range p.members {
			p.step(synccore.Input{Kind: synccore.InHello, From: m.name, Hello: &wire.Hello{Member: m.name, Incarnation: 1, Host: "box", Domain: "host"}})
		}
		for range rapid.IntRange(10, 60).Draw(r, "acts") {
			p.act()
		}
		planned += p.plans
		if !p.finite {
			return
		}
		again, _ := replay(t, p.record.text)
		if string(again.text) != string(p.record.text) {
			r.Fatal("a replay comes to something else")
		}
	})
	if planned == 0 {
		t.Error("nothing was planned")
	}
}

// TestBalanceFaults: a fault of a section is reported with its place.
func TestBalanceFaults(t *testing.T) {
	const head = "synchronizers:\n  g:\n    members: {group: g}\n    state: {tasks: {list: int}, work: {list: float}, on: bool}\n"
	for rest, want := range map[string]string{
		"    balance: {region: r}\n":                                                                         "b.yaml:5:5: synchronizers.g.balance: missing key \"loads\"\n  |     balance: {region: r}\n  |     ^\n  = the key needs a value here",
		"    balance: {loads: .tasks}\n":                                                                     `missing key "region"`,
		"    balance: {loads: .work, region: r}\n":                                                           "5:23: synchronizers.g.balance.loads: a list, each element of which is an int or a string, is wanted, this is a list of values: use a field of that type",
		"    balance: {loads: .tasks, region: r, weights: .on}\n":                                            "5:51: synchronizers.g.balance.weights: a list, each element of which is a number, is wanted, this is a bool",
		"    balance: {loads: .tasks, region: r, power: .powr}\n":                                            "5:49: synchronizers.g.balance.power: unknown field \"powr\"",
		"    balance: {loads: .tasks, region: r, alpha: 1}\n":                                                "5:48: synchronizers.g.balance.alpha: 1 must be above 1; 1.5 to 2.5 is usual",
		"    balance: {loads: .tasks, region: r, power: ''}\n":                                               `5:48: synchronizers.g.balance.power: an empty text`,
		"    balance: {loads: .tasks, region: r, weights: ' '}\n":                                            "balance.weights: an empty text: leave the key out: then it is 1",
		"    balance: {loads: .tasks, region: r, rest: '', share: ''}\n":                                     "balance.rest: an empty text: leave the key out: then it is 0",
		"    balance: {loads: .tasks, region: r, name: ''}\n":                                                "balance.name: an empty text",
		"    balance: {loads: ' ', region: r}\n":                                                             "balance.loads: an empty text",
		"    balance: {loads: .tasks, region: r, alpha: .inf}\n":                                             "balance.alpha: ",
		"    balance: {loads: .tasks, region: r, strategy: best}\n":                                          `balance.strategy: "best" is not one of pegasus, greedy, largest, none`,
		"    balance: {loads: .tasks, region: r, every: 1us}\n":                                              "balance.every: 1µs between two looks: it has to be from 1ms to 1h0m0s",
		"    balance: {loads: .tasks, region: r, transit: 0s}\n":                                             "balance.transit: a load is under way for more than 0 and at most 1h0m0s",
		"    balance: {loads: .tasks, region: r, when: .on}\n":                                               "balance.when: ",
		"    balance: {loads: .tasks, region: a b}\n":                                                        `balance.region: region "a b": use letters, digits, - and _, at most 64`,
		"    balance: {loads: .tasks, region: r, load: 1}\n":                                                 `unknown key "load"`,
		"    balance: {loads: .tasks, region: r}\n    predicates: {balance: {when: \"true\", signal: []}}\n": "predicates.balance: the section balance has that name: give the predicate another one",
	} {
		_, err := configfile.Parse("b.yaml", []byte(head+rest))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s%v\nwant %s", rest, err, want)
		}
	}
	_, err := configfile.Parse("b.yaml", []byte("synchronizers:\n  g:\n    members: {group: g}\n    state: {x: int}\n  t:\n    parent: g\n    members: {threads: 2}\n    state: {tasks: {list: int}}\n    summary: {x: \"1\"}\n    balance: {loads: .tasks, region: r}\n"))
	if err == nil || !strings.Contains(err.Error(), "loads move between the members of a group, never between threads: tell them in the summary") {
		t.Errorf("%v", err)
	}
}

// TestBalanceReload: another section begins again, an equal one continues, and moves under way
// stay so.
func TestBalanceReload(t *testing.T) {
	parse := func(text string) *plan.Level {
		plans, err := configfile.Parse("pool.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return plans[0]
	}
	plan := parse(poolConfig)
	without, _, _ := strings.Cut(poolConfig, "    balance:")
	for _, c := range []struct{ text, want string }{
		{poolConfig, "[]"},
		{strings.Replace(poolConfig, "20ms", "30ms", 1), "[balance: another every]"},
		{strings.Replace(poolConfig, "transit: 100ms", "alpha: 2, beta: 0.1", 1), "[balance: another alpha, beta, transit]"},
		{without, "[balance is gone]"},
	} {
		changes, err := plan.Changes(parse(c.text))
		if got := fmt.Sprint(changes); err != nil || got != c.want {
			t.Errorf("%s %v, want %s", got, err, c.want)
		}
	}
	changes, err := parse(without).Changes(plan)
	if err != nil || fmt.Sprint(changes) != "[balance is new]" {
		t.Errorf("%v %v", changes, err)
	}
}

// BenchmarkLook is a step with one report of a pool of tasks, with a look on each
// global state: without the section, and where all members are in balance.
func BenchmarkLook(b *testing.B) {
	for _, members := range []int{4, 64} {
		for name, section := range map[string]string{
			"none": "", "quiet": "    balance: {loads: .tasks, weights: .work, region: pool, every: 1ms}\n",
		} {
			b.Run(fmt.Sprintf("section=%s/members=%d/loads=64", name, members), func(b *testing.B) {
				benchmarkLook(b, members, section)
			})
		}
	}
}

func benchmarkLook(b *testing.B, members int, section string) {
	b.Helper()
	plans, err := configfile.Parse("b.yaml", fmt.Appendf(nil, `synchronizers:
  pool:
    members: {group: g, count: %d}
    silence: {after: 1h, then: block}
    state: {tasks: {list: int}, work: {list: float}}
    predicates:
      p: {when: "all(members, len(.tasks) == 0)", signal: []}
%s`, members, section))
	if err != nil {
		b.Fatal(err)
	}
	core := synccore.New(plans[0], synccore.Options{Term: 1})
	var out synccore.Output
	now, seq := clocksync.Instant(0), make([]uint64, members)
	row := func(m int) []scgs.Value {
		tasks, work := make([]scgs.Value, 64), make([]scgs.Value, 64)
		for i := range tasks {
			tasks[i], work[i] = scgs.IntValue(int64(64*m+i)), scgs.FloatValue(1+float64(i%5))
		}
		return []scgs.Value{scgs.ListValue(scgs.Int, tasks...), scgs.ListValue(scgs.Float, work...)}
	}
	rows := make([][]scgs.Value, members)
	report := func(m int) {
		now += 2_000_000
		seq[m]++
		at := clocksync.Stamp{Domain: "d", Mono: now, Within: clocksync.Unbounded}
		core.Step(now, &synccore.Input{Kind: synccore.InBatch, From: member(m), Batch: &wire.Batch{
			Member: member(m), Incarnation: 1, Reports: []wire.Report{{Seq: seq[m], At: at, Row: rows[m]}},
			Evidence: wire.Evidence{Seq: seq[m], At: at}, Regions: []wire.Region{{Name: "pool", Entry: 1, Since: 1}},
		}}, &out)
	}
	for m := range members {
		rows[m] = row(m)
		core.Step(now, &synccore.Input{Kind: synccore.InHello, From: member(m), Hello: &wire.Hello{Member: member(m), Incarnation: 1, Domain: "d"}}, &out)
	}
	for m := range members {
		report(m)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		report(i % members)
		i++
	}
	if s := core.Status(now).Balance; s != nil && (s.Plans > 0 || s.Looks == 0) {
		b.Fatalf("%+v", s)
	}
}
