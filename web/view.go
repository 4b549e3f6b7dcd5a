package web

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/monitor"
)

const (
	maxMembers    = 500   // shown of a synchronizer
	maxPredicates = 1_000 // the same
	maxDecisions  = 10    // the same
	maxWaits      = 20    // the same
	balanceName   = "balance"
)

// statusView is a status as browsers get it: texts, so that no digit of a number is lost in
// a browser.
type statusView struct {
	Kind           string          `json:"kind"`
	Age            int64           `json:"age"`  // in milliseconds when it was sent
	Time           int64           `json:"time"` // of its arrival, in milliseconds since 1970, by the clock of the page's process
	Synchronizer   string          `json:"synchronizer"`
	Group          string          `json:"group"`
	Tenant         string          `json:"tenant"`
	Epoch          string          `json:"epoch"`
	State          string          `json:"state"` // the newest global state
	Leader         string          `json:"leader"`
	Standbys       []string        `json:"standbys"`
	Waits          []string        `json:"waits"` // what the group waits for, from which member, since when
	WaitsMore      int             `json:"waits_more"`
	Members        []memberView    `json:"members"`
	MembersMore    int             `json:"members_more"`
	Predicates     []predicateView `json:"predicates"`
	PredicatesMore int             `json:"predicates_more"`
	Decisions      []decisionView  `json:"decisions"`         // newest first
	Facts          []string        `json:"facts"`             // memory, parameters, what is amiss
	Program        *programView    `json:"program,omitempty"` // nil: none runs
	Balance        *balanceView    `json:"balance,omitempty"` // nil: no loads are moved
	Params         []paramView     `json:"params,omitempty"`
}

// paramView is a parameter, for the page's control.
type paramView struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Takes   string `json:"takes"`
	Initial string `json:"initial"`
	Set     bool   `json:"set"`
}

type memberView struct {
	Name    string `json:"name"`
	Host    string `json:"host"`
	Part    string `json:"part"` // whether it takes part
	Heard   string `json:"heard"`
	Clock   string `json:"clock"`
	Bound   string `json:"bound"`
	State   string `json:"state"`
	Gap     string `json:"gap"`
	Trouble bool   `json:"trouble"`
}

type predicateView struct {
	Name  string `json:"name"`
	Truth string `json:"truth"`
	Since string `json:"since"`
	Fired string `json:"fired"`
	Last  string `json:"last"`
	Waits string `json:"waits"` // what it waits for
}

type decisionView struct {
	Predicate string `json:"predicate"`
	ID        string `json:"id"`
	Ago       string `json:"ago"`

	age float64
}

// newStatusView makes the view of a status. Waits is for how long the page has seen the
// synchronizer without an epoch.
func newStatusView(s *monitor.Status, waits time.Duration) *statusView {
	v := &statusView{
		Kind: "status", Synchronizer: s.Synchronizer, Group: s.Group, Tenant: s.Tenant, Epoch: "no epoch", State: stateText(s.State),
		Leader: cmp.Or(s.Leader, "its only process"), Standbys: append([]string{}, s.Standbys...),
		Members: []memberView{}, Predicates: []predicateView{}, Decisions: []decisionView{}, Facts: factTexts(s),
		Program: newProgramView(s.Program), Balance: newBalanceView(s.Balance),
	}
	for i := range s.Params {
		p := &s.Params[i]
		v.Params = append(v.Params, paramView{p.Name, p.Value, strings.TrimSpace(p.Type + " " + p.Range), p.Default, p.Set})
	}
	if s.Epoch > 0 {
		v.Epoch = "epoch " + strconv.FormatUint(s.Epoch, 10)
	}
	v.Waits = waitTexts(s, waits)
	v.Waits, v.WaitsMore = first(v.Waits, maxWaits)
	for i := range s.Members {
		v.Members = append(v.Members, newMemberView(&s.Members[i]))
	}
	slices.SortStableFunc(v.Members, func(a, b memberView) int { // Those in trouble first.
		switch {
		case a.Trouble == b.Trouble:
			return 0
		case a.Trouble:
			return -1
		}
		return 1
	})
	v.Members, v.MembersMore = first(v.Members, maxMembers)
	for i := range s.Predicates {
		p := &s.Predicates[i]
		v.Predicates = append(v.Predicates, newPredicateView(p))
		if p.Decision != "" {
			v.Decisions = append(v.Decisions, decisionView{p.Name, p.Decision, ago(p.Ago), p.Ago})
		}
	}
	v.Predicates, v.PredicatesMore = first(v.Predicates, maxPredicates)
	slices.SortStableFunc(v.Decisions, func(a, b decisionView) int { return cmp.Compare(a.age, b.age) })
	v.Decisions, _ = first(v.Decisions, maxDecisions)
	return v
}

// factTexts tell of memory and parameters, and what keeps a synchronizer from hearing or saying something.
func factTexts(s *monitor.Status) []string {
	texts := []string{}
	if len(s.Memory) > 0 {
		texts = append(texts, "memory: "+s.Memory.String())
	}
	for i := range s.Params {
		p := &s.Params[i]
		text := "parameter " + p.Name + " = " + p.Value
		if p.Set {
			text += ", set; it was " + p.Default
		}
		texts = append(texts, text)
	}
	for _, d := range s.Denied {
		verb := "subscribe"
		if d.Publish {
			verb = "publish"
		}
		texts = append(texts, fmt.Sprintf("the NATS server refuses to %s to %q, last %s", verb, d.Subject, ago(d.Ago)))
	}
	for _, m := range s.Shed {
		texts = append(texts, fmt.Sprintf("%d messages of %s were shed unread", m.Full+m.Old, m.From))
	}
	return texts
}

// first cuts a list, and counts what is cut.
func first[E any](list []E, most int) (cut []E, more int) {
	if len(list) <= most {
		return list, 0
	}
	return list[:most], len(list) - most
}

func ago(seconds float64) string { return monitor.Seconds(seconds) + " ago" }

func stateText(g *monitor.StateStatus) string {
	if g == nil {
		return "no global state yet"
	}
	text := fmt.Sprintf("global state %d of epoch %d: ", g.Index, g.Epoch)
	if g.InForce {
		text += "in force, certainly held for " + monitor.Seconds(g.Held)
	} else {
		text += "over, and the next one is not certain yet"
	}
	if g.Partial {
		text += "; the state of some member is unknown"
	}
	return text
}

// waitTexts says what keeps a group from its next epoch or global state.
func waitTexts(s *monitor.Status, waits time.Duration) []string {
	texts := []string{}
	if s.Epoch == 0 {
		var there []string
		for i := range s.Members {
			if m := &s.Members[i]; m.Standing == monitor.Ready || m.Standing == monitor.InEpoch {
				there = append(there, m.Name)
			}
		}
		text := fmt.Sprintf("the group has %d of the %d members that it waits for", len(there), s.Awaited)
		if len(there) > 0 {
			text += " (" + monitor.Some{Count: len(there), Names: there}.String() + ")"
		}
		texts = append(texts, text+"; this page has seen that for "+monitor.Seconds(waits.Seconds()))
	}
	for i := range s.Members {
		m := &s.Members[i]
		switch {
		case m.Standing == monitor.Gone:
		case m.Silent:
			texts = append(texts, m.Name+": silent for "+monitor.Seconds(m.Heard))
		case m.Gap > 0:
			texts = append(texts, m.Name+": a report is missing, and asked for since "+monitor.Seconds(m.Gap))
		case m.Standing == monitor.NoState:
			texts = append(texts, m.Name+": it has joined and has no state; heard "+ago(m.Heard))
		case m.Standing == monitor.InEpoch && m.Unknown:
			texts = append(texts, m.Name+": nothing is known of its state; heard "+ago(m.Heard))
		case m.Standing == monitor.Leaving:
			texts = append(texts, m.Name+": it is gone, and the epoch with it is not over; heard "+ago(m.Heard))
		}
	}
	return texts
}

var parts = map[monitor.Standing]string{
	monitor.InEpoch: "in the epoch", monitor.Ready: "waits for the next epoch", monitor.NoState: "joined, without a state",
	monitor.Gone: "gone", monitor.Leaving: "gone, epoch not over",
}

func newMemberView(m *monitor.MemberStatus) memberView {
	v := memberView{
		Name: m.Name, Host: m.Host, Part: cmp.Or(parts[m.Standing], string(m.Standing)), Heard: ago(m.Heard), Clock: m.Clock.Status,
		Bound: "no bound", State: m.State.String(),
		Trouble: m.Standing != monitor.InEpoch || m.Silent || m.Unknown || m.Gap > 0 || m.Why != "",
	}
	if m.Silent {
		v.Heard = "silent for " + monitor.Seconds(m.Heard)
	}
	if m.Clock.Source != "" && m.Clock.Source != m.Clock.Status {
		v.Clock += " by " + m.Clock.Source
	}
	if m.Clock.Bound != nil && *m.Clock.Bound == 0 {
		v.Bound = "0"
	} else if m.Clock.Bound != nil {
		v.Bound = "±" + monitor.Seconds(*m.Clock.Bound)
	}
	switch {
	case m.Why != "":
		v.State = m.Why
	case m.Standing == monitor.NoState:
		v.State = "none yet"
	case m.Unknown:
		v.State = "unknown"
	}
	var gaps []string
	if m.Gap > 0 {
		gaps = append(gaps, fmt.Sprintf("%d reports wait for a report that is missing since %s", m.Behind, monitor.Seconds(m.Gap)))
	}
	if m.Gaps > 0 {
		gaps = append(gaps, fmt.Sprintf("%d reports lost", m.Lost))
	}
	v.Gap = strings.Join(gaps, "; ")
	return v
}

func newPredicateView(p *monitor.PredicateStatus) predicateView {
	v := predicateView{Name: p.Name, Truth: p.Truth, Fired: strconv.FormatUint(p.Fired, 10)}
	if p.Since != nil {
		v.Since = monitor.Seconds(*p.Since)
	}
	if p.Decision != "" {
		v.Last = p.Decision + ", " + ago(p.Ago)
	}
	var waits []string
	switch {
	case p.Reason != "":
		waits = append(waits, p.Reason)
	case p.Since == nil:
		waits = append(waits, "its first verdict in this epoch")
	case p.Hold != nil:
		waits = append(waits, fmt.Sprintf("its hold time: certain for %s of %s", monitor.Seconds(p.Hold.Certain), monitor.Seconds(p.Hold.Wanted)))
	case !p.Armed:
		waits = append(waits, "its reset, since it has fired")
	case p.Truth == "false":
		waits = append(waits, "its condition")
	}
	v.Waits = strings.Join(append(waits, p.Notes...), "; ")
	return v
}
