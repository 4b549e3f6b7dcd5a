package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/monitor"
)

const (
	maxStates      = 100_000  // of members that a browser gets
	maxStateBytes  = 16 << 20 // of their values
	maxStateLanes  = 2_000    // members that have them
	maxStateValues = 32       // fields of a state
)

// statesView has the states of all members of a recorded run.
type statesView struct {
	Lanes   []*memberLane `json:"lanes"` // by synchronizer, host and member
	Rows    []stateRow    `json:"rows"`
	LeftOut int           `json:"left_out"` // states
}

// memberLane has six numbers for each state: when it began, not before and not after; when it ended, alike; 1 if it had
// not ended when the run did; its row. Times are in microseconds after the beginning of the run.
type memberLane struct {
	Group        string  `json:"group,omitempty"` // of a live run
	Synchronizer string  `json:"synchronizer"`
	Host         string  `json:"host"`
	Member       string  `json:"member"`
	Seen         int64   `json:"seen,omitempty"`  // of a live run: when a status has shown the last state
	Known        bool    `json:"known,omitempty"` // of a live run: the last status has shown it
	First        uint64  `json:"first,omitempty"` // of a live run: the number of the first of these states, from 0
	States       []int64 `json:"states"`
}

// stateRow has fields and their values, as texts.
type stateRow struct {
	Names  []string `json:"names"`
	Values []string `json:"values"`
}

// newStatesView keeps the states that ended last, if there are too many.
func newStatesView(from time.Time, states []*monitor.MemberState) *statesView {
	v := &statesView{Lanes: []*memberLane{}, Rows: []stateRow{}}
	if more := len(states) - maxStates; more > 0 {
		v.LeftOut, states = more, states[more:]
	}
	rows, bytes, lanes := map[string]int{}, 0, map[[3]string]*memberLane{}
	for _, s := range slices.Backward(states) { // The last ones first: they stay if there are too many.
		text := s.State.String()
		row, there := rows[text]
		key := [3]string{s.Synchronizer, s.Host, s.Member}
		lane := lanes[key]
		if lane == nil && len(lanes) >= maxStateLanes || !there && bytes+2*len(text) > maxStateBytes {
			v.LeftOut++
			continue
		}
		if !there {
			row = len(v.Rows)
			rows[text] = row
			bytes += 2 * len(text) // The names, too.
			v.Rows = append(v.Rows, newStateRow(s.State))
		}
		if lane == nil {
			lane = &memberLane{Synchronizer: s.Synchronizer, Host: s.Host, Member: s.Member}
			lanes[key] = lane
			v.Lanes = append(v.Lanes, lane)
		}
		micro := func(t time.Time) int64 { return max(0, t.Sub(from).Microseconds()) }
		ends := func(is bool) int64 {
			if is {
				return 1
			}
			return 0
		}
		lane.States = append(lane.States, micro(s.Start[0]), micro(s.Start[1]), micro(s.End[0]), micro(s.End[1]), ends(s.Open), int64(row))
	}
	for _, lane := range v.Lanes {
		states := slices.Collect(slices.Chunk(lane.States, 6))
		slices.SortStableFunc(states, slices.Compare)
		lane.States = slices.Concat(states...)
	}
	slices.SortFunc(v.Lanes, func(a, b *memberLane) int {
		return slices.Compare([]string{a.Synchronizer, a.Host, a.Member}, []string{b.Synchronizer, b.Host, b.Member})
	})
	return v
}

func newStateRow(values monitor.Values) stateRow {
	r := stateRow{[]string{}, []string{}}
	for _, f := range values[:min(len(values), maxStateValues)] {
		r.Names = append(r.Names, f.Name)
		r.Values = append(r.Values, strings.TrimPrefix(monitor.Values{f}.String(), f.Name+"="))
	}
	return r
}

// serveStates answers with a statesView.
func (p *Page) serveStates(w http.ResponseWriter, _ *http.Request) {
	if p.states == nil {
		http.Error(w, "states: the run is live: its states of members come with the stream", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(p.states) // The browser may be gone.
}

// encodeStates is the answer for all browsers.
func encodeStates(r *Recorded) ([]byte, error) {
	text, err := json.Marshal(newStatesView(r.From, r.States))
	if err != nil {
		return nil, fmt.Errorf("states of members: %w", err)
	}
	return text, nil
}
