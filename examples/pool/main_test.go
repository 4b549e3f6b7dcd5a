package main

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gopegasus/pegasus/balance"
	"github.com/gopegasus/pegasus/internal/testnats"
	"github.com/gopegasus/pegasus/internal/testprogram"
)

func TestMain(m *testing.M) { testprogram.Main(m, main) }

// TestPool runs three processes, of which the last takes four times as long as the
// first. Each task is done once, and with moves that takes less than without: half the
// time where there is a core for each, and two thirds on two cores. What else the
// machine does may hit one of the two runs that are compared, so the best of three
// counts.
func TestPool(t *testing.T) {
	best, last := 2.0, ""
	for attempt := range 3 {
		moves, ratio, out := runPool(t, "-tasks", strconv.Itoa(60+30*attempt))
		if best, last = min(best, ratio), out; moves > 0 && best < 0.9 {
			return
		}
	}
	t.Errorf("the best ratio is %v, at last\n%s", best, last)
}

func runPool(t *testing.T, args ...string) (moves int, ratio float64, out string) {
	t.Helper()
	raw, err := testprogram.Command(t, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("pool %v: %v\n%s", args, err, raw)
	}
	verdict := regexp.MustCompile(`^ok: \d+ tasks, each done once; \S+ without moves, \S+ with (\d+) \(ratio (\d+\.\d\d)\); the end was decision pools/\d+/\d+\n$`).FindSubmatch(raw)
	if verdict == nil {
		t.Fatalf("pool %v: the verdict is missing in\n%s", args, raw)
	}
	moves, err = strconv.Atoi(string(verdict[1]))
	if err == nil {
		ratio, err = strconv.ParseFloat(string(verdict[2]), 64)
	}
	if err != nil {
		t.Fatal(err)
	}
	return moves, ratio, string(raw)
}

// TestSecuredServer: the connection for tasks uses the environment, as the agent does. The error of one that
// is refused names the credential.
func TestSecuredServer(t *testing.T) {
	for _, kind := range testnats.Kinds() {
		t.Run(kind, func(t *testing.T) {
			server := testnats.Start(t, kind)
			server.Setenv(t)
			nc, err := dialData(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			nc.Close()
		})
	}
	server := testnats.Start(t, "password")
	t.Setenv("NATS_USER", "jo")
	t.Setenv("NATS_PASSWORD", "wrong")
	_, err := dialData(server.URL)
	want := "the connection for tasks to the NATS server at " + server.URL + " failed: nats: Authorization Violation; the server refused "
	if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "NATS_USER") || strings.Contains(err.Error(), "wrong") {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestPoolTells: what is in a pool is told before anything else happens to it, the
// largest first, and a parcel that comes again is none.
func TestPoolTells(t *testing.T) {
	var all []state
	p := newPool([]task{{1, 2}, {2, 5}}, 7, func(s state) error {
		all = append(all, s)
		return nil
	})
	first, ok, err := p.next()
	if !ok || err != nil || first.Number != 2 {
		t.Errorf("%+v %v", first, err)
	}
	p.take(parcel{"w9/1", []task{{3, 4}}})
	p.take(parcel{"w9/1", []task{{3, 4}}})
	p.finish(first)
	parcels := p.give([]balance.Order{{Load: "1", To: "w2"}, {Load: "2", To: "w2"}, {Load: "3", To: "w3"}})
	if d := cmp.Diff(map[string][]task{"w2": {{1, 2}}, "w3": {{3, 4}}}, parcels); d != "" {
		t.Error(d)
	}
	want := []state{
		{[]int{2, 1}, []float64{5, 2}, 0, 7, 1, 0, 0},
		{[]int{1}, []float64{2}, 5, 7, 1, 0, 0},
		{[]int{3, 1}, []float64{4, 2}, 5, 7, 1, 0, 1},
		{[]int{3, 1}, []float64{4, 2}, 0, 7, 1, 0, 1},
		{nil, nil, 0, 7, 1, 2, 1},
	}
	if d := cmp.Diff(want, all); d != "" || !slices.Equal(p.done, []int{2}) {
		t.Errorf("%s%v", d, p.done)
	}
	many := make([]task, 70)
	for i := range many {
		many[i] = task{i, 1}
	}
	newPool(many, 1, func(s state) error {
		if len(s.Tasks) != told || s.Rest != 6 {
			t.Errorf("%d told, %v rest", len(s.Tasks), s.Rest)
		}
		return nil
	})
}
