package local_test

import (
	"slices"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/balance/local"
)

// TestSender plays the dialog of ALDY's sender with the words of section 4.2: q is above
// avg(0.6, 5) and offers to the neighbour with the least load, which takes the offer once
// it has been idle for 1.5 s. A refusal sends q to the next one, and then it waits.
func TestSender(t *testing.T) {
	c := aldy
	c.Kind = local.Sender
	q := history([]any{[]any{0., 20.}}, 10)
	q.Waiting = 8
	q.Neighbours = []local.Neighbour{{Name: "p", Load: 2}, {Name: "r"}}
	strategy := newLocal(t, c)
	look := func(seconds float64, want ...local.Demand) {
		t.Helper()
		if got, _ := strategy.Look(at(seconds), q, nil); !slices.Equal(got, want) {
			t.Errorf("at %v: %v, want %v", seconds, got, want)
		}
	}
	look(2.9) // Active for 2.9 s of the last 5: not above 0.6.
	look(10, local.Demand{Member: "r", Tasks: 4, Offer: true})
	q.Neighbours[1].Refusals, q.Neighbours[1].Answered = 1, at(10)
	look(10, local.Demand{Member: "p", Tasks: 4, Offer: true})
	q.Neighbours[0].Refusals, q.Neighbours[0].Answered = 1, at(10.1)
	if got, again := strategy.Look(at(10.1), q, nil); len(got) > 0 || again != at(10.5) {
		t.Errorf("after two refusals: %v, again at %v", got, again)
	}
	look(10.5, local.Demand{Member: "r", Tasks: 4, Offer: true})

	p := history([]any{[]any{0., 10.}}, 10)
	p.Neighbours = []local.Neighbour{{Name: "q", Offers: 4}, {Name: "o", Offers: 9}}
	other := newLocal(t, c)
	if got, _ := other.Look(at(11.4), p, nil); len(got) > 0 {
		t.Errorf("an offer is taken after 1.4 s: %v", got)
	}
	if got, _ := other.Look(at(11.5), p, nil); !slices.Equal(got, []local.Demand{{Member: "o", Tasks: 9}}) {
		t.Errorf("after 1.5 s the larger offer is to be taken: %v", got)
	}
	if share := strategy.Answer(at(11.5), q, local.Demand{Member: "p", Tasks: 4}); share.Tasks != 4 {
		t.Errorf("the offer was of 4 tasks: %+v", share)
	}
	p.Neighbours[0].Offers, p.Neighbours[1].Offers = 0, 0
	if got, again := other.Look(at(20), p, nil); len(got) > 0 || again < at(1e6) {
		t.Errorf("a sender asks for nothing that was not offered: %v, %v", got, again)
	}
}

// TestSenderWaits: an offer is repeated after again, and later after each refusal, whatever
// the neighbour tells.
func TestSenderWaits(t *testing.T) {
	q := &local.View{Self: "q", Waiting: 2, Members: 2, Neighbours: []local.Neighbour{{Name: "p", Load: 1, Told: at(9), Answered: at(8)}}}
	q.Activity.Set(0, 1, 1)
	strategy := newLocal(t, local.Config{Kind: local.Sender})
	for refusals, want := range []time.Duration{1: 10 * time.Millisecond, 20 * time.Millisecond, 40 * time.Millisecond, 80 * time.Millisecond, 100 * time.Millisecond} {
		if refusals == 0 {
			continue
		}
		q.Neighbours[0].Refusals = refusals
		if got, again := strategy.Look(at(8), q, nil); len(got) > 0 || again != at(8).Add(want) {
			t.Errorf("%d refusals: %v, again at %v, want %v", refusals, got, again, want)
		}
	}
}
