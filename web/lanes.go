package web

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/monitor"
)

const (
	maxLiveStates = 20_000  // of members that a new browser gets
	maxLiveBytes  = 8 << 20 // of their values
	maxLiveValue  = 200     // bytes of a value; the rest is cut off
)

// lanesView has the states of members that a status has changed, or all that are kept.
type lanesView struct {
	Kind   string `json:"kind"`
	From   int64  `json:"from"`   // times count from here, in milliseconds since 1970
	All    bool   `json:"all"`    // nothing else is kept
	Unseen uint64 `json:"unseen"` // reports of which no status has shown the state, so far
	statesView
}

// liveLanes keep the states of members that the statuses of a live run have shown.
type liveLanes struct {
	lanes   map[[3]string]*liveLane // by group, synchronizer and member
	states  int
	bytes   int
	leftOut int    // states that are not kept
	unseen  uint64 // reports between those that the statuses have shown
}

type liveLane struct {
	group, synchronizer, host, member string

	incarnation, report uint64 // of the last state
	seen                int64  // when a status has shown it last, in microseconds since 1970
	known               bool   // the last status has shown it
	base                uint64 // states before the first one of states
	states              []liveState
}

// liveState has times in microseconds since 1970: two for each, as memberLane.
type liveState struct {
	start, end [2]int64
	open       bool
	row        stateRow
	text       string // tells rows apart
}

// note takes a status that was answered at an instant, and returns what it changes; nil: nothing.
func (l *liveLanes) note(at time.Time, s *monitor.Status) *lanesView {
	if l.lanes == nil {
		l.lanes = map[[3]string]*liveLane{}
	}
	v := l.newView(at)
	for i := range s.Members {
		m := &s.Members[i]
		lane := l.lane(s, m)
		if lane == nil {
			continue
		}
		from := max(0, len(lane.states)-1)
		l.noteMember(lane, at, m)
		v.add(lane, from)
	}
	l.trim()
	v.LeftOut, v.Unseen = l.leftOut, l.unseen
	if len(v.Lanes) == 0 {
		return nil
	}
	return &v.lanesView
}

// lane is the lane of a member; nil if it has none.
func (l *liveLanes) lane(s *monitor.Status, m *monitor.MemberStatus) *liveLane {
	key := [3]string{s.Group, s.Synchronizer, m.Name}
	if lane := l.lanes[key]; lane != nil || m.Began == nil || m.Ended == nil {
		return lane
	}
	for old, lane := range l.lanes {
		if len(l.lanes) < maxStateLanes {
			break
		}
		if !lane.known { // Its member has gone.
			l.cut(lane, len(lane.states))
			delete(l.lanes, old)
		}
	}
	if len(l.lanes) >= maxStateLanes {
		l.leftOut++
		return nil
	}
	lane := &liveLane{group: s.Group, synchronizer: s.Synchronizer, member: m.Name}
	l.lanes[key] = lane
	return lane
}

// noteMember extends the last state of a lane, or ends it and begins another one.
func (l *liveLanes) noteMember(lane *liveLane, at time.Time, m *monitor.MemberStatus) {
	last := &liveState{}
	if n := len(lane.states); n > 0 {
		last = &lane.states[n-1]
	}
	lane.known = m.Began != nil && m.Ended != nil
	if !lane.known {
		last.open = false // Its end is not known.
		return
	}
	start, end := wallTimes(at, m.Began), wallTimes(at, m.Ended)
	if m.Open {
		end[1] = end[0]
	}
	lane.host, lane.seen = m.Host, at.UnixMicro()
	if lane.incarnation == m.Incarnation && lane.report == m.Report && len(lane.states) > 0 {
		last.start[1] = max(last.start[0], min(last.start[1], start[1])) // Both bounds hold.
		last.end[0] = max(last.end[0], end[0])
		last.end[1], last.open = max(last.end[0], end[1]), m.Open
		return
	}
	if lane.incarnation == m.Incarnation && m.Report > lane.report {
		l.unseen += m.Report - lane.report - 1
		if m.Report == lane.report+1 && last.open { // It ended when the next one began.
			last.end = [2]int64{max(start[0], last.end[0]), max(start[1], last.end[0])}
		}
	}
	last.open = false
	start[0] = max(start[0], last.end[0])
	start[1] = max(start[1], start[0])
	end[0] = max(end[0], start[0])
	end[1] = max(end[1], end[0])
	next := liveState{start: start, end: end, open: m.Open, row: newStateRow(m.State)}
	for i, text := range next.row.Values {
		if len(text) > maxLiveValue {
			next.row.Values[i] = strings.ToValidUTF8(text[:maxLiveValue], "") + "…"
		}
	}
	next.text = strings.Join(slices.Concat(next.row.Names, next.row.Values), "\x00")
	lane.incarnation, lane.report = m.Incarnation, m.Report
	lane.states = append(lane.states, next)
	l.states++
	l.bytes += len(next.text)
}

// trim forgets the oldest states of each lane until the bounds hold. The last state of each stays.
func (l *liveLanes) trim() {
	for l.states > maxLiveStates || l.bytes > maxLiveBytes {
		before := l.states
		for _, lane := range l.lanes {
			l.cut(lane, min(len(lane.states)-1, 1+len(lane.states)/10))
		}
		if l.states == before {
			return
		}
	}
}

// cut forgets the first states of a lane.
func (l *liveLanes) cut(lane *liveLane, n int) {
	if n <= 0 {
		return
	}
	for i := range n {
		l.bytes -= len(lane.states[i].text)
	}
	l.states, l.leftOut = l.states-n, l.leftOut+n
	lane.base += uint64(n) //nolint:gosec // As above.
	lane.states = slices.Delete(lane.states, 0, n)
}

// all is what a new browser gets.
func (l *liveLanes) all(now time.Time) *lanesView {
	v := l.newView(now)
	for _, key := range slices.SortedFunc(maps.Keys(l.lanes), func(a, b [3]string) int { return slices.Compare(a[:], b[:]) }) {
		v.add(l.lanes[key], 0)
	}
	v.All, v.LeftOut, v.Unseen = true, l.leftOut, l.unseen
	return &v.lanesView
}

// lanesBuilder makes a view.
type lanesBuilder struct {
	lanesView

	rows map[string]int
}

func (l *liveLanes) newView(from time.Time) *lanesBuilder {
	return &lanesBuilder{rows: map[string]int{}, lanesView: lanesView{Kind: "states", From: from.UnixMilli(), statesView: statesView{Lanes: []*memberLane{}, Rows: []stateRow{}}}}
}

// add adds the states of a lane from a number on.
func (b *lanesBuilder) add(lane *liveLane, from int) {
	if len(lane.states) == 0 {
		return
	}
	out := &memberLane{Group: lane.group, Synchronizer: lane.synchronizer, Host: lane.host, Member: lane.member, Seen: lane.seen - b.From*1000, Known: lane.known, First: lane.base + uint64(from)} //nolint:gosec // It is no less than 0.
	for i := range lane.states[from:] {
		s := &lane.states[from+i]
		row, there := b.rows[s.text]
		if !there {
			row = len(b.Rows)
			b.rows[s.text] = row
			b.Rows = append(b.Rows, s.row)
		}
		open := int64(0)
		if s.open {
			open = 1
		}
		zero := b.From * 1000
		out.States = append(out.States, s.start[0]-zero, s.start[1]-zero, s.end[0]-zero, s.end[1]-zero, open, int64(row))
	}
	b.Lanes = append(b.Lanes, out)
}

// wallTimes are the two times of a range that counts from an instant, in microseconds since 1970. The first is 0 if it is not
// bounded, and the second is that instant at the latest.
func wallTimes(at time.Time, r *monitor.Range) [2]int64 {
	t := [2]int64{0, at.UnixMicro()}
	if r.From.Finite() {
		t[0] = at.Add(time.Duration(r.From)).UnixMicro()
	}
	if r.To.Finite() {
		t[1] = min(t[1], at.Add(time.Duration(r.To)).UnixMicro())
	}
	return t
}
