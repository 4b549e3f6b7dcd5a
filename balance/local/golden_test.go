package local_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/balance/local"
	"github.com/gopegasus/pegasus/clocksync"
)

// golden are the cases of testdata/golden.json: numbers of the papers, with their source.
func golden(t *testing.T) (cases []goldenCase) {
	t.Helper()
	raw, err := os.ReadFile("testdata/golden.json")
	if err == nil {
		err = json.Unmarshal(raw, &cases)
	}
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

type goldenCase struct {
	ID, Source    string
	Given, Expect map[string]any
}

// TestGoldenChunks cuts all chunks of a loop by each rule, alone and as the answers of a
// member that has put the tasks and runs none.
func TestGoldenChunks(t *testing.T) {
	found := 0
	for _, c := range golden(t) {
		tasks, ok := c.Given["I"].(float64)
		if !ok {
			continue
		}
		processors := int(c.Given["P"].(float64))
		for name, rule := range map[string]string{"SS": "ss", "CSS(8)": "css(8)", "GSS": "gss", "TSS(ceil(I/2P),1)": "tss", "FAC2": "fac2"} {
			found++
			var want []int
			if list, ok := c.Expect[name].([]any); ok {
				for _, v := range list {
					want = append(want, int(v.(float64)))
				}
			} else { // "100 x 1"
				var n, size int
				if _, err := fmt.Sscanf(c.Expect[name].(string), "%d x %d", &n, &size); err != nil {
					t.Fatal(err)
				}
				want = slices.Repeat([]int{size}, n)
			}
			if got := chunks(t, rule, int(tasks), processors); !slices.Equal(got, want) {
				t.Errorf("%s %s: %v, want %v", c.ID, name, got, want)
			}
			if got := answers(t, rule, int(tasks), processors); !slices.Equal(got, want) {
				t.Errorf("%s %s as answers: %v, want %v", c.ID, name, got, want)
			}
			explicit := fmt.Sprintf("tss(%d, 1)", want[0])
			if got := chunks(t, explicit, int(tasks), processors); rule == "tss" && !slices.Equal(got, want) {
				t.Errorf("%s %s: %v, want %v", c.ID, explicit, got, want)
			}
		}
	}
	if found != 15 {
		t.Errorf("%d lists of chunks were found, want 15", found)
	}
}

func chunks(t *testing.T, rule string, tasks, processors int) (sizes []int) {
	t.Helper()
	cut, err := local.ParseCutter(rule)
	if err != nil {
		t.Fatal(err)
	}
	for tasks > 0 {
		n := cut.Next(tasks, processors)
		sizes, tasks = append(sizes, n), tasks-n
	}
	return sizes
}

func answers(t *testing.T, rule string, tasks, processors int) (sizes []int) {
	t.Helper()
	strategy := newLocal(t, local.Config{Kind: local.Chunk, Cut: rule})
	v := local.View{Self: "put", Waiting: tasks, Put: tasks, Members: processors}
	for v.Waiting > 0 {
		n := strategy.Answer(0, &v, local.Demand{Member: "other"}).Tasks
		sizes, v.Waiting, v.Put = append(sizes, n), v.Waiting-n, v.Put-n
	}
	return sizes
}

// at is an instant in seconds.
func at(seconds float64) clocksync.Instant {
	return clocksync.Instant(math.Round(seconds * float64(time.Second)))
}

// history makes an activity of the seconds in which one slot was busy.
func history(spans []any, until float64) *local.View {
	v := &local.View{Members: 3}
	v.Activity.Set(at(0), 0, 1)
	for _, s := range spans {
		begin, end := s.([]any)[0].(float64), s.([]any)[1].(float64)
		if begin <= until {
			v.Activity.Set(at(begin), 1, 1)
		}
		if end <= until {
			v.Activity.Set(at(end), 0, 1)
		}
	}
	return v
}

// TestGoldenValues compares idle and avg with the numbers of the golden case, and has
// ALDY's strategy ask and answer on them.
func TestGoldenValues(t *testing.T) {
	cases := golden(t)
	i := slices.IndexFunc(cases, func(c goldenCase) bool { return c.ID == "aldy-values" })
	c := cases[i]
	spans := func(name string) []any { return c.Given[name].([]any) }
	strategy := newLocal(t, aldy)
	for _, row := range c.Expect["at"].([]any) {
		row := row.(map[string]any)
		seconds := row["t"].(float64)
		now := at(seconds)
		p := history(spans("p_active"), seconds)
		p.Neighbours = []local.Neighbour{{Name: "q1"}, {Name: "q2"}}
		if got := p.Activity.Idle(now) >= 1500*time.Millisecond; got != row["idle(1.5)"].(bool) {
			t.Errorf("at %v: idle(1.5) is %v", seconds, got)
		}
		demands, _ := strategy.Look(now, p, nil)
		if len(demands) != 1 || demands[0].Member != "q1" {
			t.Errorf("at %v: demands %v, want one to q1", seconds, demands)
		}
		for _, name := range []string{"q1", "q2"} {
			q := history(spans(name+"_active"), seconds)
			q.Waiting = 4
			average := float64(q.Activity.Busy(now, 5*time.Second)) / float64(5*time.Second)
			want := row["avg_"+name].(float64)
			if math.Abs(average-want) > 1e-9 {
				t.Errorf("at %v: the average activity of %s is %v, want %v", seconds, name, average, want)
			}
			if share := strategy.Answer(now, q, local.Demand{Member: "p"}); share.Tasks > 0 != (want > 0.6) {
				t.Errorf("at %v: %s gives %v at an average of %v", seconds, name, share, want)
			}
		}
	}
	from := c.Expect["p_idle_1.5_from"].(float64)
	p := history(spans("p_active"), from)
	p.Neighbours = []local.Neighbour{{Name: "q1"}}
	demands, again := strategy.Look(at(from)-1, p, nil)
	if len(demands) != 0 || again != at(from) {
		t.Errorf("before %v: demands %v, again at %v", from, demands, again)
	}
}

// aldy is the strategy as ALDY, section 4.2, prints it.
var aldy = local.Config{Kind: local.Receiver, Below: "idle(1.5)", From: "avg(0.6, 5)", Again: 500 * time.Millisecond}

// TestDialog plays ALDY's dialog: p asks q1, which refuses, then q2, which has too
// little activity as well; then p waits for half a second, and q1 has been busy enough
// at 14.5: from 9.5 on it was active for 3.5 seconds of 5.
func TestDialog(t *testing.T) {
	strategy := newLocal(t, aldy)
	spans := []any{[]any{0., 2.}, []any{7., 9.}, []any{11., 20.}}
	p := history([]any{[]any{0., 10.}}, 10)
	p.Neighbours = []local.Neighbour{{Name: "q1", Load: 1}, {Name: "q2"}}
	var asked []string
	now := at(10)
	for len(asked) < 20 {
		demands, again := strategy.Look(now, p, nil)
		if len(demands) == 0 {
			now = again
			continue
		}
		n := &p.Neighbours[slices.IndexFunc(p.Neighbours, func(n local.Neighbour) bool { return n.Name == demands[0].Member })]
		asked = append(asked, fmt.Sprintf("%s at %v", n.Name, now.Sub(0)))
		share := local.Share{}
		if n.Name == "q1" {
			q := history(spans, float64(now)/1e9)
			q.Waiting = 5
			share = strategy.Answer(now, q, local.Demand{Member: "p"})
		}
		if share.Tasks > 0 {
			asked = append(asked, strconv.Itoa(share.Tasks))
			break
		}
		n.Refusals, n.Answered = n.Refusals+1, now
	}
	var want []string
	for s := 11.5; s < 14.5; s += 0.5 {
		want = append(want, fmt.Sprintf("q1 at %vs", s), fmt.Sprintf("q2 at %vs", s))
	}
	if want = append(want, "q1 at 14.5s", "3"); !slices.Equal(asked, want) {
		t.Errorf("%v\nwant %v", asked, want)
	}
}

func newLocal(tb testing.TB, c local.Config) local.Local {
	tb.Helper()
	strategy, err := local.New(c)
	if err != nil {
		tb.Fatal(err)
	}
	return strategy
}
