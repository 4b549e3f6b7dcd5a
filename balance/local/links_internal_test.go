package local

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// linkOf makes a link of a form such as "uo|-".
func linkOf(t *testing.T, form string) link {
	t.Helper()
	left, right, _ := strings.Cut(form, "|")
	side := func(name, has string) string {
		var list []string
		if strings.Contains(has, "u") {
			list = append(list, "u=(L<10)")
		}
		if strings.Contains(has, "o") {
			list = append(list, "o=(L>=20)")
		}
		return fmt.Sprintf("%s(%s)[1/2]", name, strings.Join(list, ","))
	}
	l, err := parseLinks(side("M1", left) + "#" + side("M2", right))
	if err != nil {
		t.Fatal(err)
	}
	return l[0]
}

// TestGoldenLinks has the fifteen forms of CORD's table 4.1 in all nine states. In each the strategy of one
// of both members moves tasks where the table says so: the one that is overloaded offers and the other
// one takes it, or the one that is underloaded asks and the other one gives.
func TestGoldenLinks(t *testing.T) {
	forms := 0
	loads := map[byte]int{'u': 2, '-': 12, 'o': 30}
	for name, states := range goldenOf[any, map[string]map[string]string](t, "cord-table-4.1")[0].Expect {
		forms++
		_, form, _ := strings.Cut(name, " ")
		l := linkOf(t, form)
		s := &linked{links: []link{l}}
		for pair, want := range states {
			state := func(i int) linkState { return map[byte]linkState{'u': under, '-': between, 'o': over}[pair[i]] }
			got := "."
			switch {
			case l.gives(0, state(0), state(1)):
				got = ">"
			case l.gives(1, state(1), state(0)):
				got = "<"
			}
			if got != want {
				t.Errorf("%s, %s: %s, want %s", name, pair, got, want)
			}
			a, b := loads[pair[0]], loads[pair[1]]
			if moved := dialog(s, a, b); moved != want && (moved != "." || want == ">" && a > b || want == "<" && b > a) { // Equal ones rest.
				t.Errorf("%s, %s: the strategies move %s, want %s", name, pair, moved, want)
			}
		}
	}
	if forms != 15 {
		t.Errorf("%d forms, want 15", forms)
	}
}

// dialog lets both members look at each other's true loads, and tells which way tasks go.
func dialog(s *linked, a, b int) string {
	v := [2]*View{{Self: "M1", Waiting: a, Neighbours: []Neighbour{{Name: "M2", Load: float64(b)}}}, {Self: "M2", Waiting: b, Neighbours: []Neighbour{{Name: "M1", Load: float64(a)}}}}
	for i := range v {
		v[i].Activity.Set(0, 1, 1)
	}
	for i, arrow := range []string{">", "<"} {
		one, other := v[i], v[1-i]
		for _, d := range first(s.Look(1, one, nil)) {
			if !d.Offer {
				d.Member = one.Self
				if s.Answer(1, other, d).Tasks > 0 {
					return map[string]string{">": "<", "<": ">"}[arrow]
				}
				continue
			}
			other.Neighbours[0].Offers = d.Tasks
			for _, d := range first(s.Look(1, other, nil)) {
				if d.Member = other.Self; !d.Offer && s.Answer(1, one, d).Tasks > 0 {
					return arrow
				}
			}
			other.Neighbours[0].Offers = 0
		}
	}
	return "."
}

func first[A, B any](a A, _ B) A { return a }

// TestGoldenRing plays the ring of CORD as printed, where each member in turn gives its share, and then as
// the strategy does: it comes to rest from any loads, and the printed rule moves tasks for ever.
func TestGoldenRing(t *testing.T) {
	ring, err := parseLinks("harvey(o=(L>=10))[1/2]#bugs, bugs(o=(L>=20))[1/3]#thumper, thumper(o=(L>=10))[1/4]#harvey")
	if err != nil {
		t.Fatal(err)
	}
	round := func(loads []int, amount func(l *link, own, other int) int) (moved int) {
		for i := range ring {
			if k := (i + 1) % 3; ring[i].gives(0, ring[i].ends[0].state(float64(loads[i])), between) {
				n := amount(&ring[i], loads[i], loads[k])
				loads[i], loads[k], moved = loads[i]-n, loads[k]+n, moved+n
			}
		}
		return moved
	}
	printed := func(l *link, own, _ int) int { return l.portion(0, own) }
	rests := func(l *link, own, other int) int { return l.amount(0, own, float64(other)) }
	c := goldenOf[struct{ Loads []int }, struct{ Rounds [][]int }](t, "cord-ring\"")[0]
	loads := slices.Clone(c.Given.Loads)
	for i, want := range c.Expect.Rounds {
		if !slices.Equal(loads, want) {
			t.Errorf("after round %d: %v, want %v", i, loads, want)
		}
		round(loads, printed)
	}
	lock := goldenOf[struct{ Loads []int }, struct {
		After map[string][]int `json:"after_round"`
		Moved int              `json:"tasks_moved_in_every_round_from_10_on"`
	}](t, "cord-ring-livelock")[0]
	loads = slices.Clone(lock.Given.Loads)
	for i := range 40 {
		moved := round(loads, printed)
		if want, ok := lock.Expect.After[strconv.Itoa(i+1)]; ok && !slices.Equal(loads, want) {
			t.Errorf("after round %d: %v, want %v", i+1, loads, want)
		}
		if i >= 10 && moved != lock.Expect.Moved {
			t.Errorf("round %d moves %d", i+1, moved)
		}
	}
	loads = slices.Clone(lock.Given.Loads)
	for i := 0; round(loads, rests) > 0; i++ {
		if i == 20 {
			t.Fatalf("the ring does not rest: %v", loads)
		}
	}
	if slices.Max(loads) > 30 {
		t.Errorf("the ring rests too early: %v", loads)
	}
}
