package workplan_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/internal/workplan"
)

// farm is a file with a section work.
func farm(count, section string) []byte {
	return []byte(`synchronizers:
  farm:
    members: {group: solvers, count: ` + count + `}
    state: {}
    work: ` + section + "\n")
}

func options() *workplan.Options { return &workplan.Options{Tasks: workplan.DefaultTasks} }

func planOf(t *testing.T, section string, opt *workplan.Options) *workplan.Plan {
	t.Helper()
	plans, err := workplan.New("farm.yaml", farm("{min: 1, max: 64}", section), opt)
	if err != nil || len(plans) != 1 {
		t.Fatalf("%s: %v", section, err)
	}
	return plans[0]
}

func near(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance }

const machines = "replicas: [a, b, c, d]"

// TestRefusals: each configuration that cannot be built is refused with its place and what to do.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		section string
		opt     workplan.Options
		want    []string
	}{
		{`{strategy: {kind: links, links: "a(o=(L>2))[1/2]#nobody"}}`, workplan.Options{Names: []string{"a", "b"}}, []string{"farm.yaml:5:60: ", `a link leads to "nobody", and there is no such member: name one of a, b`}},
		{`{strategy: {kind: links, links: "a(o=(L>2))[1/2]#b, b(o=(L>2))[1/2]#c"}}`, workplan.Options{Count: 2}, []string{"farm.yaml:5:79: ", `the name "c" is the 3rd of 2 members: plan for all named members`}},
		{`{topology: tree, strategy: {kind: links, links: "a(o=(L>2))[1/2]#b, b(o=(L>2))[1/2]#c, c(o=(L>2))[1/2]#a"}}`, workplan.Options{}, []string{"farm.yaml:5:98: ", "the link closes a cycle over c and a, and the topology tree has none: leave the link out, or write topology: full"}},
		{`{topology: ring, strategy: {kind: links, links: "a(o=(L>2))[1/2]#c, b(o=(L>2))[1/2]#d"}}`, workplan.Options{}, []string{"farm.yaml:5:60: ", "a and c are no neighbours by the topology ring, so no task takes this link: write topology: full, or link neighbours"}},
		{`{strategy: {kind: links, links: "a(o=(L>2))[2/3]#b, a(o=(L>3))[2/3]#c"}}`, workplan.Options{}, []string{"farm.yaml:5:63: ", "with this link a gives 4/3 of its tasks, more than it has: let the parts behind one member add up to 1 at most"}},
		{`{strategy: {kind: links, links: "a(o=(L>2))[3/2]#b"}}`, workplan.Options{}, []string{"farm.yaml:5:55: ", `"3/2" is not a part: write a fraction above 0, at most 1`}},
		{`{strategy: {kind: tree, speeds: "a: 2, b: 0"}}`, workplan.Options{}, []string{`"0" is not the throughput of b: write a number above 0`}},
		{`{strategy: {kind: tree, speeds: "a: 2, b: 1"}}`, workplan.Options{Count: 3}, []string{"farm.yaml:5:43: ", "the speed of m1 is not known, and would count as 1: add m1: NUMBER"}},
		{`{strategy: {kind: tree, speeds: "a: 2, x: 1"}}`, workplan.Options{Names: []string{"a"}}, []string{"farm.yaml:5:50: ", `a speed is given for "x", and there is no such member: name one of a`}},
		{`{calls: {row: {replicas: [a, x]}}}`, workplan.Options{Names: []string{"a", "b"}}, []string{"farm.yaml:5:40: ", `the replica "x" is not known: name one of a, b`}},
		{`{calls: {row: {style: "async-demand(*:*)"}}}`, workplan.Options{}, []string{"both water marks", "are open"}},
		{`{calls: {row: {replicas: [a, b], ratio: "0:0"}}}`, workplan.Options{}, []string{`the ratio "0:0" gives no server a call`}},
		{`{}`, workplan.Options{Count: 65}, []string{"farm.yaml:3:14: ", "65 members are planned for, and at most 64 take part: raise the largest count, or plan for fewer"}},
	} {
		c.opt.Tasks = 100
		_, err := workplan.New("farm.yaml", farm("{min: 1, max: 64}", c.section), &c.opt)
		for _, text := range c.want {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v\nwant %s", c.section, err, text)
			}
		}
	}
	_, err := workplan.New("farm.yaml", []byte("synchronizers: {a: {members: {group: g, count: 2}, state: {x: int}, predicates: {p: {when: 'any(members, .x > 1)', signal: {kind: cancel, region: r}}}}}"), options())
	if err == nil || !strings.Contains(err.Error(), "no synchronizer has a section work: add work: {}") {
		t.Error(err)
	}
}

// TestOptions: what no plan can be for is refused.
func TestOptions(t *testing.T) {
	for want, change := range map[string]func(*workplan.Options){
		"tasks: 0 is out of range: give 1 to 100000":                                                      func(o *workplan.Options) { o.Tasks = 0 },
		"members: there may be 1 to 1000 of them":                                                         func(o *workplan.Options) { o.Count = 1001 },
		"bytes: NaN is out of range: give 0 or more":                                                      func(o *workplan.Options) { o.Bytes = math.NaN() },
		`members: the name "a" is empty or there twice: give each member one name`:                        func(o *workplan.Options) { o.Names = []string{"a", "a"} },
		"speeds: number 2 is 0: a member that does nothing has no part in a plan: give numbers above 0":   func(o *workplan.Options) { o.Speeds = []float64{1, 0} },
		"speeds: number 1 is NaN: a member that does nothing has no part in a plan: give numbers above 0": func(o *workplan.Options) { o.Speeds = []float64{math.NaN()} },
		"speeds: there are 2 numbers, and 3 members: give one for each":                                   func(o *workplan.Options) { o.Speeds, o.Count = []float64{1, 2}, 3 },
		"members: 2 names for 3 members: give all names, or only the number":                              func(o *workplan.Options) { o.Names, o.Count = []string{"a", "b"}, 3 },
	} {
		opt := options()
		change(opt)
		if _, err := workplan.New("farm.yaml", farm("64", "{}"), opt); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestCost has the cases cord-cost, cord-worst and cord-master of the papers (C27, C28, C8).
func TestCost(t *testing.T) {
	datagram, stream := workplan.Cost{Message: 4.527, PerByte: 0.0024}, workplan.Cost{Message: 1.661, PerByte: 0.00157}
	for i, bytes := range []float64{10, 100, 3200} {
		if got, want := datagram.Of(bytes), []float64{4.551, 4.767, 12.207}[i]; !near(got, want, 1e-3) {
			t.Errorf("a datagram of %v bytes takes %v ms, want %v", bytes, got, want)
		}
		if got, want := stream.Of(bytes), []float64{1.6767, 1.818, 6.685}[i]; !near(got, want, 1e-3) {
			t.Errorf("a stream takes %v ms for %v bytes, want %v", got, bytes, want)
		}
	}
	if got := 10 * stream.Of(1) / stream.Of(10); !near(got, 9.916, 1e-3) {
		t.Errorf("ten messages of a byte take %v times as long as one of ten bytes, want 9.916", got)
	}
	rows := workplan.Cost{Message: 1.661, PerByte: 5.024}
	if worst, self := rows.WorstTree(16, 50, 1), rows.SelfScheduling(16, 50, 1); !near(worst, 31268.9, 0.1) || !near(self, 5348, 0.1) {
		t.Errorf("rows of 3200 bytes: %v and %v ms, want 31268.9 and 5348", worst, self)
	}
	if worst, self := stream.WorstTree(16, 50, 1), stream.SelfScheduling(16, 50, 1); !near(worst, 1134.4, 0.1) || !near(self, 1330.1, 0.1) {
		t.Errorf("tasks of a byte: %v and %v ms, want 1134.4 and 1330.1", worst, self)
	}
	for task, saturated := range map[float64]bool{0.5: true, 0.9: true, 1.2: false} {
		opt := &workplan.Options{Count: 100, Tasks: 20_000, Cost: workplan.Cost{Message: 0.01}, Speeds: slices.Repeat([]float64{1 / task}, 100)}
		plans, err := workplan.New("farm.yaml", farm("100", `{calls: {row: {style: "async-demand(*:2)"}}}`), opt)
		if err != nil {
			t.Fatal(err)
		}
		if rate := plans[0].Ways[1].Rate; saturated != near(rate, 100, 2) {
			t.Errorf("100 servers with tasks of %v s, 0.01 s to send: %v a second", task, rate)
		}
	}
}

// TestTheorems has the cases cord-6.1-1-4 and cord-6.1-1-2 (C23, C24): on the paths of a tree whose first split is equal.
func TestTheorems(t *testing.T) {
	for _, c := range []struct{ fast, moved, moves float64 }{{4, 600, 7.0428}, {2, 1000.0 / 3, 4.9829}} {
		opt := &workplan.Options{Speeds: []float64{1, c.fast}, Tasks: 2000}
		p := planOf(t, "{strategy: {kind: tree, share: 0.5}}", opt)
		path := p.Paths[0]
		if path.From != "m1" || path.Level != 1 || !near(path.Moved, c.moved, 1e-9) || !near(path.Moves, c.moves, 1e-3) {
			t.Errorf("1:%v: %+v, want %v in %v moves", c.fast, path, c.moved, c.moves)
		}
	}
	if workplan.Moves(1, 1, 100) != 0 && workplan.Moves(2, 1, 100) != 0 || workplan.Moves(1, 4, 1) != 0 {
		t.Error("a balanced pair moves tasks")
	}
}

// TestTree has the cases cord-tree-1-2-3-4 and cord-split: links by level, and the first split (C19, C20, C31).
func TestTree(t *testing.T) {
	p := planOf(t, `{strategy: {kind: tree, speeds: "W1: 1, W2: 2, W3: 3, W4: 4"}}`, options())
	var got []string
	for _, path := range p.Paths {
		got = append(got, fmt.Sprintf("%s>%s %d", path.From, path.To, path.Level))
	}
	if want := []string{"W1>W4 1", "W4>W1 1", "W2>W3 1", "W3>W2 1", "W4>W2 2", "W2>W4 2"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if !slices.Equal(p.Ways[0].First, []int{100, 200, 300, 400}) || !near(p.Ways[0].Rate, 10, 1e-9) || p.Ways[0].Efficiency != 1 {
		t.Errorf("%+v", p.Ways[0])
	}
	opt := options()
	opt.Tasks = 11
	if p := planOf(t, `{strategy: {kind: tree, speeds: "v: 2, w: 3"}}`, opt); !slices.Equal(p.Ways[0].First, []int{4, 7}) {
		t.Errorf("%+v", p.Ways[0])
	}
}

// TestAnomaly has the case cord-anomaly (C15): a fourth member that is slower than 3/4 of the others lengthens an equal split.
func TestAnomaly(t *testing.T) {
	for speed, want := range map[float64]float64{0.7: 4.2857, 0.75: 4, 0.8: 3.75} {
		opt := &workplan.Options{Speeds: []float64{1, 1, 1, speed}, Tasks: 12}
		p := planOf(t, `{calls: {row: {`+machines+`, ratio: "1:1:1:1"}}}`, opt)
		w := p.Ways[1]
		if !near(w.Seconds, want, 1e-4) || (w.Anomaly != nil) != (speed < 0.75) {
			t.Errorf("a fourth member of the speed %v: %+v, want %v s", speed, w, want)
		}
		if w.Anomaly == nil {
			continue
		}
		if !slices.Equal(w.Anomaly.Without, []string{"d"}) || w.Anomaly.Seconds != 4 || len(p.Warnings) != 1 ||
			!strings.HasPrefix(p.Warnings[0], "farm.yaml:5:20: synchronizers.farm.work.calls.row: without d all would end after 4 s, and with all members after 4.286 s: ") {
			t.Errorf("%+v %q", w.Anomaly, p.Warnings)
		}
	}
}

// TestLateChunk: a slow member that gets a large chunk lets all others wait, and one that gets single tasks does not (C15).
func TestLateChunk(t *testing.T) {
	for cut, without := range map[string]bool{"css(60)": true, "gss": true, "ss": false} {
		opt := &workplan.Options{Names: []string{"a", "slow", "c", "d"}, Speeds: []float64{50, 2, 50, 50}, Tasks: 300}
		p := planOf(t, "{strategy: {kind: chunk, cut: "+cut+"}}", opt)
		w := p.Ways[0]
		if (w.Anomaly != nil) != without || without && (!slices.Equal(w.Anomaly.Without, []string{"slow"}) || w.Anomaly.Seconds > w.Seconds/2) {
			t.Errorf("%s: %+v, %+v", cut, w, w.Anomaly)
		}
		if without && (len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "farm.yaml:5:12: synchronizers.farm.work.strategy: without slow all would end after")) {
			t.Errorf("%s: %q", cut, p.Warnings)
		}
	}
}

// TestLargest: the largest plan is made, and of many members that would better be left out 16 are named.
func TestLargest(t *testing.T) {
	opt := &workplan.Options{Tasks: workplan.MaxTasks}
	for i := range workplan.MaxMembers {
		opt.Speeds = append(opt.Speeds, math.Pow(1.02, float64(i)))
	}
	plans, err := workplan.New("farm.yaml", farm("1000", `{topology: hypercube, calls: {row: {style: async}}, strategy: {kind: chunk, cut: ss}}`), opt)
	if err != nil {
		t.Fatal(err)
	}
	if w := plans[0].Ways[1]; len(w.Split) != workplan.MaxMembers || w.Anomaly == nil || len(w.Anomaly.Without) != 16 {
		t.Errorf("%+v, want 16 members named", w.Anomaly)
	}
}

// TestFourMachines compares the theory with what examples/mandelbrot measured on the four machines of CORD (docs/work.md).
// The rows there are unequal, and theory has equal ones: the largest chunks, with all rows of the middle, are left out.
func TestFourMachines(t *testing.T) {
	for section, measured := range map[string]float64{
		`{calls: {row: {style: sync}}}`:                                   0.19,
		`{calls: {row: {` + machines + `, ratio: "1:1:1:1"}}}`:            0.41,
		`{calls: {row: {replicas: [b, c, d], ratio: "1:1:1"}}}`:           0.65,
		`{calls: {row: {` + machines + `, ratio: "24:51:58:100"}}}`:       0.99,
		`{calls: {row: {style: async}}}`:                                  0.41,
		`{calls: {row: {style: "async-demand(*:1)"}}}`:                    0.98,
		`{calls: {row: {style: "async-demand(2:5)"}}}`:                    0.80,
		`{strategy: {kind: chunk, cut: ss}}`:                              0.98,
		`{strategy: {kind: chunk, cut: css(10)}}`:                         0.93,
		`{strategy: {kind: chunk, cut: gss}}`:                             0.77,
		`{strategy: {kind: chunk, cut: fac2}}`:                            0.88,
		`{strategy: {kind: tree, speeds: "a: 24, b: 51, c: 58, d: 100"}}`: 0.95,
	} {
		p := planOf(t, section, &workplan.Options{Names: []string{"a", "b", "c", "d"}, Speeds: []float64{24, 51, 58, 100}, Tasks: 200})
		w := p.Ways[len(p.Ways)-1]
		if !near(w.Efficiency, measured, 0.11) {
			t.Errorf("%s: %.3f, measured %v", section, w.Efficiency, measured)
		}
		sum := 0
		for _, n := range w.Split {
			sum += n
		}
		if sum != 200 {
			t.Errorf("%s: %v of 200 tasks", section, w.Split)
		}
	}
}

// TestRing has the links of the case cord-ring (C12): a ring of members that give while they are overloaded is named.
func TestRing(t *testing.T) {
	ring := `{strategy: {kind: links, links: "harvey(o=(L>=10))[1/2]#bugs, bugs(o=(L>=20))[1/3]#thumper, thumper(o=(L>=10))[1/4]#harvey"}}`
	p := planOf(t, ring, options())
	if len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "farm.yaml:5:36: ") || !strings.Contains(p.Warnings[0], "the links harvey > bugs > thumper > harvey close a ring of members that give while they are overloaded") {
		t.Errorf("%q", p.Warnings)
	}
	for _, quiet := range []string{
		`"harvey(o=(L>=10))[1/2]#bugs, bugs(o=(L>=20))[1/3]#thumper"`,
		`"harvey()[1/2]#bugs(u=(L<2)), bugs()[1/3]#thumper(u=(L<2)), thumper()[1/4]#harvey(u=(L<2))"`,
		`"a(o=(L>2))[1/2]#b(o=(L>2))[1/2]"`,
	} {
		if p := planOf(t, "{strategy: {kind: links, links: "+quiet+"}}", options()); len(p.Warnings) > 0 {
			t.Errorf("%s: %q", quiet, p.Warnings)
		}
	}
	p = planOf(t, `{strategy: {kind: links, links: "a(o=(L>2))[1/2]#b, c(o=(L>2))[1/2]#b"}}`, options())
	if len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "no links lead from a to c: tasks that a puts never get there") || !slices.Equal(p.Ways[0].Split, []int{500, 500, 0}) {
		t.Errorf("%q %v", p.Warnings, p.Ways[0].Split)
	}
}

// TestNeighbours: neighbours are those of a roster sorted by name.
func TestNeighbours(t *testing.T) {
	p := planOf(t, `{topology: ring}`, &workplan.Options{Names: []string{"d", "a", "c", "b"}, Tasks: 1})
	if got := p.Members[0].Neighbours; p.Members[0].Name != "d" || !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("the neighbours of d are %v", got)
	}
	p = planOf(t, `{}`, &workplan.Options{Count: 3, Tasks: 1})
	if m := p.Members[2]; m.Name != "m3" || m.Named || !p.Alike {
		t.Errorf("%+v", m)
	}
}

// TestDrawings: names of any kind are quoted, and each path is drawn (C35).
func TestDrawings(t *testing.T) {
	p := planOf(t, `{strategy: {kind: links, links: "a<(o=(L>2))[1/2]#b\"&"}, calls: {row: {style: sync}}}`, options())
	dot := p.DOT()
	for _, want := range []string{"digraph \"farm\" {\n", `n0 [label="a<\n1 a second"];`, `n1 [label="b\"&\n1 a second"];`, `n0 -> n1 [label="1/2"];`, `c1 [shape=box, label="calls of row\nstyle: sync"];`, `c1 -> n0 [style=dashed, label="500"];`} {
		if !strings.Contains(dot, want) {
			t.Errorf("no %s in\n%s", want, dot)
		}
	}
	svg := p.SVG()
	for _, want := range []string{"<svg xmlns=", "a&lt;</text>", "b&#34;&amp;</text>", ">1/2</text>", "</svg>\n"} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %s in\n%s", want, svg)
		}
	}
	if lines := strings.Count(planOf(t, "{topology: ring}", &workplan.Options{Count: 5, Tasks: 1}).SVG(), "<line"); lines != 5 {
		t.Errorf("a ring of 5 has %d lines", lines)
	}
}
