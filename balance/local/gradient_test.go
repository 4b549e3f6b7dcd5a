package local_test

import (
	"slices"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/balance/local"
)

// loaded is a member with one busy slot and so many tasks that wait; a task has taken 100 ms.
func loaded(waiting int, neighbours ...local.Neighbour) *local.View {
	v := history([]any{[]any{0., 10.}}, 100)
	v.Self, v.Waiting, v.Neighbours, v.Members = "q", waiting, neighbours, len(neighbours)+1
	v.Activity.Set(at(10), 1, 1)
	v.Done = 200 // In 20 s.
	return v
}

func demandsOf(t *testing.T, c local.Config, v *local.View) []local.Demand {
	t.Helper()
	got, _ := newLocal(t, c).Look(at(20), v, nil)
	return got
}

// TestMarket: a member sells to the neighbour where tasks wait least, as many as both gain by after the cost of the move;
// one without work buys where most tasks are.
func TestMarket(t *testing.T) {
	v := loaded(20, local.Neighbour{Name: "p", Load: 12}, local.Neighbour{Name: "r", Load: 2}, local.Neighbour{Name: "s", Load: 6})
	for _, c := range []struct {
		latency time.Duration
		want    []local.Demand
	}{
		{0, []local.Demand{{Member: "r", Tasks: 8, Offer: true}}},           // 10 ms: (20-2-0.1)/2
		{time.Second, []local.Demand{{Member: "r", Tasks: 4, Offer: true}}}, // As 10 tasks: (20-2-10)/2
		{10 * time.Second, nil},
	} {
		if got := demandsOf(t, local.Config{Kind: local.Market, Latency: c.latency}, v); !slices.Equal(got, c.want) {
			t.Errorf("a move costs %v: %v, want %v", c.latency, got, c.want)
		}
	}
	idle := loaded(0, v.Neighbours...)
	idle.Activity.Set(at(11), 0, 1)
	if got := demandsOf(t, local.Config{Kind: local.Market}, idle); !slices.Equal(got, []local.Demand{{Member: "p"}}) {
		t.Errorf("a member without work asks %v", got)
	}
	idle.Neighbours = []local.Neighbour{{Name: "p", Load: 12}, {Name: "s", Load: 6, Offers: 3}}
	if got := demandsOf(t, local.Config{Kind: local.Market}, idle); !slices.Equal(got, []local.Demand{{Member: "s", Tasks: 3}}) {
		t.Errorf("an offer is there, and it asks %v", got)
	}
	strategy := newLocal(t, local.Config{Kind: local.Market, Latency: time.Second})
	for member, want := range map[string]int{"r": 4, "p": 0, "s": 2, "stranger": 5, "q": 0} {
		if got := strategy.Answer(at(20), v, local.Demand{Member: member}); got.Tasks != want {
			t.Errorf("it sells %d tasks to %s, want %d", got.Tasks, member, want)
		}
	}
	v.Waiting, v.Items = 0, 9
	if got := strategy.Answer(at(20), v, local.Demand{Member: "r"}); got != (local.Share{Part: 0.5}) {
		t.Errorf("of a bag it sells %+v", got)
	}
}

// TestField: load flows to all neighbours with less at once, in proportion to the difference, and never below the mean.
func TestField(t *testing.T) {
	v := loaded(20, local.Neighbour{Name: "p", Load: 24}, local.Neighbour{Name: "r", Load: 0}, local.Neighbour{Name: "s", Load: 8})
	for _, c := range []struct {
		share float64
		want  []local.Demand
	}{
		{0, []local.Demand{{Member: "r", Tasks: 5, Offer: true}, {Member: "s", Tasks: 3, Offer: true}}}, // A quarter of 20 and 12.
		{0.5, []local.Demand{{Member: "r", Tasks: 10, Offer: true}, {Member: "s", Tasks: 6, Offer: true}}},
	} {
		if got := demandsOf(t, local.Config{Kind: local.Field, Share: c.share}, v); !slices.Equal(got, c.want) {
			t.Errorf("a share of %v: %v, want %v", c.share, got, c.want)
		}
	}
	v.Neighbours[0].Offers = 4
	if got := demandsOf(t, local.Config{Kind: local.Field}, v); !slices.Equal(got, []local.Demand{{Member: "p", Tasks: 1}}) {
		t.Errorf("a neighbour with more offers: %v", got)
	}
	v.Neighbours[0].Offers, v.Neighbours[2].Offers = 0, 4
	if got := demandsOf(t, local.Config{Kind: local.Field}, v); len(got) != 2 || !got[0].Offer {
		t.Errorf("a neighbour with less offers, and the member asks %v", got)
	}
	strategy := newLocal(t, local.Config{Kind: local.Field})
	for member, want := range map[string]int{"r": 5, "s": 3, "p": 0, "q": 0} {
		if got := strategy.Answer(at(20), v, local.Demand{Member: member}); got.Tasks != want {
			t.Errorf("%d tasks flow to %s, want %d", got.Tasks, member, want)
		}
	}
}

// TestGradientFaults: what the kinds market and field refuse.
func TestGradientFaults(t *testing.T) {
	for want, c := range map[string]local.Config{
		"strategy: latency: 2h0m0s is out of range: write 1us to 1h":                                {Kind: local.Market, Latency: 2 * time.Hour},
		"strategy: share: 0.6 is out of range: write a part above 0, at most 0.5, or leave it out":  {Kind: local.Field, Share: 0.6},
		"strategy: share: the kind market has no such key: leave it out, or write kind: receiver":   {Kind: local.Market, Share: 0.5},
		"strategy: latency: the kind field has no such key: leave it out, or write kind: diffusion": {Kind: local.Field, Latency: time.Second},
	} {
		if _, err := local.New(c); err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}
