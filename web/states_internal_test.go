package web

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/monitor"
)

// TestStatesView bounds what browsers get: states, members, and bytes of values. The newest states stay.
func TestStatesView(t *testing.T) {
	from := time.UnixMilli(0)
	state := func(member string, ms int, value string) *monitor.MemberState {
		at := from.Add(time.Duration(ms) * time.Millisecond)
		return &monitor.MemberState{Synchronizer: "g", Member: member, Start: [2]time.Time{at, at}, End: [2]time.Time{at, at}, State: monitor.Values{{Name: "v", Value: value}}}
	}
	var many, members, large []*monitor.MemberState
	for i := range maxStates + 3 {
		many = append(many, state("a", i, "x"))
	}
	if v := newStatesView(from, many); v.LeftOut != 3 || len(v.Lanes) != 1 || len(v.Lanes[0].States) != 6*maxStates || v.Lanes[0].States[0] != 3000 || len(v.Rows) != 1 {
		t.Errorf("%d left out, %d lanes, %d rows", v.LeftOut, len(v.Lanes), len(v.Rows))
	}
	for i := range maxStateLanes + 2 {
		members = append(members, state(fmt.Sprintf("m%05d", i), i, "x"))
	}
	if v := newStatesView(from, members); v.LeftOut != 2 || len(v.Lanes) != maxStateLanes || v.Lanes[0].Member != "m00002" {
		t.Errorf("%d left out, %d lanes", v.LeftOut, len(v.Lanes))
	}
	text := strings.Repeat("x", 1<<20)
	for i := range 9 {
		large = append(large, state("a", i, strconv.Itoa(i)+text))
	}
	if v := newStatesView(from, large); v.LeftOut != 2 || len(v.Rows) != 7 {
		t.Errorf("%d left out, %d rows", v.LeftOut, len(v.Rows))
	}
	wide := state("a", 1, "x")
	for i := range 100 {
		wide.State = append(wide.State, monitor.Named{Name: fmt.Sprint("f", i), Value: i})
	}
	if v := newStatesView(from, []*monitor.MemberState{wide}); len(v.Rows[0].Names) != maxStateValues || v.Rows[0].Values[1] != "0" {
		t.Errorf("%+v", v.Rows[0])
	}
}
