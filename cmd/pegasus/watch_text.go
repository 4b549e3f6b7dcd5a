package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/scgs"
)

// liveEvent is an event as a run has told it: the JSON, and the keys of it that its
// text needs.
type liveEvent struct {
	keys map[string]json.RawMessage

	Event, Synchronizer, Predicate, Truth, Reason, Decision string

	Time            time.Time
	Epoch           uint64
	Members, Joined []string
	Witness         []struct {
		Member  string
		Unknown bool
		State   monitor.Values
	}
	WitnessLeftOut int     `json:"witness_left_out"`
	Modality       string  `json:"modality"`
	Suppressed     uint64  `json:"suppressed"`
	Held           float64 `json:"held_seconds"`
	SameClock      bool    `json:"same_clock"`
	Bound          float64 `json:"bound_seconds"`
	Sources        string  `json:"bound_sources"`

	Signal, Kind, Region, Group, Target, Fate, Detail string
	Member, Status, Source, From                      string
	Configuration                                     string
	Changes                                           []string
	Lines                                             uint64

	Strategy, Verdict string
	Before            *float64              `json:"longest_before_seconds"`
	After             *float64              `json:"longest_after_seconds"`
	Moves             []monitor.PlanMove    `json:"moves"`
	MovesLeftOut      int                   `json:"moves_left_out"`
	Refused           []monitor.PlanRefusal `json:"refused"`
	LeftOut           int                   `json:"left_out"`
}

// decodeEvent reads a line.
func decodeEvent(text string) (*liveEvent, error) {
	e := &liveEvent{}
	if err := json.Unmarshal([]byte(text), &e.keys); err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(text), e); err != nil {
		return nil, err
	}
	if e.Event == "" {
		return nil, errors.New("it has no event")
	}
	return e, nil
}

// fields are the keys as they came.
func (e *liveEvent) fields() fields {
	o := make(fields, len(e.keys))
	for k, v := range e.keys {
		o[k] = v
	}
	return o
}

// text is the line that run would print of it, as far as JSON tells.
func (e *liveEvent) text() string {
	switch e.Event {
	case "epoch":
		return e.epoch()
	case "lost":
		return "lost member " + e.Member + ": " + e.Reason
	case "verdict":
		return strings.TrimSuffix(fmt.Sprintf("%s is %s: %s", e.Predicate, e.Truth, e.Reason), ": ") + keptBack(e.Suppressed, false)
	case "fired":
		return e.fired()
	case "signal":
		line := fmt.Sprintf("signal %s (%s region %s, decision %s) to %s: %s", e.Signal, e.Kind, e.Region, e.Decision, targetText(e.Group, e.Target), e.Fate)
		if e.Detail != "" {
			line += " (" + e.Detail + ")"
		}
		return line
	case "clock":
		return strings.TrimSuffix(fmt.Sprintf("clock of %s is %s by %s", e.Member, e.Status, e.Source), " by ")
	case "plan":
		p := monitor.PlanStatus{Decision: e.Decision, Strategy: e.Strategy, Verdict: e.Verdict, Before: e.Before, After: e.After, Moves: e.Moves}
		return planText(&p, len(e.Moves)+e.MovesLeftOut, len(e.Refused)+e.LeftOut)
	case "refused":
		return fmt.Sprintf("refused %s: %s", e.From, e.Reason)
	case "reload":
		return reloadedText(e.Configuration, e.Changes)
	case "skipped":
		return count(e.Lines, "event") + " left out: too many at once"
	}
	return e.Event // A newer run may know more.
}

func (e *liveEvent) epoch() string {
	one := monitor.Epoch{Epoch: e.Epoch, Members: e.Members, Joined: e.Joined}
	return epochText(&one)
}

func (e *liveEvent) fired() string {
	parts := make([]string, len(e.Witness))
	for i, p := range e.Witness {
		parts[i] = memberText(p.Member, p.Unknown, p.State)
	}
	return fmt.Sprintf("%s fired (decision %s) on %s; %s", e.Predicate, e.Decision, someOf(parts, len(parts)+e.WitnessLeftOut), heldBy(e.Modality, e.SameClock, e.Held > 0, e.Held, e.Bound, e.Sources)) + keptBack(e.Suppressed, true)
}

// heldBy says how long a global state certainly held, and by which bound that is
// known; core is false if there is no instant at which it certainly did.
func heldBy(modality string, sameClock, core bool, heldSeconds, boundSeconds float64, sources string) string {
	held, bound := secondsText(heldSeconds), secondsText(boundSeconds)
	if sources != "" {
		bound += " (" + sources + ")"
	}
	switch {
	case sameClock:
		return "held " + held + " by the same clock"
	case modality == scgs.Possibly.String():
		return "may have held, by clocks within " + bound
	case core:
		return "held " + held + " by clocks within " + bound
	}
	return "held, for less than the clocks' bound of " + bound
}

func memberText(name string, unknown bool, state monitor.Values) string {
	switch {
	case unknown:
		return name + " (unknown)"
	case len(state) == 0:
		return name
	}
	return name + " (" + state.String() + ")"
}

// standingText is a status as one line: its global state.
func standingText(s *monitor.Status) string {
	if s.State == nil {
		ready := 0
		for _, m := range s.Members {
			if m.Standing == monitor.Ready || m.Standing == monitor.Taking {
				ready++
			}
		}
		return fmt.Sprintf("no global state yet: %d of %s have a state", ready, count(s.Awaited, "awaited member"))
	}
	var parts []string
	for _, m := range s.Members {
		if m.Standing == monitor.Taking {
			parts = append(parts, memberText(m.Name, m.Unknown, m.State))
		}
	}
	return fmt.Sprintf("global state %d of epoch %d (%s): %s", s.State.Index, s.State.Epoch, heldText(s.State), some(parts))
}

// clockTime is the time of day that lines begin with.
func clockTime(t time.Time) string { return t.Format("15:04:05") }
