package local

import (
	"encoding/json"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
)

// fraction is a number that a golden case has as a number or as "a/b".
type fraction float64

func (f *fraction) UnmarshalJSON(src []byte) error {
	above, below, isRatio := strings.Cut(strings.Trim(string(src), `"`), "/")
	x, err := strconv.ParseFloat(above, 64)
	if isRatio && err == nil {
		var y float64
		y, err = strconv.ParseFloat(below, 64)
		x /= y
	}
	*f = fraction(x)
	return err
}

// goldenOf reads the cases whose names begin so into pairs of types.
func goldenOf[G, E any](t *testing.T, prefix string) (list []struct {
	ID     string
	Given  G
	Expect E
},
) {
	t.Helper()
	src, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(src, &raw); err != nil {
		t.Fatal(err)
	}
	for _, r := range raw {
		var c struct {
			ID     string
			Given  G
			Expect E
		}
		if strings.HasPrefix(string(r), `{"id": "`+prefix) {
			if err := json.Unmarshal(r, &c); err != nil {
				t.Fatal(err)
			}
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		t.Fatalf("no golden case begins with %s", prefix)
	}
	return list
}

func close9(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

// TestGoldenDiffusion has steps of TDC by equations 1 to 7, and equation 6 as it is right: the
// demand falls by what was asked for.
func TestGoldenDiffusion(t *testing.T) {
	type given struct {
		Own        float64
		Neighbours []map[string]int
		Cost       map[string]float64
		Have       []string
		Room       int
	}
	type expect struct {
		Sum   fraction   `json:"d_sum"`
		Real  []fraction `json:"d_real"`
		D     []int
		Take  [][]any
		Unmet []int
	}
	for _, c := range goldenOf[given, expect](t, "tdc-step-") {
		var loads []float64
		var classes []taskClass
		names := []string{"A", "B", "C"}
		for _, name := range names {
			classes = append(classes, taskClass{cost: c.Given.Cost[name], held: slices.Contains(c.Given.Have, name)})
		}
		for _, n := range c.Given.Neighbours {
			sum := 0
			for k, name := range names {
				sum += n[name]
				classes[k].have = append(classes[k].have, n[name])
			}
			loads = append(loads, float64(sum))
		}
		if got := imbalance(c.Given.Own, loads); !close9(got, float64(c.Expect.Sum)) {
			t.Errorf("%s: d_sum is %v, want %v", c.ID, got, c.Expect.Sum)
		}
		d, exact := demands(c.Given.Own, loads, nil, nil)
		for i, want := range c.Expect.Real {
			if !close9(exact[i], float64(want)) {
				t.Errorf("%s: d_real is %v, want %v", c.ID, exact, c.Expect.Real)
			}
		}
		if !slices.Equal(d, c.Expect.D) {
			t.Errorf("%s: d is %v, want %v", c.ID, d, c.Expect.D)
		}
		var take [][]any
		for r := range requests(d, classes, c.Given.Room) {
			if n := len(take); n == 0 || take[n-1][0] != names[r.class] {
				take = append(take, []any{names[r.class], slices.Repeat([]any{0.}, len(loads))})
			}
			take[len(take)-1][1].([]any)[r.neighbour] = float64(r.tasks)
		}
		if len(take)+len(c.Expect.Take) > 0 && !reflect.DeepEqual(take, c.Expect.Take) {
			t.Errorf("%s: %v are taken, want %v", c.ID, take, c.Expect.Take)
		}
		if !slices.Equal(d, c.Expect.Unmet) {
			t.Errorf("%s: %v are not met, want %v", c.ID, d, c.Expect.Unmet)
		}
	}
	cost := goldenOf[struct {
		Cost   float64 `json:"C_j"`
		Number int     `json:"R_j"`
	}, struct {
		Task fraction `json:"cost_per_task"`
	}](t, "tdc-eq5")[0]
	if got := costPerTask(taskClass{cost: cost.Given.Cost}, cost.Given.Number); got != float64(cost.Expect.Task) {
		t.Errorf("equation 5: %v", got)
	}
	left := goldenOf[struct{ D, A, R int }, struct{ D int }](t, "tdc-eq6")[0]
	d := []int{left.Given.D}
	for range requests(d, []taskClass{{held: true, have: []int{left.Given.R}}}, 0) {
		break
	}
	if d[0] != left.Expect.D {
		t.Errorf("equation 6: %v", d)
	}
}

// TestGoldenActivation plays the changes of the load of the golden case. The printed algorithm is
// pinned: phase 2 begins when l_bal is not above l_latency, whatever the load is.
func TestGoldenActivation(t *testing.T) {
	type given struct {
		Latency float64   `json:"t_latency"`
		Mean    float64   `json:"t_avg"`
		Start   float64   `json:"l_bal"`
		Factor  fraction  `json:"f_a"`
		Loads   []float64 `json:"own_loads"`
		Sums    []float64 `json:"d_sum"`
	}
	type expect struct {
		Latency float64 `json:"l_latency"`
		Events  [][]any `json:"events_index_phase_action"`
		End     float64 `json:"l_bal_end"`
	}
	c := goldenOf[given, expect](t, "tdc-activation")[0]
	g := c.Given
	second := float64(time.Second)
	a := activation{start: g.Start, next: g.Start, factor: float64(g.Factor), latency: time.Duration(g.Latency * second)}
	var events [][]any
	for i, own := range g.Loads {
		phase := 1.
		if a.next <= c.Expect.Latency {
			phase = 2
		}
		if did := a.activate(own, g.Sums[i], time.Duration(g.Mean*second)); did != waits {
			events = append(events, []any{float64(i), phase, map[action]string{looks: "look", balances: "balance"}[did]})
		}
	}
	if !reflect.DeepEqual(events, c.Expect.Events) || a.next != c.Expect.End {
		t.Errorf("%v, l_bal %v\nwant %v, l_bal %v", events, a.next, c.Expect.Events, c.Expect.End)
	}
	if a.activate(70, 0, time.Duration(g.Mean*second)); a.next != g.Start {
		t.Errorf("tasks came in, and l_bal is %v", a.next)
	}
	if did := a.activate(60, 5, time.Duration(g.Mean*second)); did != balances || a.next != g.Start/2 {
		t.Errorf("phase 1 does not begin again: %v, l_bal %v", did, a.next)
	}
}

// TestDemands: the demands add up to the imbalance rounded down, and no neighbour is asked for more than brings
// it to the mean, but for the rounding.
func TestDemands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		own := float64(rapid.IntRange(0, 100).Draw(t, "own"))
		var loads []float64
		for range rapid.IntRange(0, 10).Draw(t, "neighbours") {
			loads = append(loads, float64(rapid.IntRange(0, 400).Draw(t, "load"))/2)
		}
		d, _ := demands(own, loads, nil, nil)
		sum, mean := 0, own+imbalance(own, loads)
		for i, n := range d {
			sum += n
			if n < 0 || n > 0 && float64(n) > loads[i]-mean+1+1e-9 {
				t.Fatalf("own %v, loads %v: %v", own, loads, d)
			}
		}
		if want := int(imbalance(own, loads) + 1e-9); sum != want {
			t.Fatalf("own %v, loads %v: %v add up to %d, want %d", own, loads, d, sum, want)
		}
	})
}

// TestDiffusionLook: a member in phase 2 asks all neighbours above the mean at once, and waits for all answers.
func TestDiffusionLook(t *testing.T) {
	s, err := New(Config{Kind: Diffusion})
	if err != nil {
		t.Fatal(err)
	}
	v := &View{Self: "m", Members: 4, Waiting: 1, Neighbours: []Neighbour{{Name: "a", Load: 8}, {Name: "b", Load: 6}, {Name: "c", Load: 1}}}
	v.Activity.Set(0, 1, 1)
	got, again := s.Look(1, v, nil)
	if want := []Demand{{Member: "a", Tasks: 2}, {Member: "b", Tasks: 1}}; !slices.Equal(got, want) || again != clocksync.MaxInstant {
		t.Errorf("%v, again at %v, want %v", got, again, want)
	}
	v.Neighbours[2].Pending = true
	if got, _ := s.Look(1, v, nil); len(got) > 0 {
		t.Errorf("%v while a demand is open", got)
	}
	for _, c := range []struct{ waiting, asks, wanted, want int }{{9, 0, 4, 4}, {9, 6, 4, 2}, {9, 20, 4, 1}, {1, 0, 1, 1}, {0, 0, 1, 0}} {
		v.Waiting, v.Neighbours[0].Load = c.waiting, float64(c.asks)
		if got := s.Answer(1, v, Demand{Member: "a", Tasks: c.wanted}); got.Tasks != c.want {
			t.Errorf("%+v: %+v is given", c, got)
		}
	}
}
