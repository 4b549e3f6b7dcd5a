package web

import (
	"fmt"
	"strconv"

	"github.com/gopegasus/pegasus/monitor"
)

// whyView is an explanation as browsers get it.
type whyView struct {
	Synchronizer string        `json:"synchronizer"`
	Name         string        `json:"name"`
	Truth        string        `json:"truth"`
	Since        string        `json:"since"`
	Reason       string        `json:"reason"`
	Fired        string        `json:"fired"`
	When         string        `json:"when"`
	For          string        `json:"for"`
	State        string        `json:"state"`
	Parts        []partView    `json:"parts"`
	Missing      []missingView `json:"missing"`
	Notes        []string      `json:"notes"`
	Last         *lastView     `json:"last"`   // nil: none
	Groups       []whyView     `json:"groups"` // of a predicate with groups of members
}

type partView struct {
	Depth   int    `json:"depth"`
	Text    string `json:"text"`
	Value   string `json:"value"` // true, false, unknown or another value, or from which to which
	Reason  string `json:"reason"`
	For     string `json:"for"`     // members for which its condition holds
	Against string `json:"against"` // for which it does not
	Maybe   string `json:"maybe"`   // for which that is unknown
}

type missingView struct {
	Kind   string `json:"kind"`
	Member string `json:"member"`
	Text   string `json:"text"`
	Since  string `json:"since"`
}

type lastView struct {
	ID      string        `json:"id"`
	Ago     string        `json:"ago"`
	Text    string        `json:"text"`
	Witness []witnessView `json:"witness"`
	LeftOut int           `json:"left_out"`
	Pairs   []pairView    `json:"pairs"`
	More    int           `json:"pairs_more"`
}

// witnessView has times after the instant from which on all states held.
type witnessView struct {
	Member string `json:"member"`
	State  string `json:"state"`
	Began  string `json:"began"`
	Ended  string `json:"ended"`
}

func newWhyView(e *monitor.Explanation) whyView {
	v := whyView{
		Synchronizer: e.Synchronizer, Name: e.Name, Truth: e.Truth, Reason: e.Reason, When: e.When, State: stateText(e.State),
		Fired: strconv.FormatUint(e.Fired, 10), Notes: append([]string{}, e.Notes...),
		Parts: []partView{}, Missing: []missingView{}, Groups: []whyView{},
	}
	if e.Since != nil {
		v.Since = monitor.Seconds(*e.Since)
	}
	if e.For > 0 {
		v.For = monitor.Seconds(e.For)
	}
	for i := range e.Parts {
		v.Parts = append(v.Parts, newPartView(&e.Parts[i]))
	}
	for _, m := range e.Missing {
		one := missingView{Kind: m.Kind, Member: m.Member, Text: m.Text}
		if m.Since != nil {
			one.Since = monitor.Seconds(*m.Since)
		}
		v.Missing = append(v.Missing, one)
	}
	if e.Last != nil {
		v.Last = newLastView(e.Last)
	}
	for i := range e.Groups {
		v.Groups = append(v.Groups, newWhyView(&e.Groups[i]))
	}
	return v
}

func newPartView(c *monitor.Condition) partView {
	v := partView{Depth: c.Depth, Text: c.Text, Value: "unknown", Reason: c.Reason, For: someText(c.True), Against: someText(c.False), Maybe: someText(c.Unknown)}
	if c.Low != nil {
		low, high := fmt.Sprint(c.Low), fmt.Sprint(c.High)
		if v.Value = low; low != high {
			v.Value = low + " to " + high
		}
	}
	return v
}

// someText is empty if there is none.
func someText(s *monitor.Some) string {
	if s == nil || s.Count == 0 {
		return ""
	}
	return fmt.Sprintf("%d: %s", s.Count, s)
}

func newLastView(d *monitor.LastDecision) *lastView {
	v := &lastView{ID: d.ID, Ago: ago(d.Ago), Witness: []witnessView{}, LeftOut: d.LeftOut, Pairs: []pairView{}}
	if d.Inherited {
		v.Text = "another process made this decision, and its witness is not known here"
		return v
	}
	f := monitor.Firing{Modality: d.Modality, Held: d.Held, SameClock: d.SameClock, Bound: d.Bound, Sources: d.Sources}
	v.Text = fmt.Sprintf("on global state %d of epoch %d; %s", d.Index, d.Epoch, f.Certainty())
	if d.Partial {
		v.Text += "; the state of some member was unknown"
	}
	for i := range d.Witness {
		w := &d.Witness[i]
		one := witnessView{Member: w.Member, State: w.State.String()}
		switch {
		case w.Unknown:
			one.State = "unknown"
		case w.Open:
			one.Began, one.Ended = rangeText(w.Start), "not over then; seen until "+rangeText(w.End)
		default:
			one.Began, one.Ended = rangeText(w.Start), rangeText(w.End)
		}
		v.Witness = append(v.Witness, one)
	}
	v.Pairs, v.More = newPairs(d)
	return v
}
