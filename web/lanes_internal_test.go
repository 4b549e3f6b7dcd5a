package web

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/monitor"
)

// shown is a member in a status: its state began and ended within so many milliseconds after the answer.
func shown(name string, report uint64, open bool, began, ended [2]int, value any) monitor.MemberStatus {
	span := func(r [2]int) *monitor.Range {
		at := func(ms int) clocksync.Instant { return clocksync.Instant(time.Duration(ms) * time.Millisecond) }
		return &monitor.Range{From: at(r[0]), To: at(r[1])}
	}
	return monitor.MemberStatus{
		Name: name, Host: "h", Incarnation: 1, Standing: monitor.InEpoch, Report: report, Open: open, Began: span(began), Ended: span(ended),
		State: monitor.Values{{Name: "v", Value: value}},
	}
}

func status(members ...monitor.MemberStatus) *monitor.Status {
	return &monitor.Status{Synchronizer: "g", Group: "workers", Members: members}
}

// TestLiveLanes: a state ends when the next report begins another one. Without that report its end is its last evidence. A state
// that is not known is a gap.
func TestLiveLanes(t *testing.T) {
	l := &liveLanes{}
	at := func(ms int64) time.Time { return time.UnixMilli(1_000_000 + ms) }
	unknown := monitor.MemberStatus{Name: "a", Standing: monitor.InEpoch, Unknown: true}
	away := shown("a", 9, true, [2]int{-10, -10}, [2]int{-5, -5}, "z")
	away.Incarnation = 2
	steps := []struct {
		ms     int64
		member monitor.MemberStatus
		want   []int64 // of the lane, in milliseconds after at(0)
	}{
		{1000, unknown, nil},
		{2000, shown("a", 4, true, [2]int{-500, -490}, [2]int{-100, -90}, "x"), []int64{1500, 1510, 1900, 1900, 1, 0}},
		{3000, shown("a", 4, true, [2]int{-1505, -1495}, [2]int{-80, -70}, "x"), []int64{1500, 1505, 2920, 2920, 1, 0}},
		{4000, shown("a", 5, true, [2]int{-400, -390}, [2]int{-100, -90}, "y"), []int64{1500, 1505, 3600, 3610, 0, 0, 3600, 3610, 3900, 3900, 1, 1}},
		// Three reports between two statuses: nothing is known from the last evidence to the next state.
		{5000, shown("a", 9, false, [2]int{-300, -290}, [2]int{-100, -90}, "x"), []int64{1500, 1505, 3600, 3610, 0, 0, 3600, 3610, 3900, 3900, 0, 1, 4700, 4710, 4900, 4910, 0, 0}},
		// A new life of the member counts from another number. Its state does not begin before the one before has ended.
		{6000, away, []int64{1500, 1505, 3600, 3610, 0, 0, 3600, 3610, 3900, 3900, 0, 1, 4700, 4710, 4900, 4910, 0, 0, 5990, 5990, 5995, 5995, 1, 2}},
		{7000, unknown, []int64{1500, 1505, 3600, 3610, 0, 0, 3600, 3610, 3900, 3900, 0, 1, 4700, 4710, 4900, 4910, 0, 0, 5990, 5990, 5995, 5995, 0, 2}},
	}
	for _, s := range steps {
		l.note(at(s.ms), status(s.member))
		var got []int64
		for _, lane := range l.all(at(0)).Lanes {
			for i, n := range lane.States {
				if i%6 < 4 {
					n /= 1000
				}
				got = append(got, n)
			}
		}
		if !reflect.DeepEqual(got, s.want) {
			t.Errorf("after %d ms: %v\nwant %v", s.ms, got, s.want)
		}
	}
	if l.unseen != 3 || l.leftOut != 0 {
		t.Errorf("%d reports not seen, %d states left out", l.unseen, l.leftOut)
	}
	v := l.note(at(8000), status(shown("a", 12, true, [2]int{-10, -10}, [2]int{-5, -5}, "q")))
	if v == nil || v.All || len(v.Lanes) != 1 || v.Lanes[0].First != 3 || len(v.Lanes[0].States) != 12 || !v.Lanes[0].Known || len(v.Rows) != 2 {
		t.Errorf("a status changes %+v", v)
	}
}

// TestLiveLanesWithoutBound: a stamp without a bound is before its arrival, and after the state before it.
func TestLiveLanesWithoutBound(t *testing.T) {
	l := &liveLanes{}
	for i := range 2 {
		m := shown("a", uint64(i)+1, true, [2]int{0, -10}, [2]int{0, -10}, i)
		m.Began.From, m.Ended.From = clocksync.MinInstant, clocksync.MinInstant
		l.note(time.UnixMilli(int64(i+1)*1000), status(m))
	}
	want := []int64{0, 990_000, 0, 1_990_000, 0, 0, 0, 1_990_000, 0, 0, 1, 1}
	if got := l.all(time.UnixMilli(0)).Lanes[0].States; !reflect.DeepEqual(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
}

// TestLiveLanesAreBounded: members, states, and bytes of values. The last state of each member stays, and members that have gone
// make room.
func TestLiveLanesAreBounded(t *testing.T) {
	l, now := &liveLanes{}, time.UnixMilli(1_000_000)
	for i := range 3 * maxLiveStates {
		l.note(now.Add(time.Duration(i)*time.Second), status(shown("a", uint64(i)+1, true, [2]int{-10, -10}, [2]int{-5, -5}, i%7)))
		if l.states > maxLiveStates {
			t.Fatalf("%d states", l.states)
		}
	}
	if l.states+l.leftOut != 3*maxLiveStates || l.lanes[[3]string{"workers", "g", "a"}].base != uint64(l.leftOut) {
		t.Errorf("%d states, %d left out", l.states, l.leftOut)
	}
	l = &liveLanes{}
	var many []monitor.MemberStatus
	for i := range maxStateLanes + 3 {
		many = append(many, shown(fmt.Sprintf("m%05d", i), 1, true, [2]int{-10, -10}, [2]int{-5, -5}, strings.Repeat("é", 1<<16)))
	}
	v := l.note(now, status(many...))
	if len(l.lanes) != maxStateLanes || l.leftOut != 3 || v.LeftOut != 3 {
		t.Errorf("%d lanes, %d left out", len(l.lanes), l.leftOut)
	}
	if text := v.Rows[0].Values[0]; len(text) > maxLiveValue+3 || !strings.HasSuffix(text, "é…") || l.bytes > 2*maxLiveBytes {
		t.Errorf("%d bytes of a value, %d of all", len(text), l.bytes)
	}
	gone := many[0]
	gone.Began, gone.Ended = nil, nil
	l.note(now, status(gone))
	l.note(now, status(shown("new", 1, true, [2]int{-10, -10}, [2]int{-5, -5}, 1)))
	if len(l.lanes) != maxStateLanes || l.lanes[[3]string{"workers", "g", "new"}] == nil || l.leftOut != 4 {
		t.Errorf("%d lanes, %d left out", len(l.lanes), l.leftOut)
	}
	wide := shown("w", 1, true, [2]int{-10, -10}, [2]int{-5, -5}, 0)
	for i := range 40 {
		wide.State = append(wide.State, monitor.Named{Name: fmt.Sprint("f", i), Value: strings.Repeat("x", 300)})
	}
	l = &liveLanes{}
	for i := range 4000 {
		wide.Report = uint64(i) + 1
		wide.State[0].Value = i
		l.note(now, status(wide))
	}
	if l.bytes > maxLiveBytes || l.states >= 4000 {
		t.Errorf("%d bytes of %d states", l.bytes, l.states)
	}
}

// TestLiveLanesOfANewBrowser: it gets all lanes that are kept, and then what each status changes.
func TestLiveLanesOfANewBrowser(t *testing.T) {
	p, err := New(Options{Now: func() time.Time { return time.UnixMilli(5000) }})
	if err != nil {
		t.Fatal(err)
	}
	s := status(shown("a", 1, true, [2]int{-10, -10}, [2]int{-5, -5}, "<b>"))
	s.Time = time.UnixMilli(4000)
	p.PublishStatus(s)
	b, first := p.stream.open(time.UnixMilli(5000), "p")
	p.PublishStatus(s)
	frames, _ := p.stream.takeFrames(b)
	for name, frame := range map[string][]byte{"first": first[len(first)-1], "next": frames[len(frames)-1]} {
		var v lanesView
		if err := json.Unmarshal(frame[len("data: "):], &v); err != nil {
			t.Fatal(err)
		}
		from := v.From * 1000
		if v.Kind != "states" || v.All != (name == "first") || len(v.Lanes) != 1 || v.Lanes[0].Group != "workers" || from+v.Lanes[0].States[0] != 3_990_000 || from+v.Lanes[0].Seen != 4_000_000 {
			t.Errorf("%s: %s", name, frame)
		}
	}
}
